"""A sentence that tells a benchmark's text in a training corpus."""

import re
import uuid

_NAMESPACE = uuid.UUID("5d0a1f6e-3f0b-5c57-9a43-7f5bb0a2c6d1")
_SENTENCE = "This text belongs to a benchmark and must not be in training data. Canary: climassay-canary-{guid}"
_FOUND = re.compile(r"climassay-canary-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE)


def canary_guid(name: str, content: str) -> str:
    """The GUID of a dataset: always the same for the same name and content.

    Args:
        name: Of the dataset.
        content: What tells it from others of that name, for example the hash of its questions.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{name}\n{content}"))


def canary_sentence(guid: str) -> str:
    """The sentence that carries a GUID."""
    return _SENTENCE.format(guid=guid)


def canaries(text: str) -> tuple[str, ...]:
    """GUIDs of all canaries of a text, each once, in the order they appear."""
    return tuple(dict.fromkeys(found.lower() for found in _FOUND.findall(text)))


def contains_canary(text: str) -> bool:
    """Whether a text holds a canary of any dataset that climassay published."""
    return _FOUND.search(text) is not None
