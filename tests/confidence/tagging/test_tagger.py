"""Taggers: what can be learned is learned, figures are of the mix that they name, old files are read."""

import json
from dataclasses import replace

import numpy as np
import pytest

from climassay import load_tagger
from climassay.confidence.statement import Statement
from climassay.confidence.tagging import BUNDLED_TAGGER, TAGGER_LEVELS, TaggingItem, evaluate_on_mixes, train_tagger
from climassay.confidence.tagging.tagger import make_training_texts
from climassay.errors import InputError
from climassay.learning import ClassifierSpec, NearDuplicates, PartSpec, Provenance
from climassay.learning.features import FeatureModels
from climassay.learning.text_classifier import CONSTANT
from confidence.tagging.planted import encoder, planted
from planted_model import PlantedModel
from tiny_models import save_tiny

WORDS = ClassifierSpec("words", (PartSpec(("words",)),), min_texts=2)
VECTORS = ClassifierSpec("vectors", (PartSpec(("vectors",)),))
ALL = ClassifierSpec(
    "all", (PartSpec(("words",)), PartSpec(("vectors", "context vectors"), "ordinal"), PartSpec(("context words",)))
)
SOURCE = Provenance(data="planted", data_sha256="0" * 64, licence="CC0")


def training_data(models=None, **options):
    """Planted statements, of which none is another's copy but by its words: the encoder does not see the signs."""
    items = planted(**options)
    training = make_training_texts(items, models or FeatureModels(encoder()))
    training.duplicates = NearDuplicates([one.item.text for one in items])
    return items, training


@pytest.fixture(scope="module")
def trained():
    specs = (CONSTANT, VECTORS, WORDS)
    return train_tagger(*training_data(), specs=specs, folds=4, resamples=50, provenance=SOURCE)


@pytest.fixture(scope="module")
def tagger(trained):
    return trained.classifier


def test_the_one_that_reads_the_signs_is_chosen(trained) -> None:
    _, vectors, words = trained.candidates
    assert trained.chosen is words
    assert words.evaluation.accuracy.value == 1.0
    assert vectors.evaluation.balanced_accuracy.value < 0.45
    assert trained.classifier.provenance.measured["equal_accuracy"] == 1.0
    assert trained.classifier.confusion is not None
    assert np.trace(trained.classifier.confusion) == 160


def test_tags_what_it_has_not_seen(tagger) -> None:
    texts = ["This unequivocally means that ice melts.", "There might perhaps be less snow."]
    assert tagger.predict(texts) == ["very high", "low"]
    assert tagger.predict_proba(texts).sum(axis=1) == pytest.approx(1)
    assert tagger.levels == TAGGER_LEVELS
    assert tagger.predict([]) == []


@pytest.mark.parametrize("spec", [WORDS, ALL], ids=["words", "all sources"])
def test_a_saved_tagger_says_the_same(spec, tmp_path) -> None:
    made = train_tagger(*training_data(), specs=(spec,), folds=4, resamples=20, provenance=SOURCE).classifier
    path = tmp_path / "t.safetensors"
    made.for_mix((1, 2, 3, 4)).save(path)
    again = load_tagger(path).with_models(encoder() if spec is ALL else None)
    items = [one.item for one in planted(20, seed=9)]
    assert again.mix == (1, 2, 3, 4)
    assert np.array_equal(again.predict_proba(items), made.for_mix((1, 2, 3, 4)).predict_proba(items))
    assert json.dumps(again.provenance.to_dict()) == json.dumps(made.provenance.to_dict())


def test_tags_in_the_text_or_context_are_not_read(tagger) -> None:
    plain = tagger.predict_proba(["The record shows that ocean and carbon change."])
    tagged = tagger.predict_proba(
        [
            ("The record shows that ocean and carbon change (low confidence).", "It was dry (very high confidence)."),
            "There is medium confidence that the record shows that ocean and carbon change (Smith et al., 2013).",
        ]
    )
    assert tagged[0] == pytest.approx(plain[0])
    assert tagged[1].argmax() == plain[0].argmax()
    with pytest.raises(InputError, match="Text 2 contains no words"):
        tagger.predict_proba(["Ice melts.", "12 (high confidence)"])


def test_a_context_is_parted_at_the_statement() -> None:
    item = TaggingItem.convert(("Ice melts.", "It is warm (high confidence). Ice melts. Seas rise {3.2}."))
    assert item.before == ("It is warm.",)
    assert item.after == ("Seas rise.",)
    assert item.window(1) == "It is warm. Ice melts. Seas rise."
    assert TaggingItem.convert(("Ice melts.", "It is warm.")).before == ("It is warm.",)
    statement = Statement("1", "Ice melts.", "high", "AR6 WG1", "d", "d", before=("It is warm.",), after=("A.", "B."))
    assert TaggingItem.convert(statement).read(1) == ("Ice melts.", "It is warm. A.")


def test_figures_are_of_the_mix_that_they_name() -> None:
    # Half of the low statements and all others are told; a tagger that learned where levels are equally frequent.
    truth = np.repeat([0, 1, 2, 3], [10, 20, 60, 10])
    given = np.full((100, 4), 0.1 / 3)
    given[np.arange(100), np.where(np.arange(100) < 5, 1, truth)] = 0.9
    found = evaluate_on_mixes(truth, given, range(100), shares=(0.25, 0.25, 0.25, 0.25), resamples=50)
    assert found["natural"].accuracy.value == pytest.approx(0.95)
    assert found["equal"].accuracy.value == pytest.approx((0.5 + 3) / 4)
    assert found["climatex"].accuracy.value == pytest.approx((0.5 * 50 + 250) / 300)
    assert found["climatex"].constant.value == pytest.approx(1 / 3)
    assert set(evaluate_on_mixes(truth[10:], given[10:], range(90), resamples=5)) == {"natural"}


def test_damaged_files_are_told(tagger, tmp_path) -> None:
    path = tmp_path / "t.safetensors"
    replace(tagger, classes=("high", "low", "medium", "very high")).save(path)
    with pytest.raises(InputError, match="damaged"):
        load_tagger(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        load_tagger(path)
    with pytest.raises(InputError, match="There is no confidence tagger"):
        load_tagger(tmp_path / "none.safetensors")


def test_the_bundled_tagger_says_where_it_comes_from() -> None:
    assert BUNDLED_TAGGER.stat().st_size < 1_000_000
    tagger = load_tagger()
    assert "CC BY 4.0" in tagger.provenance.licence
    figures = tagger.provenance.measured
    assert figures["n"] > 7000
    assert figures["equal_accuracy_low"] > 0.4
    assert figures["climatex_accuracy_low"] > 1 / 3
    assert tagger.residuals is not None
    assert tagger.residuals.shape == (40, 4)


@pytest.mark.model
def test_the_bundled_tagger_gives_what_it_gave_when_it_was_made() -> None:
    # Computed by the version that wrote the file; the encoder's 8 bits round differently on other processors.
    found = load_tagger().predict_proba(
        [
            "There is limited evidence that monsoon rainfall might weaken (low confidence).",
            "It is unequivocal that human influence has warmed the atmosphere, ocean and land.",
        ]
    )
    assert found == pytest.approx(np.array([[0.068, 0.601, 0.317, 0.014], [0.023, 0.261, 0.624, 0.091]]), abs=0.01)


@pytest.mark.model
def test_a_tagger_of_states_is_saved_and_asks_for_its_model(tmp_path) -> None:
    from climassay.models.local.model import LocalModel

    model = LocalModel(f"local:{save_tiny(tmp_path / 'tiny')}")
    spec = ClassifierSpec("states", (PartSpec(("mean states", "last states")),))
    made = train_tagger(
        *training_data(FeatureModels(None, model, 2), count=48), specs=(spec,), folds=3, resamples=10
    ).classifier
    made.save(tmp_path / "t.safetensors")
    items = [one.item for one in planted(8, seed=2)]
    again = load_tagger(tmp_path / "t.safetensors")
    assert again.provenance.layers == (2,)
    assert again.with_models(model=model).predict_proba(items) == pytest.approx(made.predict_proba(items))
    with pytest.raises(InputError, match="was trained on the model"):
        again.with_models(model=PlantedModel())
