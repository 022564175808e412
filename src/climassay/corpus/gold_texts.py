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
from climassay.io import find_column, format_names, parse_rows, read_bytes, require_column

MIN_GOLD_SHARE = 0.8
"""Default minimum fraction of a gold text's words that a hit must contain, in order, to match it."""
MIN_SHARED_SHARE = 0.5
"""A passage is relevant if it shares at least this fraction of words with the gold text, relative to the shorter of the
two."""
EXCERPT_WORDS = 8
"""Length, in words, of the excerpts by which a gold text is located in a collection."""
MIN_RUN = 3
"""Minimum number of consecutive words of a match; shorter matches are likely to be coincidences."""
_WORD = re.compile(r"\w+")


def split_words(text: str) -> tuple[str, ...]:
    """Split a text into words without punctuation, casefolded and NFKC-normalised (``CO₂`` equals ``CO2``)."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


@dataclass(frozen=True, slots=True)
class GoldText:
    """Text that a search should find."""

    words: tuple[str, ...]

    @classmethod
    def from_text(cls, text: str) -> "GoldText":
        """Build a gold text from verbatim text."""
        return cls(split_words(text))

    def find_shared_words(self, words: Sequence[str]) -> frozenset[int]:
        """Return the indices of the gold text's words that another text contains in the same order.

        Only runs of at least :data:`MIN_RUN` consecutive words count; a shorter gold text must match as a whole.
        """
        n_shared = sum((Counter(self.words) & Counter(words)).values())
        if n_shared < min(MIN_RUN, len(self.words)):
            return frozenset()
        matcher = SequenceMatcher(None, words, self.words, autojunk=False)
        min_run = min(MIN_RUN, len(self.words))
        blocks = (block for block in matcher.get_matching_blocks() if block.size >= min_run)
        return frozenset(position for block in blocks for position in range(block.b, block.b + block.size))

    def find_rank(self, hits: Iterable[Hit], share: float = MIN_GOLD_SHARE) -> int | None:
        """Return the rank of the first hit that contains enough of the gold text; None if there is none.

        Args:
            hits: Hits, best first.
            share: Minimum fraction of the gold text's words that a hit must contain, together with the neighbouring
                passages among the hits.
        """
        min_words = share * len(self.words)
        indices_by_passage: dict[tuple[str, int], frozenset[int]] = {}
        for hit in hits:
            passage = hit.passage
            indices = self.find_shared_words(split_words(passage.text))
            indices_by_passage[passage.document_id, passage.position] = indices
            previous_indices = indices_by_passage.get((passage.document_id, passage.position - 1), frozenset())
            next_indices = indices_by_passage.get((passage.document_id, passage.position + 1), frozenset())
            if indices and len(previous_indices | indices | next_indices) >= min_words:
                return hit.rank
        return None


def locate_gold_texts(golds: Sequence[GoldText], texts: Iterable[Sequence[str]]) -> list[bool]:
    """Return whether the first, middle or last eight words of each gold text occur in a text; texts are in batches."""
    excerpts_by_gold = []
    """Words of the first, middle and last excerpt of each gold text, with spaces around each word."""
    for words in (gold.words for gold in golds):
        starts = sorted({0, max(0, (len(words) - EXCERPT_WORDS) // 2), max(0, len(words) - EXCERPT_WORDS)})
        excerpts_by_gold.append([f" {' '.join(words[start : start + EXCERPT_WORDS])} " for start in starts])
    is_located = [False] * len(golds)
    for batch in texts:
        if all(is_located):
            break
        joined_texts = " \0 ".join(" " + " ".join(split_words(text)) + " " for text in batch)
        for index, excerpts in enumerate(excerpts_by_gold):
            is_located[index] = is_located[index] or any(excerpt in joined_texts for excerpt in excerpts)
    return is_located


def find_relevant_passages(
    golds: Sequence[GoldText], relevances: Sequence[float], passages: Iterable[Passage]
) -> list[dict[str, float]]:
    """Return the relevance grades of each gold text's relevant passages, by passage id.

    A passage is relevant if it shares with the gold text, in order, at least :data:`MIN_SHARED_SHARE` of the words of
    the shorter of the two. Thus both halves of a gold text that is split over two passages are relevant, and so is a
    passage that quotes one sentence of it.
    """
    gold_indices: dict[tuple[str, ...], list[int]] = {}
    for index, gold in enumerate(golds):
        for run in _iterate_word_runs(gold.words):
            gold_indices.setdefault(run, []).append(index)
    relevances_by_gold: list[dict[str, float]] = [{} for _ in golds]
    for passage in passages:
        words = split_words(passage.text)
        if len(words) < MIN_PASSAGE_WORDS:
            continue
        n_shared_runs: Counter[int] = Counter()
        for run in set(_iterate_word_runs(words)):
            n_shared_runs.update(gold_indices.get(run, ()))
        for index, n_runs in n_shared_runs.items():
            min_words = MIN_SHARED_SHARE * min(len(words), len(golds[index].words))
            # Of a run of n words n - 2 are the beginning of a run of three, so of all of them a third at least.
            if n_runs >= min_words / MIN_RUN and len(golds[index].find_shared_words(words)) >= min_words:
                relevances_by_gold[index][passage.id] = relevances[index]
    return relevances_by_gold


def _iterate_word_runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + MIN_RUN]) for start in range(len(words) - MIN_RUN + 1))


QUESTION_FIELDS = ("question", "query")
PASSAGE_FIELDS = ("passage", "context", "text")
MIN_PASSAGE_WORDS = 5
"""Minimum number of words of a gold passage; shorter texts occur in too many passages to be identified."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """Question with a verbatim passage that answers it or is relevant to it.

    Instances with the same question and group stand for one question with several relevant passages.
    """

    question: str
    passage: str
    id: str = ""
    document: str | None = None
    """Document of the passage as stated in the question file; ignored by the search."""
    relevance: float = 1.0
    """Relevance grade of the passage, above 0."""
    group: str = ""
    """Name of the group of dependent questions, for example those about one report; empty if there are no groups."""

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise InputError(f"The question {self.id or 'without id'} is empty.")
        if len(split_words(self.passage)) < MIN_PASSAGE_WORDS:
            raise InputError(
                f"The gold passage of question {self.id or self.question!r} has fewer than {MIN_PASSAGE_WORDS} words, "
                "too few to be recognised."
            )


@dataclass(frozen=True, slots=True)
class QuestionColumns:
    """Column names of a table of questions; if None, question and passage are found by common names."""

    question: str | None = None
    passage: str | None = None
    relevance: str | None = None
    """Column of relevance grades; rows whose grade is missing or not above 0 are skipped and counted."""
    group: str | None = None


def read_gold_questions(
    path: str | Path, columns: QuestionColumns = QuestionColumns()
) -> tuple[list[LabelledQuestion], int]:
    """Read questions with gold passages, optionally with relevance grades and groups.

    Args:
        path: JSONL, JSON array or CSV file with a header, optionally gzipped. Each row has a question (``question`` or
            ``query``) and its gold passage (``passage``, ``context`` or ``text``), and may have ``id`` and
            ``document``.
        columns: Names of columns that differ from these, and of the columns with grades and groups.

    Returns:
        Question-passage pairs, and the number of skipped rows. If a column of grades is named, rows with a passage that
            is too short, or with a grade that is missing or not above 0, are skipped.

    Raises:
        InputError: The file cannot be read, or a row lacks a value; the message names the row.
    """
    file = Path(path)
    questions = []
    n_omitted_rows = 0
    question_names = (columns.question,) if columns.question else QUESTION_FIELDS
    passage_names = (columns.passage,) if columns.passage else PASSAGE_FIELDS
    for number, row in enumerate(parse_rows(file, read_bytes(file)), start=1):
        for field in fields(columns):
            name = getattr(columns, field.name)
            if name is not None and find_column(row, name) is None:
                raise InputError(f"{file.name}, row {number} has no column {name!r}: it has {format_names(row)}.")
        question, passage = _find_value(row, question_names), _find_value(row, passage_names)
        relevance = 1.0
        if columns.relevance:
            relevance = _parse_relevance(
                row[require_column(file.name, row, columns.relevance)], f"{file.name}, row {number}"
            )
            if relevance == 0 or len(split_words(passage)) < MIN_PASSAGE_WORDS:
                n_omitted_rows += 1
                continue
        if not question or not passage:
            missing_names = passage_names if question else question_names
            raise InputError(
                f"{file.name}, row {number} has no {' or '.join(missing_names)}: every row needs a question and its "
                "passage."
            )
        name = str(row.get("id") or f"q{number:04d}")
        group = _find_value(row, (columns.group,)) if columns.group else ""
        if columns.group and not group:
            raise InputError(f"{file.name}, row {number} is empty in column {columns.group!r}.")
        document = _find_value(row, ("document",)) or None
        questions.append(LabelledQuestion(question, passage, name, document, relevance, group))
    if not questions:
        missing_rows = "no row with a relevant passage" if n_omitted_rows else "no rows"
        raise InputError(f"{file.name} has {missing_rows}: retrieval is evaluated on question-passage pairs.")
    return questions, n_omitted_rows


def _parse_relevance(value: Any, location: str) -> float:
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


def _find_value(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    columns = [column for name in names if (column := find_column(row, name)) is not None]
    return next((str(row[column]).strip() for column in columns if row[column]), "")
