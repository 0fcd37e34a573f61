"""Published figures held against what the run measured."""

from pathlib import Path

from tokentrail import stage


def main(job: stage.Job) -> None:
    import polars as pl
    from tokentrail import tables
    from tokentrail.forward.families import read_spec
    from tokentrail.stages.reproduction import judge, ledger
    from tokentrail.stages.reproduction.run import Run, check
    from tokentrail.weights.checkpoint import open_checkpoint

    chosen = job.settings
    figures = ledger.read_all(map(Path, chosen["ledgers"]))
    if not figures:  # whatever was measured is no input then
        return job.write(tables.frame("reproduction", []), "")
    measured = there(job)
    check(figures, measured)
    weights = measured["weights"]
    specs = {
        model: read_spec(open_checkpoint(weights.filter(pl.col("model") == model)).config)
        for model in weights["model"].unique(maintain_order=True)
    }
    run = Run(measured, specs, chosen["schemes"])
    job.write(judge.measure(run, figures), "")


def there(job: stage.Job) -> dict:
    """Every table with the rows of the models that have it; without rows where it was not made."""
    from tokentrail import rooms, tables

    found = {}
    for name in rooms.tables():
        if name != job.stage:
            paths = filter(Path.is_file, job.inputs(name))
            found[name] = tables.frame(name, [tables.read(name, path) for path in paths])
    return found


if "snakemake" in globals():
    stage.run_job(main, snakemake)  # noqa: F821
elif __name__ == "__main__":
    from tokentrail.by_hand import run

    run(main, spans_models=True)
