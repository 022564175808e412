"""Fact-check as schema.org ``ClaimReview``, which search engines and archives of fact-checks read."""

import re
from typing import Any, Literal

from climassay.errors import InputError
from climassay.factcheck.results.page import safe_link
from climassay.factcheck.scales import Scale, load_scale
from climassay.factcheck.transcript import PassageCitation, Transcript, cited_numbers, reader_view
from climassay.prompts import DEMONSTRATION

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
        scale: Scale of the verdict; None loads the scale that the transcript names.

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
        cited_texts = [sentence.text for sentence in verdict.explanation if sentence.citations]
        review["reviewBody"] = " ".join(cited_texts or [sentence.text for sentence in verdict.explanation])
    passage_numbers = cited_numbers(verdict.explanation, verdict.quotations)
    review["citation"] = [_creative_work(source) for source in transcript.sources if source.number in passage_numbers]
    return review


def _creative_work(source: PassageCitation) -> dict[str, Any]:
    """Return a cited passage as a schema.org CreativeWork."""
    passage = source.passage
    titles = [title for title in (passage.report, passage.document, passage.chapter) if title]
    pages = dict.fromkeys(page for page in (passage.first_page, passage.last_page) if page is not None)
    creative_work: dict[str, Any] = {"@type": "CreativeWork", "name": ", ".join(dict.fromkeys(titles))}
    if pages:
        creative_work["pagination"] = "-".join(map(str, pages))
    address = safe_link(passage.url)
    return creative_work | ({"url": address} if address else {})


def _valid_address(value: str, name: str) -> str:
    address = safe_link(value.strip())
    if address is None:
        raise InputError(f"The {name} of a ClaimReview must be a web address that begins with https://, not {value!r}.")
    return address
