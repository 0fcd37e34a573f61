"""What fewer bits cost and save, and which of it ran."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts import quantized
from tokentrail.charts.text import percent, printable, size, whole
from tokentrail.report.words import chip, counted, listed, power

MIB = 1 << 20


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model that schemes were tried on, sentences and the rows of its schemes."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["quantization"].filter(pl.col("model") == model)
        errors = tables["quantization_error"].filter(pl.col("model") == model)
        if rows.is_empty() and errors.is_empty():
            continue
        first = quantized.first_passage(rows)
        found.append(
            {
                "index": index,
                "said": [
                    sentence
                    for sentence in (
                        bits(first),
                        groups(first),
                        part(first),
                        table(first),
                        outliers(errors),
                        ran(first),
                        agreed(first),
                        refused(first),
                        impossible(rows, errors),
                    )
                    if sentence
                ],
                "rows": [shown(row) for row in rows.to_dicts()],
                "passages": passages(rows),
                "prompt": "" if rows.is_empty() else printable(rows["prompt"][0]),
            }
        )
    return found


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table as the template needs it."""
    return row | {
        "mib": row["payload_bytes"] / MIB,
        "kl": None if row["kl"] is None else nats(row["kl"]),
        "mean_kl": None if row["mean_kl"] is None else nats(row["mean_kl"]),
        "passage": printable(row["passage"]),
    }


def nats(kl: float) -> Markup:
    """A KL that may be far below one: `0`, `0.42`, `3.1 × 10⁻⁵`."""
    return Markup(size(kl)) if kl == 0 or kl >= 0.001 else power(kl)


def passages(rows: pl.DataFrame) -> list[Markup]:
    """Each passage with its length and what stands before it."""
    read = rows.filter(pl.col("positions").is_not_null()).unique("passage", keep="first", maintain_order=True)
    return [
        Markup("<i>{}</i>, {} predicted, BOS: {}").format(
            printable(row["passage"]), counted(row["positions"], "position"), row["bos_policy"]
        )
        for row in read.to_dicts()
    ]


def bits(rows: pl.DataFrame) -> Markup:
    """What fewer bits do, at one group size. `rows`: quantization, one model and passage."""
    found = quantized.sweep(quantized.plain(rows), "bits", "group_size").sort("bits", descending=True)
    if found.is_empty():
        return Markup()
    best, worst = found.row(0, named=True), found.row(-1, named=True)
    sentence = Markup(
        "Everything rounded in groups of {}: with {} bits the predictions move by {} nats, with {} by {}"
    ).format(whole(best["group_size"]), best["bits"], nats(best["moved"]), worst["bits"], nats(worst["moved"]))
    kept = rows.filter(pl.col("scheme") == "float32")["top1_token"].to_list()
    other = found.filter(~pl.col("top1_token").is_in(kept))
    if not kept:
        return sentence + "."
    if other.is_empty():
        return sentence + Markup("; after the prompt {}, {} stays first with all of them.").format(
            printable(best["prompt"]), chip(kept[0])
        )
    lost = other.row(0, named=True)
    return sentence + Markup("; after the prompt {}, {} gives way to {} at {}.").format(
        printable(lost["prompt"]), chip(kept[0]), chip(lost["top1_token"]), counted(lost["bits"], "bit")
    )


def groups(rows: pl.DataFrame) -> Markup:
    """What larger groups do. `rows`: quantization, one model and passage."""
    found = quantized.sweep(quantized.plain(rows), "group_size", "bits")
    if found.is_empty():
        return Markup()
    small, large = found.row(0, named=True), found.row(-1, named=True)
    return Markup("At {}, a scale for every {} weights moves them by {} nats, for every {} by {}.").format(
        counted(small["bits"], "bit"),
        whole(small["group_size"]),
        nats(small["moved"]),
        whole(large["group_size"]),
        nats(large["moved"]),
    )


def part(rows: pl.DataFrame) -> Markup:
    """Which part suffers most alone, and whether all layers together suffer more."""
    found = quantized.by_part(rows)
    single = found.filter(pl.col("families").is_in(quantized.ALONE), ~pl.col("families").str.contains("put"))
    if single.height < 2:
        return Markup()
    order = single.sort("moved", descending=True, maintain_order=True)
    most, least = order.row(0, named=True), order.row(-1, named=True)
    sentence = Markup(
        "One part at a time ({}), the largest move comes from the {} ({} nats), the smallest from {} ({})"
    ).format(
        counted(most["bits"], "bit"),
        quantized.PARTS[most["families"]],
        nats(most["moved"]),
        quantized.PARTS[least["families"]],
        nats(least["moved"]),
    )
    together = found.filter(pl.col("families") == "compute")["moved"].to_list()
    if not together:
        return sentence + "."
    return sentence + Markup("; all matrices of the layers together give {}.").format(nats(together[0]))


def table(rows: pl.DataFrame) -> Markup:
    """Whether the tied table suffers as input or as output."""
    moved = dict(quantized.by_part(rows).select("families", "moved").iter_rows())
    if not {"tokens", "tokens.input", "tokens.output"} <= set(moved):
        return Markup()
    given_in, given_out = moved["tokens.input"], moved["tokens.output"]
    where = "where tokens are looked up" if given_in > given_out else "where logits are made"
    return Markup(
        "The tied token table rounded only where tokens are looked up gives {}, only where logits are made {}, in both "
        "uses {}: more of the damage arises {}."
    ).format(nats(given_in), nats(given_out), nats(moved["tokens"]), where)


def outliers(errors: pl.DataFrame) -> Markup:
    """How many groups hold an outlier. `errors`: quantization_error, one model; it speaks of the first scheme."""
    if errors.is_empty():
        return Markup()
    first = errors.filter(pl.col("scheme") == errors["scheme"][0])
    share = first["groups_with_outlier"].sum() / first["groups"].sum()
    far = first.sort("max_sigma", descending=True, maintain_order=True).row(0, named=True)
    size_of = first["group_size"][0]
    group = "rows" if size_of is None else f"groups of {whole(size_of)}"
    return Markup(
        "Of the {}, {} hold a weight beyond four standard deviations of its matrix; the farthest is {} standard "
        "deviations out, in <code>{}</code>."
    ).format(group, percent(share), size(far["max_sigma"]), printable(far["tensor"]))


def ran(rows: pl.DataFrame) -> Markup:
    """What ran from stored codes. `rows`: quantization, one model and passage."""
    timed = rows.filter(pl.col("decode_ms").is_not_null())
    whole_model = timed.filter(pl.col("scheme") == "float32").to_dicts()
    packed = timed.filter(pl.col("execution") == "packed").to_dicts()
    if not whole_model or not packed:
        return Markup()
    (base,) = whole_model
    told = [
        Markup(
            "{} stores {} MiB ({} of the formula) and decodes a token in {} ms ({} times as fast) at {} nats"
        ).format(
            Markup("<b>{}</b>").format(printable(row["scheme"])),
            size(row["stored_bytes"] / MIB),
            percent(row["stored_bytes"] / row["payload_bytes"]),
            size(row["decode_ms"]),
            size(base["decode_ms"] / row["decode_ms"]),
            nats(row["moved"]),
        )
        for row in packed
    ]
    return Markup("Run from stored codes, beside {} ms a token in float32: {}.").format(
        size(base["decode_ms"]), listed(told)
    )


def agreed(rows: pl.DataFrame) -> Markup:
    """How near packed is to simulated."""
    packed = rows.filter(pl.col("execution") == "packed")
    if packed.is_empty():
        return Markup()
    return Markup(
        "With float32 activations the packed bytes give the simulated logits to within {}; as they run, with bfloat16 "
        "activations, to within {}."
    ).format(power(packed["parity_float32"].max()), size(packed["parity_bfloat16"].max()))


def refused(rows: pl.DataFrame) -> Markup:
    """Schemes that were to run packed and could not."""
    notes = rows.filter(pl.col("note") != "").unique(["scheme", "families"], keep="first", maintain_order=True)
    if notes.is_empty():
        return Markup()
    told = [f"{printable(row['scheme'])} ({printable(row['note'])})" for row in notes.to_dicts()]
    return Markup("Not run packed, only simulated: {}.").format(listed([Markup.escape(each) for each in told]))


def impossible(rows: pl.DataFrame, errors: pl.DataFrame) -> Markup:
    """Schemes that this model's values do not fit. `rows` and `errors`: quantization and quantization_error."""
    none = [row for row in rows.to_dicts() if row["execution"] == "not run"]
    told = [f"{printable(row['scheme'])} on {printable(row['families'])} ({printable(row['note'])})" for row in none]
    lost = errors.filter(pl.col("note") != "").unique(["scheme", "tensor"], keep="first", maintain_order=True)
    told += [f"the error of {printable(row['scheme'])} ({printable(row['note'])})" for row in lost.to_dicts()]
    if not told:
        return Markup()
    return Markup("Asked and not measured: {}.").format(listed([Markup.escape(each) for each in told]))


def story(rows: pl.DataFrame) -> Markup:
    """One sentence for the top of the page, on the fastest packed scheme. `rows`: quantization, one model."""
    first = quantized.first_passage(rows)
    base = first.filter((pl.col("scheme") == "float32") & pl.col("decode_ms").is_not_null()).to_dicts()
    packed = (
        first.filter((pl.col("execution") == "packed") & pl.col("decode_ms").is_not_null()).sort("decode_ms").to_dicts()
    )
    if not base or not packed:
        return Markup()
    fastest, whole_model = packed[0], base[0]
    sentence = Markup(
        "Stored in {} and run from the stored codes, it takes {} of its bytes and decodes a token in {} ms, not {}"
    ).format(
        counted(fastest["bits"], "bit"),
        percent(fastest["payload_bytes"] / whole_model["payload_bytes"]),
        size(fastest["decode_ms"]),
        size(whole_model["decode_ms"]),
    )
    if fastest["top1_agreement"] is None:
        return sentence + "."
    return sentence + Markup("; at {} of the positions of a short passage the first token stays the same.").format(
        percent(fastest["top1_agreement"])
    )
