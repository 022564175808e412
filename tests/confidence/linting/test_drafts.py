"""Places in files: what is not prose is passed over, and a finding stands where an editor shows it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.linting import check, chosen_rules, draft_of, read_draft
from climassay.confidence.linting.draft import one_line, paged_draft
from climassay.confidence.linting.presentation import lint_page, pieces
from climassay.corpus.documents import Block, Document
from climassay.errors import InputError

ODD = "(moderate confidence)"


def places(text, kind="markdown"):
    """Line, column and words of each finding by the rule on levels outside the vocabulary."""
    checked = check(draft_of(text, kind), chosen_rules("confidence-vocabulary"))
    return [(one.location.line, one.location.column, one.words) for one in checked.findings]


def kinds(text, kind="markdown"):
    draft = draft_of(text, kind)
    read = ((block.kind, one_line(draft.mask, block.start, block.end)[0]) for block in draft.blocks)
    return [(kind, words) for kind, words in read if words]


HIDDEN = {
    "front matter": f"---\ntitle: {ODD}\n---\ntext", "fenced code": f"text\n\n```md\n{ODD}\n```\n",
    "tilde fence": f"~~~\n```\n{ODD}\n~~~\n", "indented code": f"text\n\n    {ODD}\n",
    "inline code": f"say `{ODD}` here", "comment": f"text <!-- {ODD}\n{ODD} --> text",
    "link target": "see [this](http://x.y/moderate confidence)", "image": f"![{ODD}](a.png)",
    "reference": "[1]: http://x.y 'moderate confidence'", "citation": "so it is [@smith2020, moderate confidence]",
    "struck out": f"~~{ODD}~~", "mathematics": "$moderate confidence$ and $$\nmoderate confidence\n$$",
    "tag": '<span title="moderate confidence">text</span>',
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HIDDEN))
def test_what_is_no_prose_is_passed_over(name):
    assert places(HIDDEN[name]) == []


SHOWN = {
    "link text": (f"see [{ODD}](http://x.y)", 1, 7),
    "emphasis inside": ("it is (mod**er**ate *confidence*)", 1, 8),
    "quotation": ("> text\n> so\n> it is moderate\n> confidence now", 3, 9),
    "item": ("1. one\n2. [x] two (moderate\n   confidence)", 2, 13),
    "cell": ("| a | b |\n|---|---|\n| x | moderate confidence |", 3, 7),
    "footnote": ("[^1]: It has moderate confidence.", 1, 14),
    "after a fence": (f"```\ncode\n```\n{ODD}", 4, 2),
    "second sentence": (f"One. Two.\nThree {ODD}.", 2, 8),
    "underlined heading": ("A moderate confidence\n===\n", 1, 3),
    "escaped": (r"a \* moderate confidence \*", 1, 6),
    "wide characters": ("Überhitzung 🌡️ moderate confidence", 1, 16),
    "carriage returns": ("one\r\ntwo moderate confidence\r\n", 2, 5),
}


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_a_finding_stands_where_an_editor_shows_it(name):
    text, line, column = SHOWN[name]
    assert places(text) == [(line, column, "moderate confidence")]


def test_blocks_of_markdown():
    text = (
        "# Title #\n\nPara one\ngoes on.\n- item\n  more\n\n  still item\n\nPara two\n\n> said\n\n"
        "| a | b |\n|--|--|\n| c |  |\n\n[^n]: note\n\nUnder\n---\n"
    )
    assert kinds(text) == [
        ("heading", "Title"), ("paragraph", "Para one goes on."), ("item", "item more"), ("item", "still item"),
        ("paragraph", "Para two"), ("quotation", "said"), ("row", "a"), ("row", "b"), ("row", "c"), ("note", "note"),
        ("heading", "Under"),
    ]  # fmt: skip


def test_web_pages_are_checked_on_their_source():
    text = (
        "<html><head><title>moderate confidence</title></head>\n<body><nav>moderate confidence</nav>\n"
        "<h2>Head</h2><p>It is <em>mod</em>erate&nbsp;confidence.</p>\n<script>moderate confidence</script>"
        "<ul><li>one<li>two moderate confidence</ul><p>moderate &amp; confidence</body></html>"
    )
    assert places(text, "html") == [(3, 27, "moderate confidence"), (4, 56, "moderate confidence")]
    assert [kind for kind, _ in kinds(text, "html")] == ["heading", "paragraph", "item", "item", "paragraph"]


def test_pages_are_told_by_paragraph():
    blocks = tuple(Block(text, page=page) for text, page in [("One.", 1), (f"Two {ODD}.", 1), (f"Three {ODD}.", 2)])
    draft = paged_draft(Document("id", "title", "a.pdf", blocks), "a.pdf")
    found = check(draft, chosen_rules("confidence-vocabulary")).findings
    assert [(one.location.page, one.location.line, one.location.column) for one in found] == [(1, 2, 6), (2, 1, 8)]


def test_footnotes_of_pages_are_no_paragraphs():
    blocks = (Block("Seas rise.", page=1), Block("A note.", page=1, footnote=True))
    draft = paged_draft(Document("id", "title", "a.pdf", blocks), "a.pdf")
    assert [one.kind for one in draft.blocks] == ["paragraph", "note"]


class TestComments:
    def test_the_paragraph_of_a_comment(self):
        text = f"One {ODD}.\nAnd <!-- climassay: ignore confidence-vocabulary --> more.\n\nTwo {ODD}."
        assert [line for line, _, _ in places(text)] == [4]

    def test_the_paragraph_after_a_comment_that_stands_alone(self):
        text = f"One {ODD}.\n\n<!-- climassay: ignore -->\n\nTwo {ODD}.\n\nThree {ODD}."
        assert [line for line, _, _ in places(text)] == [1, 7]

    def test_the_whole_file(self):
        text = f"One {ODD}.\n\nTwo {ODD}.\n\n<!-- climassay: ignore-file confidence-vocabulary, wide-range -->"
        checked = check(draft_of(text))
        assert checked.findings == ()
        assert checked.silenced == 2

    def test_a_rule_that_there_is_not_is_told(self):
        checked = check(
            draft_of(f"One {ODD}. <!-- climassay: ignore confidence -->"), chosen_rules("confidence-vocabulary")
        )
        assert [one.rule for one in checked.findings] == ["confidence-vocabulary", "unknown-ignore"]


class TestFiles:
    def test_kinds_by_name(self, tmp_path):
        for name in ("a.md", "a.txt", "a.html", "a.markdown"):
            path = tmp_path / name
            path.write_text(f"<p>It is so {ODD}.</p>")
            assert len(check(read_draft(path), chosen_rules("confidence-vocabulary")).findings) == 1

    @pytest.mark.parametrize(
        ("name", "content", "says"),
        [
            ("a.odt", b"PK", "save it as"), ("a.csv", b"a,b", "cannot be checked"),
            ("a.xyz", b"text", "unknown kind"), ("a.md", b"", "empty"), ("b.md", b" \n\n", "no text"),
            ("a.pdf", b"%PDF-1.7 nonsense", "a.pdf"), ("c.md", b"\x00\x01\x02\x00", "not a text file"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_checked(self, tmp_path, name, content, says):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InputError, match=says):
            read_draft(path)

    def test_what_is_not_there(self, tmp_path):
        with pytest.raises(InputError, match="no file"):
            read_draft(tmp_path / "none.md")
        with pytest.raises(InputError, match="folder"):
            read_draft(tmp_path)


PARTS = (
    *"*_`[](){}<>|#>-=~$\\!&;:.,\n\n\n \t",
    *("(high confidence)", "moderate confidence", "very likely (66–100%)", "strong evidence", "low to high confidence"),
    *("```\n", "<!-- climassay: ignore -->", "<p>", "</p>", "&amp;", "- ", "| a |", "**", "http://x.y", "    "),
    *("Rain will increase more than before.", "\x00", "é🌡"),
)
WORDS = st.sampled_from(PARTS)
TEXTS = st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=200)


@given(TEXTS, st.sampled_from(["markdown", "text", "html"]))
def test_any_text_is_checked_and_shown_whole(text, kind):
    draft = draft_of(text, kind)
    assert len(draft.mask) == len(draft.text)
    ends = [(block.start, block.end) for block in draft.blocks]
    assert ends == sorted(ends)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(ends))
    checked = check(draft, chosen_rules("all"))
    assert "".join(piece.text for piece in pieces(checked)) == draft.text
    lines = draft.text.split("\n")
    for one in checked.findings:
        assert 0 <= one.start_offset < one.end_offset <= len(draft.text)
        # The place leads back to the words.
        offset = sum(len(line) + 1 for line in lines[: one.location.line - 1]) + one.location.column - 1
        assert offset == one.start_offset
    assert {number for piece in pieces(checked) for number in piece.starts} == set(range(len(checked.findings)))


@given(TEXTS)
def test_a_page_is_made_of_any_text_and_nothing_of_it_runs(text):
    page = lint_page([check(draft_of(text + " <script>alert(1)</script> <img src=x onerror=y>"), chosen_rules("all"))])
    assert "<script" not in page
    assert "<img" not in page


@given(st.integers(0, 5), st.integers(0, 20))
def test_moving_a_text_moves_its_findings(lines, spaces):
    text = "\n" * lines + f"It is so {ODD}."
    assert places(text) == [(lines + 1, 11, "moderate confidence")]
    assert places("x " * spaces + text.lstrip("\n"), "text") == [(1, 2 * spaces + 11, "moderate confidence")]
