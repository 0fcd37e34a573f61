"""Reading config.json strictly: a key that is missing, unknown or has an unsupported value is refused by name."""

from __future__ import annotations

import math
from typing import Any

from tokentrail.errors import UnsupportedError
from tokentrail.forward.reading.without_effect import is_without_effect
from tokentrail.forward.spec import Llama3Scaling, Rope

_ABSENT = object()
OVERRIDE = "the model's key `config` in the configuration"
"""Where a value of a config.json is added, changed or taken out: possible for every source, a hub's too."""


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
            raise self.lacks(key)
        return value

    def lacks(self, key: str, hint: str = "") -> UnsupportedError:
        return UnsupportedError(
            f"config.json lacks {key}, which the family {self.family} needs; give the value that the model was "
            f"trained with{hint} under {OVERRIDE}"
        )

    def whole(self, key: str, absent: Any = _ABSENT) -> int:
        value = self.get(key, absent)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.refuse(key, value, "a whole number above 0")
        return value

    def real(self, key: str, absent: Any = _ABSENT) -> float:
        return self.number(key, self.get(key, absent))

    def number(self, key: str, value: Any, infinite: bool = False) -> float:
        """`value`, which is or stands in that of `key`, as a number; an infinite one only where it has a meaning."""
        finite = not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
        if not finite and not (infinite and isinstance(value, float) and math.isinf(value)):
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
            if key not in self.asked and not is_without_effect(key, value):
                raise UnsupportedError(
                    f"config.json has the key {key} = {value!r}, which the family {self.family} here does not know; "
                    f"if it does not change the forward pass, take it out with {key}: null under {OVERRIDE}"
                )

    def rope(self) -> Rope:
        """Theta and scaling, from `rope_theta` and `rope_scaling` or from `rope_parameters`."""
        newer, older = (self.get(key, None) or {} for key in ("rope_parameters", "rope_scaling"))
        if older and newer and older != newer:
            raise self.refuse(
                "rope_scaling", older, f"what rope_parameters says, which is {newer!r}, or only one of them"
            )
        key, parameters = ("rope_scaling", older) if older else ("rope_parameters", newer)
        if not isinstance(parameters, dict):
            raise self.refuse(key, parameters, "a mapping")
        theta = parameters.get("rope_theta", self.get("rope_theta", None))
        if theta is None:  # what a model was trained with must be stated, whatever elsewhere stands in for it
            raise self.lacks("rope_theta", hint=" (transformers assumes rope_theta: 10000.0)")
        self.only("partial_rotary_factor", 1, None, absent=None)
        kind = parameters.get("rope_type", parameters.get("type", "default"))
        known = {"rope_theta", "rope_type", "type"}
        scaling = None
        if kind == "llama3":
            keys = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
            missing = [each for each in keys if each not in parameters]
            if missing:
                raise self.refuse(key, parameters, f"a llama3 scaling with {', '.join(keys)}")
            *factors, trained = (self.number(each, parameters[each]) for each in keys)
            scaling = Llama3Scaling(*factors, int(trained))
            known |= set(keys)
        elif kind != "default":
            raise self.refuse("rope_type", kind, "'default', 'llama3'")
        unknown = {k: v for k, v in parameters.items() if k not in known and v not in (None, 1.0)}
        if unknown:
            raise self.refuse(key, unknown, f"only the keys {', '.join(sorted(known))}")
        return Rope(theta=self.number("rope_theta", theta), scaling=scaling)
