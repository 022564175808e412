"""Which drafts to have labelled next: the paper's rule, two others, and chance."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.generation.draft import Draft

FloatArray = NDArray[np.float64]
Acquisition = Literal["random", "paper", "margin", "diverse"]
"""``random``; ``paper``: drafts judged with a confidence above 0.85 are dropped with probability one half, then chance;
``margin``: the least confident first; ``diverse``: the least confident of each cluster of like drafts."""
STRATEGIES: tuple[Acquisition, ...] = get_args(Acquisition)
CONFIDENT = 0.85
"""Above it the paper drops a draft with probability :data:`DROPPED` (ClimaQA, section 4.4)."""
DROPPED = 0.5


def choose_next(
    drafts: Sequence[Draft],
    probabilities: Sequence[float | None] | None,
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
        seed: Of everything left to chance, the order of equals included.

    Raises:
        InputError: Another number of probabilities or vectors than drafts, or a strategy that does not exist.
    """
    given = [None] * len(drafts) if probabilities is None else list(probabilities)
    if len(given) != len(drafts):
        raise InputError(f"There are {len(given)} probabilities for {len(drafts)} drafts: give one for each.")
    chances = np.array([0.5 if value is None else value for value in given], dtype=np.float64)
    chosen = choose_places(chances, None if vectors is None else np.asarray(vectors), n, strategy, seed)
    return [int(place) for place in chosen]


def choose_places(
    probabilities: FloatArray, vectors: NDArray[np.floating] | None, n: int, strategy: Acquisition, seed: int
) -> NDArray[np.int64]:
    """Places in order of choice, as :func:`choose_next`; P(valid) of shape [drafts], vectors [drafts, width]."""
    if strategy not in STRATEGIES:
        raise InputError(f"There is no strategy {strategy!r}: there are {', '.join(STRATEGIES)}.")
    size = len(probabilities)
    count = min(max(0, n), size)
    generator = np.random.default_rng(seed)
    shuffled = generator.permutation(size)
    if strategy == "random":
        return shuffled[:count]
    if strategy == "paper":
        confident = np.maximum(probabilities, 1 - probabilities) > CONFIDENT
        # Those dropped stand behind, should the others not suffice.
        dropped = (confident & (generator.random(size) < DROPPED))[shuffled]
        return np.concatenate([shuffled[~dropped], shuffled[dropped]])[:count]
    # A stable sort of shuffled places: equals come in random order.
    by_margin = shuffled[np.argsort(np.abs(probabilities[shuffled] - 0.5), kind="stable")]
    if strategy == "margin":
        return by_margin[:count]
    if vectors is None or len(vectors) != size:
        raise InputError("The strategy diverse looks for like drafts: give it one vector for each draft.")
    if count == 0:
        return by_margin[:0]
    from sklearn.cluster import KMeans

    # Equal texts give fewer different vectors than clusters are wanted.
    given = np.asarray(vectors, dtype=np.float64)
    clusters = KMeans(min(count, len(np.unique(given, axis=0))), n_init=1, random_state=seed).fit(given).labels_
    # The least confident of each cluster, then the rest by margin.
    leaders = by_margin[np.sort(np.unique(clusters[by_margin], return_index=True)[1])]
    return np.concatenate([leaders, by_margin[~np.isin(by_margin, leaders)]])[:count]
