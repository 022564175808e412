from collections import Counter

import pytest

from climassay.errors import InputError
from climassay.evaluation.scores import PUBLISHED_QUESTIONS, published_models, published_scores
from climassay.metrics.registry import METRICS

GOLD, SILVER = published_scores("gold"), published_scores("silver")


def value(scores, model, setting, metric, level="overall"):
    [found] = [s.value for s in scores if (s.model, s.setting, s.metric, s.level) == (model, setting, metric, level)]
    return found


def test_every_cell_of_the_four_tables_is_there():
    # 35 rows of Table 3, 32 of Table 5, five each of Tables 6 and 7; 6 or 12 numbers a row.
    assert Counter(score.task for score in GOLD) == {"mcq": 35 * 4, "cloze": 35 * 2, "freeform": 32 * 12}
    assert Counter(score.task for score in SILVER) == {"mcq": 5 * 4, "cloze": 5 * 2, "freeform": 5 * 12}
    names = [(s.dataset, s.model, s.setting, s.metric, s.level) for s in GOLD + SILVER]
    assert len(set(names)) == len(names)
    assert len(published_models()) == 8


@pytest.mark.parametrize(
    ("model", "setting", "metric", "level", "expected"),
    [
        ("gpt-4o", "default", "accuracy", "overall", 0.8571),
        ("gpt-4o", "rag-source", "accuracy", "base", 0.9577),
        ("llama3.1-8b", "rag-source", "exact_match", "overall", 0.725),
        ("mistral-7b", "fine-tuned", "accuracy", "overall", 0.7551),
        ("mistral-7b", "continued-pretraining", "bleu_char", "reasoning", 0.176),
        ("gemini-1.5-flash", "long-context-held-out", "phrase_similarity", "overall", 0.87),
        ("gpt-3.5-turbo", "few-shot", "bert_score", "hypothetical", 0.915),
        ("llama3-70b", "default", "factual_accuracy", "hypothetical", 0.85),
    ],
)
def test_numbers_are_those_printed(model, setting, metric, level, expected):
    assert value(GOLD, model, setting, metric, level) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["accuracy", "bleu_char", "bert_score", "factual_accuracy"])
def test_overall_is_the_mean_of_the_levels_weighted_by_their_questions(metric):
    # Half a unit of rounding on either side: of 0.01 per cent, 0.001, or (factual accuracy) 0.01. No row is off.
    rounding = {"accuracy": 1e-4, "factual_accuracy": 1e-2}.get(metric, 1e-3)
    rows = {(s.model, s.setting) for s in GOLD if s.metric == metric}
    sizes = PUBLISHED_QUESTIONS["gold", METRICS[metric].kinds[0]]
    assert len(rows) in (32, 35)
    for model, setting in rows:
        levels = [level for level in sizes if level != "overall"]
        total = sum(sizes[level] * value(GOLD, model, setting, metric, level) for level in levels)
        gap = total / sizes["overall"] - value(GOLD, model, setting, metric)
        assert abs(gap) <= rounding + 1e-9, (model, setting)


def test_levels_of_the_silver_sample_can_be_told_from_its_accuracies():
    # The paper prints no sizes; 100, 53 and 47 of 200 questions reproduce every overall accuracy.
    for model in {s.model for s in SILVER}:
        levels = [value(SILVER, model, "default", "accuracy", level) for level in ("base", "reasoning", "hypothetical")]
        mean = sum(n * share for n, share in zip((100, 53, 47), levels, strict=True)) / 200
        assert mean == pytest.approx(value(SILVER, model, "default", "accuracy"), abs=1e-4)


def test_models_can_be_chosen():
    assert {score.model for score in published_scores("gold", ["gpt-4o"])} == {"gpt-4o"}
    with pytest.raises(InputError, match="no model gpt-5: they have gemma-27b"):
        published_scores("gold", ["gpt-5"])
