"""Does the hand-written pass compute what transformers computes, at every position of every prompt?"""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.parity import parity
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(parity.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
