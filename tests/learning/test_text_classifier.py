"""A classifier of texts: chosen on held-out groups, saved as it is, refused with other models."""

from dataclasses import replace

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.learning.calibration import reweighted
from climassay.learning.features import FeatureModels
from climassay.learning.model_file import Provenance
from climassay.learning.text_classifier import (
    BOTH,
    CONSTANT,
    WORDS,
    TextClassifier,
    TrainingTexts,
    train_text_classifier,
)
from climassay.models.contract import Encoder

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
    constant, *_ = trained.tried
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
    seen_twice = replace(WORDS, least=1)
    found = train_text_classifier(TrainingTexts(texts, labels, ("a", "b")), specs=(seen_twice,), resamples=100)
    assert found.chosen.evaluation.groups == 60
    assert found.chosen.evaluation.accuracy.value < 0.65


def test_another_mix_is_bayes_rule(trained):
    texts = ["wind over the shore"]
    plain = trained.classifier.predict_proba(texts)
    turned = trained.classifier.for_mix((1, 1, 8)).predict_proba(texts)
    assert turned == pytest.approx(reweighted(plain, trained.classifier.shares, (1, 1, 8)))


def test_a_text_without_words_and_an_unknown_label_are_named(trained):
    with pytest.raises(InputError, match="Text 2 has no words"):
        trained.classifier.predict(["sea", "12 %"])
    with pytest.raises(InputError, match="'fire' is none of"):
        trained.classifier.score(["sea"], ["fire"])
