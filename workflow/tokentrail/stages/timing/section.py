"""How long decode and prefill take, beside the machine's limits, and what that costs."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import OURS
from tokentrail.charts.text import percent, printable, size, whole
from tokentrail.wording.claims import apart, drifted
from tokentrail.wording.words import counted

KINDS = {"decode": "Decode", "batch": "Decode", "prefill": "Prefill"}
CASE = ["model", "kind", "context", "batch"]


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model, sentences, its cases with their prices, and the machine."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["timing_summary"].filter(pl.col("model") == model)
        if not rows.height:
            continue
        cost = tables["cost"].filter(pl.col("model") == model)
        machine = tables["machine"].filter(pl.col("model") == model)
        found.append(
            {
                "index": index,
                "limits": limits(rows),
                "drift": drift(rows),
                "spread": spread(rows),
                "peers": peers(rows),
                "cases": named(rows),
                "prices": named(cost.filter(pl.col("kind") == "batch")),
                "machine": [(fact, printable(value)) for fact, value in machine.select("fact", "value").iter_rows()],
            }
        )
    return found


def limits(rows: pl.DataFrame) -> Markup:
    """How near ours comes to the two limits. `rows`: timing_summary, one model."""
    ours = rows.filter(pl.col("implementation") == OURS, pl.col("status") == "ok")
    threads = counted(rows["threads"][0], "thread")
    measured = Markup(
        "With {}, the same process measured {} GFLOP/s in a large float32 product and {} GB/s reading memory."
    )
    said = [measured.format(threads, size(rows["matrix_peak"][0] / 1e9), size(rows["read_bandwidth"][0] / 1e9))]
    for kinds, column, what in (
        (
            ("decode", "batch"),
            "fraction_of_bandwidth",
            "Decode reads what it must read once at up to {} of that bandwidth",
        ),
        (("prefill",), "fraction_of_peak", "prefill computes at up to {} of that peak"),
    ):
        of_kind = ours.filter(pl.col("kind").is_in(kinds))
        if of_kind.height:
            said.append(Markup(what + "{}").format(percent(of_kind[column].max()), alone(of_kind, column)))
    return Markup(" ").join(said[:1]) + Markup(" {}.").format(Markup("; ").join(said[1:])) if said[1:] else said[0]


def alone(rows: pl.DataFrame, column: str) -> str:
    """` (1 row after 64 tokens)`: the case with the largest share, if the rounds set it apart from all others."""
    span = rows.with_columns(
        least=pl.col(column) * pl.col("median_ms") / pl.col("high_ms"),
        best=pl.col(column) * pl.col("median_ms") / pl.col("low_ms"),
    )
    most = span.sort(column, descending=True, maintain_order=True).row(0, named=True)
    reaching = span.filter(pl.col("best") >= most["least"]).height
    if reaching == 1:
        return f" ({place(most)})"
    others = f"{whole(reaching - 1)} of {counted(span.height - 1, 'other case')}"
    return f" ({place(most)}; the rounds of {others} reach as far)"


def drift(rows: pl.DataFrame) -> Markup:
    """Which medians moved from the first block to its repetition, further than the rounds of the first one span."""
    repeated = rows.filter(pl.col("drift").is_not_null())
    if repeated.is_empty():
        return Markup()
    outside, cases = drifted(repeated), counted(repeated.height, "case")
    sentence = Markup(
        "From the first block of {} to its repetition, {} moved out of the span of the first block"
    ).format(
        counted(repeated["rounds"].max(), "round"),
        f"no median of {cases}" if outside.is_empty() else f"the medians of {whole(outside.height)} of {cases}",
    )
    most = repeated.sort(pl.col("drift").abs(), descending=True, maintain_order=True).row(0, named=True)
    within = "" if outside.filter(pl.col("drift").abs() == abs(most["drift"])).height else ", within its rounds"
    return sentence + Markup("; the most that any moved is from {} to {} ms ({}{}{}).").format(
        size(most["median_ms"]),
        size(most["repeat_median_ms"]),
        place(most),
        "" if most["implementation"] == OURS else f", {most['implementation']}",
        within,
    )


def spread(rows: pl.DataFrame) -> str:
    """How many rounds a median is of, and how surely its interval holds it: `6 rounds, 96.9%`."""
    timed = rows.filter(pl.col("status") == "ok")
    if timed.is_empty():
        return ""
    return f"{counted(timed['rounds'][0], 'round')}, {percent(timed['level'][0])}"


def peers(rows: pl.DataFrame) -> Markup:
    """Ours against the fastest of the others, case by case; empty without others."""
    timed = rows.filter(pl.col("status") == "ok")
    others = timed.filter(pl.col("implementation") != OURS).sort("median_ms", maintain_order=True)
    if others.is_empty():
        return Markup()
    fastest = others.unique(CASE, keep="first", maintain_order=True)
    ours = timed.filter(pl.col("implementation") == OURS)
    both = ours.join(fastest, on=CASE, how="inner", suffix="_other", maintain_order="left").to_dicts()
    told = sorted(
        (row | {"ratio": row["median_ms_other"] / row["median_ms"]} for row in both), key=lambda row: row["ratio"]
    )
    clear = [
        row for row in told if apart(*(row[name] for name in ("low_ms", "high_ms", "low_ms_other", "high_ms_other")))
    ]
    opening = "Against the faster of transformers’ paths in the same rounds, "
    same = len(told) - len(clear)
    unclear = (
        f"{whole(same)} of {counted(len(told), 'case')} {'is' if same == 1 else 'are'} not told apart by the rounds"
    )
    if not clear:
        return Markup("{}{}.").format(opening, unclear)
    least, most = clear[0], clear[-1]
    sentence = Markup("{}ours is {} to {} times as fast ({}; {})").format(
        opening, size(least["ratio"]), size(most["ratio"]), place(least), place(most)
    )
    return sentence + (f"; {unclear}." if same else ".")


def place(row: dict[str, Any]) -> str:
    """A case in words."""
    tokens = counted(row["context"], "token")
    if row["kind"] == "prefill":
        return f"prefill of {tokens}"
    return f"{counted(row['batch'], 'row')} after {tokens}"


def named(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows with the kind of their case in words."""
    return rows.with_columns(name=pl.col("kind").replace_strict(KINDS, return_dtype=pl.String)).to_dicts()
