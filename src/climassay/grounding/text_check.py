"""Check a text sentence by sentence: which passage of the collections says something similar, or something else.

1. Each sentence that claims something is searched for; so is the one before it if the sentence begins with "it",
   "this" or the like. Passages that it cites by number are read as well.
2. Of each passage the sentences nearest to it are its evidence. Words and vectors tell that a passage says something
   similar, never that it says the same: false sentences lie as close to their sources as true ones.
3. Rules tell what they see differ (:mod:`climassay.grounding.differences`): a figure that the passages have otherwise
   for the same thing contradicts the sentence; contrary words, negations, other regions and foreign names mark it, as
   do references that point to nothing (:mod:`climassay.grounding.references`) and words that are surer than the source,
   which a function of the caller finds.
4. A sentence is supported only if a language model that has read it and its passages says so (:class:`SupportJudge`)
   and quotes words that a passage has, and if no figure differs.

docs/results/check_text.md measures what the marks are worth.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError
from climassay.grounding.citations import CitingSentence, is_bare_answer, is_quoted, read_citations, states_absence
from climassay.grounding.differences import (
    Difference,
    Source,
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
from climassay.metrics.pair_features import content_words
from climassay.models.contract import (
    Completion,
    Encoder,
    GenerationRequest,
    Generator,
    Sampling,
    Usage,
    object_schema,
)
from climassay.prompts import Prompt, load_prompt

if TYPE_CHECKING:
    from climassay.grounding.answer import CollectionGroup


Status = Literal["supported", "contradicted", "similar", "unsupported", "no claim"]
"""What is known of a sentence.

- ``supported``: a model that has read both says so, and quotes words that the passage has.
- ``contradicted``: a figure of the same thing differs, or a model says so with a quotation.
- ``similar``: a passage says something similar; nothing has read whether it says the same.
- ``unsupported``: no passage found says it, or it has a figure or name that they lack; it may be true nevertheless.
- ``no claim``: it says nothing that could be looked up.
"""
STATUSES: tuple[Status, ...] = get_args(Status)
PASSAGES = 5
"""Number of passages compared with each sentence."""
ABOUT = 0.5
"""Minimum cosine of a sentence of a passage that says something similar."""
COVERED = 0.6
"""Minimum share of the sentence's words of content, if its cosine is lower."""
LONGEST_TEXT = 200_000
"""Characters."""

Overstated = Callable[[str, str], str | None]
"""From a sentence and the sentences of its source to what it says too surely, in words; None where it does not."""

_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|(?:[-*+\u2022]|\d{1,2}[.)])\s+)*")
_HEADING = re.compile(r"^\s*#{1,6}\s")
_POINTING = re.compile(
    r"(?:\S+\s+){0,6}?(?:it|its|they|their|them|this|these|those|such|he|she|both|the\s+(?:latter|former|same))\b", re.I
)
"""A word near the beginning that means what was said before."""
_TALK = re.compile(
    r"(?:i\b|i['’]m|we\s+hope|let\s+me|let['’]s|please|here\s+(?:is|are)|sure\b|of\s+course|certainly[!,]|thank|hello|hi\b|dear\b|"
    r"as\s+an\s+ai|feel\s+free|if\s+you\s+(?:would|want|need|have|like)|great\s+question|you\s+(?:can|may|might)\s+(?:also\s+)?)",
    re.IGNORECASE,
)
_YEAR_OF_A_WORK = re.compile(
    r"\b(?:1[89]|20)\d\d\s+(?=(?:study|paper|report|review|assessment|article|analysis|publication)\b)", re.IGNORECASE
)
_FEWEST_WORDS = 3
"""A sentence with fewer words of content and no quantity claims nothing that could be looked up."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one passage says about a sentence."""

    passage: str
    """Id of the passage."""
    citation: str
    """Where it stands, in words."""
    quotation: str
    """Its sentences nearest to the one checked, as they appear there."""
    similarity: float
    """Cosine of the nearest of them, -1 to 1."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a language model said about the support of a sentence."""

    relation: Literal["supports", "contradicts", "settles nothing"] | None
    """None where the request failed."""
    reason: str
    quotation: str = ""
    quoted: bool = False
    """Whether the quotation has at least three words and appears in a passage."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """One sentence of a text, and what was found about it."""

    text: str
    """As written, without the numbers that it cites."""
    paragraph: int
    """Number of its paragraph, from 0."""
    status: Status
    reason: str
    """Why it has its status, in one sentence."""
    evidence: Evidence | None = None
    """The passage that bears it best, or contradicts it; None where nothing near was found."""
    differing: tuple[Difference, ...] = ()
    """Quantities and words in whose place the evidence has others; an empty source where it has none."""
    overstated: str | None = None
    """How the sentence is surer than its source; None where it is not."""
    references: tuple[CheckedReference, ...] = ()
    judgement: Judgement | None = None

    @property
    def wrong_references(self) -> tuple[CheckedReference, ...]:
        """References that point to nothing or cannot be any."""
        return tuple(one for one in self.references if one.status in ("invented", "malformed"))

    @property
    def marked(self) -> bool:
        """Whether a reader should look at it: contradicted, unsupported, overstated, or with a wrong reference."""
        doubtful = self.status in ("contradicted", "unsupported") or bool(self.differing)
        return doubtful or self.overstated is not None or bool(self.wrong_references)


class SupportJudge:
    """A language model asked whether passages support a sentence, contradict it or settle nothing."""

    def __init__(self, model: Generator, prompt: Prompt | None = None, *, max_tokens: int = 400) -> None:
        """Prepare; nothing is asked yet.

        Args:
            model: Answers under a JSON schema; one that is recorded keeps its answers.
            prompt: Template with ``statement``, ``before`` (the sentence before it, or nothing) and ``passages``
                (``number``, ``citation``, ``text``); the built-in ``check_text`` by default.
            max_tokens: Room for an answer.
        """
        self.name = model.name
        self.usage = Usage()
        """Usage of all requests so far."""
        self._model = model
        self._prompt = prompt or load_prompt("check_text")
        self._sampling = Sampling(max_tokens)

    def judge(
        self, questions: Sequence[tuple[str, str, Sequence[Passage]]], on_progress: Callable[[int], None] | None = None
    ) -> list[tuple[Judgement, Passage | None]]:
        """A judgement of each (sentence, sentence before it, passages), and the passage that it names."""
        requests = []
        for sentence, before, passages in questions:
            numbered = [
                {"number": number, "citation": passage.citation, "text": passage.text}
                for number, passage in enumerate(passages, start=1)
            ]
            rendered = self._prompt.render(statement=sentence, before=before, passages=numbered)
            requests.append(
                GenerationRequest(
                    rendered.messages,
                    self._sampling,
                    object_schema(
                        {
                            "reasoning": {"type": "string", "maxLength": 600},
                            "relation": {"type": "string", "enum": list(_RELATIONS)},
                            "passage": {"type": "integer", "minimum": 0, "maximum": len(passages)},
                            "quotation": {"type": "string", "maxLength": 600},
                        }
                    ),
                    assistant_prefix=rendered.assistant_prefix,
                )
            )
        on_result = None if on_progress is None else (lambda _place, _answer: on_progress(1))
        answers = self._model.generate(requests, on_result=on_result) if requests else []
        for answer in answers:
            self.usage += answer.usage
        return [_judgement(answer, passages) for answer, (_, _, passages) in zip(answers, questions, strict=True)]


_FEWEST_QUOTED = 3
"""Minimum number of words of a quotation that counts."""
_RELATIONS = ("supports", "contradicts", "settles nothing")


def _judgement(answer: Completion, passages: Sequence[Passage]) -> tuple[Judgement, Passage | None]:
    if answer.error is not None:
        return Judgement(None, "", error=answer.error), None
    try:
        data = json.loads(answer.text)
        relation, number = data["relation"], int(data["passage"])
        reason, quotation = str(data["reasoning"]).strip(), str(data["quotation"]).strip()
    except (KeyError, TypeError, ValueError, RecursionError):
        return Judgement(None, "", error="The reply is not what was asked for."), None
    if relation not in _RELATIONS:
        return Judgement(None, reason, error="The reply is not what was asked for."), None
    named = passages[number - 1] if 0 < number <= len(passages) else None
    # The number may be wrong where the words are right. One or two words are in many passages and show nothing.
    enough = len(quotation.split()) >= _FEWEST_QUOTED
    candidates = (named, *passages) if enough else ()
    holder = next((each for each in candidates if each is not None and is_quoted(quotation, each.text)), None)
    return Judgement(relation, reason, quotation, holder is not None), holder or named


@dataclass(frozen=True, slots=True)
class _Claim:
    """A sentence on its way through the check."""

    text: str
    plain: str
    """What is compared: without references and addresses."""
    paragraph: int
    before: str
    references: tuple[CheckedReference, ...]
    numbers: tuple[int, ...]
    claims: bool

    @property
    def in_context(self) -> str:
        """With the sentence before it, where it means something that is said there: "It has risen since"."""
        return f"{self.before} {self.plain}" if _POINTING.match(self.plain) else self.plain


def check_sentences(
    text: str,
    group: "CollectionGroup | None",
    *,
    encoder: Encoder | None = None,
    passages: Mapping[int, Passage] | None = None,
    judge: SupportJudge | None = None,
    overstated: Overstated | None = None,
    ask: Callable[[str], bool | None] | None = None,
    k: int = PASSAGES,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[CheckedSentence, ...]:
    """Check every sentence of a text.

    Args:
        text: Plain text or Markdown; a list of references at its end is looked up, not checked.
        group: Collections that are searched; None looks at ``passages`` alone.
        encoder: Compares sentences; by default the group's.
        passages: What numbers in brackets name, if the text's writer was given passages. A sentence is compared with
            those that it cites beside what is found; with all of them without a group.
        judge: Reads each sentence with its passages; without it, no sentence is supported.
        overstated: Tells if a sentence is surer than its source.
        ask: Asks for DOIs and addresses (:func:`~climassay.grounding.references.address_answers`); nothing by default.
        k: Number of passages compared with each sentence.
        on_progress: Called with 1 for each sentence done.

    Raises:
        InputError: The text is empty or too long, or there is nothing to compare it with.
    """
    if not text.strip():
        raise InputError("The text is empty.")
    if len(text) > LONGEST_TEXT:
        raise InputError(
            f"The text has {len(text):,} characters, and the limit is {LONGEST_TEXT:,}: check it in parts."
        )
    numbered = dict(passages or {})
    if group is None and not numbered:
        raise InputError("There is nothing to compare the text with: name a collection.")
    reader = encoder or (group.encoder if group else None)
    if reader is None:
        raise InputError("An encoder is needed to compare sentences.")
    claims = _claims(text, group, numbered, ask)
    found = _candidates(claims, group, numbered, k)
    evidence = _evidence(claims, found, reader)
    checked = []
    for claim, near in zip(claims, evidence, strict=True):
        checked.append(_compared(claim, near, text, overstated))
        if on_progress is not None and judge is None:
            on_progress(1)
    if judge is not None:
        indices = [
            index for index, (claim, near) in enumerate(zip(claims, found, strict=True)) if claim.claims and near
        ]
        questions = [(claims[index].plain, claims[index].before, found[index]) for index in indices]
        for index, (judgement, passage) in zip(indices, judge.judge(questions, on_progress), strict=True):
            checked[index] = _judged(checked[index], judgement, passage, evidence[index])
    return tuple(checked)


def _claims(
    text: str,
    group: "CollectionGroup | None",
    passages: Mapping[int, Passage],
    ask: Callable[[str], bool | None] | None,
) -> list[_Claim]:
    listed = ReferenceList.split(text)
    numbered = {number: passage.citation for number, passage in passages.items()}
    checker = ReferenceChecker(() if group is None else group.documents(), numbered, listed.numbered, ask)
    claims: list[_Claim] = []
    before = ""
    paragraphs = [line for line in listed.body.splitlines() if line.strip()]
    for paragraph, line in enumerate(paragraphs):
        heading = bool(_HEADING.match(line))
        unmarked = re.sub(r"\*\*|__|`", "", _MARKUP.sub("", line))
        for sentence in read_citations(open_links(unmarked), checker.known):
            if not re.search(r"\w", sentence.text):
                continue
            plain = _YEAR_OF_A_WORK.sub("", without_addresses(sentence.plain))
            references = checker.check(sentence)
            claims.append(
                _Claim(
                    sentence.text, plain, paragraph, before, references, sentence.numbers,
                    not heading and is_claim(sentence, plain),
                )
            )  # fmt: skip
            before = plain
    return claims


def is_claim(sentence: CitingSentence, plain: str) -> bool:
    """Whether a sentence says something about the world that could be looked up.

    Questions, talk to the reader, bare answers, introductions of lists and words on what the sources lack do not.
    """
    if plain.endswith(("?", ":")) or _TALK.match(plain) or is_bare_answer(plain) or states_absence(plain):
        return False
    return len(content_words(plain)) >= _FEWEST_WORDS or bool(quantities(sentence.plain))


def _candidates(
    claims: Sequence[_Claim], group: "CollectionGroup | None", passages: Mapping[int, Passage], k: int
) -> list[list[Passage]]:
    """For each claim the passages that it is compared with, those that it cites first."""
    searched = [claim for claim in claims if claim.claims]
    queries = [claim.in_context for claim in searched]
    hits = iter(group.search_many(queries, k=k)) if group is not None and queries else iter(())
    results: list[list[Passage]] = []
    before: list[Passage] = []
    for claim in claims:
        if not claim.claims:
            results.append([])
            continue
        cited = [passages[number] for number in claim.numbers if number in passages]
        near = [hit.passage for hit in next(hits)] if group is not None else list(passages.values())
        # A text that dwells on a subject often dwells in the same passage.
        results.append(list({passage.id: passage for passage in (*cited, *near, *before)}.values()))
        before = near[:2]
    return results


@dataclass(frozen=True, slots=True)
class _Near:
    """A passage beside a claim."""

    evidence: Evidence
    passage: Passage
    covered: float
    """Share of the claim's words of content that the nearest sentences have."""
    lacking: float
    """Share of the claim's quantities that the passage does not have."""
    sentences: Sequence[Source]
    """All sentences of the passage."""

    @property
    def is_similar(self) -> bool:
        """Whether it says something similar to the claim."""
        return self.evidence.similarity >= ABOUT or self.covered >= COVERED


def _evidence(claims: Sequence[_Claim], found: Sequence[Sequence[Passage]], encoder: Encoder) -> list[list[_Near]]:
    """For each claim its passages with their nearest sentences, the best first."""
    parts = {passage.id: split_sentences(passage.text) or [passage.text] for near in found for passage in near}
    texts = list(
        dict.fromkeys(
            text
            for claim, near in zip(claims, found, strict=True)
            if near
            for text in (
                claim.plain,
                claim.in_context,
                *(sentence for passage in near for sentence in parts[passage.id]),
            )
        )
    )
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    ranked = []
    for claim, near in zip(claims, found, strict=True):
        compared = []
        for passage in near:
            sentences = parts[passage.id]
            known = np.stack([vectors[sentence] for sentence in sentences])
            cosines = np.maximum(known @ vectors[claim.plain], known @ vectors[claim.in_context])
            quotation, covered = _nearest(claim.plain, sentences, cosines)
            lacking = len(foreign_quantities(claim.plain, [passage.text])) / max(1, len(quantities(claim.plain)))
            sources = tuple(
                Source(
                    text, float(cosine) + max(_share(claim.plain, text), _share(claim.in_context, text)), passage.text
                )
                for text, cosine in zip(sentences, cosines, strict=True)
            )
            evidence = Evidence(passage.id, passage.citation, quotation, float(cosines.max()))
            compared.append(_Near(evidence, passage, covered, lacking, sources))
        ranked.append(
            sorted(compared, key=lambda read: read.covered + read.evidence.similarity - read.lacking, reverse=True)
        )
    return ranked


def _nearest(claim: str, sentences: Sequence[str], cosines: np.ndarray) -> tuple[str, float]:
    """The sentence nearest to a claim, with its neighbour if that has more of the claim's words; and their share."""

    def share(text: str) -> float:
        return _share(claim, text)

    best = max(range(len(sentences)), key=lambda index: float(cosines[index]) + share(sentences[index]))
    chosen = sentences[best]
    wider = [" ".join(sentences[low : low + 2]) for low in (best - 1, best) if 0 <= low < len(sentences) - 1]
    longer = max(wider, key=share, default=chosen)
    # A neighbour belongs to it if it brings words that the sentence itself lacks.
    return (longer, share(longer)) if share(longer) >= share(chosen) + 0.15 else (chosen, share(chosen))


def _share(claim: str, text: str) -> float:
    """Share of a claim's words of content that a text has."""
    words = content_words(claim)
    return len(words & content_words(text)) / max(1, len(words))


def _compared(claim: _Claim, near: Sequence[_Near], text: str, overstated: Overstated | None) -> CheckedSentence:
    """A sentence with its status by words, figures and vectors."""
    bare = CheckedSentence(claim.text, claim.paragraph, "no claim", "It claims nothing that could be looked up.",
                           references=claim.references)  # fmt: skip
    if not claim.claims:
        return bare
    about = [candidate for candidate in near if candidate.is_similar]
    if not about:
        closest = near[0].evidence if near else None
        return replace(bare, status="unsupported", reason="No passage says anything similar.", evidence=closest)
    best = about[0]
    sources = [(candidate, source) for candidate in about for source in candidate.sentences]
    figures = differing_figures(claim.plain, [source for _, source in sources], text)
    quotation = best.evidence.quotation
    texts = [text, *(candidate.passage.text for candidate in about)]
    words = (*opposed_words(claim.plain, quotation), *other_places(claim.plain, quotation),
             *swapped_names(claim.plain, quotation, texts))  # fmt: skip
    known = [f"{candidate.passage.text} {candidate.evidence.citation}" for candidate in about]
    lacking = [figure.text for figure in figures if not figure.source]
    lacking += [name for name in foreign_names(claim.plain, known) if name not in {word.text for word in words}]
    against = [figure for figure in figures if figure.source]
    result = replace(
        bare,
        status="similar",
        reason="A passage says something similar: read whether it says the same.",
        evidence=best.evidence,
        differing=(*(Difference(figure.text, figure.source) for figure in against), *words,
                   *(Difference(name, "") for name in lacking)),
        overstated=overstated(claim.plain, quotation) if overstated else None,
    )  # fmt: skip
    if against:
        # The sentence that has the other figure.
        holder, source = sources[against[0].source_index or 0]
        result = replace(result, evidence=replace(holder.evidence, quotation=source.text))
        return replace(
            result, status="contradicted", reason=f"The passage says otherwise: {_describe(result.differing)}."
        )
    if lacking:
        return replace(result, status="unsupported", reason=f"The passages do not say {', '.join(lacking)} of this.")
    if words:
        return replace(result, reason=f"A passage says something similar, but {_describe(words)}.")
    return result


def _describe(differing: Sequence[Difference]) -> str:
    return "; ".join(f"“{each.text}” in the text, “{each.source}” in the passage" for each in differing if each.source)


def _judged(
    checked: CheckedSentence, judgement: Judgement, passage: Passage | None, near: Sequence[_Near]
) -> CheckedSentence:
    """A sentence with the word of a model that has read it and its passages, unless figures speak against that."""
    result = replace(checked, judgement=judgement)
    if judgement.relation is None:
        return result
    if judgement.relation == "settles nothing":
        reason = judgement.reason or "The judge finds that no passage settles it."
        return result if checked.status == "contradicted" else replace(result, status="unsupported", reason=reason)
    if not judgement.quoted:
        ignored = "The judge's quotation is in no passage, so its judgement is ignored."
        return replace(result, reason=f"{checked.reason} {ignored}")
    evidence = next((each.evidence for each in near if passage is not None and each.passage.id == passage.id), None)
    if evidence is not None:
        result = replace(result, evidence=replace(evidence, quotation=judgement.quotation))
    if judgement.relation == "contradicts":
        return replace(result, status="contradicted", reason=judgement.reason or checked.reason)
    if checked.status == "contradicted":
        doubt = f"The judge finds it supported, but {_describe(checked.differing)}."
        return replace(result, status="similar", reason=doubt, evidence=checked.evidence)
    return replace(result, status="supported", reason=judgement.reason or "The judge finds it supported.")


def status_counts(sentences: Sequence[CheckedSentence]) -> dict[Status, int]:
    """How many sentences have each status, zeros included."""
    counts = Counter(sentence.status for sentence in sentences)
    return {status: counts[status] for status in STATUSES}


def sentence_data(sentence: CheckedSentence) -> dict[str, Any]:
    """A sentence as JSON can write it."""
    data = asdict(sentence)
    data["differing"] = [difference._asdict() for difference in sentence.differing]
    return {**data, "marked": sentence.marked}
