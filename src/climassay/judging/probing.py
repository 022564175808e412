"""Methods that read the model's hidden states: zero-shot contrast, the contrast probe and the pointwise probe."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from climassay.judging.asking import Questions, mirrored
from climassay.judging.items import Item, word_counts
from climassay.judging.preferences import FloatArray, IntArray, Judgements, Progress
from climassay.judging.probe import Contrast, PairProbe, PointProbe, log_length_differences
from climassay.judging.prompting import averaged
from climassay.learning.activation_store import ActivationStore
from climassay.learning.harvest import Harvest, harvest
from climassay.models.contract import OpenWeights, OptionRequest


@dataclass(frozen=True, slots=True)
class Contrasts:
    """What one harvest gives of ordered pairs."""

    states: Contrast
    """Activations of both sides, the chosen layers side by side."""
    margins: FloatArray
    """[pairs]; log-odds of answer 1 against answer 2 by the model's own words."""
    failed: NDArray[np.bool_]
    """[pairs]; the states of these are zeros."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What harvesting took so far. Costs add up with ``+``."""

    passes: int = 0
    tokens_computed: int = 0
    tokens_two_pass: int = 0
    """Tokens that one whole pass for each answer would compute, for the same requests."""
    computed: int = 0
    """Requests computed."""
    stored: int = 0
    """Requests served from disk."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.passes + other.passes,
            self.tokens_computed + other.tokens_computed,
            self.tokens_two_pass + other.tokens_two_pass,
            self.computed + other.computed,
            self.stored + other.stored,
        )


@dataclass
class Harvester:
    """Hidden states of items and pairs, from disk where they have been computed before.

    Attributes:
        cost: What it took so far.
    """

    model: OpenWeights
    questions: Questions
    layers: tuple[int, ...] = (-1,)
    """Layers that are computed and kept."""
    store: ActivationStore | None = None
    token_budget: int | None = None
    cost: Cost = field(default_factory=Cost)

    def contrasts(
        self,
        items: Sequence[Item],
        pairs: IntArray,
        *,
        layers: Sequence[int] | None = None,
        on_progress: Progress | None = None,
    ) -> Contrasts:
        """Activations of ordered pairs, [pairs, layers * width].

        Args:
            items: The items that ``pairs`` points into.
            pairs: Ordered, shape [pairs, 2].
            layers: Those of the harvested layers that are wanted; by default all.
            on_progress: Called with the number of requests known since the last call.
        """
        found = self._harvest(self.questions.contrast(items, pairs), on_progress)
        states = found.states[:, :, self._places(layers)].astype(np.float32, copy=False)
        plus, minus = (np.ascontiguousarray(states[:, side].reshape(len(pairs), -1)) for side in (0, 1))
        margins = np.asarray(found.logprobs[:, 0] - found.logprobs[:, 1], dtype=np.float64)
        failed = _failed(found, len(pairs))
        return Contrasts(Contrast(plus, minus), np.where(failed, 0.0, margins), failed)

    def points(
        self, items: Sequence[Item], *, layers: Sequence[int] | None = None, on_progress: Progress | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """One activation an item, [items, layers * width], and whether it failed, [items]."""
        found = self._harvest(self.questions.point(items), on_progress)
        states = found.states[:, 0, self._places(layers)].astype(np.float32, copy=False)
        return np.ascontiguousarray(states.reshape(len(items), -1)), _failed(found, len(items))

    def _harvest(self, requests: Sequence[OptionRequest], on_progress: Progress | None) -> Harvest:
        found = harvest(
            self.model,
            requests,
            layers=self.layers,
            store=self.store,
            token_budget=self.token_budget,
            on_progress=on_progress,
        )
        self.cost += Cost(found.passes, found.tokens_computed, found.tokens_two_pass, found.computed, found.stored)
        return found

    def _places(self, layers: Sequence[int] | None) -> list[int]:
        return [self.layers.index(layer) for layer in (self.layers if layers is None else layers)]


class ZeroShotContrast:
    """PPairS's prompt, answered by the model's own words: log-odds of ``1`` against ``2``.

    It comes free with the harvest, and it is not published PairS, whose prompt is another one.

    Args:
        harvester: Source of the answers.
        orders: 2 averages both orders in log-odds.
    """

    name = "zero-shot contrast"

    def __init__(self, harvester: Harvester, *, orders: int = 2) -> None:
        self._harvester = harvester
        self._orders = orders

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        asked = pairs if self._orders == 1 else np.concatenate([pairs, mirrored(pairs)])
        found = self._harvester.contrasts(items, asked, on_progress=on_progress)
        return averaged(found.margins, found.failed, self._orders)


class ContrastProbe:
    """PPairS: a linear probe on the difference between the states after answer ``1`` and after answer ``2``.

    Args:
        harvester: Source of the activations.
        probe: A fitted probe.
        layers: Layers that the probe reads, of those harvested.
        orders: 2 averages both orders in log-odds.

    References:
        Thesis, chapter 3.
    """

    name = "ppairs"

    def __init__(
        self, harvester: Harvester, probe: PairProbe, *, layers: Sequence[int] | None = None, orders: int = 2
    ) -> None:
        self._harvester = harvester
        self.probe = probe
        self._layers = layers
        self._orders = orders

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        asked = pairs if self._orders == 1 else np.concatenate([pairs, mirrored(pairs)])
        found = self._harvester.contrasts(items, asked, layers=self._layers, on_progress=on_progress)
        lengths = log_length_differences(np.array(word_counts(items)), asked)
        return averaged(self.probe.log_odds(found.states, lengths), found.failed, self._orders)


class PointwiseProbe:
    """Our own addition: one activation an item, compared by the difference of scores (Bradley-Terry).

    Args:
        harvester: Source of the activations.
        probe: A fitted probe.
        layers: Layers that the probe reads, of those harvested.
    """

    name = "pointwise"

    def __init__(self, harvester: Harvester, probe: PointProbe, *, layers: Sequence[int] | None = None) -> None:
        self._harvester = harvester
        self.probe = probe
        self._layers = layers

    def scores(
        self, items: Sequence[Item], *, on_progress: Progress | None = None
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Scores on the log-odds scale, up to a constant, and whether an item failed; both of shape [items]."""
        states, failed = self._harvester.points(items, layers=self._layers, on_progress=on_progress)
        return self.probe.scores(states, np.array(word_counts(items))), failed

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        used, places = np.unique(pairs, return_inverse=True)
        scores, failed = self.scores([items[index] for index in used], on_progress=on_progress)
        first, second = places.reshape(pairs.shape).T
        lost = failed[first] | failed[second]
        return Judgements(np.where(lost, 0.0, scores[first] - scores[second]), lost)


def _failed(found: Harvest, requests: int) -> NDArray[np.bool_]:
    failed = np.zeros(requests, dtype=bool)
    failed[list(found.failed)] = True
    return failed
