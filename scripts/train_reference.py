"""A small reference model, trained from its seed: a checkpoint of its family, and how the loss fell on the way."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.training.checkpoint import opened
    from tokentrail.training.fit import fit
    from tokentrail.training.text import Parts

    (text,) = job.inputs("text")
    folder = job.outputs[0].parent
    frame = fit(job.settings, Parts.read(text), folder)
    job.write(frame, opened(folder, job.settings["model"]).checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.training.commands import run

    run(main, "training")
