"""A question on its way from a passage to a published benchmark, with everything that was decided about it."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter

from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.io import first_problem, parse_json, read_lines, reason, written_beside
from climassay.questions import GAP, TYPES, Kind, Level, Question, QuestionType
from climassay.questions.types import Content
from climassay.reporting.results import write_rows

T = TypeVar("T")
Step = Literal["write", "evolve", "screen", "consistency", "expert", "validate", "mask", "deduplicate"]
"""Where a decision is made, in the order of the pipeline."""


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A passage that a question was written from."""

    id: str
    text: str
    document_id: str
    document: str
    """Title of the document."""
    section: str = ""
    """Its headings, outermost first, joined by `` > ``."""
    place: str = ""
    """The whole citation in words, with pages where the source has them."""
    url: str | None = None
    licence: str | None = None
    similarity: float | None = None
    """Cosine to the main passage; None for the main passage itself."""

    @property
    def source(self) -> str:
        """Title and section in one line, as prompts show them."""
        return " > ".join(part for part in (self.document, self.section) if part)

    @classmethod
    def of(cls, passage: Passage, similarity: float | None = None) -> "SourcePassage":
        """What a question keeps of a collection's passage."""
        return cls(
            id=passage.id,
            text=passage.text,
            document_id=passage.document_id,
            document=passage.document,
            section=" > ".join(passage.headings),
            place=passage.citation,
            url=passage.url,
            licence=passage.licence,
            similarity=similarity,
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """How a draft was made: enough to make it again."""

    model: str
    """As in ``--model``."""
    fingerprint: str
    """Fingerprint of the model; see :class:`~climassay.models.contract.Generator`."""
    prompts: tuple[tuple[str, str], ...]
    """(name, SHA-256 of the template) of every prompt used, in the order of their use."""
    seed: int
    """Seed of the last request's sampling."""
    evolved_from: "Wording | None" = None
    """The base question that this one was evolved from."""
    dtype: str = ""
    """Number format that a local model computed in; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a question: what is written, evolved, edited and screened."""

    question: str
    """The question; for cloze the whole statement, nothing masked."""
    answer: str = ""
    """Text of the correct option (mcq), one or two sentences (freeform), the masked term (cloze; empty until then)."""
    options: tuple[str, ...] = ()
    """Without letters (mcq only)."""
    correct: int | None = None
    """Index of the correct option (mcq only)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one check, model or person said about a draft."""

    step: Step
    by: str
    """Name of the check, the model or the annotator."""
    accepted: bool | None
    """None where nothing could be decided: a failed call, an abstention."""
    reason: str = ""
    """Short name of the fault or the predefined reason, for counting; empty where accepted."""
    detail: str = ""
    """One sentence: what exactly was seen."""
    score: float | None = None
    """Where there is one, what was compared with a threshold, or P(valid)."""
    replaced: Wording | None = None
    """The words before, where this decision changed them: an expert's edit, a masked term."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that was generated, or the failure to generate one."""

    id: str
    """Stable: the same recipe gives the same ids."""
    kind: Kind
    level: Level
    """Cloze statements are always ``base``."""
    wording: Wording
    """As it stands now, edits and the masked term included."""
    passages: tuple[SourcePassage, ...]
    """The main passage first, then the retrieved ones, nearest first."""
    origin: Origin
    decisions: tuple[Decision, ...] = ()
    """In the order they were made; nothing is ever removed."""
    error: str | None = None
    """Why the call failed: such a draft is counted, and asked again by the next run."""

    @property
    def type(self) -> QuestionType:
        """What is particular to its kind."""
        return TYPES[self.kind]

    @property
    def content(self) -> Content:
        """Its words, as its type looks at them."""
        return Content(self.wording.question, self.wording.answer, self.wording.options, self.wording.correct)

    @property
    def main(self) -> SourcePassage:
        """The passage that the question must rest on."""
        return self.passages[0]

    @property
    def context(self) -> str:
        """All passages as one text, the main one first."""
        return "\n\n".join(passage.text for passage in self.passages)

    @property
    def rejection(self) -> Decision | None:
        """The decision that stands against the draft; None where none does.

        The latest word of an expert decides over all else; without one the first rejection stands.
        """
        for decision in reversed(self.decisions):
            if decision.step == "expert" and decision.accepted is not None:
                return None if decision.accepted else decision
        return next((decision for decision in self.decisions if decision.accepted is False), None)

    @property
    def written(self) -> bool:
        """Whether there are words to be judged: the call did not fail, and its reply could be read."""
        return self.error is None and not any(
            decision.step in ("write", "evolve") and decision.accepted is False for decision in self.decisions
        )

    @property
    def usable(self) -> bool:
        """Written, and not rejected so far."""
        return self.error is None and self.rejection is None

    def decided(self, *decisions: Decision) -> "Draft":
        """The draft with more decisions."""
        return replace(self, decisions=(*self.decisions, *decisions))

    def reworded(self, wording: Wording, decision: Decision) -> "Draft":
        """The draft with other words, and the decision that changed them, which keeps the words before."""
        kept = replace(decision, replaced=self.wording)
        return replace(self, wording=wording, decisions=(*self.decisions, kept))

    def as_question(self) -> Question:
        """The benchmark question; a cloze statement gets its gap where the term first stands as a word.

        Raises:
            InputError: The draft has no wording, or is a cloze statement without a term or without that term.
        """
        if self.error is not None:
            raise InputError(f"The draft {self.id} was never written: {self.error}")
        text = self.wording.question
        if self.type.gap:
            text = gapped(text, self.wording.answer, parts=True)
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


def where(
    wanted: Callable[[Draft], bool], step: Callable[[list[Draft]], Sequence[Draft]], drafts: Sequence[Draft]
) -> list[Draft]:
    """The drafts in their order, those that are wanted as a step gives them back; it is not asked about none."""
    results = list(drafts)
    places = [place for place, draft in enumerate(drafts) if wanted(draft)]
    if places:
        for place, draft in zip(places, step([drafts[place] for place in places]), strict=True):
            results[place] = draft
    return results


HYPHENS = "‐‑-"


def is_blank(text: str) -> bool:
    """Whether a field that may be left empty was left so, or filled with a word that says as much."""
    return text.strip().strip(".").casefold() in ("", "-", "no", "none", "null", "n/a", "false", "nothing", "empty")


def gapped(statement: str, term: str, *, parts: bool = False) -> str:
    """A statement with ``<MASK>`` in place of a term that is one of its words.

    Args:
        statement: The whole statement.
        term: One of its words; a hyphenated word is one.
        parts: Whether a part of a hyphenated word will do, as in datasets of earlier versions.

    Raises:
        InputError: The term is empty or not a word of the statement.
    """
    pattern = _as_word(term) if has_term(statement, term) or not parts else rf"(?<!\w){re.escape(term)}(?!\w)"
    if not term or re.search(pattern, statement) is None:
        raise InputError(f"The term {term!r} is not a word of the statement {statement!r}.")
    return re.sub(pattern, GAP, statement, count=1)


def has_term(statement: str, term: str) -> bool:
    """Whether a term is one of a statement's words."""
    return bool(term) and re.search(_as_word(term), statement) is not None


def _as_word(term: str) -> str:
    return rf"(?<![\w{HYPHENS}])(?<!\w–){re.escape(term)}(?![\w{HYPHENS}]|–\w)"


def draft_id(*parts: object) -> str:
    """``q`` and twelve hexadecimal digits of the parts' hash."""
    return "q" + hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    # In a tuple, since a dataclass takes no configuration from outside.
    return TypeAdapter(tuple[kind], config=ConfigDict(strict=True, extra="forbid"))


def record_from(kind: Callable[..., T], row: object) -> T:
    """The record of a dataclass from what ``asdict`` and JSON made of it.

    Raises:
        ValueError: A field is missing or unknown, or holds something else than it should.
        TypeError: JSON has no such value.
    """
    [result] = _reader(kind).validate_json(json.dumps([row]))
    return cast(T, result)


def draft_from_row(row: Mapping[str, Any]) -> Draft:
    """The draft that ``asdict`` wrote.

    Raises:
        InputError: A field is missing or unknown, or holds something else than it should.
    """
    try:
        draft = record_from(Draft, row)
        if not draft.passages:
            raise ValueError("it has no passage")
    except (TypeError, ValueError) as error:
        raise InputError(f"This is not a draft of climassay: {first_problem(error).removeprefix('0.')}.") from None
    return draft


def question_draft(question: Question, document: str = "") -> Draft:
    """A question that somebody else made as a draft, with its context as the one passage and no origin.

    A cloze statement gets its term back into the gap. A question without a context has no passages, and what needs them
    finds no fault.
    """
    context, title = question.context or "", question.document or document
    passage = SourcePassage(f"{question.id}-context", context, title, title, question.section or "")
    text = question.question.replace(GAP, question.answer) if question.type.gap else question.question
    return Draft(
        id=question.id,
        kind=question.kind,
        level=question.level or "base",
        wording=Wording(text, question.answer, question.options, question.correct),
        passages=(passage,) if context else (),
        origin=Origin(model="", fingerprint="", prompts=(), seed=0),
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """The science that questions are about; another one is a matter of these words and another collection."""

    field: str = "climate science"
    source: str = "a graduate-level climate science textbook"
    """What the passages come from, with its article."""
    audience: str = "graduate students of climate science"


@dataclass(frozen=True, slots=True)
class Reason:
    """A predefined reason for which an expert rejects a question."""

    name: str
    words: str
    """As the annotator reads it."""
    key: str = field(default="")
    """The key that chooses it in the web application."""


EXPERT_REASONS: Sequence[Reason] = (
    Reason("bad context", "The passage is not fit to write a question from", "1"),
    Reason("wrong answer", "The marked answer is wrong", "2"),
    Reason("not enough information", "The passage does not say enough to answer", "3"),
    Reason("makes no sense", "The question makes no sense", "4"),
    Reason("other", "Another reason, in words", "5"),
)
"""Those of the authors' annotation tool (ClimaQA, appendix A.5.1 and Figure 7)."""


def write_drafts(path: Path, drafts: Iterable[Draft]) -> None:
    """Write drafts; the file appears whole or not at all.

    Args:
        path: ``.csv`` and ``.xlsx`` make a table and a workbook, which are not read back; all else is JSON lines.
        drafts: Written one by one.

    Raises:
        InputError: It cannot be written.
    """
    if path.suffix.lower() in (".csv", ".xlsx"):
        write_rows(path, map(asdict, drafts))
        return
    with written_beside(path) as part, part.open("w", encoding="utf-8") as file:
        for draft in drafts:
            file.write(json.dumps(asdict(draft), ensure_ascii=False, allow_nan=False) + "\n")


def read_drafts(path: Path) -> Iterator[Draft]:
    """Drafts of a file in its order.

    Raises:
        InputError: The file cannot be read, or a line is not a draft.
    """
    try:
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
                if not isinstance(row, dict):
                    raise InputError("it is not an object")
                draft = draft_from_row(row)
            except (ValueError, InputError) as error:
                raise InputError(f"{path}, line {number}: {error}") from None
            yield draft
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The drafts {path} cannot be read: {reason(error)}.") from None
