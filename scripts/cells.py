"""The frame and the cells of the model: what differs between models."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.cells import measure as cells
    from tokentrail.weights.checkpoint import open_checkpoint

    checkpoint = open_checkpoint(job.table("weights"))
    job.write(cells.measure(checkpoint, job.settings), checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
