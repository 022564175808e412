"""Reports that did not tag their statements are told from silence."""

from climassay.confidence.trends import document_coverage, gap_reason, untagged_reports
from planted_statements import statement


def sentences(count, tagged, *, cycle="AR6", group="WG1"):
    made = {"cycle": cycle, "working_group": group, "report": f"{cycle} {group}", "document": "A report"}
    return [
        statement(n, "ocean", id=f"{cycle}{group}{n}", tag="high" if n < tagged else None, **made) for n in range(count)
    ]


def test_known_reports_are_named_where_their_cycle_is_at_hand():
    found = untagged_reports(sentences(3, 3, cycle="AR3", group="WG2"))
    assert [(one.cycle, one.working_group, one.known) for one in found] == [("AR3", "WG1", True), ("AR3", "WG3", True)]
    assert untagged_reports(sentences(3, 3)) == []


def test_a_report_whose_sentences_carry_no_tags_is_found_in_the_data():
    [found] = untagged_reports([*sentences(400, 2), *sentences(400, 60, group="WG2")])
    assert (found.cycle, found.working_group, found.known) == ("AR6", "WG1", False)
    assert "2 of its 400 sentences" in found.reason


def test_coverage_needs_untagged_sentences():
    rows = [*sentences(100, 30), *sentences(40, 40, group="WG2"), *sentences(200, 1, group="WG3")]
    found = {one.report: one for one in document_coverage(rows)}
    assert (found["AR6 WG1"].share, found["AR6 WG1"].tagging) == (0.3, "tags")
    assert (found["AR6 WG2"].share, found["AR6 WG2"].tagging) == (None, "unknown")
    assert found["AR6 WG3"].tagging == "hardly"


def test_a_gap_is_explained_by_reports_that_speak_of_the_topic_elsewhere():
    silent = untagged_reports(sentences(3, 3, cycle="AR3", group="WG2"))
    assert [one.working_group for one in gap_reason("AR3", {"WG1": 5, "WG2": 1}, silent)] == ["WG1"]
    assert gap_reason("AR3", {"WG2": 7}, silent) == ()
    assert gap_reason("AR5", {"WG1": 5}, silent) == ()


def test_a_chapter_is_named_with_its_report():
    [found] = document_coverage([statement(0, "ocean", document="Ocean", chapter="Chapter 9")])
    assert found.document == "Chapter 9: Ocean"
