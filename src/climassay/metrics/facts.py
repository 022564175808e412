"""The finer metric: which facts of an answer the reference supports, and which of the reference's it covers.

An answer that is true and beside the point scores high on factual accuracy, as the paper's authors note of their
example of Mars (ClimaQA, appendix A.2.3). Here reference and answer are cut into statements, and each is held against
the other side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError
from climassay.metrics.entailment import Relations, RelationScorer
from climassay.metrics.facts_splitting import FactSplitter, split_all
from climassay.metrics.registry import Answered, Batch, Scorer, metric
from climassay.models.contract import Encoder

Standing = Literal["supported", "contradicted", "open", "irrelevant"]

RELEVANT = 0.3
"""Least cosine of an answer's statement with question and reference; chosen on Pirá, see docs/results/entailment.md."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement and how it stands to the other side."""

    text: str
    confirms: float
    """P(the other side confirms it)."""
    contradicts: float
    """P(the other side contradicts it)."""
    relevance: float
    """Cosine with question and reference; 1 for statements of the reference."""
    standing: Standing
    """What is most probable; ``irrelevant`` where the relevance is below the threshold."""


@dataclass(frozen=True, slots=True)
class FactScores:
    """How the facts of an answer and of its reference agree."""

    precision: float
    """0 to 1: mean over the answer's facts of P(confirmed) where relevant, times 1 less the mean of P(contradicted)."""
    recall: float
    """0 to 1: mean over the reference's facts of P(confirmed by the answer)."""
    f1: float
    """Harmonic mean of the two."""
    contradicted: float
    """Mean P(contradicted) over the answer's facts."""
    irrelevant: float
    """Share of the answer's facts that have to do with neither question nor reference."""
    answer_facts: tuple[Fact, ...]
    reference_facts: tuple[Fact, ...]


class FactMetric:
    """Precision, recall and F1 of facts.

    Every statement of the answer is held against the reference (its sentences, and all of it; what confirms it most
    counts), and every statement of the reference against the answer in the same way. With ``c`` and ``d`` the
    probabilities that the other side confirms and contradicts a statement, and ``r`` 1 where it is relevant, else 0::

        precision = (mean over the answer's facts of r c) (1 - mean over the answer's facts of d)
        recall    = mean over the reference's facts of c
        F1        = 2 precision recall / (precision + recall), 0 where both are 0

    So a contradicted fact counts twice, as one that is not supported and against those that are. An empty answer scores
    0.

    Notes:
        Scores are as good as the scorer, and only those of one scorer can be compared. A statement that is true but not
        in the reference counts as unsupported: the reference is all that is known.
    """

    def __init__(
        self,
        scorer: RelationScorer,
        encoder: Encoder,
        *,
        splitter: FactSplitter = split_all,
        relevant: float = RELEVANT,
    ) -> None:
        """Prepare; nothing is computed yet.

        Args:
            scorer: Tells relations; see :func:`climassay.metrics.load_entailment`.
            encoder: For relevance.
            splitter: Cuts texts into statements; by rule if not given.
            relevant: Least cosine of a relevant statement.

        Raises:
            InputError: A scorer that does not tell contradictions from open questions.
        """
        if not isinstance(scorer, RelationScorer):
            raise InputError("Facts need a scorer that tells contradictions: one with relations(), not only score().")
        self._scorer = scorer
        self._encoder = encoder
        self._split = splitter
        self._relevant = relevant

    def score(self, items: Sequence[Answered]) -> list[FactScores | None]:
        """Scores of each item, in order; None where the scorer failed on one of its statements.

        All statements of all items go to scorer and encoder in one call.

        Raises:
            InputError: A reference answer without words.
        """
        if any(not item.reference.strip() for item in items):
            raise InputError("Facts need a reference answer for every question: at least one has none.")
        stated = self._split([item.answer for item in items])
        wanted = self._split([item.reference for item in items])
        forward = [(item.reference, said) for item, facts in zip(items, stated, strict=True) for said in facts]
        backward = [(item.answer, said) for item, facts in zip(items, wanted, strict=True) for said in facts]
        backward = [(premise, said) for premise, said in backward if premise.strip()]
        relations = self._relations([*forward, *backward])
        relevance = self._relevance(items, stated)
        found, at, behind = [], 0, len(forward)
        for item, said, meant in zip(items, stated, wanted, strict=True):
            own = relations[at : at + len(said)]
            other: Sequence[Relations | None] = [Relations(0.0, 0.0, 1.0)] * len(meant)
            if item.answer.strip():
                other = relations[behind : behind + len(meant)]
                behind += len(meant)
            found.append(self._scores(said, meant, own, other, relevance[at : at + len(said)]))
            at += len(said)
        return found

    def _relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Of each pair of (text, statement): by the part of the text that says most about it, sentence or whole."""
        asked, counts = [], []
        for premise, said in pairs:
            parts = dict.fromkeys([premise, *split_sentences(premise)])
            asked += [(part, said) for part in parts]
            counts.append(len(parts))
        read = self._scorer.relations(asked)
        found: list[Relations | None] = []
        at = 0
        for count in counts:
            each = read[at : at + count]
            at += count
            if any(one is None for one in each):
                found.append(None)
            else:
                # The part that leaves least open is the one that speaks about the statement.
                found.append(min(cast(list[Relations], each), key=lambda one: one.leaves_open))
        return found

    def _relevance(self, items: Sequence[Answered], stated: Sequence[Sequence[str]]) -> list[float]:
        texts = [f"{item.question} {item.reference}" for item in items]
        said = [fact for facts in stated for fact in facts]
        if not said:
            return []
        vectors = self._encoder.encode([*texts, *said]).astype(np.float64)
        owners = np.repeat(np.arange(len(items)), [len(facts) for facts in stated])
        return [float(near) for near in np.sum(vectors[owners] * vectors[len(items) :], axis=1)]

    def _scores(
        self,
        stated: Sequence[str],
        wanted: Sequence[str],
        own: Sequence[Relations | None],
        other: Sequence[Relations | None],
        relevance: Sequence[float],
    ) -> FactScores | None:
        if any(one is None for one in (*own, *other)):
            return None
        answer = tuple(
            self._fact(text, cast(Relations, one), near) for text, one, near in zip(stated, own, relevance, strict=True)
        )
        reference = tuple(self._fact(text, cast(Relations, one), 1.0) for text, one in zip(wanted, other, strict=True))
        given = [fact.confirms if fact.standing != "irrelevant" else 0.0 for fact in answer]
        contradicted = float(np.mean([fact.contradicts for fact in answer])) if answer else 0.0
        precision = float(np.mean(given)) * (1 - contradicted) if answer else 0.0
        recall = float(np.mean([fact.confirms for fact in reference])) if reference else 0.0
        total = precision + recall
        return FactScores(
            precision=precision,
            recall=recall,
            f1=2 * precision * recall / total if total > 0 else 0.0,
            contradicted=contradicted,
            irrelevant=float(np.mean([fact.standing == "irrelevant" for fact in answer])) if answer else 0.0,
            answer_facts=answer,
            reference_facts=reference,
        )

    def _fact(self, text: str, found: Relations, relevance: float) -> Fact:
        standings: tuple[Standing, ...] = ("supported", "contradicted", "open")
        likely = standings[max(range(len(standings)), key=lambda place: found[place])]
        standing: Standing = likely if relevance >= self._relevant else "irrelevant"
        return Fact(text, found.confirms, found.contradicts, relevance, standing)


def fact_scores(
    items: Sequence[Answered], scorer: RelationScorer | None = None, encoder: Encoder | None = None
) -> list[FactScores | None]:
    """:class:`FactMetric` of many items, with the bundled scorer and encoder where none is given."""
    from climassay.metrics.entailment_loading import bundled_entailment
    from climassay.models.encoders.loading import load_encoder

    vectors = encoder or load_encoder()
    return FactMetric(scorer or bundled_entailment(), vectors).score(items)


def _scorer_name(scorer: Scorer) -> str:
    return "" if scorer.entailment is None else scorer.entailment.name


def _facts(batch: Batch) -> list[FactScores | None]:
    metric_of_facts = batch.scorer.facts
    assert metric_of_facts is not None
    return cast("list[FactScores | None]", batch.once("facts", lambda: metric_of_facts.score(batch.items)))


@metric("fact_precision", "fact precision", kinds=["freeform"], needs="facts", source=_scorer_name)
def _precision_scores(batch: Batch) -> list[float | None]:
    return [None if found is None else found.precision for found in _facts(batch)]


@metric("fact_recall", "fact recall", kinds=["freeform"], needs="facts", source=_scorer_name)
def _recall_scores(batch: Batch) -> list[float | None]:
    return [None if found is None else found.recall for found in _facts(batch)]


@metric("fact_f1", "fact F1", kinds=["freeform"], needs="facts", tested=True, source=_scorer_name)
def _f1_scores(batch: Batch) -> list[float | None]:
    return [None if found is None else found.f1 for found in _facts(batch)]
