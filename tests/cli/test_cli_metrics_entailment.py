import json

import pytest

from command_line import done, json_of, refused

THINGS = ("ice", "snow", "rain", "wind", "heat", "salt", "dust", "soil", "rock", "sand")


@pytest.fixture
def pairs(tmp_path):
    file = tmp_path / "pairs.jsonl"
    rows = []
    for place, thing in enumerate(THINGS):
        statement = f"The {thing} grew by {place + 3} units."
        said = {"SUPPORTS": f"the {thing} grew", "REFUTES": f"the {thing} shrank"}
        rows += [
            {"premise": f"Records show that {text} by {place + 3} units.", "statement": statement, "label": label}
            for label, text in said.items()
        ]
        rows.append({"premise": "Nothing was measured.", "statement": statement, "label": "NOT_ENOUGH_INFO"})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_validate_the_bundled_scorer(climassay, tmp_path, pairs):
    page = tmp_path / "report.html"
    code, out, err = climassay("metrics entailment evaluate bundled", pairs, "-o", page)
    assert code == 0
    assert "bundled" in out
    assert "most frequent class" in out
    assert "May not say so" in out
    assert "report.html written" in err
    assert "Entailment scorers" in page.read_text(encoding="utf-8")


def test_train_then_validate_on_what_was_held_out(climassay, tmp_path, pairs):
    head = tmp_path / "head.safetensors"
    data = json_of(climassay("metrics entailment train", pairs, "-o", head, "--hold-out", 3, "--folds", 3, "--json"))
    assert data["provenance"]["groups"] == 7
    assert data["held_out"]["three_class"]["groups"] == 3
    assert data["choices"][0]["merit"] >= data["choices"][-1]["merit"]
    found = json_of(climassay("metrics entailment evaluate", head, pairs, "--beside", "bundled", "--json"))
    assert found["left_out"] == 21
    assert [one["three_class"]["groups"] for one in found["scorers"]] == [3, 3]
    assert found["scorers"][0]["two_class"] == data["held_out"]["two_class"]
    code, _, err = climassay("metrics entailment evaluate", head, pairs, "--include-trained", "--limit", 2)
    assert code == 0
    assert "left out" not in err


def test_each_pair_gets_its_probabilities(climassay, tmp_path):
    items, rows = tmp_path / "pairs.csv", tmp_path / "rows.jsonl"
    items.write_text("premise,statement\nGlaciers lose ice.,Glaciers lose ice.\n", encoding="utf-8")
    command = ("metrics", "entailment", "apply", "bundled", items)
    out = done(climassay(*command, "--output", rows, "--json"))
    [pair] = json.loads(out)["pairs"]
    assert sum(pair["probabilities"].values()) == pytest.approx(1)
    assert max(pair["probabilities"], key=pair["probabilities"].get) == "confirms"
    assert json.loads(rows.read_text(encoding="utf-8")) == pair
    assert "confirms" in climassay(*command)[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "bundled", "missing.jsonl"), "missing.jsonl"),
        (("train", "PAIRS", "-o", "no/where/head"), "does not exist"),
        (("train", "PAIRS", "-o", "head.safetensors", "--hold-out", 10), "cannot be held out"),
    ],
    ids=["file", "place", "hold-out"],
)
def test_bad_input_is_one_sentence(monkeypatch, climassay, tmp_path, pairs, arguments, message):
    monkeypatch.chdir(tmp_path)
    filled = [pairs if one == "PAIRS" else one for one in arguments]
    assert message in refused(climassay("metrics entailment", *filled))
