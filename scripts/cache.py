"""Does decoding with a cache say the same as computing everything anew, and what does the cache hold?"""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.cache import measure as cache
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(cache.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
