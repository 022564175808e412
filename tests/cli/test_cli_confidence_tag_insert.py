import json

import pytest

from command_line import done, json_of, refused
from confidence.tagging.planted import write_extracted
from confidence.tagging.test_insertion import labelled
from planted_model import PlantedModel
from tiny_models import save_tiny


@pytest.fixture
def known(tmp_path):
    """Statements of known level, as ``confidence extract`` writes them."""
    path = tmp_path / "known.jsonl"
    write_extracted([(one.item.text, one.tag) for one in labelled()], path)
    return path


def test_statements_are_inserted_among_those_of_known_level(monkeypatch, climassay, tmp_path, known):
    monkeypatch.setattr("climassay.models.load_model", lambda _: PlantedModel(noise=0.02))
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    new = labelled(12, start=500)
    file, output = tmp_path / "new.csv", tmp_path / "tagged.jsonl"
    file.write_text("id,claim\n" + "".join(f"{n},{one.item.text}\n" for n, one in enumerate(new)), encoding="utf-8")
    arguments = ("confidence", "tag", "insert", file, "--text", "claim", "--labelled", known, "--layer", -1)
    found = json_of(climassay(*arguments, "--train-items", 48, "-o", output, "--json"))
    assert sum(row["tag"] == one.tag for row, one in zip(found["statements"], new, strict=True)) >= 10
    assert found["probe"]["pair_accuracy"]["value"] > 0.9
    assert [json.loads(line) for line in output.read_text().splitlines()] == found["statements"]
    out = done(climassay(*arguments, "--train-items", 48, "--probe", "pointwise"))
    assert "pairs of held-out statements" in " ".join(out.split())


def test_a_model_behind_a_server_shows_no_states(monkeypatch, climassay, known):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert "states of openai:any cannot be read" in refused(
        climassay("confidence tag insert", "Seas rise.", "--labelled", known, "--model", "openai:any")
    )


@pytest.mark.model
def test_a_pointwise_probe_on_states_is_trained_and_used(monkeypatch, climassay, tmp_path, known):
    model = f"local:{save_tiny(tmp_path / 'tiny')}"
    output = tmp_path / "states.safetensors"
    monkeypatch.setattr("climassay.models.encoders.load_encoder", lambda: None)
    done(climassay(
        "confidence tag train", known, "-o", output, "--method", "mean states", "--model", model, "--layer", 1,
        "--folds", 3,
    ))  # fmt: skip
    out = done(climassay("confidence tag apply", output, labelled()[3].item.text, "--json"))
    row = json.loads(out)["statements"][0]
    assert sum(row["probabilities"].values()) == pytest.approx(1)
    assert json.loads(out)["tagger"]["sources"] == ["mean states"]
