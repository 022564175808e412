"""The errors that climassay raises on purpose.

Each message is one sentence for the person at the keyboard: what was wrong, where, and what to do. The command line
prints it without a traceback and exits with ``exit_code``.
"""


class ClimassayError(Exception):
    """Root of the family; catch this to catch everything climassay raises on purpose."""

    exit_code = 2


class InputError(ClimassayError):
    """A file, option or argument given by the user cannot be used as it is."""


class DocumentError(InputError):
    """A document cannot be read (encrypted, truncated, image-only, empty, not what its name says)."""


class ModelError(ClimassayError):
    """A model cannot be found, verified or loaded, or cannot do what is asked of it."""


class NoAnswerError(ModelError):
    """Models were asked and none answered; what they were asked is recorded, and asked again by the next run."""

    exit_code = 1


class MissingExtraError(ClimassayError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class RecordsError(ClimassayError):
    """The records database cannot be opened, read or written."""
