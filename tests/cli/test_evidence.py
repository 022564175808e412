"""``climassay factcheck evidence`` as it is typed, on a small random model."""

import json

import pytest

from command_line import done, json_of, refused
from planted_evidence import evidence_rows
from tiny_models import save_tiny

CLAIMS = 24


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    # A token is a letter or two here: the prompts are longer than the tiny models of other tests take.
    return f"local:{save_tiny(tmp_path_factory.mktemp('model'), context=2048)}"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "claims.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in evidence_rows(CLAIMS)), encoding="utf-8")
    return path


@pytest.fixture
def climassay(monkeypatch, climassay, model, places):
    """Runs a command on the small model; gives its exit code, stdout and stderr."""
    monkeypatch.setenv("CLIMASSAY_CACHE", str(places[0]))

    return lambda *arguments: climassay(*arguments, "--model", model, "--workspace", places[1])


def test_prompts_are_scored_and_asked_once(climassay, file, tmp_path):
    html, csv, rows = tmp_path / "report.html", tmp_path / "scores.csv", tmp_path / "rows.jsonl"
    files = ("-o", html, "-o", csv, "--predictions", rows)
    data = json_of(climassay("factcheck", "evidence", file, "--limit", 8, "--json", *files))
    assert (data["claims"], data["left_out"], data["failed"]) == (8, CLAIMS - 8, 0)
    assert data["scores"]["n"] == 8
    assert {"accuracy", "f1", "constant_accuracy"} <= data["scores"].keys()
    assert all(sum(row["probabilities"]) == pytest.approx(1) for row in data["predictions"])
    assert [json.loads(line) for line in rows.read_text().splitlines()] == data["predictions"]
    assert "accuracy" in csv.read_text().lower()
    assert "claims.jsonl" in html.read_text()
    again = json_of(climassay("factcheck", "evidence", file, "--limit", 8, "--json"))
    assert again["predictions"] == data["predictions"]
    raw = json_of(climassay("factcheck", "evidence", file, "--limit", 8, "--json", "--no-calibrate"))
    assert raw["predictions"] != data["predictions"]


def test_claims_without_verdicts_are_listed(climassay, tmp_path):
    file = tmp_path / "plain.csv"
    file.write_text("claim,evidence_1,evidence_2\nIce melts.,Warm ice melts.,\nIce stays.,,\n")
    out = done(climassay("factcheck", "evidence", file))
    assert "Ice melts." in out
    done(climassay("factcheck", "evidence", file, "-o", tmp_path / "verdicts.csv"))
    assert "Ice stays." in (tmp_path / "verdicts.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--claim", "statement"), "no column 'statement'"),
        (("--scale", "nowhere.toml"), "nowhere.toml"),
    ],
    ids=["column", "toml"],
)
def test_wrong_arguments_of_evidence(climassay, file, arguments, message):
    assert message in refused(climassay("factcheck", "evidence", file, *arguments))
