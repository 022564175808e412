"""The command line: one file for a group of commands, which parse, call ``api`` and show the result.

A module here is imported when one of its commands is used, so that ``climassay --help`` answers at once; what is
heavier than its settings is imported inside the commands.
"""

from importlib import import_module
from types import ModuleType


def command_module(name: str) -> ModuleType:
    """A module of this package, imported when one of its commands is used."""
    return import_module(f"{__name__}.{name}")
