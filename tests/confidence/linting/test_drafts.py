"""Drafts of every kind: what is prose is checked, findings have their places, and nothing to check is no all-clear."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.linting import Manuscript, check, draft_of, read_draft, select_rules
from climassay.confidence.linting.presentation import findings_data, format_findings, lint_page, split_at_findings
from climassay.corpus import Block
from climassay.errors import InputError
from faults.samples import docx

ODD = "(moderate confidence)"


def places(text, kind="markdown"):
    """Paragraph and column of each finding by the rule on levels outside the vocabulary."""
    checked = check(draft_of(text, kind), select_rules("confidence-vocabulary"))
    return [(one.location.paragraph, one.location.column) for one in checked.findings]


HIDDEN = {
    "fenced code": f"text\n\n```md\n{ODD}\n```\n",
    "comment": f"text <!-- {ODD}\n{ODD} --> text", "link target": "see [this](http://x.y/moderate-confidence)",
    "image": f"![{ODD}](a.png)", "tag": '<span title="moderate confidence">text</span>',
}  # fmt: skip
SHOWN = {
    "link text": (f"see [{ODD}](http://x.y)", [(1, 5)]),
    "emphasis inside": ("it is (mod**er**ate *confidence*)", [(1, 7)]),
    "quotation": ("> text so\n> it is (moderate\n> confidence) now", [(1, 16)]),
    "second paragraph": (f"One.\n\nTwo. It is so\n{ODD}.", [(2, 15)]),
    "wide characters": (f"Überhitzung 🌡️ {ODD}", [(1, 16)]),
    "item": (f"- one\n- two {ODD}", [(2, 5)]),
    "heading": (f"# Head {ODD}\n\nText.", []),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_no_prose_is_passed_over(name):
    assert places(HIDDEN[name]) == []


@pytest.mark.parametrize("name", SHOWN)
def test_a_finding_has_its_paragraph_and_column(name):
    text, expected = SHOWN[name]
    assert places(text) == expected


def test_pages_are_told():
    texts = [("One.", 1), (f"Two {ODD}.", 1), (f"Three {ODD}.", 2)]
    draft = Manuscript("a.pdf", tuple(Block(text, page=page) for text, page in texts))
    checked = check(draft, select_rules("confidence-vocabulary"))
    assert [(one.location.page, one.location.paragraph, one.location.column) for one in checked.findings] == [
        (1, 2, 5),
        (2, 1, 7),
    ]
    assert format_findings(checked)[0].startswith(
        "a.pdf: page 1, paragraph 2, character 5: warning [confidence-vocabulary]"
    )
    (first, _) = findings_data(checked)["findings"]
    assert (first["page"], first["paragraph"], first["words"]) == (1, 2, ODD)


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.html", "a.docx"])
def test_files_by_their_kind(tmp_path, name):
    path = tmp_path / name
    text = f"It is so {ODD}."
    path.write_bytes(docx(text) if name == "a.docx" else f"<p>{text}</p>".encode())
    assert len(check(read_draft(path), select_rules("confidence-vocabulary")).findings) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.odt", b"PK"), ("a.xyz", b"text"), ("a.md", b""), ("b.md", b" \n\n"), ("a.pdf", b"%PDF-1.7 no"),
     ("c.md", b"\x00\x01\x02\x00")],
)  # fmt: skip
def test_what_cannot_be_checked(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=name):
        read_draft(path)


def test_what_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_draft(tmp_path / "none.md")


GERMAN = "Die Hitzewellen werden mit der Erwärmung in Zukunft zunehmen, und das ist von der Wissenschaft belegt. " * 8


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("Ice melts (high confidence).", True),
        ("Glaciers will lose more mass (very likely).", True),
        ("Whisk the eggs. Bake for an hour.", False),
        ("See low-confidence processes in the annex.", False),
        (GERMAN, False),
        ("Le niveau de la mer montera (confiance élevée).", False),
    ],
)
def test_no_findings_comfort_only_if_there_was_something_to_check(text, is_read):
    checked = check(draft_of(text))
    assert checked.findings == ()
    assert checked.is_read is is_read
    assert ("nothing" in checked.conclusion) is not is_read
    assert checked.conclusion in lint_page([checked])


PARTS = (
    *"*_`[](){}<>|#>-=~$\\!&;:.,\n\n\n \t",
    *("(high confidence)", "moderate confidence", "very likely (66–100%)", "strong evidence", "low to high confidence"),
    *("```\n", "<!-- x -->", "<p>", "</p>", "&amp;", "- ", "| a |", "**", "http://x.y", "    ", "hgh confidence"),
    *("Rain will increase more than before.", "\x00", "é🌡", "'", '"', "(likely, 20 in 0 chance)"),
)
TEXTS = st.lists(st.sampled_from(PARTS), max_size=40).map("".join) | st.text(max_size=200)


@given(TEXTS, st.sampled_from(["markdown", "text", "html"]))
def test_any_text_is_checked_and_shown_whole(text, kind):
    draft = draft_of(text, kind)
    checked = check(draft)
    assert "".join(piece.text for piece in split_at_findings(checked)) == draft.text
    paragraphs = draft.text.split("\n\n")
    for one in checked.findings:
        assert 0 <= one.start < one.end <= len(draft.text)
        # The place leads back to the words.
        start = one.location.column - 1
        assert paragraphs[one.location.paragraph - 1][start : start + one.end - one.start] == one.words
    assert {number for piece in split_at_findings(checked) for number in piece.starts} == set(
        range(len(checked.findings))
    )


@given(TEXTS)
def test_a_page_is_made_of_any_text_and_nothing_of_it_runs(text):
    page = lint_page([check(draft_of(text + " &lt;script>alert(1)&lt;/script> &lt;img src=x onerror=y>"))])
    assert "<script" not in page
    assert "<img" not in page
