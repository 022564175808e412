"""Which claims are too much alike to stand on both sides of a split."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import bare_words
from climassay.errors import InputError
from climassay.models.contract import Encoder

IntArray = NDArray[np.int64]

SIMILAR = 0.9
"""Cosine from which on two claims count as one."""


def claim_groups(claims: Sequence[str], encoder: Encoder | None = None, *, similar: float = SIMILAR) -> IntArray:
    """Number claims so that those of the same words, or of nearly the same vector, have the same number.

    Groups are closed: where a is like b and b like c, all three are one group.

    Args:
        claims: Texts.
        encoder: For vectors; None compares words only.
        similar: Least cosine of two claims of one group.

    Returns:
        Shape [claims], from 0.
    """
    leaders = np.arange(len(claims))
    first: dict[str, int] = {}
    for place, claim in enumerate(claims):
        _join(leaders, place, first.setdefault(bare_words(claim), place))
    if encoder is not None and len(claims):
        vectors = encoder.encode(list(claims))
        for one, other in zip(*np.nonzero(np.triu(vectors @ vectors.T >= similar, 1)), strict=True):
            _join(leaders, int(one), int(other))
    found = [_leader(leaders, place) for place in range(len(claims))]
    return np.unique(found, return_inverse=True)[1].reshape(-1).astype(np.int64)


def split_claims(groups: IntArray, held_out: int, *, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Split claims by whole groups.

    Args:
        groups: Shape [claims], as :func:`claim_groups` gives them.
        held_out: Claims of the second part; fewer where no group of the right size is left.
        seed: Decides the split.

    Returns:
        Places of the training claims and of the held-out ones, ascending.

    Raises:
        InputError: There are not more claims than are to be held out.
    """
    if not 0 <= held_out < len(groups):
        raise InputError(f"{held_out} claims cannot be held out of {len(groups)}: some must be left for training.")
    sizes = np.bincount(groups)
    taken = np.zeros(len(sizes), dtype=bool)
    room = held_out
    for group in groups[np.random.default_rng(seed).permutation(len(groups))]:
        if not taken[group] and sizes[group] <= room:
            taken[group] = True
            room -= int(sizes[group])
    outside = taken[groups]
    return np.flatnonzero(~outside), np.flatnonzero(outside)


def group_folds(groups: IntArray, folds: int, *, seed: int = 0) -> IntArray:
    """Deal groups into folds; shape [claims]. Fewer folds where there are fewer groups.

    Raises:
        InputError: Fewer than two groups.
    """
    count = len(np.unique(groups))
    if count < 2 or folds < 2:
        raise InputError(
            f"Cross-validation needs at least two folds and two different claims, not {folds} and {count}."
        )
    return (np.random.default_rng(seed).permutation(int(groups.max()) + 1) % min(folds, count))[groups]


def _leader(leaders: IntArray, place: int) -> int:
    while leaders[place] != place:
        place = int(leaders[place])
    return place


def _join(leaders: IntArray, one: int, other: int) -> None:
    leaders[_leader(leaders, one)] = _leader(leaders, other)
