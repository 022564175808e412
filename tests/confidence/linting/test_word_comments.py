"""Findings as review comments in Word files."""

import io
import re
import zipfile
from xml.etree import ElementTree

import pytest

from climassay.confidence.linting import check, read_draft
from climassay.confidence.linting.presentation import write_comments
from climassay.corpus.readers.file_types import read
from climassay.errors import InputError

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
W = f"{{{WORD}}}"
TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml"/></Types>'
BODY = (
    "<w:p><w:r><w:t>Seas rise, with moder</w:t></w:r><w:r><w:rPr><w:i/></w:rPr><w:t>ate confi</w:t></w:r>"
    "<w:r><w:t>dence &amp; more.</w:t></w:r></w:p><w:p><w:r><w:t>It is fine.</w:t></w:r></w:p>"
    "<w:p><w:r><w:t>Ice melts (moderate confidence). </w:t></w:r>"
    "<w:r><w:t>Snow melts (moderate confidence).</w:t></w:r></w:p>"
)


def word_file(path, parts=(), body=BODY):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", TYPES)
        root = f'<w:document xmlns:w="{WORD}" xmlns:mc="urn:mc" xmlns:w15="urn:w15" mc:Ignorable="w15">'
        file.writestr("word/document.xml", f"{root}<w:body>{body}<w:sectPr/></w:body></w:document>")
        for name, text in dict(parts).items():
            file.writestr(name, text)
    return path


def part(path, name):
    with zipfile.ZipFile(path) as file:
        return file.read(name).decode()


def commented(tmp_path, **changes):
    """What each comment stands at, and what it says."""
    source = word_file(tmp_path / "draft.docx", **changes)
    checked = check(read_draft(source))
    count = write_comments(source, checked, tmp_path / "out.docx")
    assert count == len(checked.findings)
    root = ElementTree.fromstring(part(tmp_path / "out.docx", "word/document.xml"))
    open_now, held = set(), {}
    for one in root.iter():
        number = one.get(f"{W}id")
        if one.tag == f"{W}commentRangeStart":
            open_now.add(number)
        elif one.tag == f"{W}commentRangeEnd":
            open_now.remove(number)
        elif one.tag == f"{W}t":
            for each in open_now:
                held[each] = held.get(each, "") + one.text
    comments = ElementTree.fromstring(part(tmp_path / "out.docx", "word/comments.xml"))
    said = {one.get(f"{W}id"): "".join(one.itertext()) for one in comments}
    summary = said.pop(min(held, key=int))
    assert checked.conclusion in summary
    assert checked.examined.looked_at in summary
    assert all(words in summary for words in checked.examined.not_looked_at)
    return [(held[number], words) for number, words in said.items() if number in held]


def test_comments_stand_at_the_runs_that_hold_their_words(tmp_path):
    found = [(place, words) for place, words in commented(tmp_path) if "confidence-vocabulary" in words]
    assert [place for place, _ in found] == [
        "Seas rise, with moderate confidence & more.",
        "Ice melts (moderate confidence). ",
        "Snow melts (moderate confidence).",
    ]
    assert all("About: moderate confidence" in words for _, words in found)


def test_a_text_without_an_assessment_says_in_a_comment_that_nothing_was_checked(tmp_path):
    assert commented(tmp_path, body="<w:p/><w:p><w:r><w:t>Whisk the eggs. Bake for an hour.</w:t></w:r></w:p>") == []
    assert "nothing to check" in part(tmp_path / "out.docx", "word/comments.xml")


def test_nothing_else_of_the_file_changes(tmp_path):
    commented(tmp_path, parts={"word/media/a.bin": "x" * 100})
    before, after = part(tmp_path / "draft.docx", "word/document.xml"), part(tmp_path / "out.docx", "word/document.xml")
    bare = re.sub(r"<w:commentRange\w+ w:id=\"\d+\"/>|<w:r><w:commentReference w:id=\"\d+\"/></w:r>", "", after)
    assert bare == before
    assert part(tmp_path / "out.docx", "word/media/a.bin") == "x" * 100
    assert "comments.xml" in part(tmp_path / "out.docx", "word/_rels/document.xml.rels")
    assert "/word/comments.xml" in part(tmp_path / "out.docx", "[Content_Types].xml")
    # It is still read, as what it was.
    first, second = (read(tmp_path / name).documents[0].blocks for name in ("draft.docx", "out.docx"))
    assert [one.text for one in first] == [one.text for one in second]


def test_comments_that_are_there_stay(tmp_path):
    mine = '<w:comment w:id="7"><w:p><w:r><w:t>Mine</w:t></w:r></w:p></w:comment>'
    old = f'<w:comments xmlns:w="{WORD}">{mine}</w:comments>'
    commented(tmp_path, parts={"word/comments.xml": old})
    comments = ElementTree.fromstring(part(tmp_path / "out.docx", "word/comments.xml"))
    numbers = [int(one.get(f"{W}id")) for one in comments]
    assert numbers[0] == 7
    assert numbers[1:] == list(range(8, 8 + len(numbers) - 1))


def test_another_file_than_the_checked_one_gets_no_comments(tmp_path):
    checked = check(read_draft(word_file(tmp_path / "draft.docx")))
    other = word_file(tmp_path / "other.docx", body="<w:p><w:r><w:t>Other words.</w:t></w:r></w:p>")
    with pytest.raises(InputError, match="not the text that was checked"):
        write_comments(other, checked, tmp_path / "out.docx")
    (tmp_path / "no.docx").write_bytes(io.BytesIO(b"no zip").getvalue())
    with pytest.raises(InputError, match="not a readable Word file"):
        write_comments(tmp_path / "no.docx", checked, tmp_path / "out.docx")
