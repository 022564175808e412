import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.claim_identity import claim_id, claim_key, words_id
from stated_quantities import all_statements, spellings, statements


@pytest.mark.parametrize(
    "text",
    [
        "CO2 isn’t “the” cause", "co2 isn't the cause", "  CO2\tisn't\nthe cause ", '"CO2 isn\'t ‘the’ cause"',
        "CO₂ isn't the cause", "CO2 isn't the\N{ZERO WIDTH SPACE} cause",
    ],
)  # fmt: skip
def test_spellings_of_one_claim(text):
    assert claim_key(text) == "co2 isn't the cause"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("It fell by \N{MINUS SIGN}0.5 K.", "It fell by -0.5 K."),
        ("It rose 2\N{EN DASH}3 °C.", "It rose 2-3 °C."),
        ('"It rose by 5"', "It rose by 5"),
        ("It said “rose by 5” twice.", "It said rose by 5 twice."),
        ("The scientists' view", "The scientists view"),
        ("It rose by 5% and 1.5°C.", "It rose by 5 % and 1.5 \N{MASCULINE ORDINAL INDICATOR}C."),
        ("Cafe\N{COMBINING ACUTE ACCENT}s warm.", "CAFÉS WARM."),
    ],
)
def test_what_looks_alike_is_one_claim(first, second):
    assert claim_key(first) == claim_key(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("It is warming.", "It isn't warming."), ("we're", "were"), ("1.5 °C", "15 °C"),
        ("+0.5 percent", "-0.5 percent"), ("> 3 K", "< 3 K"), ("10² tonnes", "102 tonnes"), ("5 MW", "5 mW"),
        ("300 Pg of carbon", "300 pg of carbon"), ("3 K", "3 k"), ("The sea rose 5'", 'The sea rose 5"'),
        ("The sea rose 5", 'The sea rose 5"'), ("Ice melts.", "Ice melts?"),
    ],
)  # fmt: skip
def test_claims_that_differ(first, second):
    assert claim_key(first) != claim_key(second)
    assert claim_id(first) != claim_id(second)


def test_no_two_statements_of_different_quantities_are_one_claim():
    found = all_statements()
    assert len({claim_id(text) for text in found}) == len(found)


@given(statements, st.data())
def test_spaces_quotation_marks_and_case_make_no_other_claim(text, data):
    assert claim_id(data.draw(spellings(text))) == claim_id(text)


@given(st.text(st.characters(), max_size=40))
def test_any_text_has_an_id(text):
    assert re.fullmatch("[0-9a-f]{12}", claim_id(text))
    assert claim_id(f" {text}\n") == claim_id(text)
    assert re.fullmatch("[0-9a-f]{12}", words_id(text))


def test_words_are_the_coarser_notion():
    assert words_id("Ice, melts!") == words_id("ice melts")
    assert words_id("Ice melts") != words_id("Ice does not melt")
