"""How often the name is the answer, on average, with intervals over names."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.name_swaps import name_swaps_summary

    frame = name_swaps_summary.measure(job.table("name_swaps"), job.settings)
    job.write(frame, job.weights_sha256("name_swaps"))


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
