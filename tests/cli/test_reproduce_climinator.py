"""``climassay reproduce climinator``: from claims and collections to the finished tables, with a scripted debate."""

import csv

import pytest

from climassay import reproduce_climinator
from climassay.factcheck import DebateSettings
from climassay.factcheck.results.analysis import FOLLOW_UP
from climassay.reporting.paper_tables import load_paper_tables
from climassay.reproduction.climinator import CliminatorRecipe, score_outcomes
from climassay.workspace import Workspace
from command_line import done, refused
from debate_tables import BOOKS, NEI, PASSAGES, SUN, UNGRADED, Script, make_collection, paragraph

CLAIMS = {
    SUN: "inaccurate",
    "The sun delivers practically all the energy that the Earth receives, so it causes the warming.": "misleading",
    "The effective forcing by CO2 from 1750 to 2019 was larger than that of the Sun.": "mostly accurate",
}
RULES = DebateSettings(rounds=2, split="whole", check_claims=False, profile=UNGRADED)
COLLECTIONS = {"ipcc": "physical", "wmo": "ice", "contrarian": "pamphlet"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with a collection for each of three advocates."""
    root = tmp_path_factory.mktemp("workspace")
    for name, source in COLLECTIONS.items():
        book, title = BOOKS[source]
        found = [paragraph(book, beginning) for beginning in PASSAGES[source]]
        make_collection(Workspace.open(root), name, *found, title=title)
    return root


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    """A table of three claims with verdicts, and one of which the third is repeated."""
    file = tmp_path_factory.mktemp("claims") / "claims.csv"
    with file.open("w", newline="", encoding="utf-8") as lines:
        rows = [(claim, "A source", verdict) for claim, verdict in CLAIMS.items()]
        csv.writer(lines).writerows([("claim", "source", "climate_feedback_verdict"), *rows, rows[2]])
    return file


@pytest.fixture
def script():
    """The pamphlet's advocate contradicts the others in the first round and gives in in the second."""
    return Script(
        {
            "IPCC": ["incorrect"],
            "WMO": ["incorrect"],
            "GPT-4": ["inaccurate"],
            "NIPCC": ["correct", "incorrect"],
            "mediator": ["incorrect"],
        }
    )


def reproduced(workspace, script, **options):
    named = {name: name for name in COLLECTIONS} | {"settings": RULES, "models": script.model, "workspace": workspace}
    return reproduce_climinator(**{**named, **options})


def test_published_tables_have_the_paper_s_figures():
    tables = load_paper_tables(CliminatorRecipe.published_file)
    assert list(tables) == ["1", "2", "3", "4", "5"]
    rows = {(row.group, row.system): row for row in tables["1"].published}
    assert len(rows) == 42, "seven systems in six panels"
    assert rows["5 classes, without NEI", "WMO"].n == 127
    assert rows["5 classes, without NEI", "WMO"].scores["F1"] == 36.17
    assert rows["2 classes, with NEI", "GPT-4"].scores == {"Prec.": 58.94, "Rec.": 51.53, "F1": 54.6, "Acc.": 94.12}
    columns = {column: sum(row.scores[column] for row in tables["3"].published) for column in tables["3"].columns}
    assert columns == dict.fromkeys(columns, 170) | {"(B) round 1": 168}, "the paper's column has two claims less"
    assert sum(row.scores["round 2"] for row in tables["5"].published) == 81


def test_table_1_is_finished_and_a_second_run_asks_nothing(workspace, claims, script):
    result = reproduced(workspace, script, tables=["1"], claims=claims)
    [first] = result.paper_tables
    binary = {row.system: row for row in first.ours if row.group == "2 classes, without NEI"}
    assert list(binary) == [
        "Climinator (scripted)", "Climinator+ (scripted)", "IPCC (scripted)", "WMO (scripted)",
        "no documents, as GPT-4 (scripted)", "always “incorrect”",
    ]  # fmt: skip
    assert binary["Climinator (scripted)"].scores["Acc."].value == pytest.approx(50)
    assert binary["Climinator (scripted)"].scores["Acc."].n == 3, "a repeated claim is resampled as one"
    assert binary["Climinator (scripted)"].n == 4
    assert dict(result.facts)["Model local:scripted"].startswith(script.model.fingerprint)
    n_asked = len(script.model.texts)
    again = reproduced(workspace, script, tables=["1"], claims=claims)
    assert len(script.model.texts) == n_asked
    assert again.paper_tables[0].ours == first.ours


def test_a_system_without_information_has_a_row_without_scores(workspace, claims):
    silent = Script({name: [NEI] for name in ("IPCC", "WMO", "GPT-4")})
    silent.model.fingerprint = "6" * 64
    result = reproduced(workspace, silent, tables=["1"], claims=claims)
    [first] = result.paper_tables
    rows = {(row.group, row.system): row for row in first.ours}
    empty = rows["7 classes, without NEI", "Climinator (scripted)"]
    assert (empty.n, empty.scores) == (0, {})
    assert rows["7 classes, with NEI", "Climinator (scripted)"].scores["Acc."].value == 0
    assert any("not enough information" in remark for remark in result.remarks)


def test_tables_3_and_4_have_follow_up_as_an_outcome(workspace, claims, script, tmp_path):
    result = reproduced(workspace, script, tables=["3", "4"], claims=claims, output=tmp_path / "out")
    third, fourth = result.paper_tables
    counts = {row.system: row.scores for row in third.ours}
    assert counts["follow-up (scripted)"] == {
        "NIPCC": 0, "Climinator": 0, "(A) round 1": 4, "(A) round 2": 0,
        "(B) round 1": 0, "(B) round 2": 0,  # the script's NIPCC has given in during the debates before
    }  # fmt: skip
    assert counts["correct (scripted)"]["NIPCC"] == 4
    assert counts["incorrect (scripted)"]["(A) round 2"] == 4
    assert "no verdict (scripted)" not in counts
    scores = {row.system: row.scores for row in fourth.ours}
    assert scores["Climinator (A), round 1 (scripted)"]["Acc."].value == 0
    assert scores["Climinator (A), round 2 (scripted)"]["Acc."].value == pytest.approx(50)
    assert any("AbsCC" in sentence and "--abstracts" in sentence for sentence in fourth.differences)
    assert any("1 claim repeated" in sentence for sentence in fourth.differences)
    assert len(result.runs) == 3, "each debate is held once for both tables"
    assert (tmp_path / "out" / "table-4.md").exists()


def test_tables_2_and_5_have_files_of_their_own(workspace, claims, script, tmp_path):
    report = tmp_path / "report.csv"
    report.write_text("claim\n" + "".join(f'"{claim}"\n' for claim in CLAIMS))
    result = reproduced(workspace, script, myths=claims, report_claims=report)
    second, fifth = result.paper_tables
    rows = {row.system: row for row in second.ours}
    assert rows["Climinator (scripted)"].scores["claims without NEI"] == 4
    assert rows["Climinator (scripted)"].scores["Acc. with NEI"].value == pytest.approx(50)
    assert any("climate-change context" in prompt for prompt in script.model.texts)
    counts = {row.system: row.scores for row in fifth.ours}
    assert counts["correct (scripted)"] == {"NIPCC": 3, "round 1": 0, "round 2": 0}
    assert counts["follow-up (scripted)"]["round 1"] == 3
    assert [note for note in result.notes() if "Table 1 is left out" in note and "--claims" in note]


def test_an_outcome_of_a_round_is_scored_as_the_paper_s_table_4_does():
    truth = ["incorrect"] * 156 + ["correct"] * 14
    first_round = (
        ["incorrect"] * 96 + ["correct"] * 3 + [FOLLOW_UP] * 57
        + ["incorrect"] * 2 + ["correct"] * 3 + [FOLLOW_UP] * 7 + ["not enough information"] * 2
    )  # fmt: skip
    contrarian = (
        ["incorrect"] * 51 + ["correct"] * 79 + ["not enough information"] * 26
        + ["incorrect"] * 6 + ["correct"] * 2 + ["not enough information"] * 6
    )  # fmt: skip
    published = {row.system: row.scores for row in load_paper_tables(CliminatorRecipe.published_file)["4"].published}
    for system, predicted in (("Climinator (B), round 1", first_round), ("NIPCC", contrarian)):
        scores = score_outcomes(truth, predicted)
        assert {
            column: score if isinstance(score, float) else score.value for column, score in scores.items()
        } == pytest.approx(published[system], abs=0.011)


def test_an_estimate_holds_no_debate(workspace, claims, script):
    script.model.parameters = 1  # as a local model, whose requests factcheck run would time
    estimate = reproduced(workspace, script, tables=["1"], claims=claims, estimate=True)
    assert [part.part for part in estimate.parts] == [
        "scripted, Climinator, Climate Feedback", "scripted, Climinator+, Climate Feedback",
    ]  # fmt: skip
    assert estimate.parts[1].calls > estimate.parts[0].calls > 0
    assert not script.model.options
    assert not script.model.texts


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ((), "--claims"),
        (("--table", "9"), "1, 2, 3, 4, 5"),
        (("--table", "1", "--claims", "{claims}"), "--ipcc NAME"),
        (("--table", "3", "--claims", "{claims}", "--ipcc", "ipcc"), "--contrarian"),
        (("--table", "1", "--claims", "absent.csv", "--ipcc", "ipcc"), "absent.csv"),
        (("--table", "1", "--claims", "{claims}", "--ipcc", "nothing"), "nothing"),
        (("--table", "1", "--claims", "{claims}", "--ipcc", "ipcc", "--truth", "source"), "A source"),
    ],
)
def test_bad_input_is_one_sentence(workspace, claims, climassay, options, word):
    named = [option.format(claims=claims) for option in options]
    assert word in refused(climassay("reproduce climinator", *named, "-w", workspace), alone=False)


def test_a_file_without_verdicts_is_refused(workspace, climassay, tmp_path):
    file = tmp_path / "claims.csv"
    file.write_text("claim,verdict\nIt warms.,true story\n")
    told = climassay("reproduce climinator", "--claims", file, "--ipcc", "ipcc", "-w", workspace)
    assert "--truth" in refused(told, alone=False)


def test_the_command_estimates_the_work(workspace, claims, climassay, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    named = ("--table", "1", "--claims", claims, "--ipcc", "ipcc", "--estimate", "--json", "-w", workspace)
    done(climassay("reproduce climinator", *named, "--model", "openai:nobody", "--base-url", "http://127.0.0.1:9/v1"))
