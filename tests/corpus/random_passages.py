"""Synthetic collections of any size: random words, and unit vectors drawn from the text; no model is asked."""

import zlib

import numpy as np

from climassay.corpus import Block, Document

WORDS = 5000


class RandomEncoder:
    """A random unit vector for each text, the same every time."""

    name, fingerprint, width = "random", "r" * 64, 384

    def encode(self, texts, *, role="passage", on_progress=None):
        drawn = [np.random.default_rng(zlib.crc32(text.encode())).standard_normal(self.width) for text in texts]
        vectors = np.stack(drawn).astype(np.float32) if drawn else np.zeros((0, self.width), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def random_words(seed, count):
    """Words, the first ones of the vocabulary the most frequent (Zipf)."""
    rank = np.minimum(np.random.default_rng(seed).zipf(1.3, count), WORDS)
    return " ".join(f"w{number:x}ord" for number in rank)


def random_document(number, passages, words=200):
    """A document of so many passages."""
    blocks = tuple(Block(random_words((number, part), words), chapter=str(part)) for part in range(passages))
    return Document(f"d{number}", f"Document {number}", f"d{number}.md", blocks)
