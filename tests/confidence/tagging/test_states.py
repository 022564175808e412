import numpy as np
import pytest

from climassay.confidence.tagging import (
    Lesson,
    PartSpec,
    Readers,
    TaggerSpec,
    compare,
    finish,
    load_tagger,
    save_tagger,
)
from climassay.confidence.tagging.states import read_layers, read_states
from climassay.errors import InputError, ModelError
from climassay.models.local.model import LocalModel
from confidence.tagging.planted import planted
from planted_model import PlantedModel
from tiny_models import save_tiny

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return LocalModel(f"local:{save_tiny(tmp_path_factory.mktemp('tiny'))}")


def test_states_of_a_statement_are_its_tokens_own(model) -> None:
    texts = ["Ice melts.", "Seas rise in many places of the world."]
    found = read_layers(model, texts, [1, -1])
    assert found.shape == (2, 2, 2, 32)
    assert np.isfinite(found).all()
    # A text has the same states whatever is read beside it.
    assert np.array_equal(read_layers(model, texts[1:], [1, -1])[0], found[1])
    assert np.array_equal(read_states(model, texts, -1, "last"), found[:, 1, 1])
    assert np.array_equal(read_states(model, texts, 1, "mean"), found[:, 0, 0])


def test_the_mean_leaves_out_the_bracket_and_what_stands_before(model) -> None:
    import torch

    text = "Ice melts."
    tokens = [*model.prompts.encode("<|endoftext|>")[:1], *model.prompts.encode(text), *model.prompts.encode(" (")]
    with torch.inference_mode():
        states = model.network.model(torch.tensor([tokens]), output_hidden_states=True).hidden_states[2][0].numpy()
    last = len(model.prompts.encode(" ("))
    found = read_layers(model, [text], [2])[0, 0]
    assert found[0] == pytest.approx(states[1:-last].mean(axis=0), abs=1e-5)
    assert found[1] == pytest.approx(states[-1], abs=1e-5)


def test_a_tagger_of_states_is_saved_and_asks_for_its_model(model, tmp_path) -> None:
    lesson = Lesson(planted(48), Readers(model=model, layer=2))
    spec = TaggerSpec("states", (PartSpec(("mean states", "last states")),))
    made = finish(compare((spec,), lesson, count=3, resamples=10)[0], lesson, data="p", data_sha256="0", licence="CC0")
    path = tmp_path / "t.safetensors"
    save_tagger(made, path)
    items = [one.item for one in planted(8, seed=2)]
    again = load_tagger(path)
    assert again.origins.layer == 2
    assert again.with_readers(model=model).probabilities(items) == pytest.approx(made.probabilities(items))
    with pytest.raises(InputError, match="another model"):
        again.with_readers(model=PlantedModel())


def test_refusals(model) -> None:
    with pytest.raises(InputError, match="give a local: model"):
        read_states(PlantedModel(), ["x"], 1, "mean")
    with pytest.raises(ModelError, match="has no layer 9"):
        read_states(model, ["x"], 9, "mean")
