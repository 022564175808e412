"""Listing of the claims that a document makes, by a language model, with the sentences that make them.

The model names sentences by their numbers, so that quotations are always words of the document. Its own wording of a
claim is used unless it has a figure that the sentences lack, or is cut at the maximum length; then the sentences
themselves are the claim.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from climassay.claim_identity import claim_key
from climassay.corpus.documents import Document, Passage, split_passages
from climassay.corpus.sentences import split_sentences
from climassay.factcheck.claims import assess_claims
from climassay.factcheck.debate.context import join_lines
from climassay.grounding.quantities import find_foreign_quantities
from climassay.models.contract import Completion, Encoder, GenerationRequest, Generator, Sampling, object_schema
from climassay.prompts import Prompt, load_prompt
from climassay.reporting import counted

_MAX_LENGTH = 300
"""Maximum number of characters of a claim."""
_MAX_CLAIMS = 12
"""Maximum number of claims per passage."""
_MAX_SENTENCES = 3
"""Maximum number of sentences from which a claim may be drawn."""
_SCHEMA = object_schema(
    {
        "claims": {
            "type": "array",
            "maxItems": _MAX_CLAIMS,
            "items": object_schema(
                {
                    "sentences": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": _MAX_SENTENCES,
                        "items": {"type": "integer", "minimum": 1},
                    },
                    "claim": {"type": "string", "maxLength": _MAX_LENGTH},
                }
            ),
        }
    }
)


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """Claim found in a document."""

    claim: str
    """Claim, worded so that it can be understood without the document."""
    sentences: str
    """Sentences of the document that make the claim, joined by spaces."""
    document: str
    """Title of the document."""
    page: int | None
    """Page on which the passage with these sentences begins; None if the document has no pages."""
    section: str
    url: str
    """Web address of the document; empty if unknown."""
    is_quoted: bool
    """Whether the claim repeats the sentences, because the model's wording states a quantity that they lack, or was cut
    at the maximum length."""


@dataclass(slots=True)
class ClaimLister:
    """Lists the claims of documents with a language model.

    Attributes:
        model: Model that answers under a JSON schema; use a recorded one to store its answers.
        prompt: Template with ``document``, ``section``, ``sentences``, ``max_length`` and ``max_claims``.
        n_failed: Number of passages without a usable answer.
        error: Error message of the latest unusable answer.
        n_rejected: Number of rejected claims, which name no sentence of the passage, name more than three, or only
            repeat a heading.
        n_repeated: Number of claims dropped because an earlier claim has the same words.
    """

    model: Generator
    prompt: Prompt = field(default_factory=lambda: load_prompt("factcheck_claims"))
    n_failed: int = 0
    error: str = ""
    n_rejected: int = 0
    n_repeated: int = 0

    def list_claims(
        self, passages: Sequence[Passage], on_progress: Callable[[int], None] = lambda _: None
    ) -> list[ListedClaim]:
        """Ask the model for the claims of each passage, and return them in text order.

        Args:
            passages: Passages of a document, as returned by :func:`claim_passages`.
            on_progress: Callback that is called with 1 for each passage answered.
        """
        sentence_lists = [[*map(join_lines, split_sentences(passage.text))] for passage in passages]
        answers = self.model.generate(
            [self._request(passage, sentences) for passage, sentences in zip(passages, sentence_lists, strict=True)],
            on_result=lambda _index, _answer: on_progress(1),
        )
        claims: dict[str, ListedClaim] = {}
        for passage, sentences, answer in zip(passages, sentence_lists, answers, strict=True):
            for claim in self._read(passage, sentences, answer):
                key = claim_key(claim.claim)
                if key in claims:
                    self.n_repeated += 1
                else:
                    claims[key] = claim
        return list(claims.values())

    def notes(self, claims: Sequence[ListedClaim], origin: str) -> list[str]:
        """Return sentences on the listed claims of ``origin``, such as "3 passages of FILE", and on those left out."""
        notes = [f"{counted(len(claims), 'claim')} in {origin}, listed by {self.model.name}."]
        if self.n_failed:
            notes.append(f"{counted(self.n_failed, 'passage')} without a usable answer ({self.error}): run it again.")
        if self.n_rejected:
            notes.append(f"{counted(self.n_rejected, 'claim')} left out that name no sentence, or too many.")
        if self.n_repeated:
            notes.append(f"{counted(self.n_repeated, 'claim')} left out that an earlier row has.")
        if n_quoted := sum(claim.is_quoted for claim in claims):
            notes.append(
                f"{counted(n_quoted, 'claim')} in the document's words, because the model's had another figure or no "
                "end."
            )
        return notes

    def _request(self, passage: Passage, sentences: Sequence[str]) -> GenerationRequest:
        rendered_prompt = self.prompt.render(
            document=passage.document,
            section=_section(passage),
            sentences=sentences,
            max_length=_MAX_LENGTH,
            max_claims=_MAX_CLAIMS,
        )
        return GenerationRequest(
            rendered_prompt.messages,
            Sampling(max_tokens=None),
            _SCHEMA,
            assistant_prefix=rendered_prompt.assistant_prefix,
        )

    def _read(self, passage: Passage, sentences: Sequence[str], answer: Completion) -> Iterator[ListedClaim]:
        """Yield the claims in a model's answer; count unusable answers and rejected claims."""
        entries: list[tuple[list[int], str]] = []
        try:
            if answer.error is not None:
                raise ValueError(answer.error)
            entries += [
                ([int(number) for number in entry["sentences"]], join_lines(str(entry["claim"])))
                for entry in json.loads(answer.text)["claims"]
            ]
        except (ValueError, KeyError, TypeError) as error:
            self.n_failed += 1
            self.error = str(error)
            return
        headings = {claim_key(text) for text in (passage.document, _section(passage), *passage.headings)}
        for numbers, wording in entries:
            indices = sorted({number - 1 for number in numbers if 1 <= number <= len(sentences)})
            if not 0 < len(indices) <= _MAX_SENTENCES or not wording or claim_key(wording) in headings:
                self.n_rejected += 1
                continue
            quotation = " ".join(sentences[index] for index in indices)
            is_quoted = len(wording) >= _MAX_LENGTH or bool(find_foreign_quantities(wording, [quotation]))
            yield ListedClaim(
                quotation if is_quoted else wording,
                quotation,
                passage.document,
                passage.first_page,
                _section(passage),
                passage.url or "",
                is_quoted,
            )


def claim_passages(documents: Sequence[Document]) -> list[Passage]:
    """Split documents into passages without overlap, so that each sentence is in one passage only."""
    return [passage for document in documents for passage in split_passages(document, overlap=0)]


def listed_rows(claims: Sequence[ListedClaim], encoder: Encoder) -> list[dict[str, Any]]:
    """Convert claims to table rows that :func:`~climassay.factcheck.read_claims` can read.

    Text in the column ``strike`` excludes a claim from fact-checks. It is filled in for claims that are not checkable
    or not about climate (:func:`~climassay.factcheck.assess_claims`), such as lists of names.

    Args:
        claims: Claims to convert.
        encoder: Encoder of the classifier that assesses the claims.
    """
    results = assess_claims([claim.claim for claim in claims], encoder) if claims else []
    return [
        {
            "strike": "" if result.kind == "checkable" else result.kind,
            "claim": claim.claim,
            "sentences": claim.sentences,
            "source": claim.document,
            "page": claim.page,
            "section": claim.section,
            "appearance": claim.url,
            "wording": "the document's" if claim.is_quoted else "the model's",
        }
        for claim, result in zip(claims, results, strict=True)
    ]


def _section(passage: Passage) -> str:
    return " > ".join(filter(None, (passage.chapter, *passage.headings)))
