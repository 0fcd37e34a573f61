"""The prompts, cut into tokens: what the model really reads."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.tokens import measure as tokens
    from tokentrail.weights.checkpoint import open_checkpoint
    from tokentrail.weights.tokenizer import open_tokenizer

    checkpoint = open_checkpoint(job.table("weights"))
    tokenizer = open_tokenizer(checkpoint, job.settings["bos"], job.settings["model"])
    job.write(tokens.measure(checkpoint, tokenizer, job.settings), checkpoint.sha256)


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
