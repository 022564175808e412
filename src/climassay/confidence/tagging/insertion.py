"""Tagging by comparison: a probe on a language model's states says which of two statements is the more confident.

A new statement is put into the order of the levels by comparing it with statements of known level (PPAIRS_INSERT).

References:
    Maiya 2024, section 4.3, appendices C and D: 100 labelled statements, 10 anchors a level.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.tagging.labelled import LEVELS, LabelledItem, Taggable, TaggingItem
from climassay.confidence.vocabulary import Tag
from climassay.errors import InputError
from climassay.judging import (
    Harvester,
    Item,
    Questions,
    TrainedProbe,
    insert_items,
    probe_judge,
    quality,
    train_probe,
)
from climassay.learning import ActivationStore
from climassay.models.contract import OpenWeights

FloatArray = NDArray[np.float64]
Progress = Callable[[int], None]
PairMethod = Literal["ppairs", "pointwise"]
LABELLED = 100
"""Statements that the thesis trains on, and compares new ones with."""
ANCHORS = 10
"""Statements of a level that a new one is compared with."""
_PAIRS_EACH = 4
"""Comparisons of each training statement with others; in both orders."""


@dataclass(frozen=True, eq=False)
class InsertionTagger:
    """A probe, and the labelled statements with which new ones are compared.

    Attributes:
        trained: The probe with its evidence.
        anchors: Statements of known level.
        levels: Those that occur among them.
        harvester: Reads the model's states.
        context: Sentences each side that the model reads with a statement.
    """

    trained: TrainedProbe
    anchors: tuple[Item, ...]
    levels: tuple[Tag, ...]
    harvester: Harvester
    context: int
    seed: int = 0

    def predict_proba(self, items: Sequence[Taggable], *, on_progress: Progress | None = None) -> FloatArray:
        """1 for the level at which a statement is inserted, 0 for the others; shape [items, levels]."""
        said = self.predict(items, on_progress=on_progress)
        return np.eye(len(self.levels))[[self.levels.index(tag) for tag in said]]

    def predict(self, items: Sequence[Taggable], *, on_progress: Progress | None = None) -> list[Tag]:
        """The level at which each statement is inserted."""
        if not items:
            return []
        probe = self.trained.probe
        read = [_item(f"new {place}", TaggingItem.of(one), self.context) for place, one in enumerate(items)]
        result = insert_items(
            read, self.anchors, self.levels, probe_judge(probe, self.harvester), samples=ANCHORS, mode="three-way",
            tie_band=probe.tie_band, seed=self.seed, on_progress=on_progress,
        )  # fmt: skip
        return [next(level for level in self.levels if level == one.label) for one in result.insertions]


def train_insertion(
    labelled: Sequence[LabelledItem],
    model: OpenWeights,
    *,
    method: PairMethod = "ppairs",
    layers: tuple[int, ...] = (-1,),
    context: int = 0,
    store: ActivationStore | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> InsertionTagger:
    """Train a probe on labelled statements, which then are the anchors too.

    Args:
        labelled: About :data:`LABELLED` statements (:func:`balanced_sample`).
        model: Whose states are read.
        method: ``ppairs``: contrast pairs of two statements; ``pointwise``: each statement by itself.
        layers: Read side by side.
        context: Sentences each side that the model reads with a statement.
        store: Where states are kept.
        seed: Seed of the pairs and of the draw of anchors.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: Fewer than two levels occur.
    """
    levels = tuple(level for level in LEVELS if any(one.tag == level for one in labelled))
    if len(levels) < 2:
        raise InputError("Statements can be compared by confidence only where at least two levels occur.")
    anchors = tuple(
        _item(f"anchor {place}", one.item, context, float(levels.index(one.tag))) for place, one in enumerate(labelled)
    )
    harvester = Harvester(model, Questions(quality("confidence")), layers, store)
    trained = train_probe(
        anchors, harvester, method=method, pairs_per_item=_PAIRS_EACH, seed=seed, on_progress=on_progress
    )
    return InsertionTagger(trained, anchors, levels, harvester, context, seed)


def balanced_sample(items: Sequence[LabelledItem], count: int = LABELLED, *, seed: int = 0) -> list[LabelledItem]:
    """As many statements of each level, together ``count`` or a few fewer where a level is rare."""
    generator = np.random.default_rng(seed)
    each = max(1, count // len(LEVELS))
    results: list[LabelledItem] = []
    for level in LEVELS:
        own = [one for one in items if one.tag == level]
        results += [own[place] for place in sorted(generator.permutation(len(own))[:each].tolist())]
    return results


def _item(name: str, read: TaggingItem, context: int, label: float | None = None) -> Item:
    return Item(name, read.text, read.window(context) if context else "", label=label)
