"""Active learning: which drafts experts should label next."""

from collections.abc import Sequence, Sized
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError

FloatArray = NDArray[np.float64]
Acquisition = Literal["random", "paper", "margin", "diverse"]
"""Strategy for choosing drafts to label. ``random``; ``paper``: random, but drafts judged with a confidence above 0.85
are dropped with probability 0.5;
``margin``: the least confident first; ``diverse``: the least confident of each cluster of similar drafts."""
STRATEGIES: tuple[Acquisition, ...] = get_args(Acquisition)
MAX_CONFIDENCE = 0.85
"""Confidence above which the strategy ``paper`` drops a draft with probability :data:`DROP_PROBABILITY` (ClimaQA,
section 4.4)."""
DROP_PROBABILITY = 0.5


def choose_next(
    drafts: Sized,
    probabilities: Sequence[float | None] | FloatArray | None,
    vectors: ArrayLike | None,
    n: int,
    strategy: Acquisition = "margin",
    seed: int = 0,
) -> list[int]:
    """Return the indices of the drafts that an expert should label next, the first one first.

    Args:
        drafts: Unlabelled drafts.
        probabilities: P(valid) of each draft; None, for one draft or for all, counts as 0.5.
        vectors: Unit vectors, shape [drafts, width]; required by ``diverse``.
        n: Maximum number of indices.
        strategy: See :data:`Acquisition`.
        seed: Seed of all random choices, including the order of ties.

    Raises:
        InputError: The number of probabilities or vectors differs from the number of drafts, or there is no such
            strategy.
    """
    size = len(drafts)
    p_valid = np.full(size, 0.5) if probabilities is None else np.array(probabilities, dtype=np.float64)
    if len(p_valid) != size:
        raise InputError(f"There are {len(p_valid)} probabilities for {size} drafts: give one for each.")
    p_valid = np.nan_to_num(p_valid, nan=0.5)
    if strategy not in STRATEGIES:
        raise InputError(f"There is no strategy {strategy!r}: there are {', '.join(STRATEGIES)}.")
    count = min(max(0, n), size)
    generator = np.random.default_rng(seed)
    order = shuffled = generator.permutation(size)
    if strategy == "paper":
        is_confident = np.maximum(p_valid, 1 - p_valid) > MAX_CONFIDENCE
        # Dropped drafts come last.
        is_dropped = (is_confident & (generator.random(size) < DROP_PROBABILITY))[shuffled]
        order = np.concatenate([shuffled[~is_dropped], shuffled[is_dropped]])
    elif strategy != "random":
        # A stable sort of shuffled indices leaves ties in random order.
        order = shuffled[np.argsort(np.abs(p_valid[shuffled] - 0.5), kind="stable")]
    if strategy == "diverse":
        if vectors is None or len(points := np.asarray(vectors, dtype=np.float64)) != size:
            raise InputError("The strategy diverse compares drafts: give it one vector for each draft.")
        if count:
            from sklearn.cluster import KMeans

            n_clusters = min(count, len(np.unique(points, axis=0)))
            clusters = KMeans(n_clusters, n_init=1, random_state=seed).fit(points).labels_
            # The least confident draft of each cluster, then the others by margin.
            leaders = order[np.sort(np.unique(clusters[order], return_index=True)[1])]
            order = np.concatenate([leaders, order[~np.isin(order, leaders)]])
    return [int(index) for index in order[:count]]
