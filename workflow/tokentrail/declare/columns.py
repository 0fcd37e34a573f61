"""What columns are declared with."""

from __future__ import annotations

import sys

# Every job reads a table or writes one. dataframely loads sqlalchemy where it finds it, for database tables that are
# not made here, and that takes longer than the rest of it.
hidden = {name for name in ("sqlalchemy",) if name not in sys.modules}
sys.modules.update(dict.fromkeys(hidden))
import dataframely as dy  # noqa: E402

for name in hidden:
    del sys.modules[name]

STATUS = "^(ok|skipped)$"
MEDIAN_LOW = (
    "lower end of the median's interval, from the k-th fastest round to the k-th slowest: the narrowest that holds the "
    "median with at least 95%, or the fastest and the slowest where six rounds were not taken"
)


MEDIAN_LEVEL = "probability with which the interval holds the median, whatever the distribution of the times"


def text(description: str, **options) -> dy.String:
    return dy.String(description=description, **options)


def count(description: str, unit: str = "count", **options) -> dy.Int64:
    return dy.Int64(description=description, metadata={"unit": unit}, **{"min": 0, **options})


def number(description: str, unit: str = "", **options) -> dy.Float64:
    return dy.Float64(description=description, metadata={"unit": unit}, **options)


def prob(description: str, **options) -> dy.Float64:
    return number(description, "probability", min=0.0, max=1.0 + 1e-9, **options)


def flag(description: str, **options) -> dy.Bool:
    return dy.Bool(description=description, **options)


class Table(dy.Schema):
    """A table of one model; `model` comes first."""

    model = text("model name, as in the configuration", min_length=1)

    @classmethod
    def asked(cls) -> list[str]:
        """The columns that say what was asked, where it could not be measured; those that are empty say nothing."""
        return [name for name in cls.column_names() if name not in ("model", "reason")]
