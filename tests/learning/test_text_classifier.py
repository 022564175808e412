"""What is read of a text, classifiers learned from it, and their files."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from climassay.errors import InputError, ModelError
from climassay.learning import ModelFormat, Provenance, TextClassifier, check_array, reweight
from climassay.learning.features import FeatureModels, Vocabulary, compute_block, ngrams, text_states
from climassay.learning.text_classifier import BOTH, CONSTANT, WORDS, TrainingTexts, train_text_classifier
from climassay.models import Encoder
from planted_model import PlantedModel
from tiny_models import save_tiny

TOPICS = {"sea": "waves tides salt shore depth", "air": "wind cloud storm gust haze", "ice": "snow frost glacier floe"}


class WordEncoder:
    """A vector of a text is the mean of fixed random vectors of its words."""

    name, fingerprint, width = "words", "f" * 64, 32

    def encode(self, texts, *, on_progress=None):
        if on_progress is not None:
            on_progress(len(texts))
        rows = [
            np.mean([np.random.default_rng(hash_of(word)).normal(size=32) for word in text.split()], axis=0)
            for text in texts
        ]
        found = np.array(rows, dtype=np.float32).reshape(len(texts), 32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def hash_of(word):
    return int.from_bytes(word.encode()[:8].ljust(8), "big")


def labelled(count=120):
    generator = np.random.default_rng(0)
    names = list(TOPICS)
    labels = [names[place % 3] for place in range(count)]
    texts = [
        " ".join(generator.choice(TOPICS[label].split(), 3)) + f" note{place}" for place, label in enumerate(labels)
    ]
    return texts, labels


@pytest.fixture(scope="module")
def trained():
    texts, labels = labelled()
    assert isinstance(WordEncoder(), Encoder)
    training = TrainingTexts(
        texts, labels, list(TOPICS), groups=range(len(texts)), models=FeatureModels(WordEncoder())
    )  # fmt: skip
    specs, source = (CONSTANT, WORDS, BOTH), Provenance(data="topics")
    return train_text_classifier(training, specs=specs, folds=4, resamples=200, provenance=source)


def test_what_can_be_learned_is_learned_and_the_constant_stands_beside_it(trained):
    constant, *_ = trained.candidates
    assert constant.evaluation.accuracy.value <= 1 / 3
    assert trained.chosen.evaluation.accuracy.interval.low > 0.9
    assert trained.classifier.provenance.measured["accuracy"] == trained.chosen.evaluation.accuracy.value
    assert trained.classifier.predict(["tides and waves", "a storm gust"]) == ["sea", "air"]


def test_a_saved_classifier_says_the_same(trained, tmp_path):
    trained.classifier.save(tmp_path / "topics.safetensors")
    again = TextClassifier.load(tmp_path / "topics.safetensors").with_models(WordEncoder())
    texts = ["salt of the shore", "frost on a glacier"]
    assert (again.predict_proba(texts) == trained.classifier.predict_proba(texts)).all()
    assert again.provenance == trained.classifier.provenance
    assert again.score(texts, ["sea", "ice"]).accuracy.value == 1.0


def test_another_encoder_is_refused(trained):
    other = WordEncoder()
    other.fingerprint = "0" * 64
    with pytest.raises(InputError, match="was trained on the encoder words"):
        trained.classifier.with_models(other)


def test_random_labels_are_not_learnable():
    texts, labels = labelled(90)
    shuffled = np.random.default_rng(3).permutation(labels).tolist()
    found = train_text_classifier(
        TrainingTexts(texts, shuffled, list(TOPICS), groups=range(90)), specs=(WORDS,), resamples=200
    )
    assert found.chosen.evaluation.accuracy.interval.low < 1 / 3


def test_copies_do_not_leak_into_the_test():
    # Each text twice with a label of its own: only who has seen the copy can know it.
    generator = np.random.default_rng(0)
    texts = [f"zebra{place} yak{place}" for place in range(60)] * 2
    labels = generator.choice(["a", "b"], 60).tolist() * 2
    seen_twice = replace(WORDS, min_texts=1)
    found = train_text_classifier(TrainingTexts(texts, labels, ("a", "b")), specs=(seen_twice,), resamples=100)
    assert found.chosen.evaluation.groups == 60
    assert found.chosen.evaluation.accuracy.value < 0.65


def test_another_mix_is_bayes_rule(trained):
    texts = ["wind over the shore"]
    plain = trained.classifier.predict_proba(texts)
    turned = trained.classifier.for_mix((1, 1, 8)).predict_proba(texts)
    assert turned == pytest.approx(reweight(plain, trained.classifier.shares, (1, 1, 8)))


def test_a_text_without_words_and_an_unknown_label_are_named(trained):
    with pytest.raises(InputError, match="Text 2 contains no words"):
        trained.classifier.predict(["sea", "12 %"])
    with pytest.raises(InputError, match="'fire' is not one of"):
        trained.classifier.score(["sea"], ["fire"])


def test_ngrams_leave_numbers_out() -> None:
    assert ngrams("Sea-level rose 3.2 mm", 2) == ["sea-level", "rose", "mm", "sea-level rose", "rose mm"]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6))
def test_rows_of_words_have_length_one_or_none(texts) -> None:
    read = Vocabulary.fit(texts, min_texts=1).transform(texts).toarray()
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
    near = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)  # Batches change the last digits.
    near(text_states(model, texts[1:], [1, -1])[0], found[1])
    given = [(text, "") for text in texts]
    near(compute_block("last states", given, FeatureModels(None, model, -1)), found[:, 1, 1])
    near(compute_block("mean states", given, FeatureModels(None, model, 1)), found[:, 0, 0])


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


KIND = ModelFormat("climassay-thing", 2, "thing", "climassay thing train")


def both(facts, arrays):
    return facts, arrays


@given(st.floats(allow_nan=False, allow_infinity=False), st.lists(st.integers(-(2**31), 2**31), max_size=20))
def test_everything_comes_back_as_the_same_numbers(tmp_path_factory, number, integers):
    path = tmp_path_factory.mktemp("things") / "thing.safetensors"
    weights = np.array([number, *integers], dtype=np.float64)
    KIND.save(path, {"weights": weights[::-1]}, {"number": number, "words": ["ä", None, {"a": integers}]})
    facts, arrays = KIND.load(path, both)
    assert arrays["weights"].tobytes() == np.ascontiguousarray(weights[::-1]).tobytes()
    assert facts["number"] == number
    assert facts["words"] == ["ä", None, {"a": integers}]
    assert [file.name for file in path.parent.iterdir()] == ["thing.safetensors"]


def test_what_is_no_such_file_is_said(tmp_path):
    with pytest.raises(InputError, match=r"There is no thing .*: train one with climassay thing train"):
        KIND.load(tmp_path / "none", both)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="is damaged"):
        KIND.load(tmp_path / "text", both)
    save_file({"a": np.zeros(2)}, tmp_path / "foreign")
    with pytest.raises(InputError, match="no thing of climassay"):
        KIND.load(tmp_path / "foreign", both)
    save_file({"a": np.zeros(2)}, tmp_path / "newer", {"format": json.dumps("climassay-thing"), "version": "3"})
    with pytest.raises(InputError, match="format version 3"):
        KIND.load(tmp_path / "newer", both)
    save_file({"a": np.zeros(2)}, tmp_path / "odd", {"format": json.dumps("climassay-thing"), "version": "{"})
    with pytest.raises(InputError, match="is damaged"):
        KIND.load(tmp_path / "odd", both)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match="x cannot be written"):
        KIND.save(tmp_path / "file" / "x", {}, {})
    KIND.save(tmp_path / "x", {"a": np.ones(1)}, {})
    with pytest.raises(TypeError):
        KIND.save(tmp_path / "x", {"a": np.zeros(1)}, {"bad": object()})
    assert KIND.load(tmp_path / "x", both)[1]["a"] == 1


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 2)), np.zeros(3), np.zeros(2, dtype=np.float32), np.array([1.0, np.nan]), np.array([1.0, np.inf])],
    ids=["rank", "length", "type", "nan", "infinity"],
)
def test_arrays_are_checked(array):
    with pytest.raises(ValueError, match="weights"):
        check_array("weights", array, (2,))
