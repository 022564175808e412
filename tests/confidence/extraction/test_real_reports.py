"""The published reports: how many statements of which level, beside what others found in them."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from climassay.confidence.extraction import ExtractOptions, extract
from climassay.confidence.tags import find_tags
from climassay.corpus import Block, Document, read

DATA = Path("../shared/data")
PARAGRAPHS = DATA / "ipcc_ar6_paragraphs.jsonl.gz"
SUMMARY = DATA / "pdf" / "ipcc_sr15_spm.pdf"


@pytest.fixture(scope="module")
def summary():
    if not SUMMARY.exists():
        pytest.skip("the shared PDF files are not here")
    return extract(read(SUMMARY).documents, ExtractOptions(paragraph_tags="never"))


def test_the_summary_of_sr15(summary):
    assert {one.report for one in summary} == {"SR15"}
    assert {one.cycle for one in summary} == {"AR6"}
    # 205 levels are in its paragraphs on the web: one in a legend, one where terms are explained, one in a footnote.
    assert len(summary) == 202
    assert Counter(one.tag for one in summary) == {"high": 123, "medium": 71, "very high": 7, "low": 1}
    first = summary[0]
    assert (first.page, first.tag, first.likelihood) == (4, "high", ("likely",))
    assert first.text.startswith("Global warming is likely to reach 1.5°C between 2030 and 2052")


def test_nothing_of_the_levels_is_left_in_the_summary(summary):
    for one in summary:
        assert find_tags(one.context) == []
        assert "{" not in one.context
        assert len(one.before) <= 5
        assert len(one.after) <= 5


def test_levels_of_paragraphs_agree_with_the_list_that_comes_with_them():
    if not PARAGRAPHS.exists():
        pytest.skip("the shared paragraphs are not here")
    with gzip.open(PARAGRAPHS, "rt", encoding="utf-8") as file:
        lines = [line for line in file if '"srocc_SPM"' in line or '"wg2_SPM"' in line]
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 162 + 179
    ours: Counter[tuple] = Counter()
    theirs: Counter[tuple] = Counter()
    for number, row in enumerate(rows):
        block = Block(row["text"], paragraph_id=row["para_id"])
        for one in extract(
            [Document(f"d{number}", "t", "s", (block,))], ExtractOptions(acronyms="never", paragraph_tags="never")
        ):
            ours[number, one.tag] += 1
        theirs.update((number, tag) for tag in row["confidence_tags"])
    shared = (ours & theirs).total()
    assert shared / theirs.total() >= 0.99
    assert shared / ours.total() >= 0.99
