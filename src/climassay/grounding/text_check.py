"""Check of a text, sentence by sentence, against the passages of collections.

1. Each sentence that makes a claim is a query, together with the previous sentence if it begins with a word such as
   "it" or "this". Passages that the sentence cites by number are added to the results.
2. The most similar sentences of each passage are the evidence. Words and vectors only show that a passage says
   something similar: false sentences are as similar to their sources as true ones.
3. Rules find differences (:mod:`climassay.grounding.differences`). A different figure for the same quantity contradicts
   the sentence. Opposite words, negations, other regions and unknown names mark it, as do invalid references
   (:mod:`climassay.grounding.references`) and overstated certainty, which a function of the caller finds. The source
   sentence that has the other figure, the opposite word or the negation is the first piece of evidence.
4. A sentence is supported only if a language model that reads it with its passages says so
   (:mod:`climassay.grounding.support_judge`) and quotes words of a passage, and if no figure differs.

See docs/results/check_text.md for the accuracy of the marks.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError
from climassay.grounding.absence import (
    is_bare_answer,
    states_absence,
)
from climassay.grounding.citations import CitingSentence, read_citations
from climassay.grounding.differences import (
    MIN_NEARNESS,
    Difference,
    SourceSentence,
    find_differing_quantities,
    find_foreign_names,
    find_opposed_words,
    find_other_places,
    find_swapped_names,
)
from climassay.grounding.quantities import find_foreign_quantities, find_quantities
from climassay.grounding.references import (
    CheckedReference,
    ReferenceChecker,
    ReferenceList,
    expand_links,
    remove_addresses,
)
from climassay.grounding.support_judge import Judgement, SupportJudge
from climassay.metrics.pair_features import content_words
from climassay.models.contract import (
    Encoder,
)

if TYPE_CHECKING:
    from climassay.corpus.collection_storage import StoredDocument
    from climassay.corpus.documents import Hit


class SearchedCollections(Protocol):
    """Collections that are searched together, for example a :class:`~climassay.grounding.CollectionGroup`."""

    @property
    def encoder(self) -> Encoder:
        """Encoder that compares sentences."""

    def documents(self) -> "list[StoredDocument]":
        """Return the documents of all collections."""

    def search_many(self, queries: Sequence[str], *, k: int) -> "list[list[Hit]]":
        """Return at most ``k`` passages for each query, best first."""


Status = Literal["supported", "contradicted", "similar", "unsupported", "no claim"]
"""Status of a checked sentence.

- ``supported``: a judge (a language model) says so and quotes words of the passage.
- ``contradicted``: a passage has another value for the same quantity, or the judge says so and quotes the passage.
- ``similar``: a passage says something similar; no judge has checked whether it says the same.
- ``unsupported``: no retrieved passage says it, or the passages lack one of its quantities or names. It may be true.
- ``no claim``: it makes no claim that could be looked up.
"""
STATUSES: tuple[Status, ...] = get_args(Status)
N_PASSAGES = 5
"""Number of passages compared with each sentence."""
MIN_SIMILARITY = 0.5
"""Minimum cosine similarity at which a passage counts as similar to a sentence."""
MIN_COVERAGE = 0.6
"""Minimum fraction of a sentence's content words that a passage must contain to count as similar although its cosine is
below :data:`MIN_SIMILARITY`.
"""
MAX_TEXT_LENGTH = 200_000
"""Maximum length of a text to check, in characters."""

FindOverstatement = Callable[[str, str], str | None]
"""Function of a sentence and its source that returns a description of overstated certainty, or None."""

_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|(?:[-*+\u2022]|\d{1,2}[.)])\s+)*")
_HEADING = re.compile(r"^\s*#{1,6}\s")
_BACKWARD_REFERENCE = re.compile(
    r"(?:\S+\s+){0,6}?(?:it|its|they|their|them|this|these|those|such|he|she|both|the\s+(?:latter|former|same))\b", re.I
)
"""Pattern of a pronoun near the beginning of a sentence that refers to the previous sentence."""
_REMARK = re.compile(
    r"(?:i\b|i['’]m|we\s+hope|let\s+me|let['’]s|please|here\s+(?:is|are)|sure\b|of\s+course|certainly[!,]|thank|hello|hi\b|dear\b|"
    r"as\s+an\s+ai|feel\s+free|if\s+you\s+(?:would|want|need|have|like)|great\s+question|you\s+(?:can|may|might)\s+(?:also\s+)?)",
    re.IGNORECASE,
)
_YEAR_OF_A_WORK = re.compile(
    r"\b(?:1[89]|20)\d\d\s+(?=(?:study|paper|report|review|assessment|article|analysis|publication)\b)", re.IGNORECASE
)
_MIN_ADDED_SHARE = 0.15
"""Minimum fraction of a claim's content words that an adjacent sentence must add for the quotation to include it."""
_MIN_WORDS = 3
"""Minimum number of content words for a sentence without quantities to count as a claim."""


Relation = Literal["contradicts", "supports", "nearest"]
"""Relation of a quotation to the checked sentence.

- ``contradicts``: it has another value, an opposite word or a negation, or a judge says that it contradicts.
- ``supports``: a judge says that it supports.
- ``nearest``: it is the most similar sentence, in which no difference in value, direction or negation was found.
"""


@dataclass(frozen=True, slots=True)
class PassageEvidence:
    """Passage compared with a sentence, and the most similar part of it."""

    passage: str
    """Id of the passage."""
    citation: str
    """Location of the passage, for readers."""
    quotation: str
    """Sentences of the passage that contradict or support the checked sentence, or are most similar to it."""
    similarity: float
    """Maximum cosine similarity between a sentence of the passage and the checked sentence, from -1 to 1."""
    relation: Relation = "nearest"


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """Sentence of a text with the result of its check."""

    text: str
    """Sentence as written, without bracketed citation numbers."""
    paragraph: int
    """Index of its paragraph, from 0."""
    status: Status
    reason: str
    """Reason for the status, in one sentence."""
    evidence: tuple[PassageEvidence, ...] = ()
    """Quotations of passages, the decisive one first; empty if no passage was found."""
    differing: tuple[Difference, ...] = ()
    """Quantities and words that differ from the evidence."""
    overstated: str | None = None
    """Description of overstated certainty; None if the certainty is not overstated."""
    references: tuple[CheckedReference, ...] = ()
    judgement: Judgement | None = None

    @property
    def wrong_references(self) -> tuple[CheckedReference, ...]:
        """References that are invented or malformed."""
        return tuple(reference for reference in self.references if reference.status in ("invented", "malformed"))

    @property
    def marked(self) -> bool:
        """Whether a reader should check the sentence.

        This is the case if it is contradicted, unsupported, different from its evidence or overstated, or if it has a
        reference that is invented or malformed.
        """
        is_doubtful = self.status in ("contradicted", "unsupported") or bool(self.differing)
        return is_doubtful or self.overstated is not None or bool(self.wrong_references)


@dataclass(frozen=True, slots=True)
class _PreparedSentence:
    """Sentence with the values that its check needs."""

    text: str
    plain: str
    """Text without references and addresses, for comparison."""
    paragraph: int
    previous: str
    references: tuple[CheckedReference, ...]
    numbers: tuple[int, ...]
    is_checkable: bool

    @property
    def in_context(self) -> str:
        """Text, preceded by the previous sentence if it refers to that sentence ("It has risen since")."""
        return f"{self.previous} {self.plain}" if _BACKWARD_REFERENCE.match(self.plain) else self.plain


def check_sentences(
    text: str,
    group: SearchedCollections | None,
    *,
    encoder: Encoder | None = None,
    passages: Mapping[int, Passage] | None = None,
    judge: SupportJudge | None = None,
    find_overstatement: FindOverstatement | None = None,
    address_exists: Callable[[str], bool | None] | None = None,
    k: int = N_PASSAGES,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[CheckedSentence, ...]:
    """Check every sentence of a text.

    Args:
        text: Plain text or Markdown. A list of references at its end is used to look up references, but is not checked.
        group: Collections to search; None compares sentences with ``passages`` only.
        encoder: Encoder that compares sentences; by default that of the group.
        passages: Passages by the numbers with which the text cites them. A sentence is compared with those that it
            cites; without a group, it is compared with all of them.
        judge: Judge that reads each sentence with its passages; without it, no sentence is supported.
        find_overstatement: Function that finds overstated certainty.
        address_exists: Function that requests DOIs and addresses
            (:func:`~climassay.grounding.references.check_address`); None disables requests.
        k: Number of passages compared with each sentence.
        on_progress: Callback that receives 1 for each finished sentence.

    Raises:
        InputError: The text is empty or too long, or there is nothing to compare it with.
    """
    if not text.strip():
        raise InputError("The text is empty.")
    if len(text) > MAX_TEXT_LENGTH:
        raise InputError(
            f"The text has {len(text):,} characters, and the limit is {MAX_TEXT_LENGTH:,}: check it in parts."
        )
    numbered_passages = dict(passages or {})
    if group is None and not numbered_passages:
        raise InputError("There is nothing to compare the text with: name a collection.")
    encoder = encoder or (group.encoder if group else None)
    if encoder is None:
        raise InputError("An encoder is needed to compare sentences.")
    claims = _read_claims(text, group, numbered_passages, address_exists)
    passages_by_claim = _select_passages(claims, group, numbered_passages, k)
    comparisons_by_claim = _compare_with_passages(claims, passages_by_claim, encoder)
    checked_sentences = []
    for claim, comparisons in zip(claims, comparisons_by_claim, strict=True):
        checked_sentences.append(_check_by_rules(claim, comparisons, text, find_overstatement))
        if on_progress is not None and judge is None:
            on_progress(1)
    if judge is not None:
        judged_indices = [index for index, passages in enumerate(passages_by_claim) if passages]
        questions = [
            (claims[index].plain, claims[index].previous, passages_by_claim[index]) for index in judged_indices
        ]
        for index, (judgement, passage) in zip(judged_indices, judge.judge(questions, on_progress), strict=True):
            checked_sentences[index] = _apply_judgement(
                checked_sentences[index], judgement, passage, comparisons_by_claim[index]
            )
    return tuple(checked_sentences)


def _read_claims(
    text: str,
    group: SearchedCollections | None,
    passages: Mapping[int, Passage],
    address_exists: Callable[[str], bool | None] | None,
) -> list[_PreparedSentence]:
    reference_list = ReferenceList.split(text)
    citations = {number: passage.citation for number, passage in passages.items()}
    documents = () if group is None else group.documents()
    checker = ReferenceChecker(documents, citations, reference_list.numbered, address_exists)
    claims: list[_PreparedSentence] = []
    previous_text = ""
    paragraphs = [line for line in reference_list.body.splitlines() if line.strip()]
    for paragraph, line in enumerate(paragraphs):
        is_heading = bool(_HEADING.match(line))
        plain_line = re.sub(r"\*\*|__|`", "", _MARKUP.sub("", line))
        for sentence in read_citations(expand_links(plain_line), checker.valid_numbers):
            if not re.search(r"\w", sentence.text):
                continue
            plain_text = _YEAR_OF_A_WORK.sub("", remove_addresses(sentence.plain))
            references = checker.check(sentence)
            claims.append(
                _PreparedSentence(
                    sentence.text, plain_text, paragraph, previous_text, references, sentence.numbers,
                    not is_heading and is_claim(sentence, plain_text),
                )
            )  # fmt: skip
            previous_text = plain_text
    return claims


def is_claim(sentence: CitingSentence, plain: str) -> bool:
    """Return whether a sentence makes a claim about the world that could be looked up.

    Questions, remarks to the reader, bare answers, introductions to lists, and statements that the sources lack
    information make no claim.
    """
    if plain.endswith(("?", ":")) or _REMARK.match(plain) or is_bare_answer(plain) or states_absence(plain):
        return False
    return len(content_words(plain)) >= _MIN_WORDS or bool(find_quantities(sentence.plain))


def _select_passages(
    claims: Sequence[_PreparedSentence], group: SearchedCollections | None, passages: Mapping[int, Passage], k: int
) -> list[list[Passage]]:
    """Return the passages to compare with each claim, those that it cites first."""
    checkable_claims = [claim for claim in claims if claim.is_checkable]
    queries = [claim.in_context for claim in checkable_claims]
    hits = iter(group.search_many(queries, k=k)) if group is not None and queries else iter(())
    passages_by_claim: list[list[Passage]] = []
    previous_passages: list[Passage] = []
    for claim in claims:
        if not claim.is_checkable:
            passages_by_claim.append([])
            continue
        cited_passages = [passages[number] for number in claim.numbers if number in passages]
        retrieved_passages = [hit.passage for hit in next(hits)] if group is not None else list(passages.values())
        # Adjacent sentences often have the same source.
        passages_by_claim.append(
            list(
                {passage.id: passage for passage in (*cited_passages, *retrieved_passages, *previous_passages)}.values()
            )
        )
        previous_passages = retrieved_passages[:2]
    return passages_by_claim


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Comparison of a claim with a passage."""

    evidence: PassageEvidence
    passage: Passage
    covered_share: float
    """Fraction of the claim's content words that occur in the most similar sentences of the passage."""
    missing_share: float
    """Fraction of the claim's quantities that the passage lacks."""
    sentences: Sequence[SourceSentence]
    """All sentences of the passage."""

    @property
    def is_similar(self) -> bool:
        """Whether the passage is similar to the claim."""
        return self.evidence.similarity >= MIN_SIMILARITY or self.covered_share >= MIN_COVERAGE


def _compare_with_passages(
    claims: Sequence[_PreparedSentence], passages_by_claim: Sequence[Sequence[Passage]], encoder: Encoder
) -> list[list[_Comparison]]:
    """Compare each claim with its passages; return the comparisons by claim, the most similar passage first."""
    sentences = {
        passage.id: split_sentences(passage.text) or [passage.text]
        for passages in passages_by_claim
        for passage in passages
    }
    claims_with_passages = [claim for claim, passages in zip(claims, passages_by_claim, strict=True) if passages]
    texts = [text for claim in claims_with_passages for text in (claim.plain, claim.in_context)]
    texts = list(dict.fromkeys((*texts, *chain.from_iterable(sentences.values()))))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    return [
        sorted(
            (_compare(claim, passage, sentences[passage.id], vectors) for passage in passages),
            key=lambda comparison: comparison.covered_share + comparison.evidence.similarity - comparison.missing_share,
            reverse=True,
        )
        for claim, passages in zip(claims, passages_by_claim, strict=True)
    ]


def _compare(
    claim: _PreparedSentence, passage: Passage, sentences: Sequence[str], vectors: Mapping[str, np.ndarray]
) -> _Comparison:
    matrix = np.stack([vectors[sentence] for sentence in sentences])
    cosines = np.maximum(matrix @ vectors[claim.plain], matrix @ vectors[claim.in_context])
    quotation, covered_share = _find_nearest_sentence(claim.plain, sentences, cosines)
    sources = tuple(
        SourceSentence(
            sentence,
            float(cosine)
            + max(_compute_covered_share(claim.plain, sentence), _compute_covered_share(claim.in_context, sentence)),
            passage.text,
        )
        for sentence, cosine in zip(sentences, cosines, strict=True)
    )
    missing_share = len(find_foreign_quantities(claim.plain, [passage.text])) / max(
        1, len(find_quantities(claim.plain))
    )
    evidence = PassageEvidence(passage.id, passage.citation, quotation, float(cosines.max()))
    return _Comparison(evidence, passage, covered_share, missing_share, sources)


def _find_nearest_sentence(claim: str, sentences: Sequence[str], cosines: np.ndarray) -> tuple[str, float]:
    """Return the sentence most similar to a claim, and the fraction of the claim's content words in it.

    An adjacent sentence is appended if it adds enough content words of the claim.
    """

    def compute_share(text: str) -> float:
        return _compute_covered_share(claim, text)

    best_index = max(range(len(sentences)), key=lambda index: float(cosines[index]) + compute_share(sentences[index]))
    best_sentence = sentences[best_index]
    pairs = [
        " ".join(sentences[start : start + 2])
        for start in (best_index - 1, best_index)
        if 0 <= start < len(sentences) - 1
    ]
    best_pair = max(pairs, key=compute_share, default=best_sentence)
    return (
        (best_pair, compute_share(best_pair))
        if compute_share(best_pair) >= compute_share(best_sentence) + _MIN_ADDED_SHARE
        else (best_sentence, compute_share(best_sentence))
    )


def _compute_covered_share(claim: str, text: str) -> float:
    """Return the fraction of a claim's content words that occur in a text."""
    words = content_words(claim)
    return len(words & content_words(text)) / max(1, len(words))


def _check_by_rules(
    claim: _PreparedSentence,
    comparisons: Sequence[_Comparison],
    text: str,
    find_overstatement: FindOverstatement | None,
) -> CheckedSentence:
    """Check a claim by its words, quantities and cosines, without a judge."""
    checked_sentence = CheckedSentence(
        claim.text,
        claim.paragraph,
        "no claim",
        "It claims nothing that could be looked up.",
        references=claim.references,
    )
    if not claim.is_checkable:
        return checked_sentence
    similar_comparisons = [comparison for comparison in comparisons if comparison.is_similar]
    if not similar_comparisons:
        evidence = tuple(comparison.evidence for comparison in comparisons[:1])
        return replace(
            checked_sentence, status="unsupported", reason="No passage says anything similar.", evidence=evidence
        )
    sources = [(comparison, sentence) for comparison in similar_comparisons for sentence in comparison.sentences]
    quantities = find_differing_quantities(claim.plain, [sentence for _, sentence in sources], text)
    contradicting_quantities = [quantity for quantity in quantities if quantity.source]
    opposing_evidence, differing_words = _find_differing_words(claim, similar_comparisons, sources, text)
    missing_terms = _find_missing_terms(
        claim, similar_comparisons, [quantity.text for quantity in quantities if not quantity.source], differing_words
    )
    differences = (
        *(Difference(quantity.text, quantity.source) for quantity in contradicting_quantities),
        *differing_words,
        *(Difference(term, "") for term in missing_terms),
    )
    nearest_evidence = similar_comparisons[0].evidence
    if find_overstatement is not None:
        overstatement = find_overstatement(claim.plain, nearest_evidence.quotation)
        checked_sentence = replace(checked_sentence, overstated=overstatement)
    if contradicting_quantities:
        status: Status = "contradicted"
        reason = f"The passage says otherwise: {_describe_differences(differences)}."
        comparison, sentence = sources[contradicting_quantities[0].source_index or 0]
        opposing_evidence = _mark_contradiction(comparison, sentence.text)
    elif missing_terms:
        status, reason = "unsupported", f"The passages do not say {', '.join(missing_terms)} of this."
    elif differing_words:
        status, reason = "similar", f"A passage says something similar, but {_describe_differences(differing_words)}."
    else:
        status, reason = "similar", "A passage says something similar: read whether it says the same."
    return replace(
        checked_sentence,
        status=status,
        reason=reason,
        evidence=_order_evidence(opposing_evidence, nearest_evidence),
        differing=differences,
    )


def _mark_contradiction(comparison: _Comparison, quotation: str) -> PassageEvidence:
    return replace(comparison.evidence, quotation=quotation, relation="contradicts")


def _order_evidence(
    decisive_evidence: PassageEvidence | None, nearest_evidence: PassageEvidence
) -> tuple[PassageEvidence, ...]:
    """Return the decisive evidence, if any, followed by the most similar evidence if that is different."""
    if decisive_evidence is None:
        return (nearest_evidence,)
    is_same = (
        decisive_evidence.passage == nearest_evidence.passage
        and decisive_evidence.quotation in nearest_evidence.quotation
    )
    return (decisive_evidence,) if is_same else (decisive_evidence, nearest_evidence)


def _find_differing_words(
    claim: _PreparedSentence,
    similar_comparisons: Sequence[_Comparison],
    sources: Sequence[tuple[_Comparison, SourceSentence]],
    text: str,
) -> tuple[PassageEvidence | None, tuple[Difference, ...]]:
    """Return the evidence with opposite or negated words, and the words of the claim that differ from it.

    Places and names are compared with the most similar sentence. Opposite words and negations are searched for in that
    sentence, then in all nearly identical sentences. A word that one of these sentences contains is ignored.
    """
    best_comparison = similar_comparisons[0]
    quotation = best_comparison.evidence.quotation
    texts = [text, *(comparison.passage.text for comparison in similar_comparisons)]
    names = (*find_other_places(claim.plain, quotation), *find_swapped_names(claim.plain, quotation, texts))
    if opposed_differences := find_opposed_words(claim.plain, quotation):
        return _mark_contradiction(best_comparison, quotation), (*opposed_differences, *names)
    near_sources = sorted(
        ((comparison, sentence) for comparison, sentence in sources if sentence.nearness >= MIN_NEARNESS),
        key=lambda source: source[1].nearness,
        reverse=True,
    )
    opposed_differences = find_opposed_words(
        claim.plain, " ".join([quotation, *(sentence.text for _, sentence in near_sources)])
    )
    for comparison, sentence in near_sources if opposed_differences else ():
        if passage_differences := tuple(
            word for word in find_opposed_words(claim.plain, sentence.text) if word in opposed_differences
        ):
            return _mark_contradiction(comparison, sentence.text), (*passage_differences, *names)
    return None, names


def _find_missing_terms(
    claim: _PreparedSentence,
    similar_comparisons: Sequence[_Comparison],
    quantities: Sequence[str],
    differences: Sequence[Difference],
) -> list[str]:
    """Return quantities that are in no passage, and names that are in no passage and in no passage's citation."""
    known_texts = [f"{comparison.passage.text} {comparison.evidence.citation}" for comparison in similar_comparisons]
    differing_words = {difference.text for difference in differences}
    return [
        *quantities,
        *(name for name in find_foreign_names(claim.plain, known_texts) if name not in differing_words),
    ]


def _apply_judgement(
    checked_sentence: CheckedSentence, judgement: Judgement, passage: Passage | None, comparisons: Sequence[_Comparison]
) -> CheckedSentence:
    """Update the result for a sentence with the judgement of a model, unless quantities contradict it."""
    result = replace(checked_sentence, judgement=judgement)
    if judgement.relation is None:
        return result
    if judgement.relation == "settles nothing":
        reason = judgement.reason or "The judge finds that no passage settles it."
        return (
            result
            if checked_sentence.status == "contradicted"
            else replace(result, status="unsupported", reason=reason)
        )
    if not judgement.quoted:
        note = "The judge's quotation is in no passage, so its judgement is ignored."
        return replace(result, reason=f"{checked_sentence.reason} {note}")
    evidence = next(
        (
            comparison.evidence
            for comparison in comparisons
            if passage is not None and comparison.passage.id == passage.id
        ),
        None,
    )
    if judgement.relation == "contradicts":
        if evidence is not None:
            quoted_evidence = replace(evidence, quotation=judgement.quotation, relation="contradicts")
            result = replace(result, evidence=_order_evidence(quoted_evidence, comparisons[0].evidence))
        return replace(result, status="contradicted", reason=judgement.reason or checked_sentence.reason)
    if checked_sentence.status == "contradicted":
        reason = f"The judge finds it supported, but {_describe_differences(checked_sentence.differing)}."
        return replace(result, status="similar", reason=reason)
    if evidence is not None:
        result = replace(result, evidence=(replace(evidence, quotation=judgement.quotation, relation="supports"),))
    return replace(result, status="supported", reason=judgement.reason or "The judge finds it supported.")


def _describe_differences(differences: Sequence[Difference]) -> str:
    return "; ".join(
        f"“{difference.text}” in the text, “{difference.source}” in the passage"
        for difference in differences
        if difference.source
    )


def count_statuses(sentences: Sequence[CheckedSentence]) -> dict[Status, int]:
    """Count the sentences of each status, including statuses that do not occur."""
    counts = Counter(sentence.status for sentence in sentences)
    return {status: counts[status] for status in STATUSES}


def sentence_to_dict(sentence: CheckedSentence) -> dict[str, Any]:
    """Return a checked sentence as JSON-serialisable values."""
    data = asdict(sentence)
    data["differing"] = [difference._asdict() for difference in sentence.differing]
    return {**data, "marked": sentence.marked}
