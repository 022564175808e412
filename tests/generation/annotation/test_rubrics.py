"""Rubrics as labels: how they are stored and read again, which criteria two of them share, and how far people agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.generation import Wording
from climassay.generation.annotation import AnnotationItem, Label, check_label
from climassay.generation.annotation.long_answers import (
    MIN_CRITERION_COSINE,
    matched_criteria,
    rubric_agreement,
    rubric_drafts,
)
from climassay.questions import Criterion, Question
from climassay.questions.types.longform import format_rubric, read_rubric
from topic_encoder import TopicEncoder

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20)
CRITERIA = st.builds(
    Criterion,
    WORDS.map("Says {}".format),
    st.floats(0.1, 100),
    st.sampled_from(["must", "should"]),
    WORDS | st.just(""),
)


def item(name, *rubrics, state="conflict"):
    """A question with the rubrics of people, each a list of criteria."""
    [stored] = rubric_drafts([Question(name, "longform", f"Why {name}?", "")])
    wordings = [Wording(f"Why {name}?", format_rubric(rubric), ("Rubric",)) for rubric in rubrics]
    labels = [
        Label(stored.draft.id, f"person {n}", True, wording=one, made_at=float(n), key=f"{name}{n}")
        for n, one in enumerate(wordings)
    ]
    return AnnotationItem(stored.draft, None, None, (), tuple(labels), state)


def checked(draft, **said):
    return check_label(draft, Label(draft.id, "ann", **said))


@given(st.lists(CRITERIA, min_size=1, max_size=8))
def test_a_rubric_is_read_as_it_was_written(criteria):
    assert read_rubric(format_rubric(criteria)) == tuple(criteria)
    [stored] = rubric_drafts([Question("q", "longform", "Why?", "")])
    said = checked(stored.draft, accepted=True, wording=Wording("Why?", format_rubric(criteria), ("Rubric",)))
    assert read_rubric(said.wording.answer) == tuple(criteria)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_no_criterion_is_matched_twice_and_none_that_is_unlike(rows, columns, seed):
    similarity = np.random.default_rng(seed).uniform(-1, 1, (rows, columns))
    pairs = matched_criteria(similarity)
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    assert all(similarity[pair] >= MIN_CRITERION_COSINE for pair in pairs)
    free = [
        similarity[a, b] for a in range(rows) for b in range(columns)
        if a not in dict(pairs) and b not in dict(pairs).values()
    ]  # fmt: skip
    assert all(one < MIN_CRITERION_COSINE for one in free)


def test_agreement_by_hand():
    first = [Criterion("the albedo", 3.0), Criterion("the ocean", 1.0, "should"), Criterion("the cloud", 2.0)]
    second = [Criterion("ocean", 1.0, "should"), Criterion("albedo of snow", 3.0)]
    third = [Criterion("a glacier", 1.0, "must"), Criterion("carbon", 2.0, "should")]
    fourth = [Criterion("glacier", 1.0, "should")]
    items = [item("a", first, second), item("b", third, fourth), item("c", first)]
    found = rubric_agreement(items, TopicEncoder())
    # Of five criteria four are shared, of three two; no two criteria of one rubric are alike.
    assert (found.questions, found.matched) == (2, 3)
    assert found.shared.value == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert found.floor == 0
    # must-must, should-should, must-should: nominal alpha of three units is 1 - 2 / (2 * 3 * 3 / 5).
    assert found.levels.value == pytest.approx(1 - 2 / (2 * 3 * 3 / 5))
    # Weights in units of the mean: 1.5 and 0.5 beside 1.5 and 0.5, and 2/3 beside 1.
    pairs = np.array([(1.5, 1.5), (0.5, 0.5), (2 / 3, 1.0)])
    values = pairs.ravel()
    expected = ((values[:, None] - values) ** 2).sum() / (6 * 5)
    assert found.weights.value == pytest.approx(1 - 2 * ((pairs[:, 0] - pairs[:, 1]) ** 2).sum() / 6 / expected)


def test_agreement_where_nothing_can_be_said():
    alone = [Criterion("albedo"), Criterion("albedo again")]
    assert rubric_agreement([item("a", alone)], TopicEncoder()) is None
    found = rubric_agreement([item("a", alone, alone)], TopicEncoder())
    assert (found.shared.value, found.floor) == (1.0, 1.0)
    assert found.shared.interval == (0.0, 1.0), "one question says nothing of others"
    # Everything is a must of weight 1: no coefficient is defined.
    assert (found.levels, found.weights) == (None, None)
    apart = rubric_agreement([item("a", [Criterion("albedo")], [Criterion("ocean")])], TopicEncoder())
    assert (apart.shared.value, apart.matched, apart.floor) == (0.0, 0, None)
