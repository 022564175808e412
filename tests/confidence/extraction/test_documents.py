"""Documents before extraction: their language, which report they are, and those of a collection."""

from types import SimpleNamespace

import pytest

from climassay.confidence.extraction import ExtractOptions, documents_of_collection, extract, extract_terms
from climassay.confidence.extraction.extracting import detect_language, identify_report
from climassay.confidence.tags import find_likelihoods, find_tags
from climassay.corpus import Block, Document, StoredDocument, read, split_passages
from climassay.errors import InputError
from pdf_building import Text, build_pdf, column

GERMAN = (
    "Der Meeresspiegel und die Temperatur steigen mit der Zeit, und das Eis ist von den Bergen nicht zu retten. " * 3
)


def told(text):
    found = extract([Document("d", "R", "r", (Block(text),))], ExtractOptions(acronyms="never"))
    return [(one.tag, one.text) for one in found]


@pytest.mark.parametrize(
    ("words", "levels"),
    [
        ("(confiance élevée)", ("high",)),
        ("(degré de confiance très élevé)", ("very high",)),
        ("(niveau de confiance faible)", ("low",)),
        ("(faible degré de confiance)", ("low",)),
        ("(très haut degré de confiance)", ("very high",)),
        ("(bajo a medio nivel de confianza)", ("low", "medium")),
        ("(confiance moyenne à élevée)", ("medium", "high")),
        ("(nivel de confianza alto)", ("high",)),
        ("(confianza muy baja)", ("very low",)),
        ("con un nivel de confianza medio", ("medium",)),
    ],
)
def test_levels_in_french_and_spanish(words, levels):
    assert [mark.levels for mark in find_tags(f"X {words}.")] == [levels]


def test_statements_in_french_and_spanish():
    assert told("Le niveau des mers monte (confiance élevée). {1.2}") == [("high", "Le niveau des mers monte.")]
    assert told("El nivel del mar subirá, con un nivel de confianza medio.") == [("medium", "El nivel del mar subirá.")]
    both = "Les mers montent (confiance élevée) et les glaces vont fondre (confiance faible)."
    assert told(both) == [(tag, "Les mers montent et les glaces vont fondre.") for tag in ("high", "low")]
    assert [one.term for one in find_likelihoods("Il est très probable que ... ; es sumamente improbable")] == [
        "very likely",
        "extremely unlikely",
    ]


def test_another_language_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="German"):
        told(GERMAN)
    with pytest.raises(InputError, match="script"):
        told("уровень моря растёт и лёд тает в горах " * 5)


def test_too_little_text_is_of_no_language():
    assert detect_language(["Seas rise."]) is None


CITED = "IPCC, 2021: Summary. In: Climate Change 2021: The Physical Science Basis."


def named(title="", source="", report=None, first=""):
    return Document("d", title, source, (Block(first),), report=report)


@pytest.mark.parametrize(
    ("document", "identity"),
    [
        (named(report="AR6 WG1"), ("AR6", "WG1")),
        (named(report="AR6_WGIII"), ("AR6", "WG3")),
        (named("Climate Change 2007: Synthesis Report"), ("AR4", "SYR")),
        (named("Climate Change 2014: Impacts, Adaptation, and Vulnerability"), ("AR5", "WG2")),
        (named("Climate Change 2001: The Scientific Basis"), ("AR3", "WG1")),
        (named("Climate Change 2022: Mitigation of Climate Change"), ("AR6", "WG3")),
        (named(source="ipcc_sr15_spm.pdf"), ("AR6", "SR15")),
        (named(report="srocc"), ("AR6", "SROCC")),
        (named("Contribution of Working Group II to the Fourth Assessment Report"), ("AR4", "WG2")),
        (named("Summary for Policymakers", "spm.pdf", first=CITED), ("AR6", "WG1")),
        (named("A letter"), (None, None)),
    ],
)  # fmt: skip
def test_identity(document, identity):
    assert tuple(identify_report(document)) == identity


def test_what_the_user_says_goes_before_what_the_file_says():
    assert tuple(identify_report(named(report="AR6 WG1"), "AR5 WG2")) == ("AR5", "WG2")
    assert identify_report(named(report="wg3"), cycle="AR4").name == "AR4 WG3"
    assert identify_report(named(report="wg3")).name == "WG3"
    assert identify_report(named(report="sr15")).name == "SR15"
    assert identify_report(named("A letter")).name is None


PARAGRAPHS = [
    f"Finding {number} says that seas rise by {number} mm a year ({tag} confidence). It was made in year {number}."
    for number, tag in enumerate(["low", "medium", "high", "very high"] * 6)
]


def test_footnotes_of_a_pdf_are_in_no_statement_and_no_context(tmp_path):
    body = (
        "Glaciers on land answer more slowly than sea ice does (high confidence). Their length today reflects the "
        "climate of decades ago. The smallest of them follow within ten years (medium confidence)."
    )
    note = "1 Slowly is here very likely used to mean a century, with robust evidence (low confidence)."
    later = "The permafrost thaws from above (high confidence). Lakes form. They drain again soon (medium confidence)."
    pages = [[*column(body, 50, 700, 480), Text(50, 90, note, 7)], column(later, 50, 700, 480)]
    (tmp_path / "AR5 WG2.pdf").write_bytes(build_pdf(pages))
    documents = read(tmp_path / "AR5 WG2.pdf").documents
    assert any("century" in block.text for block in documents[0].blocks)
    found = extract(documents, ExtractOptions(untagged=True))
    assert [one.tag for one in found] == ["high", None, "medium", "high", "medium"]
    assert not any("century" in text for one in found for text in (one.sentence, *one.before, *one.after))
    assert extract_terms(documents) == []


def collection_of(document, **sizes):
    """What a collection says of its documents, without its vectors."""
    passages = split_passages(document, **sizes)
    stored = [StoredDocument.from_document(document, len(passages))]
    return SimpleNamespace(documents=lambda: stored, document_passages=lambda _id: passages)


def test_statements_of_a_collection_are_those_of_its_documents():
    blocks = tuple(Block(text, page=1 + place // 8, headings=("A",)) for place, text in enumerate(PARAGRAPHS))
    document = Document("d", "AR5 WG2", "report.pdf", blocks)
    options = ExtractOptions(acronyms="never")
    direct = extract([document], options)
    collected = extract(documents_of_collection(collection_of(document, size=400, overlap=150)), options)
    assert len(direct) == len(PARAGRAPHS)
    assert [(one.tag, one.text) for one in collected] == [(one.tag, one.text) for one in direct]
    assert {one.report for one in collected} == {"AR5 WG2"}
    assert collected[0].page == 1
    assert collected[-1].headings == ("A",)
    assert [one.before for one in collected] == [one.before for one in direct]
