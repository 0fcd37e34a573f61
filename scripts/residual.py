"""How large the residual stream is, and what is added to it, at every position and layer."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.residual import measure as residual
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(residual.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
