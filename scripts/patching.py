"""Which site, layer and position carry what tells two prompts apart."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.patching import measure as patching
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(patching.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
