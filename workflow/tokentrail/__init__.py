"""tokentrail follows one next-token prediction through a language model and tests where it comes from."""

__version__ = "0.1.0"
