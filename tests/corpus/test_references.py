"""Lists of references are recognised in every format by their heading and by the look of their entries."""

from pathlib import Path

import pytest

from climassay.corpus import Block, Document, OmittedParts, ReadOptions, read
from climassay.corpus.documents import merge_omitted_parts
from climassay.corpus.readers.references import is_references_heading, looks_like_entry, omit_references

ENTRIES = [
    "Doudna, J. and Charpentier, E. The new frontier of genome engineering. Science 346, 1258096 (2014).",
    "Smith, K. Solar geoengineering can cool the planet within a decade. Climatic Change 12, 39–50 (2012).",
    "van der Berg, A. B., Meier, C., & Li, X. (2019). The ice of the pole. Nature Climate, 3(4), 5–9. doi:10.1038/x1",
]
MORE_ENTRIES = [
    "[12] J. Hansen, M. Sato, and R. Ruedy, Perception of climate change, Proc. Natl. Acad. Sci. 109 (2012) E2415.",
    "5. Comeau DC, Wei CH, Lu Z. A subset of texts and growing. Bioinformatics. (2019) 35:3533–5. 10.1093/bio/btz070",
    "IPCC, 2013: Climate Change 2013: The Physical Science Basis. Cambridge University Press, 1535 pp.",
    "World Bank (2020). Carbon pricing: state and trends. Washington: World Bank. https://worldbank.example/cp",
    "Ablain, M. et al., 2019: Uncertainty of sea level. Earth System Science Data, 11(3), 1189–1202, doi: 10.5/e.",
    "Müller, H.: Das Klima der Alpen. Zeitschrift für Meteorologie 12, S. 3–9, 1998.",
    "Le Quéré C, Andrew RM, Friedlingstein P, et al. Global carbon budget. Earth Syst Sci Data 2018;10:2141-94.",
    "Nobre, Carlos A. 2016. “Land-use and risks in the Amazon.” PNAS 113 (39): 10759–68.",
]
PROSE = [
    "Smith et al. (2012) found that solar geoengineering can cool the planet by 1.2 °C, and Li (2019) found 39–50%.",
    "Nobre et al., 2016, establish that there are two tipping points: 4 °C, or deforestation of 20 to 25% of the area.",
    "Sources and sinks of CH4 respond to the climate (Saunois et al., 2016), by 30 Tg in 2008–2017 (Kirschke, 2013).",
    "In the agriculture and waste sectors, livestock has the largest emissions (109 Tg in 2008–2017) of all sources.",
    "Germany, 2020: emissions fell by 40% compared with 1990, after 35% in 2019.",
    "Gas: CO2; Source: energy; References: (Alam et al., 2015); 2010: 12–15",
    "South Asia and Africa bear the highest losses, and climate change will increase these by 12–15% until 2050.",
]
ABSTRACT = (
    "We measured the temperature of permafrost in boreholes of Svalbard. It rose by 0.8 degrees from 1998 to 2020."
)
AFTERWORD = "The boreholes are 100 m deep and were drilled in 1997 by the people of the town."


@pytest.mark.parametrize("entry", [*ENTRIES, *MORE_ENTRIES])
def test_entries_of_many_styles(entry: str) -> None:
    assert looks_like_entry(entry)


@pytest.mark.parametrize("paragraph", [*PROSE, ABSTRACT, AFTERWORD])
def test_prose_that_cites_is_no_entry(paragraph: str) -> None:
    assert not looks_like_entry(paragraph)


@pytest.mark.parametrize(
    ("heading", "is_one"),
    [
        ("References", True), ("7. REFERENCES", True), ("Works Cited", True), ("References and Notes", True),
        ("Literaturverzeichnis", True), ("Références", True), ("References[edit]", True), ("5.1 Bibliography:", True),
        ("Terms of Reference", False), ("References to earlier reports", False), ("Reference period", False),
        ("Preferences", False), ("Sources of methane", False),
    ],
)  # fmt: skip
def test_headings(heading: str, is_one: bool) -> None:
    assert is_references_heading(heading) is is_one


def write_html(heading: str, entries: list[str], after: str) -> str:
    title = f"<h2>{heading}</h2>" if heading else ""
    items = "".join(f"<li>{entry}</li>" for entry in entries)
    return f"<h1>Ice</h1><h2>Abstract</h2><p>{ABSTRACT}</p>{title}<ol>{items}</ol><h2>Annex</h2><p>{after}</p>"


def write_markdown(heading: str, entries: list[str], after: str) -> str:
    items = "\n".join(f"- {entry}" for entry in entries)
    title = f"## {heading}" if heading else ""
    return f"# Ice\n\n## Abstract\n\n{ABSTRACT}\n\n{title}\n\n{items}\n\n## Annex\n\n{after}\n"


def write_text(heading: str, entries: list[str], after: str) -> str:
    # Without empty lines between the entries, which are wrapped, as many programs write them.
    wrapped = "\n".join(entry[:50] + entry[50:].replace(" ", "\n", 1) for entry in entries)
    joined = wrapped if heading else "\n\n".join(entries)
    return f"Abstract\n\n{ABSTRACT}\n\n{heading}\n{joined}\n\nAnnex\n\n{after}\n"


WRITERS = {"x.html": write_html, "x.md": write_markdown, "x.txt": write_text}


@pytest.mark.parametrize("heading", ["References", "6 Bibliography", ""])
@pytest.mark.parametrize("name", WRITERS)
def test_lists_are_left_out_of_files_and_counted(tmp_path: Path, name: str, heading: str) -> None:
    path = tmp_path / name
    path.write_text(WRITERS[name](heading, ENTRIES, AFTERWORD), encoding="utf-8")
    (document,) = read(path).documents
    texts = [block.text for block in document.blocks]
    assert [text for text in texts if text != "Abstract" and text != "Annex"] == [ABSTRACT, AFTERWORD]
    assert document.omitted_parts == (OmittedParts("references", 3),)
    (whole,) = read(path, ReadOptions(references=True)).documents
    assert sum("geoengineering" in block.text for block in whole.blocks) == 1
    assert not whole.omitted_parts


def blocks(*texts: str, heading: str = "", page: int | None = None) -> list[Block]:
    return [Block(text, headings=(heading,) if heading else (), page=page) for text in texts]


def test_a_paragraph_that_is_a_title_begins_a_list() -> None:
    listed = blocks(ABSTRACT, "References", ENTRIES[0], "^ Ministry of Ice.", ENTRIES[1], "Annex", AFTERWORD)
    left, counted = omit_references(listed)
    assert [block.text for block in left] == [ABSTRACT, "Annex", AFTERWORD]
    assert counted == (OmittedParts("references", 3),)


def test_a_link_to_the_references_begins_no_list() -> None:
    page = blocks("References", ABSTRACT, AFTERWORD, ABSTRACT, AFTERWORD, *ENTRIES[:2])
    assert omit_references(page) == (page, ())


def test_two_entries_without_a_heading_are_no_list() -> None:
    assert omit_references(blocks(ABSTRACT, *ENTRIES[:2]))[1] == ()


def test_entries_of_unknown_style_under_a_heading_go_and_prose_after_them_stays() -> None:
    odd = [
        "^ “Population clock”. Statistics New Zealand. Retrieved 14 April 2016.",
        "Baum, L. Frank, The Wizard of Oz.",
    ]
    left, counted = omit_references(blocks(*odd, AFTERWORD, heading="References", page=9))
    assert [block.text for block in left] == [AFTERWORD]
    assert counted == (OmittedParts("references", 2, (9,)),)


def test_a_section_that_only_shares_the_name_stays() -> None:
    culture = blocks(
        "Māori adopted writing in 1815, and 12–15 novels of theirs appeared in 1970.", heading="Literature"
    )
    assert omit_references(culture) == (culture, ())


def test_counts_of_several_readers_are_one_entry_a_kind() -> None:
    merged = merge_omitted_parts(
        [[OmittedParts("references", 2, (9,)), OmittedParts("figures", 0)], [OmittedParts("references", 1, (3, 4))]]
    )
    assert merged == (OmittedParts("references", 3, (3, 4, 9)),)
    assert str(merged[0]) == "3 references (pages 3 to 4, 9)"
    assert str(OmittedParts("references", 1, (2,))) == "1 reference (page 2)"
    assert str(OmittedParts("blocks outside the article", 1)) == "1 block outside the article"


def test_what_is_left_out_is_no_part_of_a_document_s_identity() -> None:
    plain = Document("d", "Ice", "x.html", (Block("Text."),))
    assert plain == Document("d", "Ice", "x.html", (Block("Text."),), omitted_parts=(OmittedParts("figures", 1),))
