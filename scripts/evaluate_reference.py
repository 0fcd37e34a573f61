"""How well a reference model copies names, over wording, filler and names that it never saw."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.training import evaluate
    from tokentrail.training.checkpoint import opened
    from tokentrail.training.text import Parts

    (text,) = job.inputs("text")
    (training,) = job.inputs("training")
    loaded = opened(training.parent, job.settings["model"])
    job.write(evaluate.measure(loaded, Parts.read(text), job.settings), loaded.checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.training.commands import run

    run(main, "evaluation")
