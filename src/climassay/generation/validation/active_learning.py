"""Active learning: which drafts experts should label next."""

from collections.abc import Sequence, Sized
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError

FloatArray = NDArray[np.float64]
Acquisition = Literal["random", "paper", "margin", "diverse"]
"""Strategy for choosing drafts to label. ``random``: in random order. ``paper``: in random order, but drafts judged
with a confidence above 0.85 are dropped with probability 0.5. ``margin``: the least confident first. ``diverse``: the
least confident of each cluster of similar drafts."""
STRATEGIES: tuple[Acquisition, ...] = get_args(Acquisition)
MAX_CONFIDENCE = 0.85
"""Maximum confidence of drafts that the strategy ``paper`` always keeps; others are dropped with probability
:data:`DROP_PROBABILITY` (ClimaQA, section 4.4)."""
DROP_PROBABILITY = 0.5


def choose_next(
    drafts: Sized,
    probabilities: Sequence[float | None] | FloatArray | None,
    vectors: ArrayLike | None,
    n: int,
    strategy: Acquisition = "margin",
    seed: int = 0,
) -> list[int]:
    """Return the indices of the drafts that an expert should label next, in this order.

    Args:
        drafts: Unlabelled drafts.
        probabilities: P(valid) of each draft; a missing probability, or None for all, counts as 0.5.
        vectors: Unit vectors, shape [drafts, width]; required by ``diverse``.
        n: Maximum number of indices.
        strategy: See :data:`Acquisition`.
        seed: Seed of all random choices, including the order of ties.

    Raises:
        InputError: The number of probabilities or vectors differs from the number of drafts, or the strategy does not
            exist.
    """
    n_drafts = len(drafts)
    p_valid = np.full(n_drafts, 0.5) if probabilities is None else np.array(probabilities, dtype=np.float64)
    if len(p_valid) != n_drafts:
        raise InputError(f"There are {len(p_valid)} probabilities for {n_drafts} drafts: give one for each.")
    p_valid = np.nan_to_num(p_valid, nan=0.5)
    if strategy not in STRATEGIES:
        raise InputError(f"There is no strategy {strategy!r}: there are {', '.join(STRATEGIES)}.")
    n_chosen = min(max(0, n), n_drafts)
    generator = np.random.default_rng(seed)
    sorted_indices = shuffled_indices = generator.permutation(n_drafts)
    if strategy == "paper":
        is_confident = np.maximum(p_valid, 1 - p_valid) > MAX_CONFIDENCE
        # Dropped drafts come last.
        is_dropped = (is_confident & (generator.random(n_drafts) < DROP_PROBABILITY))[shuffled_indices]
        sorted_indices = np.concatenate([shuffled_indices[~is_dropped], shuffled_indices[is_dropped]])
    elif strategy != "random":
        # A stable sort of shuffled indices leaves ties in random order.
        sorted_indices = shuffled_indices[np.argsort(np.abs(p_valid[shuffled_indices] - 0.5), kind="stable")]
    if strategy == "diverse":
        if vectors is None or len(draft_vectors := np.asarray(vectors, dtype=np.float64)) != n_drafts:
            raise InputError("The strategy diverse compares drafts: give it one vector for each draft.")
        if n_chosen:
            from sklearn.cluster import KMeans

            n_clusters = min(n_chosen, len(np.unique(draft_vectors, axis=0)))
            clusters = KMeans(n_clusters, n_init=1, random_state=seed).fit(draft_vectors).labels_
            # The least confident draft of each cluster, then the others by margin.
            leaders = sorted_indices[np.sort(np.unique(clusters[sorted_indices], return_index=True)[1])]
            sorted_indices = np.concatenate([leaders, sorted_indices[~np.isin(sorted_indices, leaders)]])
    return [int(index) for index in sorted_indices[:n_chosen]]
