"""A library to test pages with: collections whose vectors count topics, and files to send."""

import re

from climassay.corpus import Block, Collection, Document
from pdf_building import Text, build_pdf
from topic_encoder import TopicEncoder

OCEAN = "The ocean takes up heat and carbon. It warms slowly because water mixes down to great depths."
GLACIER = "A glacier loses mass where it melts faster than snow falls. Its albedo drops when the ice is dark."
CLOUD = "A cloud reflects sunlight, and an aerosol makes it brighter by giving it more droplets."


class TellingEncoder(TopicEncoder):
    """Tells how far it is, as real encoders do."""

    def encode(self, texts, *, role="passage", on_progress=None):
        vectors = super().encode(texts, role=role)
        if on_progress is not None:
            on_progress(len(texts))
        return vectors


def teach(place, encoder=None):
    """Have a place use the encoder of topics, or another one from now on, for all it makes and opens; gives it."""
    if encoder is not None:
        place.forget("encoder ")
        place.forget("library")
    known = place.shared("encoder local:minilm", lambda: encoder or TellingEncoder())
    return place.shared(f"encoder {TellingEncoder.name}", lambda: known)


def add_book(place, collection, title="Seas", texts=(OCEAN, GLACIER, CLOUD), source=None, **fields):
    """Add a document of one passage a text, with pages and headings; gives its id."""
    made = Collection.create(place.workspace, collection, teach(place))
    blocks = tuple(
        Block(text, page=number + 1, headings=("Part I", f"Section {number + 1}"), chapter=f"Chapter {number + 1}")
        for number, text in enumerate(texts)
    )
    document = re.sub("[^a-z0-9]+", "-", f"{title} {collection}".lower())
    made.add([Document(document, title, source or f"{title}.pdf", blocks, **fields)])
    return document


def pdf_of(*pages, title="Seas"):
    """A PDF file with a paragraph a page."""
    texts = [[Text(72, 700 - 14 * line, part, 11) for line, part in enumerate(_lines(page))] for page in pages]
    return build_pdf(texts, title=title)


def _lines(text, width=70):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
