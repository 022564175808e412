"""One fact-check as a page for readers: self-contained, without a script, and safe whatever the passages contain."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from climassay.factcheck.results import page_words
from climassay.factcheck.results.analysis import probability_of
from climassay.factcheck.results.view import reader_view
from climassay.factcheck.scales import Scale, load_scale
from climassay.factcheck.transcript import (
    AdvocateOpinion,
    AdvocateProfile,
    PassageCitation,
    Quotation,
    Side,
    Subclaim,
    Transcript,
    Verdict,
    merge_quotations,
)
from climassay.grounding import AnswerSentence
from climassay.grounding.answer import unchecked_note
from climassay.grounding.citations import mark_quotations
from climassay.grounding.citing import ENTAILED
from climassay.reporting import counted, render_page


@dataclass(frozen=True, slots=True)
class Step:
    """A verdict's place on its scale."""

    label: str
    place: float | None
    """0 for the most wrong, 1 for the most right; None outside of the order."""
    meaning: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the claim's text."""

    text: str
    subclaims: tuple[int, ...]
    """Numbers of the subclaims that it belongs to."""
    ends: tuple[int, ...]
    """Numbers of those that end with it."""


@dataclass(frozen=True, slots=True)
class View:
    """An advocate's last opinion, with what it holds of the single statements."""

    name: str
    role: str
    collections: tuple[str, ...]
    opinion: AdvocateOpinion | None
    """None where it never came to speak."""
    parts: tuple[AdvocateOpinion, ...]
    notes: tuple[str, ...]


def factcheck_page(transcript: Transcript, scale: Scale | None = None) -> str:
    """A fact-check as HTML: one self-contained file, in which everything that comes from elsewhere is escaped.

    Args:
        transcript: The finished debate.
        scale: Its scale; None looks it up by the name in the transcript.

    Raises:
        InputError: There is no scale of that name, or the verdict is not one of its labels.
    """
    return render_page("factcheck.html.j2", **page_values(transcript, scale or load_scale(transcript.scale)))


def page_values(transcript: Transcript, scale: Scale) -> dict[str, Any]:
    """What a template needs to show a fact-check: records, views of them, and functions.

    ``check`` is the transcript as it may be shown; whatever a template shows of it must be escaped.

    Raises:
        InputError: The verdict is not one of the scale's labels.
    """
    transcript = reader_view(transcript, scale)
    cited = transcript.cited
    kept = {source.number for source in cited}
    label, explained = transcript.verdict.label, transcript.verdict.explanation
    quotations = quoted_texts(transcript)
    attributed, cited_ones = (
        sum(one.origin == "attributed" for one in explained),
        sum(bool(one.citations) for one in explained),
    )
    note = (
        f"{attributed} of {cited_ones} cited sentences got their citation by comparing them with the passages, not by "
        "the model."
    )
    return {
        **shared_values(scale, {source.number for source in transcript.sources}),
        "check": transcript,
        "steps": [place_on(scale, label) for label in scale.labels],
        "step": None if label is None else place_on(scale, label),
        "probability": probability_of(transcript.verdict, scale),
        "pieces": claim_pieces(transcript.claim.text, transcript.subclaims),
        "notices": notices(transcript),
        "views": [_view(transcript, profile) for profile in transcript.advocates],
        "quoted": quoted_passages(transcript),
        "passage_pieces": lambda source: mark_quotations(source.passage.text, quotations.get(source.number, ())),
        "cited": cited,
        "uncited": [source for source in transcript.sources if source.number not in kept],
        "attributed": note if attributed else "",
    }


def shared_values(scale: Scale, numbers: Collection[int]) -> dict[str, Any]:
    """What a template needs to show any part of a debate; ``numbers`` are those of the passages that can be opened."""
    return {
        "scale": scale,
        "numbers": numbers,
        "place_on": lambda label: place_on(scale, label),
        "link": safe_link,
        "host": lambda url: urlsplit(url).hostname,
        "source_details": source_details,
        "words": page_words,
    }


def place_on(scale: Scale, label: str) -> Step:
    """Where a label stands.

    Raises:
        InputError: It is not one of the scale's.
    """
    place = None if label == scale.nei else scale.position(label) / (len(scale.labels) - 1)
    return Step(label, place, scale.meaning(label))


def safe_link(url: str | None) -> str | None:
    """The address if it may become a link: ``http`` or ``https``, with a host, without name and password.

    Passages come from anybody: ``javascript:`` would run code, and ``https://ipcc.ch@example.org`` pretends.
    """
    if not url or "\\" in url or any(character.isspace() or not character.isprintable() for character in url):
        return None
    try:
        parts = urlsplit(url)
        fits = parts.scheme.lower() in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return None
    return url if fits else None


def source_details(source: PassageCitation) -> tuple[tuple[str, str], ...]:
    """Where a passage stands, as names and values; what is not known is left out."""
    passage = source.passage
    pages = [page for page in (passage.first_page, passage.last_page) if page is not None]
    page = "" if not pages else str(pages[0]) if len(set(pages)) == 1 else f"{pages[0]}-{pages[-1]}"
    known = (
        ("Report", passage.report),
        ("Chapter", passage.chapter),
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
    return tuple((name, value) for name, value in known if value)


def quoted_passages(transcript: Transcript) -> dict[Side | None, list[tuple[Quotation, PassageCitation]]]:
    """What speaks for and against the claim, each quotation with its passage; empty where nothing was quoted.

    The verdict's quotations, or where it has none those of the advocates' last opinions.
    """
    last = transcript.rounds[-1].opinions if transcript.rounds else ()
    quotations = transcript.verdict.quotations or [one for opinion in last for one in opinion.quotations]
    sources = {source.number: source for source in transcript.sources}
    found: dict[Side | None, list[tuple[Quotation, PassageCitation]]] = {"for": [], "against": [], None: []}
    for one in merge_quotations(quotations):
        if one.passage in sources:
            found[one.side].append((one, sources[one.passage]))
    return {side: pairs for side, pairs in found.items() if pairs}


def quoted_texts(transcript: Transcript) -> dict[int, tuple[str, ...]]:
    """What anybody in the debate has quoted of each passage, by the passage's number."""
    rounds = transcript.rounds
    opinions = [opinion for held in rounds for opinion in (*held.opinions, *held.parts)]
    found: dict[int, dict[str, None]] = {}
    for one in (*transcript.verdict.quotations, *(one for opinion in opinions for one in opinion.quotations)):
        found.setdefault(one.passage, {})[one.text] = None
    return {number: tuple(texts) for number, texts in found.items()}


def claim_pieces(text: str, subclaims: Sequence[Subclaim]) -> tuple[Piece, ...]:
    """The claim's text cut where subclaims begin and end, which may overlap; one piece where there is one subclaim."""
    if len(subclaims) < 2:
        return (Piece(text, (), ()),)
    borders = sorted({0, len(text), *(place for one in subclaims for place in (one.start, one.end))})
    return tuple(
        Piece(
            text[low:high],
            tuple(one.number for one in subclaims if one.start <= low and high <= one.end),
            tuple(one.number for one in subclaims if one.end == high and one.start < high),
        )
        for low, high in pairwise(borders)
    )


def notices(transcript: Transcript) -> tuple[str, ...]:
    """What a reader must know before believing the verdict, most weighty first."""
    verdict = transcript.verdict
    found = [page_words.DEMONSTRATION] if transcript.demonstration else []
    found += [*verdict.caveats, *transcript.warnings]
    if verdict.contradicts:
        found.append("The explanation seems to argue for the other side than the verdict: read both with care.")
    found += _sentence_notes(verdict.explanation)
    found += _removed_notes(verdict)
    if transcript.stability is not None and transcript.stability.share < 1:
        share, samples = transcript.stability.share, transcript.stability.samples
        found.append(f"The verdict is not stable: {100 * share:.0f}% of {samples} runs agreed on one.")
    if transcript.failures and verdict.outcome != "failed":
        found.append(f"{counted(transcript.failures, 'model call')} failed; the debate went on without.")
    if transcript.prefixed:
        found.append("The claim was put to the models with a note that it is made in a climate-change context.")
    return tuple(dict.fromkeys(found))


def _sentence_notes(sentences: Sequence[AnswerSentence]) -> list[str]:
    notes = []
    foreign = list(dict.fromkeys(number for sentence in sentences for number in sentence.foreign_numbers))
    if foreign:
        notes.append(f"Numbers in the explanation that the cited passages do not have: {', '.join(foreign)}.")
    if unchecked := unchecked_note(one for sentence in sentences for one in sentence.unchecked_references):
        notes.append(unchecked)
    own = sum(sentence.in_house for sentence in sentences)
    if own:
        rest = "rests on no passage and is" if own == 1 else "rest on no passage and are"
        notes.append(f"{own} of {counted(len(sentences), 'sentence')} {rest} marked.")
    # Where entailment was measured, one of the cited passages should entail the sentence.
    measured = [[value for value in sentence.entailment if value is not None] for sentence in sentences]
    weak = sum(bool(values) and max(values) < ENTAILED for values in measured)
    if weak:
        cite = "sentences cite passages that" if weak > 1 else "sentence cites a passage that"
        notes.append(f"{weak} {cite} may not say so.")
    return notes


def _removed_notes(found: Verdict | AdvocateOpinion) -> list[str]:
    """What was taken out of an explanation and of quotations, because it does not appear in the passages."""
    notes = []
    if count := found.removed_citations:
        was = "was" if count == 1 else "were"
        notes.append(f"{counted(count, 'citation')} of passages that were not retrieved {was} removed.")
    if count := found.removed_quotations:
        was = "does not stand in its passage and was" if count == 1 else "do not stand in their passages and were"
        notes.append(f"{counted(count, 'quotation')} {was} removed.")
    return notes


def _view(transcript: Transcript, profile: AdvocateProfile) -> View:
    name = profile.name
    last = [one for held in transcript.rounds for one in held.opinions if one.advocate == name][-1:]
    newest = {part.subclaim: part for held in transcript.rounds for part in held.parts if part.advocate == name}
    notes = []
    for opinion in last:
        notes += [] if opinion.error is None else [f"A model call failed: {opinion.error}"]
        if opinion.contradicts:
            notes.append("The explanation seems to argue for the other side than the verdict.")
        notes += [*_sentence_notes(opinion.explanation), *_removed_notes(opinion)]
        if opinion.withheld:
            notes.append(
                f"It would say \u201c{opinion.withheld}\u201d, but nothing that it quotes or cites bears that."
            )
    return View(
        name,
        page_words.role(profile),
        profile.collections,
        last[0] if last else None,
        tuple(newest.values()),
        tuple(notes),
    )
