"""The cost model: hand-worked counts, and that the documentation shows what it computes."""

from dataclasses import replace
from pathlib import Path

import pytest

from work_costs import (
    Assumptions,
    Machine,
    comparisons,
    cost_table,
    large_work,
    question_cost,
    ranking_cost,
    training_cost,
)

SCALE = Path(__file__).parents[2] / "docs" / "scale.md"
GIVEN = Assumptions(
    accelerator=Machine("a GPU", prompt_tokens=1000, completion_tokens=100, passages=0, dollars=2.0),
    processor=Machine("a core", prompt_tokens=0, completion_tokens=0, passages=10, dollars=0.5),
    question_prompt=800,
    question_completion=20,
    comparison_tokens=450,
    labelled=4,
    passage_bytes=5000,
)


def test_questions_are_read_and_written():
    # 3600 questions: 2.88 million tokens read in 2880 s, 72,000 written in 720 s.
    cost = question_cost(3600, GIVEN)
    assert (cost.prompt_tokens, cost.completion_tokens) == (2_880_000, 72_000)
    assert cost.hours == pytest.approx(1.0)
    assert cost.dollars == 2.0
    assert cost.days(2) == pytest.approx(1 / 48)


def test_a_ranking_grows_a_little_faster_than_its_items():
    assert [comparisons(count, GIVEN) for count in (0, 1, 2, 8, 1024)] == [0, 0, 2, 24, 10240]
    cost = ranking_cost(8, GIVEN)
    assert (cost.requests, cost.prompt_tokens) == (48, 48 * 450)
    assert ranking_cost(2048, GIVEN).requests / ranking_cost(1024, GIVEN).requests == pytest.approx(2.2)


def test_only_training_grows_with_the_square():
    assert training_cost(GIVEN).requests == 12  # 4 items: 6 pairs, both orders
    assert training_cost(replace(GIVEN, labelled=8)).requests == 56


def test_the_documentation_shows_the_table():
    text = SCALE.read_text(encoding="utf-8")
    for line in cost_table(large_work()):
        assert line in text
