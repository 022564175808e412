"""Errors that climassay raises deliberately.

Each message is one sentence for the user: what was wrong, which file or row, and what to do. The command line prints it
without a traceback and exits with ``exit_code``.
"""


class ClimassayError(Exception):
    """Base class of the errors that climassay raises; their messages are written for users."""

    exit_code = 2


class InputError(ClimassayError):
    """Error for a file, an option or an argument that cannot be used."""


class DocumentError(InputError):
    """Error for a document that cannot be read: encrypted, truncated, empty, without text or of an unknown format."""


class ModelError(ClimassayError):
    """Error for a model that cannot be found, verified or loaded, or that lacks a required ability."""


class NoAnswerError(ModelError):
    """Error if all requests to models failed. The requests are recorded, and the next run sends them again."""

    exit_code = 1


class MissingExtraError(ClimassayError):
    """Error for a missing optional dependency; the message names the extra to install."""


class RecordsError(ClimassayError):
    """Error for a records database that cannot be opened, read or written."""


class LostDatabaseError(RecordsError):
    """Error for a records database whose connection was lost and could not be re-established in time."""


class FullDatabaseError(RecordsError):
    """Error for a records database that cannot grow because its disk is full."""
