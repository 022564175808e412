"""Publication of a fact-check: who published it where and when, who reviewed it, and how to cite it."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Transcript, reader_view
from climassay.reporting import counted
from climassay.reporting.bibtex import bibtex_entry

_MAX_TITLE_LENGTH = 120
"""Maximum number of characters of the claim in a title."""


@dataclass(frozen=True, slots=True)
class PublishedReview:
    """A person's current review of a fact-check."""

    reviewer: str
    """Name shown to readers."""
    opinion: Literal["agree", "disagree", "undecided"]
    date: str
    """ISO 8601 date."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Publisher, address, date and reviews of a fact-check."""

    publisher: str
    address: str
    """Web address of its page."""
    date: str
    """ISO 8601 date of the check."""
    reviews: tuple[PublishedReview, ...] = ()

    @property
    def is_approved(self) -> bool:
        """Whether somebody agrees with the result and nobody disagrees."""
        opinions = [review.opinion for review in self.reviews]
        return "agree" in opinions and "disagree" not in opinions

    @property
    def provenance(self) -> str:
        """Sentence stating who assessed the claim, and the reviewers' opinion of the result."""
        agree, disagree = (
            sum(review.opinion == opinion for review in self.reviews) for opinion in ("agree", "disagree")
        )
        if not agree and not disagree:
            return "Assessed by a language model; not reviewed by a person."
        agreement = f"{_people(agree)} agree{'s' if agree == 1 else ''}" if agree else ""
        opposition = f"{_people(disagree)} disagree{'s' if disagree == 1 else ''}" if disagree else ""
        opinions = " and ".join(filter(None, (agreement, opposition)))
        return f"Assessed by a language model; {opinions} with the result."


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


@dataclass(frozen=True, slots=True)
class Citation:
    """Bibliographic citation of a fact-check."""

    title: str
    """Claim and result."""
    description: str
    """Meaning of the result and its provenance, in one line."""
    text: str
    """Reference in plain text."""
    bibtex: str


def cite(transcript: Transcript, scale: Scale, publication: Publication) -> Citation:
    """Return the bibliographic citation of a published fact-check.

    Raises:
        InputError: The verdict is not one of the scale's labels.
    """
    transcript = reader_view(transcript, scale)
    verdict = transcript.verdict
    has_verdict = verdict.outcome == "verdict" and verdict.label is not None
    result = str(verdict.label if has_verdict else verdict.outcome)
    meaning = f"The claim {scale.meaning(str(verdict.label))}. " if has_verdict else ""
    claim = transcript.claim.text
    short_claim = f"{claim[: _MAX_TITLE_LENGTH - 1].rstrip()}…" if len(claim) > _MAX_TITLE_LENGTH else claim
    title = f"Fact-check of “{short_claim}”: {result}"
    provenance = publication.provenance
    if transcript.demonstration:
        title = f"Demonstration, {title[:1].lower()}{title[1:]}"
        provenance = f"A demonstration by a very small language model, not to be relied on. {provenance}"
    sources = source_dates(transcript)
    year, day = publication.date[:4], day_in_words(publication.date)
    return Citation(
        title,
        " ".join(f"{meaning}{provenance} {sources}".split()),
        f"{publication.publisher} ({year}). {title}. {day}. {provenance} {publication.address}",
        bibtex_entry(
            f"factcheck-{publication.address.rpartition('/')[2]}",
            {
                "author": publication.publisher,
                "title": title,
                "year": year,
                "month": publication.date[5:7],
                "note": f"Checked on {day}. {provenance}",
            },
            {"url": publication.address},
        ),
    )


def day_in_words(iso_date: str) -> str:
    """Format an ISO 8601 date like ``6 November 2026``."""
    day = date.fromisoformat(iso_date)
    return f"{day.day} {day:%B %Y}"


def source_dates(transcript: Transcript) -> str:
    """Return a sentence with the years of the cited sources, or of all sources if none is cited.

    The result is empty if there are no sources.
    """
    sources = transcript.cited or transcript.sources
    documents = {(source.collection, source.passage.document_id): source.passage.date for source in sources}
    if not documents:
        return ""
    years = sorted(match.group() for text in documents.values() if (match := re.search(r"\d{4}", text or "")))
    n_undated = len(documents) - len(years)
    if not years:
        return f"Sources: {counted(len(documents), 'document')} without a date."
    span = years[0] if years[0] == years[-1] else f"{years[0]} to {years[-1]}"
    note = f" ({counted(n_undated, 'document')} without a date)" if n_undated else ""
    return f"Sources of {span}{note}."
