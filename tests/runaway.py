"""Functions that a process of their own runs in tests: work that never ends, takes all memory, or crashes."""

import os
import re
import time
from pathlib import Path

from climassay.errors import InputError

FOLDER = str(Path(__file__).parent)
"""Folder that PYTHONPATH must hold, so that the process finds this module."""


def burn(text, ask):
    """An expression whose time doubles with each character, within C code that no signal of Python interrupts."""
    return bool(re.match(r"(a|aa)+$", "a" * 60 + "b"))


def sleep(seconds, ask):
    time.sleep(seconds)
    return "rested"


def grow(text, ask):
    return len("x" * (1 << 40))


def crash(text, ask):
    os.abort()


def refuse(text, ask):
    raise InputError(f"{text} is refused.")


def double(number, ask):
    return [2 * number, os.getpid()]


def relay(questions, ask):
    return [ask("upper", question) for question in questions]


def environment(name, ask):
    return os.environ.get(name)
