"""Scores of topics: hand-worked means, intervals by section, differences drawn towards zero."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.trends import compute_scores, select_statements, shrink
from climassay.errors import InputError
from planted_statements import statement, topics_of


def made(tags, *, sections=None, topics=None, groups=None):
    """Statements with these tags, and topics, for scoring."""
    count = len(tags)
    statements = [
        statement(
            number,
            "ocean",
            tag=tag,
            headings=(f"S{(sections or range(count))[number]}",),
            working_group=(groups or ["WG1"] * count)[number],
        )
        for number, tag in enumerate(tags)
    ]
    model = topics_of(statements, topics or [0] * count)
    return select_statements(statements, model, "working group"), len(model.topics)


def test_a_score_is_the_mean_of_the_tags():
    cases, topics = made(["very low", "low", "medium", "high", "very high", "very high"])
    found = compute_scores(cases, topics).by_topic[0]
    assert found.value == pytest.approx((-2 - 1 + 0 + 1 + 2 + 2) / 6)
    assert found.counts == (1, 1, 1, 1, 2)
    assert found.interval.low < found.value < found.interval.high


def test_scores_by_topic_and_column():
    tags = ["high", "low", "very high", "medium"] * 3
    cases, topics = made(tags, topics=[0, 0, 1, 1] * 3, groups=["WG1", "WG2", "WG1", "WG2"] * 3)
    found = compute_scores(cases, topics)
    assert {key: cell.value for key, cell in found.cells.items()} == {
        (0, "WG1"): 1.0,
        (0, "WG2"): -1.0,
        (1, "WG1"): 2.0,
        (1, "WG2"): 0.0,
    }
    assert [one.value for one in found.by_column] == [1.5, -0.5]
    assert found.overall.n == 12


def test_statements_of_one_section_are_not_independent():
    # Each section has its own level: sections, not statements, decide how sure the mean is.
    tags = [tag for tag in ("low", "high") * 5 for _ in range(10)]
    together, topics = made(tags, sections=[place // 10 for place in range(100)])
    apart, _ = made(tags)
    wide, narrow = (compute_scores(cases, topics).by_topic[0].interval for cases in (together, apart))
    assert wide.high - wide.low > 2.5 * (narrow.high - narrow.low)


def test_too_few_sections_have_no_interval():
    cases, topics = made(["high", "low"] * 10, sections=[place % 4 for place in range(20)])
    found = compute_scores(cases, topics)
    assert found.by_topic[0].interval is None
    assert found.by_topic[0].sections == 4
    assert found.deviations == ()


def test_the_same_seed_gives_the_same_intervals():
    cases, topics = made(["high", "low", "medium"] * 10)
    assert compute_scores(cases, topics) == compute_scores(cases, topics)
    assert compute_scores(cases, topics).overall.interval != compute_scores(cases, topics, seed=1).overall.interval


def test_a_confident_topic_of_an_unsure_group_stands_out():
    # WG1 is unsure, WG2 is sure. Topic 0 of WG1 is surer than WG1; topic 1 of WG2 is just as WG2 is.
    rows = [("high", 0, "WG1")] * 40 + [("low", 2, "WG1")] * 120 + [("high", 1, "WG2"), ("very high", 1, "WG2")] * 20
    rows += [("high", 3, "WG2"), ("very high", 3, "WG2")] * 40
    tags, topics, groups = map(list, zip(*rows, strict=True))
    cases, count = made(tags, topics=topics, groups=groups)
    found = {one.topic: one for one in compute_scores(cases, count).deviations}
    assert found[0].raw.value == pytest.approx(1 - (-0.5))
    assert found[0].p_holm < 0.001
    assert found[1].raw.value == pytest.approx(0, abs=1e-9)
    assert found[1].p_holm > 0.5
    assert 0 < found[0].shrunken.value <= found[0].raw.value
    assert all(one.p_holm >= one.p for one in found.values())


def test_differences_of_chance_are_seldom_called_clear():
    generator = np.random.default_rng(5)
    clear = 0
    for _ in range(20):
        tags = generator.choice(["low", "medium", "high"], 300).tolist()
        cases, topics = made(tags, topics=generator.integers(0, 10, 300).tolist())
        clear += any(one.p_holm < 0.05 for one in compute_scores(cases, topics, resamples=300).deviations)
    assert clear <= 4


def test_shrinkage_by_hand():
    # Errors 1; sum of squares 4 + 4 + 0 = 8, minus 3 tests, over 3: between = 5 / 3; kept = (5/3) / (8/3).
    kept, middle = shrink(np.array([2.0, -2.0, 0.0]), np.ones(3))
    assert kept == pytest.approx([0.625] * 3)
    assert middle == pytest.approx([1.25, -1.25, 0.0])
    assert shrink(np.array([0.1, -0.1]), np.ones(2))[1] == pytest.approx([0, 0])


@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(0.01, 2)), min_size=1, max_size=20))
def test_shrinkage_never_turns_or_grows_a_difference(pairs):
    values, errors = map(np.array, zip(*pairs, strict=True))
    kept, middle = shrink(values, errors)
    assert ((kept >= 0) & (kept <= 1)).all()
    assert (np.abs(middle) <= np.abs(values)).all()
    assert (middle * values >= 0).all()


def test_topics_of_other_statements_are_refused():
    statements = [statement(0, "ocean")]
    with pytest.raises(InputError, match="No tagged statement has a topic"):
        select_statements(statements, topics_of([statement(1, "ocean")], [0]))


def test_what_is_compared_follows_from_the_statements():
    one = statement(0, "ocean")
    for changes, kind, column in (
        ({}, "working group", "WG1"),
        ({"working_group": None, "cycle": None}, "report", "AR6 WG1"),
    ):
        changed = statement(0, "ocean", **changes)
        found = select_statements([changed], topics_of([changed], [0]))
        assert (found.kind, found.columns) == (kind, (column,))
    older = statement(1, "ocean", cycle="AR5")
    assert select_statements([one, older], topics_of([one, older], [0, 0])).columns == ("AR5", "AR6")


def test_duplicates_count_once_and_unknown_statements_are_told():
    one, copy, stranger = (
        statement(0, "ocean"),
        statement(1, "ocean", duplicate_of="ocean-000"),
        statement(2, "ocean"),
    )
    found = select_statements([one, copy, stranger], topics_of([one, copy], [0, 0]))
    assert len(found.tagged) == 1
    assert found.unknown == 1
