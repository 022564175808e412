"""Evaluation of judges as in Maiya's thesis on PPairS (2024), only for comparison with its scores.

Training and test data overlap, so the scores do not measure how good a judge is.

Ordered comparisons are split at random, so that the mirror image of a test comparison, and other comparisons of its
items, are in the training half. Even a probe trained on random labels therefore scores well. Ties count as "not
greater", which a constant answer predicts correctly. :func:`climassay.judging.benchmark.score_judge` measures without
these faults.

References:
    Maiya 2024, section 4.1 and appendix A; the split, the classifier and the correlation follow its public code.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from climassay.errors import InputError
from climassay.judging.judges import (
    BootstrapUnits,
    Contrasts,
    DirectScoring,
    JudgeScore,
    PairwisePrompt,
    StateExtractor,
    StateTable,
    ZeroShotContrast,
)
from climassay.judging.preferences import FloatArray, IntArray, Item, Judgements, Method, QualityRequests, by_group
from climassay.judging.probe import States
from climassay.judging.ranking import sort_items
from climassay.judging.training import labels_of, pair_outcomes, pairs_within
from climassay.models.contract import OptionScorer

LAST_LAYER = (-1,)
"""Layers that the probe of Maiya (2024) uses: only the last layer."""
_CERTAIN = 23.0
"""Log-odds assigned to a predicted class when items are sorted; the probability of the class is then 1 - 1e-10."""


@dataclass(frozen=True, slots=True)
class PublishedScores:
    """Scores of a judge under the evaluation protocol of Maiya (2024), the thesis on PPairS.

    They are upper bounds, because the same items occur in training and in test pairs.
    """

    accuracy: JudgeScore
    """Proportion of test comparisons, each in one order, for which the prediction "greater" or "not greater" is
    correct."""
    constant: float
    """Accuracy of always answering "not greater"."""
    spearman: JudgeScore
    """Mean over groups of Spearman's rank correlation between the labels in the predicted order and in sorted order.

    It is 1 for a perfect order even if labels are tied. Groups whose labels are all equal are omitted.
    """
    failed: int
    """Number of unordered pairs omitted because the model gave no answer."""


def score_as_published(
    name: str,
    items: Sequence[Item],
    quality_requests: QualityRequests,
    model: OptionScorer,
    table: StateTable | None,
    *,
    beam_size: int | None = 1000,
    threshold: float = 0.6,
    seed: int = 0,
) -> PublishedScores | None:
    """Score a method as in Maiya (2024); return None for methods that the thesis does not have.

    Each pair is compared in one order; the log-odds of the other order are their negative.

    Args:
        name: ``direct``, ``pairs``, ``zero-shot`` or ``ppairs``; others are not scored.
        items: Labelled items, compared within groups.
        quality_requests: Prompt templates of the quality.
        model: Recorded model that answers the requests of direct scoring and PairS.
        table: Hidden states of the items, with the last layer among them; None for models without them.
        beam_size: Maximum number of partial merges per merge; None keeps all.
        threshold: Entropy in nats above which both outcomes of a comparison are followed.
        seed: Seed of the split and of the bootstrap.

    Raises:
        InputError: The model answered no comparison.
    """
    pairs = pairs_within([item.group for item in items], np.arange(len(items)), None, np.random.default_rng(seed))
    methods: dict[str, Method] = {
        "direct": DirectScoring(model, quality_requests),
        "pairs": PairwisePrompt(model, quality_requests, orders=1),
    }
    if table is not None:
        methods["zero-shot"] = ZeroShotContrast(table, orders=1)
    judgements: Judgements | Contrasts
    if name == "ppairs" and table is not None:
        judgements = table.contrasts(items, pairs, layers=LAST_LAYER)
    elif name in methods:
        judgements = methods[name].compare(items, pairs)
    else:
        return None
    return score_comparisons(items, pairs, judgements, beam_size=beam_size, threshold=threshold, seed=seed)


def score_comparisons(
    items: Sequence[Item],
    pairs: IntArray,
    judgements: Judgements | Contrasts,
    *,
    beam_size: int | None = 1000,
    threshold: float = 0.6,
    seed: int = 0,
) -> PublishedScores:
    """Score comparisons on a random half of all ordered pairs; a probe on contrasts is trained on the other half.

    Args:
        items: Labelled items.
        pairs: Unordered pairs within groups, shape [pairs, 2].
        judgements: Judgements of the pairs in this order, or the contrasts on which a probe is trained to judge them.
        beam_size: Maximum number of partial merges, see :func:`score_as_published`.
        threshold: Entropy threshold of merges, see :func:`score_as_published`.
        seed: Seed of the sample, see :func:`score_as_published`.

    Raises:
        InputError: No pair has an answer.
    """
    is_answered = ~judgements.failed
    if not is_answered.any():
        raise InputError("The model answered none of the comparisons.")
    answered_pairs = pairs[is_answered]
    ordered_pairs = np.concatenate([answered_pairs, answered_pairs[:, ::-1]])
    labels = labels_of(items)
    outcomes = pair_outcomes(labels, ordered_pairs)
    permutation = np.random.default_rng([seed, 3]).permutation(len(ordered_pairs))
    train, test = np.sort(permutation[: len(ordered_pairs) // 2]), np.sort(permutation[len(ordered_pairs) // 2 :])
    if isinstance(judgements, Contrasts):
        states = judgements.states[is_answered]
        rows = np.concatenate([states, -states])
        classes = classify_comparisons(rows[train], outcomes[train], rows[test])
        log_odds = _CERTAIN * classes.astype(np.float64)
    else:
        log_odds = np.concatenate([judgements.log_odds[is_answered], -judgements.log_odds[is_answered]])[test]
    bootstrap_units = BootstrapUnits.of([item.group for item in items], seed=seed)
    is_greater = outcomes[test] > 0
    return PublishedScores(
        bootstrap_units.proportion(np.asarray((log_odds > 0) == is_greater, dtype=np.float64), ordered_pairs[test]),
        float(1 - is_greater.mean()),
        _rank_correlation(items, ordered_pairs[test], log_odds, labels, bootstrap_units, beam_size, threshold),
        int(judgements.failed.sum()),
    )


def classify_comparisons(train_states: States, outcomes: IntArray, test_states: States) -> IntArray:
    """Predict the outcome of comparisons, 1, 0 or -1, by the classifier of Maiya (2024).

    The classifier is scikit-learn's logistic regression of up to three classes with its default penalty, without the
    centring that the text of the thesis describes, but its code omits.

    Args:
        train_states: Differences of hidden states in the training comparisons, shape [pairs, features].
        outcomes: Outcomes of the training comparisons, shape [pairs].
        test_states: Differences of hidden states in the test comparisons, shape [tests, features].

    Returns:
        Predicted outcomes, shape [tests].
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(outcomes)) < 2:
        return np.full(len(test_states), outcomes[0] if len(outcomes) else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the thesis stops after as many steps
        classifier = LogisticRegression(max_iter=10_000).fit(train_states, outcomes)
    return np.asarray(classifier.predict(test_states), dtype=np.int64)


def score_transfer(
    source: Sequence[Item], target: Sequence[Item], extractor: StateExtractor, *, seed: int = 0
) -> JudgeScore:
    """Train Maiya's (2024) classifier on all comparisons of some items; return its accuracy on comparisons of others.

    Args:
        source: Labelled training items.
        target: Labelled test items, compared in both orders; ties count as "not greater".
        extractor: Source of hidden states, which provides the last layer.
        seed: Seed of the bootstrap.

    Raises:
        InputError: The model answered no comparison of the source or of the target.
    """
    states, outcomes, pairs_by_part = [], [], []
    for items in (source, target):
        pairs = pairs_within([item.group for item in items], np.arange(len(items)), None, np.random.default_rng(seed))
        contrasts = extractor.contrasts(items, pairs, layers=LAST_LAYER)
        if contrasts.failed.all():
            raise InputError("The model answered none of the comparisons.")
        answered_pairs = pairs[~contrasts.failed]
        pairs_by_part.append(np.concatenate([answered_pairs, answered_pairs[:, ::-1]]))
        states.append(np.concatenate([contrasts.states[~contrasts.failed], -contrasts.states[~contrasts.failed]]))
        outcomes.append(pair_outcomes(labels_of(items), pairs_by_part[-1]))
    predictions = classify_comparisons(states[0], outcomes[0], states[1])
    bootstrap_units = BootstrapUnits.of([item.group for item in target], seed=seed)
    return bootstrap_units.proportion(
        np.asarray((predictions > 0) == (outcomes[1] > 0), dtype=np.float64), pairs_by_part[1]
    )


def _rank_correlation(
    items: Sequence[Item],
    pairs: IntArray,
    log_odds: FloatArray,
    labels: FloatArray,
    bootstrap_units: BootstrapUnits,
    beam_size: int | None,
    threshold: float,
) -> JudgeScore:
    """Return the mean rank correlation of groups that are sorted by their test comparisons; others are undecided."""
    from scipy.stats import spearmanr

    # Of a pair tested in both orders the last one counts, as in the code of the thesis.
    correlations = {}
    for (first, second), value in zip(pairs.tolist(), log_odds.tolist(), strict=True):
        correlations[first, second], correlations[second, first] = value, -value
    values, group_units = [], []
    compared_items = sorted({index for pair in correlations for index in pair})
    for group in by_group([item.group for item in items], compared_items).values():
        members = np.array(group)
        if np.ptp(labels[members]) == 0:
            continue

        def ask(item_pairs: IntArray, members: IntArray = members) -> FloatArray:
            return np.array([correlations.get((int(i), int(j)), 0.0) for i, j in members[item_pairs]])

        ranking = sort_items(
            len(members), ask, method="beam", beam_size=beam_size, threshold=threshold, score="sum", seed=group[0]
        )
        ordered_labels = labels[members][list(ranking.order)]
        values.append(float(spearmanr(ordered_labels, np.sort(ordered_labels)[::-1]).statistic))
        group_units.append(bootstrap_units.unit_of_item[group[0]])
    return bootstrap_units.group_mean(np.array(values), np.array(group_units, dtype=np.int64))
