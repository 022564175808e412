from dataclasses import replace

import pytest

from climassay.claim_identity import claim_id
from climassay.factcheck import analyse, factcheck_report
from climassay.factcheck.results.analysis_tables import analysis_tables
from climassay.factcheck.scales import CLIMATE_FEEDBACK
from climassay.reporting import Cases, DotPlot, HeatMap, LinePlot, StackedBars
from factcheck_transcripts import checked, full_transcript, unchecked, with_text_everywhere
from html_pages import Elements

NEI = CLIMATE_FEEDBACK.nei
LABELS = CLIMATE_FEEDBACK.labels


def run(size=24):
    """Half of the mediator's verdicts are one step from the truth; WMO is often without information."""
    checks, truths = [], {}
    for number in range(size):
        truth = LABELS[number % 12]
        given = truth if number % 2 else LABELS[(number + 1) % 12]
        wmo = NEI if number % 3 == 0 else truth
        rounds = [({"IPCC": given, "WMO": wmo}, given)]
        if number % 4 == 0:
            rounds.insert(0, ({"IPCC": truth, "WMO": wmo}, truth))
        text = f"Claim {number}."
        truths[text] = truth
        checks.append(checked(text, *rounds, without=(("IPCC", truth),)))
    return [*checks, unchecked("What?", "not checkable")], truths


def analysed(*given, classes=7):
    transcripts, truths = given or run()
    known = {claim_id(text): verdict for text, verdict in truths.items()}
    return analyse(transcripts, known, CLIMATE_FEEDBACK, classes=classes, resamples=100)


@pytest.fixture(scope="module")
def analysis():
    return analysed()


def blocks(report, kind):
    return [block for section in report.sections for block in section.blocks if isinstance(block, kind)]


def titled(tables, start):
    (table,) = [table for table in tables if table.title.startswith(start)]
    return table


def test_scores_stand_beside_the_constant_answer_on_every_level(analysis):
    table = titled(analysis_tables(analysis), "Verdicts against")
    assert [row[:2] for row in table.rows][:4] == [
        ("12 classes", "mediator"), ("12 classes", "IPCC"), ("12 classes", "WMO"), ("7 classes", "mediator")
    ]  # fmt: skip
    first, two = table.rows[0], next(row for row in table.rows if row[:2] == ("2 classes", "mediator"))
    assert (first[2], first[3], first[5]) == ("24", "50.0", "8.3")
    assert (two[3], two[5]) == ("91.7", "58.3")
    assert table.strong == {0, 3, 6, 9}
    wmo = next(row for row in table.rows if row[1] == "WMO")
    assert (wmo[3], wmo[9]) == ("66.7", "8")
    informed = titled(analysis_tables(analysis), "The same without")
    assert next(row for row in informed.rows if row[1] == "WMO")[2:4] == ("16", "100.0")


def test_the_report_has_every_figure(analysis):
    report = factcheck_report(analysis, file="claims.csv", facts=(("Run", "r1"),))
    maps = blocks(report, HeatMap)
    assert [len(one.rows) for one in maps] == [12, 7, 5, 2]
    assert [sum(map(sum, one.counts)) for one in maps] == [24] * 4
    assert maps[0].counts[0][1] == 2
    (dots,) = blocks(report, DotPlot)
    assert len(dots.dots) == 4 * 3
    assert dots.dots[0].reference == pytest.approx(2 / 24)
    (bars,) = blocks(report, StackedBars)
    assert [(bar.label, bar.total) for bar in bars.bars] == [
        ("published", 24), ("mediator", 25), ("IPCC", 25), ("WMO", 25)
    ]  # fmt: skip
    assert [(category.position, category.hatched) for category in bars.categories[-2:]] == [(None, False), (None, True)]
    assert (bars.categories[0].position, bars.categories[6].position) == (0.0, 1.0)
    (curve,) = blocks(report, LinePlot)
    assert curve.series[0].points[-1].y == pytest.approx(analysis.risk.unordered)
    page = report.to_html()
    for text in (
        "50.0% right (",
        "Fact-checks of claims.csv",
        "Leippold et al. (2024)",
        "not reviewed by a person",
        "r1",
    ):
        assert text in page


@pytest.mark.parametrize(
    ("size", "wrong", "words"),
    [
        (60, 0, "more than"),
        (60, 21, "not clearly other than"),
        (60, 60, "less than"),
        (20, 0, "too few other claims (7) to compare with"),
    ],
    ids=str,
)
def test_the_headline_says_whether_a_constant_answer_is_as_good(size, wrong, words):
    truths = {f"c{number}": "incorrect" if number < 0.65 * size else "correct" for number in range(size)}
    checks = [
        checked(text, ({"IPCC": label}, label))
        for number, (text, truth) in enumerate(truths.items())
        for label in [truth if number >= wrong else {"correct": "incorrect", "incorrect": "correct"}[truth]]
    ]
    report = factcheck_report(analysed(checks, truths, classes=2), file="x")
    facts = dict(report.sections[0].blocks[0].items)
    assert f"{words} the 65.0% of always answering 'incorrect'" in facts["Mediator, 2 classes"]


def test_disagreements_link_to_their_place_and_their_page(analysis):
    report = factcheck_report(analysis, file="x", pages={claim_id("Claim 6."): "claims/6.html"})
    (cases,) = blocks(report, Cases)
    assert len(cases.cases) == len(analysis.disagreements) > 3
    anchors = Elements(report.to_html())
    anchors.check()
    assert [link for link in anchors.links if not link.startswith("#")] == ["claims/6.html"]


def test_a_run_without_published_verdicts_says_so():
    analysis = analysed(run()[0], {})
    page = factcheck_report(analysis, file="x").to_html()
    assert "No claim has a published verdict" in page
    assert "Disagreements" not in page
    assert not [table for table in analysis_tables(analysis) if "published ones" in table.title]


def test_a_run_in_which_nothing_was_debated_has_a_report():
    page = factcheck_report(analysed([unchecked("a", "failed")], {"a": "correct"}), file="x").to_html()
    assert "none of them debated" in page
    assert "0.0% right" in page


def test_nothing_that_people_or_models_write_becomes_markup():
    attack = "\"'><script>alert(1)</script>"
    attacked = with_text_everywhere(full_transcript(), attack)
    attacked = replace(attacked, without=((attack, "correct"),))
    analysis = analysed([attacked], {attacked.claim.text: "correct"})
    page = factcheck_report(analysis, file=attack, facts=((attack, attack),)).to_html()
    anchors = Elements(page)
    assert "script" not in anchors.tags
    assert page.count("&lt;script&gt;") > 10
