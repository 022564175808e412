"""``climassay factcheck fallacies``: found, scored, trained and applied from the terminal."""

import json

import pytest

from climassay.factcheck import FALLACIES
from command_line import done, json_of, refused

PLOT = "Scientists secretly conspire with the government to fake the data, and the emails of Climategate prove it."
SIGNS = ["ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi", "lynx"]


@pytest.fixture
def climassay(monkeypatch, climassay):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: climassay("factcheck fallacies", *arguments)


def table(folder, rows, name="t.csv"):
    file = folder / name
    file.write_text("text,fallacy\n" + "".join(f'"{text}",{label}\n' for text, label in rows), encoding="utf-8")
    return file


def test_one_text(climassay):
    out = done(climassay(PLOT))
    assert "conspiracy theory" in out
    assert FALLACIES["conspiracy theory"] in " ".join(out.split())


def test_a_table_with_known_fallacies_is_scored(climassay, tmp_path):
    file = table(tmp_path, [(PLOT, "conspiracy theory"), ("It snowed at my house, so much for warming.", "anecdote")])
    told = json_of(climassay(file, "--text", "text", "--truth", "fallacy", "--json"))
    assert [row["name"] for row in told["texts"]] == [row["truth"] for row in told["texts"]]
    assert told["accuracy"]["value"] == told["macro_f1"]["value"] == 1.0
    assert told["constant"]["value"] == 0.5
    assert {one["label"] for one in told["per_class"]} == set(FALLACIES)
    out = done(climassay(file, "--text", "text", "--truth", "fallacy"))
    assert "macro-F1" in out


def test_trained_evaluated_and_applied(climassay, tmp_path):
    rows = [
        (f"The {sign} told number {3 * n} of {n} so.", name)
        for name, sign in zip(FALLACIES, SIGNS, strict=True)
        for n in range(6)
    ]
    labels, model = table(tmp_path, rows), tmp_path / "f.safetensors"
    told = json_of(climassay("train", labels, "-o", model, "--folds", 3, "--licence", "CC0", "--json"))
    assert told["classifier"]["licence"] == "CC0"
    assert told["candidates"][0]["name"] == "constant"
    fresh = table(tmp_path, [("A lynx was seen.", "slothful induction"), rows[0]], "fresh.csv")
    out = done(climassay("evaluate", model, fresh, "--exclude", labels, "--json"))
    assert json.loads(out)["left_out"] == 1
    assert json.loads(out)["n"] == 1
    whole = json_of(climassay("evaluate", model, labels, "--include-trained", "--json"))
    assert (whole["left_out"], whole["n"]) == (0, len(rows))
    out = done(climassay("apply", model, fresh, "--json"))
    assert len(json.loads(out)["texts"]) == 2


def test_claims_come_with_their_groups(climassay, tmp_path):
    file = tmp_path / "c.csv"
    file.write_text("text,cards_claim\nIt has not warmed since 1998: a pause.,1.4\nThe sun does it.,2.1.4\nNo.,5\n")
    out = done(climassay("evaluate", "claims", file, "--json"))
    told = json.loads(out)["scores"]
    assert (told["claims"]["n"], told["groups"]["n"]) == (2, 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("none.csv",), "no file"),
        (("{file}",), "--text COLUMN"),
        (("{file}", "--text", "missing"), "has no column"),
        (("evaluate", "nothing.safetensors", "{file}"), "no classifier of fallacies"),
    ],
)
def test_bad_input_is_told_in_a_sentence(climassay, tmp_path, given, said):
    file = table(tmp_path, [(PLOT, "anecdote")])
    assert said in refused(climassay(*(part.format(file=file) for part in given)))
