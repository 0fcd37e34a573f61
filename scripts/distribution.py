"""The whole distribution at the end of each prompt in a few numbers."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.distribution import measure as distribution
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(distribution.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
