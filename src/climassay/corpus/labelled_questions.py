"""Questions labelled with the passage they rest on, and the files they come in."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.corpus.gold_text import words_of
from climassay.errors import InputError
from climassay.questions.rows import parse_rows, read_bytes

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
    for number, row in enumerate(parse_rows(file, read_bytes(file)), start=1):
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
