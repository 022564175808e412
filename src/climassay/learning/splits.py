"""Splits into training and test items that have neither groups nor near-duplicate texts in common.

Rows of one claim, passage, article or report section form a group. Splitting by rows would test a model on texts that
it was trained on, or that say nearly the same.
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

DUPLICATE_COSINE = 0.9
"""Minimum cosine similarity at which two texts count as near duplicates."""
FOLDS = 5
_ROWS_AT_ONCE = 1024


class Split(NamedTuple):
    """Ascending indices of the training items and of the test items."""

    train: IntArray
    test: IntArray


class NearDuplicates:
    """Pairs of texts that have the same words or similar embeddings."""

    def __init__(
        self, texts: Sequence[str], encoder: Encoder | None = None, *, vectors: NDArray[np.float32] | None = None
    ) -> None:
        """Find the pairs of near duplicates, by the words of the texts and by the similarity of their embeddings.

        Args:
            texts: Texts to compare.
            encoder: Encoder of the texts. Without encoder and vectors, only words are compared.
            vectors: Embeddings of the texts as unit vectors, shape [texts, width]; computed by the encoder if None.
        """
        self._n_texts = len(texts)
        first_index: dict[str, int] = {}
        equal_pairs = [(index, first_index.setdefault(bare_words(text), index)) for index, text in enumerate(texts)]
        results = [np.array([pair for pair in equal_pairs if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)]
        if vectors is None and encoder is not None and texts:
            vectors = encoder.encode(list(texts))
        if vectors is not None:
            for start in range(0, len(vectors), _ROWS_AT_ONCE):
                is_similar = np.nonzero(vectors[start : start + _ROWS_AT_ONCE] @ vectors[start:].T >= DUPLICATE_COSINE)
                pairs = np.stack(is_similar, axis=1) + start
                results.append(pairs[pairs[:, 0] < pairs[:, 1]])
        self._pairs = np.concatenate(results)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(np.unique(np.sort(self._pairs, axis=1), axis=0))

    def of(self, indices: IntArray) -> IntArray:
        """Return the indices, shape [near duplicates], of all near duplicates of some texts, in ascending order."""
        both_orders = np.concatenate([self._pairs, self._pairs[:, ::-1]])
        return np.unique(both_orders[np.isin(both_orders[:, 0], indices), 1])

    def groups(self) -> IntArray:
        """Return the group index of each text, shape [texts]; chains of near duplicates form one group."""
        parents = list(range(self._n_texts))

        def find_root(index: int) -> int:
            while parents[index] != index:
                index = parents[index]
            return index

        for first_index, second_index in self._pairs.tolist():
            parents[find_root(first_index)] = find_root(second_index)
        roots = [find_root(index) for index in range(self._n_texts)]
        return np.unique(roots, return_inverse=True)[1].reshape(-1).astype(np.int64)


def group_folds(
    groups: ArrayLike,
    folds: int = FOLDS,
    *,
    seed: int = 0,
    labels: ArrayLike | None = None,
    even: bool = False,
    round_robin: bool = False,
) -> IntArray:
    """Assign whole groups to folds at random.

    Args:
        groups: Group of each item, shape [items].
        folds: Number of folds; at most one fold for each group is used.
        seed: Seed of the assignment.
        labels: Labels 0 or 1, shape [items], for stratified folds, in which their proportions are similar.
        even: Make the folds similar in size.
        round_robin: Assign the shuffled groups to the folds in turn. Otherwise, each group gets a random number from a
            permutation, and its fold is that number modulo the number of folds. Both give folds with similar numbers of
            groups.

    Returns:
        Fold of each item, shape [items].

    Raises:
        InputError: There are fewer than two folds or fewer than two groups.
    """
    names, group_indices = np.unique(np.asarray(groups), return_inverse=True)
    n_folds = min(folds, len(names))
    if n_folds < 2:
        raise InputError(
            f"Cross-validation needs at least two folds and two groups to put into them, not {folds} and {len(names)}."
        )
    generator = np.random.default_rng(seed)
    if round_robin:
        group_fold = np.empty(len(names), dtype=np.int64)
        group_fold[generator.permutation(len(names))] = np.arange(len(names)) % n_folds
        return np.asarray(group_fold[group_indices], dtype=np.int64)
    if labels is None and not even:
        return np.asarray((generator.permutation(len(names)) % n_folds)[group_indices], dtype=np.int64)
    sizes = np.bincount(group_indices)
    zeros = np.zeros(len(names)) if labels is None else np.bincount(group_indices, weights=1 - np.asarray(labels))
    order = np.argsort(generator.random(len(names))) if labels is None else generator.permutation(len(names))
    # Groups with the most zeros, and then the largest groups, are assigned first.
    order = order[np.lexsort((-sizes[order], -zeros[order]))]
    group_fold, fold_totals = np.zeros(len(names), dtype=np.int64), np.zeros((n_folds, 2))
    for group in order:
        fold = min(
            range(n_folds), key=lambda fold: (fold_totals[fold, 0] if zeros[group] else 0, fold_totals[fold, 1], fold)
        )
        group_fold[group] = fold
        fold_totals[fold] += zeros[group], sizes[group]
    return np.asarray(group_fold[group_indices], dtype=np.int64)


def iterate_splits(folds: IntArray, duplicates: NearDuplicates | None = None) -> Iterator[Split]:
    """Yield a split for each fold, which is the test set; all other folds are the training set.

    Args:
        folds: Fold of each item, shape [items]; items with a negative fold are in no split.
        duplicates: Near duplicates among the items; those of test items are excluded from training.
    """
    for fold in np.unique(folds[folds >= 0]):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero((folds >= 0) & (folds != fold))
        yield Split(train if duplicates is None else np.setdiff1d(train, duplicates.of(test), assume_unique=True), test)


def cross_predict(
    splits: Iterable[Split], fit: Callable[[IntArray], M], predict: Callable[[M, IntArray], FloatArray], items: int
) -> FloatArray:
    """Predict each item by a model that was fitted without it.

    Args:
        splits: Splits of the items.
        fit: Function that fits a model to the items with the given indices.
        predict: Function that returns a model's predictions for the items with the given indices, shape [indices, ...].
        items: Number of items.

    Returns:
        Predictions, shape [items, ...]; NaN for items that are in no test set.
    """
    results = np.full(items, np.nan)
    for split in splits:
        predictions = predict(fit(split.train), split.test)
        if results.shape[1:] != predictions.shape[1:]:
            results = np.full((items, *predictions.shape[1:]), np.nan)
        results[split.test] = predictions
    return results


def sample(items: Sequence[Item], limit: int | None, seed: int = 0) -> tuple[Item, ...]:
    """Draw up to ``limit`` items at random without changing their order; None returns all items."""
    if limit is None or limit >= len(items):
        return tuple(items)
    indices = np.random.default_rng(seed).choice(len(items), limit, replace=False)
    return tuple(items[index] for index in sorted(indices.tolist()))


def hold_out(groups: IntArray, amount: float, *, seed: int = 0) -> Split:
    """Hold out random whole groups with at most the requested number of items.

    Args:
        groups: Group index of each item, shape [items].
        amount: Number of items to hold out, or a proportion of the items if it is below 1.
        seed: Seed of the draw.

    Raises:
        InputError: No item would remain for training.
    """
    if not 0 <= amount < len(groups):
        raise InputError(f"{amount:g} items cannot be held out of {len(groups)}: some must remain for training.")
    sizes, n_remaining = np.bincount(groups), int(amount * len(groups) if amount < 1 else amount)
    is_held_out = np.zeros(len(sizes), dtype=bool)
    for group in groups[np.random.default_rng(seed).permutation(len(groups))]:
        if not is_held_out[group] and sizes[group] <= n_remaining:
            is_held_out[group] = True
            n_remaining -= int(sizes[group])
    return Split(np.flatnonzero(~is_held_out[groups]), np.flatnonzero(is_held_out[groups]))


def split_groups(
    items: Sequence[Item], groups: Sequence[Hashable], share: float, *, seed: int = 0
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Split items into two parts so that no group, for example the questions from one passage, is in both parts.

    Args:
        items: Items to split; both parts keep their order.
        groups: Group of each item.
        share: Proportion of the items in the second part, which whole groups in random order approximate.
        seed: Seed of the draw.

    Raises:
        InputError: There are fewer than two groups, or the proportion is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError(f"The validation share is {share}: give a number between 0 and 1, for example 0.1.")
    shuffled_groups = list(dict.fromkeys(groups))
    if len(shuffled_groups) < 2:
        raise InputError("Nothing can be held out: all of it comes from one text; give separate validation data.")
    random.Random(seed).shuffle(shuffled_groups)
    sizes = Counter(groups)
    target_size, size, second_groups = share * len(items), 0, set[Hashable]()
    for group in shuffled_groups[:-1]:
        if second_groups and size + sizes[group] / 2 > target_size:
            continue
        second_groups.add(group)
        size += sizes[group]
    pairs = list(zip(items, groups, strict=True))
    return (
        tuple(item for item, group in pairs if group not in second_groups),
        tuple(item for item, group in pairs if group in second_groups),
    )
