"""What reaches the last token from the name: attention weight, and what Mamba2's decay leaves."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.filler import long_range
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(long_range.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
