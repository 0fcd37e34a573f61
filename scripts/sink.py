"""Whether position 0 is needed for its value, for the normalisation, or for the token that stands there."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.sink import measure as sink
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(sink.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
