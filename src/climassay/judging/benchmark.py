"""The benchmark of judges: cross-validated by group, beside the baselines that a judge has to beat.

What the published evaluation got wrong is not possible here: a pair and its mirror image, or two pairs of one article,
never stand on both sides of a split; the constant and "the longer text is better" are always printed; accuracy on
pairs of nearly equal length shows what is left when length cannot help.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from climassay.errors import InputError
from climassay.judging.candidates import Candidate, Fold, Learned, Untrained, labels_of, outcomes_of, pairs_within
from climassay.judging.items import Item, by_group, word_counts
from climassay.judging.preferences import FloatArray, IntArray, Method, Progress
from climassay.judging.probe import log_length_differences, three_way
from climassay.judging.scores import (
    NO_ANSWER,
    Figure,
    JudgedPairs,
    PairedFigure,
    Units,
    correctness,
    correlations,
    pair_calibration,
    three_way_correctness,
)
from climassay.judging.sorting import SortMethod, sort_items
from climassay.learning.calibration import fit_tie_band
from climassay.learning.evaluation import Calibration

NEARLY_EQUAL = 1.1
"""Two texts whose numbers of words have a lower ratio are nearly equally long."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well one judge agrees with the experts."""

    accuracy_differing: Figure
    """Share of pairs with different labels whose order is right; undecided pairs count one half."""
    accuracy_three_way: Figure
    """Share of all pairs for which greater, equal or less is right."""
    spearman: Figure
    """Rank correlation within groups, averaged over groups."""
    kendall: Figure
    """tau-b, likewise."""
    accuracy_nearly_equal_length: Figure
    """As ``accuracy_differing``, on pairs whose lengths differ by under 10%."""


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """Accuracy of a probe that saw so many labelled items."""

    items: int
    accuracy_differing: Figure


@dataclass(frozen=True, slots=True)
class JudgeScores:
    """One method's agreement with the experts, beside the baselines."""

    method: str
    quality: str
    agreement: Agreement
    baselines: dict[str, Agreement]
    """``constant`` (always "not greater"; in three ways the commonest answer of the training pairs) and ``longer``."""
    versus_longer: PairedFigure
    """Accuracy on differing pairs minus that of "the longer text is better", on the same pairs."""
    versus_longer_nearly_equal: PairedFigure
    """The same on pairs of nearly equal length."""
    calibration: Calibration | None
    """Of the probabilities on differing pairs; None for methods that give none."""
    n_items: int
    n_pairs: int
    """Unordered test pairs, each judged in both orders."""
    n_pairs_differing: int
    n_groups: int
    failed: int
    """Test pairs without an answer: undecided, so half right where the labels differ, and wrong in three ways."""
    layers: tuple[tuple[int, ...], ...]
    """Layers that each fold's probe reads."""
    regularisation: tuple[float | None, ...]
    learning_curve: tuple[LearningPoint, ...] = ()
    order: tuple[tuple[str, float], ...] = field(default=())
    """Items with their place in their ranking, 1 for the best of its group."""


def score_judge(
    items: Sequence[Item],
    folds: Sequence[Fold],
    candidate: Candidate,
    *,
    method: str,
    quality: str,
    sort: SortMethod = "strengths",
    sizes: Sequence[int] = (),
    seed: int = 0,
    on_fold: Callable[[int], None] | None = None,
) -> JudgeScores:
    """Cross-validate one method.

    Args:
        items: Labelled items.
        folds: From :func:`climassay.judging.make_folds`.
        candidate: The method.
        method: Its name, for tables.
        quality: Name of the quality.
        sort: How each test group is ranked from its preferences.
        sizes: Numbers of labelled items for a learning curve.
        seed: Of the bootstrap.
        on_fold: Called with the number of each fold that is done.

    Raises:
        InputError: The method cannot learn from a fold's training items, for example because all have one label.
    """
    candidate.prepare(folds)
    groups = [item.group for item in items]
    units = Units.of(groups, seed=seed)
    words = np.array(word_counts(items))
    tested: list[JudgedPairs] = []
    longer: list[JudgedPairs] = []
    constant: list[FloatArray] = []
    rankings: list[tuple[IntArray, FloatArray]] = []
    failed = 0
    learnt: list[Learned] = []
    labels = labels_of(items)
    for fold in folds:
        try:
            learned = candidate.learn(fold)
        except InputError as error:
            raise InputError(f"Fold {fold.number + 1} of {method}: {error}") from error
        learnt.append(learned)
        judged = learned.judge(fold.test_pairs)
        failed += int(judged.failed.sum())
        truth = labels[fold.test_pairs[:, 0]] - labels[fold.test_pairs[:, 1]]
        # A comparison that failed is no prediction of equality.
        predicted = np.where(judged.failed, NO_ANSWER, three_way(judged.log_odds, learned.tie_band))
        tested.append(JudgedPairs(fold.test_pairs, truth, judged.log_odds, predicted))
        ratios, outcomes = log_length_differences(words, fold.test_pairs), outcomes_of(labels, fold.train_pairs)
        band = fit_tie_band(log_length_differences(words, fold.train_pairs), outcomes)
        longer.append(JudgedPairs(fold.test_pairs, truth, ratios, three_way(ratios, band)))
        # How right the commonest answer of the training pairs is on each test pair, over both its orders.
        ties, least = int((outcomes == 0).sum()), int((outcomes != 0).sum()) / 2
        constant.append(np.where(truth == 0, float(ties > least), 0.0 if ties > least else 0.5))
        rankings += [_ranked(members, learned, sort) for members in by_group(groups, fold.test).values()]
        if on_fold is not None:
            on_fold(fold.number)
    ours, length = _joined(tested), _joined(longer)
    ratios = log_length_differences(words, ours.pairs)
    near = np.abs(ratios) < np.log(NEARLY_EQUAL)
    differ = ours.truth != 0
    by_length = [(members, words[members].astype(np.float64)) for members, _ in rankings]
    flat = [(members, np.zeros(len(members))) for members, _ in rankings]
    undecided = replace(ours, log_odds=np.zeros(len(ours.pairs)))
    # Direct scoring gives no probabilities but 1, 0.5 and 0.
    calibrated = None if method.startswith("direct") else pair_calibration(ours)
    return JudgeScores(
        method,
        quality,
        _agreement(units, ours, near, correlations(units, rankings, labels)),
        {
            "constant": replace(
                _agreement(units, undecided, near, correlations(units, flat, labels)),
                accuracy_three_way=units.mean(np.concatenate(constant), ours.pairs),
            ),
            "longer": _agreement(units, length, near, correlations(units, by_length, labels)),
        },
        _versus(units, length, ours, differ),
        _versus(units, length, ours, differ & near),
        calibrated,
        n_items=len(items),
        n_pairs=len(ours.pairs),
        n_pairs_differing=int(differ.sum()),
        n_groups=len(set(groups)),
        failed=failed,
        layers=tuple(learned.layers for learned in learnt),
        regularisation=tuple(learned.regularisation for learned in learnt),
        learning_curve=_learning_curve(items, folds, candidate, units, labels, sizes),
        order=tuple(
            (items[index].id, place)
            for members, scores in rankings
            for place, index in enumerate(members[np.argsort(-scores, kind="stable")], start=1)
        ),
    )


def evaluate_judge(
    items: Sequence[Item],
    method: Method,
    *,
    quality: str,
    band: float = 0.0,
    pairs_per_item: int | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> JudgeScores:
    """Score a judge that learns nothing any more on labelled items, which a probe must not have been trained on.

    Args:
        items: Labelled items.
        method: Who compares.
        quality: Name of the quality.
        band: Half-width, in log-odds, within which it calls two items equal.
        pairs_per_item: Compare each item with so many others of its group instead of all.
        seed: Of the pairs drawn and of the bootstrap.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: Items are not labelled, or no two can be compared.
    """
    if any(item.label is None for item in items):
        raise InputError("A judge is scored on items that have a label: name the column with --label.")
    everything, nothing = np.arange(len(items)), np.zeros((0, 2), dtype=np.int64)
    pairs = pairs_within([item.group for item in items], everything, pairs_per_item, np.random.default_rng(seed))
    if not len(pairs):
        raise InputError("No two of the items can be compared: each is the only one of its group.")
    fold = Fold(0, nothing[:, 0], nothing, everything, pairs)
    candidate = Untrained(method, items, band=band, on_progress=on_progress)
    return score_judge(items, [fold], candidate, method=method.name, quality=quality, seed=seed)


def _agreement(units: Units, test: JudgedPairs, near: np.ndarray, ranks: dict[str, Figure]) -> Agreement:
    differ = test.truth != 0
    differing, close = test.take(differ), test.take(differ & near)
    return Agreement(
        units.mean(correctness(differing), differing.pairs),
        units.mean(three_way_correctness(test), test.pairs),
        ranks["spearman"],
        ranks["kendall"],
        units.mean(correctness(close), close.pairs),
    )


def _versus(units: Units, baseline: JudgedPairs, ours: JudgedPairs, chosen: np.ndarray) -> PairedFigure:
    first, second = baseline.take(chosen), ours.take(chosen)
    return units.difference(correctness(first), correctness(second), second.pairs)


def _joined(parts: Sequence[JudgedPairs]) -> JudgedPairs:
    columns = zip(*((part.pairs, part.truth, part.log_odds, part.predicted) for part in parts), strict=True)
    return JudgedPairs(*map(np.concatenate, columns))


def _ranked(group: Sequence[int], learned: Learned, sort: SortMethod) -> tuple[IntArray, FloatArray]:
    """Rank a list by sorting.

    An item's score is its strength where the sort fits strengths, so that items that the judge does not tell apart
    share a place in the correlation; otherwise it is the number of items behind it.
    """
    members = np.array(group, dtype=np.int64)

    def ask(pairs: IntArray) -> FloatArray:
        wanted = members[pairs]
        turned = wanted[:, 0] > wanted[:, 1]
        found = learned.judge(np.sort(wanted, axis=1)).log_odds
        return np.where(turned, -found, found)

    # With one seed for all groups, a judge that says nothing would put every group into the same shuffled order, which
    # goes with the labels of tables that list the same systems in the same order in every group.
    ranking = sort_items(len(members), ask, method=sort, seed=int(members[0]))
    if ranking.strengths is not None:
        return members, np.round(ranking.strengths, 9)
    scores = np.empty(len(members))
    scores[list(ranking.order)] = np.arange(len(members), 0, -1)
    return members, scores


def _learning_curve(
    items: Sequence[Item],
    folds: Sequence[Fold],
    candidate: Candidate,
    units: Units,
    labels: FloatArray,
    sizes: Sequence[int],
) -> tuple[LearningPoint, ...]:
    """Accuracy on the same test pairs after learning from nested parts of each fold's training items.

    A size that is too small to learn from in one of the folds is left out.
    """
    points = []
    for size in sizes:
        parts = []
        for fold in folds:
            if size > len(fold.train):
                continue
            # Whole groups first, in a seeded order; where there is one group, items.
            members = by_group([item.group for item in items], fold.train)
            draw = np.random.default_rng([fold.number, 2])
            order = draw.permutation(sorted(members)).tolist() if len(members) > 1 else []
            chosen = [index for name in order for index in members[name]] or draw.permutation(fold.train).tolist()
            pairs = fold.train_pairs[np.isin(fold.train_pairs, chosen[:size]).all(axis=1)]
            if not outcomes_of(labels, pairs).any():
                continue
            try:
                judged = candidate.learn(fold, pairs).judge(fold.test_pairs)
            except InputError:  # so few items can be too few to choose the regularisation on
                continue
            truth = labels[fold.test_pairs[:, 0]] - labels[fold.test_pairs[:, 1]]
            parts.append(
                JudgedPairs(fold.test_pairs, truth, judged.log_odds, np.sign(judged.log_odds).astype(np.int64))
            )
        if len(parts) == len(folds):
            test = _joined(parts)
            test = test.take(test.truth != 0)
            points.append(LearningPoint(size, units.mean(correctness(test), test.pairs)))
    return tuple(points)
