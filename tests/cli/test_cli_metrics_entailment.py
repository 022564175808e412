import json

import pytest

from command_line import json_of, refused
from tiny_models import save_classifier

THINGS = ("ice", "snow", "rain", "wind", "heat")
LABELS = ("SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO")


@pytest.fixture
def pairs(tmp_path):
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"premise": f"Of {thing}: {label}.", "statement": f"The {thing} grew.", "label": label}
        for thing in THINGS
        for label in LABELS
    ]
    rows.append({"premise": "Nobody has judged this.", "statement": "The ice grew.", "label": ""})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def scorer(tmp_path):
    return f"nli:{save_classifier(tmp_path / 'classifier')}"


@pytest.mark.model
def test_a_scorer_is_measured_beside_the_constant(climassay, tmp_path, pairs, scorer):
    page = tmp_path / "report.html"
    code, out, err = climassay("metrics entailment evaluate", scorer, pairs, "-o", page)
    assert code == 0
    assert "most frequent class" in out
    assert "May not say so" in out
    assert "report.html written" in err
    assert "Entailment scorers" in page.read_text(encoding="utf-8")


@pytest.mark.model
def test_statements_are_drawn_whole_and_pairs_without_a_label_are_counted(climassay, pairs, scorer):
    found = json_of(climassay("metrics entailment evaluate", scorer, pairs, "--limit", 2, "--json"))
    assert found["skipped"] == 1
    [scores] = found["scorers"]
    assert (scores["three_class"]["n"], scores["three_class"]["groups"]) == (6, 2)
    assert scores["two_class"]["n"] == 4


@pytest.mark.parametrize(
    ("scorer", "file", "message"),
    [("nli:classifier", "missing.jsonl", "missing.jsonl"), ("bundled", "pairs.jsonl", "names no entailment scorer")],
    ids=["file", "scorer"],
)
def test_bad_input_is_one_sentence(monkeypatch, climassay, tmp_path, pairs, scorer, file, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(climassay("metrics entailment evaluate", scorer, file))
