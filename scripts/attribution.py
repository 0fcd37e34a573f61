"""What each head and sub-layer adds to the logits of the target and of its rival."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.attribution import measure as attribution
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(attribution.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
