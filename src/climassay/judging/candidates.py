"""Every method in a form that a cross-validated experiment can run: learn from a fold, judge its test pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.judging.asking import Questions, mirrored
from climassay.judging.folds import Fold
from climassay.judging.items import Item, word_counts
from climassay.judging.preferences import FloatArray, IntArray, Judgements, Preferences, Progress
from climassay.judging.probe import Contrast, log_length_differences
from climassay.judging.probe_fitting import Fit, fit_contrast, fit_pointwise, fit_principal
from climassay.judging.probing import Harvester
from climassay.judging.prompting import DirectScoring, PairwisePrompt, averaged
from climassay.judging.tables import ContrastTable, PointTable
from climassay.learning.calibration import fit_tie_band
from climassay.learning.pairwise import Ties
from climassay.models.contract import OptionScorer

MethodName = Literal[
    "direct",
    "direct-expected",
    "pairs",
    "zero-shot",
    "ppairs",
    "ppairs-length",
    "principal",
    "pointwise",
    "pointwise-length",
]
METHODS: tuple[MethodName, ...] = get_args(MethodName)
"""``-length``: with length regressed out of the activations."""
NEEDS_WEIGHTS = frozenset(METHODS[3:])
"""Methods that read hidden states, or answers that come with them."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A method after it has seen a fold's training items."""

    judge: Callable[[IntArray], Judgements]
    """Of unordered pairs (i, j) with i < j, shape [pairs, 2]."""
    tie_band: float
    layers: tuple[int, ...] = ()
    """Layers that the probe reads."""
    regularisation: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A probe fitted on a fold's training pairs, and what it was fitted on."""

    fit: Fit[Any]
    layers: tuple[int, ...]
    """Layers that it reads, chosen where there was a choice."""
    pairs: IntArray
    """[pairs, 2]; the pairs that had activations, in both orders for a probe on contrast pairs."""
    failed: int
    """Pairs left out because the model gave no activations."""


class Candidate(Protocol):
    """A method under test."""

    def prepare(self, folds: Sequence[Fold]) -> None:
        """Compute in one go what the folds will need."""

    def learn(self, fold: Fold, train_pairs: IntArray | None = None) -> Learned:
        """Learn from a fold's training pairs, or from some of them, shape [pairs, 2]."""


@dataclass(frozen=True)
class ProbeSettings:
    """How probes are fitted."""

    layers: tuple[tuple[int, ...], ...] = ((-1,),)
    """Sets of layers; of several, the one with the lowest cross-validated loss on training items is taken."""
    regularisation: float | None = None
    ties: Ties = "drop"
    seed: int = 0


class Untrained:
    """Direct scoring, PairS and zero-shot contrast: training items decide the tie band only."""

    def __init__(self, take: Callable[[IntArray], Judgements], truth: FloatArray) -> None:
        self._take = take
        self._truth = truth

    def prepare(self, folds: Sequence[Fold]) -> None:
        """See :class:`Candidate`."""
        self._take(pairs_of_folds(folds))

    def learn(self, fold: Fold, train_pairs: IntArray | None = None) -> Learned:
        """See :class:`Candidate`."""
        pairs = fold.train_pairs if train_pairs is None else train_pairs
        found = self._take(pairs)
        kept = ~found.failed
        band = fit_tie_band(found.log_odds[kept], _outcomes(self._truth, pairs[kept])) if kept.any() else 0.0
        return Learned(self._take, band)


class ContrastCandidate:
    """A probe on contrast pairs, supervised or the first principal component."""

    def __init__(
        self,
        table: ContrastTable,
        items: Sequence[Item],
        settings: ProbeSettings,
        *,
        kind: Literal["supervised", "principal"] = "supervised",
        regress_length: bool = False,
    ) -> None:
        self._table = table
        self._labels = np.array([item.label for item in items], dtype=np.float64)
        self._groups = [item.group for item in items]
        self._words = np.array(word_counts(items))
        self._settings = settings
        self._kind = kind
        self._lengths = self._words if regress_length else None

    def prepare(self, folds: Sequence[Fold]) -> None:
        """See :class:`Candidate`."""
        self._table.prepare(both_ways(pairs_of_folds(folds)))

    def learn(self, fold: Fold, train_pairs: IntArray | None = None) -> Learned:
        """See :class:`Candidate`."""
        fitted = self.fit(fold.train_pairs if train_pairs is None else train_pairs)
        probe = fitted.fit.probe

        def judge(wanted: IntArray) -> Judgements:
            asked = both_ways(wanted)
            found = self._table.take(asked, fitted.layers)
            odds = probe.log_odds(found.states, log_length_differences(self._words, asked))
            return averaged(odds, found.failed, 2)

        return Learned(judge, probe.tie_band, fitted.layers, probe.provenance.regularisation)

    def fit(self, train_pairs: IntArray) -> Fitted:
        """Fit on unordered pairs [pairs, 2], each in both orders; of several sets of layers, take the best."""
        pairs = both_ways(train_pairs)
        return min((self._fit(pairs, layers) for layers in self._settings.layers), key=_loss)

    def _fit(self, pairs: IntArray, layers: tuple[int, ...]) -> Fitted:
        found = self._table.take(pairs, layers)
        kept = ~found.failed
        _check_any(kept, "comparisons")
        contrast = Contrast(found.states.plus[kept], found.states.minus[kept])
        if self._kind == "principal":
            fit = fit_principal(contrast, pairs[kept], self._labels, groups=self._groups, lengths=self._lengths)
        else:
            fit = fit_contrast(
                contrast,
                pairs[kept],
                self._labels,
                groups=self._groups,
                lengths=self._lengths,
                regularisation=self._settings.regularisation,
                ties=self._settings.ties,
                seed=self._settings.seed,
            )
        return Fitted(fit, layers, pairs[kept], int(found.failed.sum()))


class PointCandidate:
    """A pointwise probe."""

    def __init__(
        self, table: PointTable, items: Sequence[Item], settings: ProbeSettings, *, regress_length: bool = False
    ) -> None:
        self._table = table
        self._labels = np.array([item.label for item in items], dtype=np.float64)
        self._groups = [item.group for item in items]
        self._words = np.array(word_counts(items))
        self._settings = settings
        self._lengths = self._words if regress_length else None

    def prepare(self, folds: Sequence[Fold]) -> None:  # noqa: ARG002 - all items are harvested
        """See :class:`Candidate`."""
        self._table.take(self._settings.layers[0])

    def learn(self, fold: Fold, train_pairs: IntArray | None = None) -> Learned:
        """See :class:`Candidate`."""
        fitted = self.fit(fold.train_pairs if train_pairs is None else train_pairs)
        probe = fitted.fit.probe
        states, failed = self._table.take(fitted.layers)
        scores = probe.scores(states, self._words)

        def judge(wanted: IntArray) -> Judgements:
            lost = np.asarray(failed[wanted].any(axis=1), dtype=bool)
            return Judgements(np.where(lost, 0.0, probe.log_odds(scores, wanted)), lost)

        return Learned(judge, probe.tie_band, fitted.layers, probe.provenance.regularisation)

    def fit(self, train_pairs: IntArray) -> Fitted:
        """Fit on unordered pairs [pairs, 2]; of several sets of layers, take the best."""
        return min((self._fit(train_pairs, layers) for layers in self._settings.layers), key=_loss)

    def _fit(self, pairs: IntArray, layers: tuple[int, ...]) -> Fitted:
        states, failed = self._table.take(layers)
        kept = np.asarray(~failed[pairs].any(axis=1), dtype=bool)
        _check_any(kept, "pairs")
        fit = fit_pointwise(
            states,
            self._labels,
            groups=self._groups,
            pairs=pairs[kept],
            lengths=self._lengths,
            regularisation=self._settings.regularisation,
            seed=self._settings.seed,
        )
        return Fitted(fit, layers, pairs[kept], int((~kept).sum()))


class CandidateMaker:
    """Makes the methods of one data set and quality; those that read the same harvest share it.

    Args:
        items: Labelled items.
        questions: Templates of the quality.
        model: Answers of direct scoring and PairS come from it (with records around it).
        harvester: Hidden states; None for models that give log-probabilities only.
        settings: How probes are fitted.
        on_progress: Called with the number of requests answered since the last call.
    """

    def __init__(
        self,
        items: Sequence[Item],
        questions: Questions,
        model: OptionScorer,
        harvester: Harvester | None,
        settings: ProbeSettings,
        on_progress: Progress | None = None,
    ) -> None:
        self._items = items
        self._questions = questions
        self._model = model
        self._settings = settings
        self._on_progress = on_progress
        self._truth = np.array([item.label for item in items], dtype=np.float64)
        self._contrasts = ContrastTable(harvester, items, on_progress) if harvester else None
        self._points = PointTable(harvester, items, on_progress) if harvester else None

    def make(self, name: MethodName) -> Candidate:
        """The method of that name.

        Raises:
            InputError: There is no such method, or the model cannot do what it needs.
        """
        if name not in METHODS:
            raise InputError(f"There is no method {name!r}: there are {', '.join(METHODS)}.")
        if name in NEEDS_WEIGHTS and (self._contrasts is None or self._points is None):
            raise InputError(f"The method {name} reads hidden states: use a local: model, not {self._model.name}.")
        if name == "direct" or name == "direct-expected":
            rule: Literal["most_likely", "expected"] = "most_likely" if name == "direct" else "expected"
            return self._untrained(DirectScoring(self._model, self._questions, rule=rule))
        if name == "pairs":
            return self._untrained(PairwisePrompt(self._model, self._questions))
        assert self._contrasts is not None
        assert self._points is not None
        if name == "zero-shot":
            return Untrained(_zero_shot(self._contrasts, self._settings.layers[0]), self._truth)
        regress = name.endswith("-length")
        if name.startswith("pointwise"):
            return PointCandidate(self._points, self._items, self._settings, regress_length=regress)
        kind: Literal["supervised", "principal"] = "principal" if name == "principal" else "supervised"
        return ContrastCandidate(self._contrasts, self._items, self._settings, kind=kind, regress_length=regress)

    def _untrained(self, method: DirectScoring | PairwisePrompt) -> Untrained:
        return Untrained(Preferences(method, self._items, on_progress=self._on_progress).judge, self._truth)


def _zero_shot(table: ContrastTable, layers: tuple[int, ...]) -> Callable[[IntArray], Judgements]:
    def take(pairs: IntArray) -> Judgements:
        found = table.take(both_ways(pairs), layers)
        return averaged(found.margins, found.failed, 2)

    return take


def both_ways(pairs: IntArray) -> IntArray:
    """Unordered pairs [pairs, 2] in both orders, [2 pairs, 2]: all of them, then all mirrored."""
    return np.concatenate([pairs, mirrored(pairs)])


def pairs_of_folds(folds: Sequence[Fold]) -> IntArray:
    """All unordered pairs that the folds train or test on, [pairs, 2], each once."""
    return np.unique(np.concatenate([pairs for fold in folds for pairs in (fold.train_pairs, fold.test_pairs)]), axis=0)


def _outcomes(truth: FloatArray, pairs: IntArray) -> IntArray:
    return np.sign(truth[pairs[:, 0]] - truth[pairs[:, 1]]).astype(np.int64)


def _check_any(kept: NDArray[np.bool_], what: str) -> None:
    if not kept.any():
        raise InputError(
            f"The model gave no activations for any of the {len(kept)} training {what}: the texts may be longer than "
            "it takes (shorten their contexts with --context-words)."
        )


def _loss(fitted: Fitted) -> float:
    path = fitted.fit.path
    return 0.0 if path is None else path.losses[path.values.index(path.chosen)]
