import json

import pytest

from command_line import run_command

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


def test_validate_the_bundled_scorer(monkeypatch, capsys, tmp_path, pairs):
    page = tmp_path / "report.html"
    code, out, err = run_command(monkeypatch, capsys, "metrics", "validate-entailment", pairs, "--html", page)
    assert code == 0
    assert "bundled" in out
    assert "constant" in out
    assert "Report written" in err
    assert "Entailment scorers" in page.read_text(encoding="utf-8")


def test_figures_and_long_names_stay_whole_on_any_screen(monkeypatch, capsys, tmp_path, pairs):
    folder = tmp_path / "a-folder-with-a-long-name" / "and-another-folder-in-it"
    folder.mkdir(parents=True)
    head = folder / "head.safetensors"
    code, _, _ = run_command(
        monkeypatch, capsys, "metrics", "train-entailment", pairs, "-o", head, "--hold-out", 5, "--folds", 3
    )
    assert code == 0
    validate = ("metrics", "validate-entailment", pairs, "-e", head, "-e", "bundled")
    scorers = json.loads(run_command(monkeypatch, capsys, *validate, "--json")[1])["scorers"]
    for width in (72, 90, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        code, out, _ = run_command(monkeypatch, capsys, *validate)
        assert code == 0
        for scorer in scorers:
            assert scorer["scorer"] in "".join(line.strip() for line in out.splitlines())
            low, high = scorer["two_class_interval"]
            assert f"{scorer['two_class']['accuracy']['value']:.1%} ({low:.1%} to {high:.1%})" in out
            low, high = scorer["two_class_auroc_interval"]
            assert f"{scorer['two_class_auroc']:.3f} ({low:.3f} to {high:.3f})" in out
            assert f"{scorer['calibration_error']:.3f}" in out
        for heading in ("accuracy", "constant", "balanced", "AUROC", "calibration", "macro-F1", "failed"):
            assert heading in out


def test_train_then_validate_on_what_was_held_out(monkeypatch, capsys, tmp_path, pairs):
    head = tmp_path / "head.safetensors"
    code, out, _ = run_command(
        monkeypatch, capsys, "metrics", "train-entailment", pairs, "-o", head, "--hold-out", 3, "--folds", 3, "--json"
    )
    assert code == 0
    data = json.loads(out)
    assert data["source"]["statements"] == 7
    assert data["held_out"]["statements"] == 3
    assert data["choices"][0]["merit"] >= data["choices"][-1]["merit"]
    code, out, _ = run_command(
        monkeypatch, capsys, "metrics", "validate-entailment", pairs, "-e", head, "-e", "bundled", "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert found["left_out"] == 21
    assert [one["statements"] for one in found["scorers"]] == [3, 3]
    assert found["scorers"][0]["two_class"] == data["held_out"]["two_class"]
    code, _, err = run_command(
        monkeypatch, capsys, "metrics", "validate-entailment", pairs, "-e", head, "--include-trained", "--limit", 2
    )
    assert code == 0
    assert "left out" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("validate-entailment", "missing.jsonl"), "missing.jsonl"),
        (("validate-entailment", "PAIRS", "-e", "nonsense"), "names no entailment scorer"),
        (("train-entailment", "PAIRS", "-o", "no/where/head"), "no place for a file"),
        (("train-entailment", "PAIRS", "-o", "head.safetensors", "--hold-out", 10), "cannot be held out"),
    ],
    ids=["file", "scorer", "place", "hold-out"],
)
def test_bad_input_is_one_sentence(monkeypatch, capsys, tmp_path, pairs, arguments, message):
    monkeypatch.chdir(tmp_path)
    filled = [pairs if one == "PAIRS" else one for one in arguments]
    code, _, err = run_command(monkeypatch, capsys, "metrics", *filled)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
