"""What is learned from: chats with their answers or plain texts, and splits of them that share no document."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

from climassay.corpus.documents import shared_start
from climassay.errors import InputError
from climassay.learning.splits import split_groups
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
    """Its text in reading order; nothing appears in two of them."""

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
        InputError: One of both is empty, they are of different kinds, or something appears in both.
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
            "a model that has memorised them proves nothing; remove them from one."
        )


def _contents(data: TuningData) -> set[object]:
    return {document.text for document in data.documents} if isinstance(data, TextData) else set(data.examples)


def _digest(parts: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


ValidateOn = Literal["held-out", "source"]
SAME_SHARE = 0.2
"""Two documents of which one has so much of its words in paragraphs of the other are the same for our purposes."""
_TELLING = 80
"""Characters of a paragraph that is not found in two documents by chance."""


@dataclass(frozen=True)
class ContinuedPretrainingData:
    """Documents to read, documents to validate on, and the certainty that the benchmark's books are not among them."""

    train: TextData
    validation: TextData
    validate_on: ValidateOn
    warnings: tuple[str, ...]
    """What a reader of the results must know."""

    @classmethod
    def assemble(
        cls,
        train: TextData,
        *,
        source: TextData | None,
        validation: TextData | None = None,
        validate_on: ValidateOn = "held-out",
    ) -> "ContinuedPretrainingData":
        """Check that training, validation and source documents are disjoint, and put them together.

        The ClimaQA paper (A.3.1) trains on 13 books that gave no questions and chooses its settings by the loss on the
        5 books that did: what is chosen has then been fitted to the test's own text. By default validation takes a
        third set of documents, and ``validate_on="source"`` does as the paper did, with a warning.

        Args:
            train: Documents to read.
            source: Documents that the benchmark's questions were made from; None where they are not at hand.
            validation: A third set; not to be given with ``validate_on="source"``.
            validate_on: ``held-out`` or ``source``.

        Raises:
            InputError: Two of the sets share a document, or one that is needed is missing.
        """
        if source is not None:
            refuse_overlap(train, source, "the training documents", "the documents that the questions come from")
        if validate_on == "source":
            return cls._on_source(train, source, validation)
        if validation is None:
            raise InputError("There is nothing to validate on: name validation documents, or validate on the source.")
        refuse_overlap(train, validation, "the training documents", "the validation documents")
        if source is None:
            warning = (
                "The documents that the questions come from were not named: nobody has checked that they are neither "
                "in the training nor in the validation documents."
            )
            return cls(train, validation, validate_on, (warning,))
        refuse_overlap(validation, source, "the validation documents", "the documents that the questions come from")
        return cls(train, validation, validate_on, ())

    @classmethod
    def _on_source(
        cls, train: TextData, source: TextData | None, validation: TextData | None
    ) -> "ContinuedPretrainingData":
        if source is None:
            raise InputError(
                "Validation on the source needs its documents: name the books that the questions come from."
            )
        if validation is not None:
            raise InputError(
                "With validation on the source, other validation documents are not used: name only one of the two."
            )
        warning = (
            f"Leakage: the adapter was chosen by its loss on {source.name}, the documents that the questions come from "
            "(as in the ClimaQA paper, A.3.1); its scores on these questions are too high by an unknown amount."
        )
        return cls(train, source, "source", (warning,))


def refuse_overlap(first: TextData, second: TextData, first_name: str, second_name: str) -> None:
    """Check that two sets of documents have nothing in common.

    The same document is one of the same id, or one of which :data:`SAME_SHARE` appears in the other word by word.

    Raises:
        InputError: They have.
    """
    others = [(document, _telling(document)) for document in second.documents]
    for document in first.documents:
        paragraphs = _telling(document)
        for other, its in others:
            if document.id == other.id or _shared(paragraphs, its) >= SAME_SHARE:
                raise InputError(
                    f"{document.title!r} is in {first_name} ({first.name}) and, as {other.title!r}, in {second_name} "
                    f"({second.name}): remove it from one of them."
                )


def _telling(document: TextDocument) -> frozenset[str]:
    """Paragraphs of a document in a form in which spacing and case do not count, short ones left out."""
    plain = (" ".join(paragraph.lower().split()) for paragraph in document.paragraphs)
    return frozenset(paragraph for paragraph in plain if len(paragraph) >= _TELLING)


def _shared(first: frozenset[str], second: frozenset[str]) -> float:
    """Share of the smaller document's characters that appear in both."""
    smaller = min(sum(map(len, first)), sum(map(len, second)))
    return sum(map(len, first & second)) / smaller if smaller else 0.0


def split_documents(data: TextData, share: float, *, seed: int = 0) -> tuple[TextData, TextData]:
    """Split documents into those to read and those to validate on.

    Args:
        data: At least two documents.
        share: Of the documents, for validation; at least one goes to each side.
        seed: Decides which.

    Raises:
        InputError: There are fewer than two documents, or the share is none.
    """
    kept, held_out = split_groups(data.documents, [document.id for document in data.documents], share, seed=seed)
    return TextData(data.name, kept), TextData(f"{data.name}, held out", held_out)
