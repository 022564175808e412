"""What a check of a text finds, and the rules that it finds it by."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from climassay.confidence.linting.draft import Draft, Location

Severity = Literal["error", "warning", "note"]
"""An error contradicts the vocabulary's own definition; a warning departs from the guidance; a note is worth a look."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule has to say about a place: ``draft.text[start:end]``."""

    start: int
    end: int
    message: str
    """One sentence."""
    suggestion: str = ""
    """What could stand there instead; empty where only an author can say."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text that a rule complains of, and one that it lets pass."""

    bad: str
    good: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is looked for."""

    name: str
    severity: Severity
    summary: str
    """What is wrong, in a few words."""
    reason: str
    """Why, and where the guidance says so."""
    examples: tuple[Example, ...]
    check: Callable[[Draft], Iterable[Remark]]
    default: bool = True
    """Whether it is on where nobody chooses."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark at its place in a file."""

    rule: str
    severity: Severity
    location: Location
    end: Location
    """Of the last character."""
    start_offset: int
    end_offset: int
    words: str
    """What stands there, on one line and without markup."""
    message: str
    suggestion: str = ""
