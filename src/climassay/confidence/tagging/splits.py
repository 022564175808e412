"""Splits that share no statement, no near copy of one and no section; or no chapter of a report.

The summaries of a report repeat its chapters, often word for word and with the same tag, so that a split by rows, or
by chapters alone, tests a tagger on what it has read. Here whole sections (or documents) are dealt into folds, and what
is nearly the same as a test item is left out of training.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.tagging.items import LabelledItem
from climassay.confidence.tagging.wording import normalised
from climassay.errors import InputError

IntArray = NDArray[np.int64]
Apart = Literal["statement", "document"]
"""What training and test do not share: sections and near copies; or whole chapters and near copies."""
SIMILAR = 0.9
"""Cosine from which on two statements count as one."""
_ROWS_AT_ONCE = 1024


class Split(NamedTuple):
    """Places of training and test items, ascending."""

    train: IntArray
    test: IntArray


class Twins:
    """Which statements say nearly the same, by the cosine of their vectors."""

    def __init__(self, vectors: NDArray[np.float32], *, similar: float = SIMILAR) -> None:
        """Find them.

        Args:
            vectors: Unit vectors, shape [items, width].
            similar: Least cosine.
        """
        pairs: list[IntArray] = []
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            rows, columns = np.nonzero(vectors[start : start + _ROWS_AT_ONCE] @ vectors.T >= similar)
            pairs.append(np.stack([rows + start, columns], axis=1))
        found = np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=np.int64)
        self._pairs = found[found[:, 0] != found[:, 1]].astype(np.int64)

    @classmethod
    def of_words(cls, items: Sequence[LabelledItem]) -> "Twins":
        """By their words alone: the same ones in the same order."""
        first: dict[str, int] = {}
        places = [first.setdefault(normalised(one.item.text), place) for place, one in enumerate(items)]
        return cls(np.eye(len(items), dtype=np.float32)[places])

    def __len__(self) -> int:
        """Pairs."""
        return len(self._pairs) // 2

    def of(self, places: IntArray) -> IntArray:
        """Items that are nearly the same as one of these, themselves not counted unless they are each other's.

        Args:
            places: Of the items, shape [given].

        Returns:
            Places in ascending order, shape [found].
        """
        inside = np.isin(self._pairs[:, 0], places)
        return np.unique(self._pairs[inside, 1])


def units(items: Sequence[LabelledItem], apart: Apart) -> IntArray:
    """Number of each item's section or document, shape [items]."""
    names = [one.section if apart == "statement" else one.document for one in items]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def folds(
    items: Sequence[LabelledItem], twins: Twins, apart: Apart = "statement", *, count: int = 5, seed: int = 0
) -> list[Split]:
    """Deal items into folds by whole units; every item is tested once.

    Args:
        items: All items.
        twins: Near copies, left out of training where the other is tested.
        apart: What the sides do not share.
        count: Folds; fewer where there are fewer units.
        seed: Decides the deal.

    Raises:
        InputError: There are fewer than two units.
    """
    return list(_splits(units(items, apart), twins, count, seed))


def _splits(groups: IntArray, twins: Twins, count: int, seed: int) -> Iterator[Split]:
    sizes = np.bincount(groups)
    if len(sizes) < 2 or count < 2:
        raise InputError("A cross-validation needs at least two folds, and two sections or documents to put into them.")
    # Largest first into the emptiest fold; the seed decides among equals.
    noise = np.random.default_rng(seed).random(len(sizes))
    filled = np.zeros(min(count, len(sizes)))
    fold_of = np.zeros(len(sizes), dtype=np.int64)
    for group in np.lexsort((noise, -sizes)):
        fold_of[group] = int(filled.argmin())
        filled[fold_of[group]] += sizes[group]
    for fold in range(len(filled)):
        test = np.flatnonzero(fold_of[groups] == fold)
        yield Split(_without_twins(np.flatnonzero(fold_of[groups] != fold), test, twins), test)


def hold_out(items: Sequence[LabelledItem], twins: Twins, share: float, *, seed: int = 0) -> Split:
    """A test part of whole sections, drawn by the seed; nothing that is nearly the same stays in training.

    Args:
        items: All items.
        twins: Near copies.
        share: Of the items, about.
        seed: Decides the draw.

    Raises:
        InputError: The share leaves nothing on one side.
    """
    groups = units(items, "statement")
    order = np.random.default_rng(seed).permutation(int(groups.max()) + 1)
    sizes = np.bincount(groups)
    taken = order[np.cumsum(sizes[order]) <= share * len(items)]
    inside = np.isin(groups, taken)
    if not inside.any() or inside.all():
        raise InputError(f"A share of {share} cannot be held out of {len(items)} statements in {len(sizes)} sections.")
    test = np.flatnonzero(inside)
    return Split(_without_twins(np.flatnonzero(~inside), test, twins), test)


def _without_twins(train: IntArray, test: IntArray, twins: Twins) -> IntArray:
    return np.setdiff1d(train, twins.of(test), assume_unique=True)
