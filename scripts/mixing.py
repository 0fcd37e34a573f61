"""Which position takes how much from which: attention weights, and Mamba2 unrolled to the same shape."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.mixing import measure as mixing
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(mixing.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
