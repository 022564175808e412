"""Tag statements by comparison: a probe on a model's hidden states decides which of two statements is more confident.

A new statement is ranked among statements of known level by comparing it with them (PPAIRS_INSERT).

References:
    Maiya 2024, section 4.3, appendices C and D: 100 labelled statements, 10 anchors per level.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.tagging.labelled import TAGGER_LEVELS, LabelledItem, Taggable, TaggingItem
from climassay.confidence.vocabulary import Level
from climassay.errors import InputError
from climassay.judging import (
    InsertMode,
    Item,
    QualityRequests,
    StateExtractor,
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
"""Property that the training statements are balanced by: each of its values is equally frequent."""
N_LABELLED = 100
"""Number of labelled statements for training and comparison, as in Maiya (2024)."""
N_ANCHORS = 10
"""Number of labelled statements per level with which a new statement is compared."""
_PAIRS_PER_ITEM = 4
"""Number of other statements with which each training statement is paired. Each pair is used in both orders."""


@dataclass(frozen=True, eq=False)
class InsertionTagger:
    """Tagger that compares new statements with labelled ones by means of a probe, and inserts each at a level.

    Attributes:
        trained: Probe with its evaluation.
        anchors: Statements of known level.
        levels: Levels of the anchors.
        extractor: Extractor of the model's hidden states.
        context: Number of context sentences on each side of a statement in the prompt.
        seed: Random seed for sampling anchors.
        mode: Rule that decides when a new statement and an anchor count as equal, see
            :func:`climassay.judging.anchor_labelling.insert_indices`.
    """

    trained: TrainedProbe
    anchors: tuple[Item, ...]
    levels: tuple[Level, ...]
    extractor: StateExtractor
    context: int
    seed: int = 0
    mode: InsertMode = "three-way"

    def predict_proba(self, items: Sequence[Taggable], *, on_progress: Progress | None = None) -> FloatArray:
        """Return one-hot predictions, shape [items, levels]: 1 for the level at which the statement is inserted."""
        tags = self.predict(items, on_progress=on_progress)
        return np.eye(len(self.levels))[[self.levels.index(tag) for tag in tags]]

    def predict(self, items: Sequence[Taggable], *, on_progress: Progress | None = None) -> list[Level]:
        """Return the level at which each statement is inserted."""
        if not items:
            return []
        probe = self.trained.probe
        new_items = [
            _make_probe_item(f"new {index}", TaggingItem.convert(item), self.context)
            for index, item in enumerate(items)
        ]
        result = insert_items(
            new_items, self.anchors, self.levels, probe_judge(probe, self.extractor), samples=N_ANCHORS, mode=self.mode,
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
    """Train a probe on labelled statements, and prepare the statements with which new ones are compared.

    Args:
        labelled: Training statements, about :data:`N_LABELLED` of them (see :func:`sample_balanced`).
        model: Model whose hidden states the probe uses.
        method: Kind of probe: ``ppairs`` uses contrast pairs of two statements, ``pointwise`` single statements.
        layers: Layers whose hidden states are concatenated.
        context: Number of context sentences on each side of a statement in the prompt.
        anchors: Labelled statements with which new ones are compared; None for the training statements.
        mode: Rule that decides when a new statement and an anchor count as equal, see
            :func:`climassay.judging.anchor_labelling.insert_indices`.
        store: Cache of hidden states.
        seed: Seed for pairing statements and for sampling anchors.
        on_progress: Callback that receives the number of requests answered since its last call.

    Raises:
        InputError: Fewer than two levels occur among the labelled statements or the anchors.
    """
    anchor_statements = labelled if anchors is None else anchors
    levels = tuple(level for level in TAGGER_LEVELS if any(item.tag == level for item in anchor_statements))
    if min(len(levels), len({item.tag for item in labelled})) < 2:
        raise InputError("Statements can be compared by confidence only if at least two levels occur.")
    training_items = [
        _make_probe_item(f"labelled {index}", item.item, context, float(TAGGER_LEVELS.index(item.tag)))
        for index, item in enumerate(labelled)
    ]
    anchor_items = tuple(
        _make_probe_item(f"anchor {index}", item.item, context, float(levels.index(item.tag)))
        for index, item in enumerate(anchor_statements)
    )
    extractor = StateExtractor(model, QualityRequests(quality("confidence")), layers, store)
    trained_probe = train_probe(
        training_items, extractor, method=method, pairs_per_item=_PAIRS_PER_ITEM, seed=seed, on_progress=on_progress
    )
    return InsertionTagger(trained_probe, anchor_items, levels, extractor, context, seed, mode)


def sample_balanced(
    items: Sequence[LabelledItem], count: int = N_LABELLED, *, by: DrawBy = "level", seed: int = 0
) -> list[LabelledItem]:
    """Sample ``count`` statements, equally many per level or assessment cycle.

    The sample is smaller if a level or cycle is rare.

    Raises:
        InputError: ``by`` is ``cycle``, but no statement has a cycle.
    """
    generator = np.random.default_rng(seed)
    strata = TAGGER_LEVELS if by == "level" else tuple(sorted({item.cycle for item in items if item.cycle}))
    if not strata:
        raise InputError("No labelled statement names its assessment cycle: draw the training statements by level.")
    n_per_stratum = max(1, count // len(strata))
    results: list[LabelledItem] = []
    for stratum in strata:
        stratum_items = [item for item in items if stratum == (item.tag if by == "level" else item.cycle)]
        results += [
            stratum_items[index] for index in sorted(generator.permutation(len(stratum_items))[:n_per_stratum].tolist())
        ]
    return results


def sample_latest_anchors(
    items: Sequence[LabelledItem], training: Sequence[LabelledItem], count: int = N_LABELLED, *, seed: int = 0
) -> list[LabelledItem]:
    """Sample ``count`` statements of the latest assessment cycle; return all if there are fewer.

    Training statements are excluded, so that the probe compares only statements on which it was not trained (Maiya
    2024, C.6).
    """
    latest_cycle, training_texts = max(item.cycle for item in items), {item.item.text for item in training}
    pool = [item for item in items if item.cycle == latest_cycle and item.item.text not in training_texts]
    return [pool[index] for index in np.random.default_rng(seed).permutation(len(pool))[:count].tolist()]


def _make_probe_item(name: str, item: TaggingItem, context: int, label: float | None = None) -> Item:
    return Item(name, item.text, item.window(context) if context else "", label=label)
