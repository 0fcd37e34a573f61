"""`patching`: one value put in place at a time, each in a pass of its own; states by a pass token by token."""

from __future__ import annotations

import torch
from column_checks import recomputes
from definitions import See, last_logits, seen
from tokentrail.forward.cache import new_cache
from tokentrail.forward.frame import forward
from tokentrail.stages.patching import measure as patching

START = "Tom met"
PROMPTS = {  # two names of as many pieces, of which some are the same, and another difference after them
    "paris": {"text": f"{START} Paris and Bob gave", "target": " Paris"},
    "parel": {"text": f"{START} Parel and Tom gave", "target": " Carol"},
}


@recomputes(
    "patching",
    *("prompt", "source_prompt", "site", "mixer", "layer", "position", "token", "recovered"),
    key=("prompt", "source_prompt", "site", "layer", "position"),
)
def test_patching(tiny):
    rows = []
    pairs = [("paris", "parel"), ("parel", "paris")]
    for prompt, source in pairs:
        ids, other = (tiny.ids(PROMPTS[name]["text"]) for name in (prompt, source))
        assert len(ids) == len(other)
        targets = [tiny.after(PROMPTS[name]["text"], PROMPTS[name]["target"])[0] for name in (prompt, source)]

        def difference(logits, targets=targets):
            return logits[targets[1]] - logits[targets[0]]

        clean, whole = difference(last_logits(tiny.model, ids)), difference(last_logits(tiny.model, other))
        values = seen(tiny.model, other, "resid_pre", "mixer_out", "ffn_out")
        states = states_of(tiny, other)
        first = next(i for i, (a, b) in enumerate(zip(ids, other, strict=True)) if a != b)
        for layer, kind in enumerate(tiny.kinds):
            for position in range(first, len(ids)):
                for site in ("resid_pre", "mixer_out", "ffn_out", "ssm_state"):
                    if site == "ssm_state":
                        if kind == "attention" or position == len(ids) - 1:
                            continue
                        changed = with_state(tiny, ids, layer, position, states[layer, position])
                    else:
                        change = {(site, layer): put(values[site, layer], position)}
                        changed = last_logits(tiny.model, ids, change)
                    rows.append(
                        {
                            "prompt": prompt,
                            "source_prompt": source,
                            "site": site,
                            "mixer": kind,
                            "layer": layer,
                            "position": position,
                            "token": tiny.text_of(ids[position]),
                            "recovered": (difference(changed) - clean) / (whole - clean),
                        }
                    )
    settings = tiny.settings(
        pairs=[{"prompt": prompt, "source": source} for prompt, source in pairs],
        sites=["resid_pre", "mixer_out", "ffn_out", "ssm_state"],
        memory_mb=64,
    )
    return patching.measure(tiny.loaded, settings | {"prompts": PROMPTS}), rows


def put(value, position):
    def change(tensor):
        tensor[0, position] = value[position]
        return tensor

    return change


def token_by_token(tiny, ids, tap_of):
    """A pass that reads one token a call, each with the tap of its position; the last logits."""
    cache = new_cache(tiny.model.spec, 1, len(ids), torch.float64)
    with torch.inference_mode():
        for position, token in enumerate(ids):
            logits = forward(tiny.model, torch.tensor([[token]]), cache, tap=tap_of(position))
    return logits[0, -1].tolist()


def states_of(tiny, ids):
    """The state of each Mamba2 layer after each position."""
    taps = [See(["ssm_state"]) for _ in ids]
    token_by_token(tiny, ids, taps.__getitem__)
    return {(layer, p): state for p, tap in enumerate(taps) for (_, layer), state in tap.seen.items()}


def with_state(tiny, ids, layer, position, state):
    put_in_place = {("ssm_state", layer): lambda _: state}
    return token_by_token(tiny, ids, lambda p: See(change=put_in_place if p == position else None))
