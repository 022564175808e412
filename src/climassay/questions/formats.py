"""Reading questions: climassay's own JSONL, the tables of the published ClimaQA dataset, and Pira 2 multiple choice.

The format is told by the columns, not by the file name:

==========  =======================================================================================================
climassay   ``id, kind, level, question, options, answer, passage, document, section`` (JSONL)
ClimaQA     ``Question, Options, Answer, Context, Complexity, Validation``; options as ``a) ...`` lines joined by a
            line of 20 dashes; freeform without Options; cloze with ``<MASK>`` (also ``<blank>``, ``<mask>``)
Pira 2      ``id, text, question, A, B, C, D, E, correct, alternative``
==========  =======================================================================================================

Each can be CSV, TSV, JSONL, a JSON array or Parquet, gzip included.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

from climassay.errors import InputError
from climassay.questions.question import GAP, LETTERS, Kind, Level, Question
from climassay.questions.rows import Row, parse_rows, read_bytes

_OPTION_MARK = re.compile(r"^\s*\(?([A-Za-z])\s*[).:]\s*")
_DASHES = re.compile(r"^\s*-{5,}\s*$", re.MULTILINE)
_GAP = re.compile(r"<\s*(?:mask|blank)\s*>|\[\s*(?:mask|blank)\s*\]|_{4,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of one file and what could not be used of it."""

    name: str
    questions: tuple[Question, ...]
    skipped: tuple[str, ...]
    """One sentence for each row that was left out, with its number."""
    sha256: str
    """Of the file's bytes; part of every run's configuration."""

    def of_kind(self, kind: Kind) -> tuple[Question, ...]:
        """The questions of one kind."""
        return tuple(question for question in self.questions if question.kind == kind)


def read_questions(path: str | Path) -> QuestionSet:
    """Read a question file; see the module's table of formats.

    Rows that cannot be used are listed in ``skipped`` and do not stop the others. Duplicate ids get a suffix.

    Args:
        path: A file.

    Raises:
        InputError: The file is missing, unreadable, of no known format, or has no usable question.
    """
    file = Path(path)
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    if not rows:
        raise InputError(f"{file} has no rows: a question file needs at least one.")
    convert = _converter(file, rows[0])
    questions: list[Question] = []
    skipped: list[str] = []
    seen: Counter[str] = Counter()
    for number, row in enumerate(rows, start=1):
        try:
            question = convert(row, number)
        except InputError as error:
            skipped.append(f"row {number}: {error}")
            continue
        seen[question.id] += 1
        if seen[question.id] > 1:
            question = replace(question, id=f"{question.id}-{seen[question.id]}")
        questions.append(question)
    if not questions:
        raise InputError(f"{file} has no usable question; the first row fails because {skipped[0]}")
    return QuestionSet(file.name, tuple(questions), tuple(skipped), hashlib.sha256(data).hexdigest())


def _converter(file: Path, row: Row) -> Callable[[Row, int], Question]:
    names = set(row)
    if {"question", "alternative", "A", "B"} <= names:
        return _from_pira
    if {"Question", "Answer"} <= names:
        return _from_climaqa
    if {"question", "answer"} <= names:
        return _from_climassay
    raise InputError(
        f"{file} has the columns {', '.join(sorted(map(str, names)))}, none of the known question formats: "
        "climassay (question, answer, options ...), ClimaQA (Question, Options, Answer ...), Pira (A, B, alternative)."
    )


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    return "" if value is None else " ".join(str(value).split())


def _needed(row: Row, name: str) -> str:
    value = _text(row, name)
    if not value:
        raise InputError(f"the field {name!r} is empty")
    return value


def _level(value: str) -> Level | None:
    lowered = value.lower()
    if lowered in get_args(Level):
        return cast(Level, lowered)
    if lowered in ("", "none", "nan"):
        return None
    raise InputError(f"the level {value!r} is none of {', '.join(get_args(Level))}")


def _check_options(options: Sequence[str]) -> None:
    if len(options) < 2:
        raise InputError(f"a multiple-choice question needs at least two options, this one has {len(options)}")
    if len(options) > len(LETTERS):
        raise InputError(f"at most {len(LETTERS)} options can be lettered, this question has {len(options)}")
    if any(not option for option in options):
        raise InputError("an option is empty")
    doubled = [option for option, count in Counter(option.casefold() for option in options).items() if count > 1]
    if doubled:
        raise InputError(f"the option {doubled[0]!r} stands there twice")


def _correct_index(answer: str, options: Sequence[str]) -> int:
    """Index of the option that an answer names by its letter, by ``letter) text`` or by its text."""
    texts = [option.casefold() for option in options]
    if answer.casefold() in texts:
        return texts.index(answer.casefold())
    bare = answer.strip("()[]. ").lower()
    if len(bare) == 1 and bare in LETTERS[: len(options)]:
        return LETTERS.index(bare)
    marked = _OPTION_MARK.match(answer)
    if marked and marked[1].lower() in LETTERS[: len(options)]:
        return LETTERS.index(marked[1].lower())
    raise InputError(f"the answer {answer!r} names none of the {len(options)} options")


def _from_climassay(row: Row, number: int) -> Question:
    kind = _text(row, "kind") or ("mcq" if row.get("options") else "freeform")
    if kind not in get_args(Kind):
        raise InputError(f"the kind {kind!r} is none of {', '.join(get_args(Kind))}")
    question, answer = _needed(row, "question"), _needed(row, "answer")
    options: tuple[str, ...] = ()
    correct = None
    if kind == "mcq":
        given = row.get("options") or ()
        if isinstance(given, str):
            given = _split_options(given)
        if isinstance(given, Mapping):
            given = [given[letter] for letter in sorted(given)]
        options = tuple(" ".join(str(option).split()) for option in given)
        _check_options(options)
        correct = _correct_index(answer, options)
        answer = options[correct]
    if kind == "cloze":
        question = _one_gap(question)
    return Question(
        id=_text(row, "id") or f"q{number:05d}",
        kind=cast(Kind, kind),
        question=question,
        answer=answer,
        level=_level(_text(row, "level")),
        options=options,
        correct=correct,
        context=_text(row, "passage") or _text(row, "context") or None,
        document=_text(row, "document") or None,
        section=_text(row, "section") or None,
    )


def _split_options(text: str) -> list[str]:
    """Options of a ClimaQA cell: ``a) ...`` lines, joined by a line of dashes or by plain line breaks."""
    parts = _DASHES.split(text) if _DASHES.search(text) else re.split(r"\n(?=\s*\(?[A-Za-z]\s*[).:])", text)
    return [_OPTION_MARK.sub("", " ".join(part.split())) for part in parts if part.strip()]


def _one_gap(statement: str) -> str:
    found = _GAP.findall(statement)
    if len(found) != 1:
        raise InputError(f"a cloze statement needs exactly one {GAP}, this one has {len(found)}")
    return _GAP.sub(GAP, statement)


def _from_climaqa(row: Row, number: int) -> Question:
    validation = _text(row, "Validation").lower()
    if validation in ("invalid", "false", "0", "no"):
        raise InputError("experts marked it invalid")
    question, answer = _needed(row, "Question"), _needed(row, "Answer")
    options: tuple[str, ...] = ()
    correct = None
    kind: Kind = "freeform"
    if row.get("Options"):
        kind = "mcq"
        options = tuple(_split_options(str(row["Options"])))
        _check_options(options)
        correct = _correct_index(answer, options)
        answer = options[correct]
    elif _GAP.search(question):
        kind = "cloze"
        question = _one_gap(question)
    return Question(
        id=f"{kind}-{number:05d}",
        kind=kind,
        question=question,
        answer=answer,
        level=_level(_text(row, "Complexity")),
        options=options,
        correct=correct,
        context=_text(row, "Context") or None,
    )


def _from_pira(row: Row, number: int) -> Question:
    letters = [letter for letter in "ABCDEFGH" if _text(row, letter)]
    options = tuple(_text(row, letter) for letter in letters)
    _check_options(options)
    marked = _needed(row, "alternative").upper()
    if marked not in letters:
        raise InputError(f"the alternative {marked!r} is none of {', '.join(letters)}")
    correct = letters.index(marked)
    return Question(
        id=_text(row, "id") or f"pira-{number:05d}",
        kind="mcq",
        question=_needed(row, "question"),
        answer=options[correct],
        options=options,
        correct=correct,
        context=_text(row, "text") or None,
    )
