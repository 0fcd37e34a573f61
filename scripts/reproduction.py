"""Published figures held against what the run measured."""

from pathlib import Path

from tokentrail import stage


def main(job: stage.Job) -> None:
    import polars as pl
    from tokentrail import tables
    from tokentrail.forward.families import read_spec
    from tokentrail.stages.reproduction import judge, ledger
    from tokentrail.stages.reproduction.run import Run
    from tokentrail.weights.checkpoint import open_checkpoint

    chosen = job.settings
    figures = ledger.read_all(map(Path, chosen["ledgers"]))
    measured = there(job) if figures else {}
    weights = measured.get("weights", tables.frame("weights", []))
    specs = {
        model: read_spec(open_checkpoint(weights.filter(pl.col("model") == model)).config)
        for model in weights["model"].unique(maintain_order=True)
    }
    run = Run(measured, specs, chosen["targets"], chosen["schemes"])
    job.write(judge.measure(run, figures), "")


def there(job: stage.Job) -> dict:
    """The tables that were made, each with the rows of the models that have it."""
    import polars as pl
    from tokentrail import rooms, tables

    found = {}
    for name in rooms.tables():
        paths = [] if name == job.stage else [path for path in job.inputs(name) if path.is_file()]
        if paths:
            found[name] = pl.concat([tables.read(name, path) for path in paths])
    return found


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main, spans_models=True)
