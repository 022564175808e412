"""Questions in the browser: submitted in a form, answered by a job, and shown with the passages that sentences cite.

Question and answer are stored only in the job, as its payload and result. If the server is killed, it answers open
questions when it starts again, and addresses of answers stay valid.
"""

from dataclasses import asdict, replace
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Form, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from climassay.api import documents
from climassay.corpus.documents import Passage
from climassay.errors import InputError
from climassay.factcheck.results.page import safe_link, source_details
from climassay.factcheck.session_debates import load_resources
from climassay.factcheck.transcript import PassageCitation
from climassay.grounding.answer import (
    GroundedAnswer,
    note_removed_citations,
    note_truncation,
    note_unchecked_references,
)
from climassay.grounding.citations import AnswerSentence
from climassay.grounding.quotations import mark_quotations
from climassay.prompts import DEMONSTRATION
from climassay.reporting import counted
from climassay.web.access import Asker, Reader, may_stop
from climassay.web.accounts import User
from climassay.web.app_state import App, AppState
from climassay.web.checks.store import ASK_KIND, choose_debate, job_title, require_capacity, strip_controls
from climassay.web.failures import Failure, NotFound
from climassay.web.jobs import Interrupted, Job, JobReport, Stopped, stop_as_interruption
from climassay.web.library.cache import collection_cache, find_passage
from climassay.web.library.evidence import CitationLinks, nearest_sentence
from climassay.web.pages import page, redirect_to

MAX_QUESTION_LENGTH = 1_000
MAX_EARLIER_QUESTIONS = 10
"""Maximum number of earlier questions of the conversation that are shown above a question."""
N_PASSAGES = 4
"""Number of passages in the prompt for an answer."""
PREVIEW_EVENT = "written"
"""Kind of events with an unfinished answer. The first event has all keys of the result; later events have only
``sentences``."""

router = APIRouter(include_in_schema=False)


def register(app: AppState) -> None:
    """Register the job that answers a question."""
    app.jobs.register(ASK_KIND, answer_question, "questions")


class QuestionForm(BaseModel):
    """Fields of the form with which a question is submitted."""

    question: str = ""
    collections: list[str] = []
    before: str = ""
    """Id of the previous question of the conversation; empty if there is none."""


@router.get("/ask")
def show_form(request: Request, app: App, _user: Reader, question: Annotated[str, Query()] = "") -> Response:
    """Show the form, filled in with the question in the address; visitors without an account get a link to sign in."""
    return _question_page(request, app, QuestionForm(question=question[:MAX_QUESTION_LENGTH]))


@router.post("/ask")
def submit_question(request: Request, app: App, user: Asker, form: Annotated[QuestionForm, Form()]) -> Response:
    """Submit a job that answers a question, and redirect to the question's page."""
    try:
        payload = _question_payload(app, form)
    except InputError as error:
        status = error.status if isinstance(error, Failure) else 400
        return _question_page(request, app, form, error=str(error), status=status)
    return redirect_to(f"/ask/{_submit_payload(app, user, payload)}")


def submit_question_job(app: AppState, user: User, form: QuestionForm) -> str:
    """Submit a job that answers a question, and return its id.

    If the user has an unfinished job for the same question, its id is returned.

    Raises:
        InputError: The question is empty or too long, a collection does not exist, or there are no passages.
        TooManyWaiting: Too many claims and questions are waiting.
    """
    return _submit_payload(app, user, _question_payload(app, form))


def _submit_payload(app: AppState, user: User, payload: dict[str, Any]) -> str:
    for job in app.jobs.list_unfinished((ASK_KIND,)):
        if job.by == user.name and payload.items() <= job.payload.items():
            return job.id
    require_capacity(app, user)
    title = job_title("Question", payload["question"])
    return app.jobs.submit(ASK_KIND, title, payload | {"asker": user.name}, user.name)


def _question_payload(app: AppState, form: QuestionForm) -> dict[str, Any]:
    """Return the payload of a job that answers a question.

    Raises:
        InputError: The question is empty or too long, a collection does not exist, or there are no passages.
    """
    question = " ".join(strip_controls(form.question).split())
    if not question:
        raise InputError("The question is empty.")
    if len(question) > MAX_QUESTION_LENGTH:
        raise InputError(
            f"The question has {len(question):,} characters, and the limit is {MAX_QUESTION_LENGTH:,}: shorten it."
        )
    collection_names = collection_cache(app).names_with_passages()
    if not collection_names:
        raise InputError("The library has no passages to answer from: add documents first.")
    collections = list(dict.fromkeys(form.collections)) or collection_names
    unknown_name = next((name for name in collections if name not in collection_names), None)
    if unknown_name is not None:
        raise InputError(
            f"There is no collection {unknown_name[:80]!r} with passages; there are {', '.join(collection_names)}."
        )
    earlier_id = require_question_job(app, form.before).id if form.before else ""
    return {"question": question, "collections": collections, "before": earlier_id}


def answer_question(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Run a job: answer a question from collections with the model of the default debate configuration.

    Args:
        app: State of the server.
        payload: Payload of the job from :func:`_question_payload`.
        report: Report of the job's progress; unfinished answers are reported as events.

    Returns:
        Result of the job: path of the page, the answer, and the collection of each source.
    """
    report.progress(0, 0, "loading the model")
    settings = choose_debate(app, "").settings
    # Loaded as for a debate without advocates, so that debates and questions share one model.
    model = load_resources(app, replace(settings, advocates=())).models[settings.model]
    report.progress(0, 0, "searching the library")
    question, collections = payload["question"], payload["collections"]
    previews: list[GroundedAnswer] = []

    def make_result(answer: GroundedAnswer) -> dict[str, Any]:
        return {
            "page": f"/ask/{report.job}",
            "answer": answer.to_dict(),
            "collections": [_find_collection(app, collections, source.passage.id) for source in answer.sources],
            "demonstration": answer.demonstration,
        }

    def report_answer(answer: GroundedAnswer) -> None:
        with stop_as_interruption():
            if previews:
                report.event(PREVIEW_EVENT, {"sentences": [asdict(sentence) for sentence in answer.sentences]})
                return
            titles = ", ".join(dict.fromkeys(source.passage.document for source in answer.sources))
            report.progress(0, 0, f"writing from {counted(len(answer.sources), 'passage')} of {titles}")
            report.event(PREVIEW_EVENT, make_result(answer))
            previews.append(answer)

    try:
        answer = documents.ask(
            question,
            collections,
            model=model,
            workspace=app,
            passages=N_PASSAGES,
            profile=settings.profile.name,
            on_progress=report_answer,
        )
    except Interrupted:
        raise Stopped from None
    return make_result(answer)


def _find_collection(app: AppState, names: list[str], passage: str) -> str:
    """Return the name of the first collection that contains a passage; empty if the passage was removed."""
    for name in names:
        try:
            find_passage(collection_cache(app), name, passage)
        except NotFound:
            continue
        return name
    return ""


@router.get("/ask/{question}")
def show_question(request: Request, app: App, user: Reader, question: str) -> Response:
    """Show a question with its answer or progress, below the previous questions of the conversation."""
    job = require_question_job(app, question)
    return _question_page(
        request,
        app,
        QuestionForm(collections=job.payload["collections"], before=job.id),
        job=job,
        may_stop=may_stop(job, user),
    )


def require_question_job(app: AppState, job: str) -> Job:
    """Return the job that answers a question.

    Raises:
        NotFound: There is no question with that id.
    """
    jobs = app.jobs.get_many([job])
    if not jobs or jobs[0].kind != ASK_KIND:
        raise NotFound(f"There is no question {job!r}.")
    return jobs[0]


def _question_page(
    request: Request, app: AppState, form: QuestionForm, *, job: Job | None = None, status: int = 200, **values: Any
) -> Response:
    """Render the page of a question; without a job, the page contains only the form."""
    earlier_jobs: list[Job] = []
    earlier_id = job.payload["before"] if job is not None else form.before
    while earlier_id and len(earlier_jobs) < MAX_EARLIER_QUESTIONS:
        jobs = app.jobs.get_many([earlier_id])
        if not jobs or jobs[0].kind != ASK_KIND:
            break
        earlier_jobs.append(jobs[0])
        earlier_id = jobs[0].payload["before"]
    template_values: dict[str, Any] = {"error": "", "may_stop": False, "numbers": (), "answer": None, "sources": {}}
    template_values |= {"notes": (), "copied": "", "sentences": (), "cited": (), "last": 0, "demonstration": False}
    template_values["queue_position"] = app.jobs.find_queue_position(job) if job else None
    if job is not None:
        result = job.result
        for event in () if job.has_ended else app.jobs.events(job.id):
            template_values["last"] = event.number
            if "answer" in event.body:
                result = event.body
            elif result is not None:
                result["answer"]["sentences"] = event.body["sentences"]
        if result is not None:
            template_values |= _answer_values(app, result)
    return page(
        request,
        "ask.html.j2",
        status=status,
        form=form,
        job=job,
        earlier=earlier_jobs[::-1],
        collections=collection_cache(app).names_with_passages(),
        longest=MAX_QUESTION_LENGTH,
        link=safe_link,
        host=lambda url: urlsplit(url).hostname,
        source_details=source_details,
        **template_values | values,
    )


def _answer_values(app: AppState, result: dict[str, Any]) -> dict[str, Any]:
    answer = result["answer"]
    sentences = [AnswerSentence(**sentence) for sentence in answer["sentences"]]
    links = CitationLinks(collection_cache(app))
    sources = {
        source["number"]: links.current(
            PassageCitation(source["number"], Passage(**source["passage"]), collection, source["cosine"], ())
        )
        for source, collection in zip(answer["sources"], result["collections"], strict=True)
    }
    # Answers contain no verbatim quotations, so in each cited passage the most similar sentence is marked.
    nearest_sentences = {
        (index, number): nearest_sentence(sources[number].passage.text, sentence.body)
        for index, sentence in enumerate(sentences)
        for number in sentence.citations
        if number in sources
    }

    def quotations(number: int, sentence: int | None = None) -> list[str]:
        return [
            text
            for (index, cited_number), text in nearest_sentences.items()
            if cited_number == number and text and sentence in (None, index)
        ]

    citation_numbers = sorted({number for sentence in sentences for number in sentence.citations})
    notes = [DEMONSTRATION] if result["demonstration"] else []
    if n_unsupported := sum(sentence.in_house for sentence in sentences):
        notes.append(f"Sentences that no passage supports, marked below: {n_unsupported} of {len(sentences)}.")
    if n_attributed := sum(sentence.origin == "attributed" for sentence in sentences):
        notes.append(f"Sentences whose passages were found by comparison, not named by the model: {n_attributed}.")
    reference_note = note_unchecked_references(name for sentence in sentences for name in sentence.unchecked_references)
    notes += filter(
        None,
        (note_truncation(answer["truncated"]), note_removed_citations(answer["removed_citations"]), reference_note),
    )
    references = []
    for number in citation_numbers:
        if (source := sources.get(number)) is not None:
            path = f"/library/{quote(source.collection)}/passages/{quote(source.passage.id)}"
            address = f" {app.settings.root}{path}" if source.collection else ""
            references.append(f"[{number}] {source.citation}.{address}")
    copied_parts = [answer["question"], answer["text"], "\n".join(references), f"Written by {answer['model']}."]
    copied_parts += [DEMONSTRATION] if result["demonstration"] else []
    return {
        "answer": answer,
        "demonstration": result["demonstration"],
        "sentences": sentences,
        "sources": sources,
        "cited": citation_numbers,
        "passage_pieces": lambda source: mark_quotations(source.passage.text, quotations(source.number)),
        "evidence": lambda source, sentence=None: links.evidence(
            source.collection, source.passage, quotations(source.number, sentence)
        ),
        "numbers": set(sources),
        "notes": notes,
        "copied": "\n\n".join(filter(None, copied_parts)),
    }
