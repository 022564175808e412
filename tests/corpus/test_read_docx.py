"""Word files: paragraphs under headings, tables, text boxes, deletions; damage and attacks."""

import io
import zipfile

import pytest

from climassay.confidence.linting import check, read_draft
from climassay.corpus.readers.file_types import read

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLES = (
    f"""<w:styles xmlns:w="{WORD}"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>"""
)
BODY = """<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Seas</w:t></w:r></w:p>
<w:p><w:r><w:t>Seas will </w:t></w:r><w:del><w:r><w:delText>not </w:delText></w:r></w:del>
<w:r><w:t>rise</w:t><w:tab/><w:t>by 1 m
(high confidence).</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>A cell of words</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
<w:p><w:r><w:t>Around a box.</w:t></w:r><w:txbxContent>
<w:p><w:r><w:t>In the box.</w:t></w:r></w:p></w:txbxContent></w:p>"""


def word_file(body=BODY, prologue="", name="word/document.xml"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, f'{prologue}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')
        file.writestr("word/styles.xml", STYLES)
    return out.getvalue()


def read_bytes(tmp_path, data):
    (tmp_path / "draft.docx").write_bytes(data)
    return read(tmp_path / "draft.docx")


def test_paragraphs_headings_tables_and_boxes(tmp_path):
    (document,) = read_bytes(tmp_path, word_file()).documents
    assert [block.text for block in document.blocks] == [
        "Seas will rise by 1 m (high confidence).",
        "A cell of words",
        "Around a box.",
        "In the box.",
    ]
    assert {block.headings for block in document.blocks} == {("Seas",)}
    assert document.media == "docx"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"not a zip", "not a readable Word file"),
        (word_file(name="other.xml"), "is not a Word file"),
        (word_file(body="<w:p/>"), "no text"),
        (word_file(prologue='<!DOCTYPE a [<!ENTITY b "c">]>'), "entities"),
        (word_file()[:200], "not a readable Word file"),
    ],
    ids=["no zip", "other zip", "empty", "entities", "cut"],
)
def test_what_is_no_word_file_is_said_in_a_sentence(tmp_path, data, words):
    result = read_bytes(tmp_path, data)
    assert result.documents == ()
    assert words in result.skipped[0].reason


def test_a_word_file_is_checked_by_its_paragraphs(tmp_path):
    (tmp_path / "draft.docx").write_bytes(
        word_file(body="<w:p><w:r><w:t>Seas rise (moderate confidence).</w:t></w:r></w:p>")
    )
    (finding,) = [
        one for one in check(read_draft(tmp_path / "draft.docx")).findings if one.rule == "confidence-vocabulary"
    ]
    assert (finding.location.line, finding.location.page) == (1, None)
