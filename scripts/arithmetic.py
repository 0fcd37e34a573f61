"""Sizes and work that follow from the shapes alone."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.arithmetic import measure as arithmetic
    from tokentrail.weights.checkpoint import open_checkpoint

    checkpoint = open_checkpoint(job.table("weights"))
    job.write(arithmetic.measure(checkpoint, job.settings), checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
