import pytest

from climassay.metrics import exact_match, exact_match_normalised
from climassay.metrics.cloze import _words
from stated_quantities import all_statements

EQUAL = [
    ("entrainment", "Entrainment."), ("sea ice", "sea-ice"), ("SO<sub>2</sub>", "SO2"), ("CO2", "CO₂"),
    ("Clausius-Clapeyron", "clausius–clapeyron"), ("aerosol", "aerosols"), ("gas", "gases"), ("phase", "phases"),
    ("feedback", '"feedbacks"'), ("stomata", "stoma"), ("nucleus", "nuclei"), ("vortex", "vortices"),
    ("matrix", "matrices"), ("stratum", "strata"), ("phenomenon", "phenomena"), ("hypothesis", "hypotheses"),
    ("larva", "larvae"), ("gravity", "gravities"), ("CFC", "CFCs"), ("-3.2", "−3.2"), ("10,000", "10000"),
    ("50%", "(50 %)"), (">= 3 K", "≥3 K"), ("10<sup>6</sup>", "10⁶"), ("3 °C", "3 C"), ("5 - 3", "5–3"),
    ("km²", "km2"),
]  # fmt: skip
DIFFERENT = [
    ("entrainment", "detrainment"), ("3.5", "35"), ("-5", "5"), ("50%", "50"), ("50 %", "50"),
    ("+0.5 percent", "-0.5 percent"), ("- 0.5 K", "0.5 K"), ("±0.5", "0.5"), ("> 3 K", "< 3 K"), ("≥ 3 K", "> 3 K"),
    ("10²", "102"), ("10<sup>6</sup>", "106"), ("$5", "€5"), ("5 MW", "5 mW"), ("1½", "11/2"), ("1990s", "1990"),
    ("0.5", "5"), ("cirrus", "cirru"), ("mass", "mas"), ("gas", "ga"), ("sea ice", "seaice"), ("sea ice", "ice"),
    ("sulfate", "sulphate"), ("hydroxyl", "OH"), ("CFC-11", "CFC-12"), ("1-2", "12"), ("ice", ""), ("...", "!"),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "candidate"), EQUAL, ids=[f"{a}~{b}" for a, b in EQUAL])
def test_case_punctuation_and_number_do_not_matter_when_normalised(reference, candidate):
    assert exact_match_normalised([reference, candidate], [candidate, reference]) == [True, True]
    assert exact_match([reference], [candidate]) == [False]


@pytest.mark.parametrize(("reference", "candidate"), DIFFERENT, ids=[f"{a}~{b}" for a, b in DIFFERENT])
def test_what_means_something_else_stays_different(reference, candidate):
    assert exact_match_normalised([reference], [candidate]) == [False]


def test_raw_match_is_letter_by_letter():
    references = ["albedo"] * 4
    assert exact_match(references, ["albedo", "Albedo", "albedo ", "albedo."]) == [True, False, False, False]


def test_one_of_several_references_is_enough():
    assert exact_match([["Kelvin", "curvature"], "ash"], ["curvature", "dust"]) == [True, False]
    assert exact_match_normalised([["Kelvin", "curvature"]], ["CURVATURES"]) == [True]


def test_no_two_statements_of_different_quantities_match():
    assert len({tuple(_words(text)) for text in all_statements()}) == len(all_statements())
