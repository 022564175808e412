"""Questions with gold texts: read them from files, and find the passages of a collection that contain them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

from climassay.corpus.documents import Hit, Passage
from climassay.errors import InputError
from climassay.io import listed_names, parse_rows, read_bytes

MIN_GOLD_SHARE = 0.8
"""Default share of the gold text's words that hits must contain, in order, to count as a match."""
MIN_SHARED_SHARE = 0.5
"""Share of the words of the shorter of gold text and passage that both must have for the passage to be relevant."""
LOCATION_RUN = 8
"""Number of consecutive words by which a gold text is located in a collection."""
MIN_RUN = 3
"""Minimum number of consecutive matching words; shorter matches are ignored as chance."""
_WORD = re.compile(r"\w+")


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, casefolded and normalised (NFKC: ``CO₂`` equals ``CO2``), without punctuation."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


@dataclass(frozen=True, slots=True)
class GoldText:
    """Text that a search should find."""

    words: tuple[str, ...]

    @classmethod
    def from_text(cls, text: str) -> "GoldText":
        """Build a gold text from verbatim text."""
        return cls(words_of(text))

    def covered(self, words: Sequence[str]) -> frozenset[int]:
        """Return the indices of the gold text's words that another text contains in the same order.

        Only runs of at least :data:`MIN_RUN` words count, or of all words if the gold text has fewer.
        """
        shared = sum((Counter(self.words) & Counter(words)).values())
        if shared < min(MIN_RUN, len(self.words)):
            return frozenset()
        matcher = SequenceMatcher(None, words, self.words, autojunk=False)
        min_run = min(MIN_RUN, len(self.words))
        blocks = (block for block in matcher.get_matching_blocks() if block.size >= min_run)
        return frozenset(position for block in blocks for position in range(block.b, block.b + block.size))

    def rank_in(self, hits: Iterable[Hit], share: float = MIN_GOLD_SHARE) -> int | None:
        """Return the rank of the hit that completes the gold text; None if no hit does.

        Args:
            hits: Hits, best first.
            share: Share of the gold text's words that one hit, or neighbouring passages of a document, must contain.
        """
        needed = share * len(self.words)
        covered_by_passage: dict[tuple[str, int], frozenset[int]] = {}
        for hit in hits:
            passage = hit.passage
            covered = self.covered(words_of(passage.text))
            covered_by_passage[passage.document_id, passage.position] = covered
            before = covered_by_passage.get((passage.document_id, passage.position - 1), frozenset())
            after = covered_by_passage.get((passage.document_id, passage.position + 1), frozenset())
            if covered and len(before | covered | after) >= needed:
                return hit.rank
        return None


def locate(golds: Sequence[GoldText], texts: Iterable[Sequence[str]]) -> list[bool]:
    """Return whether each gold text, or a run of eight of its words, occurs in any of the texts.

    ``texts`` comes in batches, which are read once.
    """
    runs = []
    """The first, middle and last run of each, as words between spaces."""
    for words in (gold.words for gold in golds):
        starts = sorted({0, max(0, (len(words) - LOCATION_RUN) // 2), max(0, len(words) - LOCATION_RUN)})
        runs.append([f" {' '.join(words[start : start + LOCATION_RUN])} " for start in starts])
    located = [False] * len(golds)
    for batch in texts:
        if all(located):
            break
        joined = " \0 ".join(" " + " ".join(words_of(text)) + " " for text in batch)
        for number, candidates in enumerate(runs):
            located[number] = located[number] or any(run in joined for run in candidates)
    return located


def judge(
    golds: Sequence[GoldText], relevances: Sequence[float], passages: Iterable[Passage]
) -> list[dict[str, float]]:
    """Return the relevant passages of each gold text: relevance by passage id.

    A passage is relevant if it shares with the gold text, in order, at least :data:`MIN_SHARED_SHARE` of the words of
    the shorter of the two. Thus both halves of a split gold text are relevant, and so is each passage that quotes a
    sentence.
    """
    gold_indices: dict[tuple[str, ...], list[int]] = {}
    for number, gold in enumerate(golds):
        for run in _word_runs(gold.words):
            gold_indices.setdefault(run, []).append(number)
    judged: list[dict[str, float]] = [{} for _ in golds]
    for passage in passages:
        words = words_of(passage.text)
        if len(words) < MIN_PASSAGE_WORDS:
            continue
        shared: Counter[int] = Counter()
        for run in set(_word_runs(words)):
            shared.update(gold_indices.get(run, ()))
        for number, runs in shared.items():
            needed = MIN_SHARED_SHARE * min(len(words), len(golds[number].words))
            # Of a run of n words n - 2 are the beginning of a run of three, so of all of them a third at least.
            if runs >= needed / MIN_RUN and len(golds[number].covered(words)) >= needed:
                judged[number][passage.id] = relevances[number]
    return judged


def _word_runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + MIN_RUN]) for start in range(len(words) - MIN_RUN + 1))


QUESTION_FIELDS = ("question", "Question", "query")
PASSAGE_FIELDS = ("passage", "context", "Context", "text")
MIN_PASSAGE_WORDS = 5
"""Minimum number of words of a gold passage; shorter ones occur in too many passages to be identified."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """Question with a verbatim passage that answers it or is relevant to it.

    Several with the same question and group form one question with several relevant passages.
    """

    question: str
    passage: str
    id: str = ""
    document: str | None = None
    """Location of the passage according to the file; not used by the search."""
    relevance: float = 1.0
    """Relevance grade of the passage, above 0."""
    group: str = ""
    """Group of dependent questions, for example a report; empty for none."""

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise InputError(f"The question {self.id or 'without id'} is empty.")
        if len(words_of(self.passage)) < MIN_PASSAGE_WORDS:
            raise InputError(
                f"The gold passage of question {self.id or self.question!r} has fewer than {MIN_PASSAGE_WORDS} words, "
                "too few to be recognised."
            )


@dataclass(frozen=True, slots=True)
class QuestionColumns:
    """Column names of a table of questions; None uses common names for question and passage."""

    question: str | None = None
    passage: str | None = None
    relevance: str | None = None
    """Relevance grades; rows whose grade is missing or not above 0 are skipped and counted."""
    group: str | None = None


def read_labelled(path: str | Path) -> list[LabelledQuestion]:
    """Read question-passage pairs; see :func:`read_judged`."""
    return read_judged(path)[0]


def read_judged(path: str | Path, columns: QuestionColumns = QuestionColumns()) -> tuple[list[LabelledQuestion], int]:
    """Read questions with gold passages, optionally with relevance grades and groups.

    Args:
        path: JSONL, a JSON array, or CSV with a header, optionally gzipped; a row has a question (``question``,
            ``Question`` or ``query``), its gold passage (``passage``, ``context``, ``Context`` or ``text``), and may
            have ``id`` and ``document``.
        columns: Column names, if they differ from these, and the columns of grades and groups.

    Returns:
        The pairs, and the number of skipped rows. Rows are skipped only if a column of grades is named: for a grade
        that is missing or not above 0, or for a passage that is too short.

    Raises:
        InputError: The file cannot be read, or a row lacks a value; the message names the row.
    """
    file = Path(path)
    questions = []
    left_out = 0
    question_names = (columns.question,) if columns.question else QUESTION_FIELDS
    passage_names = (columns.passage,) if columns.passage else PASSAGE_FIELDS
    for number, row in enumerate(parse_rows(file, read_bytes(file)), start=1):
        for field in fields(columns):
            name = getattr(columns, field.name)
            if name is not None and name not in row:
                raise InputError(f"{file.name}, row {number} has no column {name!r}: it has {listed_names(row)}.")
        question, passage = _first(row, question_names), _first(row, passage_names)
        relevance = 1.0
        if columns.relevance:
            relevance = _relevance(row[columns.relevance], f"{file.name}, row {number}")
            if relevance == 0 or len(words_of(passage)) < MIN_PASSAGE_WORDS:
                left_out += 1
                continue
        if not question or not passage:
            missing_names = passage_names if question else question_names
            raise InputError(
                f"{file.name}, row {number} has no {' or '.join(missing_names)}: every row needs a question and its "
                "passage."
            )
        name = str(row.get("id") or f"q{number:04d}")
        group = _first(row, (columns.group,)) if columns.group else ""
        if columns.group and not group:
            raise InputError(f"{file.name}, row {number} is empty in column {columns.group!r}.")
        document = _first(row, ("document",)) or None
        questions.append(LabelledQuestion(question, passage, name, document, relevance, group))
    if not questions:
        missing_rows = "no row with a relevant passage" if left_out else "no rows"
        raise InputError(f"{file.name} has {missing_rows}: retrieval is evaluated on question-passage pairs.")
    return questions, left_out


def _relevance(value: Any, location: str) -> float:
    """Parse a relevance grade; return 0 if it is missing or negative."""
    text = str("" if value is None else value).strip()
    if text in ("", "None"):
        return 0.0
    try:
        grade = float(text)
    except ValueError:
        grade = float("nan")
    if not np.isfinite(grade):
        raise InputError(f"{location} has the relevance {text!r}, which is not a number.")
    return max(grade, 0.0)


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((str(row[name]).strip() for name in names if row.get(name)), "")
