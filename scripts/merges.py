"""Words and prompts, cut to bytes and joined again, merge by merge."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.merges import measure as merges
    from tokentrail.weights.checkpoint import open_checkpoint
    from tokentrail.weights.tokenizer import open_tokenizer

    checkpoint = open_checkpoint(job.table("weights"))
    tokenizer = open_tokenizer(checkpoint, job.settings["bos"], job.settings["model"])
    job.write(merges.measure(tokenizer, job.settings), checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
