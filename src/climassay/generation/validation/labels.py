"""Questions that people have called valid or invalid: what a validator learns from and is measured on."""

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.generation.draft import Draft, Origin, SourcePassage, Wording, draft_from_row, draft_id
from climassay.questions import GAP, Question, read_questions
from climassay.questions.rows import Row, parse_rows, read_bytes
from climassay.reporting import Category, StackedBar, StackedBars

IntArray = NDArray[np.int64]

PIRA_FAULTS = (
    ("answer_in_text", 0.0, "not enough information"),
    ("question_meaningful", 2.0, "makes no sense"),
    ("answer_equivalent", 2.0, "wrong answer"),
)
"""Rating of Pirá 2, the highest value that makes a question invalid, and what an expert here would call the fault;
the first that applies is the reason."""
_VALIDITY = ("Validation", "validation", "valid", "Valid")
_REASON = ("reason", "Reason")
_VALID = frozenset({"valid", "true", "1", "1.0", "yes"})
_INVALID = frozenset({"invalid", "false", "0", "0.0", "no"})


@dataclass(frozen=True, slots=True)
class LabelledDraft:
    """A draft and what an expert said about it."""

    draft: Draft
    valid: bool
    reason: str = ""
    """Why it is invalid, where that was said; empty for valid ones."""


class LabelSet(NamedTuple):
    """The labelled drafts of a file."""

    name: str
    drafts: tuple[LabelledDraft, ...]
    unlabelled: int
    """Drafts or rows that nobody has decided on."""
    skipped: tuple[str, ...]
    """One sentence for each row that has a label and cannot be used."""
    sha256: str
    """Of the file's bytes."""


def read_label_set(path: str | Path) -> LabelSet:
    """Read labelled drafts and where they come from.

    The file is one of

    - drafts of climassay (JSON Lines): the latest word of an expert is the label;
    - the ratings of Pirá 2 (``pira_qa.csv``): invalid where the answer is not in the text, the question makes little
      sense (2 or less of 5), or a second person answered differently (2 or less); see :data:`PIRA_FAULTS`;
    - a question table with a column ``Validation`` or ``valid`` (and, if there is one, ``reason``), in any format that
      :func:`climassay.questions.read_questions` knows.

    Raises:
        InputError: The file cannot be read, is none of these, or has no label.
    """
    file = Path(path)
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    if not rows:
        raise InputError(f"{file} is empty: a validator learns from labelled questions.")
    labelled, unlabelled, skipped = [], 0, []
    with tempfile.TemporaryDirectory(prefix="climassay-") as folder:
        read = _reader(file, rows[0], Path(folder) / "row.jsonl")
        for number, row in enumerate(rows, start=1):
            try:
                found = read(row, number)
            except InputError as error:
                skipped.append(f"row {number}: {error}")
                continue
            if found is None:
                unlabelled += 1
            else:
                labelled.append(found)
    if not labelled:
        first = f" The first row that cannot be used: {skipped[0]}." if skipped else ""
        raise InputError(f"Nobody has called a question of {file} valid or invalid.{first}")
    return LabelSet(file.name, tuple(labelled), unlabelled, tuple(skipped), hashlib.sha256(data).hexdigest())


def _reader(file: Path, first: Row, place: Path) -> Callable[[Row, int], LabelledDraft | None]:
    """What reads a row of a file like this.

    The public reader of questions leaves out what is marked invalid, and invalid ones are what is wanted here: it is
    given each row without its marks, written down at ``place``.
    """
    if {"wording", "passages", "decisions"} <= set(first):
        return lambda row, _: label_of(draft_from_row(row))
    rated = {"question_en_origin", *(name for name, _, _ in PIRA_FAULTS)} <= set(first)
    column = next((name for name in _VALIDITY if name in first), None)
    if not rated and column is None:
        raise InputError(
            f"{file} says of no question whether it is valid: give drafts with expert decisions, a question table with "
            "a column Validation or valid, or Pirá's rated questions."
        )

    def read(row: Row, number: int) -> LabelledDraft | None:
        found = _rating(row) if rated else _word(row, str(column))
        if found is None:
            return None
        marks = [name for name, _, _ in PIRA_FAULTS] if rated else [column]
        plain = {name: value for name, value in row.items() if name not in marks}
        place.write_text(json.dumps(plain, default=str), encoding="utf-8")
        try:
            (question,) = read_questions(place).questions
        except InputError as error:
            raise InputError(str(error).replace(str(place), file.name)) from None
        named = replace(question, id=str(row.get("id") or row.get("id_qa") or f"{file.stem}-{number:05d}"))
        return LabelledDraft(draft_of(named, document=file.stem), *found)

    return read


def _rating(row: Row) -> tuple[bool, str] | None:
    """Whether Pirá's ratings make a question valid, and if not, why; None where one is missing."""
    reason = ""
    for name, worst, fault in PIRA_FAULTS:
        text = str(row.get(name) or "").strip()
        if not text or text.lower() == "nan":
            return None
        try:
            reason = reason or (fault if float(text) <= worst else "")
        except ValueError:
            raise InputError(f"the rating {text!r} in {name!r} is no number") from None
    return not reason, reason


def _word(row: Row, column: str) -> tuple[bool, str] | None:
    value = row.get(column)
    word = ("" if value is None else str(value)).strip().casefold()
    if word in ("", "none", "nan"):
        return None
    if word not in _VALID | _INVALID:
        raise InputError(f"{value!r} in the column {column} is neither valid nor invalid")
    reason = next((str(row[name]) for name in _REASON if row.get(name)), "")
    return word in _VALID, "" if word in _VALID else reason


def label_of(draft: Draft) -> LabelledDraft | None:
    """What experts said about a draft: the latest word; None where nobody has decided, or there are no words."""
    if draft.error is not None:
        return None
    for decision in reversed(draft.decisions):
        if decision.step == "expert" and decision.accepted is not None:
            return LabelledDraft(draft, decision.accepted, "" if decision.accepted else decision.reason)
    return None


def draft_of(question: Question, *, document: str = "") -> Draft:
    """A question that somebody else made, as a draft: what it says about its source is kept, nothing is made up.

    Without a context the passage is empty; ``document`` is the source's title where the question names none.
    """
    context = question.context or ""
    title = question.document or document
    passage = SourcePassage(draft_id("passage", context), context, title, title, question.section or "")
    text = question.question.replace(GAP, question.answer) if question.kind == "cloze" else question.question
    return Draft(
        id=question.id,
        kind=question.kind,
        level=question.level or "base",
        wording=Wording(text, question.answer, question.options, question.correct),
        passages=(passage,),
        origin=Origin("", "", (), 0),
    )


def source_groups(drafts: Iterable[Draft]) -> IntArray:
    """Number drafts by the text of their main passage, shape [drafts] from 0: what a split must not part."""
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(" ".join(draft.main.text.split()) or draft.id, len(numbers)) for draft in drafts],
        dtype=np.int64,
    )


def labels_array(labelled: Sequence[LabelledDraft]) -> IntArray:
    """1 for valid, 0 for invalid, shape [drafts]."""
    return np.array([one.valid for one in labelled], dtype=np.int64)


def check_labels(valid: Sequence[int] | IntArray) -> None:
    """Refuse labels, shape [items] of 0 or 1, from which nothing can be learned.

    Raises:
        InputError: Fewer than two of either kind.
    """
    labels = np.asarray(valid)
    invalid = int((labels == 0).sum())
    if min(invalid, len(labels) - invalid) < 2:
        raise InputError(
            f"Of {len(labels)} labelled questions {invalid} are invalid: a validator needs at least two valid and two "
            "invalid ones."
        )


def reason_figure(sets: Sequence[tuple[str, Sequence[LabelledDraft]]]) -> StackedBars | None:
    """Why experts rejected questions, one bar a named set and kind (the paper's Figure 7); None where nothing was."""
    counts: dict[str, Counter[str]] = {}
    for name, labelled in sets:
        for one in labelled:
            if not one.valid:
                counts.setdefault(f"{name}, {one.draft.kind}", Counter())[one.reason or "no reason given"] += 1
    if not counts:
        return None
    total = sum(counts.values(), Counter())
    named = sorted((reason for reason in total if reason != "no reason given"), key=lambda one: (-total[one], one))
    shades = [1.0 - 0.5 * place / max(1, len(named) - 1) for place in range(len(named))]
    parts = [Category(reason, shade) for reason, shade in zip(named, shades, strict=True)]
    if "no reason given" in total:
        parts.append(Category("no reason given"))
    bars = tuple(StackedBar(name, tuple(count[part.name] for part in parts)) for name, count in counts.items())
    return StackedBars("Why questions were rejected", tuple(parts), bars, note="Shares of the rejected questions.")
