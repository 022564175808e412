"""``climassay factcheck run``: claims of a file, scored, reported, interrupted and gone on with."""

import csv
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from climassay.factcheck import from_data
from climassay.factcheck.scales import ACCURACY
from command_line import done, json_of, refused
from debate_workspaces import CLAIM, QUICK, make_model, make_workspace, stored
from killed_process import START, kill_when

CLAIMS = (
    (CLAIM, "incorrect"),
    ("Carbon dioxide absorbs infrared radiation near 15 micrometres.", "correct"),
    ("Volcanoes emit more carbon dioxide than people do.", "misleading"),
)
KEYS = {
    "run", "skipped", "tallies", "verdicts", "scale", "n_classes", "claims", "repeated", "with_truth", "outcomes",
    "scores", "by_group",
    "by_round", "distributions", "nei", "rounds", "agreement", "citations", "left_out", "risk",
    "disagreements", "failed", "demonstration", "failures", "with_failures", "usage",
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return make_workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    return write_claims(tmp_path_factory.mktemp("claims") / "claims.csv", CLAIMS)


def write_claims(path: Path, rows, names=("claim", "verdict")) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def command(file: Path, workspace: Path, model: str, *options) -> list[str]:
    chosen = [*QUICK, "--model", model, "--workspace", workspace, *options]
    return ["factcheck", "run", *map(str, [file, "-c", "book", *chosen])]


@pytest.fixture
def climassay(monkeypatch, climassay):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: climassay(*arguments)


def test_three_claims_are_scored_and_written_and_asked_once(climassay, claims, workspace, model, tmp_path):
    files = {name: tmp_path / name for name in ("report.html", "debates.jsonl", "tables.md", "pages")}
    options = [
        "--truth", "verdict", "--leave-one-out", "-o", files["report.html"], "--pages", files["pages"],
        "--transcripts", files["debates.jsonl"], "-o", files["tables.md"],
    ]  # fmt: skip
    told = json_of(climassay(*command(claims, workspace, model, *options, "--json")))
    assert set(told) == KEYS
    assert (told["claims"], told["with_truth"], told["skipped"], told["failures"]) == (3, 3, [], 0)
    legal = {*ACCURACY.labels, ACCURACY.nei}
    assert [(one["claim"], one["label"] in legal) for one in told["verdicts"]] == [(text, True) for text, _ in CLAIMS]
    assert told["tallies"][model]["sent"] > 0
    assert told["tallies"][model]["failed"] == 0

    lines = files["debates.jsonl"].read_text(encoding="utf-8").splitlines()
    transcripts = [from_data(json.loads(line)) for line in lines]
    assert [(one.claim.text, one.verdict.label) for one in transcripts] == [
        (one["claim"], one["label"]) for one in told["verdicts"]
    ]
    # "Not enough information" is not a verdict that could disagree; the published ones are of another scale.
    others = [
        one.claim.id
        for one, (_, verdict) in zip(transcripts, CLAIMS, strict=True)
        if ACCURACY.collapse(one.verdict.label, 2) not in (ACCURACY.match(verdict, 2), ACCURACY.nei)
    ]
    assert [one["claim"] for one in told["disagreements"]] == others

    report = files["report.html"].read_text(encoding="utf-8")
    assert not re.search(r"<script|<link|src=.http", report)
    links = set(re.findall(r'href="(pages/[^"]+)"', report))
    assert links == {f"pages/{claim}.html" for claim in others}
    assert {path.name for path in files["pages"].iterdir()} == {f"{one.claim.id}.html" for one in transcripts}
    assert all((tmp_path / link).is_file() for link in links)
    assert "### Rounds of 3 debates" in files["tables.md"].read_text(encoding="utf-8")

    asked = stored(workspace, "answers")
    code, out, err = climassay(*command(claims, workspace, model, *options))
    assert code == 0, err
    assert stored(workspace, "answers") == asked
    assert f"{told['tallies'][model]['sent']} answers from the records, 0 asked (0 failed)" in err
    for one in told["verdicts"]:
        assert any(one["claim"] in line and one["label"] in line for line in out.splitlines())


def test_scores_are_broken_down_by_field(climassay, workspace, model, tmp_path):
    rows = [(*row, field) for row, field in zip(CLAIMS, ("energy", "climate", "energy"), strict=True)]
    file = write_claims(tmp_path / "claims.csv", rows, names=("claim", "verdict", "field"))
    options = ("--truth", "verdict", "--by", "field", "-o", tmp_path / "report.html")
    told = json_of(climassay(*command(file, workspace, model, *options, "--json")))
    groups = {name: scores["rows"]["figures"]["n"] for name, scores in told["by_group"]["groups"]}
    assert (told["by_group"]["column"], groups) == ("field", {"energy": 2, "climate": 1})
    assert "Scores by field" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_without_published_verdicts_the_given_ones_are_told(climassay, claims, workspace, model):
    told = json_of(climassay(*command(claims, workspace, model, "--json", "--limit", "2", "--seed", "3")))
    assert (told["claims"], told["with_truth"], told["disagreements"]) == (2, 0, [])
    assert len({one["claim"] for one in told["verdicts"]} & {text for text, _ in CLAIMS}) == 2


def test_a_dry_run_says_what_it_would_take_and_asks_nothing_for_the_records(climassay, claims, tmp_path, model):
    workspace = make_workspace(tmp_path / "dry")
    told = json_of(climassay(*command(claims, workspace, model, "--dry-run", "--json")))
    assert told["claims"] == 3
    assert told["requests"] > 3
    assert told["prompt_tokens"] > told["completion_tokens"] > 0
    assert told["cost"] == 0
    assert stored(workspace, "answers") == stored(workspace, "runs") == 0

    out = done(climassay(*command(claims, workspace, model, "--dry-run")))
    said = " ".join(out.split())
    assert said.startswith("3 claims, one round.")
    assert f"{told['requests']} calls, for each claim at most {told['sequential_calls']} one after the other" in said
    assert re.search(r"about \d+ (seconds|minutes)\.", said)


@pytest.mark.process
def test_a_killed_run_goes_on_where_it_stopped(climassay, claims, workspace, model, tmp_path):
    def run(place):
        out = done(climassay(*command(claims, place, model, *options)))
        return json.loads(out)

    options = ["--truth", "verdict", "--rounds", "2", "--split", "rules", "--json", "--debates", "1"]
    straight = run(make_workspace(tmp_path / "straight"))
    expected = straight["tallies"][model]

    place = make_workspace(tmp_path / "killed")
    killed = [*START, *command(claims, place, model, *options)]
    own = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(killed, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert kill_when(lambda: stored(place, "answers") >= 1, process) == ""
    answered = stored(place, "answers")
    assert 0 < answered < expected["sent"]
    resumed = run(place)
    found = resumed["tallies"][model]
    assert found["sent"] == expected["sent"] - answered
    assert found["hits"] == expected["hits"] + answered
    assert resumed["verdicts"] == straight["verdicts"]
    assert resumed["rounds"] == straight["rounds"]


BAD = {
    "no file": (["nowhere.csv", "-c", "book"], "There is no file at nowhere.csv"),
    "no claims": (["other.csv", "-c", "book"], "other.csv has no column of claims"),
    "no column": (["claims.csv", "-c", "book", "--claim", "text"], "no column 'text' (--claim)"),
    "all empty": (["blank.csv", "-c", "book"], "No row of blank.csv has a claim"),
    "nobody": (["claims.csv"], "has no advocate"),
    "scores by field without verdicts": (["claims.csv", "-c", "book", "--by", "claim"], "--truth"),
    "no such field": (["claims.csv", "-c", "book", "--truth", "verdict", "--by", "colour"], "(--by)"),
    "other verdicts": (
        ["claims.csv", "-c", "book", "--truth", "verdict", "--scale", "climate-fever"],
        "is not of the scale",
    ),
    "tables in a folder": (["claims.csv", "-c", "book", "-o", "."], "is a folder"),
    "pages in a file": (["claims.csv", "-c", "book", "--pages", "claims.csv"], "is a file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_before_anything_is_asked(name, climassay, workspace, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_claims(Path("claims.csv"), CLAIMS)
    write_claims(Path("other.csv"), [("x", "y")], names=("colour", "verdict"))
    write_claims(Path("blank.csv"), [(" ", "correct")])
    Path("empty.csv").write_text("", encoding="utf-8")
    Path("debate.toml").write_text("colour = 1\n", encoding="utf-8")
    arguments, sentence = BAD[name]
    before = stored(workspace, "answers"), stored(workspace, "runs")
    err = refused(
        climassay("factcheck", "run", *arguments, "--model", model, "--workspace", workspace, "--no-estimate")
    )
    assert sentence in err
    assert (stored(workspace, "answers"), stored(workspace, "runs")) == before
