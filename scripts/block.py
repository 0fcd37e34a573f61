"""One layer of each kind, step by step."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.block import measure as block
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(block.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
