"""The typed configuration: every key, its type, its default and what it means.

`config/config.yaml` is read into `Config`. The JSON Schema and the list of keys are made from it by `docs.py`.
A stage never sees the whole configuration: `settings` gives it exactly the entries that it uses.
"""

from tokentrail.config.by_stage import chart_settings, code, report_settings, settings
from tokentrail.config.run import Config, explain, load, parse
from tokentrail.declare.settings import Name, Section

__all__ = [
    "Config",
    "Name",
    "Section",
    "chart_settings",
    "code",
    "explain",
    "load",
    "parse",
    "report_settings",
    "settings",
]
