"""Reading config.json strictly: a key that is missing, unknown or has an unsupported value is refused by name."""

from __future__ import annotations

from typing import Any

from tokentrail.errors import UnsupportedError
from tokentrail.forward.spec import Llama3Scaling, Rope

# Keys that change nothing in the pass: bookkeeping, training and generation settings.
WITHOUT_EFFECT = frozenset(
    [
        "_name_or_path",
        "architectures",
        "attention_dropout",
        "attention_probs_dropout_prob",
        "attn_pdrop",
        "auto_map",
        "bos_token_id",
        "chunk_size_feed_forward",
        "dtype",
        "embd_pdrop",
        "eos_token_id",
        "finetuning_task",
        "id2label",
        "init_method",
        "initializer_range",
        "is_decoder",
        "is_encoder_decoder",
        "is_llama_config",
        "keys_to_ignore_at_inference",
        "label2id",
        "mamba_chunk_size",
        "max_window_layers",
        "model_type",
        "n_ctx",
        "num_labels",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "pad_token_id",
        "pretraining_tp",
        "problem_type",
        "resid_pdrop",
        "return_dict",
        "rope_interleaved",
        "router_aux_loss_coef",
        "sep_token_id",
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
        "task_specific_params",
        "torch_dtype",
        "transformers.js_config",
        "transformers_version",
        "unk_token_id",
        "use_cache",
    ]
)

_ABSENT = object()


class ConfigReader:
    """Hands out the values of a config.json and remembers which keys were asked for."""

    def __init__(self, config: dict[str, Any]):
        self.config = config
        self.family = config["model_type"]
        self.asked: set[str] = set()

    def refuse(self, key: str, value: Any, supported: str) -> UnsupportedError:
        return UnsupportedError(
            f"{key} is {value!r} in config.json, which the family {self.family} here does not support; "
            f"supported: {supported}"
        )

    def get(self, key: str, absent: Any = _ABSENT) -> Any:
        """The value of `key`; if it is missing or null, `absent`, or a refusal when no such value is given."""
        self.asked.add(key)
        value = self.config.get(key, absent)
        if value is _ABSENT or (value is None and absent is _ABSENT):
            raise UnsupportedError(
                f"config.json lacks {key}, which the family {self.family} needs; add the value that the model was "
                f"trained with"
            )
        return value

    def whole(self, key: str, absent: Any = _ABSENT) -> int:
        value = self.get(key, absent)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.refuse(key, value, "a whole number above 0")
        return value

    def real(self, key: str, absent: Any = _ABSENT) -> float:
        value = self.get(key, absent)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(key, value, "a number")
        return float(value)

    def flag(self, key: str, absent: Any = _ABSENT) -> bool:
        value = self.get(key, absent)
        if not isinstance(value, bool):
            raise self.refuse(key, value, "true or false")
        return value

    def only(self, key: str, *supported: Any, absent: Any = _ABSENT) -> Any:
        """The value of `key`, which must be one of `supported`."""
        stated_null = None in supported and key in self.config
        value = self.get(key, None if stated_null else absent)
        if value not in supported:
            raise self.refuse(key, value, ", ".join(repr(s) for s in supported))
        return value

    def divides(self, small: str, by: int, into: int, what: str) -> int:
        """into / by. Refuses if it leaves a rest."""
        if into % by:
            raise self.refuse(small, by, f"a divisor of {what} ({into})")
        return into // by

    def done(self) -> None:
        """Refuse keys that nothing here reads: they may change the arithmetic."""
        for key, value in self.config.items():
            harmless = key in self.asked or key in WITHOUT_EFFECT or key.startswith("_") or value is None
            if not harmless:
                raise UnsupportedError(
                    f"config.json has the key {key} = {value!r}, which the family {self.family} here does not know; "
                    f"remove it if it does not change the forward pass"
                )

    def rope(self) -> Rope:
        """Theta and scaling, from `rope_theta` and `rope_scaling` or from `rope_parameters`."""
        parameters = self.get("rope_parameters", None) or self.get("rope_scaling", None) or {}
        theta = parameters.get("rope_theta", self.get("rope_theta", None))
        if theta is None:  # elsewhere that means 10,000, here it must be stated
            theta = self.real("rope_theta")
        self.only("partial_rotary_factor", 1, None, absent=None)
        kind = parameters.get("rope_type", parameters.get("type", "default"))
        known = {"rope_theta", "rope_type", "type"}
        scaling = None
        if kind == "llama3":
            keys = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
            missing = [key for key in keys if key not in parameters]
            if missing:
                raise self.refuse("rope_scaling", parameters, f"a llama3 scaling with {', '.join(keys)}")
            scaling = Llama3Scaling(*(float(parameters[key]) for key in keys[:3]), int(parameters[keys[3]]))
            known |= set(keys)
        elif kind != "default":
            raise self.refuse("rope_type", kind, "'default', 'llama3'")
        unknown = {k: v for k, v in parameters.items() if k not in known and v not in (None, 1.0)}
        if unknown:
            raise self.refuse("rope_scaling", unknown, f"only the keys {', '.join(sorted(known))}")
        return Rope(theta=float(theta), scaling=scaling)
