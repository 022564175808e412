"""Checks of texts that run in a process that can be stopped: the rules there, searches and the encoder in the server.

The process imports this module, which must not import the web framework.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter

from climassay.confidence.linting import LintFinding, check, draft_of
from climassay.confidence.linting.presentation import Piece, split_at_findings
from climassay.confidence.overstatement import describe_overstatement
from climassay.corpus.collection_storage import StoredDocument
from climassay.corpus.documents import Hit
from climassay.grounding.text_check import CheckedSentence, check_sentences
from climassay.io.sandbox import Ask
from climassay.models.contract import EncoderRole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from climassay.grounding import CollectionGroup

_HITS = TypeAdapter(list[list[Hit]])
_DOCUMENTS = TypeAdapter(list[StoredDocument])
SENTENCES = TypeAdapter(tuple[CheckedSentence, ...])


@dataclass(frozen=True)
class DraftFindings:
    """Findings in a draft's confidence language, for its page."""

    words: int
    is_read: bool
    conclusion: str
    by_rule: dict[str, int]
    findings: tuple[LintFinding, ...]
    pieces: tuple[Piece, ...]
    """Text of the draft, split at the findings."""


FINDINGS = TypeAdapter(DraftFindings)


def find_in_draft(text: str, _ask: Ask) -> DraftFindings:
    """Check how a draft states confidence and likelihood."""
    checked = check(draft_of(text))
    return DraftFindings(
        checked.draft.words,
        checked.is_read,
        checked.conclusion,
        checked.by_rule,
        checked.findings,
        split_at_findings(checked),
    )


def compare_text(request: dict[str, Any], ask: Ask) -> tuple[CheckedSentence, ...]:
    """Compare each sentence of a text with the collections of the server; see :func:`answer_questions`."""
    collections = _ServerCollections(_ServerEncoder(**request["encoder"], ask=ask), ask)
    return check_sentences(request["text"], collections, find_overstatement=describe_overstatement)


def make_request(text: str, group: "CollectionGroup") -> dict[str, Any]:
    """Return the argument of :func:`compare_text`."""
    encoder = group.encoder
    identity = {"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width}
    return {"text": text, "encoder": identity}


def answer_questions(group: "CollectionGroup") -> Ask:
    """Return the function by which the server answers the questions of :func:`compare_text`."""

    def answer(question: str, argument: Any) -> Any:
        if question == "documents":
            return group.documents()
        if question == "search":
            return group.search_many(argument["queries"], k=argument["k"])
        vectors = np.asarray(group.encoder.encode(argument["texts"], role=argument["role"]), dtype="<f4")
        return base64.b64encode(vectors.tobytes()).decode()

    return answer


@dataclass(frozen=True)
class _ServerEncoder:
    """Encoder of the server, used from the process that checks a text."""

    name: str
    fingerprint: str
    width: int
    ask: Ask

    def encode(
        self, texts: Sequence[str], *, role: EncoderRole = "passage", on_progress: Callable[[int], None] | None = None
    ) -> "NDArray[np.float32]":
        """Return unit vectors, shape [texts, width], in the order of ``texts``."""
        vectors = base64.b64decode(self.ask("encode", {"texts": list(texts), "role": role}))
        if on_progress is not None:
            on_progress(len(texts))
        return np.frombuffer(vectors, dtype="<f4").reshape(len(texts), self.width)


@dataclass(frozen=True)
class _ServerCollections:
    """Collections of the server, searched from the process that checks a text."""

    encoder: _ServerEncoder
    ask: Ask

    def documents(self) -> list[StoredDocument]:
        """Return the documents of all collections."""
        return _DOCUMENTS.validate_python(self.ask("documents", None))

    def search_many(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """Return at most ``k`` passages for each query, best first."""
        return _HITS.validate_python(self.ask("search", {"queries": list(queries), "k": k}))
