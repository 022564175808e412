"""Bundled primer: four short books, 120 gold questions, 24 long-form questions and 40 claims.

The questions are on two source books (``physical_climate``, ``aerosols_clouds``). A held-out book (``carbon_ice_past``)
is on other topics. The pamphlet (``contrarian_pamphlet``) holds misleading arguments, labelled as such, for tests with
an adversarial source.
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
"""The twelve verdicts of Climate Feedback, from wrong to right."""


@dataclass(frozen=True, slots=True)
class GoldClaim:
    """Bundled claim with its true verdict and the reason for it."""

    id: str
    claim: str
    verdict: str
    reason: str
    document: str | None
    """Name of the bundled book that supports the reason; None if there is none."""


@dataclass(frozen=True, slots=True)
class ScreeningExample(Question):
    """Question on the source books with known faults, written by hand to evaluate the screening of questions.

    A cloze statement has no gap; its answer is the term to mask.
    """

    faults: tuple[str, ...] = ()
    """Names of the screening checks that should report a fault; empty for a good question."""
    note: str = ""


def book_names() -> tuple[str, ...]:
    """Return the names of all bundled books, source books first."""
    return SOURCE_BOOKS + HELD_OUT_BOOKS + CONTRARIAN_BOOKS


def book_path(name: str) -> Path:
    """Return the path of a bundled book's Markdown file.

    Raises:
        InputError: The book does not exist.
    """
    if name not in book_names():
        raise InputError(f"The primer has no book {name!r}: it has {', '.join(book_names())}.")
    return _FOLDER / "books" / f"{name}.md"


def question_paths() -> tuple[Path, ...]:
    """Return the paths of the source books' question files, which have 60 questions each."""
    return bundled_files(PRIMER)


def gold_questions() -> QuestionSet:
    """Load all 120 bundled questions as a question set named ``primer``."""
    return read_questions(PRIMER)


PRIMER_CLAIMS = "primer:claims"
"""Name of the bundled claims, usable in place of a file."""


def claims_path() -> Path:
    """Return the path of the file of 40 claims: JSON lines with id, claim, verdict, reason and document."""
    return _FOLDER / "claims.jsonl"


def claims() -> tuple[GoldClaim, ...]:
    """Load the 40 bundled claims."""
    lines = claims_path().read_text(encoding="utf-8").splitlines()
    return tuple(GoldClaim(**json.loads(line)) for line in lines)


def screening_examples() -> tuple[ScreeningExample, ...]:
    """Load the 60 good and faulty questions for evaluating the screening of questions."""
    examples = []
    for line in (_FOLDER / "screening_examples.jsonl").read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        row |= {name: tuple(row[name]) for name in ("options", "faults")}
        del row["hand_written"]
        examples.append(ScreeningExample(context=row.pop("passage"), **row))
    return tuple(examples)
