"""Training an entailment head: every choice by cross-validation whose folds share no claim."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.learning.splits import group_folds, hold_out, near_duplicate_groups
from climassay.metrics.entailment import RELATIONS
from climassay.metrics.entailment_features import NAMES, FloatArray, PairFeatures, pair_features
from climassay.metrics.entailment_head import EntailmentHead, HeadSource
from climassay.metrics.entailment_pairs import LabelledPair, PairTable
from climassay.metrics.perturbations import contradict, cut_tail
from climassay.models.contract import Encoder
from climassay.statistics import classification_scores

IntArray = NDArray[np.int64]

REGULARISATIONS = (0.3, 1.0)
TURNED_SHARES = (0.0, 0.3, 1.0)
"""Shares of the pairs made by rule that are tried as additions."""
_TURN_PREMISE = 0.25
_SHORTEN_PREMISE = 0.15


@dataclass(frozen=True, slots=True)
class HeadChoice:
    """One setting that was tried, and how it did on statements it was not fitted on."""

    regularisation: float
    turned_share: float
    """How many of the pairs made by rule were added."""
    vectors: bool
    """Whether the encoder's vectors are read, beside their cosines."""
    two_class_auroc: float
    """Supports against refutes, on labelled pairs."""
    turned_auroc: float
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


class _Setting(NamedTuple):
    regularisation: float
    turned_share: float
    vectors: bool

    def read(self, features: PairFeatures) -> FloatArray:
        return features.all if self.vectors else features.named


@dataclass(frozen=True, slots=True, eq=False)
class _Lesson:
    """Pairs as arrays."""

    features: PairFeatures
    relations: IntArray
    folds: IntArray
    turned: PairFeatures
    """Features of the pairs made by rule."""
    turned_relations: IntArray
    turned_folds: IntArray
    chances: FloatArray
    """Of the pairs made by rule, shape [turned], 0 to 1: those below a share are added at this share."""


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
    _, outside = hold_out(near_duplicate_groups(statements, encoder), held_out, seed=seed)
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
    regularisations: Sequence[float] = REGULARISATIONS,
    turned_shares: Sequence[float] = TURNED_SHARES,
    folds: int = 5,
    seed: int = 0,
    on_fit: Callable[[], None] | None = None,
) -> TrainedEntailment:
    """Train a head; regularisation and the share of pairs made by rule are chosen by :attr:`HeadChoice.merit`.

    Args:
        table: Where the pairs come from, for the head's source.
        pairs: Training pairs.
        encoder: For vectors, and to keep statements that are nearly the same in one fold.
        regularisations: C to try.
        turned_shares: Shares of the pairs made by rule to try.
        folds: Of the cross-validation.
        seed: Of folds and of the pairs made by rule.
        on_fit: Called after each setting tried.

    Raises:
        InputError: Fewer than two different statements, or not all three relations.
    """
    if {pair.relation for pair in pairs} != set(range(len(RELATIONS))):
        raise InputError(f"An entailment head learns from pairs of all relations: {', '.join(RELATIONS)}.")
    lesson = _lesson(pairs, encoder, folds, seed)
    choices, guesses = [], {}
    for setting in (_Setting(*values) for values in product(regularisations, turned_shares, (False, True))):
        labelled, turned = _held_out(lesson, setting)
        turned_auroc = auroc(supporting(turned), lesson.turned_relations == 0)
        choice = HeadChoice(*setting, two_class_auroc(labelled, lesson.relations), turned_auroc)
        choices.append(choice)
        guesses[choice] = labelled
        if on_fit is not None:
            on_fit()
    choices.sort(key=lambda choice: choice.merit, reverse=True)
    best = choices[0]
    return TrainedEntailment(_finish(table, pairs, encoder, lesson, best, guesses[best], seed), tuple(choices))


def two_class_auroc(probabilities: FloatArray, relations: IntArray) -> float:
    """P(a supporting pair ranks above a refuting one) by confirms / (confirms + contradicts); ties count one half.

    Args:
        probabilities: Shape [pairs, 3].
        relations: Shape [pairs].
    """
    decided = relations < 2
    return auroc(supporting(probabilities[decided]), relations[decided] == 0)


def supporting(probabilities: FloatArray) -> FloatArray:
    """P(SUPPORTS) of SUPPORTS and REFUTES, shape [pairs]."""
    return np.asarray(probabilities[:, 0] / np.maximum(probabilities[:, 0] + probabilities[:, 1], 1e-300))


def auroc(scores: FloatArray, positive: NDArray[np.bool_]) -> float:
    """P(a positive ranks above a negative), ties one half; 0.5 where there are none of one kind.

    Args:
        scores: Shape [n].
        positive: Shape [n].
    """
    from scipy.stats import rankdata

    n = int(positive.sum())
    if n in (0, len(positive)):
        return 0.5
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(positive) - n)))


def _lesson(pairs: Sequence[LabelledPair], encoder: Encoder, folds: int, seed: int) -> _Lesson:
    statements = list(dict.fromkeys(pair.statement for pair in pairs))
    numbers = group_folds(near_duplicate_groups(statements, encoder), folds, seed=seed)
    fold_of = dict(zip(statements, numbers.tolist(), strict=True))
    own = np.array([fold_of[pair.statement] for pair in pairs])
    turned, places = turned_pairs(pairs, seed=seed)
    return _Lesson(
        features=_features(pairs, encoder),
        relations=np.array([pair.relation for pair in pairs]),
        folds=own,
        turned=_features(turned, encoder),
        turned_relations=np.array([pair.relation for pair in turned]),
        turned_folds=own[places],
        chances=np.random.default_rng(seed).random(len(turned)),
    )


def _features(pairs: Sequence[LabelledPair], encoder: Encoder) -> PairFeatures:
    return pair_features([(pair.premise, pair.statement) for pair in pairs], encoder)


def _held_out(lesson: _Lesson, setting: _Setting) -> tuple[FloatArray, FloatArray]:
    """Probabilities of labelled pairs and of those made by rule, by heads fitted on the other folds."""
    labelled = np.zeros((len(lesson.relations), len(RELATIONS)))
    turned = np.zeros((len(lesson.turned_relations), len(RELATIONS)))
    for fold in np.unique(lesson.folds):
        inside, beside = lesson.folds == fold, lesson.turned_folds == fold
        weights, bias = _fit(lesson, ~inside, ~beside, setting)
        labelled[inside] = _softmax(setting.read(lesson.features)[inside] @ weights + bias)
        turned[beside] = _softmax(setting.read(lesson.turned)[beside] @ weights + bias)
    return labelled, turned


def _fit(
    lesson: _Lesson, kept: NDArray[np.bool_], turned: NDArray[np.bool_], setting: _Setting
) -> tuple[FloatArray, FloatArray]:
    """Weights [features, relations] and bias [relations] for the features as they are.

    Features are standardised, and those of the vectors and the named ones are scaled to mean squared norm 1 each, so
    that fifteen features do not drown in a thousand.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    chosen = turned & (lesson.chances < setting.turned_share)
    labelled = setting.read(lesson.features)[kept]
    features = np.concatenate([labelled, setting.read(lesson.turned)[chosen]])
    relations = np.concatenate([lesson.relations[kept], lesson.turned_relations[chosen]])
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    sizes = np.full(features.shape[1], len(NAMES))
    sizes[: -len(NAMES)] = features.shape[1] - len(NAMES)
    scale = np.where(deviation > 1e-9, 1 / (np.maximum(deviation, 1e-9) * np.sqrt(sizes)), 0.0)
    with warnings.catch_warnings():
        # Iterations are bounded; what they reach is judged on held-out pairs like everything else.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(C=setting.regularisation, max_iter=300).fit((features - mean) * scale, relations)
    if len(fitted.classes_) != len(RELATIONS):
        raise InputError("Some relation is missing from the training data of a fold: give more pairs or fewer folds.")
    weights = fitted.coef_.T * scale[:, None]
    bias = fitted.intercept_ - mean @ weights
    return weights, bias + _prior_shift(labelled @ weights + bias, lesson.relations[kept])


def _prior_shift(logits: FloatArray, relations: IntArray) -> FloatArray:
    """What to add to the logits, so that the mean probability of each relation is its share of the labelled pairs.

    Pairs made by rule are mostly contradictions; without this their frequency would be taken for that of real ones.
    """
    shares = np.maximum(np.bincount(relations, minlength=len(RELATIONS)) / len(relations), 1e-6)
    shift = np.zeros(len(RELATIONS))
    for _ in range(200):
        shift += np.log(shares / _softmax(logits + shift).mean(axis=0))
    return np.asarray(shift - shift.mean(), dtype=np.float64)


def _finish(
    table: PairTable,
    pairs: Sequence[LabelledPair],
    encoder: Encoder,
    lesson: _Lesson,
    best: HeadChoice,
    guesses: FloatArray,
    seed: int,
) -> EntailmentHead:
    everything = np.ones(len(lesson.relations), dtype=bool), np.ones(len(lesson.turned_relations), dtype=bool)
    weights, bias = _fit(lesson, *everything, _Setting(best.regularisation, best.turned_share, best.vectors))
    statements = tuple(dict.fromkeys(words_id(pair.statement) for pair in pairs))
    source = HeadSource(
        encoder=encoder.name,
        encoder_fingerprint=encoder.fingerprint,
        data=table.name,
        data_sha256=table.sha256,
        statements=len(statements),
        pairs=len(pairs),
        turned=int((lesson.chances < best.turned_share).sum()),
        regularisation=best.regularisation,
        seed=seed,
        cross_validated={**_figures(guesses, lesson.relations), "turned_auroc": best.turned_auroc},
        trained_on=statements,
    )
    return EntailmentHead(weights, bias, source)


def _figures(guesses: FloatArray, relations: IntArray) -> dict[str, float]:
    scores = classification_scores(relations.tolist(), guesses.argmax(axis=1).tolist())
    decided = relations < 2
    right = (supporting(guesses[decided]) > 0.5) == (relations[decided] == 0)
    share = float((relations[decided] == 0).mean())
    return {
        "two_class_auroc": two_class_auroc(guesses, relations),
        "two_class_accuracy": float(right.mean()),
        "two_class_constant": max(share, 1 - share),
        "accuracy": scores.accuracy.value,
        "constant": scores.baseline.accuracy,
        "macro_f1": scores.macro_f1,
        "log_loss": float(-np.log(np.maximum(guesses[np.arange(len(relations)), relations], 1e-12)).mean()),
    }


def _softmax(logits: FloatArray) -> FloatArray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)
