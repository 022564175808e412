"""A linear model of entailment on an encoder's vectors and on what rules see in the words, and how it is trained.

Every choice of the training is made by cross-validation whose folds share no statement, nor nearly the same ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.learning.calibration import prior_shift
from climassay.learning.evaluation import Evaluation, auroc
from climassay.learning.linear import LinearModel, fit_linear
from climassay.learning.model_file import ModelFormat, Provenance, SavedModel, checked_array
from climassay.learning.splits import FOLDS, IntArray, group_folds, hold_out, near_duplicate_groups, splits_of
from climassay.metrics.entailment import RELATIONS, Relations, RelationScorer, nearest_parts
from climassay.metrics.entailment_features import NAMES, FloatArray, PairFeatures, pair_features
from climassay.metrics.entailment_pairs import LabelledPair, PairTable, pair_scores, supporting
from climassay.metrics.perturbations import contradict, cut_tail
from climassay.models.contract import Encoder

BUNDLED_HEAD = Path(__file__).with_name("entailment_head.safetensors")
"""The head that comes with climassay; see docs/results/entailment.md."""
REGULARISATIONS = (0.3, 1.0)
TURNED_SHARES = (0.0, 0.3, 1.0)
"""Shares of the pairs made by rule that are tried as additions."""
_TURN_PREMISE = 0.25
_SHORTEN_PREMISE = 0.15


@dataclass(frozen=True, eq=False)
class EntailmentHead(SavedModel):
    """Probabilities of the three relations, linear in features of a pair.

    It needs no language model, no torch and no GPU. It knows nearness, shared words, negations, directions and numbers,
    and nothing of the world: a contradiction that shows in none of them is mostly not found.

    Attributes:
        model: For the features that :data:`~climassay.metrics.entailment_features.NAMES` lists and before them, where
            there are more, those of the vectors.
        provenance: ``groups`` counts statements, ``items`` pairs, ``settings["turned"]`` pairs made by rule.
            ``measured``, on statements not fitted on: ``two_class_auroc``, ``two_class_accuracy``,
            ``two_class_constant``, ``accuracy``, ``constant``, ``macro_f1``, ``log_loss``, and ``turned_auroc`` on
            pairs made by rule.
        given: The encoder; loaded by its name if None.
    """

    FORMAT = ModelFormat("climassay-entailment-head", 2, "entailment head", "climassay metrics entailment train")

    model: LinearModel
    provenance: Provenance
    given: Encoder | None = None

    def with_encoder(self, encoder: Encoder) -> "EntailmentHead":
        """The same with an encoder that is loaded already.

        Raises:
            InputError: Another one than the head's.
        """
        self.provenance.check(self.FORMAT.thing, encoder=encoder)
        return replace(self, given=encoder)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder whose vectors the head reads."""
        if self.given is not None:
            return self.given
        from climassay.models.encoders.loading import load_encoder

        encoder = load_encoder(self.provenance.encoder)
        self.provenance.check(self.FORMAT.thing, encoder=encoder)
        return encoder

    def probabilities(self, features: PairFeatures) -> FloatArray:
        """Of the relations, shape [pairs, 3]."""
        return self.model.probabilities(features.blocks(vectors=len(self.model.weights) > len(NAMES)))

    def predict_proba(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Probabilities of the relations for each pair of (premise, statement), shape [pairs, 3].

        Of a long premise the sentences nearest to the statement are read (:func:`nearest_parts`).
        """
        parts = nearest_parts(pairs, encoder=self.encoder) if pairs else []
        read = [(part, statement) for part, (_, statement) in zip(parts, pairs, strict=True)]
        return self.probabilities(pair_features(read, self.encoder))

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """The most probable relation of each pair."""
        return [RELATIONS[place] for place in self.predict_proba(pairs).argmax(axis=1)]

    def score(self, pairs: Sequence[LabelledPair]) -> Evaluation:
        """Figures of the three relations; they say something only of statements that it was not trained on."""
        return pair_scores(pairs, self.predict_proba([(pair.premise, pair.statement) for pair in pairs]))

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """See :class:`SavedModel`."""
        facts = {"relations": list(RELATIONS), "features": list(NAMES), "provenance": self.provenance.facts()}
        return {"weights": self.model.weights, "bias": self.model.bias}, facts

    @classmethod
    def load(cls, path: Path = BUNDLED_HEAD) -> Self:
        """Read a head exactly as it was saved, the bundled one by default; errors as :meth:`SavedModel.load`."""
        return super().load(path)

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """See :class:`SavedModel`."""
        if tuple(facts["features"]) != NAMES or tuple(facts["relations"]) != RELATIONS:
            raise ValueError("it reads other features than this version of climassay has")
        weights = checked_array("weights", arrays["weights"], (None, len(RELATIONS)))
        if len(weights) < len(NAMES):
            raise ValueError(f"weights has shape {weights.shape}")
        model = LinearModel("nominal", weights, checked_array("bias", arrays["bias"], (len(RELATIONS),)))
        if facts["version"] > 1:
            return cls(model, Provenance.read(facts["provenance"]))
        old = Provenance.read(facts["source"], items="pairs", groups="statements", measured="cross_validated")
        return cls(model, old)


class HeadEntailment:
    """A head as a scorer of pairs; see :class:`~climassay.metrics.entailment.RelationScorer`."""

    def __init__(self, head: EntailmentHead, encoder: Encoder | None = None, *, name: str = "entailment head") -> None:
        """Prepare; nothing is encoded yet.

        Args:
            head: What was trained.
            encoder: The one it was trained with; loaded by its name if None.
            name: For reports.

        Raises:
            InputError: Another encoder than the head's.
        """
        self.name = name
        self.head = head if encoder is None else head.with_encoder(encoder)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise confirms statement) of each pair; never None."""
        return [None if found is None else found.confirms for found in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations of each pair, in order; never None."""
        return [Relations(*row) for row in self.head.predict_proba(pairs).tolist()]


def unseen_pairs(pairs: Sequence[LabelledPair], scorer: RelationScorer) -> tuple[LabelledPair, ...]:
    """The pairs whose statements a trained head was not trained on; all of them for other scorers.

    Raises:
        InputError: None is left.
    """
    if not isinstance(scorer, HeadEntailment):
        return tuple(pairs)
    left = tuple(pair for pair in pairs if not scorer.head.provenance.knows(pair.statement))
    if not left:
        raise InputError("The head was trained on every statement of this file: give pairs that it does not know.")
    return left


# ------------------------------------------------------------------------------------------------------- training


@dataclass(frozen=True, slots=True)
class HeadChoice:
    """One setting that was tried, and how it did on statements it was not fitted on."""

    regularisation: float
    turned_share: float
    """How many of the pairs made by rule were added."""
    vectors: bool
    """Whether the encoder's vectors are read, beside their cosines."""
    two_class_auroc: float = 0.5
    """Supports against refutes, on labelled pairs."""
    turned_auroc: float = 0.5
    """Confirms against contradicts, on pairs made by rule."""

    @property
    def merit(self) -> float:
        """The choice is made by it: the mean of the two.

        On labelled pairs alone a head may score by what a statement is about, for claims of some kinds are mostly
        refuted; on pairs made by rule only what distinguishes premise and statement counts.
        """
        return (self.two_class_auroc + self.turned_auroc) / 2


@dataclass(frozen=True, slots=True, eq=False)
class TrainedEntailment:
    """A head and the evidence behind it."""

    head: EntailmentHead
    choices: tuple[HeadChoice, ...]
    """All settings tried, best first."""


def split_pairs(
    pairs: Sequence[LabelledPair], held_out: int, encoder: Encoder | None, *, seed: int = 0
) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """Training and held-out pairs that share no statement, nor nearly the same ones.

    Args:
        pairs: All pairs.
        held_out: Statements of the second part.
        encoder: Finds statements that are nearly the same; None: those of the same words.
        seed: Decides the split.

    Raises:
        InputError: There are not more statements than are to be held out.
    """
    statements = list(dict.fromkeys(pair.statement for pair in pairs))
    outside = hold_out(near_duplicate_groups(statements, encoder), held_out, seed=seed).test
    left_out = {statements[place] for place in outside}
    return (
        [pair for pair in pairs if pair.statement not in left_out],
        [pair for pair in pairs if pair.statement in left_out],
    )


def turned_pairs(pairs: Sequence[LabelledPair], *, seed: int = 0) -> tuple[list[LabelledPair], IntArray]:
    """Pairs made by rule of labelled ones.

    A statement that its premise confirms is turned round, which contradicts it. Of some premises a turned copy becomes
    a statement that contradicts them, and of some a copy, shortened where it can be, one that they confirm.

    Returns:
        The new pairs, and for each the place of the pair that it was made of, shape [new pairs].
    """
    found, places = [], []
    generator = np.random.default_rng(seed)
    for place, pair in enumerate(pairs):
        text = pair.premise.partition(": ")[2] or pair.premise
        shortened = cut_tail(text) or text
        made: list[tuple[str | None, int]] = []
        if pair.relation == 0:
            made.append((contradict(pair.statement, generator), 1))
        drawn = generator.random()
        if drawn < _TURN_PREMISE:
            made.append((contradict(text if generator.random() < 0.5 else shortened, generator), 1))
        elif drawn < _TURN_PREMISE + _SHORTEN_PREMISE:
            made.append((shortened, 0))
        new = [LabelledPair(pair.premise, said, relation) for said, relation in made if said]
        found += new
        places += [place] * len(new)
    return found, np.array(places, dtype=np.int64)


def train_entailment(
    table: PairTable,
    pairs: Sequence[LabelledPair],
    encoder: Encoder,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    on_fit: Callable[[], None] | None = None,
) -> TrainedEntailment:
    """Train a head; regularisation and the share of pairs made by rule are chosen by :attr:`HeadChoice.merit`.

    Args:
        table: Where the pairs come from, for the head's provenance.
        pairs: Training pairs.
        encoder: For vectors, and to keep statements that are nearly the same in one fold.
        folds: Of the cross-validation.
        seed: Of folds and of the pairs made by rule.
        on_fit: Called after each setting tried.

    Raises:
        InputError: Fewer than two different statements, or not all three relations.
    """
    if {pair.relation for pair in pairs} != set(range(len(RELATIONS))):
        raise InputError(f"An entailment head learns from pairs of all relations: {', '.join(RELATIONS)}.")
    data = _TrainingData(pairs, encoder, folds, seed)
    tried = []
    for setting in product(REGULARISATIONS, TURNED_SHARES, (False, True)):
        tried.append(data.held_out(HeadChoice(*setting)))
        if on_fit is not None:
            on_fit()
    tried.sort(key=lambda one: one[0].merit, reverse=True)
    best, guesses = tried[0]
    statements = tuple(dict.fromkeys(words_id(pair.statement) for pair in pairs))
    three, two = pair_scores(pairs, guesses), pair_scores(pairs, guesses, two_class=True)
    provenance = Provenance(
        data=table.name,
        data_sha256=table.sha256,
        items=len(pairs),
        groups=len(statements),
        regularisation=best.regularisation,
        seed=seed,
        measured={
            **three.figures,
            "two_class_auroc": best.two_class_auroc,
            "two_class_accuracy": two.accuracy.value,
            "two_class_constant": two.constant.value,
            "turned_auroc": best.turned_auroc,
        },
        trained_on=statements,
        settings={"turned": int((data.chances < best.turned_share).sum()) - len(pairs)},
    ).reading(encoder)
    model = data.fit(np.arange(len(data.relations)), best)
    return TrainedEntailment(EntailmentHead(model, provenance), tuple(choice for choice, _ in tried))


class _TrainingData:
    """Labelled pairs as arrays, and behind them those that were made of them by rule."""

    def __init__(self, pairs: Sequence[LabelledPair], encoder: Encoder, folds: int, seed: int) -> None:
        statements = list(dict.fromkeys(pair.statement for pair in pairs))
        numbers = group_folds(near_duplicate_groups(statements, encoder), folds, seed=seed)
        fold_of = dict(zip(statements, numbers.tolist(), strict=True))
        own = np.array([fold_of[pair.statement] for pair in pairs])
        turned, places = turned_pairs(pairs, seed=seed)
        every = [*pairs, *turned]
        self.labelled = len(pairs)
        self.features = pair_features([(pair.premise, pair.statement) for pair in every], encoder)
        self.relations = np.array([pair.relation for pair in every])
        self.folds = np.concatenate([own, own[places]])
        self.chances = np.concatenate([np.full(len(pairs), -1.0), np.random.default_rng(seed).random(len(turned))])
        """Shape [pairs]: those below a share are added at this share; labelled ones always are."""

    def fit(self, places: IntArray, choice: HeadChoice) -> LinearModel:
        """Fit on some of the pairs.

        Pairs made by rule are mostly contradictions, whose frequency would be taken for that of real ones: the mean
        probability of each relation is made its share of the labelled pairs.
        """
        chosen = places[self.chances[places] < choice.turned_share]
        model = fit_linear(
            self.features.blocks(vectors=choice.vectors, places=chosen), self.relations[chosen], len(RELATIONS),
            regularisation=choice.regularisation,
        )  # fmt: skip
        real = places[places < self.labelled]
        logits = np.log(
            np.maximum(model.probabilities(self.features.blocks(vectors=choice.vectors, places=real)), 1e-300)
        )
        shares = np.bincount(self.relations[real], minlength=len(RELATIONS)) / len(real)
        return replace(model, bias=model.bias + prior_shift(logits, shares))

    def held_out(self, choice: HeadChoice) -> tuple[HeadChoice, FloatArray]:
        """The choice with its figures, and probabilities of labelled pairs [pairs, 3], by fits on the other folds."""
        found = np.zeros((len(self.relations), len(RELATIONS)))
        for split in splits_of(self.folds):
            blocks = self.features.blocks(vectors=choice.vectors, places=split.test)
            found[split.test] = self.fit(split.train, choice).probabilities(blocks)
        supports, positive = supporting(found), self.relations == 0
        decided = np.flatnonzero(self.relations[: self.labelled] < 2)
        turned = np.arange(self.labelled, len(found))
        two_class, made = (auroc(supports[kept], positive[kept]) for kept in (decided, turned))
        return replace(choice, two_class_auroc=two_class, turned_auroc=made), found[: self.labelled]
