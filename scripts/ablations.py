"""What the last position answers when a layer, a head or a set of them is switched off or swapped."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.ablations import measure as ablations
    from tokentrail.weights.load import load

    loaded = load(job.table("weights"), job.settings)
    job.write(ablations.measure(loaded, job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
