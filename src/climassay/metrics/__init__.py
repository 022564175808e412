"""What an answer is worth beside a reference: BLEU, BERTScore, exact match, phrases, entailment, facts.

ClimaQA, section 3.2, with additions of our own. See docs/metrics.md.
"""

from typing import TYPE_CHECKING

from climassay.registry import export_lazily

# The function with the name of its module is bound here and now (see export_lazily); the module is light.
from climassay.metrics.factual_accuracy import factual_accuracy as factual_accuracy

if TYPE_CHECKING:
    from climassay.metrics.overlap import bert_score as bert_score
    from climassay.metrics.overlap import (
        bleu as bleu,
        bleu_each as bleu_each,
        character_bleu as character_bleu,
        character_bleu_each as character_bleu_each,
    )
    from climassay.metrics.cloze import exact_match as exact_match, exact_match_normalised as exact_match_normalised
    from climassay.metrics.cloze import (
        phrase_similarities as phrase_similarities,
        phrase_similarity as phrase_similarity,
        phrases as phrases,
        sentence_encoder as sentence_encoder,
    )
    from climassay.metrics.answer_scores import (
        ANSWER_METRICS as ANSWER_METRICS,
        AnswerRow as AnswerRow,
        AnswerScores as AnswerScores,
        read_answers as read_answers,
        score_answers as score_answers,
    )
    from climassay.metrics.entailment import (
        Entailment as Entailment,
        PromptedEntailment as PromptedEntailment,
        PromptedSupport as PromptedSupport,
        Relations as Relations,
        RelationScorer as RelationScorer,
        load_entailment as load_entailment,
        supports as supports,
    )
    from climassay.metrics.labelled_pairs import (
        EVIDENCE_COLUMNS as EVIDENCE_COLUMNS,
        Evidence as Evidence,
        plain_text as plain_text,
        read_passages as read_passages,
    )
    from climassay.metrics.facts import (
        FactMetric as FactMetric,
        fact_scores as fact_scores,
        split_facts as split_facts,
    )
    from climassay.metrics.factual_accuracy import (
        factual_accuracies as factual_accuracies,
        judge_answers as judge_answers,
    )
    from climassay.metrics.long_answers import (
        DIMENSIONS as DIMENSIONS,
        Marker as Marker,
        assessment_scores as assessment_scores,
    )
    from climassay.metrics.registry import (
        METRICS as METRICS,
        Answered as Answered,
        LongAnswer as LongAnswer,
        Scorer as Scorer,
        metric as metric,
    )

export_lazily(__name__)
