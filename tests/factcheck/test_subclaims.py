"""Splitting claims: every statement has its place in the claim, whoever splits and whatever the model answers."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus.sentences import locate_quotation
from climassay.factcheck import Subclaim
from climassay.factcheck.debate.reading import MAX_SUBCLAIMS, read_claim, single_subclaim, split_by_rules
from climassay.models import Completion
from climassay.prompts import SMALL, STRONG, load_prompt
from debate_parts import drive

WORDS = st.sampled_from(["CO2", "ice", "the", "Notice", "melts", "1.5", "°C", "Dr.", "e.g.", "—", "(so)", "“yes”", "İ"])
ENDS = st.sampled_from([" ", " ", ", ", "; ", ". ", "? ", "!", ";", "\n\n", " ; "])
CLAIMS = st.lists(st.tuples(WORDS, ENDS), max_size=30).map(lambda pairs: "".join(word + end for word, end in pairs))
TEXTS = st.text(max_size=80) | CLAIMS
SUN = "The Sun has been getting brighter, and CO2 does nothing since plants need it."


def texts_of(subclaims):
    return [one.text for one in subclaims]


def places_are_sound(text, subclaims):
    """Numbered from 1, at most so many, each inside of the claim, in order, without overlap; none says nothing."""
    assert [one.number for one in subclaims] == list(range(1, len(subclaims) + 1))
    assert 1 <= len(subclaims) <= MAX_SUBCLAIMS
    assert all(0 <= one.start <= one.end <= len(text) for one in subclaims)
    assert all(first.end <= second.start for first, second in pairwise(subclaims))
    if len(subclaims) > 1:
        assert all(one.text.strip() and one.start < one.end for one in subclaims)


@given(TEXTS)
def test_rules_cut_any_text_into_pieces_of_it(text):
    subclaims = split_by_rules(text)
    places_are_sound(text, subclaims)
    assert all(text[one.start : one.end] == one.text for one in subclaims)
    covered = "".join(one.text for one in subclaims)
    assert [c for c in covered if c.isalnum()] == [c for c in text if c.isalnum()]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("CO2 does nothing.", ["CO2 does nothing."]),
        ("It is not warming. The Sun did it.", ["It is not warming.", "The Sun did it."]),
        ("It is not warming; the Sun did it", ["It is not warming", "the Sun did it"]),
        ("Sea level rose 3.7 mm/yr, e.g. in 2010. Nobody saw it.",
         ["Sea level rose 3.7 mm/yr, e.g. in 2010.", "Nobody saw it."]),
        ("Wow. It is not warming at all. No way!", ["Wow. It is not warming at all. No way!"]),
        ("It is getting colder every year. Really. The Sun did it.",
         ["It is getting colder every year. Really.", "The Sun did it."]),
        ("", [""]),
    ],
    ids=["one", "two", "semicolon", "stops that end nothing", "short ones", "short one between", "empty"],
)  # fmt: skip
def test_sentences_and_semicolons_divide_and_short_pieces_stay_with_the_one_before(text, pieces):
    assert texts_of(split_by_rules(text)) == pieces


@pytest.mark.parametrize("n", [MAX_SUBCLAIMS, MAX_SUBCLAIMS + 1, MAX_SUBCLAIMS + 4])
def test_surplus_statements_are_joined_to_the_last_one(n):
    sentences = [f"The ice of glacier number {number} is melting." for number in range(n)]
    expected = [*sentences[: MAX_SUBCLAIMS - 1], " ".join(sentences[MAX_SUBCLAIMS - 1 :])]
    assert texts_of(split_by_rules(" ".join(sentences))) == expected


PROMPT = load_prompt("factcheck_split")


def read(text, answer, splitter="model", profile=STRONG):
    completion = answer if isinstance(answer, Completion) else Completion(answer, "stop")
    return drive(read_claim(text, splitter, "m", profile, PROMPT), lambda _: completion)


def split(text, answer, splitter="model"):
    """What is made of a claim by a model that is not asked for queries: its parts, and who made them."""
    reading, batches = read(text, answer, splitter, SMALL)
    assert (reading.kind, reading.reason) == ("checkable", "")
    return (reading.subclaims, reading.splitter), batches


def parts(*pairs):
    found = [{"quotation": quotation, "statement": said} for quotation, said in pairs]
    return json.dumps({"reason": "", "kind": "checkable", "parts": found})


def test_the_model_quotes_and_says_each_part_so_that_it_stands_alone():
    answer = parts(
        ("CO2 does nothing", "CO2 does nothing to the climate."),
        ("the sun has been getting  brighter", "The Sun has been\ngetting brighter."),
    )
    (subclaims, splitter), [[ask]] = split(SUN, answer)
    assert splitter == "model"
    assert subclaims == (
        Subclaim(1, "The Sun has been getting brighter.", 0, 33),
        Subclaim(2, "CO2 does nothing to the climate.", 39, 55),
    )
    assert SUN[39:55] == "CO2 does nothing"
    assert SUN in ask.model_request.messages[-1].content
    assert ask.model_request.schema["properties"]["parts"]["maxItems"] == MAX_SUBCLAIMS
    assert ask.model_request.sampling.temperature == 0


def test_one_part_is_the_claim_itself():
    (subclaims, splitter), _ = split(
        SUN, parts((SUN[: SUN.index(" since")], "The Sun has been getting brighter and CO2 does nothing."))
    )
    assert (subclaims, splitter) == ((single_subclaim(SUN),), "model")


TWO = "It is not warming at all. The Sun did it."


@pytest.mark.parametrize(
    "answer",
    [
        Completion.failed("No luck."),
        "",
        "[]",
        "null",
        '{"parts": []}',
        '{"parts": 3}',
        '{"parts": {"quotation": "It"}}',
        '{"parts": ["It is not warming at all"]}',
        '{"parts": [{"quotation": "It is not warming at all"}]}',
        parts(("It is not cooling at all", "It is not cooling at all."), ("The Sun did it", "The Sun did it.")),
        parts(("It is not warming at all", "It is not warming."), ("warming at all. The Sun", "The Sun warms.")),
        parts(("warming", "It is not warming."), ("The Sun did", "The Sun did it.")),
        parts(("...", "It is not warming at all."), ("The Sun did it", "The Sun did it.")),
        parts(("It is not warming at all", "It is not."), ("un did it", "The Sun did it.")),
        parts(*[(word, word) for word in ("It", "is", "not", "warming", "The", "Sun")]),
    ],
    ids=["failed", "empty", "list", "null", "no parts", "number", "object", "text", "no statement", "not in the claim",
         "overlap", "half left out", "no words", "part of a word", "too many"],
)  # fmt: skip
def test_rules_take_over_where_the_model_does_not_quote_the_claim(answer):
    (subclaims, splitter), _ = split(TWO, answer)
    assert splitter == "rules"
    assert subclaims == split_by_rules(TWO)


CUTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.text(max_size=20)), max_size=7)


@given(TEXTS, CUTS, st.booleans())
def test_whatever_the_model_quotes_places_are_sound(text, cuts, shouted):
    places = [match.start() for match in re.finditer(r"\S+", text)] + [len(text)]
    spans = [sorted((places[a % len(places)], places[b % len(places)])) for a, b, _ in cuts]
    quoted = [(text[slice(*span)], said) for span, (_, _, said) in zip(spans, cuts, strict=True)]
    (subclaims, splitter), _ = split(text, parts(*[(q.upper() if shouted else q, said) for q, said in quoted]))
    places_are_sound(text, subclaims)
    assert splitter in ("model", "rules")


def reading(*pairs, kind="checkable", reason=""):
    found = [{"quotation": quotation, "statement": said, "queries": list(asked)} for quotation, said, asked in pairs]
    return json.dumps({"reason": reason, "kind": kind, "parts": found})


def test_one_call_says_whether_a_claim_can_be_checked_and_gives_statements_and_queries():
    answer = reading(
        ("CO2 does nothing", "CO2 has no effect on the climate.", ["radiative forcing of CO2"]),
        (SUN[:33], "The Sun has brightened.", ["total solar irradiance trend", " solar\nforcing "]),
    )
    found, [[ask]] = read(SUN, answer)
    assert (found.kind, found.splitter) == ("checkable", "model")
    assert texts_of(found.subclaims) == ["The Sun has brightened.", "CO2 has no effect on the climate."]
    assert [one.queries for one in found.subclaims] == [
        ("total solar irradiance trend", "solar forcing"), ("radiative forcing of CO2",),
    ]  # fmt: skip
    assert SUN in ask.model_request.messages[-1].content


def test_a_statement_is_taken_in_the_model_s_own_words():
    pairs = [("He says so", "The senator says that the ice grows."), ("they all lie", "Scientists lie about the ice.")]
    text = "He says so and they all lie"
    found, _ = read(text, reading(*[(quotation, said, ()) for quotation, said in pairs]))
    assert texts_of(found.subclaims) == [said for _, said in pairs]


def test_queries_are_taken_once_each_at_most_as_many_as_wanted_and_only_with_words():
    asked = ["ice", "??", "ice", " ice ", "snow", "sea level", "glaciers"]
    found, _ = read(SUN, reading((SUN, SUN, asked)))
    assert found.subclaims[0].queries == ("ice", "snow", "sea level")
    assert STRONG.queries == 3


def test_queries_copied_from_the_instructions_are_left_out():
    """Qwen2.5-Coder 0.5B searched for "What was observed", "What causes it" and "What puts it into proportion"."""
    asked = ["What was observed", "What puts it into proportion", "What causes the brightening"]
    found, _ = read(SUN, reading((SUN, SUN, asked)))
    assert found.subclaims[0].queries == ("What causes the brightening",)


@pytest.mark.parametrize("kind", ["not checkable", "not about climate"])
def test_what_cannot_be_checked_is_refused_with_the_models_reason(kind):
    found, _ = read(SUN, reading(kind=kind, reason=" It is\na wish. "))
    assert (found.kind, found.reason) == (kind, "It is a wish.")
    assert found.subclaims == split_by_rules(SUN)
    # Small models refuse a claim and split it in the same answer.
    found, _ = read(SUN, reading((SUN, "It is the Sun.", ["solar forcing"]), kind=kind, reason="It is a wish."))
    assert (found.kind, found.subclaims[0].queries) == (kind, ("solar forcing",))


@pytest.mark.parametrize(
    "answer", [Completion.failed("No luck."), "", reading(), reading(("a", "b", ()), ("c", "d", ()))]
)
def test_rules_take_over_without_queries_where_the_answer_cannot_be_used(answer):
    found, _ = read(TWO, answer)
    assert (found.splitter, found.kind) == ("rules", "checkable")
    assert found.subclaims == split_by_rules(TWO)


@pytest.mark.parametrize(
    ("quotation", "found"),
    [
        ("ice melts", "ice melts"), ("ICE, melts", "ice melts"), ("“ice  melts”", "ice melts"), ("otice ice", None),
        ("ice", "ice"), ("ice mel", None), ("?!", None), ("", None),
    ],
)  # fmt: skip
def test_quotations_are_found_whatever_their_case_and_punctuation(quotation, found):
    text = "Notice ice melts."
    place = locate_quotation(text, quotation)
    assert (text[slice(*place)] if place else None) == found
    if quotation == "ice":
        assert place == (7, 10)
