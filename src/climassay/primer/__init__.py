"""The bundled primer: four short books, 120 gold questions, 24 long-form ones and 40 claims, written for this project.

Two source books (``physical_climate``, ``aerosols_clouds``) carry the questions; one held-out book
(``carbon_ice_past``) is on other topics; the pamphlet (``contrarian_pamphlet``) collects misleading arguments, labelled
as such, for tests against an adversarial source.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.questions import PRIMER, Question, QuestionSet, read_questions
from climassay.questions.formats import bundled_files

_FOLDER = Path(__file__).parent

SOURCE_BOOKS = ("physical_climate", "aerosols_clouds")
HELD_OUT_BOOKS = ("carbon_ice_past",)
CONTRARIAN_BOOKS = ("contrarian_pamphlet",)
VERDICTS = (
    "incorrect",
    "inaccurate",
    "flawed reasoning",
    "lacks context",
    "misleading",
    "unsupported",
    "imprecise",
    "correct but",
    "mostly correct",
    "mostly accurate",
    "accurate",
    "correct",
)
"""Climate Feedback's twelve verdicts, from wrong to right."""


@dataclass(frozen=True, slots=True)
class GoldClaim:
    """A claim with its verdict and the reason for it."""

    id: str
    claim: str
    verdict: str
    reason: str
    document: str | None
    """Book the reason rests on."""


@dataclass(frozen=True, slots=True)
class ScreeningExample(Question):
    """A question with the faults that it has, for measuring a screening; written by hand, about the source books.

    A cloze statement is whole, nothing masked, and its answer is the term to mask.
    """

    faults: tuple[str, ...] = ()
    """Names of the checks that should find something; empty for a good question."""
    note: str = ""


def book_names() -> tuple[str, ...]:
    """Names of all books, source books first."""
    return SOURCE_BOOKS + HELD_OUT_BOOKS + CONTRARIAN_BOOKS


def book_path(name: str) -> Path:
    """Markdown file of a book.

    Raises:
        InputError: There is no such book.
    """
    if name not in book_names():
        raise InputError(f"The primer has no book {name!r}: it has {', '.join(book_names())}.")
    return _FOLDER / "books" / f"{name}.md"


def question_paths() -> tuple[Path, ...]:
    """Question files of the source books, climassay's own JSONL format, 60 questions each."""
    return bundled_files(PRIMER)


def gold_questions() -> QuestionSet:
    """All 120 questions as one set named ``primer``."""
    return read_questions(PRIMER)


def claims_path() -> Path:
    """The 40 claims as JSON lines: id, claim, verdict, reason, document."""
    return _FOLDER / "claims.jsonl"


def claims() -> tuple[GoldClaim, ...]:
    """The 40 claims."""
    lines = claims_path().read_text(encoding="utf-8").splitlines()
    return tuple(GoldClaim(**json.loads(line)) for line in lines)


def screening_examples() -> tuple[ScreeningExample, ...]:
    """The 60 good and faulty questions."""
    examples = []
    for line in (_FOLDER / "screening_examples.jsonl").read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        row |= {name: tuple(row[name]) for name in ("options", "faults")}
        del row["hand_written"]
        examples.append(ScreeningExample(context=row.pop("passage"), **row))
    return tuple(examples)
