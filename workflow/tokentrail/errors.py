"""The errors a user can cause. Each message is one sentence that names the key, the value and the remedy."""


class TokentrailError(Exception):
    """A mistake in the input or the environment, not in the program: shown as one sentence, exit code 1."""


class ConfigError(TokentrailError):
    """The configuration has an unknown key, a wrong type or a value that cannot work."""


class WeightsError(TokentrailError):
    """A weights file is missing, damaged, of a refused kind, or not the one that was pinned."""


class UnsupportedError(TokentrailError):
    """A model type or a value in a checkpoint's config.json that no family here implements."""


class PromptError(TokentrailError):
    """What this model or its tokenizer cannot be asked: a prompt too long for it, a target that is no token of its own.

    A stage goes on without it, and its table has a row with the reason (`measure.asked`).
    """


class ParityError(TokentrailError):
    """The hand-written pass and the reference disagree by more than the configured tolerance."""


class TableError(TokentrailError):
    """A table on disk is missing, or does not have the columns that its schema declares."""


class NotFiniteError(TokentrailError):
    """A number that its format cannot hold: NaN or infinity came out where a model's values should stand."""


class InterventionError(TokentrailError):
    """An intervention that the model or the site cannot take, or one that was not applied as planned."""


class QuantizationError(TokentrailError):
    """A scheme that does not fit a matrix, a selection of weights that no model has, or a damaged packed file."""


class OutOfRangeError(QuantizationError):
    """A scale, a middle or an outlier that is too large for the format that it is stored in."""
