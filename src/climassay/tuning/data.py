"""Training data, chats with answers or plain texts, and splits without common documents."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

from climassay.corpus.documents import count_repeated_characters
from climassay.errors import InputError
from climassay.learning.splits import split_groups
from climassay.models.contract import Message


@dataclass(frozen=True, slots=True)
class ChatExample:
    """Chat and the answer to learn. Only the answer and the end of its turn count in the loss.

    Example: messages ``(Message("user", "Is it warming? yes or no"),)``, prefix ``"Answer:"``, answer ``" yes"``.
    """

    messages: tuple[Message, ...]
    """Turns before the answer, as in an evaluation; they are formatted with the model's chat template."""
    assistant_prefix: str
    """Start of the assistant's turn, which is not learned."""
    answer: str
    """Continuation of the assistant's turn, starting with a space if the prefix ends without one."""


@dataclass(frozen=True, slots=True)
class TextDocument:
    """Book, report or article."""

    id: str
    """Identifier of the document in its collection."""
    title: str
    paragraphs: tuple[str, ...]
    """Paragraphs in reading order, without the overlaps of passages."""

    @classmethod
    def from_passages(cls, id: str, title: str, passages: Sequence[str]) -> "TextDocument":
        """Create a document from passages in reading order, removing the text that neighbouring passages share."""
        paragraphs = []
        previous = ""
        for passage in passages:
            text = passage[count_repeated_characters(previous, passage) :].strip()
            if text:
                paragraphs.append(text)
            previous = passage
        return cls(id, title, tuple(paragraphs))

    @property
    def text(self) -> str:
        """Full text, with a blank line between paragraphs."""
        return "\n\n".join(self.paragraphs)


@dataclass(frozen=True)
class ChatData:
    """Named set of examples for fine-tuning."""

    name: str
    """Name shown in reports, for example that of the file."""
    examples: tuple[ChatExample, ...]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the examples in their order."""
        return _digest(asdict(example) for example in self.examples)

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.examples)


@dataclass(frozen=True)
class TextData:
    """Named set of documents for continued pre-training."""

    name: str
    """Name shown in reports, for example that of the collections."""
    documents: tuple[TextDocument, ...]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the texts of the documents in their order."""
        return _digest(document.text for document in self.documents)

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.documents)


TuningData = ChatData | TextData


def check_data(train: TuningData, validation: TuningData) -> None:
    """Validate that training and validation data are disjoint, not empty, and of one kind.

    Raises:
        InputError: The data are of different kinds, empty, or have an example or document in common.
    """
    if type(train) is not type(validation):
        raise InputError("Training and validation data are of different kinds: give examples for both, or texts.")
    for role, data in (("training", train), ("validation", validation)):
        if not data.size or (
            isinstance(data, TextData) and not any(document.paragraphs for document in data.documents)
        ):
            raise InputError(f"The {role} data {data.name!r} is empty: there is nothing to learn from.")
    common = _unique_items(train) & _unique_items(validation)
    if common:
        subject = "examples are" if isinstance(train, ChatData) else "documents are"
        raise InputError(
            f"{len(common)} {subject} in the training data {train.name!r} and in the validation data "
            f"{validation.name!r}: "
            "a model that has memorised them proves nothing; remove them from one."
        )


def _unique_items(data: TuningData) -> set[object]:
    return {document.text for document in data.documents} if isinstance(data, TextData) else set(data.examples)


def _digest(parts: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


ValidateOn = Literal["held-out", "source"]
SAME_SHARE = 0.2
"""Share of the smaller document's characters in common paragraphs from which two documents count as the same."""
_MIN_CHARACTERS = 80
"""Minimum length, in characters, of paragraphs that are compared; two documents may share shorter ones by chance."""


@dataclass(frozen=True)
class ContinuedPretrainingData:
    """Training and validation documents for continued pre-training, checked for leakage of the benchmark."""

    train: TextData
    validation: TextData
    validate_on: ValidateOn
    warnings: tuple[str, ...]
    """Warnings for readers of the results."""

    @classmethod
    def assemble(
        cls,
        train: TextData,
        *,
        source: TextData | None,
        validation: TextData | None = None,
        validate_on: ValidateOn = "held-out",
    ) -> "ContinuedPretrainingData":
        """Validate that training, validation and source documents are disjoint, and combine them.

        The ClimaQA paper (A.3.1) trains on 13 books without questions and chooses its settings by the loss on the 5
        books with questions, so that the settings are fitted to the text of the test. By default validation uses a
        third set of documents; ``validate_on="source"`` follows the paper, with a warning.

        Args:
            train: Training documents.
            source: Documents that the benchmark's questions come from; None if they are not available.
            validation: Validation documents; must be None with ``validate_on="source"``.
            validate_on: ``held-out`` or ``source``.

        Raises:
            InputError: Two of the sets share a document, or a required set is missing.
        """
        if source is not None:
            check_disjoint(train, source, "the training documents", "the documents that the questions come from")
        if validate_on == "source":
            return cls._validate_on_source(train, source, validation)
        if validation is None:
            raise InputError("There is nothing to validate on: name validation documents, or validate on the source.")
        check_disjoint(train, validation, "the training documents", "the validation documents")
        if source is None:
            warning = (
                "The documents that the questions come from were not named: nobody has checked that they are neither "
                "in the training nor in the validation documents."
            )
            return cls(train, validation, validate_on, (warning,))
        check_disjoint(validation, source, "the validation documents", "the documents that the questions come from")
        return cls(train, validation, validate_on, ())

    @classmethod
    def _validate_on_source(
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


def check_disjoint(first: TextData, second: TextData, first_name: str, second_name: str) -> None:
    """Validate that two sets of documents have no document in common.

    Documents are the same if they have the same id, or share :data:`SAME_SHARE` of their text word by word.

    Raises:
        InputError: A document is in both sets; the message calls the sets ``first_name`` and ``second_name``.
    """
    second_paragraphs = [(document, _long_paragraphs(document)) for document in second.documents]
    for document in first.documents:
        paragraphs = _long_paragraphs(document)
        for other, other_paragraphs in second_paragraphs:
            if document.id == other.id or _shared_fraction(paragraphs, other_paragraphs) >= SAME_SHARE:
                raise InputError(
                    f"{document.title!r} is in {first_name} ({first.name}) and, as {other.title!r}, in {second_name} "
                    f"({second.name}): remove it from one of them."
                )


def _long_paragraphs(document: TextDocument) -> frozenset[str]:
    """Return the paragraphs that are long enough to be compared, in lower case with single spaces."""
    plain = (" ".join(paragraph.lower().split()) for paragraph in document.paragraphs)
    return frozenset(paragraph for paragraph in plain if len(paragraph) >= _MIN_CHARACTERS)


def _shared_fraction(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the fraction of the smaller document's characters in paragraphs that both have."""
    smaller = min(sum(map(len, first)), sum(map(len, second)))
    return sum(map(len, first & second)) / smaller if smaller else 0.0


def split_documents(data: TextData, share: float, *, seed: int = 0) -> tuple[TextData, TextData]:
    """Split documents at random into training and validation data.

    Args:
        data: At least two documents.
        share: Fraction of the documents for validation, above 0 and below 1; each side gets at least one document.
        seed: Seed of the draw.

    Raises:
        InputError: There are fewer than two documents, or the share is not between 0 and 1.
    """
    train, validation = split_groups(data.documents, [document.id for document in data.documents], share, seed=seed)
    return TextData(data.name, train), TextData(f"{data.name}, held out", validation)
