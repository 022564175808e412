"""``climassay factcheck score`` as a user meets it."""

import csv
import json

import pytest

from command_line import refused

ROWS = [
    {"claim": "Sea level is falling.", "expert": "incorrect", "model": "Incorrect"},
    {"claim": "“Sea level” is  falling.", "expert": "incorrect", "model": "correct"},
    {"claim": "It was warmer in Rome.", "expert": "lacks context", "model": "flawed_reasoning"},
    {"claim": "Clouds are strange.", "expert": "unsupported", "model": "NEI"},
    {"claim": "CO2 is a greenhouse gas.", "expert": "correct", "model": "mostly accurate"},
    {"claim": "Ice melts.", "expert": "accurate", "model": ""},
    {"claim": "Nobody has judged this.", "expert": "", "model": "correct"},
]


@pytest.fixture
def score(monkeypatch, climassay):
    """Runs ``verdicts score``; gives exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "100")

    return lambda *arguments: climassay("factcheck score", *arguments)


def write_table(path, rows=ROWS):
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "claims.csv")


COLUMNS = ("--truth", "expert", "--predicted", "model")


def test_json_has_every_figure_with_its_interval(score, table):
    code, out, err = score(table, *COLUMNS, "--scale", "climate-feedback", "--classes", 7, "--claim", "claim", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert (data["n"], data["unlabelled"], data["duplicates"]) == (6, 1, 1)
    assert (data["nei"], data["missing"]) == (1, 1)
    # Right: the first row, and the third, whose two spellings fall into one of the seven classes.
    assert data["accuracy"]["value"] == pytest.approx(2 / 6)
    assert data["without_nei"]["accuracy"]["value"] == pytest.approx(2 / 5)
    assert data["without_duplicates"]["accuracy"]["value"] == pytest.approx(2 / 5)
    assert data["without_duplicates"]["without_nei"]["accuracy"]["value"] == pytest.approx(2 / 4)
    assert data["constant"] == "incorrect"
    assert data["constant_accuracy"]["value"] == pytest.approx(2 / 6)
    for name in ("accuracy", "precision", "recall", "f1", "constant_accuracy"):
        low, high = data[name]["interval"]
        assert 0 <= low <= high <= 1
    assert sum(map(sum, data["confusion"]["counts"])) == 6
    assert data["confusion"]["predicted"][-2:] == ["not enough information", "no verdict"]


def test_predictions_that_are_not_of_the_scale(score, tmp_path):
    table = write_table(tmp_path / "t.csv", [*ROWS[:2], {**ROWS[2], "model": "follow-up"}])
    err = refused(score(table, *COLUMNS))
    assert "Row 3 predicts 'follow-up'" in err
    assert "--unknown wrong" in err
    code, out, _ = score(table, *COLUMNS, "--unknown", "wrong", "--json")
    assert (code, json.loads(out)["unknown"]) == (0, 1)
    assert "not of the scale: 1" in score(table, *COLUMNS, "--unknown", "wrong")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--truth", "judge", "--predicted", "model"),
            "no column 'judge' (--truth): it has claim, expert, model",
        ),
        ((*COLUMNS, "--scale", "stars.toml"), "There is no file at stars.toml"),
        ((*COLUMNS, "--classes", "6"), "cannot be shown in 6 classes: it can be shown in 12, 7, 5, 2"),
        (
            ("--truth", "claim", "--predicted", "model", "--scale", "binary"),
            "Row 1 has the true verdict 'Sea level is falling.', which is not of the scale binary",
        ),
    ],
)
def test_bad_input_is_one_sentence(score, table, arguments, words):
    assert words in refused(score(table, *arguments))


@pytest.mark.parametrize(
    ("content", "words"), [("expert,model\n", "has no rows"), ("expert,model\n,correct\n", "No row has a true verdict")]
)
def test_a_table_without_verdicts_is_told(score, tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content)
    assert words in refused(score(tmp_path / "t.csv", *COLUMNS))


def test_scores_by_field_have_their_own_constant_answer(score, tmp_path):
    fields = ("climate", "climate", "health", "", "health", "climate", "health")
    table = write_table(
        tmp_path / "fields.csv", [{**row, "field": field} for row, field in zip(ROWS, fields, strict=True)]
    )
    code, out, _ = score(table, *COLUMNS, "--by", "field", "--json")
    assert code == 0
    groups = json.loads(out)["by_group"]
    assert {name: scores["n"] for name, scores in groups.items()} == {"climate": 3, "health": 2, "(none)": 1}
    assert groups["climate"]["constant"] == "incorrect"
    assert groups["health"]["accuracy"]["value"] == 0
    assert (groups["climate"]["unlabelled"], groups["climate"]["duplicates"]) == (0, 1)
    assert "Scores by field" in score(table, *COLUMNS, "--by", "field", "-o", tmp_path / "s.html")[1]
    assert "Scores by field" in (tmp_path / "s.html").read_text(encoding="utf-8")
    assert "(--by)" in refused(score(table, *COLUMNS, "--by", "colour"))
