"""What an edit changed, word by word."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from climassay.generation import Wording
from climassay.questions import option_letter
from climassay.reporting.highlighting import Piece

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Change:
    """One part of a wording before and after; what differs is marked on both sides."""

    part: str
    """For people: *question*, *answer*, *option b*, *correct option*."""
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


def changes(before: Wording, after: Wording) -> tuple[Change, ...]:
    """The parts of a wording that were changed, in the order in which they are read."""
    return tuple(
        Change(part, *_compared(first, second)) for part, first, second in _parts(before, after) if first != second
    )


def _parts(before: Wording, after: Wording) -> Iterator[tuple[str, str, str]]:
    yield "question", before.question, after.question
    if not before.options and not after.options:
        yield "answer", before.answer, after.answer
        return
    for place, (first, second) in enumerate(zip_longest(before.options, after.options, fillvalue="")):
        yield f"option {option_letter(place)}", first, second
    yield "correct option", _letter(before), _letter(after)


def _letter(wording: Wording) -> str:
    return "" if wording.correct is None else option_letter(wording.correct)


def _compared(before: str, after: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    first, second = _TOKEN.findall(before), _TOKEN.findall(after)
    left: list[Piece] = []
    right: list[Piece] = []
    for kind, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        for pieces, tokens in ((left, first[a:b]), (right, second[c:d])):
            if tokens:
                pieces.append(("".join(tokens), kind != "equal"))
    return tuple(left), tuple(right)
