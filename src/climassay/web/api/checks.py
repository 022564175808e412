"""Operations for questions, claims and texts that models answer or check, and their results."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue
from pydantic_core import to_jsonable_python

from climassay.factcheck.check_records import CheckSummary, Visibility
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
    make_page,
    path_name,
)
from climassay.web.app_state import App
from climassay.web.ask import QuestionForm, require_question_job, submit_question_job
from climassay.web.checks.moderation import change_visibility, remove_check
from climassay.web.checks.pages import CheckFilters, check_text
from climassay.web.checks.store import (
    ClaimForm,
    begin_check,
    choose_debate,
    find_check,
    get_check_store,
    readable_visibilities,
)
from climassay.web.failures import NotFound
from climassay.web.jobs import Job
from climassay.web.jobs import State as JobState
from climassay.web.library.cache import collection_cache
from climassay.web.library.evidence import CitationLinks
from climassay.web.text_processes import HasLeft

router = api_router("", "checks")
CheckId = Annotated[str, path_name("Id of the check.", "c9f3a1b2c4d5")]
QuestionId = Annotated[str, path_name("Id of the question.", "j4f0c2d1e9a8b")]


class QuestionToAsk(Data):
    """Question to be answered from collections."""

    question: Text = Field(examples=["Why do pure droplets not freeze at -10 °C?"])
    """The question, of at most 1,000 characters."""
    collections: list[Name] = Field(default=[], max_length=100)
    """Names of the collections from which the question is answered; all collections if empty."""


class QuestionData(Data):
    """Question and its answer."""

    id: str
    question: str
    state: JobState
    error: str | None
    """Reason why the question was not answered, if the state is `failed`; else null."""
    answer: dict[str, JsonValue] | None
    """Answer in the format of `climassay ask --json` (text, sentences, sources); null until the state is `done`."""
    demonstration: bool
    """Whether a very small model wrote the answer, which is then unreliable."""
    page: str
    """Path of the question's page."""

    @classmethod
    def of(cls, job: Job) -> "QuestionData":
        """Return the question of a job, with the answer if the job is done."""
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
    """Submit a question, which is answered in the background.

    Get the question again until its state is `done`; it then contains the answer. If the user's same question is still
    unfinished, that question is returned instead of a new one.
    """
    form = QuestionForm(question=question.question, collections=question.collections)
    return QuestionData.of(require_question_job(app, submit_question_job(app, user, form)))


@router.get("/questions/{question}", response_model=QuestionData)
def get_question(app: App, user: Reader, question: QuestionId) -> Any:
    """Get a question with its state and, once it is done, its answer."""
    return QuestionData.of(require_question_job(app, question))


class ClaimToCheck(Data):
    """Claim to be debated."""

    claim: Text = Field(min_length=1, examples=["Sea level has not risen since 1900."])
    """Text of the claim: one sentence or a few, at most 2,000 characters."""
    source: ShortText = Field(default="", examples=["A columnist"])
    """Person or organisation that made the claim."""
    appearance: ShortText = Field(default="", examples=["https://example.org/column"])
    """Web address or name of the publication in which the claim appeared."""
    date: ShortText = Field(default="", examples=["2024-05-31"])
    """Date of the claim: an ISO 8601 date, or the year."""
    setup: ShortText = ""
    """Name of the debate configuration; the server's default if empty."""
    force: bool = False
    """Whether to debate the claim even if it appears not to be checkable or not to be about climate."""


class CheckData(Data):
    """Check of a claim."""

    id: str
    claim: str
    source: str
    appearance: str
    date: str
    by: str | None
    """Name of the user who asked for the check; null for readers without an account."""
    asked_at: Moment
    ended_at: Moment | None
    state: Literal["waiting", "done", "failed", "stopped"]
    error: str | None
    """Reason why the check failed; null if it did not."""
    setup: str
    """Name of the debate configuration."""
    outcome: str | None
    """`verdict`, or the reason why there is no verdict; null until the debate has ended."""
    verdict: str | None
    """Verdict, one of the labels of the scale; null if there is none."""
    demonstration: bool
    """Whether a very small model took part, so that the verdict is unreliable."""
    visibility: Visibility
    """Readers: users with an account (`unpublished`), all visitors (`published`), or adjudicators only (`hidden`)."""
    topic: str | None
    """Code of the contrarian claim (CARDS taxonomy) that the checked claim makes; null if there is none."""
    seconds: float | None
    """Duration of the debate in seconds; null until it has ended."""
    run: str | None
    """Id of the run in the records; null until the debate has ended."""
    page: str
    """Path of the check's page."""

    @classmethod
    def of(cls, check: CheckSummary, user: User | None) -> "CheckData":
        """Return the data of a check; without the asker's name if ``user`` is None (no account)."""
        claim = check.claim
        other_fields = {
            "claim": claim.text,
            "source": claim.source,
            "appearance": claim.appearance,
            "date": claim.date,
            "by": None if user is None else check.by,
            "verdict": check.label,
            "page": f"/checks/{check.id}",
        }
        return cls.model_validate(
            {name: getattr(check, name) for name in cls.model_fields if name not in other_fields} | other_fields
        )


class TranscriptData(Data):
    """Check with its complete debate."""

    check: CheckData
    settings: dict[str, JsonValue]
    """Participants and rules, in the format of a debate's configuration file."""
    transcript: dict[str, JsonValue]
    """Debate in the format of `climassay check --json`: claim, advocates, rounds, verdict, sources, usage."""


@router.get("/checks", response_model=Page[CheckData])
def list_checks(app: App, user: Reader, filters: CheckFilters, limit: Limit = 50, after: After = None) -> Any:
    """List the checks that match the filters, newest first."""
    checks = get_check_store(app).newest(
        filters, limit=limit + 1, after=after, visibilities=readable_visibilities(user)
    )
    return make_page(checks, limit, lambda check: CheckData.of(check, user))


@router.post("/checks", status_code=202, response_model=CheckData, responses=error_responses(429, 503))
def check_claim(app: App, user: Asker, claim: ClaimToCheck) -> Any:
    """Submit a claim, which is checked in the background.

    Get the check again until its state is no longer `waiting`; it then contains the verdict. If the user's check of the
    same claim is still waiting, that check is returned instead of a new one.
    """
    form = ClaimForm(**claim.model_dump())
    check = begin_check(app, user, form.to_claim(), choose_debate(app, form.setup), force=form.force)
    return CheckData.of(get_check_store(app).get(check).about, user)


@router.get("/checks/{check}", response_model=CheckData)
def get_check(app: App, user: Reader, check: CheckId) -> Any:
    """Get a check with its state and, once it has ended, its verdict."""
    return CheckData.of(find_check(app, check, user)[0].about, user)


@router.get("/checks/{check}/transcript", response_model=TranscriptData)
def get_transcript(app: App, user: Reader, check: CheckId) -> Any:
    """Get the complete debate of a check; the status is 404 until it has ended."""
    stored_check, _ = find_check(app, check, user)
    if stored_check.transcript is None:
        raise NotFound(f"The check {check} has no transcript: its state is {stored_check.about.state!r}.")
    return TranscriptData(
        check=CheckData.of(stored_check.about, user),
        settings=settings_tables(stored_check.settings),
        transcript=as_data(CitationLinks(collection_cache(app)).transcript(stored_check.transcript)),
    )


class CheckReaders(Data):
    """Readers of a check."""

    visibility: Visibility
    """Everybody with an account (`unpublished`), also visitors without one (`published`), or adjudicators only
    (`hidden`)."""


@router.patch("/checks/{check}", response_model=CheckData)
def moderate_check(app: App, user: CheckModerator, check: CheckId, readers: CheckReaders) -> Any:
    """Change who may read a check that has ended: publish it, unpublish it, or hide it."""
    change_visibility(app, user, check, readers.visibility)
    return CheckData.of(get_check_store(app).get(check).about, user)


@router.delete("/checks/{check}", status_code=204)
def delete_check(app: App, user: CheckModerator, check: CheckId) -> None:
    """Delete a check that has ended, with its debate and its reviews."""
    remove_check(app, user, check)


class TextToCheck(Data):
    """Text to be compared with collections."""

    text: Text = Field(min_length=1, examples=["Sea level has risen by 0.20 m since 1901."])
    collections: list[Name] = Field(min_length=1, max_length=100, examples=[["primer"]])


@router.post("/check-text", response_model=dict[str, JsonValue], responses=error_responses(429))
def check_sentences_of_text(app: App, user: Asker, has_left: HasLeft, text: TextToCheck) -> Any:
    """Compare each sentence of a text with collections.

    The response has the format of `climassay check-text --json`: counts by status, and each sentence with its status,
    reason, evidence and references.
    """
    return to_jsonable_python(check_text(app, user, text.text, text.collections, has_left).to_dict())
