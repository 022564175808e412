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
    """Chat with the answer that the model is trained to give.

    Only the tokens of the answer and of the end of its turn count in the loss.

    Example: messages ``(Message("user", "Is it warming? yes or no"),)``, prefix ``"Answer:"``, answer ``" yes"``.
    """

    messages: tuple[Message, ...]
    """Turns before the answer, as in an evaluation. The model's chat template formats them."""
    assistant_prefix: str
    """Beginning of the assistant's turn; its tokens do not count in the loss."""
    answer: str
    """Continuation of the assistant's turn, starting with a space if the prefix ends without one."""


@dataclass(frozen=True, slots=True)
class TextDocument:
    """Text of a book, report or article."""

    id: str
    """Identifier of the document in its collection."""
    title: str
    paragraphs: tuple[str, ...]
    """Paragraphs in reading order, without overlaps between adjacent passages."""

    @classmethod
    def from_passages(cls, id: str, title: str, passages: Sequence[str]) -> "TextDocument":
        """Create a document from passages in reading order; text that adjacent passages share is included once."""
        paragraphs = []
        previous_passage = ""
        for passage in passages:
            text = passage[count_repeated_characters(previous_passage, passage) :].strip()
            if text:
                paragraphs.append(text)
            previous_passage = passage
        return cls(id, title, tuple(paragraphs))

    @property
    def text(self) -> str:
        """Full text, with a blank line between paragraphs."""
        return "\n\n".join(self.paragraphs)


@dataclass(frozen=True)
class ChatData:
    """Named set of examples for fine-tuning."""

    name: str
    """Name shown in reports, for example the name of the file."""
    examples: tuple[ChatExample, ...]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the examples in their order."""
        return _hash_text(asdict(example) for example in self.examples)

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.examples)


@dataclass(frozen=True)
class TextData:
    """Named set of documents for continued pre-training."""

    name: str
    """Name of the data set in reports, for example the names of the document collections that it was built from."""
    documents: tuple[TextDocument, ...]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the texts of the documents in their order."""
        return _hash_text(document.text for document in self.documents)

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.documents)


TuningData = ChatData | TextData


def check_data(train: TuningData, validation: TuningData) -> None:
    """Check that training and validation data are of the same kind, not empty, and disjoint.

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
    common_items = _collect_items(train) & _collect_items(validation)
    if common_items:
        subject = "examples are" if isinstance(train, ChatData) else "documents are"
        raise InputError(
            f"{len(common_items)} {subject} in the training data {train.name!r} and in the validation data "
            f"{validation.name!r}: "
            "a model that has memorised them proves nothing; remove them from one."
        )


def _collect_items(data: TuningData) -> set[object]:
    return {document.text for document in data.documents} if isinstance(data, TextData) else set(data.examples)


def _hash_text(parts: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


ValidateOn = Literal["held-out", "source"]
MIN_SHARED_FRACTION = 0.2
"""Two documents count as the same if at least this fraction of the smaller one's text is in shared paragraphs."""
_MIN_CHARACTERS = 80
"""Minimum length, in characters, of the paragraphs that are compared. Shorter paragraphs may be equal by chance."""


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
        """Check that training, validation and source documents are disjoint, and combine them.

        The ClimaQA paper (A.3.1) trains on 13 books without questions. It chooses its settings by the loss on the 5
        source books of the test questions, which leaks test data. By default, validation uses a third set of documents.
        ``validate_on="source"`` follows the paper, with a warning.

        Args:
            train: Training documents.
            source: Documents from which the benchmark's questions come; None if they are not available.
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
    """Check that two sets of documents have no document in common.

    Documents count as the same if they have the same id, or if the fraction of common paragraphs reaches
    :data:`MIN_SHARED_FRACTION`. Error messages call the sets ``first_name`` and ``second_name``.

    Raises:
        InputError: A document is in both sets.
    """
    second_paragraphs = [(document, _find_long_paragraphs(document)) for document in second.documents]
    for document in first.documents:
        paragraphs = _find_long_paragraphs(document)
        for other_document, other_paragraphs in second_paragraphs:
            if (
                document.id == other_document.id
                or _compute_shared_fraction(paragraphs, other_paragraphs) >= MIN_SHARED_FRACTION
            ):
                raise InputError(
                    f"{document.title!r} is in {first_name} ({first.name}) and, as {other_document.title!r}, in "
                    f"{second_name} ({second.name}): remove it from one of them."
                )


def _find_long_paragraphs(document: TextDocument) -> frozenset[str]:
    paragraphs = (" ".join(paragraph.lower().split()) for paragraph in document.paragraphs)
    return frozenset(paragraph for paragraph in paragraphs if len(paragraph) >= _MIN_CHARACTERS)


def _compute_shared_fraction(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the number of characters in common paragraphs as a fraction of the smaller document's characters."""
    min_size = min(sum(map(len, first)), sum(map(len, second)))
    return sum(map(len, first & second)) / min_size if min_size else 0.0


def split_documents(data: TextData, share: float, *, seed: int = 0) -> tuple[TextData, TextData]:
    """Split documents at random into training and validation data.

    Args:
        data: Two or more documents.
        share: Fraction of the documents for validation, above 0 and below 1; each part gets at least one document.
        seed: Seed of the draw.

    Raises:
        InputError: There are fewer than two documents, or the share is not between 0 and 1.
    """
    train, validation = split_groups(data.documents, [document.id for document in data.documents], share, seed=seed)
    return TextData(data.name, train), TextData(f"{data.name}, held out", validation)
