"""What is learned from: chats with their answers, or plain texts."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from climassay.corpus.passages import shared_start
from climassay.errors import InputError
from climassay.models.contract import Message


@dataclass(frozen=True, slots=True)
class ChatExample:
    """A chat and the answer that the model is to learn. Only the answer and the end of its turn are learned.

    Example: messages ``(Message("user", "Is it warming? yes or no"),)``, prefix ``"Answer:"``, answer ``" yes"``.
    """

    messages: tuple[Message, ...]
    """All turns before the answer, as at evaluation; the model's own chat template is put around them."""
    assistant_prefix: str
    """Start of the assistant's turn that is given to the model and not learned."""
    answer: str
    """What the assistant goes on with, the space before it included where the prefix ends without one."""


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A book, report or article, as one text."""

    id: str
    """As in its collection."""
    title: str
    paragraphs: tuple[str, ...]
    """Its text in reading order; nothing stands in two of them."""

    @classmethod
    def from_passages(cls, id: str, title: str, passages: Sequence[str]) -> "TextDocument":
        """Put a document together from its passages in reading order; what neighbours share is kept once."""
        kept = []
        before = ""
        for passage in passages:
            text = passage[shared_start(before, passage) :].strip()
            if text:
                kept.append(text)
            before = passage
        return cls(id, title, tuple(kept))

    @property
    def text(self) -> str:
        """The whole of it, paragraphs apart from each other by an empty line."""
        return "\n\n".join(self.paragraphs)


@dataclass(frozen=True)
class ChatData:
    """A named set of examples for fine-tuning."""

    name: str
    """For reports, for example the file's name."""
    examples: tuple[ChatExample, ...]

    @cached_property
    def sha256(self) -> str:
        """Over the examples in their order."""
        return _digest(asdict(example) for example in self.examples)

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.examples)


@dataclass(frozen=True)
class TextData:
    """A named set of documents for continued pre-training."""

    name: str
    """For reports, for example the collections' names."""
    documents: tuple[TextDocument, ...]

    @cached_property
    def sha256(self) -> str:
        """Over the texts of the documents in their order."""
        return _digest(document.text for document in self.documents)

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.documents)


TuningData = ChatData | TextData


def check_data(train: TuningData, validation: TuningData) -> None:
    """Refuse data that nothing can be learned from, or nothing can be said about.

    Raises:
        InputError: One of both is empty, they are of different kinds, or something stands in both.
    """
    if type(train) is not type(validation):
        raise InputError("Training and validation data are of different kinds: give examples for both, or texts.")
    for role, data in (("training", train), ("validation", validation)):
        if not data.size or (isinstance(data, TextData) and not any(one.paragraphs for one in data.documents)):
            raise InputError(f"The {role} data {data.name!r} is empty: there is nothing to learn from.")
    both = _contents(train) & _contents(validation)
    if both:
        what = "examples stand" if isinstance(train, ChatData) else "documents stand"
        raise InputError(
            f"{len(both)} {what} in the training data {train.name!r} and in the validation data {validation.name!r}: "
            "what was learned by heart says nothing, take them out of one."
        )


def _contents(data: TuningData) -> set[object]:
    return {document.text for document in data.documents} if isinstance(data, TextData) else set(data.examples)


def _digest(parts: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()
