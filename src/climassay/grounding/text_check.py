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
from typing import TYPE_CHECKING, Any, Literal, get_args

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
    differing_figures,
    foreign_names,
    opposed_words,
    other_places,
    swapped_names,
)
from climassay.grounding.quantities import foreign_quantities, quantities
from climassay.grounding.references import (
    CheckedReference,
    ReferenceChecker,
    ReferenceList,
    open_links,
    without_addresses,
)
from climassay.grounding.support_judge import Judgement, SupportJudge
from climassay.metrics.pair_features import content_words
from climassay.models.contract import (
    Encoder,
)

if TYPE_CHECKING:
    from climassay.grounding.answer import CollectionGroup


Status = Literal["supported", "contradicted", "similar", "unsupported", "no claim"]
"""Result of checking a sentence.

- ``supported``: a model says so and quotes words of the passage.
- ``contradicted``: a figure for the same quantity differs, or a model says so and quotes the passage.
- ``similar``: a passage says something similar; no model has checked whether it says the same.
- ``unsupported``: no retrieved passage says it, or it has a figure or name that they lack; it may still be true.
- ``no claim``: it makes no claim that could be looked up.
"""
STATUSES: tuple[Status, ...] = get_args(Status)
N_PASSAGES = 5
"""Number of passages compared with each sentence."""
MIN_SIMILARITY = 0.5
"""Minimum cosine similarity for a passage to count as similar to a sentence."""
MIN_COVERAGE = 0.6
"""Minimum share of a sentence's content words in a passage to count as similar despite a lower cosine."""
MAX_TEXT_LENGTH = 200_000
"""Maximum number of characters of a text."""

FindOverstatement = Callable[[str, str], str | None]
"""Function from a sentence and its source to a description of its overstated certainty, or None."""

_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|(?:[-*+\u2022]|\d{1,2}[.)])\s+)*")
_HEADING = re.compile(r"^\s*#{1,6}\s")
_BACKWARD_REFERENCE = re.compile(
    r"(?:\S+\s+){0,6}?(?:it|its|they|their|them|this|these|those|such|he|she|both|the\s+(?:latter|former|same))\b", re.I
)
"""Pattern of a pronoun near the beginning that refers to the previous sentence."""
_REMARK = re.compile(
    r"(?:i\b|i['’]m|we\s+hope|let\s+me|let['’]s|please|here\s+(?:is|are)|sure\b|of\s+course|certainly[!,]|thank|hello|hi\b|dear\b|"
    r"as\s+an\s+ai|feel\s+free|if\s+you\s+(?:would|want|need|have|like)|great\s+question|you\s+(?:can|may|might)\s+(?:also\s+)?)",
    re.IGNORECASE,
)
_YEAR_OF_A_WORK = re.compile(
    r"\b(?:1[89]|20)\d\d\s+(?=(?:study|paper|report|review|assessment|article|analysis|publication)\b)", re.IGNORECASE
)
_MIN_ADDED_SHARE = 0.15
"""Minimum share of a sentence's content words that an adjacent sentence of the passage must add to be quoted."""
_MIN_WORDS = 3
"""Minimum number of content words of a sentence without quantities to count as a claim."""


Relation = Literal["contradicts", "supports", "nearest"]
"""Relation of a quotation to the checked sentence.

- ``contradicts``: it has another figure, an opposite word or a negation, or a model says that it contradicts.
- ``supports``: a model says so.
- ``nearest``: it is the most similar sentence, and nothing in it was found to differ in figure, direction or negation.
"""


@dataclass(frozen=True, slots=True)
class PassageEvidence:
    """Evidence of one passage for or against a sentence."""

    passage: str
    """Id of the passage."""
    citation: str
    """Location of the passage, for readers."""
    quotation: str
    """Sentences of the passage that contradict or support the checked sentence, or are most similar to it."""
    similarity: float
    """Highest cosine similarity of a sentence of the passage, -1 to 1."""
    relation: Relation = "nearest"


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of a text with the result of its check."""

    text: str
    """Sentence as written, without cited numbers."""
    paragraph: int
    """Index of its paragraph, from 0."""
    status: Status
    reason: str
    """Reason for the status, in one sentence."""
    evidence: tuple[PassageEvidence, ...] = ()
    """Quotations of passages, the one that decides first; empty if no passage was found."""
    differing: tuple[Difference, ...] = ()
    """Figures and words that differ from the evidence."""
    overstated: str | None = None
    """Description of overstated certainty; None if there is none."""
    references: tuple[CheckedReference, ...] = ()
    judgement: Judgement | None = None

    @property
    def wrong_references(self) -> tuple[CheckedReference, ...]:
        """References that are invented or malformed."""
        return tuple(reference for reference in self.references if reference.status in ("invented", "malformed"))

    @property
    def marked(self) -> bool:
        """Whether a reader should check the sentence.

        It is contradicted, unsupported, different from its evidence or overstated, or it has a wrong reference.
        """
        doubtful = self.status in ("contradicted", "unsupported") or bool(self.differing)
        return doubtful or self.overstated is not None or bool(self.wrong_references)


@dataclass(frozen=True, slots=True)
class _PreparedSentence:
    """A sentence prepared for the check."""

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
        """Text preceded by the previous sentence if it refers to that sentence: "It has risen since"."""
        return f"{self.previous} {self.plain}" if _BACKWARD_REFERENCE.match(self.plain) else self.plain


def check_sentences(
    text: str,
    group: "CollectionGroup | None",
    *,
    encoder: Encoder | None = None,
    passages: Mapping[int, Passage] | None = None,
    judge: SupportJudge | None = None,
    overstated: FindOverstatement | None = None,
    ask: Callable[[str], bool | None] | None = None,
    k: int = N_PASSAGES,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[CheckedSentence, ...]:
    """Check every sentence of a text.

    Args:
        text: Plain text or Markdown; a list of references at its end is used for lookups and not checked.
        group: Collections to search; None compares with ``passages`` only.
        encoder: Encoder that compares sentences; by default the group's.
        passages: Passages named by numbers in brackets. A sentence is compared with those that it cites, and with all
            of them without a group.
        judge: Judge that reads each sentence with its passages; without it, no sentence is supported.
        overstated: Function that finds overstated certainty.
        ask: Function that requests DOIs and addresses (:func:`~climassay.grounding.references.address_answers`); by
            default there are no requests.
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
    numbered = dict(passages or {})
    if group is None and not numbered:
        raise InputError("There is nothing to compare the text with: name a collection.")
    encoder = encoder or (group.encoder if group else None)
    if encoder is None:
        raise InputError("An encoder is needed to compare sentences.")
    claims = _read_claims(text, group, numbered, ask)
    passages_by_claim = _select_passages(claims, group, numbered, k)
    neighbours_by_claim = _compare_with_passages(claims, passages_by_claim, encoder)
    checked = []
    for claim, neighbours in zip(claims, neighbours_by_claim, strict=True):
        checked.append(_check_by_rules(claim, neighbours, text, overstated))
        if on_progress is not None and judge is None:
            on_progress(1)
    if judge is not None:
        judged = [index for index, passages in enumerate(passages_by_claim) if passages]
        questions = [(claims[index].plain, claims[index].previous, passages_by_claim[index]) for index in judged]
        for index, (judgement, passage) in zip(judged, judge.judge(questions, on_progress), strict=True):
            checked[index] = _apply_judgement(checked[index], judgement, passage, neighbours_by_claim[index])
    return tuple(checked)


def _read_claims(
    text: str,
    group: "CollectionGroup | None",
    passages: Mapping[int, Passage],
    ask: Callable[[str], bool | None] | None,
) -> list[_PreparedSentence]:
    reference_list = ReferenceList.split(text)
    numbered = {number: passage.citation for number, passage in passages.items()}
    checker = ReferenceChecker(() if group is None else group.documents(), numbered, reference_list.numbered, ask)
    claims: list[_PreparedSentence] = []
    previous = ""
    paragraphs = [line for line in reference_list.body.splitlines() if line.strip()]
    for paragraph, line in enumerate(paragraphs):
        heading = bool(_HEADING.match(line))
        unmarked = re.sub(r"\*\*|__|`", "", _MARKUP.sub("", line))
        for sentence in read_citations(open_links(unmarked), checker.known):
            if not re.search(r"\w", sentence.text):
                continue
            plain = _YEAR_OF_A_WORK.sub("", without_addresses(sentence.plain))
            references = checker.check(sentence)
            claims.append(
                _PreparedSentence(
                    sentence.text, plain, paragraph, previous, references, sentence.numbers,
                    not heading and is_claim(sentence, plain),
                )
            )  # fmt: skip
            previous = plain
    return claims


def is_claim(sentence: CitingSentence, plain: str) -> bool:
    """Return whether a sentence makes a claim about the world that could be looked up.

    Questions, remarks to the reader, bare answers, introductions of lists and statements about missing information in
    the sources make none.
    """
    if plain.endswith(("?", ":")) or _REMARK.match(plain) or is_bare_answer(plain) or states_absence(plain):
        return False
    return len(content_words(plain)) >= _MIN_WORDS or bool(quantities(sentence.plain))


def _select_passages(
    claims: Sequence[_PreparedSentence], group: "CollectionGroup | None", passages: Mapping[int, Passage], k: int
) -> list[list[Passage]]:
    """Return the passages to compare with each claim, cited ones first."""
    searched = [claim for claim in claims if claim.is_checkable]
    queries = [claim.in_context for claim in searched]
    hits = iter(group.search_many(queries, k=k)) if group is not None and queries else iter(())
    results: list[list[Passage]] = []
    previous: list[Passage] = []
    for claim in claims:
        if not claim.is_checkable:
            results.append([])
            continue
        cited = [passages[number] for number in claim.numbers if number in passages]
        hits_of_claim = [hit.passage for hit in next(hits)] if group is not None else list(passages.values())
        # Adjacent sentences often have the same source.
        results.append(list({passage.id: passage for passage in (*cited, *hits_of_claim, *previous)}.values()))
        previous = hits_of_claim[:2]
    return results


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A passage compared with a claim."""

    evidence: PassageEvidence
    passage: Passage
    covered_share: float
    """Share of the claim's content words in the most similar sentences."""
    lacking_share: float
    """Share of the claim's quantities that the passage lacks."""
    sentences: Sequence[SourceSentence]
    """All sentences of the passage."""

    @property
    def is_similar(self) -> bool:
        """Whether the passage is similar to the claim."""
        return self.evidence.similarity >= MIN_SIMILARITY or self.covered_share >= MIN_COVERAGE


def _compare_with_passages(
    claims: Sequence[_PreparedSentence], passages_by_claim: Sequence[Sequence[Passage]], encoder: Encoder
) -> list[list[_Neighbour]]:
    """Compare each claim with its passages; return the passages with their evidence, best first."""
    sentences = {
        passage.id: split_sentences(passage.text) or [passage.text]
        for passages in passages_by_claim
        for passage in passages
    }
    compared = [claim for claim, passages in zip(claims, passages_by_claim, strict=True) if passages]
    texts = [text for claim in compared for text in (claim.plain, claim.in_context)]
    texts = list(dict.fromkeys((*texts, *chain.from_iterable(sentences.values()))))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    return [
        sorted(
            (_compare(claim, passage, sentences[passage.id], vectors) for passage in passages),
            key=lambda neighbour: neighbour.covered_share + neighbour.evidence.similarity - neighbour.lacking_share,
            reverse=True,
        )
        for claim, passages in zip(claims, passages_by_claim, strict=True)
    ]


def _compare(
    claim: _PreparedSentence, passage: Passage, sentences: Sequence[str], vectors: Mapping[str, np.ndarray]
) -> _Neighbour:
    matrix = np.stack([vectors[sentence] for sentence in sentences])
    cosines = np.maximum(matrix @ vectors[claim.plain], matrix @ vectors[claim.in_context])
    quotation, covered_share = _nearest_sentence(claim.plain, sentences, cosines)
    sources = tuple(
        SourceSentence(
            sentence,
            float(cosine) + max(_covered_share(claim.plain, sentence), _covered_share(claim.in_context, sentence)),
            passage.text,
        )
        for sentence, cosine in zip(sentences, cosines, strict=True)
    )
    lacking_share = len(foreign_quantities(claim.plain, [passage.text])) / max(1, len(quantities(claim.plain)))
    evidence = PassageEvidence(passage.id, passage.citation, quotation, float(cosines.max()))
    return _Neighbour(evidence, passage, covered_share, lacking_share, sources)


def _nearest_sentence(claim: str, sentences: Sequence[str], cosines: np.ndarray) -> tuple[str, float]:
    """Return the sentence most similar to a claim, and the share of the claim's content words that it has.

    An adjacent sentence is appended if it adds enough words of the claim.
    """

    def share(text: str) -> float:
        return _covered_share(claim, text)

    best = max(range(len(sentences)), key=lambda index: float(cosines[index]) + share(sentences[index]))
    chosen = sentences[best]
    wider = [" ".join(sentences[low : low + 2]) for low in (best - 1, best) if 0 <= low < len(sentences) - 1]
    longer = max(wider, key=share, default=chosen)
    return (longer, share(longer)) if share(longer) >= share(chosen) + _MIN_ADDED_SHARE else (chosen, share(chosen))


def _covered_share(claim: str, text: str) -> float:
    """Return the share of a claim's content words that occur in a text."""
    words = content_words(claim)
    return len(words & content_words(text)) / max(1, len(words))


def _check_by_rules(
    claim: _PreparedSentence, neighbours: Sequence[_Neighbour], text: str, overstated: FindOverstatement | None
) -> CheckedSentence:
    """Check a claim by words, figures and vectors, without a judge."""
    checked = CheckedSentence(
        claim.text,
        claim.paragraph,
        "no claim",
        "It claims nothing that could be looked up.",
        references=claim.references,
    )
    if not claim.is_checkable:
        return checked
    similar = [neighbour for neighbour in neighbours if neighbour.is_similar]
    if not similar:
        evidence = tuple(neighbour.evidence for neighbour in neighbours[:1])
        return replace(checked, status="unsupported", reason="No passage says anything similar.", evidence=evidence)
    sources = [(neighbour, sentence) for neighbour in similar for sentence in neighbour.sentences]
    figures = differing_figures(claim.plain, [sentence for _, sentence in sources], text)
    contradicting = [figure for figure in figures if figure.source]
    opposing, words = _differing_words(claim, similar, sources, text)
    missing = _missing_terms(claim, similar, [figure.text for figure in figures if not figure.source], words)
    differing = (
        *(Difference(figure.text, figure.source) for figure in contradicting),
        *words,
        *(Difference(term, "") for term in missing),
    )
    nearest = similar[0].evidence
    if overstated is not None:
        checked = replace(checked, overstated=overstated(claim.plain, nearest.quotation))
    if contradicting:
        status: Status = "contradicted"
        reason = f"The passage says otherwise: {_describe_differences(differing)}."
        neighbour, sentence = sources[contradicting[0].source_index or 0]
        opposing = _contradiction(neighbour, sentence.text)
    elif missing:
        status, reason = "unsupported", f"The passages do not say {', '.join(missing)} of this."
    elif words:
        status, reason = "similar", f"A passage says something similar, but {_describe_differences(words)}."
    else:
        status, reason = "similar", "A passage says something similar: read whether it says the same."
    return replace(checked, status=status, reason=reason, evidence=_in_order(opposing, nearest), differing=differing)


def _contradiction(neighbour: _Neighbour, quotation: str) -> PassageEvidence:
    return replace(neighbour.evidence, quotation=quotation, relation="contradicts")


def _in_order(deciding: PassageEvidence | None, nearest: PassageEvidence) -> tuple[PassageEvidence, ...]:
    """Return the deciding piece of evidence, then the nearest sentence unless it is the same."""
    if deciding is None:
        return (nearest,)
    is_same = deciding.passage == nearest.passage and deciding.quotation in nearest.quotation
    return (deciding,) if is_same else (deciding, nearest)


def _differing_words(
    claim: _PreparedSentence,
    similar: Sequence[_Neighbour],
    sources: Sequence[tuple[_Neighbour, SourceSentence]],
    text: str,
) -> tuple[PassageEvidence | None, tuple[Difference, ...]]:
    """Return the evidence with opposite words or negations, and the words of the claim that differ from its sources.

    Places and names are compared with the most similar sentence. Opposite words and negations are looked up in it
    first, then in all sentences that say nearly the same, if these do not have the claim's own words as well.
    """
    best = similar[0]
    quotation = best.evidence.quotation
    texts = [text, *(neighbour.passage.text for neighbour in similar)]
    names = (*other_places(claim.plain, quotation), *swapped_names(claim.plain, quotation, texts))
    if opposed := opposed_words(claim.plain, quotation):
        return _contradiction(best, quotation), (*opposed, *names)
    near = sorted(
        ((neighbour, sentence) for neighbour, sentence in sources if sentence.nearness >= MIN_NEARNESS),
        key=lambda source: source[1].nearness,
        reverse=True,
    )
    opposed = opposed_words(claim.plain, " ".join([quotation, *(sentence.text for _, sentence in near)]))
    for neighbour, sentence in near if opposed else ():
        if differing := tuple(word for word in opposed_words(claim.plain, sentence.text) if word in opposed):
            return _contradiction(neighbour, sentence.text), (*differing, *names)
    return None, names


def _missing_terms(
    claim: _PreparedSentence, similar: Sequence[_Neighbour], figures: Sequence[str], words: Sequence[Difference]
) -> list[str]:
    """Return the figures that no passage has, and the names in a claim that neither passages nor citations have."""
    known_texts = [f"{neighbour.passage.text} {neighbour.evidence.citation}" for neighbour in similar]
    differing = {difference.text for difference in words}
    return [*figures, *(name for name in foreign_names(claim.plain, known_texts) if name not in differing)]


def _apply_judgement(
    checked: CheckedSentence, judgement: Judgement, passage: Passage | None, neighbours: Sequence[_Neighbour]
) -> CheckedSentence:
    """Update the result for a sentence with a model's judgement, unless figures contradict it."""
    result = replace(checked, judgement=judgement)
    if judgement.relation is None:
        return result
    if judgement.relation == "settles nothing":
        reason = judgement.reason or "The judge finds that no passage settles it."
        return result if checked.status == "contradicted" else replace(result, status="unsupported", reason=reason)
    if not judgement.quoted:
        ignored = "The judge's quotation is in no passage, so its judgement is ignored."
        return replace(result, reason=f"{checked.reason} {ignored}")
    evidence = next(
        (neighbour.evidence for neighbour in neighbours if passage is not None and neighbour.passage.id == passage.id),
        None,
    )
    if judgement.relation == "contradicts":
        if evidence is not None:
            quoted = replace(evidence, quotation=judgement.quotation, relation="contradicts")
            result = replace(result, evidence=_in_order(quoted, neighbours[0].evidence))
        return replace(result, status="contradicted", reason=judgement.reason or checked.reason)
    if checked.status == "contradicted":
        doubt = f"The judge finds it supported, but {_describe_differences(checked.differing)}."
        return replace(result, status="similar", reason=doubt)
    if evidence is not None:
        result = replace(result, evidence=(replace(evidence, quotation=judgement.quotation, relation="supports"),))
    return replace(result, status="supported", reason=judgement.reason or "The judge finds it supported.")


def _describe_differences(differing: Sequence[Difference]) -> str:
    return "; ".join(
        f"“{difference.text}” in the text, “{difference.source}” in the passage"
        for difference in differing
        if difference.source
    )


def status_counts(sentences: Sequence[CheckedSentence]) -> dict[Status, int]:
    """Return the number of sentences of each status, including statuses that do not occur."""
    counts = Counter(sentence.status for sentence in sentences)
    return {status: counts[status] for status in STATUSES}


def sentence_data(sentence: CheckedSentence) -> dict[str, Any]:
    """Return a result as JSON-serialisable values."""
    data = asdict(sentence)
    data["differing"] = [difference._asdict() for difference in sentence.differing]
    return {**data, "marked": sentence.marked}
