"""Scoring answers in words: every metric of freeform and cloze in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from climassay.evaluation.outcome import METRICS
from climassay.evaluation.written import Written
from climassay.metrics import (
    bert_score,
    bleu_each,
    character_bleu_each,
    exact_match,
    exact_match_normalised,
    phrase_similarities,
)
from climassay.metrics.entailment import Entailment, supports
from climassay.metrics.factual_accuracy import factual_accuracy
from climassay.metrics.judged_accuracy import Judgement, judge_answers
from climassay.models.contract import Encoder, Generator
from climassay.questions import Kind, Question

if TYPE_CHECKING:
    from climassay.metrics.facts import FactMetric

Scores = dict[str, float]


@dataclass(frozen=True, slots=True)
class AnswerScorer:
    """Everything that scores answers in words."""

    encoder: Encoder
    """For phrase similarity and relevance."""
    bert_model: str
    """For BERTScore, see :func:`climassay.metrics.bert_score`."""
    entailment: Entailment
    """For factual accuracy."""
    facts: "FactMetric | None" = None
    """Compares statement by statement; None leaves the metrics of facts out."""
    window: int = 4
    """Words on each side of the gap."""
    temperature: float = 5.0
    """Smoothing of factual accuracy."""
    judge: Generator | None = None
    """A strong model that sees the question; None leaves judged accuracy out."""
    sources: Mapping[str, str] = field(init=False)
    """What computes each metric, for the notes of tables."""

    def __post_init__(self) -> None:
        sources = {
            "bert_score": self.bert_model,
            "factual_accuracy": self.entailment.name,
            "supported": self.entailment.name,
            "phrase_similarity": f"{self.encoder.name}, window {self.window}",
        }
        if self.facts is not None:
            sources |= dict.fromkeys(("fact_precision", "fact_recall", "fact_f1"), self.entailment.name)
        if self.judge is not None:
            sources["judged_accuracy"] = self.judge.name
        object.__setattr__(self, "sources", sources)

    def score(self, task: Kind, questions: Sequence[Question], written: Sequence[Written]) -> list[Scores]:
        """Scores of every answer, by the names of :data:`~climassay.evaluation.outcome.METRICS`.

        A failed or empty answer has 0 in every metric; a metric whose own model call failed is missing. Judged accuracy
        is the score of :meth:`judgements`.

        Args:
            task: ``freeform`` or ``cloze``.
            questions: What was asked.
            written: The answers, in the same order.
        """
        names = [
            name
            for name, metric in METRICS.items()
            if metric.task == task
            and (self.facts is not None or not name.startswith("fact_"))
            and name != "judged_accuracy"
        ]
        answered = [place for place, one in enumerate(written) if one.error is None and one.text]
        score = self._freeform if task == "freeform" else self._cloze
        given = score([questions[place] for place in answered], [written[place].text for place in answered])
        found: list[Scores] = [dict.fromkeys(names, 0.0) for _ in written]
        for place, scores in zip(answered, given, strict=True):
            found[place] = scores
        return found

    def judgements(
        self, task: Kind, questions: Sequence[Question], written: Sequence[Written]
    ) -> list[Judgement | None]:
        """What the judge says about every answer; failures in their place.

        None without a judge, for cloze answers, and for answers that failed: nobody is asked about those.
        """
        found: list[Judgement | None] = [None] * len(written)
        places = [place for place, one in enumerate(written) if one.error is None]
        if self.judge is not None and task == "freeform":
            items = [(questions[place].question, questions[place].answer, written[place].text) for place in places]
            for place, judgement in zip(places, judge_answers(items, self.judge), strict=True):
                found[place] = judgement
        return found

    def _freeform(self, questions: Sequence[Question], answers: Sequence[str]) -> list[Scores]:
        if not answers:
            return []
        references = [question.answer for question in questions]
        characters = character_bleu_each(references, answers)
        words = bleu_each(references, answers)
        similar = bert_score(references, answers, encoder=self.bert_model).f1
        shares = supports(self.entailment, list(zip(references, answers, strict=True)))
        found = []
        for place, share in enumerate(shares):
            scores = {"bleu_char": characters[place], "bleu": words[place], "bert_score": similar[place]}
            if share is not None:
                scores["factual_accuracy"] = factual_accuracy(share, self.temperature)
                scores["supported"] = float(share > 0.5)
            found.append(scores)
        if self.facts is not None:
            from climassay.metrics.facts import Answered

            items = [Answered(one.question, one.answer, text) for one, text in zip(questions, answers, strict=True)]
            for scores, facts in zip(found, self.facts.score(items), strict=True):
                if facts is not None:
                    scores |= {"fact_precision": facts.precision, "fact_recall": facts.recall, "fact_f1": facts.f1}
        return found

    def _cloze(self, questions: Sequence[Question], answers: Sequence[str]) -> list[Scores]:
        if not answers:
            return []
        references = [question.answer for question in questions]
        items = [(one.question, one.answer, answer) for one, answer in zip(questions, answers, strict=True)]
        near = phrase_similarities(items, window=self.window, encoder=self.encoder)
        raw, normalised = exact_match(references, answers), exact_match_normalised(references, answers)
        return [
            {"exact_match": float(one), "exact_match_normalised": float(other), "phrase_similarity": similarity}
            for one, other, similarity in zip(raw, normalised, near, strict=True)
        ]
