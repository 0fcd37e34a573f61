"""Changes of a whole model that stages measure beside the model as it was trained."""

from __future__ import annotations

from tokentrail.forward import spec as specs
from tokentrail.forward.taps import NO_TAP, Tap
from tokentrail.intervene.branching import AloneTap
from tokentrail.intervene.interventions import Intervention, Operation, Variant


def taps(spec: specs.Spec) -> dict[str, Tap]:
    """The variants: as trained, and with nothing from any attention head, where there is attention."""
    attention = specs.layers_with(spec, "attention")
    if not attention:
        return {"as_trained": NO_TAP}
    off = Variant("attention_off", (Intervention("z", attention, Operation("zero")),))
    return {"as_trained": NO_TAP, "attention_off": AloneTap(off)}


def is_hybrid(spec: specs.Spec) -> bool:
    """Whether layers of more than one kind of mixer take turns."""
    return len({specs.kind_of(layer.mixer) for layer in spec.layers}) > 1
