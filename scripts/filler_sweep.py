"""Whether the name is still the answer with more and more text between it and the question."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.filler import filler_sweep
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(filler_sweep.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
