"""A verdict as schema.org ClaimReview, the form in which search engines and archives of fact-checks read it."""

import json
import re
from typing import Any, Literal

from climassay.errors import InputError
from climassay.factcheck.page import safe_link
from climassay.factcheck.scales import Scale, load_scale
from climassay.factcheck.transcript import Transcript
from climassay.grounding import written

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

    The rating runs from 1, the most wrong label of the scale, to the number of labels. "Not enough information" stands
    outside of that order, so it has its words (``alternateName``, the only part of a rating that Google demands) and no
    number.

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
        InputError: There is no verdict to publish (not checkable, not about climate, failed), an address is no web
            address, or a date is not ISO 8601.

    Notes:
        Google shows ClaimReviews of sites that check claims openly and correct their errors; a person should have
        reviewed a verdict before it is published as one.

    References:
        https://schema.org/ClaimReview;
        https://developers.google.com/search/docs/appearance/structured-data/factcheck
    """
    verdict = transcript.verdict
    if verdict.label is None:
        raise InputError(
            f"The fact-check ended as {verdict.outcome!r}, without a verdict, so there is nothing to rate."
        )
    party: dict[str, Any] = {"@type": "Organization", "name": _text(author, "author")}
    if author_url is not None:
        party["url"] = _address(author_url, "author_url")
    review: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "ClaimReview",
        "url": _address(url, "url"),
        "claimReviewed": transcript.claim.text,
        "author": party,
        "itemReviewed": _claim(transcript, appearance, claimant),
        "reviewRating": _rating(transcript, verdict.label, scale or load_scale(transcript.scale)),
    }
    if published is not None:
        review["datePublished"] = _date(published)
    if verdict.explanation:
        review["reviewBody"] = " ".join(written(sentence) for sentence in verdict.explanation)
    citations = [source.citation for source in transcript.cited]
    return review | ({"citation": citations} if citations else {})


def claim_review_script(review: dict[str, Any]) -> str:
    """The review as a ``<script type="application/ld+json">`` element that can be put into any page.

    ``<``, ``>`` and ``&`` are written as JSON escapes, so that no text of a claim can end the element.
    """
    text = json.dumps(review, ensure_ascii=False, indent=2)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/ld+json">\n{text}\n</script>\n'


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


def _rating(transcript: Transcript, label: str, scale: Scale) -> dict[str, Any]:
    rating: dict[str, Any] = {"@type": "Rating", "alternateName": label}
    if label == scale.nei:
        explanation = "The documents that were searched do not say enough to judge the claim."
    else:
        place = scale.position(label)
        rating |= {"ratingValue": place + 1, "worstRating": 1, "bestRating": len(scale.labels)}
        explanation = f"The claim {scale.definitions[label]}."
    levels = transcript.verdict.levels
    certainty = f" Confidence of the model: {levels.confidence}." if levels else ""
    return rating | {"ratingExplanation": f"{explanation}{certainty} Assessed by a language model from documents."}


def _text(value: str, name: str) -> str:
    if not value.strip():
        raise InputError(f"A ClaimReview needs an {name}: the organisation that answers for it.")
    return value.strip()


def _address(value: str, name: str) -> str:
    address = safe_link(value.strip())
    if address is None:
        raise InputError(f"The {name} of a ClaimReview must be a web address that begins with https://, not {value!r}.")
    return address


def _date(value: str) -> str:
    if not _DATE.fullmatch(value):
        raise InputError(f"The date of a ClaimReview must be like 2024-05-31 (ISO 8601), not {value!r}.")
    return value
