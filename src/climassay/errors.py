"""Errors that climassay raises deliberately.

Each message is one sentence for the user: what was wrong, which file or row, and what to do. The command line prints it
without a traceback and exits with ``exit_code``.
"""


class ClimassayError(Exception):
    """Base class of all errors that climassay raises deliberately."""

    exit_code = 2


class InputError(ClimassayError):
    """Error for a file, option or argument that cannot be used."""


class DocumentError(InputError):
    """Error for an unreadable document: encrypted, truncated, without text, empty or of another format."""


class ModelError(ClimassayError):
    """Error for a model that cannot be found, verified or loaded, or lacks an ability."""


class NoAnswerError(ModelError):
    """Error if all requests to models failed; they are recorded and sent again by the next run."""

    exit_code = 1


class MissingExtraError(ClimassayError):
    """Error for a missing optional dependency; the message names the extra to install."""


class RecordsError(ClimassayError):
    """Error for a records database that cannot be opened, read or written."""


class LostDatabaseError(RecordsError):
    """Error for a records database to which the connection was lost and could not be opened again in time."""
