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
    """As :func:`choose_next`, on arrays.

    Args:
        probabilities: P(valid) of each draft, shape [drafts].
        vectors: Of the drafts, shape [drafts, width]; needed for ``diverse`` only.
        n: Drafts wanted.
        strategy: How to choose.
        seed: Of what is left to chance.

    Returns:
        Places of the chosen drafts in the order of choice, shape [min(n, drafts)].

    Raises:
        InputError: The strategy does not exist, or lacks its vectors.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"There is no strategy {strategy!r}: there are {', '.join(STRATEGIES)}.")
    size = len(probabilities)
    count = min(max(0, n), size)
    generator = np.random.default_rng(seed)
    shuffled = generator.permutation(size)
    if strategy == "random":
        return shuffled[:count]
    if strategy == "paper":
        return _as_published(probabilities, shuffled, generator)[:count]
    # A stable sort of shuffled places: equals come in random order.
    by_margin = shuffled[np.argsort(np.abs(probabilities[shuffled] - 0.5), kind="stable")]
    if strategy == "margin":
        return by_margin[:count]
    if vectors is None or len(vectors) != size:
        raise InputError("The strategy diverse looks for like drafts: give it one vector for each draft.")
    return _one_of_each(by_margin, np.asarray(vectors, dtype=np.float64), count, seed)


def _as_published(
    probabilities: FloatArray, shuffled: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Those that stay in random order, and behind them those that were dropped, should the others not suffice."""
    confidence = np.maximum(probabilities, 1 - probabilities)
    dropped = (confidence > CONFIDENT) & (generator.random(len(probabilities)) < DROPPED)
    return np.concatenate([shuffled[~dropped[shuffled]], shuffled[dropped[shuffled]]])


def _one_of_each(by_margin: NDArray[np.int64], vectors: FloatArray, count: int, seed: int) -> NDArray[np.int64]:
    """The least confident of each of ``count`` clusters, least confident first; then the rest by margin."""
    if count == 0:
        return by_margin[:0]
    from sklearn.cluster import KMeans

    # Equal texts give fewer different vectors than clusters are wanted.
    clusters = min(count, len(np.unique(vectors, axis=0)))
    labels = KMeans(clusters, n_init=1, random_state=seed).fit(vectors).labels_
    _, first = np.unique(labels[by_margin], return_index=True)
    leaders = by_margin[np.sort(first)]
    rest = by_margin[~np.isin(by_margin, leaders)]
    return np.concatenate([leaders, rest])[:count]
