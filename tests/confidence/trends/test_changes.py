"""Changes between cycles, and reports that did not tag their statements."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from climassay.confidence.trends import (
    analyse_trends,
    count_coverage,
    find_gap_reasons,
    find_untagged_reports,
    measure_changes,
    select_statements,
    trend_report,
    trend_tables,
)
from climassay.confidence.vocabulary import LEVELS
from planted_statements import statement, topics_of

TOPICS = 6
LEVEL_SHARES = (0.05, 0.1, 0.35, 0.4, 0.1)


def two_cycles(generator, *, sections=20, each=4, changed=(), shift=1):
    """Statements of six topics in two cycles, each section with a taste; ``changed`` topics rise by ``shift``."""
    statements, numbers = [], []
    for topic in range(TOPICS):
        for section in range(2 * sections):
            cycle = "AR5" if section < sections else "AR6"
            taste = generator.choice([-1, 0, 0, 1])
            for _ in range(each):
                level = (
                    generator.choice(5, p=LEVEL_SHARES) + taste + (shift if topic in changed and cycle == "AR6" else 0)
                )
                statements.append(
                    statement(
                        len(statements),
                        "ocean",
                        tag=LEVELS[int(np.clip(level, 0, 4))],
                        cycle=cycle,
                        report=cycle,
                        document_id=cycle,
                        headings=(f"S{topic}.{section}",),
                    )
                )
                numbers.append(topic)
    return statements, topics_of(statements, numbers)


def changes(*args, **kwargs):
    statements, model = two_cycles(*args, **kwargs)
    return measure_changes(select_statements(statements, model), TOPICS)


def test_a_planted_change_is_found_and_no_other():
    found = changes(np.random.default_rng(1), changed=(2,))
    assert [one.topic for one in found if one.topic is not None and one.p_holm < 0.05] == [2]
    whole, first = found[:2]
    assert whole.topic is None
    assert first.topic == 2
    assert first.interval.low < first.value < first.interval.high
    assert first.value == pytest.approx(first.means[1] - first.means[0])
    assert (first.before, first.after, first.sections, first.statements) == ("AR5", "AR6", (20, 20), (80, 80))


def test_few_sections_of_one_statement_have_the_interval_of_welchs_test():
    statements, model = two_cycles(np.random.default_rng(4), sections=5, each=1)
    cases = select_statements(statements, model)
    for one in (change for change in measure_changes(cases, TOPICS) if change.topic is not None):
        before, after = (
            [case.score for case in cases.tagged if case.topic == one.topic and case.column == cycle]
            for cycle in ("AR5", "AR6")
        )
        expected = ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
        assert one.interval == pytest.approx(expected)


def test_where_nothing_changed_few_changes_are_claimed():
    claimed = [
        one.p for seed in range(20) for one in changes(np.random.default_rng(seed), sections=8) if one.topic is not None
    ]
    # 120 tests at 5 %: six are expected, and more than 13 are seen once in 500 times.
    assert sum(p < 0.05 for p in claimed) <= 13
    assert np.median(claimed) == pytest.approx(0.5, abs=0.2)


def test_too_few_sections_are_not_compared():
    assert [one.topic for one in changes(np.random.default_rng(0), sections=4)] == [None]
    assert changes(np.random.default_rng(0), sections=4)[0].sections == (24, 24)


def test_only_cycles_and_two_reports_are_compared():
    statements, model = two_cycles(np.random.default_rng(0))
    assert measure_changes(select_statements(statements, model, "report"), TOPICS)
    assert measure_changes(select_statements(statements, model, "working group"), TOPICS) == ()
    third = [statement(0, "ocean", id=statements[0].id, report="SR15"), *statements[1:]]
    assert measure_changes(select_statements(third, model, "report"), TOPICS) == ()


def test_the_report_names_what_changed():
    statements, model = two_cycles(np.random.default_rng(1), changed=(2,))
    analysis = analyse_trends(statements, model)
    rows = trend_tables(analysis)["changes"].rows
    assert rows[0][:2] == ("AR5 to AR6", "all topics")
    page = trend_report(analysis, source="s.jsonl").to_html()
    assert "Change from AR5 to AR6" in page
    assert "Topic 2 (+" in page


def sentences(count, tagged, *, cycle="AR6", group="WG1"):
    made = {"cycle": cycle, "working_group": group, "report": f"{cycle} {group}", "document": "A report"}
    return [
        statement(n, "ocean", id=f"{cycle}{group}{n}", tag="high" if n < tagged else None, **made) for n in range(count)
    ]


def test_known_reports_are_named_where_their_cycle_is_at_hand():
    found = find_untagged_reports(sentences(3, 3, cycle="AR3", group="WG2"))
    assert [(one.cycle, one.working_group, one.known) for one in found] == [("AR3", "WG1", True), ("AR3", "WG3", True)]
    assert find_untagged_reports(sentences(3, 3)) == []


def test_a_report_whose_sentences_carry_no_tags_is_found_in_the_data():
    [found] = find_untagged_reports([*sentences(400, 2), *sentences(400, 60, group="WG2")])
    assert (found.cycle, found.working_group, found.known) == ("AR6", "WG1", False)
    assert "2 of its 400 sentences" in found.reason


def test_coverage_needs_untagged_sentences():
    rows = [*sentences(100, 30), *sentences(40, 40, group="WG2"), *sentences(200, 1, group="WG3")]
    found = {one.report: one for one in count_coverage(rows)}
    assert (found["AR6 WG1"].share, found["AR6 WG1"].tagging) == (0.3, "tags")
    assert (found["AR6 WG2"].share, found["AR6 WG2"].tagging) == (None, "unknown")
    assert found["AR6 WG3"].tagging == "hardly"


def test_a_gap_is_explained_by_reports_that_speak_of_the_topic_elsewhere():
    silent = find_untagged_reports(sentences(3, 3, cycle="AR3", group="WG2"))
    assert [one.working_group for one in find_gap_reasons("AR3", {"WG1": 5, "WG2": 1}, silent)] == ["WG1"]
    assert find_gap_reasons("AR3", {"WG2": 7}, silent) == ()
    assert find_gap_reasons("AR5", {"WG1": 5}, silent) == ()


def test_a_chapter_is_named_with_its_report():
    [found] = count_coverage([statement(0, "ocean", document="Ocean", chapter="Chapter 9")])
    assert found.document == "Chapter 9: Ocean"
