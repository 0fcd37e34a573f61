"""Is the name in the sentence the answer, whichever name it is?"""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.name_swaps import name_swaps
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(name_swaps.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
