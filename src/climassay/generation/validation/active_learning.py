"""Active learning: which drafts to have labelled next, and what that would have saved on labels that are known already.

In a simulation drafts are labelled, a validator fitted and the next ones chosen. Every strategy starts from the same
labelled drafts of a split, and is measured on the same passages that it never sees. Nothing is random but what the seed
of the split decides, and each split is stored as soon as it is done.
"""

from collections.abc import Sequence, Sized
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Acquisition = Literal["random", "paper", "margin", "diverse"]
"""``random``; ``paper``: drafts judged with a confidence above 0.85 are dropped with probability one half, then chance;
``margin``: the least confident first; ``diverse``: the least confident of each cluster of like drafts."""
STRATEGIES: tuple[Acquisition, ...] = get_args(Acquisition)
CONFIDENT = 0.85
"""Above it the paper drops a draft with probability :data:`DROPPED` (ClimaQA, section 4.4)."""
DROPPED = 0.5

Measure = Literal["precision", "kept", "precision_at_share", "auroc"]
MEASURES: tuple[Measure, ...] = ("precision", "kept", "precision_at_share", "auroc")
_COMPARED: tuple[Measure, ...] = ("precision", "precision_at_share", "auroc")
_BASE: Acquisition = "random"
_SHOWN = 6
"""Label counts of the table of the screen."""


def choose_next(
    drafts: Sized,
    probabilities: Sequence[float | None] | FloatArray | None,
    vectors: ArrayLike | None,
    n: int,
    strategy: Acquisition = "margin",
    seed: int = 0,
) -> list[int]:
    """Places of the drafts that an expert should see next, the first one first.

    Args:
        drafts: Those that nobody has labelled.
        probabilities: P(valid) of each; None for a draft that could not be judged, which counts as wholly uncertain.
            None altogether where there is no validator yet: then all are equally uncertain.
        vectors: Shape [drafts, width], unit vectors; needed for ``diverse``.
        n: How many; fewer where there are fewer drafts.
        strategy: See :data:`Acquisition`.
        seed: Decides all that is left to chance, the order of equals included.

    Raises:
        InputError: Another number of probabilities or vectors than drafts, or a strategy that does not exist.
    """
    size = len(drafts)
    given = np.full(size, 0.5) if probabilities is None else np.array(probabilities, dtype=np.float64)
    if len(given) != size:
        raise InputError(f"There are {len(given)} probabilities for {size} drafts: give one for each.")
    chances = np.nan_to_num(given, nan=0.5)
    if strategy not in STRATEGIES:
        raise InputError(f"There is no strategy {strategy!r}: there are {', '.join(STRATEGIES)}.")
    count = min(max(0, n), size)
    generator = np.random.default_rng(seed)
    order = shuffled = generator.permutation(size)
    if strategy == "paper":
        confident = np.maximum(chances, 1 - chances) > CONFIDENT
        # Those dropped follow, should the others not suffice.
        dropped = (confident & (generator.random(size) < DROPPED))[shuffled]
        order = np.concatenate([shuffled[~dropped], shuffled[dropped]])
    elif strategy != "random":
        # A stable sort of shuffled places: equals come in random order.
        order = shuffled[np.argsort(np.abs(chances[shuffled] - 0.5), kind="stable")]
    if strategy == "diverse":
        if vectors is None or len(known := np.asarray(vectors, dtype=np.float64)) != size:
            raise InputError("The strategy diverse compares drafts: give it one vector for each draft.")
        if count:
            from sklearn.cluster import KMeans

            # Equal texts give fewer different vectors than clusters are wanted.
            groups = min(count, len(np.unique(known, axis=0)))
            clusters = KMeans(groups, n_init=1, random_state=seed).fit(known).labels_
            # The least confident of each cluster, then the rest by margin.
            leaders = order[np.sort(np.unique(clusters[order], return_index=True)[1])]
            order = np.concatenate([leaders, order[~np.isin(order, leaders)]])
    return [int(place) for place in order[:count]]
