"""climassay: measure whether a language model can be trusted on climate."""

__version__ = "0.1.0.dev0"
