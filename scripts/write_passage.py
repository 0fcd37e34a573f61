"""A passage of the reference models' kind of text that none of them has read."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.training.passage import passage
    from tokentrail.training.text import Parts

    (text,) = job.inputs("text")
    job.write_text(passage(job.settings, Parts.read(text)))


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.training.commands import run

    run(main, "passage")
