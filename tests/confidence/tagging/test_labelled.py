import csv
import gzip
import json
import re
from pathlib import Path

import pytest

from climassay.confidence.extraction import extract
from climassay.confidence.tagging import read_climatex, read_labelled
from climassay.confidence.tagging.labelled import ReportSection, SectionIndex
from climassay.corpus import Block, Document
from climassay.errors import InputError
from planted_statements import write_statements

DATA = Path(__file__).parents[4] / "shared" / "data"
HEADER = "statement_idx\treport\tpage_num\tsent_num\tstatement\tconfidence\tscore\tsplit\n"


def table(folder, *rows) -> Path:
    path = folder / "climatex.tsv"
    lines = [f"{number}\t{report}\t5\t1\t{text}\t{tag}\t2\ttrain\n" for number, (report, text, tag) in enumerate(rows)]
    path.write_text(HEADER + "".join(lines), encoding="utf-8")
    return path


def paragraphs(folder, *rows) -> Path:
    path = folder / "paragraphs.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for doc_id, headings, text in rows:
            row = {"report": "wg1", "doc_id": doc_id, "headings": headings, "class": "body", "text": text}
            file.write(json.dumps(row) + "\n")
    return path


def test_rows_are_cleaned_and_kept_once(tmp_path) -> None:
    read = read_climatex(
        table(
            tmp_path,
            ("AR6_WGI", "The ice sheets lose mass (very high confidence) and the sea level rises", "high"),
            ("AR6_WGI", "The ice sheets lose mass and the sea-level rises", "high"),
            ("AR6_WGII", "Floods harm the poor in many towns", "medium"),
            ("AR6_WGII", "Floods harm the poor in many towns", "low"),
            ("AR6_WGII", "Some evidence", "low"),
        )
    )
    assert [one.item.text for one in read.items] == ["The ice sheets lose mass and the sea level rises."]
    assert (read.rows, read.duplicates, read.contradicting, read.too_short) == (5, 1, 2, 1)
    assert read.match_rate == 0


def test_context_is_taken_from_the_table_of_the_test_set(tmp_path) -> None:
    path = tmp_path / "test_set.csv"
    context = (
        "Snow falls less often (low confidence). Glaciers lose CO2-rich\nice (high confidence) {3.2}. Rivers run low."
    )
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [
                ("report", "page_num", "statement", "confidence", "context"),
                ("AR6_WGI", "5", "Glaciers lose CO 2-rich ice", "high", context),
                ("AR6_WGI", "6", "Nothing of this kind stands in the context", "low", context),
            ]
        )
    read = read_labelled(path)
    first, second = read.items
    assert (first.item.before, first.item.after) == (("Snow falls less often.",), ("Rivers run low.",))
    assert (first.recovered, second.recovered, second.item.before) == (True, False, ())
    assert "The context of 1 (50.0%) was found in the table." in read.notes


def test_context_is_recovered_within_the_section_and_without_tags(tmp_path) -> None:
    rows = table(
        tmp_path,
        ("AR6_WGI", "Glaciers in the high Alps have lost half of their CO 2-rich ice since 1950", "high"),
        ("AR6_WGI", "Nothing of this kind stands anywhere in these reports at all", "low"),
    )
    text = (
        "Snow falls less often (low confidence). Glaciers in the high Alps have lost half of their CO2-rich ice since "
        "1950 (high confidence) {3.2}. Rivers run low in late summer (Smith et al., 2013)."
    )
    found = paragraphs(
        tmp_path, ("c3", "3 > 3.1", "Another section."), ("c3", "3 > 3.2", text), ("c3", "3 > 3.3", "No.")
    )
    first, second = read_climatex(rows, found).items
    assert first.recovered
    assert first.section == "c3: 3 > 3.2"
    assert first.item.before == ("Snow falls less often.",)
    assert first.item.after == ("Rivers run low in late summer.",)
    assert not second.recovered
    assert second.document == "c3"
    assert second.item.read() == (second.item.text, "")


SEVERAL = "Ice melts (high confidence) and rain falls (low confidence)."


def test_extracted_sentences_of_several_levels_are_left_out_and_counted(tmp_path) -> None:
    texts = "Seas rise (high confidence). Reefs die (very low confidence).", SEVERAL
    found = extract([Document("d", "R", "r", tuple(map(Block, texts)))])
    write_statements(found, tmp_path / "s.jsonl")
    read = read_labelled(tmp_path / "s.jsonl")
    assert [(one.item.text, one.tag) for one in read.items] == [("Seas rise.", "high")]
    (note,) = read.notes
    assert [int(number) for number in re.findall(r"\d+", note)] == [4, 0, 2, 1]


def test_a_like_sentence_is_not_taken_for_the_same() -> None:
    index = SectionIndex([ReportSection("s", "d", ("The oceans warm and lose oxygen in many regions of the world.",))])
    assert index.find("The oceans warm and lose oxygen in many regions of the Pacific.") is not None
    assert index.find("Lakes lose oxygen and fish die in warm summers of the north.") is None
    assert index.find("") is None


def test_other_files_are_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="not one of low, medium"):
        read_climatex(table(tmp_path, ("AR6_WGI", "Seas rise in all oceans", "certain")))
    (tmp_path / "no.tsv").write_text("a\tb\n1\t2\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no column report"):
        read_climatex(tmp_path / "no.tsv")
    (tmp_path / "p.jsonl").write_text('{"text": "x"}\n', encoding="utf-8")
    rows = table(tmp_path, ("AR6_WGI", "Seas rise in all oceans", "high"))
    with pytest.raises(InputError, match="not a file of report paragraphs"):
        read_climatex(rows, tmp_path / "p.jsonl")


@pytest.mark.skipif(not (DATA / "climatex_train.tsv").is_file(), reason="the shared folder with ClimateX is not there")
def test_no_tag_is_left_in_climatex(tmp_path) -> None:
    lines = (DATA / "climatex_train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    tagged = [line for line in lines[1:] if "confidence)" in line][:150]
    path = tmp_path / "some.tsv"
    path.write_text(lines[0] + "".join(tagged), encoding="utf-8")
    read = read_climatex(path)
    assert len(read.items) > 140
    assert not [one.item.text for one in read.items if "confidence)" in one.item.text]
