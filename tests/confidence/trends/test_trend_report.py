"""The report: what it shows, how large it is, and the same as data."""

import json

import numpy as np
import pytest

from climassay.confidence.trends import Predictions, analyse_trends, trend_data, trend_report, trend_tables
from climassay.confidence.trends.report import score_rows, statement_map
from climassay.reporting.html import report_data, report_from_data
from planted_statements import planted, statement, topics_of


@pytest.fixture(scope="module")
def analysis():
    statements = [*planted(12), *(statement(n, "ocean", id=f"u{n}", tag=None) for n in range(60))]
    model = topics_of(statements, [n % 3 for n in range(len(statements))])
    levels = ("low", "medium", "high", "very high")
    drawn = np.random.default_rng(2).dirichlet(np.ones(4), len(statements))
    predictions = Predictions(levels, {one.id: p for one, p in zip(statements, drawn, strict=True)})
    return analyse_trends(statements, model, predictions=predictions)


def two_cycles():
    """WG1 has topic 0 in AR5 only; AR4's WG1 did not tag, its WG2 has topic 1."""
    rows = [(n, "AR5", "WG1", 0) for n in range(20)] + [(n, "AR4", "WG2", 1) for n in range(20, 40)]
    statements = [statement(n, "ocean", cycle=cycle, working_group=group) for n, cycle, group, _ in rows]
    return analyse_trends(statements, topics_of(statements, [topic for *_, topic in rows]))


def test_every_part_is_shown(analysis):
    page = trend_report(analysis, source="file.jsonl", facts=(("run", "r1"),))
    headings = [section.heading for section in page.sections]
    assert headings == [
        "In short", "Tags", "Scores by topic and working group", "Most and least confident topics",
        "Map of the statements", "Topics", "Gaps: reports that did not tag their statements",
        "With untagged statements tagged", "Accuracy of the tagger by topic",
    ]  # fmt: skip
    html = page.to_html()
    assert "72 tagged statements of file.jsonl in 3 topics" in html
    assert "Topic 2" in html
    assert "speck" in html
    assert "http" not in html.replace("http://www.w3.org", "")


def test_a_stored_report_is_the_same_report(analysis):
    page = trend_report(analysis, source="file.jsonl")
    assert report_from_data(json.loads(json.dumps(report_data(page)))) == page


def test_data_are_finite_numbers(analysis):
    data = json.loads(json.dumps(trend_data(analysis), allow_nan=False))
    assert data["by"] == "working group"
    assert data["statements"] == {"tagged": 72, "untagged": 60, "without_topic": 0, "unknown": 0}
    assert sum(cell["n"] for cell in data["cells"]) == 72 == sum(data["overall"]["tags"].values())
    assert {row["name"] for row in data["untagged"]} <= {None, "Topic 0", "Topic 1", "Topic 2"}
    assert len(data["tagger"]) == 4


def test_tables_without_content_are_left_out(analysis):
    assert "untagged_reports" not in trend_tables(analysis)
    assert {"scores", "shares", "deviations", "coverage", "untagged", "tagger"} <= set(trend_tables(analysis))
    assert "tagger" not in trend_tables(two_cycles())


def test_a_gap_of_a_report_without_tags_is_not_shown_as_silence():
    tables = trend_tables(two_cycles())
    rows = {row[0]: row for row in tables["scores"].rows}
    assert rows["Topic 0"][1] == "not tagged (WG1)"
    assert rows["Topic 1"][2] == "-"
    assert [row[:2] for row in tables["untagged_reports"].rows] == [("AR4", "WG1"), ("AR4", "WG3")]
    assert "does not mean silence: AR4 WG1, AR4 WG3" in trend_report(two_cycles(), source="f").to_html()


def test_documents_that_hardly_tag_are_named():
    statements = [statement(n, "ocean", tag="high" if n == 0 else None, document="Chapter 17") for n in range(150)]
    statements += [statement(n, "ocean", document="Chapter 2") for n in range(150, 200)]
    page = trend_report(analyse_trends(statements, topics_of(statements, [n % 2 for n in range(200)])), source="f")
    [words] = [block.text for block in page.sections[0].blocks if "Hardly" in block.text]
    assert "Chapter 17" in words
    assert "Chapter 2" not in words.replace("Chapter 17", "")


@pytest.mark.faults
def test_thirteen_thousand_statements_make_a_report_below_a_megabyte():
    statements = [statement(n, "ocean", tag="high" if n % 3 else "low") for n in range(13_000)]
    page = trend_report(analyse_trends(statements, topics_of(statements, [n % 4 for n in range(13_000)])), source="f")
    assert len(page.to_html().encode()) < 1_000_000


def test_a_map_of_more_points_than_can_be_drawn_is_thinned_and_says_so(analysis, monkeypatch):
    monkeypatch.setattr("climassay.confidence.trends.report.MAX_POINTS", 50)
    plot = statement_map(analysis)
    assert sum(len(cloud.points) for cloud in plot.clouds) == 36
    assert "36 of 72 statements are drawn" in plot.note
    assert "drawn" not in statement_map(analysis, "WG1").note


def test_rows_for_spreadsheets_hold_numbers(analysis):
    table = score_rows(analysis)
    assert table.rows[-1][:2] == ("", "")
    assert table.rows[-1][5] == "72"
    assert all(-2 <= float(row[2]) <= 2 for row in table.rows)
