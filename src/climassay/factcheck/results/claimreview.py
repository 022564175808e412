"""A verdict as schema.org ClaimReview, the form in which search engines and archives of fact-checks read it."""

import re
from typing import Any, Literal

from climassay.errors import InputError
from climassay.factcheck.debate.assessment import explanation_lead
from climassay.factcheck.results.page import safe_link
from climassay.factcheck.results.page_words import DEMONSTRATION
from climassay.factcheck.results.view import reader_view
from climassay.factcheck.scales import Scale, load_scale
from climassay.factcheck.transcript import PassageCitation, Transcript, Verdict, cited_numbers

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
        raise InputError("A ClaimReview needs an author: the organisation that answers for it.")
    party: dict[str, Any] = {"@type": "Organization", "name": author.strip()}
    if author_url is not None:
        party["url"] = _address(author_url, "author_url")
    review: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "ClaimReview",
        "url": _address(url, "url"),
        "claimReviewed": transcript.claim.text,
        "author": party,
        "itemReviewed": _claim(transcript, appearance, claimant),
        "reviewRating": _rating(transcript, verdict.label, used),
    }
    if published is not None:
        if not _DATE.fullmatch(published):
            raise InputError(f"The date of a ClaimReview must be like 2024-05-31 (ISO 8601), not {published!r}.")
        review["datePublished"] = published
    if verdict.explanation:
        review["reviewBody"] = _prose(verdict)
    cited = cited_numbers(verdict.explanation, verdict.quotations)
    review["citation"] = [_work(source) for source in transcript.sources if source.number in cited]
    return review


def _claim(transcript: Transcript, appearance: str | None, claimant: PartyKind) -> dict[str, Any]:
    source, date = transcript.claim.source.strip(), transcript.claim.date.strip()
    claim: dict[str, Any] = {"@type": "Claim"}
    where = safe_link(source) if appearance is None else _address(appearance, "appearance")
    if where is not None:
        claim["appearance"] = {"@type": "CreativeWork", "url": where}
    if source and safe_link(source) is None:
        claim["author"] = {"@type": claimant, "name": source}
    if _DATE.fullmatch(date):
        claim["datePublished"] = date
    return claim


def _prose(verdict: Verdict) -> str:
    """The explanation as a reader elsewhere may meet it: what passages bear, without our marks and fixed words."""
    borne = [sentence.text for sentence in verdict.explanation if sentence.citations]
    texts = borne or [sentence.text for sentence in verdict.explanation]
    bare = [text.removeprefix(explanation_lead(verdict.label or "")).strip() for text in texts]
    return " ".join(text[:1].upper() + text[1:] for text in bare)


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


def _rating(transcript: Transcript, label: str, scale: Scale) -> dict[str, Any]:
    levels = transcript.verdict.levels
    sentences = [f"The claim {scale.meaning(label)}."]
    sentences += [f"Confidence of the model: {levels.confidence}."] if levels else []
    sentences += ["Assessed by a language model from documents."]
    sentences += [DEMONSTRATION] if transcript.demonstration else []
    return {
        "@type": "Rating",
        "alternateName": label,
        "ratingValue": scale.position(label) + 1,
        "worstRating": 1,
        "bestRating": len(scale.labels),
        "ratingExplanation": " ".join(sentences),
    }


def _address(value: str, name: str) -> str:
    address = safe_link(value.strip())
    if address is None:
        raise InputError(f"The {name} of a ClaimReview must be a web address that begins with https://, not {value!r}.")
    return address
