"""What stands between the two matrices of each FFN."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.mlp import measure as mlp
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(mlp.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
