"""What fewer bits cost and save, and which of it ran."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import polars as pl
from markupsafe import Markup

from tokentrail.charts.select import OURS
from tokentrail.charts.text import percent, printable, size, whole
from tokentrail.stages.quantization import quantized
from tokentrail.wording.words import chip, counted, listed, power

MIB = 1 << 20
FLOATS = {"F64", "F32", "F16", "BF16"}
"""Formats that store every weight by itself, and not as a code of few bits in a block with a scale."""


def view(tables: dict[str, pl.DataFrame], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """For each model that schemes were tried on, sentences and the rows of its schemes."""
    found = []
    for index, model in enumerate(settings["models"]):
        rows = tables["quantization"].filter(pl.col("model") == model)
        errors = tables["quantization_error"].filter(pl.col("model") == model)
        if rows.is_empty() and errors.is_empty():
            continue
        timing, summary = (
            tables[name].filter(pl.col("model") == model) for name in ("quantization_timing", "timing_summary")
        )
        first = quantized.first_passage(rows)
        found.append(
            {
                "index": index,
                "said": [
                    sentence
                    for sentence in (
                        unread(rows),
                        reference(first),
                        bits(first),
                        groups(first),
                        part(first),
                        table(first),
                        outliers(errors),
                        balance(first),
                        circular(first),
                        ran(first),
                        rounds(timing, summary),
                        agreed(first),
                        impossible(rows, errors),
                    )
                    if sentence
                ],
                "schemes": [shown(row) for row in once(rows).to_dicts()],
                "rows": [shown(row) for row in rows.to_dicts()],
                "passages": passages(rows),
                "prompt": "" if rows.is_empty() else printable(rows["prompt"][0]),
            }
        )
    return found


def once(rows: pl.DataFrame) -> pl.DataFrame:
    """Each scheme on its weights once, whatever it was read on: its bytes and times are the same on every passage."""
    return rows.unique(["scheme", "families", "execution"], keep="first", maintain_order=True)


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table as the template needs it."""
    return row | {
        "mib": row["payload_bytes"] / MIB,
        "kl": None if row["kl"] is None else nats(row["kl"]),
        "mean_kl": None if row["mean_kl"] is None else nats(row["mean_kl"]),
        "passage": printable(row["passage"]),
        "reason": printable(row["reason"]),
        "circular": quantized.is_circular(row),
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


def unread(rows: pl.DataFrame) -> Markup:
    """Passages that measure nothing of the model. `rows`: quantization, one model."""
    left_out = rows.filter(pl.col("status") == "skipped", pl.col("execution") == "unquantized")
    reasons = [Markup.escape(printable(reason)) for reason in left_out["reason"].unique(maintain_order=True)]
    return Markup("Asked and not measured: {}.").format(listed(reasons)) if reasons else Markup()


def reference(rows: pl.DataFrame) -> Markup:
    """Whether the float32 model was rounded before it came here. `rows`: quantization, one model and passage."""
    stored = [row["stored_dtypes"] for row in rows.filter(pl.col("scheme") == "float32").to_dicts()]
    coded = [dtype for dtype in ", ".join(stored).split(", ") if dtype and dtype not in FLOATS]
    if not coded:
        return Markup()
    return Markup(
        "The float32 model, which everything is compared with, is itself read back from {}: what that rounding cost is "
        "in none of these numbers."
    ).format(listed([Markup("<code>{}</code>").format(printable(dtype)) for dtype in coded]))


def balance(rows: pl.DataFrame) -> Markup:
    """Symmetric beside asymmetric, for every asymmetric scheme. `rows`: quantization, one model and passage."""
    asymmetric = rows.filter(pl.col("method").str.split(", ").list.contains("asymmetric"))
    # What ran packed stands for its scheme; the simulated row beside it says the same.
    asymmetric = asymmetric.sort(pl.col("execution") == "packed", descending=True, maintain_order=True)
    asymmetric = asymmetric.unique(["scheme", "families"], keep="first", maintain_order=True)
    told = []
    for row in asymmetric.to_dicts():
        beside = quantized.counterpart(rows, row)
        told.append(
            Markup("{} has no symmetric scheme of as many bits in groups as large beside it").format(named(row))
            if beside is None
            else Markup("{}; {}").format(cost(beside), cost(row))
        )
    return Markup("With and without a middle for each group: {}.").format(Markup("; ").join(told)) if told else Markup()


def cost(row: dict[str, Any]) -> Markup:
    """What a scheme costs: the move of the weights, of the predictions, and the first tokens kept."""
    sentence = Markup(
        "{} ({}, {}) moves the weights by {} of a standard deviation and the predictions by {} nats"
    ).format(named(row), balance_of(row), counted(row["bits"], "bit"), size(row["weight_error"]), nats(row["moved"]))
    if row["top1_agreement"] is None:
        return sentence
    return sentence + Markup(", and keeps the first token at {} of the positions").format(
        percent(row["top1_agreement"])
    )


def circular(rows: pl.DataFrame) -> Markup:
    """Schemes whose codes the weights stood on before. `rows`: quantization, one model and passage."""
    told = [
        Markup("{} ({} of its weights; the source stores them as {})").format(
            named(row), percent(row["on_codes"]), printable(row["stored_dtypes"])
        )
        for row in rows.unique(["scheme", "families"], keep="first", maintain_order=True).to_dicts()
        if quantized.is_circular(row)
    ]
    if not told:
        return Markup()
    return Markup(
        "Circular: most weights stood before on the codes of {}. Rounded again they hardly move; what the bits cost "
        "was paid before, and is not to be seen here."
    ).format(listed(told))


def named(row: dict[str, Any]) -> Markup:
    """The scheme of a row, and the weights that it is on if those are not all."""
    name = Markup("<b>{}</b>").format(printable(row["scheme"]))
    return name if row["families"] in ("", "all") else name + f" on {printable(row['families'])}"


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
        "One part at a time ({}), the largest move comes from the {} ({} nats{}), the smallest from {} ({}{})"
    ).format(
        counted(most["bits"], "bit"),
        quantized.PARTS[most["families"]],
        nats(most["moved"]),
        beside(most, order),
        quantized.PARTS[least["families"]],
        nats(least["moved"]),
        beside(least, order),
    )
    together = found.filter(pl.col("families") == "compute")["moved"].to_list()
    if not together:
        return sentence + "."
    return sentence + Markup("; all matrices of the layers together give {}.").format(nats(together[0]))


def beside(row: dict[str, Any], parts: pl.DataFrame) -> Markup:
    """The other parts that a row's interval does not set it apart from; empty where it stands alone."""
    others = [other for other in parts.to_dicts() if other["families"] != row["families"]]
    as_much = [quantized.PARTS[other["families"]] for other in others if not apart(row, other, "low", "high")]
    return Markup(", its interval overlapping with that of {}").format(listed(as_much)) if as_much else Markup()


def table(rows: pl.DataFrame) -> Markup:
    """Whether the tied table suffers as input or as output."""
    found = {row["families"]: row for row in quantized.by_part(rows).to_dicts()}
    if not {"tokens", "tokens.input", "tokens.output"} <= set(found):
        return Markup()
    given_in, given_out = found["tokens.input"], found["tokens.output"]
    where = "where tokens are looked up" if given_in["moved"] > given_out["moved"] else "where logits are made"
    more = f"more of the damage arises {where}"
    if not apart(given_in, given_out, "low", "high"):
        more = "the intervals of the two overlap, so that where more of the damage arises is left open"
    return Markup(
        "The tied token table rounded only where tokens are looked up gives {}, only where logits are made {}, in both "
        "uses {}: {}."
    ).format(nats(given_in["moved"]), nats(given_out["moved"]), nats(found["tokens"]["moved"]), more)


def apart(one: dict[str, Any], other: dict[str, Any], low: str, high: str) -> bool:
    """Whether the intervals of two rows do not overlap; rows without intervals are told apart by their values alone."""
    if None in (one[low], other[low]):
        return True
    return one[low] > other[high] or other[low] > one[high]


def apart_in_time(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the rounds tell the decode of two rows apart."""
    return apart(one, other, "decode_low_ms", "decode_high_ms")


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
    """What ran from stored codes; a difference in time that the rounds do not show is said to be none.

    `rows`: quantization, one model and passage.
    """
    timed = rows.filter(pl.col("decode_ms").is_not_null())
    whole_model = timed.filter(pl.col("scheme") == "float32").to_dicts()
    packed = timed.filter(pl.col("execution") == "packed").to_dicts()
    if not whole_model or not packed:
        return Markup()
    (base,) = whole_model
    told = [
        Markup("{} stores {} MiB ({} of the formula) and decodes a token in {} ms ({}) at {} nats").format(
            named(row),
            size(row["stored_bytes"] / MIB),
            percent(row["stored_bytes"] / row["payload_bytes"]),
            size(row["decode_ms"]),
            f"{size(base['decode_ms'] / row['decode_ms'])} times as fast"
            if apart_in_time(row, base)
            else "not told apart from float32",
            nats(row["moved"]),
        )
        for row in packed
    ]
    pairs = list(combinations(packed, 2))
    alike = [pair for pair in pairs if not apart_in_time(*pair)]
    if not alike:
        same = Markup()
    elif len(alike) == len(pairs) > 1:
        same = Markup(" The rounds tell no two of these apart.")
    else:
        said = [Markup("{} from {}").format(named(one), named(other)) for one, other in alike]
        same = Markup(" The rounds do not tell {}.").format(listed(said))
    beside = Markup("Run from stored codes, beside {} ms a token in float32: {}.")
    return beside.format(size(base["decode_ms"]), listed(told)) + same


def rounds(timing: pl.DataFrame, summary: pl.DataFrame) -> Markup:
    """What the times are, and that of the same decode in the other table of times.

    `timing`: quantization_timing, `summary`: timing_summary, one model.
    """
    whole_model = timing.filter(pl.col("scheme") == "float32").to_dicts()
    if not whole_model:
        return Markup()
    (here,) = whole_model
    sentence = Markup(
        "Each time is the median of {} after {}, with an interval that holds it with {}; two are told apart where "
        "their intervals do not overlap."
    ).format(counted(here["rounds"], "round"), counted(here["context"], "token"), percent(here["level"]))
    there = summary.filter(
        pl.col("implementation") == OURS,
        pl.col("kind") != "prefill",
        pl.col("batch") == 1,
        pl.col("context") == here["context"],
        pl.col("status") == "ok",
    ).to_dicts()
    if not there:
        return sentence
    return sentence + Markup(
        " The same float32 decode, which took {} ms here, took {} ms in <code>timing</code>, a process with rounds of "
        "its own: times of different tables are not compared."
    ).format(size(here["decode_ms"]), size(there[0]["median_ms"]))


def agreed(rows: pl.DataFrame) -> Markup:
    """How near packed is to simulated."""
    packed = rows.filter(pl.col("execution") == "packed")
    if packed.is_empty():
        return Markup()
    return Markup(
        "With float32 activations the packed bytes give the simulated logits to within {}; as they run, with bfloat16 "
        "activations, to within {}."
    ).format(power(packed["parity_float32"].max()), size(packed["parity_bfloat16"].max()))


def impossible(rows: pl.DataFrame, errors: pl.DataFrame) -> Markup:
    """What was asked of this model and could not be done, and why: to run packed, or at all, or to make codes.

    `rows` and `errors`: quantization and quantization_error, one model.
    """
    skipped = rows.filter(pl.col("status") == "skipped", pl.col("execution") != "unquantized")
    told = [
        Markup("{}{} ({})").format(
            named(row),
            ", which was only simulated" if row["execution"] == "packed" else "",
            printable(row["reason"]),
        )
        for row in skipped.to_dicts()
    ]
    lost = errors.filter(pl.col("status") == "skipped")
    told += [
        Markup("the error of {} ({})").format(named(row), printable(row["reason"]))
        for row in lost.unique(["scheme", "tensor"], keep="first", maintain_order=True).to_dicts()
    ]
    return Markup("Asked and not measured: {}.").format(listed(told)) if told else Markup()


def story(rows: pl.DataFrame) -> Markup:
    """For the top of the page, on the packed scheme with the fewest bytes. `rows`: quantization, one model."""
    first = quantized.first_passage(rows)
    base = first.filter((pl.col("scheme") == "float32") & pl.col("decode_ms").is_not_null()).to_dicts()
    chosen = quantized.headline(first)
    if not base or chosen is None or chosen["decode_ms"] is None:
        return Markup()
    (whole_model,) = base
    sentence = Markup(
        "Of the schemes that run from stored codes, the smallest, {} ({}, {}), takes {} of float32’s bytes and decodes "
        "a token in {} ms, {} {}"
    ).format(
        named(chosen),
        counted(chosen["bits"], "bit"),
        balance_of(chosen),
        percent(chosen["payload_bytes"] / whole_model["payload_bytes"]),
        size(chosen["decode_ms"]),
        "not" if apart_in_time(chosen, whole_model) else "not told apart from",
        size(whole_model["decode_ms"]),
    )
    if chosen["top1_agreement"] is not None:
        sentence += Markup("; at {} of the {} of <i>{}</i> the first token stays the same{}").format(
            percent(chosen["top1_agreement"]),
            counted(chosen["positions"], "position"),
            printable(chosen["passage"]),
            before(chosen),
        )
    other = quantized.counterpart(first, chosen)
    if other is None or other["top1_agreement"] is None:
        return sentence + "."
    return sentence + Markup("; {} ({}), at {}{}.").format(
        named(other), balance_of(other), percent(other["top1_agreement"]), before(other)
    )


def balance_of(row: dict[str, Any]) -> str:
    return "asymmetric" if "asymmetric" in row["method"].split(", ") else "symmetric"


def before(row: dict[str, Any]) -> Markup:
    """That a row is circular, where it is."""
    if not quantized.is_circular(row):
        return Markup()
    return Markup(", but {} of its weights stood on its codes before, stored as {}: no measure of {}").format(
        percent(row["on_codes"]), printable(row["stored_dtypes"]), counted(row["bits"], "bit")
    )
