"""What GPT-2 is tested with."""

from __future__ import annotations

import re

from planting import Fault, recipe, recipes
from tokentrail.forward.reading.recipe import AS_STORED

from families.cases import Cases

GPT2 = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "bos_token_id": 0,
    "eos_token_id": 1,
    "vocab_size": 97,
    "n_positions": 256,
    "n_embd": 48,
    "n_layer": 3,
    "n_head": 6,
    "layer_norm_epsilon": 1e-5,
}


def other_norm(name: str) -> str:
    """The same tensor of the layer's other norm."""
    return re.sub("(mixer|ffn)_norm", lambda found: "ffn_norm" if found[1] == "mixer" else "mixer_norm", name)


def of_the_other_norm(made):
    """The recipe with the stored name of the layer's other norm."""
    return made._replace(parts=tuple(part.replace("ln_1", "ln_2") for part in made.parts))


CASES = Cases(
    variants={"gpt2": GPT2, "gpt2-inner": GPT2 | {"n_inner": 100, "layer_norm_epsilon": 1e-3}},
    full_shapes={"gpt2": GPT2 | {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}},
    faults=[
        Fault(
            "square matrix not transposed",
            "gpt2",
            recipe("gpt2", "mixer.out.weight", lambda made: made._replace(turn=AS_STORED)),
        ),
        Fault("the two norms of a layer swapped", "gpt2", recipes("gpt2", lambda name, made: {other_norm(name): made})),
    ],
    refused=[
        Fault("one norm used twice", "gpt2", recipes("gpt2", lambda name, made: {name: of_the_other_norm(made)})),
        Fault("matrix not transposed", "gpt2", recipe("gpt2", ".weight", lambda made: made._replace(turn=AS_STORED))),
    ],
)
