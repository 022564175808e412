"""Whether answers say what their passages say, learned from people's word on whole answers.

What the tools of this room and of :mod:`climassay.metrics` see of each sentence is combined by a regression with a
strong penalty, and held against baselines that read nothing: an answer's length and the words that it shares with its
passages. It marks nothing in climassay, for it beats neither (docs/results/faithfulness.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.documents import split_sentences
from climassay.errors import InputError
from climassay.grounding.quantities import foreign_quantities
from climassay.learning import auroc, auroc_estimate, fit_linear, group_folds, splits_of
from climassay.learning.splits import held_out
from climassay.metrics.entailment import RelationScorer, content_words
from climassay.models.contract import Encoder
from climassay.statistics import Estimate, Interval

FloatArray = NDArray[np.float64]

NAMES = (
    "least entailed sentence", "mean entailment", "most contradicted sentence",
    "least similar sentence", "mean similarity", "words covered", "foreign quantities",
    "length", "sentences", "passages",
)  # fmt: skip
"""Names of the features of :func:`answer_features`, in order; the last three say nothing of what was written."""
READING = 7
"""So many of them come from reading answer and passages."""
PENALTY = 0.1
"""C of the regression: ten features, and about a hundred answers."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer, what it cites, and what people found."""

    text: str
    passages: tuple[str, ...]
    group: str
    """What is never split between folds, for example the report."""
    unfaithful: bool


@dataclass(frozen=True, slots=True)
class FaithfulnessScore:
    """How well something tells unfaithful answers from faithful ones of the same fold."""

    name: str
    auroc: Estimate
    gain: Interval | None
    """95% interval of its AUROC less the best baseline's; None for baselines."""


def answer_features(answers: Sequence[JudgedAnswer], scorer: RelationScorer, encoder: Encoder) -> FloatArray:
    """Features :data:`NAMES`, shape [answers, features]; each sentence counts with the passage that bears it best."""
    said = [split_sentences(answer.text) or [answer.text] for answer in answers]
    cited = [[split_sentences(passage) or [passage] for passage in answer.passages] for answer in answers]
    pairs = [
        (passage, sentence)
        for answer, own in zip(answers, said, strict=True)
        for sentence in own
        for passage in answer.passages
    ]
    result = iter(scorer.relations(pairs))
    texts = list(dict.fromkeys(text for own in (*said, *(part for parts in cited for part in parts)) for text in own))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))
    rows = np.zeros((len(answers), len(NAMES)))
    for row, answer, own, parts in zip(rows, answers, said, cited, strict=True):
        known = np.stack([vectors[text] for part in parts for text in part])
        near = (np.stack([vectors[sentence] for sentence in own]) @ known.T).max(axis=1)
        related = [[next(result) for _ in answer.passages] for _ in own]
        confirmed = [max((one.confirms for one in each if one), default=0.0) for each in related]
        contradicted = [max((one.contradicts for one in each if one), default=0.0) for each in related]
        row[:] = (
            min(confirmed), np.mean(confirmed), max(contradicted), near.min(), near.mean(), shared_words(answer),
            sum(len(foreign_quantities(sentence, answer.passages)) for sentence in own),
            np.log(len(answer.text.split())), len(own), len(answer.passages),
        )  # fmt: skip
    return rows


def shared_words(answer: JudgedAnswer) -> float:
    """Share of an answer's words of content that its passages have."""
    words, given = content_words(answer.text), content_words(" ".join(answer.passages))
    return len(words & given) / max(1, len(words))


def measure_faithfulness(
    answers: Sequence[JudgedAnswer], features: FloatArray, *, resamples: int = 1000, seed: int = 0
) -> list[FaithfulnessScore]:
    """AUROC of baselines and of learned heads, each predicting groups that it was not fitted on.

    Args:
        answers: Of at least two groups.
        features: Shape [answers, features].
        resamples: Bootstrap samples of whole groups.
        seed: For folds and bootstrap.

    Raises:
        InputError: Fewer than two groups, or answers of one kind only.
    """
    truth = np.array([answer.unfaithful for answer in answers], dtype=np.int64)
    if not 0 < truth.sum() < len(truth):
        raise InputError("There must be faithful and unfaithful answers.")
    _, groups = np.unique([answer.group for answer in answers], return_inverse=True)
    folds = group_folds(groups, len(set(groups.tolist())), seed=seed)

    def head(columns: slice) -> FloatArray:
        read = features[:, columns]
        return held_out(
            splits_of(folds),
            lambda train: fit_linear([read[train]], truth[train], 2, regularisation=PENALTY),
            lambda model, test: model.log_odds([read[test]]),
            len(truth),
        )

    baselines = {
        "length of the answer": features[:, NAMES.index("length")],
        "words not shared with the passages": -features[:, NAMES.index("words covered")],
    }
    heads = {"learned head": head(slice(READING)), "learned head with lengths": head(slice(None))}
    members = [np.flatnonzero(groups == group) for group in range(int(groups.max()) + 1)]
    generator = np.random.default_rng(seed)
    draws = [generator.integers(0, len(members), len(members)) for _ in range(resamples)]

    def drawn(scores: FloatArray) -> FloatArray:
        """Mean AUROC within groups, for each draw of groups."""
        each = np.array([auroc(scores[inside], truth[inside]) for inside in members])
        weights = np.array([truth[inside].sum() * (1 - truth[inside]).sum() for inside in members], dtype=np.float64)
        return np.array([np.average(each[draw], weights=np.maximum(weights[draw], 1e-9)) for draw in draws])

    results = {
        name: auroc_estimate(truth, scores, groups=groups, folds=groups, resamples=resamples, seed=seed)
        for name, scores in {**baselines, **heads}.items()
    }
    best = drawn(baselines[max(baselines, key=lambda name: results[name].value)])
    gains = {name: np.quantile(drawn(scores) - best, [0.025, 0.975]) for name, scores in heads.items()}
    return [
        FaithfulnessScore(name, one, Interval(*map(float, gains[name])) if name in gains else None)
        for name, one in results.items()
    ]
