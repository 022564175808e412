"""Self-contained HTML page of one fact-check: no scripts, all texts escaped, the IPCC's terms explained."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from climassay.factcheck.certainty import AgreementLevel, Confidence, EvidenceLevel, Levels, Likelihood
from climassay.factcheck.results.citation import Publication, cite, day_in_words, source_dates
from climassay.factcheck.scales import Scale, load_scale
from climassay.factcheck.transcript import (
    AdvocateOpinion,
    AdvocateProfile,
    CloseReason,
    Fallacy,
    OpenReason,
    Outcome,
    PassageCitation,
    Placement,
    Quotation,
    Side,
    Subclaim,
    Transcript,
    Verdict,
    merge_quotations,
    reader_view,
)
from climassay.grounding import AnswerSentence
from climassay.grounding.answer import note_unchecked_references
from climassay.grounding.quotations import mark_quotations
from climassay.prompts import DEMONSTRATION
from climassay.records.queries import describe_unknown_cost
from climassay.reporting import counted, render_page

EVIDENCE: Mapping[EvidenceLevel, str] = {
    "limited": "few sources, or weak ones",
    "medium": "some sources of good quality",
    "robust": "several lines of evidence of good quality that agree",
}
AGREEMENT: Mapping[AgreementLevel, str] = {
    "low": "the evidence points in different directions",
    "medium": "most of the evidence points the same way",
    "high": "the evidence points the same way",
}
CONFIDENCE: Mapping[Confidence, str] = {
    "very low": "the finding has hardly any support",
    "low": "the finding may well change",
    "medium": "the finding has some support",
    "high": "the finding is well supported",
    "very high": "the finding is very well supported",
}
LIKELIHOOD: Mapping[Likelihood, str] = {
    "exceptionally unlikely": "0 to 1 per cent",
    "extremely unlikely": "0 to 5 per cent",
    "very unlikely": "0 to 10 per cent",
    "unlikely": "0 to 33 per cent",
    "about as likely as not": "33 to 66 per cent",
    "more likely than not": "50 to 100 per cent",
    "likely": "66 to 100 per cent",
    "very likely": "90 to 100 per cent",
    "extremely likely": "95 to 100 per cent",
    "virtually certain": "99 to 100 per cent",
}
PLACEMENT: Mapping[Placement, str] = {
    "consensus": "states the consensus view",
    "outlier": "is an outlier, far from what most of the evidence says",
    "exaggerated": "exaggerates something that is true",
    "misleading": "presents something true in a misleading way",
}
REASON: Mapping[CloseReason | OpenReason, str] = {
    "close verdicts": "the informed advocates were at most one step apart",
    "no change": "no advocate changed its verdict any more",
    "mediator": "the mediator was satisfied, although the advocates differ",
    "round limit": "the limit of rounds was reached",
    "one informed advocate": "only one advocate had information",
    "not enough information": "no advocate could judge the claim",
    "contrast": "the informed advocates' verdicts were more than one step apart",
    "uncertain": "the mediator was not certain",
}
OUTCOME: Mapping[Outcome, str] = {
    "verdict": "Verdict",
    "not enough information": "Not enough information",
    "not checkable": "Nothing that can be checked",
    "not about climate": "Not about climate",
    "failed": "The check failed",
}
ENDING: Mapping[Outcome, str] = {
    "verdict": "",
    "not enough information": "No verdict: nothing that was found and quoted supports one. That makes the claim "
    "neither right nor wrong; what was searched and found is listed below.",
    "not checkable": "The text states nothing that evidence could confirm or refute: it may be a question, an opinion, "
    "a wish or a call to do something. It was not debated, and nothing was searched for it.",
    "not about climate": "The claim is not about climate, its causes, its consequences or what is done about it. It "
    "was not debated: the documents here could not tell.",
    "failed": "A model did not answer as it should, so there is no verdict. Run the check again.",
}
SIDE: Mapping[Side, str] = {"for": "What speaks for the claim", "against": "What speaks against it"}
KIND: Mapping[str, str] = {
    "collection": "reads",
    "plain": "answers from what its model knows, without documents",
    "adversarial": "argues the position of",
}


MEDIATOR: Mapping[str, str] = {
    "expert": "trusts the sources of all advocates",
    "neutral": "favours no advocate",
}


def describe_levels(levels: Levels) -> tuple[tuple[str, str, str], ...]:
    """Return name, value and meaning of each level, after the IPCC's guidance note on uncertainty."""
    lines: list[tuple[str, str, str]] = [
        ("Evidence", levels.evidence, EVIDENCE[levels.evidence]),
        ("Agreement", levels.agreement, AGREEMENT[levels.agreement]),
        ("Confidence", levels.confidence, CONFIDENCE[levels.confidence]),
    ]
    if levels.likelihood is not None:
        words = f"a probability of {LIKELIHOOD[levels.likelihood]}"
        lines.append(("Likelihood that the claim is true", levels.likelihood, words))
    return tuple(lines)


def describe_role(profile: AdvocateProfile) -> str:
    """Describe an advocate's kind and collections."""
    collections = ", ".join(profile.collections)
    return f"{KIND[profile.kind]} {collections}".strip() if collections else KIND[profile.kind]


ENTAILMENT_PRECISION = (
    "A small model misses what it should mark: on 500 passages of Climate-FEVER, of which 75% do not support their "
    "claim, the bundled language model marked none. Other models are measured by climassay metrics entailment evaluate "
    "prompted:MODEL."
)
"""Sentence on the precision of the entailment model in marking supporting passages; see docs/results/entailment.md."""


def fallacy_note(fallacy: Fallacy) -> str:
    """Return the note on the reliability of a predicted fallacy."""
    return (
        "Named by a classifier that read the claim's words and nothing else. Of published climate misinformation of"
        f" which it is this sure, about {100 * fallacy.precision:.0f}% has the fallacy named; other texts may fare"
        " worse."
    )


def describe_cost(transcript: Transcript) -> str:
    """Describe the cost of a debate: in US dollars, unknown, or free."""
    if transcript.usage.cost is not None:
        return f"{transcript.usage.cost:.4f} US dollars"
    return describe_unknown_cost(local=all(model.startswith("local:") for model, _, _ in list_models(transcript)))


def list_models(transcript: Transcript) -> list[tuple[str, str, str]]:
    """Return name, fingerprint and number format of the advocates' models, without duplicates."""
    return list(dict.fromkeys((profile.model, profile.fingerprint, profile.dtype) for profile in transcript.advocates))


def describe_mediator(transcript: Transcript) -> str:
    """Describe the mediator's style and model."""
    style, _, model = transcript.mediator.partition(", ")
    return f"{MEDIATOR[style]}; model {model}" if style in MEDIATOR else transcript.mediator


_TEMPLATE_GLOBALS = {
    "ENDING": ENDING, "OUTCOME": OUTCOME, "PLACEMENT": PLACEMENT, "REASON": REASON, "SIDE": SIDE, "cost": describe_cost,
    "counted": counted, "fallacy_note": fallacy_note, "level_lines": describe_levels, "mediator": describe_mediator,
    "models": list_models, "role": describe_role, "source_dates": source_dates,
    "day_in_words": day_in_words,
}  # fmt: skip
"""Texts and functions that the templates use."""


@dataclass(frozen=True, slots=True)
class ScalePosition:
    """Position of a label on its scale."""

    label: str
    position: float | None
    """Position from 0 for the most wrong label to 1 for the most right one; None for "not enough information"."""
    meaning: str


@dataclass(frozen=True, slots=True)
class ClaimPiece:
    """Piece of a claim's text between two neighbouring borders of its subclaims."""

    text: str
    subclaims: tuple[int, ...]
    """Numbers of the subclaims that contain the piece."""
    ends: tuple[int, ...]
    """Numbers of the subclaims that end with the piece."""


@dataclass(frozen=True, slots=True)
class AdvocateView:
    """An advocate's last opinions on the claim and its subclaims."""

    name: str
    role: str
    collections: tuple[str, ...]
    opinion: AdvocateOpinion | None
    """Last opinion on the whole claim; None if there was no debate."""
    parts: tuple[AdvocateOpinion, ...]
    notes: tuple[str, ...]


def factcheck_page(transcript: Transcript, scale: Scale | None = None, publication: Publication | None = None) -> str:
    """Return a fact-check as one self-contained HTML file, with all texts escaped.

    Args:
        transcript: Finished debate.
        scale: Scale of the verdict; None loads the scale that the transcript names.
        publication: Publisher, address, date and reviews; None if the fact-check is not published.

    Raises:
        InputError: There is no scale of that name, or the verdict is not one of its labels.
    """
    values = page_values(transcript, scale or load_scale(transcript.scale), publication)
    return render_page("factcheck.html.j2", **values)


def page_values(transcript: Transcript, scale: Scale, publication: Publication | None = None) -> dict[str, Any]:
    """Return the template values of a fact-check, with its citation if it is published.

    The value ``check`` is the transcript as returned by :func:`~climassay.factcheck.transcript.reader_view`. Its texts
    are not escaped, so templates must escape them.

    Raises:
        InputError: The verdict is not one of the scale's labels.
    """
    transcript = reader_view(transcript, scale)
    cited_passages = transcript.cited
    numbers = {source.number for source in cited_passages}
    label, explanation = transcript.verdict.label, transcript.verdict.explanation
    quotations = quoted_texts(transcript)
    n_attributed = sum(sentence.origin == "attributed" for sentence in explanation)
    n_cited = sum(bool(sentence.citations) for sentence in explanation)
    note = (
        f"{n_attributed} of {n_cited} cited sentences got their citation by comparing them with the passages, not by "
        "the model."
    )
    return {
        **shared_values(scale, {source.number for source in transcript.sources}),
        "check": transcript,
        "publication": publication,
        "citation": None if publication is None else cite(transcript, scale, publication),
        "steps": [locate_on(scale, label) for label in scale.labels],
        "step": None if label is None else locate_on(scale, label),
        "pieces": claim_pieces(transcript.claim.text, transcript.subclaims),
        "notices": list_notices(transcript),
        "views": [_advocate_view(transcript, profile) for profile in transcript.advocates],
        "quoted": quoted_passages(transcript),
        "passage_pieces": lambda source: mark_quotations(source.passage.text, quotations.get(source.number, ())),
        "cited": cited_passages,
        "uncited": [source for source in transcript.sources if source.number not in numbers],
        "attributed": note if n_attributed else "",
    }


def shared_values(scale: Scale, numbers: Collection[int]) -> dict[str, Any]:
    """Return the template values common to all parts of a debate; ``numbers`` are numbers of passages to link to."""
    return {
        "scale": scale,
        "numbers": numbers,
        "locate_on": lambda label: locate_on(scale, label),
        "link": safe_link,
        "host": lambda url: urlsplit(url).hostname,
        "source_details": source_details,
        "words": _TEMPLATE_GLOBALS,
    }


def locate_on(scale: Scale, label: str) -> ScalePosition:
    """Return the position of a label on a scale.

    Raises:
        InputError: The label is not one of the scale's.
    """
    position = None if label == scale.nei else scale.position(label) / (len(scale.labels) - 1)
    return ScalePosition(label, position, scale.meaning(label))


def safe_link(url: str | None) -> str | None:
    """Return the address if it is a safe link: ``http`` or ``https``, with a host, without user name; otherwise None.

    Passages are untrusted: ``javascript:`` would run code, and ``https://ipcc.ch@example.org`` would mislead.
    """
    if not url or "\\" in url or any(character.isspace() or not character.isprintable() for character in url):
        return None
    try:
        parts = urlsplit(url)
        is_safe = parts.scheme.lower() in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return None
    return url if is_safe else None


def source_details(source: PassageCitation) -> tuple[tuple[str, str], ...]:
    """Return the known bibliographic details of a passage as pairs of label and value."""
    passage = source.passage
    pages = [page for page in (passage.first_page, passage.last_page) if page is not None]
    page = "" if not pages else str(pages[0]) if len(set(pages)) == 1 else f"{pages[0]}-{pages[-1]}"
    details = (
        ("Report", passage.report),
        ("Chapter", (passage.chapter or "").removeprefix("Chapter ")),
        ("Heading", " > ".join(passage.headings)),
        ("Page", page),
        ("Paragraph", ", ".join(passage.paragraph_ids)),
        ("Date", passage.date),
        ("Edition", passage.edition),
        ("File", passage.source),
        ("Licence", passage.licence),
        ("Collection", source.collection),
        ("Retrieved for", ", ".join(source.advocates)),
    )
    return tuple((name, value) for name, value in details if value)


def quoted_passages(transcript: Transcript) -> dict[Side, list[tuple[Quotation, PassageCitation]]]:
    """Return the quotations for and against the claim with their passages, by side.

    If the verdict has no quotations, the quotations in the advocates' last opinions are returned.
    """
    opinions = transcript.rounds[-1].opinions if transcript.rounds else ()
    quotations = transcript.verdict.quotations or [
        quotation for opinion in opinions for quotation in opinion.quotations
    ]
    sources = {source.number: source for source in transcript.sources}
    results: dict[Side, list[tuple[Quotation, PassageCitation]]] = {"for": [], "against": []}
    for quotation in merge_quotations(quotations):
        if quotation.passage in sources:
            results[quotation.side].append((quotation, sources[quotation.passage]))
    return {side: pairs for side, pairs in results.items() if pairs}


def quoted_texts(transcript: Transcript) -> dict[int, tuple[str, ...]]:
    """Return all quotations of each passage in the debate, by the passage's number."""
    rounds = transcript.rounds
    opinions = [opinion for debate_round in rounds for opinion in (*debate_round.opinions, *debate_round.parts)]
    results: dict[int, dict[str, None]] = {}
    for quotation in (
        *transcript.verdict.quotations,
        *(quotation for opinion in opinions for quotation in opinion.quotations),
    ):
        results.setdefault(quotation.passage, {})[quotation.text] = None
    return {number: tuple(texts) for number, texts in results.items()}


def claim_pieces(text: str, subclaims: Sequence[Subclaim]) -> tuple[ClaimPiece, ...]:
    """Split the claim's text at the borders of its subclaims, which may overlap."""
    if len(subclaims) < 2:
        return (ClaimPiece(text, (), ()),)
    borders = sorted({0, len(text), *(index for subclaim in subclaims for index in (subclaim.start, subclaim.end))})
    return tuple(
        ClaimPiece(
            text[start:end],
            tuple(subclaim.number for subclaim in subclaims if subclaim.start <= start and end <= subclaim.end),
            tuple(subclaim.number for subclaim in subclaims if subclaim.end == end and subclaim.start < end),
        )
        for start, end in pairwise(borders)
    )


def list_notices(transcript: Transcript) -> tuple[str, ...]:
    """Return warnings for the reader of a verdict, most important first."""
    verdict = transcript.verdict
    results = [DEMONSTRATION] if transcript.demonstration else []
    results += [*verdict.caveats, *transcript.warnings]
    results += _list_sentence_problems(verdict.explanation)
    results += _list_removals(verdict)
    if transcript.stability is not None and transcript.stability.share < 1:
        share, samples = transcript.stability.share, transcript.stability.samples
        results.append(f"The verdict is not stable: {100 * share:.0f}% of {samples} runs agreed on one.")
    if transcript.failures and verdict.outcome != "failed":
        results.append(f"{counted(transcript.failures, 'model call')} failed; the debate went on without.")
    if transcript.prefixed:
        results.append("The claim was put to the models with a note that it is made in a climate-change context.")
    return tuple(dict.fromkeys(results))


def _list_sentence_problems(sentences: Sequence[AnswerSentence]) -> list[str]:
    from climassay.metrics.entailment import ENTAILED

    notes = []
    foreign_numbers = list(dict.fromkeys(number for sentence in sentences for number in sentence.foreign_numbers))
    if foreign_numbers:
        notes.append(f"Numbers in the explanation that the cited passages do not have: {', '.join(foreign_numbers)}.")
    if reference_note := note_unchecked_references(
        reference for sentence in sentences for reference in sentence.unchecked_references
    ):
        notes.append(reference_note)
    n_in_house = sum(sentence.in_house for sentence in sentences)
    if n_in_house:
        phrase = "rests on no passage and is" if n_in_house == 1 else "rest on no passage and are"
        notes.append(f"{n_in_house} of {counted(len(sentences), 'sentence')} {phrase} marked.")
    # If entailment was measured, at least one of the cited passages should entail the sentence.
    entailments = [[value for value in sentence.entailment if value is not None] for sentence in sentences]
    n_weak = sum(bool(values) and max(values) < ENTAILED for values in entailments)
    if n_weak:
        cite = "sentences cite passages that" if n_weak > 1 else "sentence cites a passage that"
        notes.append(f"{n_weak} {cite} may not say so. {ENTAILMENT_PRECISION}")
    return notes


def _list_removals(result: Verdict | AdvocateOpinion) -> list[str]:
    """Return notes on removed citations and quotations."""
    notes = []
    if count := result.removed_citations:
        phrase = "was" if count == 1 else "were"
        notes.append(f"{counted(count, 'citation')} of passages that were not retrieved {phrase} removed.")
    if count := result.removed_quotations:
        phrase = "is not in its passage and was" if count == 1 else "are not in their passages and were"
        notes.append(f"{counted(count, 'quotation')} {phrase} removed.")
    return notes


def _advocate_view(transcript: Transcript, profile: AdvocateProfile) -> AdvocateView:
    name = profile.name
    opinions = [
        opinion for debate_round in transcript.rounds for opinion in debate_round.opinions if opinion.advocate == name
    ][-1:]
    parts = {
        part.subclaim: part
        for debate_round in transcript.rounds
        for part in debate_round.parts
        if part.advocate == name
    }
    notes = []
    for opinion in opinions:
        notes += [] if opinion.error is None else [f"A model call failed: {opinion.error}"]
        notes += [*_list_sentence_problems(opinion.explanation), *_list_removals(opinion)]
        if opinion.withheld:
            notes.append(
                f"It would say \u201c{opinion.withheld}\u201d, but nothing that it quotes or cites supports it."
            )
    return AdvocateView(
        name,
        describe_role(profile),
        profile.collections,
        opinions[0] if opinions else None,
        tuple(parts.values()),
        tuple(notes),
    )
