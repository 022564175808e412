"""What an answer is worth beside a reference: BLEU, BERTScore, exact match, phrases, entailment, facts.

ClimaQA, section 3.2, with additions of our own. See docs/metrics.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# A function that has its module's name must be bound here and now: importing a submodule sets an attribute of its name
# on the package, which would hide a function that is looked up only when it is used. These modules are light.
from climassay.metrics.bert_score import BertScores, bert_score
from climassay.metrics.bleu import bleu, bleu_each, bleu_signature, character_bleu, character_bleu_each
from climassay.metrics.exact_match import exact_match, exact_match_normalised
from climassay.metrics.factual_accuracy import factual_accuracy
from climassay.metrics.phrase_similarity import (
    ClozeAnswer,
    phrase_similarities,
    phrase_similarity,
    phrases,
    sentence_encoder,
)

if TYPE_CHECKING:
    from climassay.metrics.answer_scores import ANSWER_METRICS, AnswerRow, AnswerScores, read_answers, score_answers
    from climassay.metrics.entailment import (
        Entailment,
        PromptedEntailment,
        Relations,
        RelationScorer,
        nearest_part,
        supports,
    )
    from climassay.metrics.entailment_head import EntailmentHead, EntailmentScores, HeadEntailment, validate_entailment
    from climassay.metrics.entailment_loading import load_entailment
    from climassay.metrics.facts import Fact, FactMetric, FactScores, ModelSplitter, fact_scores, split_facts
    from climassay.metrics.factual_accuracy import Judgement, PromptedSupport, factual_accuracies, judge_answers
    from climassay.metrics.long_answers import DIMENSIONS, Assessment, Marker, assessment_scores
    from climassay.metrics.registry import METRICS, Answered, LongAnswer, Metric, Scorer, metric
    from climassay.metrics.window_calibration import (
        LabelledAnswer,
        WindowCalibration,
        calibrate_window,
        primer_answers,
        read_labelled_answers,
    )

_PLACES = {
    "answer_scores": "ANSWER_METRICS AnswerRow AnswerScores read_answers score_answers",
    "entailment": "Entailment PromptedEntailment RelationScorer Relations nearest_part supports",
    "entailment_head": "EntailmentHead EntailmentScores HeadEntailment validate_entailment",
    "entailment_loading": "load_entailment",
    "facts": "Fact FactMetric FactScores ModelSplitter fact_scores split_facts",
    "factual_accuracy": "Judgement PromptedSupport factual_accuracies judge_answers",
    "long_answers": "DIMENSIONS Assessment Marker assessment_scores",
    "registry": "METRICS Answered LongAnswer Metric Scorer metric",
    "window_calibration": "LabelledAnswer WindowCalibration calibrate_window primer_answers read_labelled_answers",
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names.split()}

__all__ = [
    "ANSWER_METRICS", "DIMENSIONS", "METRICS", "AnswerRow", "AnswerScores", "Answered", "Assessment", "BertScores",
    "ClozeAnswer", "Entailment", "EntailmentHead", "EntailmentScores", "Fact", "FactMetric", "FactScores",
    "HeadEntailment", "Judgement", "LabelledAnswer", "LongAnswer", "Marker", "Metric", "ModelSplitter",
    "PromptedEntailment", "PromptedSupport", "RelationScorer", "Relations", "Scorer", "WindowCalibration",
    "assessment_scores", "bert_score", "bleu", "bleu_each", "bleu_signature", "calibrate_window", "character_bleu",
    "character_bleu_each", "exact_match", "exact_match_normalised", "fact_scores", "factual_accuracies",
    "factual_accuracy", "judge_answers", "load_entailment", "metric", "nearest_part", "phrase_similarities",
    "phrase_similarity", "phrases", "primer_answers", "read_answers", "read_labelled_answers", "score_answers",
    "sentence_encoder", "split_facts", "supports", "validate_entailment",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
