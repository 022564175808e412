"""Operations that ask models: questions, claims and texts, each with its result."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue
from pydantic_core import to_jsonable_python

from climassay.factcheck.check_records import (
    CheckSummary,
    Visibility,
)
from climassay.factcheck.configuration import settings_tables
from climassay.factcheck.transcript import as_data
from climassay.web.access import Asker, CheckModerator, Reader
from climassay.web.accounts import User
from climassay.web.api.base import (
    After,
    Data,
    Limit,
    Moment,
    Name,
    Page,
    ShortText,
    Text,
    api_router,
    error_responses,
    page_of,
    path_name,
)
from climassay.web.app_state import App
from climassay.web.ask import QuestionForm, begin_question, question_job
from climassay.web.checks.moderation import change_visibility, remove_check
from climassay.web.checks.pages import CheckFilters, check_text
from climassay.web.checks.store import ClaimForm, begin_check, choose_debate, find_check, get_check_store, visible_to
from climassay.web.failures import Missing
from climassay.web.jobs import Job
from climassay.web.jobs import State as JobState
from climassay.web.library.cache import collection_cache
from climassay.web.library.evidence import CitationLinks

router = api_router("", "checks")
CheckId = Annotated[str, path_name("Id of the check.", "c9f3a1b2c4d5")]
QuestionId = Annotated[str, path_name("Id of the question.", "j4f0c2d1e9a8b")]


class QuestionToAsk(Data):
    """A question to be answered from collections."""

    question: Text = Field(examples=["Why do pure droplets not freeze at -10 °C?"])
    """The question, of at most 1,000 characters."""
    collections: list[Name] = Field(default=[], max_length=100)
    """Collections to answer from; all if empty."""


class QuestionData(Data):
    """A question and its answer."""

    id: str
    question: str
    state: JobState
    error: str | None
    """Why it was not answered, if its state is `failed`."""
    answer: dict[str, JsonValue] | None
    """The answer as `climassay ask --json` writes it: text, sentences, sources; null until it is done."""
    demonstration: bool
    """Whether a very small model wrote the answer, so that it is not to be relied on."""
    page: str
    """Path of its page."""

    @classmethod
    def of(cls, job: Job) -> "QuestionData":
        """Return the question of a job, with the answer if the job has ended."""
        return cls(
            id=job.id,
            question=job.payload["question"],
            state=job.state,
            error=job.error,
            answer=None if job.result is None else job.result["answer"],
            demonstration=job.result is not None and job.result["demonstration"],
            page=f"/ask/{job.id}",
        )


@router.post("/questions", status_code=202, response_model=QuestionData, responses=error_responses(429, 503))
def ask_question(app: App, user: Asker, question: QuestionToAsk) -> Any:
    """Begin to answer a question.

    A job answers it later: read the answer from the question once its state is `done`. If the same user's same question
    is still waiting, that one is returned.
    """
    form = QuestionForm(question=question.question, collections=question.collections)
    return QuestionData.of(question_job(app, begin_question(app, user, form)))


@router.get("/questions/{question}", response_model=QuestionData)
def get_question(app: App, user: Reader, question: QuestionId) -> Any:
    """Get the state of a question, and its answer."""
    return QuestionData.of(question_job(app, question))


class ClaimToCheck(Data):
    """A claim to be debated."""

    claim: Text = Field(min_length=1, examples=["Sea level has not risen since 1900."])
    """The claim: one sentence or a few, at most 2,000 characters."""
    source: ShortText = Field(default="", examples=["A columnist"])
    """Person or organisation that made the claim."""
    appearance: ShortText = Field(default="", examples=["https://example.org/column"])
    """Web address or name of the publication in which the claim appeared."""
    date: ShortText = Field(default="", examples=["2024-05-31"])
    """Date of the claim: an ISO 8601 date, or the year."""
    setup: ShortText = ""
    """Name of the debate's configuration; the first one if empty."""
    force: bool = False
    """Whether to debate the claim even if it appears not to be checkable or not to be about climate."""


class CheckData(Data):
    """A check of a claim."""

    id: str
    claim: str
    source: str
    appearance: str
    date: str
    by: str | None
    """Name of the user who asked for it; null for readers without an account."""
    asked_at: Moment
    ended_at: Moment | None
    state: Literal["waiting", "done", "failed", "stopped"]
    error: str | None
    """Why it failed."""
    setup: str
    """Name of the debate's configuration."""
    outcome: str | None
    """`verdict`, or why there is none; null until it has ended."""
    verdict: str | None
    """Label of the scale; null if there is no verdict."""
    demonstration: bool
    """Whether a very small model took part, so that the verdict is not to be relied on."""
    visibility: Visibility
    """Readers: everybody with an account, also visitors without one (`published`), or adjudicators only (`hidden`)."""
    topic: str | None
    """Code of the contrarian claim that it makes (CARDS), if any."""
    seconds: float | None
    """Duration of the debate."""
    run: str | None
    """Id of the run in the records, once it has ended."""
    page: str
    """Path of its page."""

    @classmethod
    def of(cls, check: CheckSummary, user: User | None) -> "CheckData":
        """Return a check; readers without an account do not see who asked for it."""
        claim = check.claim
        derived = {
            "claim": claim.text,
            "source": claim.source,
            "appearance": claim.appearance,
            "date": claim.date,
            "by": None if user is None else check.by,
            "verdict": check.label,
            "page": f"/checks/{check.id}",
        }
        return cls.model_validate(
            {name: getattr(check, name) for name in cls.model_fields if name not in derived} | derived
        )


class TranscriptData(Data):
    """A check with its whole debate."""

    check: CheckData
    settings: dict[str, JsonValue]
    """Participants and rules, as in the file that configures a debate."""
    transcript: dict[str, JsonValue]
    """The debate as `climassay check --json` writes it: claim, advocates, rounds, verdict, sources, usage."""


@router.get("/checks", response_model=Page[CheckData])
def list_checks(app: App, user: Reader, filters: CheckFilters, limit: Limit = 50, after: After = None) -> Any:
    """List the checks that match the filters, newest first."""
    checks = get_check_store(app).newest(filters, limit=limit + 1, after=after, visibilities=visible_to(user))
    return page_of(checks, limit, lambda check: CheckData.of(check, user))


@router.post("/checks", status_code=202, response_model=CheckData, responses=error_responses(429, 503))
def check_claim(app: App, user: Asker, claim: ClaimToCheck) -> Any:
    """Begin to check a claim.

    A job debates it later: read the verdict from the check once its state is no longer `waiting`. If the same user's
    same claim is still waiting, that check is returned.
    """
    form = ClaimForm(**claim.model_dump())
    check = begin_check(app, user, form.cleaned(), choose_debate(app, form.setup), force=form.force)
    return CheckData.of(get_check_store(app).get(check).about, user)


@router.get("/checks/{check}", response_model=CheckData)
def get_check(app: App, user: Reader, check: CheckId) -> Any:
    """Get the state and the verdict of a check."""
    return CheckData.of(find_check(app, check, user)[0].about, user)


@router.get("/checks/{check}/transcript", response_model=TranscriptData)
def get_transcript(app: App, user: Reader, check: CheckId) -> Any:
    """Get the whole debate; 404 until it has ended."""
    stored, _ = find_check(app, check, user)
    if stored.transcript is None:
        raise Missing(f"The check {check} has no transcript: its state is {stored.about.state!r}.")
    return TranscriptData(
        check=CheckData.of(stored.about, user),
        settings=settings_tables(stored.settings),
        transcript=as_data(CitationLinks(collection_cache(app)).transcript(stored.transcript)),
    )


class CheckReaders(Data):
    """Who may read a check."""

    visibility: Visibility
    """Everybody with an account (`unpublished`), also visitors without one (`published`), or adjudicators only
    (`hidden`)."""


@router.patch("/checks/{check}", response_model=CheckData)
def moderate_check(app: App, user: CheckModerator, check: CheckId, readers: CheckReaders) -> Any:
    """Publish or hide a check that has ended, or take that back."""
    change_visibility(app, user, check, readers.visibility)
    return CheckData.of(get_check_store(app).get(check).about, user)


@router.delete("/checks/{check}", status_code=204)
def delete_check(app: App, user: CheckModerator, check: CheckId) -> None:
    """Delete a check that has ended, with its debate and its reviews."""
    remove_check(app, user, check)


class TextToCheck(Data):
    """A text to be compared with collections."""

    text: Text = Field(min_length=1, examples=["Sea level has risen by 0.20 m since 1901."])
    collections: list[Name] = Field(min_length=1, max_length=100, examples=[["primer"]])


@router.post("/check-text", response_model=dict[str, JsonValue])
def check_sentences_of_text(app: App, user: Asker, text: TextToCheck) -> Any:
    """Compare each sentence of a text with collections.

    The answer has the fields that `climassay check-text --json` writes: counts by status, and every sentence with its
    status, reason, evidence and references.
    """
    return to_jsonable_python(check_text(app, text.text, text.collections).to_dict())
