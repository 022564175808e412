"""PDF reading, on files written here: layout, cleaning, and every way a file can be bad."""

import io
from pathlib import Path

import pypdf
import pytest

from climassay.corpus import Document, OmittedParts, ReadOptions, ReadResult, read
from pdf_building import Text, build_pdf, column

LEFT = (
    "Snow reflects most of the sunlight that falls on it, whereas open water absorbs almost all of it. When sea ice "
    "retreats in spring the ocean therefore takes up heat that it gives back to the air in autumn, and the delay makes "
    "the warming of the far north strongest in the cold season. Models agree on the sign of this feedback but differ "
    "in how much of the observed change it explains, because clouds, moisture and the transport of heat from lower "
    "latitudes act at the same time and cannot be told apart by"
)
RIGHT = (
    "observations of the surface alone. Satellites measure the balance at the top of the atmosphere. They show that "
    "the region has darkened by several watts per square metre since the record began, which is more than most early "
    "models had projected for the same extent of ice. A second line of evidence comes from buoys that drift with the "
    "floes and record the temperature of the ice and the snow above it throughout the year."
)
OTHER = (
    "Glaciers on land answer more slowly than sea ice. Their length today still reflects the climate of decades ago, "
    "so that they would go on shrinking for a long time even if temperatures stayed where they are now. The smallest "
    "of them follow within ten years, the largest ice caps need several centuries to come into balance."
)
LATER = (
    "The permafrost thaws from above. Where the ground holds much ice it then sinks unevenly, lakes form and drain "
    "again, and the carbon that was frozen in for thousands of years begins to decay. How fast this happens depends "
    "on the depth of the winter snow, which keeps the cold of the air from reaching the soil."
)


def read_bytes(tmp_path: Path, data: bytes, name: str = "paper.pdf", options: ReadOptions | None = None) -> ReadResult:
    path = tmp_path / name
    path.write_bytes(data)
    return read(path, options)


def only_document(result: ReadResult) -> Document:
    assert not result.skipped
    assert len(result.documents) == 1
    return result.documents[0]


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def running(number: int) -> list[Text]:
    head = f"Chapter 3   Polar Regions   {number}" if number % 2 else f"{number}   Report on the Cryosphere"
    return [Text(60, 760, head, 8), Text(300, 30, str(number), 8)]


@pytest.mark.parametrize("shift", [0, 0.3, 0.8])
def test_text_printed_over_itself_to_look_bold_is_read_once(tmp_path: Path, shift: float) -> None:
    page = [Text(60, 730, "Glaciers", 14, "F2"), *column(OTHER, 60, 700, 480)]
    shadow = [text._replace(x=text.x + shift, y=text.y - shift) for text in page]
    once, twice = (
        only_document(read_bytes(tmp_path, build_pdf([content, column(LATER, 60, 700, 480)])))
        for content in (page, page + shadow)
    )
    assert texts(twice) == texts(once)
    assert [block.headings for block in twice.blocks] == [block.headings for block in once.blocks]


@pytest.mark.parametrize("shift", [0.3, 0.8, 1.5])
@pytest.mark.parametrize("word", ["1.55", "22%", "balls.", ""])
def test_characters_printed_twice_to_look_bold_are_read_once(tmp_path: Path, word: str, shift: float) -> None:
    line = "The total forcing was 1.55 W, and 22% of 2200 balls."
    start = line.index(word)
    doubled = [
        Text(72 + 6 * index + extra, 700, line[index])
        for index in range(len(line))
        for extra in ((0, shift) if start <= index < start + len(word or line) else (0,))
    ]
    last = Text(72, 688, "The second line has 33 words which are all printed once.")
    document = only_document(read_bytes(tmp_path, build_pdf([[*doubled, last]])))
    assert texts(document) == [f"{line} {last.text}"]


def test_a_word_printed_again_over_its_line_is_read_once_and_one_beside_it_twice(tmp_path: Path) -> None:
    line, last = Text(72, 700, "In 2019 it was 1.55 W."), Text(72, 688, "The second line has 33 words.")
    document = only_document(read_bytes(tmp_path, build_pdf([[line, last, Text(72 + 6 * 15 + 0.5, 700, "1.55")]])))
    assert " ".join(texts(document)) == f"{line.text} {last.text}"
    start = "The ocean took up 19 units of heat and the land took up"
    pieces = [Text(72, 700, start), Text(72 + 6 * (len(start) + 1), 700, "19"), last]
    document = only_document(read_bytes(tmp_path, build_pdf([pieces])))
    assert " ".join(texts(document)).startswith(f"{start} 19")


def test_italic_letters_of_formulas_are_kept(tmp_path: Path) -> None:
    formula = [Text(60, 640, "T", font="F5"), Text(68, 640, "is the temperature of the air near the ground, and")]
    page = [*column(OTHER, 60, 700, 480), *formula, Text(60, 628, "S", font="F5"), Text(68, 628, "is its salinity.")]
    assert "T is the temperature of the air near the ground, and S is its salinity." in " ".join(
        texts(only_document(read_bytes(tmp_path, build_pdf([page]))))
    )


class TestLayout:
    @pytest.mark.parametrize("row_by_row", [False, True], ids=["column by column", "row by row"])
    def test_two_columns_are_read_one_after_the_other(self, tmp_path: Path, row_by_row: bool) -> None:
        lines = column(LEFT, 50, 700, 240) + column(RIGHT, 322, 700, 240)
        if row_by_row:
            lines.sort(key=lambda line: (-line.y, line.x))
        document = only_document(read_bytes(tmp_path, build_pdf([lines])))
        assert texts(document) == [f"{LEFT} {RIGHT}"]

    def test_a_title_across_both_columns_divides_them(self, tmp_path: Path) -> None:
        upper = column(OTHER, 50, 720, 240) + column(OTHER, 322, 720, 240)
        title = [Text(50, 470, "7.2 Changes of sea ice over the satellite record", 14, "F2")]
        lower = column(RIGHT, 50, 440, 240) + column(RIGHT, 322, 440, 240)
        document = only_document(read_bytes(tmp_path, build_pdf([lower + title + upper], title="The Frozen World")))
        assert texts(document) == [OTHER, OTHER, RIGHT, RIGHT]
        assert [block.headings for block in document.blocks] == [
            (),
            (),
            ("7.2 Changes of sea ice over the satellite record",),
            ("7.2 Changes of sea ice over the satellite record",),
        ]

    def test_a_table_below_does_not_hide_the_columns_above_it(self, tmp_path: Path) -> None:
        upper = [*column(OTHER, 50, 720, 240), *column(LATER, 50, 596, 240), *column(RIGHT, 322, 720, 240)]
        caption = column("Table 3.1 | Options and what each of them costs. " + OTHER, 50, 480, 512, size=8)
        rows = [
            Text(x, 400 - 14 * row, cell, 8)
            for row in range(6)
            for x, cell in ((50, f"Kind {row} of cold measure"), (230, "Sectoral estimate"), (400, "0.6 (0.01 to 8.3)"))
        ]
        document = only_document(read_bytes(tmp_path, build_pdf([[*upper, *caption, *rows]])))
        assert texts(document) == [OTHER, LATER, RIGHT]

    def test_sentence_goes_on_over_the_page_break(self, tmp_path: Path) -> None:
        pages = [column(LEFT, 50, 700, 480), column(RIGHT, 50, 700, 480)]
        document = only_document(read_bytes(tmp_path, build_pdf(pages)))
        assert texts(document) == [f"{LEFT} {RIGHT}"]
        assert (document.blocks[0].page, document.blocks[0].last_page) == (1, 2)

    def test_paragraphs_are_divided_by_distance_and_by_indent(self, tmp_path: Path) -> None:
        spaced = column(OTHER, 50, 700, 480) + column(LATER, 50, 630, 480)
        first, *rest = column(LATER, 50, 488, 462)
        indented = [*column(OTHER, 50, 548, 480), first._replace(x=68), *rest]
        document = only_document(read_bytes(tmp_path, build_pdf([spaced + indented])))
        assert texts(document) == [OTHER, LATER, OTHER, LATER]

    def test_headings_form_a_path(self, tmp_path: Path) -> None:
        page = [
            Text(50, 720, "Chapter 3", 20, "F2"),
            Text(50, 690, "Polar Regions", 20, "F2"),
            Text(50, 650, "3.1 Sea ice", 14, "F2"),
            *column(OTHER, 50, 630, 480),
            Text(50, 540, "3.1.1 Extent", 12, "F2"),
            *column(RIGHT, 50, 520, 480),
            Text(50, 420, "3.2 Glaciers", 14, "F2"),
            *column(OTHER, 50, 400, 480),
        ]
        document = only_document(read_bytes(tmp_path, build_pdf([page], title="The Frozen World")))
        assert document.title == "The Frozen World"
        assert [block.headings for block in document.blocks] == [
            ("Chapter 3: Polar Regions", "3.1 Sea ice"),
            ("Chapter 3: Polar Regions", "3.1 Sea ice", "3.1.1 Extent"),
            ("Chapter 3: Polar Regions", "3.2 Glaciers"),
        ]

    def test_title_is_the_largest_type_of_the_first_page_when_metadata_has_none(self, tmp_path: Path) -> None:
        page = [Text(50, 720, "Ice and Light", 24, "F2"), *column(OTHER, 50, 680, 480)]
        for useless in (None, "untitled", "Microsoft Word - draft.docx"):
            document = only_document(read_bytes(tmp_path, build_pdf([page], title=useless)))
            assert document.title == "Ice and Light"


class TestCleaning:
    def test_running_heads_and_page_numbers_go(self, tmp_path: Path) -> None:
        pages = [
            running(n) + column(text, 50, 700, 480) for n, text in enumerate([OTHER, RIGHT, OTHER, RIGHT], start=11)
        ]
        document = only_document(read_bytes(tmp_path, build_pdf(pages)))
        assert texts(document) == [OTHER, RIGHT, OTHER, RIGHT]
        assert [block.page for block in document.blocks] == [1, 2, 3, 4]

    def test_words_are_joined_as_the_document_itself_spells_them(self, tmp_path: Path) -> None:
        known = "A short-lived gas is removed within days. Projections of temperature follow from emissions and models."
        lines = [
            "The warming by short-",
            "lived gases shows in temp-",
            "erature within a year, and in the pre-",
            "industrial state in climate projec-",
            "tions of the non-",
            "CO2 gases that this part of the text goes on about.",
        ]
        page = column(known, 50, 700, 480) + [Text(50, 640 - 12 * n, line) for n, line in enumerate(lines)]
        document = only_document(read_bytes(tmp_path, build_pdf([page])))
        assert texts(document)[1] == (
            "The warming by short-lived gases shows in temperature within a year, and in the preindustrial state in "
            "climate projections of the non-CO2 gases that this part of the text goes on about."
        )

    @pytest.mark.parametrize(("rise", "moved"), [(4, 0), (0, 4), (3.3, 0), (2, 0)])
    def test_note_marks_go_wherever_they_are_glued(self, tmp_path: Path, rise: float, moved: float) -> None:
        """By the text rise or by another baseline, high or low: PDFium cuts the line at some of them."""

        def line(y: float, *parts: str) -> list[Text]:
            x, texts = 50.0, []
            for part in parts:
                up, text = part.startswith("^"), part.removeprefix("^").removeprefix("_")
                low, size = part.startswith("_"), 6 if part[0] in "^_" else 10
                sign = 1 if up else -0.5 if low else 0
                texts.append(Text(x, y + sign * moved, text, size, rise=sign * rise))
                x += 0.6 * size * len(text)
            return texts

        page = [
            *column(OTHER, 50, 700, 480),
            *line(
                600, "All of the CO", "_2", "^26", " of the air and the N", "_2", "O in words", "^7", " end.", "^8",
                " So",
            ),
            *line(
                588, "10", "^6", " km", "^2", "^12", " of ice, (high confidence)", "^29", " W m", "^-2", " and m", "^3"
            ),
            *line(
                576, "come with CO", "_2", "^26,27", " and ", "^14", "C, at USD20 tCO", "_2", "^-1", "; CO", "_2", "^9"
            ),
            *line(564, "is the last word of this paragraph."),
        ]  # fmt: skip
        document = only_document(read_bytes(tmp_path, build_pdf([page])))
        assert texts(document)[1:] == [
            "All of the CO2 of the air and the N2O in words end. So 10⁶ km² of ice, (high confidence) W m⁻² and m³ "
            "come with CO2 and 14C, at USD20 tCO2⁻¹; CO2 is the last word of this paragraph."
        ]

    def test_footnotes_follow_the_paragraph_that_the_page_break_cut(self, tmp_path: Path) -> None:
        note = "1 Only the area of more than fifteen per cent ice is counted here."
        pages = [[*column(LEFT, 50, 700, 480), Text(50, 90, note, 7)], column(RIGHT, 50, 700, 480)]
        document = only_document(read_bytes(tmp_path, build_pdf(pages)))
        assert texts(document) == [f"{LEFT} {RIGHT}", note[2:]]
        assert [block.footnote for block in document.blocks] == [False, True]

    def test_figure_residue_and_captions_go_or_stay_on_request(self, tmp_path: Path) -> None:
        labels = [Text(80 + 60 * n, 300, str(1900 + 20 * n), 7, "F3") for n in range(6)]
        labels += [Text(60, 320 + 25 * n, f"{n / 2:.1f}", 7, "F3") for n in range(6)]
        labels += [Text(200, 400, "observed", 7, "F3"), Text(300, 420, "simulated, natural only", 7, "F3")]
        caption = "Figure 3.1 | Extent of sea ice in September since the satellite record began."
        pages = [[*column(OTHER, 50, 700, 480), *labels, *column(caption, 50, 270, 480, size=8, leading=10)]]
        data = build_pdf(pages)
        assert texts(only_document(read_bytes(tmp_path, data))) == [OTHER]
        kept = only_document(read_bytes(tmp_path, data, options=ReadOptions(captions=True)))
        assert texts(kept) == [OTHER, caption]

    def test_table_rows_go(self, tmp_path: Path) -> None:
        rows = [
            Text(60 + 90 * i, 500 - 14 * row, cell)
            for row in range(4)
            for i, cell in enumerate(["SSP1-1.9", "1.5", "1.6", "1.4"])
        ]
        page = [*column(OTHER, 50, 700, 480), *rows, *column(RIGHT, 50, 400, 480)]
        assert texts(only_document(read_bytes(tmp_path, build_pdf([page])))) == [OTHER, RIGHT]

    def test_all_that_is_left_out_is_counted_with_its_pages(self, tmp_path: Path) -> None:
        contents = [Text(50, 700, "Contents", 14, "F2")]
        contents += [Text(50, 670 - 14 * n, f"3.{n} Part {n} of it {'.' * 40} {n + 3}") for n in range(8)]
        caption = "Figure 3.1 | Extent of sea ice in September since the satellite record began."
        labels = [Text(80 + 60 * n, 300, str(1900 + 20 * n), 7, "F3") for n in range(6)]
        figure = [*column(OTHER, 50, 700, 480), *labels, *column(caption, 50, 270, 480, size=8, leading=10)]
        work = "Able, B. (2019) On the ice of the north. Journal of Cold 12, 3-14. doi 10.1/2."
        references = [*column(RIGHT, 50, 700, 480), Text(50, 560, "References", 14, "F2")]
        references += column(work, 50, 530, 480) + column(work, 50, 490, 480)
        ending = [Text(50, 700, "4. Outlook for the century", 14, "F2")]
        pages = [running(n) + page for n, page in enumerate([contents, figure, references, ending], start=11)]
        document = only_document(read_bytes(tmp_path, build_pdf(pages)))
        assert {left.kind: (left.count, left.pages) for left in document.omitted_parts} == {
            "running heads and page numbers": (8, (1, 2, 3, 4)),
            "lines of contents": (9, (1,)),
            "labels and other short lines": (1, (2,)),
            "captions": (1, (2,)),
            "references": (2, (3,)),
            "headings without text": (1, (4,)),
        }

    def test_exponents_fractions_and_marks_change_no_figure(self, tmp_path: Path) -> None:
        def line(y: float, *parts: str) -> list[Text]:
            x, texts = 50.0, []
            for part in parts:
                size = 6 if part[0] in "^_" else 10
                rise = {"^": 4, "_": -2}.get(part[0], 0)
                text = part.lstrip("^_")
                texts.append(Text(x, y, text, size, rise=rise))
                x += 0.6 * size * len(text)
            return texts

        page = [
            *column(OTHER, 50, 700, 480),
            *line(600, "About ", "^1", "/", "_3", " of it, 2", "^1", "/", "_2", " years, and R", "^2", " of 0.84 were"),
            *line(588, "found for 3 x 10", "^-12", " m", "^2", " s", "^-1", " in 1979", "^3", ", which"),
            *line(576, "cost $320", "^1", " or 450", "^2,3", " euros in the year 2019", "^4", "."),
        ]  # fmt: skip
        document = only_document(read_bytes(tmp_path, build_pdf([page])))
        assert texts(document)[1] == (
            "About 1/3 of it, 2 1/2 years, and R² of 0.84 were found for 3 x 10⁻¹² m² s⁻¹ in 1979, which "
            "cost $320 or 450 euros in the year 2019."
        )
        assert {left.kind: left.count for left in document.omitted_parts} == {"note marks": 5}

    def test_contents_and_references_go(self, tmp_path: Path) -> None:
        contents = [Text(50, 700, "Contents", 14, "F2")]
        contents += [Text(50, 670 - 14 * n, f"3.{n} Part {n} of it {'.' * 40} {n + 3}") for n in range(8)]
        references = [Text(50, 560, "References", 14, "F2")]
        references += column(
            "Able, B. (2019) On the ice of the north. Journal of Cold 12, 3-14. doi 10.1/2.", 50, 530, 480
        )
        pages = [contents, [*column(OTHER, 50, 700, 480), *references]]
        data = build_pdf(pages)
        assert texts(only_document(read_bytes(tmp_path, data))) == [OTHER]
        kept = only_document(read_bytes(tmp_path, data, options=ReadOptions(references=True)))
        assert len(kept.blocks) == 2
        assert kept.blocks[1].headings == ("References",)


class TestBadFiles:
    def reason(self, result: ReadResult) -> str:
        assert result.documents == ()
        assert len(result.skipped) == 1
        assert result.skipped[0].reason.count("\n") == 0
        assert result.skipped[0].source == "paper.pdf"
        return result.skipped[0].reason

    def test_an_encrypted_file_is_read_only_where_it_merely_forbids_printing(self, tmp_path: Path) -> None:
        results = []
        for password in ("secret", ""):
            writer = pypdf.PdfWriter(clone_from=io.BytesIO(build_pdf([column(OTHER, 50, 700, 480)])))
            writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
            buffer = io.BytesIO()
            writer.write(buffer)
            results.append(read_bytes(tmp_path, buffer.getvalue()))
        assert "is encrypted" in self.reason(results[0])
        assert texts(only_document(results[1])) == [OTHER]

    def test_truncated_but_partly_readable_is_told(self, tmp_path: Path) -> None:
        data = build_pdf([column(OTHER, 50, 700, 480)])
        result = read_bytes(tmp_path, data.removesuffix(b"%%EOF\n"))
        assert texts(result.documents[0]) == [OTHER]
        assert "seems truncated" in result.skipped[0].reason

    def test_images_only(self, tmp_path: Path) -> None:
        reason = self.reason(read_bytes(tmp_path, build_pdf([[], []], image_pages=[0, 1])))
        assert "images of pages without text" in reason

    def test_pages_of_images_between_others_are_listed(self, tmp_path: Path) -> None:
        result = read_bytes(tmp_path, build_pdf([column(OTHER, 50, 700, 480), [], []], image_pages=[1, 2]))
        assert texts(result.documents[0]) == [OTHER]
        assert [skipped.reason for skipped in result.skipped] == ["There are only images on 2 of 3 pages: pages 2, 3."]
        assert result.documents[0].omitted_parts == (OmittedParts("pages of images", 2, (2, 3)),)

    def test_another_kind_of_file(self, tmp_path: Path) -> None:
        assert "is not a PDF file; by its content it is a web page" in self.reason(
            read_bytes(tmp_path, b"<!DOCTYPE html><html><body>Not found</body></html>")
        )
        assert "is not a PDF file" in self.reason(read_bytes(tmp_path, b"PK\x03\x04" + bytes(100)))


class TestIdentity:
    def test_the_same_content_gives_the_same_id_under_any_name(self, tmp_path: Path) -> None:
        data = build_pdf([column(OTHER, 50, 700, 480)])
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        one, same = (only_document(read_bytes(tmp_path / folder, data)).id for folder in "ab")
        other_name = only_document(read_bytes(tmp_path, data, "other.pdf")).id
        other_text = only_document(read_bytes(tmp_path, build_pdf([column(RIGHT, 50, 700, 480)]))).id
        assert one == same == other_name
        assert other_text != one
