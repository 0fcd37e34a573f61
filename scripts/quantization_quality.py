"""What fewer bits cost in answers and save in bytes, simulated and from packed codes."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.quantization import quantization_quality
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings, block=False)
    job.write(quantization_quality.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
