import numpy as np
import pytest

from climassay.errors import InputError, ModelError
from climassay.metrics import phrase_similarities, phrase_similarity, phrases
from climassay.metrics.cloze import terms

OXIDATION = (
    "Aqueous-phase oxidation of <mask> to form sulfuric acid in cloud droplets is a crucial process that contributes "
    "significantly to global sulfate mass and has long been recognized as important for aerosols and climate."
)
PARCEL = (
    "The rate of change in the air parcel’s moist static energy due to <mask> is determined by the difference between "
    "the moist static energies of the environment and the cloud air parcel."
)


class Letters:
    """Vectors of letter counts, which a reader can work out; keeps what it was asked to encode."""

    name, fingerprint, width = "test:letters", "0" * 64, 27

    def __init__(self):
        self.asked = []

    def encode(self, texts, *, role="passage", on_progress=None):
        self.asked.append(list(texts))
        counts = [[text.count(letter) for letter in " abcdefghijklmnopqrstuvwxyz"] for text in texts]
        vectors = np.array(counts, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_four_words_on_each_side_in_the_papers_examples():
    assert phrases(OXIDATION, "SO<sub>2</sub>", "Sulfur") == (
        "aqueous-phase oxidation of so2 to form sulfuric acid",
        "aqueous-phase oxidation of sulfur to form sulfuric acid",
    )
    assert phrases(PARCEL, "entrainment", "mixing").answer == "static energy due to mixing is determined by the"


def test_the_papers_examples_come_in_the_papers_order():
    # Printed, with another encoder: 0.885 for sulfur dioxide, 0.819 for Sulfur; 1, 0.726, 0.681 for the others.
    oxidation = [(OXIDATION, "SO2", answer) for answer in ("sulfur dioxide", "Sulfur")]
    parcel = [(PARCEL, "entrainment", answer) for answer in ("entrainment", "mixing", "evaporation")]
    dioxide, sulfur, *others = phrase_similarities(oxidation + parcel)
    assert 1 > dioxide > sulfur
    assert others[0] == 1.0
    assert others == sorted(others, reverse=True)
    assert others[1] > others[2]


def test_the_score_is_the_rescaled_cosine():
    # Phrases "ab" and "ac": cosine 1/2.
    assert phrase_similarity("<MASK>", "ab", "ac", encoder=Letters()) == pytest.approx(0.0, abs=1e-6)
    assert phrase_similarity("<MASK>", "ab", "cd", encoder=Letters()) == pytest.approx(-1.0)
    # "ab ab" and "ab ac", letters 1, 2, 2 and 1, 2, 1, 1: cosine 7 / (3 sqrt 7).
    found = phrase_similarity("ab <MASK>", "ab", "ac", encoder=Letters())
    assert found == pytest.approx(2 * (7 / (3 * 7**0.5) - 0.5), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Warming of 1.5 °C, by 2050.", ["warming", "of", "1.5", "c", "by", "2050"]),
        ("(50%) or −3.2%; -.5", ["50%", "or", "-3.2%", "-.5"]),
        ("CO<sub>2</sub> and CO₂", ["co2", "and", "co2"]),
        ("gas-solid, parcel's; 'ice' 100%.", ["gas-solid", "parcel's", "ice", "100%"]),
        ("well - known 5% 1990-2000", ["well", "known", "5%", "1990-2000"]),
        ("word% -word $5", ["word", "word", "5"]),
        ("— … !", []),
    ],
    ids=["degrees", "signs", "subscripts", "inside", "dash", "word-signs", "nothing"],
)
def test_punctuation_goes_but_not_that_of_numbers(text, words):
    assert terms(text) == words


def test_an_empty_answer_scores_nothing():
    assert phrase_similarities([(PARCEL, "entrainment", " ?"), (PARCEL, "entrainment", "")], encoder=Letters()) == [
        0.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("statement", "reference", "window", "word"),
    [
        ("No gap.", "ice", 4, "exactly one gap"),
        ("<MASK> and <mask>.", "ice", 4, "this one has 2"),
        ("The <MASK>.", "?", 4, "no word"),
        ("The <MASK>.", "ice", -1, "not -1"),
    ],
    ids=["none", "two", "reference", "window"],
)
def test_what_cannot_be_filled_is_refused(statement, reference, window, word):
    with pytest.raises(InputError, match=word):
        phrase_similarity(statement, reference, "snow", window)


def test_an_unknown_encoder_is_told():
    with pytest.raises(ModelError, match="names no encoder"):
        phrase_similarity("The <MASK>.", "ice", "snow", encoder="minilm")
