"""Word files: each figure comes back as readers see it, and what they do not see is left out and counted."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climassay.corpus import Document, ReadOptions, read
from climassay.corpus.readers.word import MAX_NESTING, read_docx
from word_building import field, lowered, merged, note, p, r, raised, style, t, table, word_file

CASES = Path(__file__).parents[2] / ".." / "shared" / "data" / "cases" / "documents"


def document(*body: str, **parts) -> Document:
    return read_docx(word_file(*body, **parts), "a.docx", ReadOptions())


def texts(*body: str, **parts) -> list[str]:
    return [block.text for block in document(*body, **parts).blocks]


def omitted_parts(*body: str, **parts) -> dict[str, int]:
    return {one.kind: one.count for one in document(p("Some text."), *body, **parts).omitted_parts}


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (f"<w:r>{t('1990')}<w:noBreakHyphen/>{t('2020')}</w:r>", "1990‑2020"),
        (f"<w:r>{t('emis')}<w:softHyphen/>{t('sions of 12')}</w:r>", "emissions of 12"),
        (f"<w:r>{t('1.5 ')}<w:sym w:font='Symbol' w:char='F0B0'/>{t('C')}</w:r>", "1.5 °C"),
        (f"<w:r>{t('5 ')}<w:sym w:font='Symbol' w:char='F0B1'/>{t(' 2')}</w:r>", "5 ± 2"),
        (f"<w:r>{t('5')}<w:sym w:font='Cambria' w:char='2013'/>{t('7')}</w:r>", "5–7"),
        (r("3 ") + r("\uf06d", '<w:rFonts w:ascii="Symbol"/>') + r("m"), "3 μm"),
        (r("10") + raised("2") + raised("2") + r(" J"), "10²² J"),
        (r("W m") + raised("−") + r("2", '<w:b/><w:vertAlign w:val="superscript"/>') + r(" now"), "W m⁻² now"),
        (r("10") + r("5", '<w:position w:val="6"/>') + r(" kg"), "10⁵ kg"),
        (r("in CO") + lowered("2") + r(" units"), "in CO2 units"),
        (f"<w:r>{t('12')}<w:cr/>{t('13')}<w:br w:type='page'/>{t('14')}<w:ptab/>{t('15')}</w:r>", "12 13 14 15"),
        ("<w:fldSimple w:instr='SEQ Table'>" + r("Table 4") + "</w:fldSimple>", "Table 4"),
        (r("See ") + field("REF _1 \\h", r("Section 7")), "See Section 7"),
        (
            r("By ") + field("IF </w:instrText></w:r>" + field("PAGE", r("99")) + "<w:r><w:instrText>", r("2 m")),
            "By 2 m",
        ),
        (field('HYPERLINK "x"', field('HYPERLINK "y"', r("nested 8"))), "nested 8"),
        ("<w:r><w:fldChar w:fldCharType='begin'/></w:r>" + r("never ended 6"), "never ended 6"),
        ("<w:hyperlink w:anchor='a'>" + r("Figure 3") + "</w:hyperlink>", "Figure 3"),
        ("<w:sdt><w:sdtPr/><w:sdtContent>" + r("held 11") + "</w:sdtContent></w:sdt>", "held 11"),
        ("<w:dir w:val='rtl'>" + r("right 21") + "</w:dir>", "right 21"),
        (r("rose ") + "<w:del><w:r><w:delText>9</w:delText></w:r></w:del><w:ins>" + r("7") + "</w:ins>", "rose 7"),
    ],
)
def test_the_characters_of_a_run_are_those_that_readers_see(run: str, text: str) -> None:
    assert texts(p(run)) == [text]


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        ("<m:f><m:num>{5}</m:num><m:den>{9}</m:den></m:f>", "5/9"),
        ("<m:f><m:num>{a+1}</m:num><m:den>{2.5}</m:den></m:f>", "(a+1)/2.5"),
        ("<m:sSup><m:e>{10}</m:e><m:sup>{−22}</m:sup></m:sSup>", "10⁻²²"),
        ("<m:sSup><m:e>{e}</m:e><m:sup>{-3.5t}</m:sup></m:sSup>", "e^(-3.5t)"),
        ("<m:sSub><m:e>{CO}</m:e><m:sub>{2}</m:sub></m:sSub>", "CO₂"),
        ("<m:rad><m:deg/><m:e>{16}</m:e></m:rad>", "√16"),
        ("<m:d><m:e>{3}</m:e><m:e>{4}</m:e></m:d>", "(3|4)"),
        (
            "<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{1}</m:sub><m:sup>{9}</m:sup><m:e>{x}</m:e>"
            "</m:nary>",
            "∑₁⁹ x",
        ),
        ("<m:m><m:mr><m:e>{1}</m:e><m:e>{2}</m:e></m:mr><m:mr><m:e>{3}</m:e><m:e>{4}</m:e></m:mr></m:m>", "1 2; 3 4"),
    ],
)  # fmt: skip
def test_equations_become_text_with_their_figures(equation: str, text: str) -> None:
    written = re.sub(r"\{(.*?)\}", r"<m:r><m:t>\1</m:t></m:r>", equation)
    assert texts(p("It is ", f"<m:oMathPara><m:oMath>{written}</m:oMath></m:oMathPara>", "here.")) == [
        f"It is {text} here."
    ]


def test_equations_that_cannot_be_read_are_counted() -> None:
    picture = '<w:r><w:object><v:shape/><o:OLEObject ProgID="Equation.DSMT4"/></w:object></w:r>'
    assert omitted_parts(p(picture), p(field("EQ \\f(1,2)", ""))) == {
        "equations stored as pictures": 1,
        "equations stored as fields": 1,
    }


NOTES = (
    f'<w:footnote w:id="0" w:type="separator">{p("line")}</w:footnote>'
    f'<w:footnote w:id="2">{p("<w:r><w:footnoteRef/></w:r>", " Since 1750.")}{p("And 1850.")}</w:footnote>'
    f'<w:footnote w:id="3">{p("In the cell.")}</w:footnote>'
)


def test_footnotes_follow_their_paragraph_and_leave_no_mark() -> None:
    read_document = document(p("By 320", note(2), " ppm."), p("Next."), footnotes=NOTES)
    assert [(block.text, block.footnote) for block in read_document.blocks] == [
        ("By 320 ppm.", False),
        ("Since 1750.", True),
        ("And 1850.", True),
        ("Next.", False),
    ]
    assert texts(p("By 320", note(2, "1"), " ppm."), footnotes=NOTES)[0] == "By 320 ppm."


def test_footnotes_of_a_table_follow_the_table() -> None:
    cell = f"<w:tc>{p('320', note(3))}</w:tc>"
    blocks = document(table(["Year", "Level"], ["1990", cell]), p("Next."), footnotes=NOTES).blocks
    assert [block.text for block in blocks][-3:] == ["Year: 1990; Level: 320", "In the cell.", "Next."]
    assert [block.footnote for block in blocks][-3:] == [False, True, False]


BOX = f"<w:txbxContent>{p('In the box: 77.')}</w:txbxContent>"
CHOICE = f"<mc:Choice Requires='wps'><w:drawing><wps:txbx>{BOX}</wps:txbx></w:drawing></mc:Choice>"
FALLBACK = f"<mc:Fallback><w:pict><v:shape><v:textbox>{BOX}</v:textbox></v:shape></w:pict></mc:Fallback>"


@pytest.mark.parametrize("branches", [CHOICE + FALLBACK, CHOICE, FALLBACK, CHOICE + "<mc:Fallback/>"])
def test_the_text_of_a_box_comes_once_and_after_its_paragraph(branches: str) -> None:
    box = f"<w:r><mc:AlternateContent>{branches}</mc:AlternateContent></w:r>"
    assert texts(p("Around 1 ", box, "and 2.")) == ["Around 1 and 2.", "In the box: 77."]


def test_moved_text_comes_once_and_at_its_new_place() -> None:
    moved = p("<w:moveFrom>" + r("Moved 5.") + "</w:moveFrom>"), p("<w:moveTo>" + r("Moved 5.") + "</w:moveTo>")
    assert texts(moved[0], p("Between."), moved[1]) == ["Between.", "Moved 5."]


def test_a_deleted_end_joins_paragraphs() -> None:
    joined = p("Emissions of ", properties="<w:rPr><w:del/></w:rPr>"), p("12 Gt.")
    assert texts(*joined, p("Last ", properties="<w:rPr><w:del/></w:rPr>")) == ["Emissions of 12 Gt.", "Last"]


def test_what_readers_do_not_see_is_left_out_and_counted() -> None:
    hidden = style("Secret", "Secret", "<w:rPr><w:vanish/></w:rPr>", "character")
    body = (
        p(r("Hidden 1.", "<w:vanish/>"), r("Hidden 2.", "<w:vanish/>"), "Seen 3."),
        p(r("Hidden 4.", '<w:rStyle w:val="Secret"/>')),
        p(r("Seen 5.", '<w:rStyle w:val="Secret"/><w:vanish w:val="0"/>')),
        p("<w:del><w:r><w:delText>Gone 6.</w:delText></w:r></w:del>", "Seen 7."),
        p("Contents 8", properties='<w:pStyle w:val="T"/>'),
        p('<w:r><w:commentReference w:id="1"/></w:r>', "<w:r><w:drawing><c:chart/></w:drawing></w:r>"),
    )
    field_text = f"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{r('Enter 10.')}</w:sdtContent></w:sdt>"
    assert texts(p("Seen 9.", field_text)) == ["Seen 9."]
    assert omitted_parts(p(field_text)) == {"empty form fields": 1}
    struck = p(
        "Kept.", r("Struck 11.", "<w:strike/>"), r(" Not 12.", '<w:strike w:val="0"/>'), r("13.", "<w:dstrike/>")
    )
    assert texts(struck) == ["Kept. Not 12."]
    assert omitted_parts(struck) == {"struck-out parts": 2}
    parts = {"styles": hidden + style("T", "toc 1"), "header1": p("Draft 9"), "comments": p("Comment 10")}
    assert texts(*body, **parts) == ["Seen 3.", "Seen 5.", "Seen 7."]
    assert omitted_parts(*body, **parts) == {
        "hidden paragraphs": 2,
        "tracked deletions": 1,
        "entries of the table of contents": 1,
        "comments": 1,
        "charts": 1,
        "headers and footers": 1,
    }


def test_headings_are_told_by_name_base_and_outline() -> None:
    styles = (
        style("Kop1", "heading 1")
        + style("Own", "Chapter", '<w:basedOn w:val="Kop1"/>')
        + style("Uberschrift", "Überschrift 2")
        + style("Outline", "Deep", '<w:pPr><w:outlineLvl w:val="2"/></w:pPr>')
    )
    body = [
        p(name, properties=f'<w:pStyle w:val="{style_id}"/>') + p(f"Below {name}.")
        for name, style_id in (("Seas", "Own"), ("Ice", "Uberschrift"), ("Snow", "Outline"))
    ]
    long = p("A long text. " * 30, properties='<w:pStyle w:val="Kop1"/>')
    blocks = document(*body, long, styles=styles).blocks
    assert [block.headings for block in blocks][:3] == [("Seas",), ("Seas", "Ice"), ("Seas", "Ice", "Snow")]
    assert blocks[-1].text.startswith("A long text.")


def test_rows_of_tables_name_their_columns_and_keep_figures_in_their_place() -> None:
    rows = (
        ["Year", "CO2", "CH4"],
        ["1990", "320", "41"],
        ["2000", "", "42"],
        [merged("2010", '<w:vMerge w:val="restart"/>'), "340", "43"],
        [merged("", "<w:vMerge/>"), "341", "44"],
    )
    assert texts(table(*rows)) == [
        "Year: 1990; CO2: 320; CH4: 41",
        "Year: 2000; CH4: 42",
        "Year: 2010; CO2: 340; CH4: 43",
        "Year: 2010; CO2: 341; CH4: 44",
    ]


def test_cells_over_several_columns_and_rows_that_begin_later() -> None:
    late = (
        "<w:tr><w:trPr><w:gridBefore w:val='1'/></w:trPr><w:tc>" + p("7") + "</w:tc><w:tc>" + p("8") + "</w:tc></w:tr>"
    )
    rows = table(["Year", "Low", "High"], ["1990", merged("5", '<w:gridSpan w:val="2"/>')]).replace("</w:tbl>", late)
    assert "Low: 7; High: 8" in texts(rows + "</w:tbl>")[-1]


def test_a_table_of_one_cell_is_a_box_around_text() -> None:
    box = f"<w:tc>{p('Box 1')}{p('First 3.')}{p('Second 4.')}</w:tc>"
    assert texts(table([box])) == ["Box 1", "First 3.", "Second 4."]


def test_strict_files_and_documents_under_another_name() -> None:
    body = (
        p("W m", raised("−2"), " with a note", note(2), "."),
        p("<m:oMath><m:r><m:t>7</m:t></m:r></m:oMath>", " is 7."),
    )
    expected = ["W m⁻² with a note.", "Since 1750.", "And 1850.", "7 is 7."]
    assert texts(*body, strict=True, footnotes=NOTES) == expected
    assert texts(*body, main="word/document2.xml", footnotes=NOTES) == expected


def test_pictures_elsewhere_are_never_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a Word file made the reader open an address")

    monkeypatch.setattr("mammoth.docx.files.urlopen", refuse)
    blip = (
        '<w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" '
        'xmlns:q="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><a:graphic><a:graphicData>'
        '<pic:pic><pic:blipFill><a:blip q:link="x"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline>'
        "</w:drawing></w:r>"
    )
    assert omitted_parts(p(blip)) == {"pictures": 1}


def test_tables_within_each_other_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    for depth in (5, 10, 20, 30, MAX_NESTING):
        nested = p("Deep 5.")
        for _ in range(depth):
            nested = f"<w:tbl><w:tr><w:tc>{nested}</w:tc><w:tc>{p('2')}</w:tc></w:tr></w:tbl>"
        (tmp_path / "a.docx").write_bytes(word_file(nested))
        result = read(tmp_path / "a.docx")
        assert result.documents or result.skipped[0].reason.endswith("as in attacks.")
        assert depth > 10 or result.documents


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
@pytest.mark.parametrize(
    ("name", "figures"),
    [("strict.docx", []), ("awkward.docx", ["1990‑2020"])],
)
def test_cases_from_the_field(name: str, figures: list[str]) -> None:
    (read_document,) = read(CASES / name).documents
    joined = "\n".join(block.text for block in read_document.blocks)
    assert all(figure in joined for figure in figures)


WORDS = st.sampled_from(["emissions", "rose", "by", "between", "and", "levels", "of"])
NUMBERS = st.from_regex(r"[1-9][0-9]{0,3}(?:\.[0-9]{1,2})?", fullmatch=True)
PARTS = st.one_of(
    st.tuples(WORDS, st.just("")).map(lambda pair: (r(f" {pair[0]} "), [])),
    NUMBERS.map(lambda number: (r(f" {number} "), [number])),
    st.tuples(NUMBERS, NUMBERS).map(
        lambda pair: (f"<w:r>{t(' ' + pair[0])}<w:noBreakHyphen/>{t(pair[1] + ' ')}</w:r>", list(pair))
    ),
    st.tuples(st.integers(1, 99)).map(lambda one: (r(" 10") + raised(str(one[0])) + r(" J "), [f"10^{one[0]}"])),
    st.tuples(st.integers(1, 9)).map(lambda one: (r(" W m") + raised(f"−{one[0]}") + r(" s "), [f"^-{one[0]}"])),
    st.just((r(" CO") + lowered("2") + r(" x "), ["2"])),
)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def numbers(text: str) -> list[str]:
    written = re.sub(r"[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda match: f"^{match.group().translate(RAISED)}", text)
    return re.findall(r"\d+(?:\.\d+)?(?:\^-?\d+)?|\^-?\d+", written)


@settings(max_examples=60, deadline=None)
@given(paragraphs=st.lists(st.lists(PARTS, min_size=1, max_size=8), min_size=1, max_size=4))
def test_any_sequence_of_words_and_figures_comes_back(paragraphs: list[list[tuple[str, list[str]]]]) -> None:
    body = [p("Words: ", *(run for run, _ in parts), " end.") for parts in paragraphs]
    expected = [number for parts in paragraphs for _, figures in parts for number in figures]
    assert numbers("\n".join(texts(*body))) == expected


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_the_cells_of_any_table_come_back(rows: list[tuple[str, str, str]]) -> None:
    body = table(["Year", "Low", "High"], *map(list, rows))
    assert numbers("\n".join(texts(body))) == [number for row in rows for number in row]
