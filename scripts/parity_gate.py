"""May the model be looked into? Only if its pass equals the reference within the tolerance."""

from tokentrail import stage


def main(job: stage.Job) -> None:
    from tokentrail.stages.parity import parity_gate

    parity, layers = job.table("parity"), job.table("parity_layers")
    job.write_text(parity_gate.gate(parity, layers, job.settings["model"], job.refused("parity")) + "\n")


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main)
