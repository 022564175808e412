"""Compare two extractions of statements: sentences added, removed, reworded, or with a changed level.

Sentences that differ at most in case and punctuation are matched first, in their order. The other sentences are matched
by the Dice coefficient of their sets of words: the matching with the greatest sum of coefficients, each at least
:data:`MIN_SIMILARITY`. Meaning is not compared.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.optimize import linear_sum_assignment

from climassay.confidence.extraction.extracting import normalise_words
from climassay.confidence.statement import Statement

Status = Literal["level changed", "removed", "added", "reworded", "unchanged"]
STATUSES: tuple[Status, ...] = get_args(Status)
MIN_SIMILARITY = 0.6
"""Two sentences are matched only if the Dice coefficient of their sets of words is at least this."""


@dataclass(frozen=True, slots=True)
class SentenceChange:
    """Sentence in two extractions; one side is empty if the sentence was added or removed."""

    old: tuple[Statement, ...]
    new: tuple[Statement, ...]
    similarity: float | None = None
    """Dice coefficient of the words of the two sentences, from 0 to 1 (same words); None if there is only one
    sentence."""

    @property
    def status(self) -> Status:
        """Kind of change; a changed level takes precedence over a changed wording."""
        if not self.old or not self.new:
            return "added" if self.new else "removed"
        if _list_levels(self.old) != _list_levels(self.new):
            return "level changed"
        return "unchanged" if normalise_words(self.old[0].text) == normalise_words(self.new[0].text) else "reworded"

    def row(self) -> dict[str, Any]:
        """Return the change as a row of a table or of JSON."""
        row: dict[str, Any] = {"status": self.status, "similarity": self.similarity}
        for name, side in (("old", self.old), ("new", self.new)):
            row |= {f"{name}_levels": _list_levels(side), f"{name}_text": side[0].text if side else None}
        first_statement = (*self.new, *self.old)[0]
        return {**row, "report": first_statement.report, "page": first_statement.page, "label": first_statement.label}


def compare_statements(old: Sequence[Statement], new: Sequence[Statement]) -> list[SentenceChange]:
    """Match the sentences of two extractions by their words.

    Args:
        old: Statements of the earlier extraction (:func:`climassay.confidence.extraction.extract`).
        new: Statements of the later extraction.

    Returns:
        One change per sentence of the later extraction, in the order of that extraction, followed by one per removed
        sentence.
    """
    old_sentences, new_sentences = _group_by_sentence(old), _group_by_sentence(new)
    unmatched_by_text: dict[str, deque[int]] = defaultdict(deque)
    for index, group in enumerate(old_sentences):
        unmatched_by_text[normalise_words(group[0].text)].append(index)
    matches: dict[int, tuple[int, float]] = {}
    for index, group in enumerate(new_sentences):
        if old_matches := unmatched_by_text[normalise_words(group[0].text)]:
            matches[index] = old_matches.popleft(), 1.0
    old_indices = sorted(index for indices in unmatched_by_text.values() for index in indices)
    new_indices = [index for index in range(len(new_sentences)) if index not in matches]
    if old_indices and new_indices:
        similarities = _compute_similarities(
            [old_sentences[index] for index in old_indices], [new_sentences[index] for index in new_indices]
        )
        for row, column in zip(
            *linear_sum_assignment(np.where(similarities < MIN_SIMILARITY, 0, similarities), True), strict=True
        ):
            if similarities[row, column] >= MIN_SIMILARITY:
                matches[new_indices[column]] = old_indices[row], float(similarities[row, column])
    changes = [
        SentenceChange(old_sentences[matches[index][0]], group, matches[index][1])
        if index in matches
        else SentenceChange((), group)
        for index, group in enumerate(new_sentences)
    ]
    matched_indices = {index for index, _ in matches.values()}
    return changes + [
        SentenceChange(group, ()) for index, group in enumerate(old_sentences) if index not in matched_indices
    ]


def _group_by_sentence(statements: Iterable[Statement]) -> list[tuple[Statement, ...]]:
    """Group statements by sentence and text, keeping their order; parts of a divided sentence are separate groups."""
    groups: dict[tuple[str, str], list[Statement]] = defaultdict(list)
    for statement in statements:
        groups[statement.sentence_id, statement.text].append(statement)
    return [tuple(group) for group in groups.values()]


def _list_levels(statements: Sequence[Statement]) -> list[str]:
    return [statement.tag or "none" for statement in statements]


def _compute_similarities(
    old_groups: Sequence[Sequence[Statement]], new_groups: Sequence[Sequence[Statement]]
) -> "np.ndarray[Any, Any]":
    """Return the Dice coefficients of all pairs of sentences, shape [old, new]."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(binary=True, token_pattern=r"\w+", dtype=np.float32)
    texts = [group[0].text for group in (*old_groups, *new_groups)]
    word_matrix = counter.fit_transform(texts)
    n_words = np.asarray(word_matrix.sum(axis=1)).ravel()
    n_shared = (word_matrix[: len(old_groups)] @ word_matrix[len(old_groups) :].T).toarray()
    return np.asarray(2 * n_shared / (n_words[: len(old_groups), None] + n_words[None, len(old_groups) :]))
