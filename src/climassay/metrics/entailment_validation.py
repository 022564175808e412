"""How good an entailment scorer is on labelled pairs: ClimaQA's check of its judge, for any scorer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.metrics.entailment import RELATIONS, RelationScorer
from climassay.metrics.entailment_head import HeadEntailment
from climassay.metrics.entailment_head_training import auroc, supporting, two_class_auroc
from climassay.metrics.entailment_pairs import LabelledPair
from climassay.statistics import (
    ClassificationScores,
    Interval,
    bootstrap_interval,
    classification_scores,
    expected_calibration_error,
)

Progress = Callable[[int], None]
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class EntailmentScores:
    """How a scorer did on labelled pairs. Intervals are over statements, whose pairs are resampled together."""

    scorer: str
    pairs: int
    statements: int
    failed: int
    """Pairs the scorer failed on: wrong in both accuracies, left out of the rest."""
    two_class: ClassificationScores
    """SUPPORTS or REFUTES on the pairs that are one of them (the paper's 81% is of such pairs); a half and less is
    REFUTES."""
    two_class_interval: Interval
    three_class: ClassificationScores
    three_class_interval: Interval
    two_class_auroc: float
    """P(a supporting pair ranks above a refuting one); 0.5 is chance."""
    two_class_auroc_interval: Interval
    support_auroc: float
    """P(a supporting pair ranks above any other by P(confirms))."""
    calibration_error: float
    """Expected calibration error of P(SUPPORTS) on the pairs of the two classes: of the class given, ten bins."""


def unseen_pairs(pairs: Sequence[LabelledPair], scorer: RelationScorer) -> tuple[LabelledPair, ...]:
    """The pairs whose statements a trained head was not trained on; all of them for other scorers.

    Raises:
        InputError: None is left.
    """
    if not isinstance(scorer, HeadEntailment):
        return tuple(pairs)
    left = tuple(pair for pair in pairs if not scorer.head.knows(pair.statement))
    if not left:
        raise InputError("The head was trained on every statement of this file: give pairs that it does not know.")
    return left


def sample_statements(pairs: Sequence[LabelledPair], limit: int | None, seed: int = 0) -> tuple[LabelledPair, ...]:
    """The pairs of so many statements drawn at random, in the order of the pairs; all where ``limit`` is None."""
    statements = list(dict.fromkeys(pair.statement for pair in pairs))
    if limit is None or limit >= len(statements):
        return tuple(pairs)
    drawn = np.random.default_rng(seed).choice(len(statements), limit, replace=False)
    chosen = {statements[place] for place in drawn}
    return tuple(pair for pair in pairs if pair.statement in chosen)


def validate_entailment(
    pairs: Sequence[LabelledPair],
    scorer: RelationScorer,
    *,
    resamples: int = 1000,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> EntailmentScores:
    """Score a scorer on labelled pairs.

    Args:
        pairs: Some of them supporting, some refuting.
        scorer: Any; of a trained head only :func:`unseen_pairs` tell the truth.
        resamples: For the intervals.
        seed: Of the resampling.
        on_progress: Called with the number of pairs done since the last call.

    Raises:
        InputError: No supporting or no refuting pair, or the scorer failed on all of one kind.
    """
    found = []
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        found += scorer.relations([(pair.premise, pair.statement) for pair in block])
        if on_progress is not None:
            on_progress(len(block))
    truth = np.array([pair.relation for pair in pairs], dtype=np.int64)
    known = np.array([one is not None for one in found], dtype=bool)
    if not {0, 1} <= set(truth[known].tolist()):
        raise InputError("An entailment scorer is validated on pairs of which some are SUPPORTS and some REFUTES.")
    given = np.array([one or (0.0, 0.0, 0.0) for one in found], dtype=np.float64)
    owners = np.unique([pair.statement for pair in pairs], return_inverse=True)[1]
    decided = truth < 2
    share = supporting(given)
    two = [(0 if high else 1) if sure else None for high, sure in zip(share > 0.5, known, strict=True)]
    three = [int(row.argmax()) if sure else None for row, sure in zip(given, known, strict=True)]
    two_right = np.array([one == wanted for one, wanted in zip(two, truth.tolist(), strict=True)])
    three_right = np.array([one == wanted for one, wanted in zip(three, truth.tolist(), strict=True)])
    sure = decided & known
    high = share[sure] > 0.5
    labels = np.array(("SUPPORTS", "REFUTES"))

    def by_statement(values: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> Interval:
        return _clustered(owners[chosen], lambda at: float(values[chosen][at].mean()), resamples, seed)

    return EntailmentScores(
        scorer=scorer.name,
        pairs=len(pairs),
        statements=int(owners.max()) + 1,
        failed=int((~known).sum()),
        two_class=classification_scores(
            labels[truth[decided]].tolist(),
            [None if two[place] is None else str(labels[two[place]]) for place in np.flatnonzero(decided)],
        ),
        two_class_interval=by_statement(two_right, decided),
        three_class=classification_scores(
            [RELATIONS[place] for place in truth], [None if one is None else RELATIONS[one] for one in three]
        ),
        three_class_interval=by_statement(three_right, np.ones(len(pairs), dtype=bool)),
        two_class_auroc=two_class_auroc(given[known], truth[known]),
        two_class_auroc_interval=_clustered(
            owners[sure], lambda at: auroc(share[sure][at], truth[sure][at] == 0), resamples, seed
        ),
        support_auroc=auroc(given[known][:, 0], truth[known] == 0),
        calibration_error=expected_calibration_error(
            np.where(high, share[sure], 1 - share[sure]), (high == (truth[sure] == 0)).astype(float)
        ),
    )


def _clustered(
    owners: NDArray[np.int64], statistic: Callable[[NDArray[np.int64]], float], resamples: int, seed: int
) -> Interval:
    """Bootstrap interval over statements of a statistic of the places of pairs."""
    members = [np.flatnonzero(owners == owner) for owner in np.unique(owners)]
    return bootstrap_interval(
        np.arange(len(members)),
        lambda rows: statistic(np.concatenate([members[int(row)] for row in rows])),
        resamples=resamples,
        seed=seed,
    )
