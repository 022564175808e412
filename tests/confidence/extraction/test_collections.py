"""Documents come back from the passages of a collection."""

from types import SimpleNamespace

from climassay.confidence.extraction import ExtractOptions, documents_of_collection, extract
from climassay.corpus.collection_rows import StoredDocument
from climassay.corpus.documents import Block, Document
from climassay.corpus.passages import split_passages

PARAGRAPHS = [
    f"Finding {number} says that seas rise by {number} mm a year ({tag} confidence). It was made in year {number}."
    for number, tag in enumerate(["low", "medium", "high", "very high"] * 6)
]


def collection_of(document, **sizes):
    """What a collection says of its documents, without its vectors."""
    passages = split_passages(document, **sizes)
    stored = [StoredDocument.of(document, len(passages))]
    return SimpleNamespace(documents=lambda: stored, document_passages=lambda _id: passages)


def test_statements_of_a_collection_are_those_of_its_documents():
    blocks = tuple(Block(text, page=1 + place // 8, headings=("A",)) for place, text in enumerate(PARAGRAPHS))
    document = Document("d", "AR5 WG2", "report.pdf", blocks)
    options = ExtractOptions(acronyms="none")
    direct = extract([document], options)
    collected = extract(documents_of_collection(collection_of(document, size=400, overlap=150)), options)
    assert len(direct) == len(PARAGRAPHS)
    assert [(one.tag, one.text) for one in collected] == [(one.tag, one.text) for one in direct]
    assert {one.report for one in collected} == {"AR5 WG2"}
    assert collected[0].page == 1
    assert collected[-1].headings == ("A",)
    assert [one.before for one in collected] == [one.before for one in direct]
