"""Questions in the browser: asked in a form, answered by a job, shown sentence by sentence with their passages.

The job is the only record: its payload holds the question and its result the answer. A server that was killed answers
when it starts again, and the address of an answer stays valid.
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
from climassay.web.checks.store import ASK, choose_debate, job_title, require_capacity, strip_controls
from climassay.web.failures import Failure, Missing
from climassay.web.jobs import Interrupted, Job, JobReport, Stopped, interrupting
from climassay.web.library.cache import collection_cache, find_passage
from climassay.web.library.evidence import CitationLinks, nearest_sentence
from climassay.web.pages import page, redirect_to

MAX_QUESTION_LENGTH = 1_000
MAX_EARLIER_QUESTIONS = 10
"""Maximum number of earlier questions shown above one that follows them."""
N_PASSAGES = 4
"""Number of passages that an answer is written from."""
WRITTEN_EVENT = "written"
"""Event of an answer in progress: first the result without sentences, then the sentences so far."""

router = APIRouter(include_in_schema=False)


def register(app: AppState) -> None:
    """Register the job that answers a question."""
    app.jobs.register(ASK, answer_question, "questions")


class QuestionForm(BaseModel):
    """Fields of the form of a question."""

    question: str = ""
    collections: list[str] = []
    before: str = ""
    """Id of the question that this one follows; empty if it follows none."""


@router.get("/ask")
def show_form(request: Request, app: App, _user: Reader, question: Annotated[str, Query()] = "") -> Response:
    """Show the form with the question of a link filled in; without an account, a link to sign in."""
    return _page(request, app, QuestionForm(question=question[:MAX_QUESTION_LENGTH]))


@router.post("/ask")
def submit_question(request: Request, app: App, user: Asker, form: Annotated[QuestionForm, Form()]) -> Response:
    """Begin to answer a question, and show its page."""
    try:
        payload = _question_payload(app, form)
    except InputError as error:
        status = error.status if isinstance(error, Failure) else 400
        return _page(request, app, form, error=str(error), status=status)
    return redirect_to(f"/ask/{_submit(app, user, payload)}")


def begin_question(app: AppState, user: User, form: QuestionForm) -> str:
    """Submit a job that answers a question, and return its id; a waiting job of the same user and question is reused.

    Raises:
        InputError: The question is empty or too long, or a collection does not exist.
        Busy: Too many claims and questions are waiting.
    """
    return _submit(app, user, _question_payload(app, form))


def _submit(app: AppState, user: User, payload: dict[str, Any]) -> str:
    for job in app.jobs.unended((ASK,)):
        if job.by == user.name and payload.items() <= job.payload.items():
            return job.id
    require_capacity(app, user)
    title = job_title("Question", payload["question"])
    return app.jobs.submit(ASK, title, payload | {"asker": user.name}, user.name)


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
    available = collection_cache(app).with_passages()
    if not available:
        raise InputError("The library has no passages to answer from: add documents first.")
    collections = list(dict.fromkeys(form.collections)) or available
    unknown = next((name for name in collections if name not in available), None)
    if unknown is not None:
        raise InputError(f"There is no collection {unknown[:80]!r} with passages; there are {', '.join(available)}.")
    before = question_job(app, form.before).id if form.before else ""
    return {"question": question, "collections": collections, "before": before}


def answer_question(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Answer a question with the model of the first debate; stored answers are reused."""
    report.progress(0, 0, "loading the model")
    settings = choose_debate(app, "").settings
    # Loaded as for a debate without advocates, so that debates and questions share one model.
    model = app.debate(replace(settings, advocates=())).models[settings.model]
    report.progress(0, 0, "searching the library")
    question, collections = payload["question"], payload["collections"]
    started: list[GroundedAnswer] = []

    def result_of(answer: GroundedAnswer) -> dict[str, Any]:
        return {
            "page": f"/ask/{report.job}",
            "answer": answer.to_dict(),
            "collections": [_collection_of(app, collections, source.passage.id) for source in answer.sources],
            "demonstration": answer.demonstration,
        }

    def report_answer(answer: GroundedAnswer) -> None:
        with interrupting():
            if started:
                report.event(WRITTEN_EVENT, {"sentences": [asdict(sentence) for sentence in answer.sentences]})
                return
            titles = ", ".join(dict.fromkeys(source.passage.document for source in answer.sources))
            report.progress(0, 0, f"writing from {counted(len(answer.sources), 'passage')} of {titles}")
            report.event(WRITTEN_EVENT, result_of(answer))
            started.append(answer)

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
    return result_of(answer)


def _collection_of(app: AppState, names: list[str], passage: str) -> str:
    """Return the first collection that holds a passage; empty if none does any more."""
    for name in names:
        try:
            find_passage(collection_cache(app), name, passage)
        except Missing:
            continue
        return name
    return ""


@router.get("/ask/{question}")
def show_question(request: Request, app: App, user: Reader, question: str) -> Response:
    """Show a question with its answer or progress, below the questions that it follows."""
    job = question_job(app, question)
    return _page(
        request,
        app,
        QuestionForm(collections=job.payload["collections"], before=job.id),
        job=job,
        may_stop=may_stop(job, user),
    )


def question_job(app: AppState, job: str) -> Job:
    """Return the job of a question.

    Raises:
        Missing: No question has that id.
    """
    result = app.jobs.many([job])
    if not result or result[0].kind != ASK:
        raise Missing(f"There is no question {job!r}.")
    return result[0]


def _page(
    request: Request, app: AppState, form: QuestionForm, *, job: Job | None = None, status: int = 200, **values: Any
) -> Response:
    """Render the page of a question, or the empty form."""
    earlier: list[Job] = []
    before = job.payload["before"] if job is not None else form.before
    while before and len(earlier) < MAX_EARLIER_QUESTIONS:
        jobs = app.jobs.many([before])
        if not jobs or jobs[0].kind != ASK:
            break
        earlier.append(jobs[0])
        before = jobs[0].payload["before"]
    content: dict[str, Any] = {"error": "", "may_stop": False, "numbers": (), "answer": None, "sources": {}}
    content |= {"notes": (), "copied": "", "sentences": (), "cited": (), "last": 0, "demonstration": False}
    content["turn"] = app.jobs.turn(job) if job else None
    if job is not None:
        result = job.result
        for event in () if job.ended else app.jobs.events(job.id):
            # Events of an unfinished answer have the form of its result.
            content["last"] = event.number
            if "answer" in event.body:
                result = event.body
            elif result is not None:
                result["answer"]["sentences"] = event.body["sentences"]
        if result is not None:
            content |= _answer_values(app, result)
    return page(
        request,
        "ask.html.j2",
        status=status,
        form=form,
        job=job,
        earlier=earlier[::-1],
        collections=collection_cache(app).with_passages(),
        longest=MAX_QUESTION_LENGTH,
        link=safe_link,
        host=lambda url: urlsplit(url).hostname,
        source_details=source_details,
        **content | values,
    )


def _answer_values(app: AppState, result: dict[str, Any]) -> dict[str, Any]:
    """Return the values of an answer for the template."""
    answer = result["answer"]
    sentences = [AnswerSentence(**sentence) for sentence in answer["sentences"]]
    links = CitationLinks(collection_cache(app))
    sources = {
        source["number"]: links.current(
            PassageCitation(source["number"], Passage(**source["passage"]), collection, source["cosine"], ())
        )
        for source, collection in zip(answer["sources"], result["collections"], strict=True)
    }
    # An answer quotes nothing word for word, so the sentence of the passage that is nearest to its own is marked.
    nearest = {
        (index, number): nearest_sentence(sources[number].passage.text, sentence.body)
        for index, sentence in enumerate(sentences)
        for number in sentence.citations
        if number in sources
    }

    def quotations(number: int, sentence: int | None = None) -> list[str]:
        return [
            text for (index, cited), text in nearest.items() if cited == number and text and sentence in (None, index)
        ]

    cited_numbers = sorted({number for sentence in sentences for number in sentence.citations})
    notes = [DEMONSTRATION] if result["demonstration"] else []
    if n_unsupported := sum(sentence.in_house for sentence in sentences):
        notes.append(f"Sentences that no passage supports, marked below: {n_unsupported} of {len(sentences)}.")
    if n_attributed := sum(sentence.origin == "attributed" for sentence in sentences):
        notes.append(f"Sentences whose passages were found by comparison, not named by the model: {n_attributed}.")
    unchecked = note_unchecked_references(name for sentence in sentences for name in sentence.unchecked_references)
    notes += filter(
        None, (note_truncation(answer["truncated"]), note_removed_citations(answer["removed_citations"]), unchecked)
    )
    references = []
    for number in cited_numbers:
        if (source := sources.get(number)) is not None:
            path = f"/library/{quote(source.collection)}/passages/{quote(source.passage.id)}"
            address = f" {app.settings.root}{path}" if source.collection else ""
            references.append(f"[{number}] {source.citation}.{address}")
    copied = [answer["question"], answer["text"], "\n".join(references), f"Written by {answer['model']}."]
    copied += [DEMONSTRATION] if result["demonstration"] else []
    return {
        "answer": answer,
        "demonstration": result["demonstration"],
        "sentences": sentences,
        "sources": sources,
        "cited": cited_numbers,
        "passage_pieces": lambda source: mark_quotations(source.passage.text, quotations(source.number)),
        "evidence": lambda source, sentence=None: links.evidence(
            source.collection, source.passage, quotations(source.number, sentence)
        ),
        "numbers": set(sources),
        "notes": notes,
        "copied": "\n\n".join(filter(None, copied)),
    }
