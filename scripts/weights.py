"""The files that the model is made from: fetched, hashed and held to their hashes."""

from pathlib import Path

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.weights.checkpoint import open_checkpoint
    from tokentrail.weights.fetch import fetch

    chosen = job.settings
    frame = fetch(chosen["model"], chosen["source"], chosen["license"], Path(chosen["lock_file"]), chosen["changes"])
    job.write(frame, open_checkpoint(frame).sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
