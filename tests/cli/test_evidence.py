"""``climassay factcheck evidence`` and ``factcheck train`` as they are typed, on a small random model."""

import json

import pytest

from climassay.factcheck.verdict_head import VerdictHead
from command_line import done, json_of, refused, run_command
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


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    return tmp_path_factory.mktemp("head") / "head.safetensors"


def train(climassay, file, head, *more):
    return climassay("factcheck", "train", file, "-o", head, "--layer", "2", "--encoder", "none", *more)


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


def test_head_is_trained_scored_on_held_out_claims_and_used(climassay, file, head, monkeypatch):
    data = json_of(train(climassay, file, head, "--hold-out", 6, "--json"))
    assert data["provenance"]["groups"] == CLAIMS - 6
    assert data["held_out"]["n"] == 6
    assert data["choices"][0]["log_loss"] <= data["choices"][-1]["log_loss"]
    assert VerdictHead.load(head).provenance.groups == CLAIMS - 6
    scored = json_of(climassay("factcheck", "evaluate", head, file, "--json"))
    assert (scored["claims"], scored["left_out"]) == (6, CLAIMS - 6)
    assert scored["scores"] == data["held_out"]
    everything = json_of(climassay("factcheck", "evaluate", head, file, "--include-trained", "--json"))
    assert everything["claims"] == CLAIMS
    # It brings the number format that it was trained on.
    monkeypatch.setenv("CLIMASSAY_DTYPE", "bfloat16")
    assert json_of(climassay("factcheck", "evaluate", head, file, "--json"))["scores"] == scored["scores"]


def test_a_head_gives_verdicts_on_claims_without_labels(climassay, file, head, tmp_path):
    if not head.exists():
        assert train(climassay, file, head, "--hold-out", 6)[0] == 0
    items, rows = tmp_path / "plain.csv", tmp_path / "rows.jsonl"
    items.write_text("claim,evidence_1\nIce melts.,Warm ice melts.\nIce stays.,\n", encoding="utf-8")
    data = json_of(climassay("factcheck", "apply", head, items, "-o", rows, "--json"))
    assert [json.loads(line) for line in rows.read_text().splitlines()] == data["predictions"]
    assert data["predictions"][1]["verdict"] == "NOT_ENOUGH_INFO"
    assert "Ice melts." in climassay("factcheck", "apply", head, items)[1]
    out = done(climassay("factcheck", "evaluate", head, file))
    assert "macro-F1" in out
    assert "no published verdicts" in refused(climassay("factcheck", "evaluate", head, items))


def test_head_trained_on_everything_has_nothing_to_be_scored_on(climassay, file, tmp_path):
    own = tmp_path / "head.safetensors"
    assert train(climassay, file, own)[0] == 0
    assert "--include-trained" in refused(climassay("factcheck", "evaluate", own, file))


def test_head_of_another_model_is_refused(climassay, monkeypatch, capsys, file, head, places, tmp_path):
    if not head.exists():
        assert train(climassay, file, head, "--hold-out", 6)[0] == 0
    other = f"local:{save_tiny(tmp_path, seed=5)}"
    arguments = ("factcheck", "evaluate", head, file, "--model", other, "--workspace", places[1])
    assert "was trained on the model" in refused(run_command(monkeypatch, capsys, *arguments), alone=False)


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "nowhere/head.safetensors"), "does not exist"),
        (("-o", "head.safetensors", "--encoder", "none", "--hold-out", CLAIMS), "cannot be held out"),
        (("-o", "head.safetensors", "--encoder", "none", "--layer", "99"), "layer"),
    ],
    ids=["folder", "hold-out", "layer"],
)
def test_wrong_arguments_of_training(climassay, monkeypatch, file, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(climassay("factcheck", "train", file, *arguments), alone=False)
