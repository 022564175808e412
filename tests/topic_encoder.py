"""Collections whose similarities can be worked out by hand: a text's vector counts the topics that it names."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from climassay.corpus import Block, Collection, Document
from climassay.grounding import CollectionGroup

TOPICS = ("albedo", "cloud", "aerosol", "ocean", "carbon", "glacier")


class TopicEncoder:
    """A text's vector holds how often it names each topic; its last place is 1 for texts that name none."""

    name, fingerprint, width = "local:topics", "7" * 64, len(TOPICS) + 1

    def encode(self, texts: Sequence[str], *, role: Any = "passage", on_progress: Any = None) -> Any:
        counts = np.array([[text.lower().count(topic) for topic in TOPICS] + [0] for text in texts], dtype=np.float32)
        counts = counts.reshape(len(texts), self.width)
        counts[counts.sum(axis=1) == 0, -1] = 1
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def book_group(folder: Path, books: Mapping[str, Mapping[str, Sequence[str]]], name: str = "books") -> CollectionGroup:
    """A collection of books, each from section headings to texts; every text becomes one passage."""
    collection = Collection.create(folder, name, TopicEncoder(), passage_size=200, passage_overlap=0)
    collection.add(
        Document(
            f"id-{title}",
            title,
            f"{title}.md",
            tuple(
                # A chapter of its own for every text keeps the splitter from joining two texts in one passage.
                Block(text, headings=(section,), chapter=f"{section} {number}")
                for section, texts in sections.items()
                for number, text in enumerate(texts)
            ),
            licence="CC0",
        )
        for title, sections in books.items()
    )
    return CollectionGroup((collection,))
