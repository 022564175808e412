"""Plain text and Word files, reading in another process, and many files of which some are bad."""

import io
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.linting import check, read_draft
from climassay.corpus import OmittedParts, ReadOptions, read, read_all
from climassay.corpus.documents import TableColumns
from climassay.corpus.readers.cleaning import LINE_END_HYPHEN, clean, join_hyphens
from climassay.corpus.readers.file_types import find_files
from climassay.corpus.readers.sandboxed_reader import read_sandboxed
from climassay.corpus.readers.text import split_paragraphs
from pdf_building import Text, build_pdf


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


class TestPlainText:
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
    def test_encodings(self, tmp_path: Path, encoding: str) -> None:
        text = "La température – à 2 m – a augmenté. It’s warmer by half a degree now."
        (document,) = read(write(tmp_path, "t.txt", text.encode(encoding))).documents
        assert document.blocks[0].text == text

    def test_hard_wrapped_lines_are_rejoined(self) -> None:
        wrapped = (
            "Sea ice has declined in every month of the year, and its vol-\n"
            "ume has fallen faster than its extent because the older and\n"
            "thicker ice goes first.\n\n"
            "The next paragraph begins here and is wrapped at the same mea-\n"
            "sure as the first."
        )
        assert split_paragraphs(wrapped) == [
            "Sea ice has declined in every month of the year, and its volume has fallen faster than its extent because "
            "the older and thicker ice goes first.",
            "The next paragraph begins here and is wrapped at the same measure as the first.",
        ]

    def test_long_lines_are_paragraphs(self) -> None:
        first, second = "Ice melts. " * 20, "Snow falls. " * 20
        assert split_paragraphs(f"{first}\n{second}") == [first.strip(), second.strip()]

    def test_list_items_stay_apart(self) -> None:
        assert split_paragraphs("Three things:\n- ice\n- snow\n- and the\n  long rain\n1. first") == [
            "Three things:", "- ice", "- snow", "- and the long rain", "1. first",
        ]  # fmt: skip

    def test_form_feeds_number_pages_and_running_lines_go(self, tmp_path: Path) -> None:
        bodies = [
            "The first page ends in the middle",
            "of a sentence. Then more.",
            "Third page text.",
            "Fourth page text.",
        ]
        pages = [f"Climate Report\n\n{body}\n\n{number}\n" for number, body in enumerate(bodies, start=5)]
        (document,) = read(write(tmp_path, "t.txt", "\f".join(pages).encode())).documents
        assert [(block.text, block.page, block.last_page) for block in document.blocks] == [
            ("The first page ends in the middle of a sentence. Then more.", 1, 2),
            ("Third page text.", 3, None),
            ("Fourth page text.", 4, None),
        ]
        assert document.omitted_parts == (OmittedParts("running lines", 8, (1, 2, 3, 4)),)

    def test_numbers_alone_and_contents_go(self, tmp_path: Path) -> None:
        text = "Contents\n\nI. Ice ............... 4\n\n17\n\n(a)\n\nIce melts when it is warm.\n"
        (document,) = read(write(tmp_path, "t.txt", text.encode())).documents
        assert [block.text for block in document.blocks] == ["Contents", "Ice melts when it is warm."]
        assert {entry.kind: entry.count for entry in document.omitted_parts} == {"contents lines": 1, "stray marks": 2}

    def test_rows_of_figures_and_leaders_before_figures_stay(self, tmp_path: Path) -> None:
        text = "Methane\n\n1990 320 41\n\n−2.5\n\n45%\n\nCO2 ........ 410.5 ppm in air\n"
        (document,) = read(write(tmp_path, "t.txt", text.encode())).documents
        assert [block.text for block in document.blocks] == text.strip().split("\n\n")
        assert document.omitted_parts == ()

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "t.txt is empty."),
            (b" \n\n ", "t.txt is empty."),
            (b"\x7fELF\x00\x01\x02" * 50, "t.txt is not a text file (it holds binary data)."),
            (b"\xff\xfea\x00b", "t.txt begins as utf-16 text but is damaged or truncated."),
        ],
    )
    def test_bad_text(self, tmp_path: Path, data: bytes, reason: str) -> None:
        assert read(write(tmp_path, "t.txt", data)).skipped[0].reason == reason


class TestCharacters:
    @pytest.mark.parametrize(
        ("raw", "cleaned"),
        [
            ("𝑇 rises by 𝟏.𝟓 K", "T rises by 1.5 K"),
            ("\ud835\udc47 is joined, \ud835 alone is no character", "T is joined, alone is no character"),
            ("a\u00a0b\u2009c\u3000d", "a b c d"), ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
            ("e\u0301", "é"), ("ﬁne eﬀect oﬃce", "fine effect office"),
            ("di\x0berent e\x0ecient", "different efficient"), ("W m⁻² CO₂ x²", "W m⁻² CO₂ x²"),
            ("bell\x07 and null\x00", "bell and null"), ("\uf0b7 item", "• item"), ("  two\n\tlines ", "two lines"),
            ("1850\u00961900 \u0093so\u0094 \u0085", "1850–1900 “so”"),
            ("1990\u00ad2020 1850\ufffd1900", "1990-2020 1850 1900"),
            ("5\ue001\ufffd6 \ufffdword", "5 6 word"),
        ],
    )  # fmt: skip
    def test_clean(self, raw: str, cleaned: str) -> None:
        assert clean(raw) == cleaned

    @given(st.text())
    def test_clean_twice_is_clean_once(self, text: str) -> None:
        once = clean(text)
        assert clean(once) == once
        assert "\n" not in once
        assert once == once.strip()

    @pytest.mark.parametrize(
        ("broken", "vocabulary", "joined"),
        [
            ("prob|lems", {}, "problems"),
            ("short|lived", {"short-lived": 2}, "short-lived"),
            ("short|lived", {"short": 3, "lived": 1}, "short-lived"),
            ("under|standing", {"under": 9, "standing": 2, "understanding": 1}, "understanding"),
            ("in|troduce", {"in": 9}, "introduce"),
            ("non|CO2", {}, "non-CO2"),
            ("Cross|Chapter", {}, "Cross-Chapter"),
            ("human|in-the-loop", {"human-in-the-loop": 1, "human": 1}, "human-in-the-loop"),
            ("INSTRUC|TION", {}, "INSTRUCTION"),
            ("1850|1900", {}, "1850-1900"),
            ("tem|pera|ture rises", {}, "temperature rises"),
        ],
    )
    def test_hyphens(self, broken: str, vocabulary: dict[str, int], joined: str) -> None:
        assert join_hyphens(broken.replace("|", LINE_END_HYPHEN), Counter(vocabulary)) == joined


class TestManyFiles:
    def test_a_bad_file_does_not_stop_the_others(self, tmp_path: Path) -> None:
        good = [write(tmp_path, "a.txt", b"Ice melts."), write(tmp_path, "z.md", b"Snow falls.")]
        bad = [
            write(tmp_path, "broken.pdf", b"%PDF-1.4 broken"),
            write(tmp_path, "empty.html", b""),
            write(tmp_path, "what.xyz", b"?"),
            tmp_path / "absent.pdf",
        ]
        results = list(read_all([good[0], *bad, good[1]]))
        assert [len(result.documents) for result in results] == [1, 0, 0, 0, 0, 1]
        reasons = [skipped.reason for result in results for skipped in result.skipped]
        assert reasons[0] == "broken.pdf is damaged or truncated; download it again."
        assert reasons[1] == "empty.html is empty."
        assert reasons[2].startswith("what.xyz is of an unknown kind; names must end in one of .csv ")
        assert reasons[3] == f"There is no file {tmp_path / 'absent.pdf'}."

    def test_an_unreadable_file_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path, "a.txt", b"Ice.")

        def refuse(*_: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("climassay.io.reading.os.open", refuse)
        assert read(path).skipped[0].reason == "a.txt cannot be read (permission denied)."

    def test_folders_are_walked_in_order(self, tmp_path: Path) -> None:
        for name in ("b/2.txt", "b/1.md", "a.csv.gz", "pic.png", ".hidden/x.txt", "c/.secret.txt"):
            write(tmp_path, name, b"x")
        found = find_files([tmp_path, tmp_path / "b" / "2.txt", tmp_path / "pic.png"])
        assert [str(path.relative_to(tmp_path)) for path in found] == ["a.csv.gz", "b/1.md", "b/2.txt", "pic.png"]

    def test_files_of_unknown_types_in_a_folder_are_counted(self, tmp_path: Path) -> None:
        for name in ("a.md", "one.tex", "b/two.tex", "three.pptx", ".hidden.tex", "Makefile"):
            write(tmp_path, name, b"Ice melts.")
        *_, last = read_all([tmp_path])
        assert last.documents == ()
        assert "4 (2 .tex, " in last.skipped[0].reason

    def test_too_large_a_file_is_not_read(self, tmp_path: Path) -> None:
        path = write(tmp_path, "a.txt", b"x" * 3000)
        assert (
            read(path, ReadOptions(max_bytes=2000)).skipped[0].reason == "a.txt is larger than the limit of 2000 bytes."
        )

    def test_a_pdf_is_known_by_its_content(self, tmp_path: Path) -> None:
        from pdf_building import column

        text = "Snow reflects most of the sunlight that falls on it, whereas open water absorbs almost all of it."
        path = write(tmp_path, "download", build_pdf([column(text, 50, 700, 480)]))
        assert read(path).documents[0].blocks[0].text == text


DATA = Path(__file__).parents[2] / ".." / "shared" / "data"


@pytest.mark.skipif(not DATA.exists(), reason="the shared data folder is absent")
class TestRealReports:
    def test_summary_for_policymakers(self) -> None:
        result = read(DATA / "pdf" / "ipcc_ar6_wg1_spm.pdf")
        (document,) = result.documents
        assert document.title == "IPCC AR6 WG1 (2021), Summary for Policymakers"
        tops = list(dict.fromkeys(block.headings[0] for block in document.blocks if block.headings))
        assert [top for top in tops if top[1] == "."] == [
            "A. The Current State of the Climate",
            "B. Possible Climate Futures",
            "C. Climate Information for Risk Assessment and Regional Adaptation",
            "D. Limiting Future Climate Change",
        ]
        statement = next(block for block in document.blocks if block.text.startswith("A.1.7 "))
        assert statement.page == 5
        assert "3.7 [3.2 to 4.2] mm yr⁻¹ between 2006 and 2018 (high confidence)" in statement.text
        assert statement.text.endswith("{2.3, 3.5, 9.6, Cross-Chapter Box 9.1, Box TS.4}")
        across = next(block for block in document.blocks if block.text.startswith("B.2.3 "))
        assert (across.page, across.last_page) == (15, 16)

    def test_two_column_chapter(self) -> None:
        (document,) = read(DATA / "pdf" / "ipcc_ar6_wg3_ch07_agriculture.pdf").documents
        joined = "\n".join(block.text for block in document.blocks)
        assert "It is likely that the NGHIs and FAOSTAT implicitly cover some part of this sink" in joined
        assert "Model results and atmospheric observations concur that, when combining both anthropogenic" in joined
        assert "Coordinating Lead" not in joined
        assert not any(block.text.startswith("Figure 7.4 |") for block in document.blocks)

    @pytest.mark.parametrize("name", ["nasa_climate_strategy_2023.txt", "unfccc_cma2025_08.txt"])
    def test_long_plain_documents(self, name: str) -> None:
        result = read(DATA / name)
        (document,) = result.documents
        assert not result.skipped
        assert len(document.blocks) > 150
        assert max(block.page or 0 for block in document.blocks) > 10


def test_the_pages_of_a_pdf_are_counted_while_they_are_read(tmp_path: Path) -> None:
    pages = [[Text(72, 700, f"Page {number} is about the carbon cycle.")] for number in range(3)]
    (tmp_path / "three.pdf").write_bytes(build_pdf(pages))
    seen: list[tuple[int, int]] = []
    read(tmp_path / "three.pdf", on_page=lambda page, of: seen.append((page, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


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
    assert (finding.location.paragraph, finding.location.page) == (1, None)


TABLE = 'words,work\n"Ice melts.",Ice\n"Snow – “falls”.",Snow\n'


def place(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_documents_come_back_as_they_were_read(tmp_path: Path) -> None:
    table = place(tmp_path, "t.csv", TABLE.encode())
    options = ReadOptions(columns=TableColumns(text="words", document=("work",)), licence="CC0")
    result = read_sandboxed(table, options, source="table.csv")
    assert [document.title for document in result.documents] == ["Ice", "Snow"]
    assert result == read(table, options, source="table.csv")


def test_what_was_left_out_comes_back_with_the_documents(tmp_path: Path) -> None:
    page = place(tmp_path, "p.html", b"<nav>Home</nav><p>Ice melts at 10<sup>2</sup> places.<sup>1</sup></p>")
    [document] = read_sandboxed(page, ReadOptions(), source="p.html").documents
    assert document.omitted_parts == (OmittedParts("navigation blocks", 1), OmittedParts("note marks", 1))


def test_pages_are_told_and_what_the_listener_raises_ends_the_reading(tmp_path: Path) -> None:
    pages = [[Text(72, 700, f"Page {number} is about the carbon cycle.")] for number in range(3)]
    pdf = place(tmp_path, "p.pdf", build_pdf(pages))
    seen = []
    result = read_sandboxed(pdf, ReadOptions(), source="p.pdf", on_page=lambda page, of: seen.append((page, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert result == read(pdf)

    class Enough(Exception):
        pass

    def stop(page: int, of: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        read_sandboxed(pdf, ReadOptions(), source="p.pdf", on_page=stop)


@pytest.mark.parametrize("limit", [{"max_memory": 1 << 20}, {"timeout": 0.0}], ids=["no-memory", "no-patience"])
def test_a_reader_that_dies_or_hangs_is_a_sentence(tmp_path: Path, limit: dict[str, float]) -> None:
    text = place(tmp_path, "ab12.txt", b"The ocean stores heat. " * 100)
    result = read_sandboxed(text, ReadOptions(), source="seas.txt", **limit)
    assert result.documents == ()
    assert result.skipped[0].reason.startswith("seas.txt cannot be read: the reader broke off")
