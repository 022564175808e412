"""Which report a document is, from its names."""

import pytest

from climassay.confidence.extraction.documents import identify
from climassay.corpus.documents import Block, Document

CITED = "IPCC, 2021: Summary. In: Climate Change 2021: The Physical Science Basis."


def named(title="", source="", report=None, first=""):
    return Document("d", title, source, (Block(first),), report=report)


@pytest.mark.parametrize(
    ("document", "identity"),
    [
        (named(report="AR6 WG1"), ("AR6", "WG1")),
        (named(report="AR6_WGIII"), ("AR6", "WG3")),
        (named("Climate Change 2007: Synthesis Report"), ("AR4", "SYR")),
        (named("Climate Change 2014: Impacts, Adaptation, and Vulnerability"), ("AR5", "WG2")),
        (named("Climate Change 2001: The Scientific Basis"), ("AR3", "WG1")),
        (named("Climate Change 2022: Mitigation of Climate Change"), ("AR6", "WG3")),
        (named(source="ipcc_sr15_spm.pdf"), ("AR6", "SR15")),
        (named(report="srocc"), ("AR6", "SROCC")),
        (named("Contribution of Working Group II to the Fourth Assessment Report"), ("AR4", "WG2")),
        (named("Summary for Policymakers", "spm.pdf", first=CITED), ("AR6", "WG1")),
        (named("A letter"), (None, None)),
    ],
    ids=[str(number) for number in range(11)],
)  # fmt: skip
def test_identity(document, identity):
    assert tuple(identify(document)) == identity


def test_what_the_user_says_goes_before_what_the_file_says():
    assert tuple(identify(named(report="AR6 WG1"), "AR5 WG2")) == ("AR5", "WG2")
    assert identify(named(report="wg3"), cycle="AR4").name == "AR4 WG3"
    assert identify(named(report="wg3")).name == "WG3"
    assert identify(named(report="sr15")).name == "SR15"
    assert identify(named("A letter")).name is None
