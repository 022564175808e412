"""Acronyms are learned from the report and spelled out."""

import pytest

from climassay.confidence.extraction.cleaning import KNOWN_ACRONYMS, AcronymList, definitions_in


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
    assert definitions_in([text]) == definitions


def test_the_most_frequent_definition_counts():
    texts = ["global surface temperature (GST)", "good summer time (GST)", "a good summer time (GST)"]
    assert definitions_in(texts) == {"GST": "good summer time"}


def test_the_report_goes_before_the_list_of_the_field():
    assert KNOWN_ACRONYMS["GPP"] == "gross primary production"
    learned = AcronymList.of(["Green Public Procurement (GPP) helps."])
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
