"""The JavaScript library that every chart's page holds, made once for all of them."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.charts.library import bundle

    job.write_text(bundle())


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main, spans_models=True)
