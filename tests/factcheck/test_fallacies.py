"""Classification of fallacies and contrarian claims, applied to refuted claims only."""

from dataclasses import replace

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.factcheck import FALLACIES, as_data, factcheck_page, find_fallacies, from_data, load_fallacy_classifier
from climassay.factcheck.fallacies import SUBJECTS, add_fallacy, score_fallacies, train_fallacies
from climassay.factcheck.results.page import fallacy_note
from climassay.factcheck.scales import ACCURACY, CLIMATE_FEEDBACK
from climassay.factcheck.transcript import Fallacy
from factcheck_transcripts import checked

PLOT = "Scientists secretly conspire with the government to fake the data, and the emails of Climategate prove it."
ANIMALS = ("ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi", "lynx")
SIGNS = dict(zip(FALLACIES, ANIMALS, strict=True))


class WordEncoder:
    """A vector of a text is the sum of fixed random vectors of its words."""

    name, fingerprint, width = "words", "f" * 64, 24

    def encode(self, texts, *, on_progress=None):
        rows = [
            sum(np.random.default_rng(list(word.encode())).normal(size=24) for word in text.split()) for text in texts
        ]
        found = np.array(rows, dtype=np.float32).reshape(len(texts), 24)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def labelled_texts(count=8):
    """Texts that name the sign of their fallacy, and one whose label is no fallacy."""
    rows = [(f"{sign} w{3 * n} w{3 * n + 1} w{3 * n + 2}", name) for name, sign in SIGNS.items() for n in range(count)]
    return tuple(zip(*rows, ("nothing known", "unheard of"), strict=True))


@pytest.fixture(scope="module")
def trained():
    return train_fallacies(*labelled_texts(), SUBJECTS["fallacies"], encoder=WordEncoder(), folds=4)


def test_a_trained_classifier_beats_the_constant_and_is_saved_whole(trained, tmp_path):
    constant = trained.candidates[0].evaluation
    assert constant.accuracy.value < 0.2 < 0.8 < trained.chosen.evaluation.accuracy.value
    assert trained.chosen.evaluation.n == 8 * len(FALLACIES)
    assert trained.classifier.threshold.precision.interval.low >= 0.8
    trained.classifier.save(tmp_path / "f.safetensors")
    loaded = load_fallacy_classifier(tmp_path / "f.safetensors").with_models(WordEncoder())
    assert loaded.threshold == trained.classifier.threshold
    [found] = find_fallacies([f"{SIGNS['misrepresentation']} w1 w5"], classifier=loaded)
    assert (found.name, found.meaning) == ("misrepresentation", FALLACIES["misrepresentation"])
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert score_fallacies(loaded, *labelled_texts(2))["fallacies"].accuracy.value > 0.8


def test_training_needs_texts_of_every_class():
    with pytest.raises(InputError, match="anecdote"):
        train_fallacies(["It is."], ["ad hominem"], SUBJECTS["fallacies"], encoder=WordEncoder())


def test_a_classifier_without_subject_is_refused(trained, tmp_path):
    other = replace(trained.classifier, provenance=replace(trained.classifier.provenance, settings={}))
    other.save(tmp_path / "other.safetensors")
    with pytest.raises(InputError, match="train it again"):
        load_fallacy_classifier(tmp_path / "other.safetensors")


def test_codes_of_claims_are_read_by_their_first_two_numbers():
    claims = SUBJECTS["claims"]
    assert [claims.label(code) for code in ("2.1.4", "5.2", " 5.3.1 ", "2", "2.4", "")] == [
        "2.1", "5.2", "5.3", None, None, None,
    ]  # fmt: skip
    assert SUBJECTS["fallacies"].label("Cherry  Picking") == "cherry picking"


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_bundled_classifiers_have_their_provenance(name):
    loaded = load_fallacy_classifier(name)
    assert loaded.classes == tuple(loaded.subject.meanings)
    source, threshold = loaded.provenance, loaded.threshold
    assert source.licence == "MIT"
    assert source.measured["macro_f1_low"] > 0.5 > 5 * source.measured["constant_high"] / 2
    assert threshold.precision.interval.low >= threshold.wanted == 0.8


def test_the_bundled_classifier_knows_a_conspiracy_and_a_claim():
    [found] = find_fallacies([PLOT])
    assert found.likely
    assert found.name == "conspiracy theory"
    [claim] = find_fallacies(["It has not warmed since 1998: there is a pause."], subject="claims")
    assert claim.name == "1.4"


def test_only_what_is_refuted_is_told_to_mislead():
    refuted = add_fallacy(checked(PLOT, ({"IPCC": "incorrect"}, "incorrect")), CLIMATE_FEEDBACK)
    assert refuted.fallacy.name == "conspiracy theory"
    assert refuted.fallacy.precision == load_fallacy_classifier().threshold.precision.value >= 0.8
    for label in ("correct", CLIMATE_FEEDBACK.nei, None):
        assert add_fallacy(checked(PLOT, ({"IPCC": label}, label)), CLIMATE_FEEDBACK).fallacy is None
    unlikely = checked("Seven of nine.", ({"IPCC": "incorrect"}, "incorrect"))
    assert add_fallacy(unlikely, CLIMATE_FEEDBACK).fallacy is None


def test_the_page_tells_how_a_refuted_claim_misleads_and_nothing_of_others():
    told = Fallacy("single cause", FALLACIES["single cause"], 0.87, 0.8)
    refuted = checked("The sun.", ({"A": "false"}, "false"), scale=ACCURACY, fallacy=told)
    page = factcheck_page(refuted)
    for words in ("How it may mislead", told.definition, "87%", fallacy_note(told).split(".")[0]):
        assert words.replace("'", "&#39;") in page
    assert from_data(as_data(refuted)).fallacy == told
    assert "How it may mislead" not in factcheck_page(replace(refuted, fallacy=None))
    # Whatever a file says: a claim that is rated right is not told to mislead.
    right = checked("The sun.", ({"A": "true"}, "true"), scale=ACCURACY, fallacy=told)
    assert "How it may mislead" not in factcheck_page(right)
