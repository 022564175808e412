"""What stands in a sentence without being part of what it says, and acronyms spelled out."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.extraction.cleaning import (
    KNOWN_ACRONYMS,
    AcronymList,
    clean_sentence,
    find_definitions,
    find_removable_spans,
    is_reference,
)


@pytest.mark.parametrize(
    "kept",
    [
        "Seas rose by 2 m (2010–2019) and 3 [2.8 to 3.1] mm.",
        "Emissions of CO2, N2O and PM2.5 fell by 3 W m–2 and 5 km2.",
        "It fell in the hot year (May 2018) under SSP5-8.5.",
        "Warming of 1.5°C (likely between 0.75°C and 0.99°C) was seen.",
        "Concentrations reached 410 ppm2 in some places (e.g., ecosystem restoration).",
        "They chose the Box of Section leaders (those who lead).",
    ],
)
def test_what_is_no_clutter_stays(kept):
    assert clean_sentence(kept) == kept


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("It is (Doe, 2001) so (Doe and Roe, 2001a,b; de Coninck and Sagar 2017).", "It is so."),
        ("It is so (IPCC, 2019a; UNFCCC 2015; Smith et al., in press).", "It is so."),
        ("Doe et al. (2014) find it so (see also Section 2.3, Figure 3.2a; Table 4).", "Doe et al. find it so."),
        ("It is so (Cross-Chapter Box 1 in Chapter 2; WGI Chapter 9; ‘A name’, Table SM4).", "It is so."),
        ("A.1.2 It is so in 2019.6", "It is so in 2019."),
        ("(ii) it is here.12", "It is here."),
        ("It is so {3.2, Box 4.1, 5.1.2.3}.", "It is so."),
        ("Sea ice (NAO; Hurrell, 1995) is so ( ).", "Sea ice (NAO) is so."),
        ("it is  so ,and so", "It is so,and so."),
        ("*It* is **so**", "It is so."),
        ("", ""),
        ("(high confidence)", ""),
    ],
)
def test_clutter_goes(text, clean):
    assert clean_sentence(text) == clean


def test_words_around_running_marks_are_mended():
    assert clean_sentence("There is now high confidence in this.") == "This."
    assert clean_sentence("Data lead to low confidence in trends.") == "Data lead to the assessment of trends."
    assert (
        clean_sentence("Evidence giving high confidence that it is so.")
        == "Evidence giving the assessment that it is so."
    )
    assert clean_sentence("It is of low confidence, with few data.") == "It, with few data."


def test_references_are_told_from_scopes():
    assert is_reference("Figure 3; Doe, 2001")
    assert is_reference("see ‘A name’, Table SM4")
    assert is_reference("M. Doe et al., 2020; Roe- Smith et al., 2018")
    assert not is_reference("NES")
    assert not is_reference("depending on region; Figure 3")


@given(st.text())
def test_cleaning_what_is_clean_changes_nothing(text):
    clean = clean_sentence(text)
    assert clean_sentence(clean) == clean


@given(st.text(alphabet="(){}[] ;,.ABab12et al–’Fig", max_size=60))
def test_spans_are_apart_and_in_the_text(text):
    spans = find_removable_spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one.end < other.start for one, other in pairwise(spans))


@pytest.mark.parametrize(
    ("text", "definitions"),
    [
        ("The effective radiative forcing (ERF) rose.", {"ERF": "effective radiative forcing"}),
        ("Sustainable Development Goals (SDGs) and more", {"SDG": "Sustainable Development Goal"}),
        ("sea surface temperature (SST; Doe, 2001)", {"SST": "sea surface temperature"}),
        ("the Fifth Assessment Report (AR5)", {}),
        ("a long list of people (UNFCCC)", {}),
        ("(ERF)", {}),
        ("agencies (EU) and policies (XY)", {}),
    ],
    ids=["plain", "plural", "with a reference", "with a number", "other words", "nothing before", "one word"],
)  # fmt: skip
def test_definitions(text, definitions):
    assert find_definitions([text]) == definitions


def test_the_most_frequent_definition_counts():
    texts = ["global surface temperature (GST)", "good summer time (GST)", "a good summer time (GST)"]
    assert find_definitions(texts) == {"GST": "good summer time"}


def test_the_report_goes_before_the_list_of_the_field():
    assert KNOWN_ACRONYMS["GPP"] == "gross primary production"
    learned = AcronymList.from_texts(["Green Public Procurement (GPP) helps."])
    assert learned.expand("GPP pays.", "every") == "Green Public Procurement pays."


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("GHGs, NDCs and LDCs", "greenhouse gases, nationally determined contributions and least developed countries"),
        ("GHG-intensive (GHG emissions)", "greenhouse gas-intensive (greenhouse gas emissions)"),
        ("SSP1-2.6 and RCP8.5", "SSP1-2.6 and RCP8.5"),
        ("carbon dioxide removal (CDR) works", "carbon dioxide removal works"),
        ("CO2 removal (CDR) works", "CO2 removal works"),
        ("xGHG, GHGx", "xGHG, GHGx"),
    ],
    ids=["plurals", "compounds", "scenarios", "said before", "said in other words", "parts of words"],
)
def test_every_occurrence(text, expanded):
    assert AcronymList().expand(text, "every") == expanded


def test_first_use_only():
    assert (
        AcronymList().expand("GHGs, GHG and (SST)", "first")
        == "greenhouse gases (GHGs), GHG and (sea surface temperature (SST))"
    )
