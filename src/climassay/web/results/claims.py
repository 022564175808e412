"""The fact-checks of a run, claim by claim, from their stored debates."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from climassay.factcheck import Transcript, factcheck_page, load_scale, stored_truths
from climassay.factcheck.results.page import page_values
from climassay.factcheck.results.page_words import OUTCOME
from climassay.factcheck.scales import Scale
from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.place import PlaceHere
from climassay.web.results.files import as_file
from climassay.web.results.paging import cut
from climassay.web.results.runs import PageNumber, Search, found_run
from climassay.web.results.stored_run import StoredRun
from climassay.web.results.style import block_assets

router = APIRouter(include_in_schema=False)
PAGE = 50


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """A claim in the list."""

    number: int
    text: str
    verdict: str
    """The label, or how the check ended without one."""
    published: str
    """Empty where nobody published a verdict, or it was not kept."""
    confidence: str
    rounds: int


@router.get("/results/{run}/claims")
def show_claims(
    request: Request,
    place: PlaceHere,
    _user: Reader,
    run: str,
    text: Search = "",
    verdict: Search = "",
    number: PageNumber = 1,
) -> Response:
    """The claims that were checked, with their verdicts."""
    stored = _checked(found_run(place, run))
    lines = _lines(stored)
    words = text.strip().lower()
    fitting = [line for line in lines if words in line.text.lower() and verdict in ("", line.verdict)]
    filters: dict[str, Any] = {"text": text.strip(), "verdict": verdict}
    return page(
        request,
        "results/claims.html.j2",
        run=stored.details.summary,
        part=cut(fitting, number, PAGE, f"/results/{run}/claims", filters),
        verdicts=list(dict.fromkeys(line.verdict for line in lines)),
        with_published=any(line.published for line in lines),
        **filters,
        **block_assets(),
    )


@router.get("/results/{run}/claims/{number}.html")
def send_claim(place: PlaceHere, _user: Reader, run: str, number: int) -> Response:
    """One fact-check as a self-contained page."""
    stored = _checked(found_run(place, run))
    transcript = _transcript(stored, number)
    return as_file(factcheck_page(transcript, _scale(stored, transcript)), f"{run}-claim-{number}.html")


@router.get("/results/{run}/claims/{number}")
def show_claim(request: Request, place: PlaceHere, _user: Reader, run: str, number: int) -> Response:
    """One fact-check, from verdict to passages."""
    stored = _checked(found_run(place, run))
    transcript = _transcript(stored, number)
    line = _lines(stored)[number - 1]
    return page(
        request,
        "results/claim.html.j2",
        run=stored.details.summary,
        number=number,
        last=len(stored.transcripts),
        published=line.published,
        **page_values(transcript, _scale(stored, transcript)),
    )


def _checked(stored: StoredRun) -> StoredRun:
    if "transcript" not in stored.details.results:
        raise Missing(f"The run {stored.id} kept no fact-check.")
    return stored


def _transcript(stored: StoredRun, number: int) -> Transcript:
    if not 1 <= number <= len(stored.transcripts):
        raise Missing(f"The run {stored.id} has {len(stored.transcripts)} fact-checks, none with the number {number}.")
    return stored.transcripts[number - 1]


def _scale(stored: StoredRun, transcript: Transcript) -> Scale:
    return load_scale(str(stored.details.config.get("scale", transcript.scale)))


def _lines(stored: StoredRun) -> list[ClaimLine]:
    published = stored_truths(stored.details.results.get("published", ()), stored.transcripts)
    return [
        ClaimLine(
            number,
            one.claim.text,
            one.verdict.label or OUTCOME[one.verdict.outcome],
            published.get(one.claim.id, ""),
            one.verdict.levels.confidence if one.verdict.levels else "",
            len(one.rounds),
        )
        for number, one in enumerate(stored.transcripts, start=1)
    ]
