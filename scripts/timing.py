"""How long do decode and prefill take, beside what the machine can do at best?"""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.timing import timing
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings, decode=True)
    job.write(timing.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
