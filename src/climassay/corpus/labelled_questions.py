"""Questions labelled with the passage they rest on, and the files they come in."""

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.corpus.gold_text import words_of
from climassay.errors import InputError

QUESTION_FIELDS = ("question", "Question", "query")
PASSAGE_FIELDS = ("passage", "context", "Context", "text")
SHORTEST_PASSAGE = 5
"""Words; fewer stand in too many places to say what was found."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and the verbatim text of its source that it rests on."""

    question: str
    passage: str
    id: str = ""
    document: str | None = None
    """Where the passage stands, as told by the file; for the reader, not for the search."""

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise InputError(f"The question {self.id or 'without id'} is empty.")
        if len(words_of(self.passage)) < SHORTEST_PASSAGE:
            raise InputError(
                f"The gold passage of question {self.id or self.question!r} has fewer than {SHORTEST_PASSAGE} words, "
                "too few to be recognised."
            )


def read_labelled(path: str | Path) -> list[LabelledQuestion]:
    """Read question-passage pairs.

    Args:
        path: JSONL, a JSON array, or CSV with a header, gzip included; a row has a question (``question``,
            ``Question`` or ``query``), the passage it rests on (``passage``, ``context``, ``Context`` or ``text``), and
            may have ``id`` and ``document``.

    Raises:
        InputError: The file cannot be read, or a row lacks one of the two; the message names the row.
    """
    file = Path(path)
    questions = []
    for number, row in enumerate(_rows(file), start=1):
        question, passage = _first(row, QUESTION_FIELDS), _first(row, PASSAGE_FIELDS)
        if not question or not passage:
            lacking = QUESTION_FIELDS if not question else PASSAGE_FIELDS
            raise InputError(
                f"{file.name}, row {number} has no {' or '.join(lacking)}: every row needs a question and its passage."
            )
        name = str(row.get("id") or f"q{number:04d}")
        questions.append(LabelledQuestion(question, passage, name, _first(row, ("document",)) or None))
    if not questions:
        raise InputError(f"{file.name} has no rows: retrieval is evaluated on question-passage pairs.")
    return questions


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(row[name]).strip() for name in names if row.get(name)), "")


def _rows(file: Path) -> Iterator[Mapping[str, Any]]:
    text = _read_text(file)
    if text.lstrip()[:1] not in ("{", "["):
        csv.field_size_limit(2**31 - 1)
        yield from csv.DictReader(io.StringIO(text, newline=""))
        return
    if text.lstrip().startswith("["):
        rows = _json(file, text, 1)
        numbered = list(enumerate(rows, start=1))
    else:
        numbered = [(n, _json(file, line, n)) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    for number, row in numbered:
        if not isinstance(row, dict):
            raise InputError(f"{file.name}, entry {number} is not an object with named fields.")
        yield row


def _read_text(file: Path) -> str:
    try:
        data = file.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"There is no question file at {file}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text (byte {error.start}): save it as UTF-8.") from error
    except (OSError, EOFError) as error:
        raise InputError(f"The question file {file} cannot be read: {error}.") from error


def _json(file: Path, text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{file.name}, line {line} is not valid JSON ({error.msg}).") from error
