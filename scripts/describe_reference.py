"""The model card of a reference model, made from its tables."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.training import card
    from tokentrail.training.checkpoint import opened
    from tokentrail.training.text import Parts

    (text,) = job.inputs("text")
    (training,) = job.inputs("training")
    checkpoint = opened(training.parent, job.settings["model"]).checkpoint
    job.write_text(
        card.render(checkpoint, Parts.read(text), job.settings, job.table("training"), job.table("evaluation"))
    )


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.training.commands import run

    run(main, "card")
