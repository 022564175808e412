"""Web pages as people save them: raised figures, tables, XHTML, encodings, furniture; what is left out is counted."""

import codecs
from pathlib import Path

import pytest

from climassay.corpus import Document, OmittedParts, ReadOptions, read
from climassay.corpus.readers.html import read_html_text, xml_to_html
from climassay.corpus.readers.table_rows import TableCell, expand_spans, format_rows

LONG = "The glaciers of the region lost mass in each year of the record, and the loss has become faster since. " * 4


def texts(markup: str) -> list[str]:
    return [block.text for block in read_html_text(markup, "page.html")[0]]


def counts(markup: str) -> dict[str, int]:
    return {entry.kind: entry.count for entry in read_html_text(markup, "page.html")[1]}


def read_bytes(folder: Path, name: str, data: bytes, options: ReadOptions | None = None) -> Document:
    path = folder / name
    path.write_bytes(data)
    (document,) = read(path, options).documents
    return document


NOTE_NAMED = '<sup class="x-Superscript--e-g--footnote-refs-in-text- CharOverride-3">'


class TestTitleAndFallback:
    def test_a_heading_that_the_title_does_not_have_is_kept(self, tmp_path: Path) -> None:
        page = f"<title>{{}}</title><article><h1>Ice in 2020</h1><p>{LONG}</p></article>"
        document = read_bytes(tmp_path, "x.html", page.format("The Daily Site").encode())
        assert document.blocks[0].headings == ("Ice in 2020",)
        document = read_bytes(tmp_path, "x.html", page.format("Ice in 2020 | The Daily Site").encode())
        assert document.blocks[0].headings == ()

    def test_a_page_whose_text_is_for_readers_without_scripts(self, tmp_path: Path) -> None:
        page = f"<title>T</title><div id=app></div><noscript><h1>Ice</h1><p>{LONG}{LONG}</p></noscript>"
        document = read_bytes(tmp_path, "x.html", page.encode())
        assert document.blocks[0].text.startswith("The glaciers")
        request = b"<title>T</title><div id=app></div><noscript>Please enable JavaScript to run this app.</noscript>"
        (tmp_path / "y.html").write_bytes(request)
        assert "has no text" in read(tmp_path / "y.html").skipped[0].reason


class TestRaisedFigures:
    @pytest.mark.parametrize(
        ("markup", "text"),
        [
            # The name of a class does not make an exponent a note.
            (f"–1.1 W m{NOTE_NAMED}–2</sup>", "–1.1 W m⁻²"),
            (f"10{NOTE_NAMED}22</sup> J over 10⁶ km{NOTE_NAMED}2</sup>", "10²² J over 10⁶ km²"),
            (f"W m{NOTE_NAMED}–</sup>{NOTE_NAMED}2</sup>", "W m⁻²"),
            (f"δ{NOTE_NAMED}13</sup>C and {NOTE_NAMED}14</sup>CO<sub>2</sub>", "δ¹³C and ¹⁴CO2"),
            (f"explained (r{NOTE_NAMED}2</sup> = 0.9)", "explained (r² = 0.9)"),
            ("2<sup>80</sup> calls, x ≥ 10<sup>21</sup>", "2⁸⁰ calls, x ≥ 10²¹"),
            ("10<sup>5–6</sup> and 10<sup>-2.5</sup>", "10⁵⁻⁶ and 10^(-2.5)"),
            ("SO<sub>4</sub><sup>2−</sup> and Na<sup>+</sup>", "SO4²⁻ and Na⁺"),
            ("1.2<sup>+0.3</sup><sub>−0.2</sub> K", "1.2 +0.3 −0.2 K"),
            ("log<sub>10</sub>5 and PM<sub>2.5</sub>", "log₁₀5 and PM2.5"),
            ("PM<sub>2.5</sub>10 and 10<sup>0.5</sup>3", "PM2.5 10 and 10^(0.5)3"),
            ("3<sup>1</sup>/<sub>2</sub> or <sup>1</sup>&frasl;<sub>4</sub>", "3 1/2 or 1⁄4"),
            ("the 19<sup>th</sup> century at 25<sup>o</sup>C", "the 19th century at 25ºC"),
            ("m<sup>1/2</sup>, x<sup>n+1</sup>, e<sup>−kt</sup>", "m^(1/2), xⁿ⁺¹, e^(−kt)"),
            ("10<sup>3<sup>2</sup></sup> ways", "10^(3²) ways"),
            ("km <sup>2</sup> and 10 <sup>6</sup>", "km ² and 10 ⁶"),
            ("10<span style='vertical-align: super'>22</span> J, CO<span class='sub'>2</span>", "10²² J, CO2"),
            ("15 км<sup>2</sup>, 5公里<sup>2</sup>, (kg m<sup>-3</sup>)<sup>2</sup>", "15 км², 5公里², (kg m⁻³)²"),
        ],
    )
    def test_exponents_and_fractions(self, markup: str, text: str) -> None:
        assert texts(f"<p>{markup}</p>") == [text]
        assert counts(f"<p>{markup}</p>") == {}

    @pytest.mark.parametrize(
        ("markup", "text", "marks"),
        [
            ("was $320<sup>1</sup> in 2019<sup>3</sup>.", "was $320 in 2019.", 2),
            ("320<sup>a</sup> and 45%<sup>2</sup>", "320 and 45%", 2),
            ("320<sup>1</sup>5 more", "320 5 more", 1),
            ("above 1.5°C<sup>3</sup> by", "above 1.5°C by", 1),
            ("of glaciers<sup>12</sup> (IPCC)<sup>4</sup>", "of glaciers (IPCC)", 2),
            ("the end.<sup>5</sup><sup>,</sup><sup>6</sup> Then", "the end. Then", 1),
            ("Beck,<sup>1,</sup><sup>2,</sup> and", "Beck, and", 1),
            ("warm<sup>[citation needed]</sup> ice<sup>[nb 2]</sup>", "warm ice", 2),
            ("Beck,<sup>1,</sup><sup>2,</sup><sup>*</sup> Shorter<sup>1,†</sup>", "Beck, Shorter", 2),
            ("<sup>1</sup> See the annex", "See the annex", 1),
            ("500 hPa<sup>1</sup>, 410 ppm<sup>3</sup>, das Klima<sup>12</sup>", "500 hPa, 410 ppm, das Klima", 3),
            ("rose<a href='#fn1' role='doc-noteref'><sup>1</sup></a> <a href='#r1'>↩︎</a>", "rose", 1),
            ('stieg<a epub:type="noteref" href="#n1">1</a> weiter', "stieg weiter", 1),
        ],
    )
    def test_marks_of_notes_are_left_out_and_counted(self, markup: str, text: str, marks: int) -> None:
        assert texts(f"<p>{markup}</p>") == [text]
        assert counts(f"<p>{markup}</p>") == {"note marks": marks}

    def test_headings_and_captions_are_read_by_the_same_rules(self) -> None:
        markup = "<h2>Budget<sup>3</sup> in 10<sup>6</sup> t</h2><p>Text.</p>"
        blocks, omitted_parts = read_html_text(markup, "page.html")
        assert blocks[0].headings == ("Budget in 10⁶ t",)
        assert omitted_parts == (OmittedParts("note marks", 1),)

    @pytest.mark.parametrize(
        ("math", "text"),
        [
            ("<msup><mn>10</mn><mn>22</mn></msup><mi>J</mi>", "10²²J"),
            ("<msup><mi>m</mi><mrow><mo>−</mo><mn>2</mn></mrow></msup>", "m⁻²"),
            ("<mfrac><mn>1</mn><mn>3</mn></mfrac><mn>12</mn>", "1/3 12"),
            ("<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mn>2</mn></mfrac>", "(a+1)/2"),
            ("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>", "x1²"),
            ("<msqrt><mn>2</mn></msqrt><mo>=</mo><mn>1.41</mn>", "√(2)=1.41"),
            ("<mn>15</mn><mfenced><mn>0</mn><mn>1</mn></mfenced>", "15(0, 1)"),
            ("<semantics><mrow><mn>5</mn></mrow><annotation>\\text{5}</annotation></semantics>", "5"),
        ],
    )
    def test_mathml_without_alternative_text(self, math: str, text: str) -> None:
        assert texts(f"<p>So <math>{math}</math> holds.</p>") == [f"So {text} holds."]

    def test_empty_math_has_its_alternative_text(self) -> None:
        assert texts('<p>So <math alttext="10^{22}"></math> holds.</p>') == ["So 10^{22} holds."]


def table(*rows: str, head: str = "") -> str:
    return f"<table>{head}{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


class TestTables:
    @pytest.mark.parametrize(
        ("markup", "rows"),
        [
            (
                table("<th>Year<th>CO2<th>CH4", "<td>1990<td>320<td>41", "<td>2005<td>301<td>38"),
                ["Year: 1990; CO2: 320; CH4: 41", "Year: 2005; CO2: 301; CH4: 38"],
            ),
            (table("<td>Year<td>CO2", "<td>1990<td>320"), ["Year: 1990; CO2: 320"]),
            (
                table("<td>Sector<td>1990<td>2020", "<td>Waste<td><td>11", "<td>Land<td>5<td>8"),
                ["Sector: Waste; 2020: 11", "Sector: Land; 1990: 5; 2020: 8"],
            ),
            (table("<td>1990<td>320", "<td>2005<td>301"), ["1990 | 320", "2005 | 301"]),
            (table("<td>a<td>b", "<td>f<td>", "<td><td>g"), ["a | b", "f", "| g"]),
            (
                table("<th>Sector<th>Mt", "<td>Energy<br>use<td>320<sup>1</sup>", "<td>People (10<sup>6</sup>)<td>58"),
                ["Sector: Energy use; Mt: 320", "Sector: People (10⁶); Mt: 58"],
            ),
            (  # a head of two rows, and a cell over two of them
                table("<th rowspan=2>Gas<th colspan=2>Emissions", "<th>1990<th>2020", "<td>CO2<td>5<td>7"),
                ["Gas: CO2; Emissions 1990: 5; Emissions 2020: 7"],
            ),
            (  # cells over several rows and columns
                table("<th>Area<th>Year<th>Low<th>High", "<td rowspan=2>Sea<td>1990<td>1<td>2")[:-8]
                + "<tr><td>2020<td colspan=2>n.a.</tr></table>",
                ["Area: Sea; Year: 1990; Low: 1; High: 2", "Area: Sea; Year: 2020; Low, High: n.a."],
            ),
            (  # equal values under equal names
                table("<th>Gas<th>Mt<th>Mt", "<td>CO2<td>5<td>5"),
                ["Gas: CO2; Mt: 5; Mt: 5"],
            ),
            (  # heads of rows
                table("<td><th>Low<th>High", "<th>2050<td>1.2<td>1.7", head="<caption>Warming in °C</caption>"),
                ["Warming in °C", "| Low | High", "2050 | 1.2 | 1.7"],
            ),
            (  # a title over all columns, and one within
                table("<th colspan=2>Emissions", "<th>Gas<th>Mt", "<td colspan=2>Without land use", "<td>CO2<td>5"),
                ["Emissions", "Without land use", "Gas: CO2; Mt: 5"],
            ),
            (  # lists and paragraphs in cells, as Word files have
                table("<td><p><b>Gas</b></p><td><p><b>Mt</b></p>", "<td><p>CO2</p><td><ul><li>5</li><li>6</li></ul>"),
                ["Gas: CO2; Mt: 5 6"],
            ),
            (table("", "<td>foo<td>1"), ["foo | 1"]),
            (table("<th>Year", "<td>1990", "<td>2000"), ["Year: 1990", "Year: 2000"]),
            (table("<th><th>", "<td>1990<td>5"), ["1990 | 5"]),
            (table("<th>a<th>b<th>c", "<td>1", "<td>2<td>3<sup>2</sup><sup>,</sup><sup>5</sup>"),
                ["a: 1", "a: 2; b: 3"]),
            (table("<td>Sea ice<td>Arctic", "<td>Extent<td>14.06"), ["Sea ice | Arctic", "Extent | 14.06"]),
        ],
    )  # fmt: skip
    def test_rows_name_their_columns(self, markup: str, rows: list[str]) -> None:
        assert texts(markup) == rows

    def test_a_table_in_a_cell_is_read_after_its_row(self) -> None:
        inner = table("<td>1990<td>320", "<td>2005<td>301")
        rows = texts(table("<th>Gas<th>Values", f"<td>CO2<td>see below {inner}", "<td>CH4<td>41"))
        assert rows == ["Gas: CO2; Values: see below", "Gas: CH4; Values: 41", "1990 | 320", "2005 | 301"]

    def test_a_table_that_places_prose_is_walked_through(self) -> None:
        markup = table(
            f"<td><p>{LONG}</p><p>It goes on.</p>{table('<th>Year<th>Mt', '<td>1990<td>5')}<td><p>Beside.</p>"
        )
        assert texts(markup) == [LONG.strip(), "It goes on.", "Year: 1990; Mt: 5", "Beside."]

    def test_spans_of_an_attack_do_not_fill_the_memory(self) -> None:
        rows = [[TableCell("x", 65_534, 1000)] * 20 for _ in range(400)]
        assert sum(map(len, expand_spans(rows))) < 1_000_000
        assert len(texts(table(*["<td rowspan=65534 colspan=999>1<td rowspan=9999>2"] * 500))) == 500

    def test_rows_that_other_readers_bring(self) -> None:
        rows = [["Year", "CO2", "CO2"], ["1990", "5", "5"], ["2000", "", "6"]]
        assert format_rows(rows) == ["Year: 1990; CO2: 5; CO2: 5", "Year: 2000; CO2: 6"]
        assert format_rows(rows, 0)[2] == "2000 | | 6"
        assert format_rows(rows[:1], 1) == ["Year | CO2 | CO2"]
        assert format_rows([]) == []


HEAD = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x.js"/><style/></head>'


class TestXhtml:
    def test_elements_without_content_end_where_they_begin(self) -> None:
        body = '<h1>Ice<a id="p8"/></h1><div class="nav"/><p>It melts<br/> at 0&nbsp;°C.<a id="x"/> So.</p>'
        markup = f"{HEAD}<body>{body}</body></html>"
        blocks, _ = read_html_text(markup, "x.xhtml")
        assert [(block.text, block.headings) for block in blocks] == [("It melts at 0 °C. So.", ("Ice",))]

    def test_a_script_that_ends_at_once_does_not_swallow_a_page_that_is_no_xml(self) -> None:
        assert texts('<html><head><script src="x"/></head><body><p>Ice & snow<p>2 m deep</body></html>') == [
            "Ice & snow", "2 m deep",
        ]  # fmt: skip

    def test_ordinary_pages_are_not_taken_for_xml(self) -> None:
        assert xml_to_html("<p>one<p>two<br>") is None
        assert xml_to_html("<p>R&D</p>") is None

    @pytest.mark.parametrize(
        "entity", ['<!ENTITY a "bomb">', '<!ENTITY a SYSTEM "file:///etc/passwd">', '<!ENTITY % a SYSTEM "http://x/y">']
    )
    def test_entities_are_neither_defined_nor_fetched(self, entity: str) -> None:
        markup = f"<!DOCTYPE html [{entity}]><html><body><p>It is &a; warm.</p></body></html>"
        assert xml_to_html(markup) is None
        assert "bomb" not in " ".join(texts(markup)).replace('"bomb"', "")
        assert "root:" not in " ".join(texts(markup))

    def test_names_of_html_are_known_although_the_definition_is_elsewhere(self) -> None:
        dtd = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
        assert texts(f"{dtd}{HEAD}<body><p>5&thinsp;&deg;C &amp; more</p></body></html>") == ["5 °C & more"]

    def test_prefixed_elements_and_data_sections(self) -> None:
        body = "<h:body><h:p>a &lt; b <![CDATA[& 5 < 6]]></h:p></h:body>"
        markup = f'<h:html xmlns:h="http://www.w3.org/1999/xhtml">{body}</h:html>'
        assert texts(markup) == ["a < b & 5 < 6"]


class TestEncodings:
    @pytest.mark.parametrize("label", ["iso-8859-1", "latin1", "ISO8859-1", "us-ascii", "l1", "windows-1252"])
    def test_latin_1_means_windows_1252(self, tmp_path: Path, label: str) -> None:
        page = f'<meta http-equiv="Content-Type" content="text/html; charset={label}"><p>1850–1900: 1 °C, €450</p>'
        document = read_bytes(tmp_path, "x.html", page.encode("cp1252"))
        assert document.blocks[0].text == "1850–1900: 1 °C, €450"

    @pytest.mark.parametrize(
        ("label", "codec"),
        [
            ("shift_jis", "cp932"), ("gb2312", "gbk"), ("iso-8859-2", "iso-8859-2"), ("koi8-r", "koi8-r"),
            ("windows-1251", "cp1251"), ("euc-kr", "cp949"), ("iso-8859-9", "cp1254"),
        ],
    )  # fmt: skip
    def test_labels_of_the_standard(self, tmp_path: Path, label: str, codec: str) -> None:
        text = {"cp932": "海面水位①", "gbk": "海平面镕", "iso-8859-2": "Łódź", "koi8-r": "климат", "cp1251": "лёд №5",
                "cp949": "해수면", "cp1254": "İklim – değişti"}[codec]  # fmt: skip
        page = f'<meta charset="{label}"><p>{text} 1.5</p>'
        assert read_bytes(tmp_path, "x.html", page.encode(codec)).blocks[0].text == f"{text} 1.5"

    @pytest.mark.parametrize("label", ["iso-8859-1", "utf-16", "no-such-encoding"])
    @pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["bare", "marked"])
    def test_what_is_utf_8_is_read_as_such(self, tmp_path: Path, label: str, mark: bytes) -> None:
        data = mark + f'<meta charset="{label}"><p>1850–1900, 1 °C</p>'.encode()
        assert read_bytes(tmp_path, "x.html", data).blocks[0].text == "1850–1900, 1 °C"

    def test_a_page_that_was_saved_anew_under_its_old_label(self, tmp_path: Path) -> None:
        for text in ("人工智能迈上新台阶的电脑 5", "联通"):
            codec = "utf-8" if len(text) > 2 else "gbk"
            data = f'<meta charset="gb2312"><p>{text}</p>'.encode(codec)
            assert read_bytes(tmp_path, "x.html", data).blocks[0].text == text

    @pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
    def test_utf_16_with_an_xml_declaration(self, tmp_path: Path, codec: str) -> None:
        page = '<?xml version="1.0" encoding="utf-16"?><html><body><p>Der Rückgang beträgt 61 %.</p></body></html>'
        assert read_bytes(tmp_path, "x.xhtml", page.encode(codec)).blocks[0].text == "Der Rückgang beträgt 61 %."

    def test_one_stray_byte_spoils_no_other_character(self, tmp_path: Path) -> None:
        good = "Größe der Änderung: 1,5 °C – überall. ".encode()
        for name in ("x.html", "x.txt", "x.md"):
            start = b"<p>" if name == "x.html" else b""
            document = read_bytes(tmp_path, name, start + good + b"1850\x961900 in \xd6sterreich. " + good)
            text = "Größe der Änderung: 1,5 °C – überall."
            assert document.blocks[0].text == f"{text} 1850–1900 in Österreich. {text}"

    @pytest.mark.parametrize("name", ["x.html", "x.txt", "x.md"])
    def test_signs_that_were_taken_for_control_characters(self, tmp_path: Path, name: str) -> None:
        text = "<p>The mean of 1850\u00961900 was \u009350\u0094 \x80 lower.</p>"
        document = read_bytes(tmp_path, name, text.removeprefix("" if "html" in name else "<p>").encode())
        assert document.blocks[0].text.startswith("The mean of 1850–1900 was “50” € lower.")

    def test_references_by_number_to_the_same_signs(self) -> None:
        xml = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>1850&#150;1900&#x99;</p></body></html>'
        assert texts("<p>1850&#150;1900&#x99;") == texts(xml) == ["1850–1900™"]


class TestFurniture:
    @pytest.mark.parametrize(
        "name",
        [
            "social-and-economic-impacts", "share-of-renewables", "related-work", "comments-on-uncertainty",
            "social-rel", "contentWithSidebar", "shared-mutable-history", "gdpr-IntroParagraph", "ad-hoc-measures",
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("tag", ["section", "div", "p"])
    def test_names_of_sections_delete_nothing(self, tag: str, name: str) -> None:
        sentence = "Heat mortality rose by 34% between 1991 and 2018."
        for attribute in ("id", "class"):
            markup = f'<body><h1>Report</h1><{tag} {attribute}="{name}">{sentence}</{tag}></body>'
            assert texts(markup) == [sentence]

    def test_a_section_called_like_furniture_that_is_long_or_has_a_heading(self) -> None:
        assert texts(f'<div id="social">{LONG}</div>') == [LONG.strip()]
        assert texts("<section id=comments><h2>Comments</h2><p>Only 14 stations.</p></section>") == [
            "Only 14 stations."
        ]

    def test_a_sentence_in_a_sidebar_is_read(self) -> None:
        assert texts('<div class="sidebar"><p>The air had 421 ppm of it.</p></div>') == ["The air had 421 ppm of it."]
        assert texts('<div class="share">Share 12</div><p>Text 1.</p>') == ["Text 1."]

    def test_a_form_around_the_page_is_read(self) -> None:
        form = '<form id="aspnetForm"><input type="hidden" value="abc"><div>{}</div><button>Go</button></form>'
        assert texts(form.format("<h1>Sea level</h1><p>It rose by 2.4 mm per year.</p>")) == [
            "It rose by 2.4 mm per year."
        ]
        assert texts(form.format(f"<p>{LONG}</p>")) == [LONG.strip()]
        assert texts(form.format("<p>Search</p>") + f"<p>{LONG}</p>") == [LONG.strip()]

    @pytest.mark.parametrize(
        ("aside", "is_read"),
        [
            ("<p>Sea level rose 20 cm.</p>", True), (f"<p>{LONG}</p>", True), ("<p>1.1 °C warmer</p>", True),
            ("Read also: penguins", False), ("<a href='/1'>Ice lost 5% of its mass</a> <a href='/2'>More</a>", False),
        ],
    )  # fmt: skip
    def test_asides_with_findings_are_read(self, aside: str, is_read: bool) -> None:
        markup = f"<article><p>{LONG}</p><aside>{aside}</aside></article>"
        assert len(texts(markup)) == 1 + is_read
        assert counts(markup) == ({} if is_read else {"navigation blocks": 1})

    def test_whatever_is_left_out_is_counted(self) -> None:
        links = "".join(f'<li><a href="/{number}">Page {number}</a></li>' for number in range(9))
        markup = (
            f"<body><nav><ul>{links}</ul></nav><div class='cookie-banner'>We use cookies.</div>"
            f"<main><h1>Ice</h1><p>{LONG}</p><pre><code>x = 1</code></pre><p hidden>Hidden 5.</p>"
            "<figure><img src=a.png><figcaption>Figure 1. Ice in 2020.</figcaption></figure>"
            "<p>Sort<span style='display:none'>7001100</span> 10</p></main>"
            "<p>A sentence beside the main part.</p><footer>Contact</footer></body>"
        )
        assert texts(markup) == [LONG.strip(), "Figure 1. Ice in 2020.", "Sort 10"]
        assert counts(markup) == {
            "navigation blocks": 3, "code blocks": 1, "hidden parts": 2, "figures": 1, "blocks outside the article": 1,
        }  # fmt: skip

    @pytest.mark.parametrize("mark", ['epub:type="pagebreak"', 'role="doc-pagebreak"'])
    def test_page_numbers_of_the_printed_book_do_not_join_figures(self, mark: str) -> None:
        page = f"<p>It rose at 1<span {mark}>12</span>50 sites.</p>"
        assert texts(page) == ["It rose at 150 sites."]
        assert counts(page) == {"page numbers": 1}
        assert texts(f"<div {mark}><p>It rose at 150 sites.</p></div>") == ["It rose at 150 sites."]

    def test_struck_out_figures_do_not_join_others(self) -> None:
        assert texts("<p>It rose by <del>2</del><ins>3</ins> mm.</p>") == ["It rose by 3 mm."]
        assert counts("<p>It rose by <del>2</del><ins>3</ins> mm.</p>") == {"struck-out parts": 1}

    def test_cells_that_are_no_table_in_the_markup_stay_apart(self) -> None:
        cells = "".join(f"<span role=cell>{value}</span>" for value in (1990, 320))
        assert texts(f"<div role=table><div role=row>{cells}</div></div>") == ["1990", "320"]

    def test_a_small_main_part_does_not_hide_the_sections_beside_it(self) -> None:
        other = LONG.replace("glaciers", "forests")
        assert texts(f"<main><p>{LONG}</p></main><section><p>{other}</p></section>") == [LONG.strip(), other.strip()]

    def test_headings_in_buttons_and_blocks_of_figures_only(self) -> None:
        blocks, _ = read_html_text("<h3><button>Key findings</button></h3><p>1.5</p><p>2020</p>", "x.html")
        assert [(block.text, block.headings) for block in blocks] == [
            ("1.5", ("Key findings",)), ("2020", ("Key findings",)),
        ]  # fmt: skip

    def test_a_sentence_that_is_a_link_is_read(self) -> None:
        assert texts("<p><a href='/a'>Global warming reached 1.1 °C.</a></p>") == ["Global warming reached 1.1 °C."]

    def test_furniture_within_furniture_takes_no_quadratic_time(self) -> None:
        depth = 3000
        markup = "<div class='sidebar'>" * depth + LONG * 50 + "</div>" * depth
        assert len(texts(markup)) == 1
