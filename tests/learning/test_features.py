"""What is read of a text: n-grams, and the states of a language model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError, ModelError
from climassay.learning.features import FeatureModels, Vocabulary, ngrams, read_source, text_states
from planted_model import PlantedModel
from tiny_models import save_tiny


def test_ngrams_leave_numbers_out() -> None:
    assert ngrams("Sea-level rose 3.2 mm", 2) == ["sea-level", "rose", "mm", "sea-level rose", "rose mm"]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
def test_rows_of_words_have_length_one_or_none(texts) -> None:
    read = Vocabulary.learn(texts, least=1).read(texts).toarray()
    lengths = np.linalg.norm(read, axis=1)
    assert all(length == pytest.approx(1) or length == 0 for length in lengths)
    assert [length > 0 for length in lengths] == [bool(ngrams(text, 1)) for text in texts]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from climassay.models.local.model import LocalModel

    return LocalModel(f"local:{save_tiny(tmp_path_factory.mktemp('tiny'))}")


@pytest.mark.model
def test_states_of_a_text_are_its_tokens_own(model) -> None:
    texts = ["Ice melts.", "Seas rise in many places of the world."]
    found = text_states(model, texts, [1, -1])
    assert found.shape == (2, 2, 2, 32)
    assert np.isfinite(found).all()
    # A text has the same states whatever is read beside it.
    assert np.array_equal(text_states(model, texts[1:], [1, -1])[0], found[1])
    given = [(text, "") for text in texts]
    assert np.array_equal(read_source("last states", given, FeatureModels(None, model, -1)), found[:, 1, 1])
    assert np.array_equal(read_source("mean states", given, FeatureModels(None, model, 1)), found[:, 0, 0])


@pytest.mark.model
def test_the_mean_leaves_out_the_bracket_and_what_stands_before(model) -> None:
    import torch

    text = "Ice melts."
    tokens = [*model.prompts.encode("<|endoftext|>")[:1], *model.prompts.encode(text), *model.prompts.encode(" (")]
    with torch.inference_mode():
        states = model.network.model(torch.tensor([tokens]), output_hidden_states=True).hidden_states[2][0].numpy()
    last = len(model.prompts.encode(" ("))
    found = text_states(model, [text], [2])[0, 0]
    assert found[0] == pytest.approx(states[1:-last].mean(axis=0), abs=1e-5)
    assert found[1] == pytest.approx(states[-1], abs=1e-5)


@pytest.mark.model
def test_a_model_without_states_or_without_the_layer_is_refused(model) -> None:
    with pytest.raises(InputError, match="give a local: model"):
        text_states(PlantedModel(), ["x"], [1])
    with pytest.raises(ModelError, match="has no layer 9"):
        text_states(model, ["x"], [9])
