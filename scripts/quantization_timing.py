"""How fast the packed schemes run, and how much memory they take, beside float32 and bfloat16."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.quantization import quantization_timing
    from tokentrail.weights.checkpoint import open_checkpoint

    checkpoint = open_checkpoint(job.table("weights"))
    job.write(quantization_timing.measure(checkpoint, job.settings), checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
