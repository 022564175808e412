"""Draft of a question, from its passages to a published benchmark, with every decision on it."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.io import atomic_path, describe_error, describe_first_problem, parse_json, read_lines
from climassay.questions import GAP, PRIMER, TYPES, Kind, Level, Question, QuestionType, read_questions
from climassay.questions.types import Content
from climassay.reporting.results import write_rows
from climassay.settings import settings

DraftStep = Literal["write", "evolve", "screen", "consistency", "expert", "validate", "mask", "deduplicate"]
"""Step of the pipeline that made a decision; the names are in the order of the steps."""


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """Passage from which a question was written."""

    id: str
    text: str
    document_id: str
    document: str
    """Title of the document."""
    section: str = ""
    """Headings of the section, outermost first, joined by `` > ``."""
    citation: str = ""
    """Reference for readers: document, section and pages."""
    url: str | None = None
    licence: str | None = None
    similarity: float | None = None
    """Cosine similarity to the main passage; None for the main passage itself."""

    @property
    def source(self) -> str:
        """Title and section in one line, for prompts."""
        return " > ".join(part for part in (self.document, self.section) if part)

    @classmethod
    def of(cls, passage: Passage, similarity: float | None = None) -> "SourcePassage":
        """Create a source passage from a passage of a collection."""
        return cls(
            id=passage.id,
            text=passage.text,
            document_id=passage.document_id,
            document=passage.document,
            section=" > ".join(passage.headings),
            citation=passage.citation,
            url=passage.url,
            licence=passage.licence,
            similarity=similarity,
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Model, prompts and seed with which a draft was generated, so that it can be generated again."""

    model: str
    """Name of the model, as given to ``--model``."""
    fingerprint: str
    """Fingerprint of the model; see :class:`~climassay.models.contract.Generator`."""
    prompts: tuple[tuple[str, str], ...]
    """Prompts in the order of use, each as (name, SHA-256 of its template)."""
    seed: int
    """Sampling seed of the last request."""
    evolved_from: "Wording | None" = None
    """Base question from which this question was evolved; None for a base question."""
    dtype: str = ""
    """Number format of a local model; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Wording:
    """Text of a question, its answer and its options."""

    question: str
    """Question; for cloze, the complete statement without a gap."""
    answer: str = ""
    """Correct option (mcq), one or two sentences (freeform), or masked term (cloze; empty until it is chosen)."""
    options: tuple[str, ...] = ()
    """Options without letters (mcq only)."""
    correct: int | None = None
    """Index of the correct option (mcq only)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision of one check, model or person on a draft."""

    step: DraftStep
    by: str
    """Name of the check, model or annotator that made the decision."""
    accepted: bool | None
    """Whether the draft is accepted; None if the call failed or the decider abstained."""
    reason: str = ""
    """Short name of the fault, for counting; empty if accepted."""
    detail: str = ""
    """Explanation in one sentence."""
    score: float | None = None
    """Score that was compared with a threshold, or P(valid)."""
    replaced: Wording | None = None
    """Wording before this decision; None if the decision did not change it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Generated question with all decisions on it, or the error if generation failed."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    id: str
    """Stable id: a hash of dataset name, seed, kind, level and seed passage, independent of the generated text; or the
    id of the imported question from which the draft was made."""
    kind: Kind
    level: Level
    """Level; cloze statements are always ``base``."""
    wording: Wording
    """Current wording, including edits and the masked term."""
    passages: tuple[SourcePassage, ...]
    """Main passage, then the retrieved passages, nearest first."""
    origin: Origin
    decisions: tuple[Decision, ...] = ()
    """Decisions in the order in which they were made; none is ever removed."""
    error: str | None = None
    """Error of the model call, if it failed; the next run generates the draft again."""

    @property
    def type(self) -> QuestionType:
        """Question type that corresponds to ``kind``."""
        return TYPES[self.kind]

    @property
    def content(self) -> Content:
        """Current wording in the form that the methods of the question type take."""
        return Content(self.wording.question, self.wording.answer, self.wording.options, self.wording.correct)

    @property
    def main(self) -> SourcePassage:
        """Main passage, which must support the question."""
        return self.passages[0]

    @property
    def context(self) -> str:
        """Text of all passages, the main one first."""
        return "\n\n".join(passage.text for passage in self.passages)

    @property
    def rejection(self) -> Decision | None:
        """Decision that rejects the draft; None if it is accepted.

        The latest decision of an expert overrides all others. Without one the first rejection counts.
        """
        for decision in reversed(self.decisions):
            if decision.step == "expert" and decision.accepted is not None:
                return None if decision.accepted else decision
        return next((decision for decision in self.decisions if decision.accepted is False), None)

    @property
    def written(self) -> bool:
        """Whether the draft has a wording, because the call succeeded and its reply could be parsed."""
        return self.error is None and not any(
            decision.step in ("write", "evolve") and decision.accepted is False for decision in self.decisions
        )

    @property
    def usable(self) -> bool:
        """Whether the draft has a wording and is not rejected."""
        return self.error is None and self.rejection is None

    def with_decisions(self, *decisions: Decision) -> "Draft":
        """Return a copy of the draft with additional decisions."""
        return replace(self, decisions=(*self.decisions, *decisions))

    def with_wording(self, wording: Wording, decision: Decision) -> "Draft":
        """Return a copy of the draft with a new wording, and with the decision that changed it."""
        decision = replace(decision, replaced=self.wording)
        return replace(self, wording=wording, decisions=(*self.decisions, decision))

    def as_question(self) -> Question:
        """Convert the draft to a benchmark question; in a cloze statement a gap replaces the term's first occurrence.

        Raises:
            InputError: The draft has no wording, or is a cloze statement without a term or without that term.
        """
        if self.error is not None:
            raise InputError(f"The draft {self.id} was never written: {self.error}")
        text = self.wording.question
        if self.type.has_gap:
            text = mask_term(text, self.wording.answer)
        return Question(
            id=self.id,
            kind=self.kind,
            question=text,
            answer=self.wording.answer,
            level=self.level,
            options=self.wording.options,
            correct=self.wording.correct,
            context=self.context,
            document=self.main.document,
            section=self.main.section or None,
        )


def apply_where(
    condition: Callable[[Draft], bool], step: Callable[[list[Draft]], Sequence[Draft]], drafts: Sequence[Draft]
) -> list[Draft]:
    """Apply a step to the drafts that meet a condition, and return all drafts in the same order.

    If no draft meets the condition, the step is not called.
    """
    results = list(drafts)
    indices = [index for index, draft in enumerate(drafts) if condition(draft)]
    if indices:
        for index, draft in zip(indices, step([drafts[index] for index in indices]), strict=True):
            results[index] = draft
    return results


_HYPHENS = "‐‑-"


def is_blank(text: str) -> bool:
    """Return whether an optional field is empty or contains only a word such as *none* or *n/a*."""
    return text.strip().strip(".").casefold() in ("", "-", "no", "none", "null", "n/a", "false", "nothing", "empty")


def mask_term(statement: str, term: str) -> str:
    """Replace the first occurrence of a term in a statement by ``<MASK>``.

    Raises:
        InputError: The term is empty, or does not occur as a whole word; a hyphenated word counts as one word.
    """
    if not has_term(statement, term):
        raise InputError(f"The term {term!r} is not a word of the statement {statement!r}.")
    return re.sub(_word_pattern(term), GAP, statement, count=1)


def find_term(statement: str, term: str) -> int | None:
    """Return the character index of a term's first occurrence as a whole word of a statement, or None."""
    match = re.search(_word_pattern(term), statement) if term else None
    return None if match is None else match.start()


def has_term(statement: str, term: str) -> bool:
    """Return whether a term occurs in a statement as a whole word."""
    return find_term(statement, term) is not None


def _word_pattern(term: str) -> str:
    return rf"(?<![\w{_HYPHENS}])(?<!\w–)(?<!\d\.){re.escape(term)}(?![\w{_HYPHENS}]|–\w|(?<=\d)\.\d)"


def draft_id(*parts: object) -> str:
    """Return an id for a draft: ``q`` and the first twelve hexadecimal digits of the hash of ``parts``."""
    return "q" + hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


_DRAFT_ADAPTER = TypeAdapter(Draft)


def draft_from_row(row: Mapping[str, Any]) -> Draft:
    """Restore a draft from a row that ``asdict`` produced.

    Raises:
        InputError: A field is missing, unknown or of the wrong type, or there is no passage.
    """
    try:
        draft = _DRAFT_ADAPTER.validate_json(json.dumps(row))
        if not draft.passages:
            raise ValueError("it has no passage")
    except (TypeError, ValueError) as error:
        raise InputError(f"This is not a draft of climassay: {describe_first_problem(error)}.") from None
    return draft


def question_draft(question: Question, document: str = "") -> Draft:
    """Convert a question from elsewhere to a draft, with its context as the only passage and an empty origin.

    The gap of a cloze statement is filled with its term. If the question has no context, the draft has no passages, and
    passes the checks that compare it with its passages.
    """
    context, title = question.context or "", question.document or document
    passage = SourcePassage(f"{question.id}-context", context, title, title, question.section or "")
    text = question.question.replace(GAP, question.answer) if question.type.has_gap else question.question
    return Draft(
        id=question.id,
        kind=question.kind,
        level=question.level or "base",
        wording=Wording(text, question.answer, question.options, question.correct),
        passages=(passage,) if context else (),
        origin=Origin(model="", fingerprint="", prompts=(), seed=0),
    )


@settings
class Subject:
    """Field, sources and readers of the questions, as prompts describe them."""

    field: str = "climate science"
    source: str = "a graduate-level climate science textbook"
    """Source of the passages, preceded by an article."""
    audience: str = "graduate students of climate science"


@dataclass(frozen=True, slots=True)
class Reason:
    """Predefined reason for which an expert rejects a question."""

    name: str
    words: str
    """Text that annotators see."""
    key: str = ""
    """Keyboard key that selects the reason in the web application."""


EXPERT_REASONS: Sequence[Reason] = (
    Reason("bad context", "The passage is not fit to write a question from", "1"),
    Reason("wrong answer", "The marked answer is wrong", "2"),
    Reason("not enough information", "The passage does not say enough to answer", "3"),
    Reason("makes no sense", "The question makes no sense", "4"),
    Reason("other", "Another reason, in words", "5"),
)
"""Reasons for rejection in the annotation tool of ClimaQA's authors (ClimaQA, appendix A.5.1 and Figure 7)."""


def write_drafts(path: Path, drafts: Iterable[Draft]) -> None:
    """Write drafts atomically.

    Args:
        path: File to write. Its suffix decides the format: ``.csv``, ``.xlsx``, or else JSON Lines, the only one that
            :func:`read_drafts` reads.
        drafts: Drafts to write; an iterator is consumed draft by draft.

    Raises:
        InputError: The file cannot be written.
    """
    if path.suffix.lower() in (".csv", ".xlsx"):
        write_rows(path, map(asdict, drafts))
        return
    with atomic_path(path) as temporary_file, temporary_file.open("w", encoding="utf-8") as file:
        for draft in drafts:
            file.write(json.dumps(asdict(draft), ensure_ascii=False, allow_nan=False) + "\n")


def read_drafts(path: Path) -> Iterator[Draft]:
    """Yield the drafts of a JSON Lines file.

    Raises:
        InputError: The file cannot be read, or a line is not a draft.
    """
    try:
        for line_number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
                if not isinstance(row, dict):
                    raise InputError("it is not an object")
                draft = draft_from_row(row)
            except (ValueError, InputError) as error:
                raise InputError(f"{path}, line {line_number}: {error}") from None
            yield draft
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The drafts {path} cannot be read: {describe_error(error)}.") from None


def read_drafts_or_questions(file: str | Path) -> tuple[list[Draft], tuple[str, ...]]:
    """Read drafts from a file of drafts or questions; also return the reasons for skipped rows.

    Raises:
        InputError: The file cannot be read.
    """
    if str(file) != PRIMER and is_draft_file(Path(file)):
        return list(read_drafts(Path(file))), ()
    question_set = read_questions(str(file))
    return [question_draft(question) for question in question_set.questions], question_set.skipped


def is_draft_file(path: Path) -> bool:
    """Return whether the first line of a file is a draft; False if the file cannot be read."""
    try:
        row = parse_json(next((line for line in read_lines(path) if line.strip()), "null"))
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and {"wording", "origin"} <= set(row)
