"""Bytes, answers and times of every scheme in one table."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.quantization import quantization

    quality, timing = job.table("quantization_quality"), job.table("quantization_timing")
    joined = quantization.measure(quality, timing, job.settings)
    job.write(joined, job.weights_sha256("quantization_quality"))


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
