"""Every figure of the explanation pages stands in the page that measured it, or in the published source."""

import re
from pathlib import Path

import pytest

from documentation import ROOT, page_name

EXPLANATIONS = sorted((ROOT / "docs" / "explanation").glob("*.md"))
PUBLISHED = ROOT.parent / "shared" / "reference"
FIGURE = re.compile(r"(?<![\w.])\d*\.\d+(?:e-\d+)?%?(?![\w.]*\d)|(?<![\w.,-])\d+%")
NAME = re.compile(r"[a-z]+-?\d+\.\d+-?\w*|arXiv \d+\.\d+|[A-Z]\.\d[.\d]*", re.IGNORECASE)


def figures(text):
    """Decimal numbers and percentages, without a leading zero; names such as llama3.1-8b are none."""
    text = re.sub(r"\]\([^)]*\)", "]", NAME.sub(" ", text))
    return {found.lstrip("0").rstrip("%") for found in FIGURE.findall(text)}


def measured():
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "results").glob("*.md")]
    return set().union(*(figures(page.read_text(encoding="utf-8")) for page in pages))


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published figures are not here")
@pytest.mark.parametrize("page", EXPLANATIONS, ids=page_name)
def test_every_figure_has_a_source(page):
    published = set().union(*(figures(Path(file).read_text(encoding="utf-8")) for file in PUBLISHED.glob("*.md")))
    unknown = figures(page.read_text(encoding="utf-8")) - published - measured()
    assert not unknown, f"{page_name(page)}: {sorted(unknown)}"


def test_a_figure_is_found_whatever_stands_around_it():
    assert figures("**.408** [.334, .477], 0.5 and +35.4 (25%); llama3.1-8b, arXiv 2401.12566, A.3.1") == {
        ".408", ".334", ".477", ".5", "35.4", "25",
    }  # fmt: skip
