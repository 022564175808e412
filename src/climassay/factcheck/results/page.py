"""One fact-check for readers: as a result, in a terminal, as a self-contained page, and as schema.org ClaimReview.

The page has no script and is safe whatever the passages contain; it is for readers who know neither the IPCC's terms
nor ours. ClaimReview is the form in which search engines and archives of fact-checks read a verdict.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from climassay.errors import InputError, NoAnswerError
from climassay.factcheck.certainty import AgreementLevel, Confidence, EvidenceLevel, Levels, Likelihood
from climassay.factcheck.debate.assessment import explanation_lead
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
    as_data,
    cited_numbers,
    merge_quotations,
    reader_view,
)
from climassay.grounding import AnswerSentence, written
from climassay.grounding.answer import unchecked_note
from climassay.grounding.citations import mark_quotations
from climassay.records.queries import without_price
from climassay.reporting import Table, counted, render_page
from climassay.reporting.results import Result

if TYPE_CHECKING:
    from climassay.factcheck.past_checks import PastCheck

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
    "not enough information": "No verdict: the sources do not say enough for one. That makes the claim neither right "
    "nor wrong; what was searched and found is listed below.",
    "not checkable": "The text states nothing that evidence could confirm or refute: it may be a question, an opinion, "
    "a wish or a call to do something. It was not debated, and nothing was searched for it.",
    "not about climate": "The claim is not about climate, its causes, its consequences or what is done about it. It "
    "was not debated: the documents here could not tell.",
    "failed": "A model did not answer as it should, so there is no verdict. Run the check again.",
}
DEMONSTRATION = (
    "A very small language model made this. It demonstrates how this works and is not to be relied on: for real "
    "work, use a strong model."
)
SIDE: Mapping[Side | None, str] = {
    "for": "What speaks for the claim",
    "against": "What speaks against it",
    None: "What was found nearest to the claim",
}
KIND: Mapping[str, str] = {
    "collection": "reads",
    "plain": "answers from what its model knows, without documents",
    "adversarial": "argues the position of",
}


MEDIATOR: Mapping[str, str] = {
    "expert": "trusts the sources of all advocates",
    "neutral": "favours no advocate",
}


def level_lines(levels: Levels) -> tuple[tuple[str, str, str], ...]:
    """What is assessed, how it came out, and what that means; after the IPCC's guidance note on uncertainty."""
    lines: list[tuple[str, str, str]] = [
        ("Evidence", levels.evidence, EVIDENCE[levels.evidence]),
        ("Agreement", levels.agreement, AGREEMENT[levels.agreement]),
        ("Confidence", levels.confidence, CONFIDENCE[levels.confidence]),
    ]
    if levels.likelihood is not None:
        words = f"a probability of {LIKELIHOOD[levels.likelihood]}"
        lines.append(("Likelihood that the claim is true", levels.likelihood, words))
    return tuple(lines)


def role(profile: AdvocateProfile) -> str:
    """What an advocate reads, in words."""
    collections = ", ".join(profile.collections)
    return f"{KIND[profile.kind]} {collections}".strip() if collections else KIND[profile.kind]


MARKS_RIGHT = (
    "How often that is right: on 1000 passages of Climate-FEVER 74% of 784 marks by the bundled language model (95% "
    "interval 69 to 79), which is no more than if every passage were marked (74%). Other models are measured by "
    "climassay metrics entailment evaluate prompted:MODEL."
)
"""Precision of marks by entailment; see docs/results/entailment.md."""


def fallacy_note(fallacy: Fallacy) -> str:
    """Who says how the claim misleads, and how often that is right."""
    return (
        "Named by a classifier that read the claim's words and nothing else. Of published climate misinformation of"
        f" which it is this sure, about {100 * fallacy.precision:.0f}% has the fallacy named; other texts may fare"
        " worse."
    )


def cost(transcript: Transcript) -> str:
    """What a debate cost, in words."""
    if transcript.usage.cost is not None:
        return f"{transcript.usage.cost:.4f} US dollars"
    return without_price(local=all(model.startswith("local:") for model, _, _ in models(transcript)))


def models(transcript: Transcript) -> list[tuple[str, str, str]]:
    """Name, fingerprint and number format of each advocate's model, once each."""
    return list(dict.fromkeys((one.model, one.fingerprint, one.dtype) for one in transcript.advocates))


def mediator(transcript: Transcript) -> str:
    """The mediator's model, and how it treats the advocates."""
    style, _, model = transcript.mediator.partition(", ")
    return f"{MEDIATOR[style]}; model {model}" if style in MEDIATOR else transcript.mediator


_WORDS = {
    "ENDING": ENDING, "OUTCOME": OUTCOME, "PLACEMENT": PLACEMENT, "REASON": REASON, "SIDE": SIDE, "cost": cost,
    "counted": counted, "fallacy_note": fallacy_note, "level_lines": level_lines, "mediator": mediator,
    "models": models, "role": role,
}  # fmt: skip
"""What templates call things."""


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
        "probability": scale.probability(transcript.verdict.label, transcript.verdict.probabilities),
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
        "words": _WORDS,
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
    return tuple((name, value) for name, value in known if value)


def quoted_passages(transcript: Transcript) -> dict[Side | None, list[tuple[Quotation, PassageCitation]]]:
    """What speaks for and against the claim, each quotation with its passage; empty where nothing was quoted.

    The verdict's quotations, or where it has none those of the advocates' last opinions.
    """
    last = transcript.rounds[-1].opinions if transcript.rounds else ()
    quotations = transcript.verdict.quotations or [one for opinion in last for one in opinion.quotations]
    sources = {source.number: source for source in transcript.sources}
    results: dict[Side | None, list[tuple[Quotation, PassageCitation]]] = {"for": [], "against": [], None: []}
    for one in merge_quotations(quotations):
        if one.passage in sources:
            results[one.side].append((one, sources[one.passage]))
    return {side: pairs for side, pairs in results.items() if pairs}


def quoted_texts(transcript: Transcript) -> dict[int, tuple[str, ...]]:
    """What anybody in the debate has quoted of each passage, by the passage's number."""
    rounds = transcript.rounds
    opinions = [opinion for held in rounds for opinion in (*held.opinions, *held.parts)]
    results: dict[int, dict[str, None]] = {}
    for one in (*transcript.verdict.quotations, *(one for opinion in opinions for one in opinion.quotations)):
        results.setdefault(one.passage, {})[one.text] = None
    return {number: tuple(texts) for number, texts in results.items()}


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
    results = [DEMONSTRATION] if transcript.demonstration else []
    results += [*verdict.caveats, *transcript.warnings]
    alone = bool(transcript.rounds) and transcript.rounds[-1].decision.reason == "one informed advocate"
    if alone and verdict.levels is not None:
        rated = ["evidence robust"] * (verdict.levels.evidence == "robust")
        rated += ["agreement high"] * (verdict.levels.agreement == "high")
        if rated:
            terms = " and ".join(rated).capitalize()
            results.append(f"{terms}: the mediator says so, although only one advocate had information.")
    if verdict.contradicts:
        results.append("The explanation seems to argue for the other side than the verdict: read both with care.")
    results += _sentence_notes(verdict.explanation)
    results += _removed_notes(verdict)
    if transcript.stability is not None and transcript.stability.share < 1:
        share, samples = transcript.stability.share, transcript.stability.samples
        results.append(f"The verdict is not stable: {100 * share:.0f}% of {samples} runs agreed on one.")
    if transcript.failures and verdict.outcome != "failed":
        results.append(f"{counted(transcript.failures, 'model call')} failed; the debate went on without.")
    if transcript.prefixed:
        results.append("The claim was put to the models with a note that it is made in a climate-change context.")
    return tuple(dict.fromkeys(results))


def _sentence_notes(sentences: Sequence[AnswerSentence]) -> list[str]:
    from climassay.metrics.entailment import ENTAILED

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
        notes.append(f"{weak} {cite} may not say so. {MARKS_RIGHT}")
    return notes


def _removed_notes(found: Verdict | AdvocateOpinion) -> list[str]:
    """What was taken out of an explanation and of quotations, because it does not appear in the passages."""
    notes = []
    if count := found.removed_citations:
        was = "was" if count == 1 else "were"
        notes.append(f"{counted(count, 'citation')} of passages that were not retrieved {was} removed.")
    if count := found.removed_quotations:
        was = "is not in its passage and was" if count == 1 else "are not in their passages and were"
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
                f"It would say \u201c{opinion.withheld}\u201d, but nothing that it quotes or cites supports that."
            )
    return View(
        name,
        role(profile),
        profile.collections,
        last[0] if last else None,
        tuple(newest.values()),
        tuple(notes),
    )


_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})?)?)?)?")
PartyKind = Literal["Person", "Organization"]


def claim_review(
    transcript: Transcript,
    *,
    url: str,
    author: str,
    author_url: str | None = None,
    published: str | None = None,
    appearance: str | None = None,
    claimant: PartyKind = "Person",
    scale: Scale | None = None,
) -> dict[str, Any]:
    """A fact-check as JSON-LD.

    The rating runs from 1, the most wrong label of the scale, to the number of labels. Without a verdict there is no
    review: "not enough information" rates nothing.

    Args:
        transcript: The finished fact-check.
        url: Web page of the fact-check; Google wants it on the domain that carries the data.
        author: Organisation that answers for it.
        author_url: Its web page.
        published: ISO 8601 date of the fact-check.
        appearance: Web page where the claim appears; by default the claim's source, where that is an address.
        claimant: Whether the claim's source is a person or an organisation.
        scale: The transcript's scale; None looks it up by name.

    Returns:
        What ``json.dumps`` takes. ``claimReviewed``, ``reviewRating`` (with ``alternateName``) and ``url``, which
        Google requires, are always there, and what it recommends where it is known.

    Raises:
        InputError: There is no verdict to publish (not enough information, not checkable, not about climate, failed),
            an address is not a web address, or a date is not ISO 8601.

    Notes:
        Google shows ClaimReviews of sites that check claims openly and correct their errors; a person should have
        reviewed a verdict before it is published as one.

    References:
        https://schema.org/ClaimReview;
        https://developers.google.com/search/docs/appearance/structured-data/factcheck
    """
    used = scale or load_scale(transcript.scale)
    transcript = reader_view(transcript, used)
    verdict = transcript.verdict
    if verdict.outcome != "verdict" or verdict.label is None:
        raise InputError(
            f"The fact-check ended as {verdict.outcome!r}, without a verdict, so there is nothing to rate."
        )
    if not author.strip():
        raise InputError("A ClaimReview needs an author: the organisation that is responsible for it.")
    party: dict[str, Any] = {"@type": "Organization", "name": author.strip()}
    if author_url is not None:
        party["url"] = _address(author_url, "author_url")
    claim: dict[str, Any] = {"@type": "Claim"}
    source, date = transcript.claim.source.strip(), transcript.claim.date.strip()
    where = safe_link(source) if appearance is None else _address(appearance, "appearance")
    if where is not None:
        claim["appearance"] = {"@type": "CreativeWork", "url": where}
    if source and safe_link(source) is None:
        claim["author"] = {"@type": claimant, "name": source}
    if _DATE.fullmatch(date):
        claim["datePublished"] = date
    sentences = [f"The claim {used.meaning(verdict.label)}."]
    sentences += [f"Confidence of the model: {verdict.levels.confidence}."] if verdict.levels else []
    sentences += ["Assessed by a language model from documents."]
    sentences += [DEMONSTRATION] if transcript.demonstration else []
    review: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "ClaimReview",
        "url": _address(url, "url"),
        "claimReviewed": transcript.claim.text,
        "author": party,
        "itemReviewed": claim,
        "reviewRating": {
            "@type": "Rating",
            "alternateName": verdict.label,
            "ratingValue": used.position(verdict.label) + 1,
            "worstRating": 1,
            "bestRating": len(used.labels),
            "ratingExplanation": " ".join(sentences),
        },
    }
    if published is not None:
        if not _DATE.fullmatch(published):
            raise InputError(f"The date of a ClaimReview must be like 2024-05-31 (ISO 8601), not {published!r}.")
        review["datePublished"] = published
    if verdict.explanation:
        # What passages bear, without our marks and fixed words.
        borne = [sentence.text for sentence in verdict.explanation if sentence.citations]
        texts = borne or [sentence.text for sentence in verdict.explanation]
        bare = [text.removeprefix(explanation_lead(verdict.label)).strip() for text in texts]
        review["reviewBody"] = " ".join(text[:1].upper() + text[1:] for text in bare)
    cited = cited_numbers(verdict.explanation, verdict.quotations)
    review["citation"] = [_work(source) for source in transcript.sources if source.number in cited]
    return review


def _work(source: PassageCitation) -> dict[str, Any]:
    """A cited passage: what it appears in, where there, and its address."""
    passage = source.passage
    titles = [one for one in (passage.report, passage.document, passage.chapter) if one]
    pages = dict.fromkeys(page for page in (passage.first_page, passage.last_page) if page is not None)
    work: dict[str, Any] = {"@type": "CreativeWork", "name": ", ".join(dict.fromkeys(titles))}
    if pages:
        work["pagination"] = "-".join(map(str, pages))
    address = safe_link(passage.url)
    return work | ({"url": address} if address else {})


def _address(value: str, name: str) -> str:
    address = safe_link(value.strip())
    if address is None:
        raise InputError(f"The {name} of a ClaimReview must be a web address that begins with https://, not {value!r}.")
    return address


@dataclass(frozen=True, slots=True)
class CheckedClaim(Transcript, Result):
    """A claim that was debated: its transcript, to be shown and saved."""

    rests_on_calls = False

    labels: Scale | None = None
    """The scale of its verdicts; None looks it up by the name in the transcript."""
    past: "tuple[PastCheck, ...] | None" = None
    """Earlier checks of the same claim or of similar ones; None where nobody looked for them."""

    @classmethod
    def of(cls, transcript: Transcript, labels: Scale) -> "CheckedClaim":
        """A transcript as a result."""
        return cls(**{one.name: getattr(transcript, one.name) for one in fields(Transcript)}, labels=labels)

    def to_dict(self) -> dict[str, Any]:
        """Every word of the debate, and the earlier checks."""
        past = {} if self.past is None else {"past": [asdict(check) for check in self.past]}
        return {**as_data(self), **past}

    def rows(self) -> list[dict[str, Any]]:
        """A row per opinion, in the order of the debate."""
        return [
            {"round": one.round, "advocate": one.advocate, "verdict": one.verdict, "changed": one.changed,
             "explanation": _written(one.explanation), "error": one.error}
            for held in self.rounds for one in held.opinions
        ]  # fmt: skip

    def tables(self) -> tuple[Table, ...]:
        """The verdict, and what each advocate held in each round."""
        names = ("round", "advocate", "verdict", "explanation")
        cells = [tuple(str(row[name] or "") for name in names) for row in self.rows()]
        outcome = verdict_row(self)
        ended = (str(outcome["label"] or outcome["outcome"]), str(outcome["confidence"] or "-"))
        return (
            Table.of(str(outcome["claim"]), ("verdict", "confidence"), [ended], left=2),
            Table.of("Debate", names, cells, left=4),
        )

    def terminal_tables(self, width: int) -> tuple[Table, ...]:  # noqa: ARG002
        """None: the debate was shown as it went, and the lines have the verdict."""
        return ()

    def lines(self) -> Iterator[Any]:
        """The verdict with its reasons and sources."""
        return verdict_lines(self, self.labels or load_scale(self.scale))

    def failure(self) -> NoAnswerError | None:
        """There is no verdict, because a model call failed."""
        if self.verdict.outcome != "failed":
            return None
        return NoAnswerError(f"There is no verdict, because a model call failed: {self.verdict.error}")

    def page(self) -> str:
        """The page of the fact-check."""
        return factcheck_page(self, self.labels)


def verdict_row(transcript: Transcript) -> dict[str, str | None]:
    """The outcome of a debate in one row."""
    verdict = transcript.verdict
    return {
        "id": transcript.claim.id,
        "claim": transcript.claim.text,
        "outcome": verdict.outcome,
        "label": verdict.label,
        "confidence": verdict.levels.confidence if verdict.levels else None,
    }


def format_levels(levels: Levels) -> str:
    """Levels on one line, after the verdict that they belong to."""
    likelihood = f", {levels.likelihood} to be true" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def _written(sentences: "Sequence[AnswerSentence]") -> str:
    return " ".join(written(sentence) for sentence in sentences)


def verdict_lines(transcript: Transcript, scale: Scale) -> Iterator[Any]:
    """The verdict as a terminal shows it: with its reasons, what speaks for and against it, and its sources."""
    from rich.padding import Padding
    from rich.text import Text

    transcript = reader_view(transcript, scale)
    verdict = transcript.verdict
    if verdict.outcome == "verdict" and verdict.label is not None:
        yield Text.assemble(("Verdict: ", "bold"), (verdict.label, "bold cyan"))
        chance = scale.probability(verdict.label, verdict.probabilities)
        probability = "" if chance is None else f" The model gives this verdict a probability of {100 * chance:.0f}%."
        yield Text(f"The claim {scale.meaning(verdict.label)}.{probability}")
    else:
        yield Text.assemble(("Result: ", "bold"), (OUTCOME[verdict.outcome], "bold cyan"))
        yield Text(ENDING[verdict.outcome])
    if verdict.explanation:
        heading = "Why" if verdict.outcome == "verdict" else "What the model wrote"
        yield Text(f"\n{heading}", style="bold")
        yield Text(_written(verdict.explanation))
    if transcript.fallacy is not None:
        one = transcript.fallacy
        yield Text("\nHow it misleads", style="bold")
        yield Text(f"{one.name.capitalize()} ({one.probability:.0%}). {one.definition}")
        yield Text(fallacy_note(one), style="dim")
    for side, pairs in quoted_passages(transcript).items():
        yield Text(f"\n{SIDE[side]}", style="bold")
        for quotation, source in pairs:
            yield Padding(Text(f"\u201c{quotation.text}\u201d [{source.number}]"), (0, 0, 0, 2))
    if verdict.levels is not None:
        yield Text("\nHow certain it is", style="bold")
        for name, value, meaning in level_lines(verdict.levels):
            yield Text.assemble(f"{name}: ", (value, "bold"), (f" ({meaning})", "dim"))
    known = notices(transcript)
    if known:
        yield Text("\nBefore you rely on this", style="bold")
    for note in known:
        yield Text(f"! {note}", style="yellow")
    if transcript.stability is not None:
        stable = transcript.stability
        yield Text(f"{stable.share:.0%} of {stable.samples} debates ended with the same verdict.", style="dim")
    if transcript.sources:
        heading = "Passages" if transcript.cited else f"Passages found: {len(transcript.sources)}, none of them cited"
        yield Text(f"\n{heading}", style="bold")
    for source in transcript.cited or transcript.sources:
        yield Text(f"[{source.number}] {source.citation}  ({source.collection})", style="dim")
    yield Text("\nWritten by a language model: have a person review it before you rely on it.", style="dim")
