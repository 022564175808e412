"""Presentation of one fact-check: terminal output, self-contained HTML page, and schema.org ClaimReview.

The page contains no scripts, escapes all texts, and explains the IPCC's terms. Search engines and archives of
fact-checks read verdicts as ClaimReview.
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
    as_data,
    cited_numbers,
    merge_quotations,
    reader_view,
)
from climassay.grounding import AnswerSentence, format_sentence
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


def role(profile: AdvocateProfile) -> str:
    """Return the description of an advocate's kind and collections."""
    collections = ", ".join(profile.collections)
    return f"{KIND[profile.kind]} {collections}".strip() if collections else KIND[profile.kind]


MARKS_RIGHT = (
    "How often that is right: on 1000 passages of Climate-FEVER 74% of 784 marks by the bundled language model (95% "
    "interval 69 to 79), which is no more than if every passage were marked (74%). Other models are measured by "
    "climassay metrics entailment evaluate prompted:MODEL."
)
"""Precision of marks by entailment; see docs/results/entailment.md."""


def fallacy_note(fallacy: Fallacy) -> str:
    """Return the note on the reliability of a predicted fallacy."""
    return (
        "Named by a classifier that read the claim's words and nothing else. Of published climate misinformation of"
        f" which it is this sure, about {100 * fallacy.precision:.0f}% has the fallacy named; other texts may fare"
        " worse."
    )


def cost(transcript: Transcript) -> str:
    """Return the cost of a debate in US dollars as text, or a statement that it is unknown or free."""
    if transcript.usage.cost is not None:
        return f"{transcript.usage.cost:.4f} US dollars"
    return without_price(local=all(model.startswith("local:") for model, _, _ in models(transcript)))


def models(transcript: Transcript) -> list[tuple[str, str, str]]:
    """Return name, fingerprint and number format of the advocates' models, without duplicates."""
    return list(dict.fromkeys((profile.model, profile.fingerprint, profile.dtype) for profile in transcript.advocates))


def mediator(transcript: Transcript) -> str:
    """Return the description of the mediator's style and model."""
    style, _, model = transcript.mediator.partition(", ")
    return f"{MEDIATOR[style]}; model {model}" if style in MEDIATOR else transcript.mediator


_TEMPLATE_GLOBALS = {
    "ENDING": ENDING, "OUTCOME": OUTCOME, "PLACEMENT": PLACEMENT, "REASON": REASON, "SIDE": SIDE, "cost": cost,
    "counted": counted, "fallacy_note": fallacy_note, "level_lines": level_lines, "mediator": mediator,
    "models": models, "role": role, "source_dates": source_dates,
    "day_in_words": day_in_words,
}  # fmt: skip
"""Texts and functions used by the templates."""


@dataclass(frozen=True, slots=True)
class ScalePosition:
    """Position of a label on its scale."""

    label: str
    position: float | None
    """Position from 0 for the most wrong label to 1 for the most right one; None for "not enough information"."""
    meaning: str


@dataclass(frozen=True, slots=True)
class ClaimPiece:
    """Piece of the claim's text between the borders of its subclaims."""

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
        scale: Scale of the verdict; None loads it by the transcript's scale name.
        publication: Publisher, address, date and reviews; None if the fact-check is not published.

    Raises:
        InputError: There is no scale of that name, or the verdict is not one of its labels.
    """
    values = page_values(transcript, scale or load_scale(transcript.scale), publication)
    return render_page("factcheck.html.j2", **values)


def page_values(transcript: Transcript, scale: Scale, publication: Publication | None = None) -> dict[str, Any]:
    """Return the template values of a fact-check, with its citation if it is published.

    ``check`` is the transcript returned by :func:`~climassay.factcheck.transcript.reader_view`; templates must escape
    its texts.

    Raises:
        InputError: The verdict is not one of the scale's labels.
    """
    transcript = reader_view(transcript, scale)
    cited = transcript.cited
    numbers = {source.number for source in cited}
    label, explained = transcript.verdict.label, transcript.verdict.explanation
    quotations = quoted_texts(transcript)
    n_attributed = sum(sentence.origin == "attributed" for sentence in explained)
    n_cited = sum(bool(sentence.citations) for sentence in explained)
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
        "probability": scale.probability(transcript.verdict.label, transcript.verdict.probabilities),
        "pieces": claim_pieces(transcript.claim.text, transcript.subclaims),
        "notices": notices(transcript),
        "views": [_advocate_view(transcript, profile) for profile in transcript.advocates],
        "quoted": quoted_passages(transcript),
        "passage_pieces": lambda source: mark_quotations(source.passage.text, quotations.get(source.number, ())),
        "cited": cited,
        "uncited": [source for source in transcript.sources if source.number not in numbers],
        "attributed": note if n_attributed else "",
    }


def shared_values(scale: Scale, numbers: Collection[int]) -> dict[str, Any]:
    """Return the template values common to all parts of a debate; passages with these ``numbers`` can be linked to."""
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
        fits = parts.scheme.lower() in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return None
    return url if fits else None


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


def quoted_passages(transcript: Transcript) -> dict[Side | None, list[tuple[Quotation, PassageCitation]]]:
    """Return the quotations for and against the claim with their passages, by side.

    If the verdict has no quotations, those of the advocates' last opinions are returned.
    """
    opinions = transcript.rounds[-1].opinions if transcript.rounds else ()
    quotations = transcript.verdict.quotations or [
        quotation for opinion in opinions for quotation in opinion.quotations
    ]
    sources = {source.number: source for source in transcript.sources}
    results: dict[Side | None, list[tuple[Quotation, PassageCitation]]] = {"for": [], "against": [], None: []}
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
            text[low:high],
            tuple(subclaim.number for subclaim in subclaims if subclaim.start <= low and high <= subclaim.end),
            tuple(subclaim.number for subclaim in subclaims if subclaim.end == high and subclaim.start < high),
        )
        for low, high in pairwise(borders)
    )


def notices(transcript: Transcript) -> tuple[str, ...]:
    """Return warnings for the reader of a verdict, most important first."""
    verdict = transcript.verdict
    results = [DEMONSTRATION] if transcript.demonstration else []
    results += [*verdict.caveats, *transcript.warnings]
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
    if unchecked := unchecked_note(reference for sentence in sentences for reference in sentence.unchecked_references):
        notes.append(unchecked)
    n_own = sum(sentence.in_house for sentence in sentences)
    if n_own:
        phrase = "rests on no passage and is" if n_own == 1 else "rest on no passage and are"
        notes.append(f"{n_own} of {counted(len(sentences), 'sentence')} {phrase} marked.")
    # If entailment was measured, at least one of the cited passages should entail the sentence.
    measured = [[value for value in sentence.entailment if value is not None] for sentence in sentences]
    weak = sum(bool(values) and max(values) < ENTAILED for values in measured)
    if weak:
        cite = "sentences cite passages that" if weak > 1 else "sentence cites a passage that"
        notes.append(f"{weak} {cite} may not say so. {MARKS_RIGHT}")
    return notes


def _removed_notes(result: Verdict | AdvocateOpinion) -> list[str]:
    """Return notes on removed citations and quotations."""
    notes = []
    if count := result.removed_citations:
        was = "was" if count == 1 else "were"
        notes.append(f"{counted(count, 'citation')} of passages that were not retrieved {was} removed.")
    if count := result.removed_quotations:
        was = "is not in its passage and was" if count == 1 else "are not in their passages and were"
        notes.append(f"{counted(count, 'quotation')} {was} removed.")
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
        if opinion.contradicts:
            notes.append("The explanation seems to argue for the other side than the verdict.")
        notes += [*_sentence_notes(opinion.explanation), *_removed_notes(opinion)]
        if opinion.withheld:
            notes.append(
                f"It would say \u201c{opinion.withheld}\u201d, but nothing that it quotes or cites supports that."
            )
    return AdvocateView(
        name,
        role(profile),
        profile.collections,
        opinions[0] if opinions else None,
        tuple(parts.values()),
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
    claimant: PartyKind = "Person",
    scale: Scale | None = None,
) -> dict[str, Any]:
    """Return a fact-check as ClaimReview in JSON-LD.

    The rating ranges from 1, the most wrong label of the scale, to the number of labels.

    Args:
        transcript: Finished fact-check.
        url: Web page of the fact-check; Google requires it on the domain that publishes the data.
        author: Organisation responsible for the fact-check.
        author_url: Web page of the organisation.
        published: ISO 8601 date of the fact-check.
        claimant: Type of the claim's source.
        scale: Scale of the verdict; None loads it by the transcript's scale name.

    Returns:
        JSON-serialisable values with all fields that Google requires, and the recommended ones that are known.

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
    scale = scale or load_scale(transcript.scale)
    transcript = reader_view(transcript, scale)
    verdict = transcript.verdict
    if verdict.outcome != "verdict" or verdict.label is None:
        raise InputError(
            f"The fact-check ended as {verdict.outcome!r}, without a verdict, so there is nothing to rate."
        )
    if not author.strip():
        raise InputError("A ClaimReview needs an author: the organisation that is responsible for it.")
    party: dict[str, Any] = {"@type": "Organization", "name": author.strip()}
    if author_url is not None:
        party["url"] = _valid_address(author_url, "author_url")
    claim: dict[str, Any] = {"@type": "Claim"}
    source, date = transcript.claim.source.strip(), transcript.claim.date.strip()
    appearance = transcript.claim.appearance.strip()
    appearance_url = safe_link(appearance) or safe_link(source)
    if appearance_url is not None:
        claim["appearance"] = {"@type": "CreativeWork", "url": appearance_url}
    elif appearance:
        claim["appearance"] = {"@type": "CreativeWork", "name": appearance}
    if source and safe_link(source) is None:
        claim["author"] = {"@type": claimant, "name": source}
    if _DATE.fullmatch(date):
        claim["datePublished"] = date
    sentences = [f"The claim {scale.meaning(verdict.label)}."]
    sentences += [f"Confidence of the model: {verdict.levels.confidence}."] if verdict.levels else []
    sentences += ["Assessed by a language model from documents."]
    sentences += [DEMONSTRATION] if transcript.demonstration else []
    review: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "ClaimReview",
        "url": _valid_address(url, "url"),
        "claimReviewed": transcript.claim.text,
        "author": party,
        "itemReviewed": claim,
        "reviewRating": {
            "@type": "Rating",
            "alternateName": verdict.label,
            "ratingValue": scale.position(verdict.label) + 1,
            "worstRating": 1,
            "bestRating": len(scale.labels),
            "ratingExplanation": " ".join(sentences),
        },
    }
    if published is not None:
        if not _DATE.fullmatch(published):
            raise InputError(f"The date of a ClaimReview must be like 2024-05-31 (ISO 8601), not {published!r}.")
        review["datePublished"] = published
    if verdict.explanation:
        # Only sentences with citations, without the fixed opening.
        cited_texts = [sentence.text for sentence in verdict.explanation if sentence.citations]
        texts = cited_texts or [sentence.text for sentence in verdict.explanation]
        bare = [text.removeprefix(explanation_lead(verdict.label)).strip() for text in texts]
        review["reviewBody"] = " ".join(text[:1].upper() + text[1:] for text in bare)
    cited = cited_numbers(verdict.explanation, verdict.quotations)
    review["citation"] = [_creative_work(source) for source in transcript.sources if source.number in cited]
    return review


def _creative_work(source: PassageCitation) -> dict[str, Any]:
    """Return a cited passage as a schema.org CreativeWork."""
    passage = source.passage
    titles = [title for title in (passage.report, passage.document, passage.chapter) if title]
    pages = dict.fromkeys(page for page in (passage.first_page, passage.last_page) if page is not None)
    work: dict[str, Any] = {"@type": "CreativeWork", "name": ", ".join(dict.fromkeys(titles))}
    if pages:
        work["pagination"] = "-".join(map(str, pages))
    address = safe_link(passage.url)
    return work | ({"url": address} if address else {})


def _valid_address(value: str, name: str) -> str:
    address = safe_link(value.strip())
    if address is None:
        raise InputError(f"The {name} of a ClaimReview must be a web address that begins with https://, not {value!r}.")
    return address


@dataclass(frozen=True, slots=True)
class CheckedClaim(Transcript, Result):
    """Result of checking one claim: its transcript."""

    rests_on_calls = False

    labels: Scale | None = None
    """Scale of the verdicts; None loads it by the transcript's scale name."""
    past: "tuple[PastCheck, ...] | None" = None
    """Earlier fact-checks of the same or a similar claim; None if not searched."""

    @classmethod
    def of(cls, transcript: Transcript, labels: Scale) -> "CheckedClaim":
        """Return a transcript as a result."""
        return cls(**{entry.name: getattr(transcript, entry.name) for entry in fields(Transcript)}, labels=labels)

    def to_dict(self) -> dict[str, Any]:
        """Return the transcript and the earlier fact-checks as JSON-serialisable values."""
        past = {} if self.past is None else {"past": [asdict(check) for check in self.past]}
        return {**as_data(self), **past}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per opinion, in the order of the debate."""
        return [
            {"round": opinion.round, "advocate": opinion.advocate, "verdict": opinion.verdict,
             "changed": opinion.changed, "explanation": _format_sentences(opinion.explanation), "error": opinion.error}
            for debate_round in self.rounds for opinion in debate_round.opinions
        ]  # fmt: skip

    def tables(self) -> tuple[Table, ...]:
        """Return a table of the verdict and a table of all opinions."""
        names = ("round", "advocate", "verdict", "explanation")
        cells = [tuple(str(row[name] or "") for name in names) for row in self.rows()]
        outcome = verdict_row(self)
        verdict_cells = (str(outcome["label"] or outcome["outcome"]), str(outcome["confidence"] or "-"))
        return (
            Table.of(str(outcome["claim"]), ("verdict", "confidence"), [verdict_cells], left=2),
            Table.of("Debate", names, cells, left=4),
        )

    def terminal_tables(self, width: int) -> tuple[Table, ...]:  # noqa: ARG002
        """Return no tables: the terminal has shown the debate, and the lines contain the verdict."""
        return ()

    def lines(self) -> Iterator[Any]:
        """Return the verdict with its explanation and sources, line by line."""
        return verdict_lines(self, self.labels or load_scale(self.scale))

    def failure(self) -> NoAnswerError | None:
        """Return the error if there is no verdict because a model call failed."""
        if self.verdict.outcome != "failed":
            return None
        return NoAnswerError(f"There is no verdict, because a model call failed: {self.verdict.error}")

    def page(self) -> str:
        """Return the HTML page of the fact-check."""
        return factcheck_page(self, self.labels)


def verdict_row(transcript: Transcript) -> dict[str, str | None]:
    """Return the outcome of a debate as a table row."""
    verdict = transcript.verdict
    return {
        "id": transcript.claim.id,
        "claim": transcript.claim.text,
        "outcome": verdict.outcome,
        "label": verdict.label,
        "confidence": verdict.levels.confidence if verdict.levels else None,
    }


def format_levels(levels: Levels) -> str:
    """Return levels as one line of text."""
    likelihood = f", {levels.likelihood} to be true" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def _format_sentences(sentences: "Sequence[AnswerSentence]") -> str:
    return " ".join(format_sentence(sentence) for sentence in sentences)


def verdict_lines(transcript: Transcript, scale: Scale) -> Iterator[Any]:
    """Yield the lines of a verdict for a terminal: explanation, quotations, certainty, warnings and sources."""
    from rich.padding import Padding
    from rich.text import Text

    transcript = reader_view(transcript, scale)
    verdict = transcript.verdict
    if verdict.outcome == "verdict" and verdict.label is not None:
        yield Text.assemble(("Verdict: ", "bold"), (verdict.label, "bold cyan"))
        probability = scale.probability(verdict.label, verdict.probabilities)
        note = (
            "" if probability is None else f" The model gives this verdict a probability of {100 * probability:.0f}%."
        )
        yield Text(f"The claim {scale.meaning(verdict.label)}.{note}")
    else:
        yield Text.assemble(("Result: ", "bold"), (OUTCOME[verdict.outcome], "bold cyan"))
        yield Text(ENDING[verdict.outcome])
    if verdict.explanation:
        heading = "Why" if verdict.outcome == "verdict" else "What the model wrote"
        yield Text(f"\n{heading}", style="bold")
        yield Text(_format_sentences(verdict.explanation))
    if transcript.fallacy is not None:
        fallacy = transcript.fallacy
        yield Text("\nHow it misleads", style="bold")
        yield Text(f"{fallacy.name.capitalize()} ({fallacy.probability:.0%}). {fallacy.definition}")
        yield Text(fallacy_note(fallacy), style="dim")
    for side, pairs in quoted_passages(transcript).items():
        yield Text(f"\n{SIDE[side]}", style="bold")
        for quotation, source in pairs:
            yield Padding(Text(f"\u201c{quotation.text}\u201d [{source.number}]"), (0, 0, 0, 2))
    if verdict.levels is not None:
        yield Text("\nHow certain it is", style="bold")
        for name, value, meaning in level_lines(verdict.levels):
            yield Text.assemble(f"{name}: ", (value, "bold"), (f" ({meaning})", "dim"))
    remarks = notices(transcript)
    if remarks:
        yield Text("\nBefore you rely on this", style="bold")
    for note in remarks:
        yield Text(f"! {note}", style="yellow")
    if transcript.stability is not None:
        stability = transcript.stability
        yield Text(f"{stability.share:.0%} of {stability.samples} debates ended with the same verdict.", style="dim")
    if transcript.sources:
        heading = "Passages" if transcript.cited else f"Passages found: {len(transcript.sources)}, none of them cited"
        yield Text(f"\n{heading}", style="bold")
    for source in transcript.cited or transcript.sources:
        yield Text(f"[{source.number}] {source.citation}  ({source.collection})", style="dim")
    yield Text("\nWritten by a language model: have a person review it before you rely on it.", style="dim")
