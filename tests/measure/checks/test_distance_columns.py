"""`filler_sweep` and `long_range`: whole passes over texts that are put together and cut here once more."""

from __future__ import annotations

import math

from column_checks import recomputes
from definitions import answer_columns, last_logits, seen
from tokentrail.stages.filler import filler_sweep, long_range

BEFORE = "In the morning,"
HEAD, TAIL = f"{BEFORE} Mirabel gave Bob a book.", "Later, Bob gave the book back to"
FILLERS = {"japan": "The capital of Japan is Tokyo.", "carol": "Carol met Mirabel."}
REPEATS = [0, 6, 1]
SETTINGS = {"head": HEAD, "tail": TAIL, "target": " Mirabel", "fillers": FILLERS, "repeats": REPEATS}


def inputs(tiny):
    """What both tables say of each input, its ids, and the positions of the name's pieces."""
    for filler, paragraph in FILLERS.items():
        for repeats in REPEATS:
            text = HEAD + f" {paragraph}" * repeats + f" {TAIL}"
            ids = tiny.ids(text)
            name = range(len(tiny.ids(BEFORE)), len(tiny.ids(f"{BEFORE} Mirabel")))
            assert ids[: len(tiny.ids(HEAD))] == tiny.ids(HEAD) and len(name) > 1
            about = {"filler": filler, "repeats": repeats, "tokens": len(ids)}
            yield about | {"distance": len(ids) - 1 - max(name)}, text, ids, list(name)


def fits(tiny, ids):
    return len(ids) <= tiny.config.get("n_positions", math.inf)


@recomputes(
    "filler_sweep",
    *("filler", "repeats", "tokens", "distance", "variant", "target_probability", "target_rank", "top1_token"),
    *("top1_probability", "status", "reason", "beyond_context"),
    key=("filler", "repeats", "variant"),
)
def test_filler_sweep(tiny):
    off = {("z", i): lambda z: z * 0 for i, kind in enumerate(tiny.kinds) if kind == "attention"}
    nothing = dict.fromkeys(("target_probability", "target_rank", "top1_token", "top1_probability"))
    context = tiny.config.get("n_positions") or tiny.config["max_position_embeddings"]
    rows = []
    for about, text, ids, _ in inputs(tiny):
        about |= {"beyond_context": len(ids) > context}
        target = tiny.after(text, " Mirabel")[0]
        for variant, change in (("as_trained", {}), ("attention_off", off)):
            if fits(tiny, ids):
                said = answer_columns(tiny, last_logits(tiny.model, ids, change), target) | {
                    "status": "ok",
                    "reason": "",
                }
            else:
                said = nothing | {
                    "status": "exceeds_positions",
                    "reason": f"{len(ids)} tokens, but the model has 64 positions",
                }
            rows.append(about | {"variant": variant, "beyond_context": len(ids) > tiny.context} | said)
    assert {row["beyond_context"] for row in rows} == ({False} if tiny.name == "granite" else {True, False})
    assert {row["status"] for row in rows} == ({"ok", "exceeds_positions"} if tiny.name == "gpt2" else {"ok"})
    return filler_sweep.measure(tiny.loaded, tiny.settings(**SETTINGS)), rows


@recomputes(
    "long_range",
    *("filler", "repeats", "tokens", "distance", "layer", "mixer", "head", "attention_to_name", "state_retention"),
    key=("filler", "repeats", "layer", "head"),
)
def test_long_range(tiny):
    rows = []
    for about, _, ids, name in inputs(tiny):
        if not fits(tiny, ids):
            continue
        tensors = seen(tiny.model, ids, "pattern", "dt")
        for layer, kind in enumerate(tiny.kinds):
            for head in range(4):
                weight = left = None
                if kind == "attention":
                    weight = sum(tensors["pattern", layer][head, -1, p].item() for p in name)
                else:
                    decay = math.exp(tiny.model.layers[layer]["mixer"].cell.A_log[head].item())
                    left = 1.0
                    for position in range(max(name) + 1, len(ids)):
                        left *= math.exp(-decay * tensors["dt", layer][position, head].item())
                own = {"layer": layer, "mixer": kind, "head": head}
                rows.append(about | own | {"attention_to_name": weight, "state_retention": left})
    return long_range.measure(tiny.loaded, tiny.settings(**SETTINGS)), rows


def test_a_name_that_begins_the_text_is_found_without_its_space(tiny):
    head = "Mirabel gave Bob a book."
    settings = tiny.settings(**SETTINGS | {"head": head, "repeats": [0], "target": " Mirabel"})
    frame = long_range.measure(tiny.loaded, settings).filter(filler="carol")
    ids = tiny.ids(f"{head} {TAIL}")
    last_piece = len(tiny.ids("Mirabel")) - 1
    assert set(frame["distance"]) == {len(ids) - 1 - last_piece}
