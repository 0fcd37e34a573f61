"""Stage scripts from a shell: `python scripts/lens.py --model smollm2 --output lens.parquet`.

Inputs are the tables that a run left in its results folder, so earlier stages must have been made.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tokentrail import config as configuration
from tokentrail import stage
from tokentrail.errors import ConfigError, TokentrailError
from tokentrail.rooms import charts, module_name, stages


def run(main: Callable[[stage.Job], None], spans_models: bool = False) -> None:
    """Run a script's `main` with the arguments of the command line."""
    script = sys.modules["__main__"]
    name = Path(script.__file__).stem
    parser = argparse.ArgumentParser(description=script.__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    if not spans_models:
        parser.add_argument("--model", required=True, help="model, as the configuration names it")
    if name == "chart":
        parser.add_argument("--chart", required=True, help="name of the chart")
    parser.add_argument("--config", type=Path, default=Path("config/config.yaml"), help="configuration file")
    parser.add_argument("--output", type=Path, help="file to write (default: where a run puts it)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads for torch")
    arguments = parser.parse_args()
    try:
        job = prepare(name, arguments)
    except TokentrailError as error:
        sys.exit(f"{name}: {error}")
    sys.exit(stage.call(main, job))


def prepare(name: str, arguments: argparse.Namespace) -> stage.Job:
    """The job that the arguments ask for. Raises ConfigError."""
    config = configuration.load(arguments.config)
    results = Path("results", config.run)
    model = getattr(arguments, "model", None)
    if model is not None and model not in config.models:
        raise ConfigError(f"--model {model} is not in {arguments.config}; it has {', '.join(config.models)}")
    folders = [results / each for each in ([model] if model else config.models)]
    match name:
        case "chart":
            if arguments.chart not in charts():
                raise ConfigError(f"--chart {arguments.chart} is no chart; there are {', '.join(charts())}")
            settings = configuration.chart_settings(config) | {"module": module_name(charts()[arguments.chart])}
            default = [results / "charts" / f"{arguments.chart}.{kind}" for kind in stage.CHART_KINDS]
        case "chart_library":
            settings, default = {}, [results / "charts" / "library.js"]
        case "report":
            settings = configuration.report_settings(config) | {"charts": str(results / "charts"), "lost": []}
            default = [results / "report.html"]
        case _:
            settings = configuration.settings(config, name, model)
            declared = stages()[name]
            folder = results if declared.spans_models else folders[0]
            default = [folder / (declared.file or f"{name}.parquet")]
    chosen = default
    if arguments.output:
        kinds = [path.suffix for path in default]
        chosen = [arguments.output.with_suffix(kind) for kind in kinds] if kinds[1:] else [arguments.output]
    return stage.Job(
        stage=name,
        settings=settings,
        inputs=lambda name: (
            [results / "charts" / "library.js"]
            if name == "library"
            else [folder / f"{name}.parquet" for folder in ([results] if stages()[name].spans_models else folders)]
        ),
        outputs=chosen,
        threads=arguments.threads,
    )
