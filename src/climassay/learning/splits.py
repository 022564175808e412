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
    """Indices of training and test items, ascending."""

    train: IntArray
    test: IntArray


class NearDuplicates:
    """Pairs of texts with the same words, or with nearly the same vectors."""

    def __init__(
        self,
        texts: Sequence[str],
        encoder: Encoder | None = None,
        *,
        vectors: NDArray[np.float32] | None = None,
    ) -> None:
        """Find pairs by words, and by unit vectors [texts, width], which the encoder computes if they are not given."""
        self._size = len(texts)
        first: dict[str, int] = {}
        equal_pairs = [(index, first.setdefault(bare_words(text), index)) for index, text in enumerate(texts)]
        results = [np.array([pair for pair in equal_pairs if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)]
        if vectors is None and encoder is not None and texts:
            vectors = encoder.encode(list(texts))
        if vectors is not None:
            for start in range(0, len(vectors), _ROWS_AT_ONCE):
                is_similar = np.nonzero(vectors[start : start + _ROWS_AT_ONCE] @ vectors[start:].T >= SIMILAR)
                pairs = np.stack(is_similar, axis=1) + start
                results.append(pairs[pairs[:, 0] < pairs[:, 1]])
        self._pairs = np.concatenate(results)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(np.unique(np.sort(self._pairs, axis=1), axis=0))

    def of(self, indices: IntArray) -> IntArray:
        """Return indices, ascending, of near duplicates of the given texts, whose indices have the shape [n]."""
        both_orders = np.concatenate([self._pairs, self._pairs[:, ::-1]])
        return np.unique(both_orders[np.isin(both_orders[:, 0], indices), 1])

    def groups(self) -> IntArray:
        """Return the group index of each text, shape [texts]; chains of near duplicates form one group."""
        leaders = list(range(self._size))

        def leader(index: int) -> int:
            while leaders[index] != index:
                index = leaders[index]
            return index

        for first, second in self._pairs.tolist():
            leaders[leader(first)] = leader(second)
        results = [leader(index) for index in range(self._size)]
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
    """Assign whole groups to folds.

    Args:
        groups: Shape [items], any labels.
        folds: Number of folds; fewer if there are fewer groups.
        seed: Seed of the assignment.
        labels: Shape [items], 0 or 1: give each fold about the same share of both (stratified). Groups with most zeros
            go first, each to the fold with fewest zeros.
        even: Assign the largest groups first, each to the smallest fold, so that folds are of like size.
        in_turn: Assign the shuffled groups to the folds in turn; otherwise the position of each group in a shuffle
            decides.

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
    for name_index in order:
        fold = min(range(count), key=lambda f: (loads[f, 0] if zeros[name_index] else 0, loads[f, 1], f))
        fold_of[name_index] = fold
        loads[fold] += zeros[name_index], sizes[name_index]
    return np.asarray(fold_of[group], dtype=np.int64)


def splits_of(folds: IntArray, duplicates: NearDuplicates | None = None) -> Iterator[Split]:
    """Yield a split for each fold [items] from 0, without near duplicates of test items in training."""
    for fold in np.unique(folds[folds >= 0]):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero((folds >= 0) & (folds != fold))
        yield Split(train if duplicates is None else np.setdiff1d(train, duplicates.of(test), assume_unique=True), test)


def held_out(
    splits: Iterable[Split], fit: Callable[[IntArray], M], predict: Callable[[M, IntArray], FloatArray], items: int
) -> FloatArray:
    """Return cross-validated predictions of items by models that were fitted without them.

    ``fit`` makes a model from indices, ``predict`` returns predictions of a model for indices, shape [indices, ...].

    Returns:
        Shape [items, ...]; NaN for items that no split tests.
    """
    results = np.full(items, np.nan)
    for split in splits:
        predictions = predict(fit(split.train), split.test)
        if results.shape[1:] != predictions.shape[1:]:
            results = np.full((items, *predictions.shape[1:]), np.nan)
        results[split.test] = predictions
    return results


def sample(items: Sequence[Item], limit: int | None, seed: int = 0) -> tuple[Item, ...]:
    """Return items drawn at random, in their order; all of them if ``limit`` is None or not smaller."""
    if limit is None or limit >= len(items):
        return tuple(items)
    indices = np.random.default_rng(seed).choice(len(items), limit, replace=False)
    return tuple(items[index] for index in sorted(indices.tolist()))


def hold_out(groups: IntArray, amount: float, *, seed: int = 0) -> Split:
    """Hold whole groups, shape [items] from 0, out of training until no further group fits.

    ``amount`` is a number of items, or a share of them if it is below 1.

    Raises:
        InputError: No item would remain for training.
    """
    if not 0 <= amount < len(groups):
        raise InputError(f"{amount:g} items cannot be held out of {len(groups)}: some must remain for training.")
    sizes, remaining = np.bincount(groups), int(amount * len(groups) if amount < 1 else amount)
    is_held_out = np.zeros(len(sizes), dtype=bool)
    for group in groups[np.random.default_rng(seed).permutation(len(groups))]:
        if not is_held_out[group] and sizes[group] <= remaining:
            is_held_out[group] = True
            remaining -= int(sizes[group])
    return Split(np.flatnonzero(~is_held_out[groups]), np.flatnonzero(is_held_out[groups]))


def random_split(groups: ArrayLike, share: float, *, seed: int | Sequence[int] = 0) -> Split:
    """Test on random whole groups, shape [items], until they hold a share of the items; one group is left."""
    group_ids = np.asarray(groups)
    order = np.random.default_rng(seed).permutation(np.unique(group_ids))
    min_size, test_groups, size = share * len(group_ids), [], 0
    for group in order[:-1]:
        if size >= min_size:
            break
        test_groups.append(group)
        size += int((group_ids == group).sum())
    is_test = np.isin(group_ids, test_groups)
    return Split(np.flatnonzero(~is_test), np.flatnonzero(is_test))


def split_groups(
    items: Sequence[Item], groups: Sequence[Hashable], share: float, *, seed: int = 0
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Split items so that no group, for example the questions of one passage, appears on both sides.

    Args:
        items: In any order, which both sides keep.
        groups: Group of each item.
        share: Share of the items on the second side, approximated by whole groups in random order.
        seed: Seed of the draw.

    Raises:
        InputError: There are fewer than two groups, or the share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError(f"The validation share is {share}: give a number between 0 and 1, for example 0.1.")
    order = list(dict.fromkeys(groups))
    if len(order) < 2:
        raise InputError("Nothing can be held out: all of it comes from one text; give separate validation data.")
    random.Random(seed).shuffle(order)
    sizes = Counter(groups)
    target_size, size, second_groups = share * len(items), 0, set[Hashable]()
    for group in order[:-1]:
        if second_groups and size + sizes[group] / 2 > target_size:
            continue
        second_groups.add(group)
        size += sizes[group]
    pairs = list(zip(items, groups, strict=True))
    return (
        tuple(item for item, group in pairs if group not in second_groups),
        tuple(item for item, group in pairs if group in second_groups),
    )
