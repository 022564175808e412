"""Who is trained on and who is tested: folds that share no group, and no item."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from climassay.errors import InputError
from climassay.judging.items import Item
from climassay.judging.preferences import IntArray
from climassay.learning.splits import group_folds


@dataclass(frozen=True, slots=True)
class Fold:
    """One split into labelled items to learn from and items to be judged."""

    number: int
    train: IntArray
    """Indices of items."""
    train_pairs: IntArray
    """Unordered pairs of training items, [pairs, 2]."""
    test: IntArray
    test_pairs: IntArray
    """Unordered pairs of test items, [pairs, 2]."""


def make_folds(
    items: Sequence[Item],
    *,
    train_items: int = 100,
    folds: int = 3,
    pairs_per_item: int | None = None,
    seed: int = 0,
) -> tuple[Fold, ...]:
    """Split items by group, or by item where all form one group.

    Every group is tested once. Of the other folds' groups, whole ones are drawn for training until they hold
    ``train_items`` items; the same seed draws the same order, so that a smaller training set is part of a larger one.

    Args:
        items: Labelled items.
        train_items: How many labels may be used; of the group that would exceed them, the first items are taken.
        folds: Number of folds.
        pairs_per_item: In one large group, compare each item with so many others instead of all.
        seed: Of the assignment and of the draws.

    Raises:
        InputError: Unlabelled items, too few groups or items for the folds, or a fold without two items to compare.
    """
    if any(item.label is None for item in items):
        raise InputError("A benchmark needs a label for every item: name the column with --aspect or --label.")
    groups = [item.group for item in items]
    names = sorted(set(groups))
    one = len(names) == 1
    units = np.arange(len(items)) if one else np.array([names.index(group) for group in groups])
    count = int(units.max()) + 1
    least = 2 if one else 1
    if folds < 2 or count < folds * least:
        raise InputError(
            f"{folds} folds need at least {max(2, folds) * least} {'items' if one else 'groups'}, there are {count}."
        )
    of_unit = group_folds(np.arange(count), folds, seed=seed, in_turn=True)
    made = []
    for number in range(folds):
        test = np.flatnonzero(of_unit[units] == number)
        pool = [unit for unit in np.random.default_rng([seed, number]).permutation(count) if of_unit[unit] != number]
        chosen = [index for unit in pool for index in np.flatnonzero(units == unit)][:train_items]
        train = np.sort(np.array(chosen, dtype=np.int64))
        draw = np.random.default_rng([seed, number, 1])
        made.append(
            Fold(
                number,
                train,
                pairs_within(groups, train, pairs_per_item, draw),
                test,
                pairs_within(groups, test, pairs_per_item, draw),
            )
        )
    _check_pairs(made)
    return tuple(made)


def _check_pairs(folds: Sequence[Fold]) -> None:
    if not any(len(fold.test_pairs) for fold in folds):
        raise InputError(
            "Every item is the only one of its group, so no two can be compared: name another column with --group, or "
            "none."
        )
    empty = next((fold for fold in folds if not len(fold.train_pairs)), None)
    if empty is not None:
        raise InputError(
            f"No two of the {len(empty.train)} training items of fold {empty.number + 1} belong to one group: allow "
            "more with --train-items, or fewer folds."
        )


def pairs_within(
    groups: Sequence[str], members: IntArray, per_item: int | None, generator: np.random.Generator
) -> IntArray:
    """Unordered pairs of items of one group, all of them or about ``per_item`` for each item; [pairs, 2], sorted."""
    found: list[tuple[int, int]] = []
    by_group: dict[str, list[int]] = {}
    for index in members.tolist():
        by_group.setdefault(groups[index], []).append(index)
    for group in by_group.values():
        n = len(group)
        if per_item is None or per_item >= n - 1:
            found += [(a, b) for place, a in enumerate(group) for b in group[place + 1 :]]
            continue
        # Neighbours on a shuffled ring: every item meets as many others, and all are connected.
        ring = generator.permutation(group).tolist()
        steps = range(1, (per_item + 1) // 2 + 1)
        met = [(ring[place], ring[(place + step) % n]) for step in steps for place in range(n)]
        found += [(min(pair), max(pair)) for pair in met]
    return np.array(sorted(set(found)), dtype=np.int64).reshape(-1, 2)
