from .answer_scores import (
    ReferencedAnswer as ReferencedAnswer,
    AnswerScores as AnswerScores,
    read_answers as read_answers,
    score_answers as score_answers,
)
from .cloze import (
    exact_match as exact_match,
    exact_match_normalised as exact_match_normalised,
    phrase_similarities as phrase_similarities,
    phrase_similarity as phrase_similarity,
    phrases as phrases,
    sentence_encoder as sentence_encoder,
)
from .entailment import (
    Entailment as Entailment,
    PromptedEntailment as PromptedEntailment,
    PromptedSupport as PromptedSupport,
    RelationScorer as RelationScorer,
    Relations as Relations,
    load_entailment as load_entailment,
    supports as supports,
)
from .facts import FactMetric as FactMetric, split_facts as split_facts
from .factual_accuracy import (
    factual_accuracy as factual_accuracy,
    judge_answers as judge_answers,
)
from .labelled_pairs import (
    EVIDENCE_COLUMNS as EVIDENCE_COLUMNS,
    ClaimPassage as ClaimPassage,
    plain_text as plain_text,
    read_passages as read_passages,
)
from .long_answers import (
    DIMENSIONS as DIMENSIONS,
    LongAnswerGrader as LongAnswerGrader,
    assessment_scores as assessment_scores,
)
from .overlap import (
    bert_score as bert_score,
    bleu as bleu,
    bleu_each as bleu_each,
    character_bleu as character_bleu,
    character_bleu_each as character_bleu_each,
)
from .registry import (
    METRICS as METRICS,
    AnswerItem as AnswerItem,
    LongAnswer as LongAnswer,
    Scorer as Scorer,
    metric as metric,
)
