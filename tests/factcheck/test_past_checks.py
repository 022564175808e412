import re
from functools import cache

import pytest

from climassay import load_encoder
from climassay.factcheck import find_past_checks
from climassay.factcheck.past_checks import MIN_SIMILARITY
from climassay.records import Records
from word_encoder import WordEncoder


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as records:
        yield records


def debated(store, *claims, label="incorrect", outcome="verdict", table="transcript"):
    rows = [
        {"claim": {"text": claim}, "scale": "climate-feedback", "verdict": {"label": label, "outcome": outcome}}
        for claim in claims
    ]
    with store.run("factcheck", {}) as run:
        run.save_results(table, rows)
    return run.id


CLAIM = "The Arctic ice will have gone by 2030."


def test_the_same_claim_is_found_whatever_its_spelling(store):
    run = debated(store, "“The  arctic ice will have gone by 2030.”")
    (check,) = find_past_checks(store, CLAIM, WordEncoder())
    assert (check.run, check.same, check.similarity) == (run, True, 1.0)
    assert (check.verdict, check.outcome, check.scale) == ("incorrect", "verdict", "climate-feedback")
    assert not check.differs_in_numbers
    assert not check.differs_in_negation
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", check.when)


def test_same_first_then_most_similar_and_nothing_below_the_threshold(store):
    similar = "The Arctic ice will have gone by 2050."
    debated(store, "Cows burp.", similar, CLAIM, "The Arctic ice will have gone.")
    found = find_past_checks(store, CLAIM, WordEncoder())
    assert [check.claim for check in found] == [CLAIM, similar, "The Arctic ice will have gone."]
    assert [check.same for check in found] == [True, False, False]
    assert find_past_checks(store, CLAIM, WordEncoder(), limit=1) == found[:1]
    assert find_past_checks(store, CLAIM, WordEncoder(), min_similarity=0.99) == found[:1]
    assert len(find_past_checks(store, CLAIM, WordEncoder(), min_similarity=0.0)) == 4


def test_failed_debates_and_other_tables_are_no_checks(store):
    debated(store, CLAIM, outcome="failed", label=None)
    debated(store, CLAIM, table="scores")
    assert find_past_checks(store, CLAIM, WordEncoder()) == []
    debated(store, CLAIM, outcome="not about climate", label=None)
    (check,) = find_past_checks(store, CLAIM, WordEncoder())
    assert (check.verdict, check.outcome) == (None, "not about climate")


@pytest.mark.parametrize(
    ("other", "numbers", "negation"),
    [
        ("The Arctic ice will have gone by 2050.", True, False),
        ("The Arctic ice will not have gone by 2030.", False, True),
        ("The Arctic ice won't have gone by 2050.", True, True),
        ("By 2030, the Arctic ice will have gone.", False, False),
        ("The Arctic ice will have gone.", True, False),
    ],
)
def test_what_may_make_a_similar_claim_another_one_is_told(store, other, numbers, negation):
    debated(store, other)
    (check,) = find_past_checks(store, CLAIM, WordEncoder(), min_similarity=0.1)
    assert (check.differs_in_numbers, check.differs_in_negation) == (numbers, negation)


@pytest.mark.parametrize(
    ("first", "second", "opposed"),
    [
        ("Sea level rise is accelerating.", "Sea level rise is decelerating.", True),
        ("Hurricanes get stronger.", "Hurricanes get weaker.", True),
        ("Antarctica gains ice.", "Antarctica is losing ice.", True),
        ("The sun makes it warmer.", "The sun makes it colder.", True),
        ("Antarctica gains ice.", "The ice of Antarctica is growing.", False),
        ("More CO2 means less ice.", "Less ice means more CO2.", False),
    ],
)
def test_opposite_words_count_as_a_negation(store, first, second, opposed):
    debated(store, second)
    (check,) = find_past_checks(store, first, WordEncoder(), min_similarity=0.0)
    assert check.differs_in_negation == opposed


def test_vectors_are_kept_and_a_spoilt_cache_is_made_anew(store, tmp_path):
    encoder = WordEncoder()
    debated(store, CLAIM, "Cows burp.")
    first = find_past_checks(store, CLAIM, encoder)
    assert sorted(encoder.encoded) == sorted([CLAIM, "Cows burp."])
    debated(store, "Glaciers grow.")
    assert find_past_checks(store, CLAIM, encoder) == first
    assert encoder.encoded[2:] == ["Glaciers grow."]
    (file,) = (tmp_path / "cache" / "past_checks").iterdir()
    file.write_bytes(b"spoilt")
    assert find_past_checks(store, CLAIM, encoder) == first
    assert len(encoder.encoded) == 6


@cache
def bundled():
    encoder = load_encoder()
    encoder.encode(["loads the encoder while the usual cache is in use"])
    return encoder


PARAPHRASES = (
    ("Volcanoes emit more carbon dioxide than humans.", "Humans release less CO2 than volcanoes do."),
    ("Antarctica is gaining ice.", "The Antarctic ice is growing."),
    ("Wind turbines kill millions of birds.", "Millions of birds die because of wind turbines."),
    ("The ozone hole causes global warming.", "Global warming comes from the hole in the ozone layer."),
    (
        "Electric cars produce more CO2 than diesel cars.",
        "A diesel car emits less carbon dioxide than an electric one.",
    ),
)


@pytest.mark.parametrize("number", range(len(PARAPHRASES)))
def test_the_bundled_encoder_finds_paraphrases_and_leaves_other_claims(number, tmp_path, monkeypatch):
    encoder = bundled()
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as store:
        debated(store, *[second for _, second in PARAPHRASES])
        (check,) = find_past_checks(store, PARAPHRASES[number][0], encoder)
    assert check.claim == PARAPHRASES[number][1]
    assert MIN_SIMILARITY <= check.similarity < 1
    assert not check.same
