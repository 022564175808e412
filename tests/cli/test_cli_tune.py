"""``climassay tune`` from collections and question files to adapters that other commands load."""

import json
from pathlib import Path

import pytest

from command_line import done, json_of, refused
from tuning_parts import save_shaken

BOOKS = {
    "ice": "Glaciers lose mass where summers warm, and the ice of the poles answers for centuries.",
    "sea": "Currents carry heat towards the poles, and where salt water sinks the deep sea is renewed.",
    "air": "Winds blow from high to low pressure, and the turning of the planet bends their way.",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, three books and questions on one of them."""
    place = tmp_path_factory.mktemp("tune")
    config = place / "model" / "config.json"
    save_shaken(place / "model")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"max_position_embeddings": 1024}))
    for name, sentence in BOOKS.items():
        text = " ".join(f"Number {number}: {sentence}" for number in range(8))
        (place / f"{name}.md").write_text(f"# The book of {name}\n\n{text}\n", encoding="utf-8")
    rows = [
        {"id": f"q{number}", "kind": kind, "question": question, "answer": answer, "document": "ice", **more}
        for number, (kind, question, answer, more) in enumerate(
            [
                ("mcq", "What warms?", "summers", {"options": ["summers", "rocks"]}),
                ("freeform", "What do glaciers lose?", "They lose mass.", {}),
                ("cloze", "The <MASK> of the poles answers.", "ice", {}),
                ("mcq", "What is lost?", "mass", {"options": ["time", "mass"]}),
                ("cloze", "Glaciers lose <MASK>.", "mass", {}),
            ]
        )
    ]
    (place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return place


@pytest.fixture
def climassay(place: Path, monkeypatch: pytest.MonkeyPatch, climassay):
    monkeypatch.setenv("CLIMASSAY_WORKSPACE", str(place / "workspace"))
    monkeypatch.setenv("CLIMASSAY_THREADS", "1")
    return lambda *arguments: climassay(*arguments)


def quick(place: Path, name: str) -> list[str]:
    model = f"local:{place / 'model'}"
    return [
        "--model",
        model,
        "--rank",
        "2",
        "--learning-rate",
        "1e-2",
        "--dtype",
        "float32",
        "--output",
        name,
        "--max-length",
    ]


@pytest.fixture
def collection(place: Path, climassay) -> str:
    done(climassay("corpus", "add", "books", *(place / f"{name}.md" for name in BOOKS)))
    return "books"


def test_pretraining_leaves_the_books_asked_about_alone(place: Path, climassay, collection: str) -> None:
    arguments = ("tune", "pretrain", collection, "--questions", place / "questions.jsonl")
    quickly = [*quick(place, "read"), 64, "--epochs", 4]
    result = json_of(climassay(*arguments, "--validation-documents", "air.md", *quickly, "--json"))
    assert result["train"]["sources"] == ["The book of sea"]
    assert result["validation"]["sources"] == ["The book of air"]
    assert result["loss"] < result["loss_before"]
    assert result["warnings"] == []
    assert Path(result["folder"]) == place / "workspace" / "adapters" / "read"

    code, out, err = climassay(*arguments, "--validate-on", "source", *[*quick(place, "leaky"), 64])
    assert code == 0, err
    assert "Leakage" in err
    assert "leaky" in out

    assert "nothing to validate on" in refused(climassay(*arguments, *quickly), alone=False)
    both = ("--source", collection, "--validation", collection)
    told = climassay("tune pretrain", collection, *both, *quickly)
    assert "is in the training documents" in refused(told, alone=False)

    code, out, err = climassay("tune", "list", "--json")
    assert [one["name"] for one in json.loads(out)] == ["leaky", "read"]
    code, out, err = climassay("tune", "show", "leaky")
    assert code == 0
    assert "kept" in out
    assert "Leakage" in err
    assert f"+adapter={place / 'workspace' / 'adapters' / 'leaky'}" in err


def test_finetuning_on_all_kinds_and_again(place: Path, climassay) -> None:
    arguments = (
        "tune",
        "finetune",
        place / "questions.jsonl",
        "--validation-share",
        "0.4",
        *quick(place, "tuned"),
        512,
    )
    out = done(climassay(*arguments, "--epochs", 3))
    assert "3 examples of questions.jsonl" in out
    code, first, _ = climassay("tune", "show", "tuned", "--json")
    code, again, err = climassay(*arguments, "--epochs", 3, "--json")
    assert (code, json.loads(again)) == (0, json.loads(first))
    assert json.loads(first)["train"]["cut"] == 0

    err = refused(climassay(*arguments, "--epochs", 2), alone=False)
    assert "holds an adapter trained from other data" in err
    done(climassay(*arguments, "--epochs", 2, "--replace", "--search", "--grid", "lr=1e-3,1e-2"))
    code, out, _ = climassay("tune", "show", "tuned")
    assert "Trials, best first" in out

    model = f"local:{place / 'model'}+adapter={place / 'workspace' / 'adapters' / 'tuned'}"
    out = done(climassay("evaluate", "mcq", place / "questions.jsonl", "--model", model, "--json"))
    assert json.loads(out)["n"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "rank=8"], "add --search"),
        (["--search", "--grid", "colour=red"], "'colour=red' is not understood"),
        (["--preset", "mistral-7b-pretrain"], "is for climassay tune pretrain, not for finetune"),
        (["--output", "../elsewhere"], "An adapter cannot be called"),
        (["--model", "openai:gpt-4o"], "only local: models can be tuned"),
        (["--validation", "QUESTIONS"], "examples are in the training data"),
        (["--max-length", "9000"], "lower the maximum length"),
    ],
)
def test_what_cannot_be_is_one_sentence(place: Path, climassay, arguments: list[str], message: str) -> None:
    given = [str(place / "questions.jsonl") if one == "QUESTIONS" else one for one in arguments]
    usual = ["--model", f"local:{place / 'model'}", "--output", "x", "--dtype", "float32"]
    assert message in refused(climassay("tune", "finetune", place / "questions.jsonl", *usual, *given), alone=False)


def test_presets_are_listed(climassay) -> None:
    out = done(climassay("tune", "presets", "--json"))
    assert {"mistral-7b-pretrain", "smollm2-cpu-finetune"} <= {preset["name"] for preset in json.loads(out)}
    out = done(climassay("tune", "presets"))
    assert "5e-05" in out


def test_an_adapter_that_is_not_there(climassay) -> None:
    assert "There is no finished adapter 'nothing'" in refused(climassay("tune", "show", "nothing"))
