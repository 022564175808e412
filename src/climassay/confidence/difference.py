"""Compare two extractions of statements: what was added, removed, reworded, or got another level.

Sentences of the same words (without case and punctuation) belong together first, in their order. Of the others, pairs
share most words: their similarity is the Dice coefficient of their sets of words, at least :data:`MIN_SIMILARITY`, and
the pairs with the greatest sum of similarities are taken. Meaning is not compared.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.optimize import linear_sum_assignment

from climassay.confidence.extraction.extracting import normalised
from climassay.confidence.statement import Statement

Status = Literal["level changed", "removed", "added", "reworded", "unchanged"]
STATUSES: tuple[Status, ...] = get_args(Status)
MIN_SIMILARITY = 0.6
"""Dice coefficient of the words of two sentences, from 0 to 1, from which on they may be the same one."""


@dataclass(frozen=True, slots=True)
class Change:
    """A sentence in two extractions; one side is empty if it was added or removed."""

    old: tuple[Statement, ...]
    new: tuple[Statement, ...]
    similarity: float | None = None
    """Share of common words, 1 for the same words; None if one side is empty."""

    @property
    def status(self) -> Status:
        """What became of the sentence; a changed level comes before a changed wording."""
        if not self.old or not self.new:
            return "added" if self.new else "removed"
        if _levels(self.old) != _levels(self.new):
            return "level changed"
        return "unchanged" if normalised(self.old[0].text) == normalised(self.new[0].text) else "reworded"

    def row(self) -> dict[str, Any]:
        """Return the change as a row of a table or of JSON."""
        row: dict[str, Any] = {"status": self.status, "similarity": self.similarity}
        for name, side in (("old", self.old), ("new", self.new)):
            row |= {f"{name}_levels": _levels(side), f"{name}_text": side[0].text if side else None}
        first = (*self.new, *self.old)[0]
        return {**row, "report": first.report, "page": first.page, "label": first.label}


def compare_statements(old: Sequence[Statement], new: Sequence[Statement]) -> list[Change]:
    """Match the sentences of two extractions.

    Args:
        old: From :func:`climassay.confidence.extraction.extract`, or read from its file.
        new: The later ones.

    Returns:
        A change for each sentence of the later extraction in its order, then those removed.
    """
    before, after = _sentences(old), _sentences(new)
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for index, group in enumerate(before):
        waiting[normalised(group[0].text)].append(index)
    matched: dict[int, tuple[int, float]] = {}
    for index, group in enumerate(after):
        if same := waiting[normalised(group[0].text)]:
            matched[index] = same.popleft(), 1.0
    left = sorted(index for indices in waiting.values() for index in indices)
    right = [index for index in range(len(after)) if index not in matched]
    if left and right:
        alike = _similarities([before[index] for index in left], [after[index] for index in right])
        for row, column in zip(*linear_sum_assignment(np.where(alike < MIN_SIMILARITY, 0, alike), True), strict=True):
            if alike[row, column] >= MIN_SIMILARITY:
                matched[right[column]] = left[row], float(alike[row, column])
    changes = [
        Change(before[matched[index][0]], group, matched[index][1]) if index in matched else Change((), group)
        for index, group in enumerate(after)
    ]
    found = {index for index, _ in matched.values()}
    return changes + [Change(group, ()) for index, group in enumerate(before) if index not in found]


def _sentences(statements: Iterable[Statement]) -> list[tuple[Statement, ...]]:
    """Group statements of the same sentence and words, in order."""
    groups: dict[tuple[str, str], list[Statement]] = defaultdict(list)
    for statement in statements:
        groups[statement.sentence_id, statement.text].append(statement)
    return [tuple(group) for group in groups.values()]


def _levels(statements: Sequence[Statement]) -> list[str]:
    return [statement.tag or "none" for statement in statements]


def _similarities(old: Sequence[Sequence[Statement]], new: Sequence[Sequence[Statement]]) -> "np.ndarray[Any, Any]":
    """Return the Dice coefficients of all pairs, as an array [old, new]."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(binary=True, token_pattern=r"\w+", dtype=np.float32)
    texts = [group[0].text for group in (*old, *new)]
    words = counter.fit_transform(texts)
    sizes = np.asarray(words.sum(axis=1)).ravel()
    shared = (words[: len(old)] @ words[len(old) :].T).toarray()
    return np.asarray(2 * shared / (sizes[: len(old), None] + sizes[None, len(old) :]))
