import json

import pytest

from climassay.confidence.tagging import train_tagger
from climassay.confidence.trends import read_predictions
from climassay.learning import ClassifierSpec, PartSpec, Provenance
from command_line import done, refused
from confidence.tagging.planted import SIGNS, planted, write_climatex, write_extracted

TEXT = "The record unequivocally shows that carbon and ocean change."


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """Reads words only, so that no encoder is loaded."""
    path = tmp_path_factory.mktemp("tagger") / "t.safetensors"
    specs, source = (ClassifierSpec("words", (PartSpec(("words",)),)),), Provenance(data="planted", licence="CC0")
    train_tagger(planted(), specs=specs, folds=4, resamples=20, provenance=source).classifier.save(path)
    return path


@pytest.mark.parametrize("more", [(), ("--context", "[/bold]")])
def test_brackets_in_a_statement_are_no_markup(monkeypatch, climassay, tagger, more) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = "The record [bold] shows that carbon and [/red] ocean change [IPCC, 2021]."
    out = done(climassay("confidence tag apply", tagger, text, *more))
    assert text in " ".join(out.split())


def test_a_table_of_statements(climassay, tmp_path, tagger) -> None:
    file = tmp_path / "s.csv"
    file.write_text(
        "claim,around\n" + "".join(f"The record {sign} that ice and snow change.,It is so.\n" for sign in SIGNS),
        encoding="utf-8",
    )
    output = tmp_path / "out.jsonl"
    out = done(climassay(
        "confidence tag apply", tagger, file, "--text", "claim", "--context-column", "around", "--mix", "equal",
        "-o", output, "--json",
    ))  # fmt: skip
    assert [row["tag"] for row in json.loads(out)["statements"]] == ["low", "medium", "high", "very high"]
    assert [json.loads(line)["tag"] for line in output.read_text().splitlines()] == [
        "low",
        "medium",
        "high",
        "very high",
    ]


def extracted(folder, tags=("low", "medium", "high", "very high")):
    path = folder / "statements.jsonl"
    pairs = [(one.item.text, tags[number % len(tags)]) for number, one in enumerate(planted(80, seed=5))]
    return path, write_extracted(pairs, path)


def test_a_file_of_extract_needs_no_column(climassay, tmp_path, tagger) -> None:
    file, statements = extracted(tmp_path)
    output = tmp_path / "tagged.jsonl"
    done(climassay("confidence tag apply", tagger, file, "-o", output))
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == [one.id for one in statements]
    assert [row["authors"] for row in rows] == [one.tag for one in statements]
    assert sum(row["tag"] == row["authors"] for row in rows) > 70
    assert set(read_predictions(output).probabilities) == {one.id for one in statements}


def test_held_out_answers_are_written_for_the_report(monkeypatch, climassay, tmp_path) -> None:
    file, statements = extracted(tmp_path)
    output = tmp_path / "held-out.jsonl"
    monkeypatch.setattr("climassay.models.encoders.load_encoder", lambda: None)
    out = done(
        climassay("confidence tag evaluate", file, "--method", "words", "--folds", 4, "--predictions", output, "--json")
    )
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == [one.id for one in statements]
    right = sum(row["tag"] == row["authors"] for row in rows) / len(rows)
    assert right == pytest.approx(json.loads(out)["scores"][0]["natural"]["accuracy"]["value"])


def test_train_and_evaluate(monkeypatch, climassay, tmp_path, tagger) -> None:
    file, output = write_climatex(tmp_path / "c.tsv"), tmp_path / "new.safetensors"
    monkeypatch.setattr("climassay.models.encoders.load_encoder", lambda: None)
    code, out, err = climassay("confidence tag train", file, "-o", output, "--method", "words", "--folds", 3)
    assert code == 0, err
    assert "Chosen: words" in out
    assert "No context" in err
    code, out, _ = climassay("confidence tag apply", output, TEXT, "--json")
    assert json.loads(out)["statements"][0]["tag"] == "very high"
    out = done(climassay("confidence tag evaluate", tagger, file, "--json"))
    scores = json.loads(out)["scores"][0]
    assert {mix: scores[mix]["mix"] for mix in ("natural", "equal", "climatex")} == {
        "natural": None, "equal": [1, 1, 1, 1], "climatex": [50, 100, 100, 50],
    }  # fmt: skip
    assert scores["natural"]["accuracy"]["value"] > 0.95
    assert "was trained on c.tsv" in refused(climassay("confidence tag evaluate", output, file))
    more = tmp_path / "more.tsv"
    new = file.read_text().splitlines()[1].replace("\tThe record", "\tAnother record")
    more.write_text(f"{file.read_text()}{new}\n", encoding="utf-8")
    out = done(climassay("confidence tag evaluate", output, more, "--json"))
    assert json.loads(out)["statements"] == 1
    assert json.loads(out)["left_out"] > 50


def test_published_figures_stand_by_those_on_their_mix_only(monkeypatch, climassay, tmp_path, tagger) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    file, _ = extracted(tmp_path)
    out = done(climassay("confidence tag evaluate", tagger, file))
    natural, equal, climatex = (out.index(words) for words in ("as frequent as in", "equally frequent", "test mix"))
    assert natural < equal < climatex < out.index("published: GPT-4")
    # Without a statement of very high confidence nothing can be said of mixes that have such statements.
    few, _ = extracted(tmp_path, ("low", "medium", "high"))
    out = done(climassay("confidence tag evaluate", tagger, few))
    assert "published" not in out
    assert "Other mixes need statements of each level" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["  "], "nothing to tag"),
        (["Seas rise.", "--mix", "many"], "--mix is natural"),
        (["none.csv", "--text", "claim"], "no file"),
        (["evaluate", "none.tsv"], "none.tsv"),
        (["evaluate", "bundled"], "evaluate bundled LABELS"),
        (["train", "none.tsv", "-o", "no/folder/t"], "folder"),
    ],
    ids=["blank", "mix", "no table", "no file", "no labels", "no folder"],
)
def test_bad_input_is_one_sentence(monkeypatch, climassay, tmp_path, tagger, arguments, said) -> None:
    monkeypatch.chdir(tmp_path)
    more = [] if arguments[0] in ("evaluate", "train") else ["apply", tagger]
    assert said in refused(climassay("confidence tag", *more, *arguments))


def test_a_file_needs_its_column(climassay, tmp_path, tagger) -> None:
    file = tmp_path / "s.csv"
    file.write_text('claim\nSeas rise.\n""\n', encoding="utf-8")
    for arguments, said in (
        ([], "name the column"),
        (["--text", "text"], "no column 'text'"),
        (["--text", "claim"], "Row 2"),
    ):
        assert said in refused(climassay("confidence tag apply", tagger, file, *arguments))
