"""Tagging by comparison: a probe on a language model's states decides which of two statements is more confident.

A new statement is ranked among statements of known level by comparing it with them (PPAIRS_INSERT).

References:
    Maiya 2024, section 4.3, appendices C and D: 100 labelled statements, 10 anchors per level.
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
    InsertMode,
    Item,
    QualityRequests,
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
DrawBy = Literal["level", "cycle"]
"""Property of which training statements have each value equally often."""
N_LABELLED = 100
"""Number of labelled statements in the thesis, for training and comparison."""
N_ANCHORS = 10
"""Number of statements per level that a new one is compared with."""
_PAIRS_PER_ITEM = 4
"""Number of comparisons of each training statement with others, in both orders."""


@dataclass(frozen=True, eq=False)
class InsertionTagger:
    """A probe with the labelled statements with which new ones are compared.

    Attributes:
        trained: Probe with its evaluation.
        anchors: Statements of known level.
        levels: Levels of the anchors.
        harvester: Reader of the model's states.
        context: Number of sentences on each side that the model reads with a statement.
        seed: Seed of the draw of anchors.
        mode: Rule that decides when a statement has the level of the anchors, see
            :func:`climassay.judging.anchor_labelling.insert_indices`.
    """

    trained: TrainedProbe
    anchors: tuple[Item, ...]
    levels: tuple[Tag, ...]
    harvester: Harvester
    context: int
    seed: int = 0
    mode: InsertMode = "three-way"

    def predict_proba(self, items: Sequence[Taggable], *, on_progress: Progress | None = None) -> FloatArray:
        """Return 1 for the level at which a statement is inserted, 0 for the others; shape [items, levels]."""
        tags = self.predict(items, on_progress=on_progress)
        return np.eye(len(self.levels))[[self.levels.index(tag) for tag in tags]]

    def predict(self, items: Sequence[Taggable], *, on_progress: Progress | None = None) -> list[Tag]:
        """Return the level at which each statement is inserted."""
        if not items:
            return []
        probe = self.trained.probe
        new = [_probe_item(f"new {index}", TaggingItem.convert(item), self.context) for index, item in enumerate(items)]
        result = insert_items(
            new, self.anchors, self.levels, probe_judge(probe, self.harvester), samples=N_ANCHORS, mode=self.mode,
            tie_band=probe.tie_band, seed=self.seed, on_progress=on_progress,
        )  # fmt: skip
        by_name = {str(level): level for level in self.levels}
        return [by_name[insertion.label] for insertion in result.insertions]


def train_insertion(
    labelled: Sequence[LabelledItem],
    model: OpenWeights,
    *,
    method: PairMethod = "ppairs",
    layers: tuple[int, ...] = (-1,),
    context: int = 0,
    anchors: Sequence[LabelledItem] | None = None,
    mode: InsertMode = "three-way",
    store: ActivationStore | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> InsertionTagger:
    """Train a probe on labelled statements, with which new statements are compared by default.

    Args:
        labelled: About :data:`N_LABELLED` statements (:func:`balanced_sample`).
        model: Model whose hidden states are read.
        method: ``ppairs``: contrast pairs of two statements; ``pointwise``: single statements.
        layers: Layers whose states are concatenated.
        context: Number of sentences on each side that the model reads with a statement.
        anchors: Labelled statements with which new ones are compared instead.
        mode: Rule that decides when a statement has the level of the anchors, see
            :func:`climassay.judging.anchor_labelling.insert_indices`.
        store: Cache of the states.
        seed: Seed of the pairs and of the draw of anchors.
        on_progress: Receives the number of new requests answered.

    Raises:
        InputError: Fewer than two levels occur among the labelled statements or the anchors.
    """
    compared = labelled if anchors is None else anchors
    levels = tuple(level for level in LEVELS if any(item.tag == level for item in compared))
    if min(len(levels), len({item.tag for item in labelled})) < 2:
        raise InputError("Statements can be compared by confidence only if at least two levels occur.")
    training_items = [
        _probe_item(f"labelled {index}", item.item, context, float(LEVELS.index(item.tag)))
        for index, item in enumerate(labelled)
    ]
    anchor_items = tuple(
        _probe_item(f"anchor {index}", item.item, context, float(levels.index(item.tag)))
        for index, item in enumerate(compared)
    )
    harvester = Harvester(model, QualityRequests(quality("confidence")), layers, store)
    trained = train_probe(
        training_items, harvester, method=method, pairs_per_item=_PAIRS_PER_ITEM, seed=seed, on_progress=on_progress
    )
    return InsertionTagger(trained, anchor_items, levels, harvester, context, seed, mode)


def balanced_sample(
    items: Sequence[LabelledItem], count: int = N_LABELLED, *, by: DrawBy = "level", seed: int = 0
) -> list[LabelledItem]:
    """Draw equally many statements of each level or assessment cycle, together ``count`` or fewer if one is rare.

    Raises:
        InputError: ``by`` is ``cycle``, and no statement names its cycle.
    """
    generator = np.random.default_rng(seed)
    kinds = LEVELS if by == "level" else tuple(sorted({item.cycle for item in items if item.cycle}))
    if not kinds:
        raise InputError("No labelled statement names its assessment cycle: draw the training statements by level.")
    n_per_kind = max(1, count // len(kinds))
    results: list[LabelledItem] = []
    for kind in kinds:
        kind_items = [item for item in items if kind == (item.tag if by == "level" else item.cycle)]
        results += [kind_items[index] for index in sorted(generator.permutation(len(kind_items))[:n_per_kind].tolist())]
    return results


def latest_anchors(
    items: Sequence[LabelledItem], training: Sequence[LabelledItem], count: int = N_LABELLED, *, seed: int = 0
) -> list[LabelledItem]:
    """Draw ``count`` statements of the latest assessment cycle at random, or all if there are fewer.

    Training statements are left out, so that the probe has seen neither side of a comparison (Maiya 2024, C.6).
    """
    latest, training_texts = max(item.cycle for item in items), {item.item.text for item in training}
    pool = [item for item in items if item.cycle == latest and item.item.text not in training_texts]
    return [pool[index] for index in np.random.default_rng(seed).permutation(len(pool))[:count].tolist()]


def _probe_item(name: str, item: TaggingItem, context: int, label: float | None = None) -> Item:
    return Item(name, item.text, item.window(context) if context else "", label=label)
