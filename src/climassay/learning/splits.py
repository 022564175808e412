"""Splits that leave nothing of a test item in training: whole groups, and no near copies.

Rows of one claim, passage, article or report section belong together, and so do texts that say nearly the same: a split
by rows would test a model on what it has read.
"""

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.claim_identity import bare_words
from climassay.errors import InputError
from climassay.models.contract import Encoder

M = TypeVar("M")
S = TypeVar("S")
Item = TypeVar("Item")
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIMILAR = 0.9
"""Cosine from which on two texts count as one."""
FOLDS = 5
_ROWS_AT_ONCE = 1024


class Split(NamedTuple):
    """Places of training and test items, ascending."""

    train: IntArray
    test: IntArray


class NearDuplicates:
    """Pairs of texts that say nearly the same: the same words, or vectors that are nearly the same."""

    def __init__(
        self,
        texts: Sequence[str],
        encoder: Encoder | None = None,
        *,
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        """Find them by words and by unit vectors [texts, width], which are given or made where there is an encoder."""
        self._size = len(texts)
        first: dict[str, int] = {}
        same = [(place, first.setdefault(bare_words(text), place)) for place, text in enumerate(texts)]
        results = [np.array([pair for pair in same if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)]
        if vectors is None and encoder is not None and texts:
            vectors = encoder.encode(list(texts))
        if vectors is not None:
            for start in range(0, len(vectors), _ROWS_AT_ONCE):
                alike = np.nonzero(vectors[start : start + _ROWS_AT_ONCE] @ vectors[start:].T >= SIMILAR)
                pairs = np.stack(alike, axis=1) + start
                results.append(pairs[pairs[:, 0] < pairs[:, 1]])
        self._pairs = np.concatenate(results)

    def __len__(self) -> int:
        """Pairs."""
        return len(np.unique(np.sort(self._pairs, axis=1), axis=0))

    def of(self, places: IntArray) -> IntArray:
        """Places, ascending, of texts that are nearly the same as one of these (places of shape [given])."""
        both = np.concatenate([self._pairs, self._pairs[:, ::-1]])
        return np.unique(both[np.isin(both[:, 0], places), 1])

    def groups(self) -> IntArray:
        """Number of each text's group, shape [texts]: where a is like b and b like c, all three are one group."""
        leaders = list(range(self._size))

        def leader(place: int) -> int:
            while leaders[place] != place:
                place = leaders[place]
            return place

        for one, other in self._pairs.tolist():
            leaders[leader(one)] = leader(other)
        results = [leader(place) for place in range(self._size)]
        return np.unique(results, return_inverse=True)[1].reshape(-1).astype(np.int64)


def group_folds(
    groups: ArrayLike,
    folds: int = FOLDS,
    *,
    seed: int = 0,
    labels: ArrayLike | None = None,
    even: bool = False,
    in_turn: bool = False,
) -> IntArray:
    """Deal whole groups into folds.

    Args:
        groups: Shape [items], any labels.
        folds: Wanted number; fewer where there are fewer groups.
        seed: Decides the deal.
        labels: Shape [items], 0 or 1: give each fold about the same share of both (stratified). Groups with the most
            zeros go first, each to the fold that has fewest zeros so far.
        even: Deal the largest groups first, each into the emptiest fold, so that folds are of like size.
        in_turn: Deal the shuffled groups one fold after the other; otherwise each group's place in a shuffle decides.

    Returns:
        Fold of each item, shape [items].

    Raises:
        InputError: Fewer than two folds or two groups.
    """
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    count = min(folds, len(names))
    if count < 2:
        raise InputError(
            f"Cross-validation needs at least two folds and two groups to put into them, not {folds} and {len(names)}."
        )
    generator = np.random.default_rng(seed)
    if in_turn:
        fold_of = np.empty(len(names), dtype=np.int64)
        fold_of[generator.permutation(len(names))] = np.arange(len(names)) % count
        return np.asarray(fold_of[group], dtype=np.int64)
    if labels is None and not even:
        return np.asarray((generator.permutation(len(names)) % count)[group], dtype=np.int64)
    sizes = np.bincount(group)
    zeros = np.zeros(len(names)) if labels is None else np.bincount(group, weights=1 - np.asarray(labels))
    order = np.argsort(generator.random(len(names))) if labels is None else generator.permutation(len(names))
    order = order[np.lexsort((-sizes[order], -zeros[order]))]
    fold_of, loads = np.zeros(len(names), dtype=np.int64), np.zeros((count, 2))
    for one in order:
        fold = min(range(count), key=lambda f: (loads[f, 0] if zeros[one] else 0, loads[f, 1], f))
        fold_of[one] = fold
        loads[fold] += zeros[one], sizes[one]
    return np.asarray(fold_of[group], dtype=np.int64)


def splits_of(folds: IntArray, duplicates: NearDuplicates | None = None) -> Iterator[Split]:
    """One split per fold [items], negative ones in none; near copies of test items are left out of training."""
    for fold in np.unique(folds[folds >= 0]):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero((folds >= 0) & (folds != fold))
        yield Split(train if duplicates is None else np.setdiff1d(train, duplicates.of(test), assume_unique=True), test)


def held_out(
    splits: Iterable[Split], fit: Callable[[IntArray], M], predict: Callable[[M, IntArray], FloatArray], items: int
) -> FloatArray:
    """Predictions of items by models that were fitted without them: cross-validation, for anything that is learned.

    ``fit`` makes a model of places, ``predict`` predictions of a model and places, shape [places, ...].

    Returns:
        Shape [items, ...]; NaN for items that no split tests.
    """
    results = np.full(items, np.nan)
    for split in splits:
        given = predict(fit(split.train), split.test)
        if results.shape[1:] != given.shape[1:]:
            results = np.full((items, *given.shape[1:]), np.nan)
        results[split.test] = given
    return results


def sample(items: Sequence[Item], limit: int | None, seed: int = 0) -> tuple[Item, ...]:
    """So many items drawn at random, in their order; all of them where ``limit`` is None or not smaller."""
    if limit is None or limit >= len(items):
        return tuple(items)
    chosen = np.random.default_rng(seed).choice(len(items), limit, replace=False)
    return tuple(items[place] for place in sorted(chosen.tolist()))


def hold_out(groups: IntArray, wanted: float, *, seed: int = 0) -> Split:
    """Hold whole groups, shape [items] from 0, out of training: so many items, or fewer where no group fits.

    Below 1 it is a share of the items.

    Raises:
        InputError: There are not more items than are to be held out.
    """
    if not 0 <= wanted < len(groups):
        raise InputError(f"{wanted:g} items cannot be held out of {len(groups)}: some must remain for training.")
    sizes, room = np.bincount(groups), int(wanted * len(groups) if wanted < 1 else wanted)
    taken = np.zeros(len(sizes), dtype=bool)
    for group in groups[np.random.default_rng(seed).permutation(len(groups))]:
        if not taken[group] and sizes[group] <= room:
            taken[group] = True
            room -= int(sizes[group])
    return Split(np.flatnonzero(~taken[groups]), np.flatnonzero(taken[groups]))


def random_split(groups: ArrayLike, share: float, *, seed: int | Sequence[int] = 0) -> Split:
    """Test on whole groups, shape [items], in random order, until they hold a share of the items; one group is left."""
    given = np.asarray(groups)
    order = np.random.default_rng(seed).permutation(np.unique(given))
    wanted, taken, size = share * len(given), [], 0
    for group in order[:-1]:
        if size >= wanted:
            break
        taken.append(group)
        size += int((given == group).sum())
    inside = np.isin(given, taken)
    return Split(np.flatnonzero(~inside), np.flatnonzero(inside))


def split_groups(
    items: Sequence[Item], groups: Sequence[Hashable], share: float, *, seed: int = 0
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Split items so that no group, for example the questions of one passage, appears on both sides.

    Args:
        items: In any order, which both sides keep.
        groups: Of each item.
        share: Of the items, for the second side, met as closely as whole groups in random order allow.
        seed: Decides which.

    Raises:
        InputError: There are fewer than two groups, or the share is none.
    """
    if not 0 < share < 1:
        raise InputError(f"The validation share is {share}: give a number between 0 and 1, for example 0.1.")
    order = list(dict.fromkeys(groups))
    if len(order) < 2:
        raise InputError("Nothing can be held out: all of it comes from one text; give separate validation data.")
    random.Random(seed).shuffle(order)
    sizes = Counter(groups)
    wanted, held, chosen = share * len(items), 0, set[Hashable]()
    for group in order[:-1]:
        if chosen and held + sizes[group] / 2 > wanted:
            continue
        chosen.add(group)
        held += sizes[group]
    pairs = list(zip(items, groups, strict=True))
    return (
        tuple(item for item, group in pairs if group not in chosen),
        tuple(item for item, group in pairs if group in chosen),
    )
