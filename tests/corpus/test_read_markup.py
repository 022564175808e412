"""HTML, Markdown and EPUB: text without markup and boilerplate, headings, and what the source says of itself."""

import io
import zipfile
from pathlib import Path

import pytest

from climassay.corpus import Block, Document, ReadOptions, ReadResult, read
from climassay.corpus.readers.markdown import markdown_blocks, read_markdown_text

PAGE = """<!DOCTYPE html>
<html><head>
<title>Sea ice in decline | The Polar Site</title>
<meta property="og:title" content="Sea ice in decline">
<meta property="article:published_time" content="2023-09-14T10:00:00Z">
<link rel="canonical" href="https://polar.example/sea-ice">
<link rel="license" href="https://creativecommons.org/licenses/by/4.0/">
<style>p { color: red }</style><script>var text = "not this";</script>
</head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/about">About this site</a></li></ul></nav>
<div class="cookie-banner">We use cookies to make this better.</div>
<header><a href="/">The Polar Site</a></header>
<main><article>
<h1>Sea ice in decline</h1>
<p>Sea ice covers 15&nbsp;million km<sup>2</sup> in March<sup><a href="#n1">1</a></sup>
and takes up CO<sub>2</sub> slowly.</p>
<h2>Causes</h2>
<p>Warm air <em>melts</em> it;<br>so does the <a href="/ocean">warm ocean</a>.</p>
<ul><li>Albedo falls.</li><li>Heat is taken up.</li></ul>
<h3>Trend</h3>
<table><tr><th>Year</th><th>Extent</th></tr><tr><td>1980 mean</td><td>7.5</td></tr><tr><td>7</td><td>8</td></tr></table>
<aside>Read also: penguins</aside>
<h2>Outlook</h2>
<blockquote><p>It will go on.</p></blockquote><pre><code>print("not this")</code></pre>
<p><a href="/a">More about ice</a> <a href="/b">More about snow</a></p>
</article></main>
<footer>Copyright 2023</footer>
</body></html>"""


def read_bytes(tmp_path: Path, name: str, data: bytes, options: ReadOptions | None = None) -> ReadResult:
    path = tmp_path / name
    path.write_bytes(data)
    return read(path, options)


def only_document(result: ReadResult) -> Document:
    assert not result.skipped, result.skipped
    return result.documents[0]


def outline(document: Document) -> list[tuple[str, tuple[str, ...]]]:
    return [(block.text, block.headings) for block in document.blocks]


class TestHtml:
    def test_text_headings_and_metadata(self, tmp_path: Path) -> None:
        document = only_document(read_bytes(tmp_path, "ice.html", PAGE.encode()))
        assert outline(document) == [
            ("Sea ice covers 15 million km² in March and takes up CO2 slowly.", ()),
            ("Warm air melts it; so does the warm ocean.", ("Causes",)),
            ("Albedo falls.", ("Causes",)),
            ("Heat is taken up.", ("Causes",)),
            ("Year: 1980 mean; Extent: 7.5", ("Causes", "Trend")),
            ("Year: 7; Extent: 8", ("Causes", "Trend")),
            ("It will go on.", ("Outlook",)),
        ]
        assert document.title == "Sea ice in decline"
        assert document.url == "https://polar.example/sea-ice"
        assert document.date == "2023-09-14"
        assert document.licence == "https://creativecommons.org/licenses/by/4.0/"

    @pytest.mark.parametrize(
        ("markup", "text"),
        [
            ("of CO<sub>2</sub><sup>26</sup> and N<sub>2</sub>O", "of CO2 and N2O"),
            ("of CO<sub>2</sub><sup><span><a href='#n'>7</a></span></sup>.", "of CO2."),
            ("of CO<sub>2</sub><a href='#n'><span><sup>7</sup></span></a>.", "of CO2."),
            ("the air<sup>26,27</sup> and ice<sup>[3]</sup>, snow<sup>*</sup>", "the air and ice, snow"),
            ("at the end.<sup>8</sup> Then", "at the end. Then"),
            ("warm<sup class='footnote-ref'>8</sup>, warm<sup role='doc-noteref'>8</sup>", "warm, warm"),
            ("in W m<sup>-2</sup>, km<sup>2</sup>, 10<sup>12</sup> m<sup>3</sup>", "in W m⁻², km², 10¹² m³"),
            ("by <sup>14</sup>C, R<sup>2</sup>, (1 + r)<sup>10</sup>, Ca<sup>2+</sup>", "by ¹⁴C, R², (1 + r)¹⁰, Ca²⁺"),
        ],
    )
    def test_note_marks_are_set_apart_and_powers_stay(self, tmp_path: Path, markup: str, text: str) -> None:
        document = only_document(read_bytes(tmp_path, "notes.html", f"<p>It speaks {markup}</p>".encode()))
        assert document.blocks[0].text == f"It speaks {text}"

    def test_plain_page_without_structure(self, tmp_path: Path) -> None:
        document = only_document(
            read_bytes(tmp_path, "old.htm", b"<title>Old</title>First line.<p>Second <b>para</b>.<p>Third.")
        )
        assert [block.text for block in document.blocks] == ["First line.", "Second para.", "Third."]
        assert document.title == "Old"

    def test_declared_encoding(self, tmp_path: Path) -> None:
        page = '<meta charset="iso-8859-1"><p>Température élevée, naïveté.</p>'
        document = only_document(read_bytes(tmp_path, "fr.html", page.encode("latin-1")))
        assert document.blocks[0].text == "Température élevée, naïveté."

    def test_date_and_licence_from_linked_data(self, tmp_path: Path) -> None:
        page = (
            '<script type="application/ld+json">{"datePublished": "2021-05-06", "license": "CC BY"}</script>'
            "<script type='application/ld+json'>{broken</script><p>Some text that stands here.</p>"
        )
        document = only_document(read_bytes(tmp_path, "x.html", page.encode()))
        assert (document.date, document.licence) == ("2021-05-06", "CC BY")

    def test_several_articles_are_all_read(self, tmp_path: Path) -> None:
        page = (
            "<body><article><p>First article here.</p></article><article><p>Second article here.</p></article></body>"
        )
        document = only_document(read_bytes(tmp_path, "x.html", page.encode()))
        assert len(document.blocks) == 2

    @pytest.mark.parametrize(
        ("page", "sentence"),
        [
            (b"just words", "is not an HTML file (it has no tags)"),
            (b"<html><body><div id=app></div><script>draw()</script></body></html>", "has no text"),
            (b"\x00\x01<html>" * 99, "is not a text file"),
        ],
    )
    def test_bad_pages(self, tmp_path: Path, page: bytes, sentence: str) -> None:
        result = read_bytes(tmp_path, "x.html", page)
        assert result.documents == ()
        assert sentence in result.skipped[0].reason


BOOK = """---
title: "Ice: an introduction"
date: 2024-05-01
edition: 2
license: CC BY 4.0
tags: [a, b]
---

# Ice: an introduction

Preface with *emphasis* and `code_name` and a [link](https://e.org/a_(b)).[^1]

## Chapter 1: Snow

The flux is $F_\\lambda = \\sigma_b T^4$ in W m⁻²
and goes on \\* here &amp; there. ![figure](f.png)

```python
print("not this")
```

<!-- nor this -->
- first __item__
  goes on
- second item

### Deep

> Quoted words
> of two lines.

| Gas | Share |
|-----|------:|
| CO2 | most  |

Setext part
-----------

$$
E = \\epsilon T
$$

:::{note}
A note.
:::

[^1]: The footnote.
[ref]: https://e.org
"""


class TestMarkdown:
    def test_book(self, tmp_path: Path) -> None:
        document = only_document(read_bytes(tmp_path, "ice.md", BOOK.encode()))
        snow = "Chapter 1: Snow"
        assert outline(document) == [
            ("Preface with emphasis and code_name and a link.", ()),
            (r"The flux is $F_\lambda = \sigma_b T^4$ in W m⁻² and goes on * here & there.", (snow,)),
            ("first item goes on", (snow,)),
            ("second item", (snow,)),
            ("Quoted words of two lines.", (snow, "Deep")),
            ("Gas: CO2; Share: most", (snow, "Deep")),
            (r"$$ E = \epsilon T $$", ("Setext part",)),
            ("A note.", ("Setext part",)),
            ("The footnote.", ("Setext part",)),
        ]
        assert (document.title, document.date, document.edition) == ("Ice: an introduction", "2024-05-01", "2")
        assert document.licence == "CC BY 4.0"

    @pytest.mark.parametrize(
        ("markdown", "texts"),
        [
            ("10<sup>22</sup> J in W m<sup>-2</sup>, H<sub>2</sub>O", ["10²² J in W m⁻², H2O"]),
            ("10^22^ J in W m^-2^, H~2~O", ["10²² J in W m⁻², H2O"]),
            ("was $320<sup>1</sup> a head[^1]", ["was $320 a head"]),
            ("between ~5 and ~10, x^2 and y^2", ["between ~5 and ~10, x^2 and y^2"]),
            ("1990<br>2020 and <b>4</b>5", ["1990 2020 and 45"]),
            ("It is ~~2~~3 mm", ["It is 2 3 mm"]),
            ("12\n\n1.5\n\n- 2020", ["12", "1.5", "2020"]),
            ("| Year | CO2 | CH4 |\n|--|--|--|\n| 1990 | | 41 |\n", ["Year: 1990; CH4: 41"]),
            ("| | |\n|--|--|\n| 1990 | 41 |\n", ["1990 | 41"]),
            (
                "Text\n<table><tr><th>Year<th>CO2<tr><td>1990<td>320<sup>a</sup></table>\nand more",
                ["Text", "Year: 1990; CO2: 320", "and more"],
            ),
        ],
    )  # fmt: skip
    def test_figures(self, markdown: str, texts: list[str]) -> None:
        assert [block.text for block in markdown_blocks(markdown)] == texts

    def test_what_is_left_out_is_counted(self) -> None:
        text = "A[^1] ![b](c.png)\n\n```\nx = 1\n```\n\n<table><tr><td>1<sup>a</sup><td>2</table>\n\n[^1]: Note."
        blocks, omitted_parts = read_markdown_text(text, "x.md")
        assert [block.text for block in blocks] == ["A", "1 | 2", "Note."]
        assert {entry.kind: entry.count for entry in omitted_parts} == {"code blocks": 1, "figures": 1, "note marks": 2}

    @pytest.mark.parametrize(
        ("markdown", "text"),
        [
            ("a_b_c and __init__ of x_y", "a_b_c and init of x_y"), ("2 * 3 * 4", "2 * 3 * 4"),
            ("***both*** and **bold *in* it**", "both and bold in it"),
            ("[a [b] c](u) and [t][r] and <https://e.org>", "a [b] c and t and https://e.org"),
            ("costs $5 and $6", "costs $5 and $6"), ("`a*b*c` and ``x`y``", "a*b*c and x`y"),
            ("<b>bold</b> 3 < 4", "bold 3 < 4"), (r"\*not\* \_this\_", "*not* _this_"), ("~~gone~~", "gone"),
        ],
    )  # fmt: skip
    def test_inline(self, markdown: str, text: str) -> None:
        assert [block.text for block in markdown_blocks(markdown)] == [text]

    def test_without_front_matter_the_only_top_heading_is_the_title(self, tmp_path: Path) -> None:
        document = only_document(read_bytes(tmp_path, "x.md", b"# Ice\n\n## One\n\nText.\n\n## Two\n\nMore."))
        assert document.title == "Ice"
        assert [block.headings for block in document.blocks] == [("One",), ("Two",)]

    def test_front_matter_that_is_not_yaml(self, tmp_path: Path) -> None:
        result = read_bytes(tmp_path, "x.md", b"---\ntitle: [broken\n---\nText.")
        assert "front matter of x.md" in result.skipped[0].reason

    def test_only_headings_is_empty(self, tmp_path: Path) -> None:
        assert read_bytes(tmp_path, "x.md", b"# Title\n").skipped[0].reason == "x.md is empty."

    def test_the_bundled_books(self) -> None:
        books = sorted((Path(__file__).parents[2] / "src" / "climassay" / "primer" / "books").glob("*.md"))
        assert books
        for path in books:
            document = only_document(read(path))
            assert document.licence == "Apache-2.0"
            assert document.date
            assert all(block.headings and block.headings[0].startswith("Chapter ") for block in document.blocks)
            assert not any(mark in block.text for block in document.blocks for mark in ("**", "](", "##"))


CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>
<dc:title>The Ice Book</dc:title><dc:date>2020-03-01T00:00:00Z</dc:date><dc:rights>CC0</dc:rights></metadata><manifest>
<item id="two" href="text/two.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/one%20page.xhtml" media-type="application/xhtml+xml"/>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="gone" href="gone.xhtml" media-type="application/xhtml+xml"/>
<item id="pic" href="p.png" media-type="image/png"/></manifest>
<spine><itemref idref="nav"/><itemref idref="one"/><itemref idref="two"/><itemref idref="gone"/></spine></package>"""
ENCRYPTED = (
    '<encryption><EncryptedData><CipherData><CipherReference URI="{}"/></CipherData></EncryptedData></encryption>'
)


def build_epub(**extra: str | bytes) -> bytes:
    files = {
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": PACKAGE,
        "OEBPS/text/one page.xhtml": "<html><body><h1>Snow</h1><p>Snow is white.</p></body></html>",
        "OEBPS/text/two.xhtml": "<html><body><p>It goes on.</p><h2>Ice</h2><p>Ice is blue.</p></body></html>",
        "OEBPS/nav.xhtml": "<html><body><p>Not this.</p></body></html>",
        **extra,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in files.items():
            book.writestr(name, text)
    return buffer.getvalue()


class TestEpub:
    def test_pages_in_the_order_of_the_spine(self, tmp_path: Path) -> None:
        result = read_bytes(tmp_path, "ice.epub", build_epub())
        (document,) = result.documents
        assert document.blocks == (
            Block("Snow is white.", headings=("Snow",)),
            Block("It goes on.", headings=("Snow",)),
            Block("Ice is blue.", headings=("Ice",)),
        )
        assert (document.title, document.date, document.licence) == ("The Ice Book", "2020-03-01", "CC0")
        assert [skipped.reason for skipped in result.skipped] == [
            "ice.epub names a page OEBPS/gone.xhtml that is not in it."
        ]

    @pytest.mark.parametrize(
        "chapter",
        [
            "<html><head><title/><script src='x.js'/><style/></head><body><p>Öl: 5</p></body></html>".encode(),
            '<?xml version="1.0" encoding="utf-16"?><html><body><p>Öl: 5</p></body></html>'.encode("utf-16"),
            '<?xml version="1.0" encoding="iso-8859-1"?><html><body><p>Öl: 5</p></body></html>'.encode("latin-1"),
            "\ufeff<html><body><p>Öl: 5</p></body></html>".encode(),
            b"<html><body><p>\xc3\x96l: 5<br></body>",
            b'<!DOCTYPE html [<!ENTITY a "b">]><html><body><p>\xc3\x96l: 5</p></body></html>',
        ],
    )
    def test_no_chapter_is_lost(self, tmp_path: Path, chapter: bytes) -> None:
        document = read_bytes(tmp_path, "x.epub", build_epub(**{"OEBPS/text/one page.xhtml": chapter})).documents[0]
        assert document.blocks[0].text.endswith("Öl: 5")
        assert len(document.blocks) == 3

    def test_entries_named_with_or_without_percent_encoding(self, tmp_path: Path) -> None:
        encoded = CONTAINER.replace("book.opf", "the%20book.opf")
        data = build_epub(**{"META-INF/container.xml": encoded, "OEBPS/the book.opf": PACKAGE})
        assert len(read_bytes(tmp_path, "x.epub", data).documents[0].blocks) == 3
        data = build_epub(**{"OEBPS/text/one%20page.xhtml": "<p>Literal name.</p>"})
        assert read_bytes(tmp_path, "x.epub", data).documents[0].blocks[0].text == "Literal name."

    def test_a_damaged_page_does_not_lose_the_book(self, tmp_path: Path) -> None:
        buffer = io.BytesIO(build_epub())
        with zipfile.ZipFile(buffer) as book:
            entry = book.getinfo("OEBPS/text/two.xhtml")
        data = bytearray(buffer.getvalue())
        data[entry.header_offset + 30 + len(entry.filename) + 4] ^= 0xFF
        result = read_bytes(tmp_path, "x.epub", bytes(data))
        assert [block.text for block in result.documents[0].blocks] == ["Snow is white."]
        assert any("two.xhtml" in skipped.reason and "damaged" in skipped.reason for skipped in result.skipped)

    def test_what_is_left_out_of_all_chapters_is_counted(self, tmp_path: Path) -> None:
        listed = "<h2>References</h2><p>Li, X. Ice. Nature 3, 5–9 (2019).</p>"
        notes = f"<html><body><p>Ice is old.<sup>1</sup></p>{listed}</body></html>"
        data = build_epub(**dict.fromkeys(("OEBPS/text/one page.xhtml", "OEBPS/text/two.xhtml"), notes))
        document = read_bytes(tmp_path, "x.epub", data).documents[0]
        assert {entry.kind: entry.count for entry in document.omitted_parts} == {"references": 2, "note marks": 2}

    def test_obfuscated_fonts_do_no_harm(self, tmp_path: Path) -> None:
        data = build_epub(**{"META-INF/encryption.xml": ENCRYPTED.format("OEBPS/font.otf")})
        assert read_bytes(tmp_path, "ice.epub", data).documents

    @pytest.mark.parametrize(
        ("data", "sentence"),
        [
            (build_epub(**{"META-INF/encryption.xml": ENCRYPTED.format("OEBPS/text/two.xhtml")}), "is copy-protected"),
            (build_epub()[:-100], "is not a readable EPUB"),
            (b"no zip at all", "is not a readable EPUB"),
            (build_epub(**{"META-INF/container.xml": "<broken"}), "no readable META-INF/container.xml"),
            (build_epub(**{"META-INF/container.xml": "<container/>"}), "names no package"),
            (build_epub(**{"OEBPS/book.opf": '<!DOCTYPE p [<!ENTITY a "b">]><package/>'}), "defines XML entities"),
            (build_epub(**{"OEBPS/book.opf": "<package/>"}), "has no text in its pages"),
        ],
    )
    def test_bad_books(self, tmp_path: Path, data: bytes, sentence: str) -> None:
        result = read_bytes(tmp_path, "x.epub", data)
        assert result.documents == ()
        assert sentence in result.skipped[0].reason

    def test_a_zip_bomb_is_refused(self, tmp_path: Path) -> None:
        data = build_epub(**{"OEBPS/big.css": " " * (3 << 20)})
        assert len(data) < 1 << 20
        result = read_bytes(tmp_path, "x.epub", data, ReadOptions(max_bytes=1 << 20))
        assert "unpacks to more than the limit of 1 MB" in result.skipped[0].reason

    def test_a_book_that_grows_a_hundredfold_is_refused_far_below_the_limit(self, tmp_path: Path) -> None:
        data = build_epub(**{"OEBPS/text/two.xhtml": "<p>" + "x" * (20 << 20)})
        result = read_bytes(tmp_path, "x.epub", data)
        assert result.documents == ()
        assert "times when unpacked, as attacks do" in result.skipped[0].reason

    def test_a_page_that_is_named_a_thousand_times_is_read_once(self, tmp_path: Path) -> None:
        spine = '<itemref idref="one"/>' * 1000
        data = build_epub(**{"OEBPS/book.opf": PACKAGE.replace('<itemref idref="one"/>', spine)})
        assert len(read_bytes(tmp_path, "x.epub", data).documents[0].blocks) == 3
