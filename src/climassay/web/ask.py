"""Questions in the browser: asked in a form, answered by a job, shown sentence by sentence with what they rest on.

The job is the record: its payload holds the question and its result the answer, so that a server that was killed
answers when it starts again, and the address of an answer stays.
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
from climassay.factcheck.results.page import DEMONSTRATION, safe_link, source_details
from climassay.factcheck.transcript import PassageCitation
from climassay.grounding.answer import GroundedAnswer, removed_note, truncated_note, unchecked_note
from climassay.grounding.citations import AnswerSentence, mark_quotations
from climassay.prompts import profile_of
from climassay.reporting import counted
from climassay.web.access import Annotator, Reader, may_stop
from climassay.web.accounts import User
from climassay.web.app_state import App, AppState
from climassay.web.checks.store import ASK, choose_debate, job_title, require_capacity, strip_controls
from climassay.web.failures import Failure, Missing
from climassay.web.jobs import Interrupted, Job, JobReport, Stopped, interrupting
from climassay.web.library.cache import found_passage, library_of
from climassay.web.library.evidence import CitationLinks, nearest_sentence
from climassay.web.pages import back_to, page

LONGEST_QUESTION = 1_000
MOST_EARLIER = 10
"""Earlier questions that are shown above one that follows them."""
PASSAGES = 4
"""Passages that an answer is written from."""
WRITTEN = "written"
"""What a job tells while it writes: first its result as it will be, without sentences, then the sentences so far."""

router = APIRouter(include_in_schema=False)


def register(app: AppState) -> None:
    """Say how a question is answered."""
    app.jobs.register(ASK, answer_it, "models")


class QuestionForm(BaseModel):
    """The fields of the form as they were sent."""

    question: str = ""
    collections: list[str] = []
    before: str = ""
    """Id of the question that this one follows; empty where it follows none."""


@router.get("/ask")
def show_form(request: Request, app: App, _user: Reader, question: Annotated[str, Query()] = "") -> Response:
    """Show the form with the question of a link filled in; without an account, a link to sign in."""
    return _page(request, app, QuestionForm(question=question[:LONGEST_QUESTION]))


@router.post("/ask")
def submit_question(request: Request, app: App, user: Annotator, asked: Annotated[QuestionForm, Form()]) -> Response:
    """Begin to answer a question, and show its page."""
    try:
        payload = _cleaned(app, asked)
    except InputError as error:
        status = error.status if isinstance(error, Failure) else 400
        return _page(request, app, asked, error=str(error), status=status)
    return back_to(f"/ask/{_submit(app, user, payload)}")


def begin_question(app: AppState, user: User, form: QuestionForm) -> str:
    """Submit a job that answers a question, and return its id; a waiting job of the same user and question is reused.

    Raises:
        InputError: The question is empty or too long, or a collection does not exist.
        Busy: Too many claims and questions are waiting.
    """
    return _submit(app, user, _cleaned(app, form))


def _submit(app: AppState, user: User, payload: dict[str, Any]) -> str:
    for job in app.jobs.unended((ASK,)):
        if job.by == user.name and payload.items() <= job.payload.items():
            return job.id
    require_capacity(app, user)
    title = job_title("Question", payload["question"])
    return app.jobs.submit(ASK, title, payload | {"asker": user.name}, user.name)


def _cleaned(app: AppState, asked: QuestionForm) -> dict[str, Any]:
    """What is asked, as a job takes it.

    Raises:
        InputError: The question is empty or too long, or there is no such collection, or none at all.
    """
    question = " ".join(strip_controls(asked.question).split())
    if not question:
        raise InputError("The question is empty.")
    if len(question) > LONGEST_QUESTION:
        raise InputError(
            f"The question has {len(question):,} characters, and the limit is {LONGEST_QUESTION:,}: shorten it."
        )
    known = library_of(app).with_passages()
    if not known:
        raise InputError("The library has no passages to answer from: add documents first.")
    wanted = list(dict.fromkeys(asked.collections)) or known
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise InputError(f"There is no collection {unknown[:80]!r} with passages; there are {', '.join(known)}.")
    before = question_job(app, asked.before).id if asked.before else ""
    return {"question": question, "collections": wanted, "before": before}


def answer_it(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Answer a question that is queued, by the model of checks; what the records have is not asked again."""
    report.progress(0, 0, "loading the model")
    settings = choose_debate(app, "").settings
    # Loaded as a debate loads it, so that both share it; nobody debates here.
    model = app.debate(replace(settings, advocates=())).models[settings.model]
    report.progress(0, 0, "searching the library")
    question, names = payload["question"], payload["collections"]
    begun: list[GroundedAnswer] = []

    def kept(answer: GroundedAnswer) -> dict[str, Any]:
        return {
            "page": f"/ask/{report.job}",
            "answer": answer.to_dict(),
            "collections": [_holder(app, names, source.passage.id) for source in answer.sources],
            "demonstration": bool(answer.sources) and profile_of(model).name == "small",
        }

    def show(answer: GroundedAnswer) -> None:
        with interrupting():
            if begun:
                report.event(WRITTEN, {"sentences": [asdict(one) for one in answer.sentences]})
                return
            titles = ", ".join(dict.fromkeys(source.passage.document for source in answer.sources))
            report.progress(0, 0, f"writing from {counted(len(answer.sources), 'passage')} of {titles}")
            report.event(WRITTEN, kept(answer))
            begun.append(answer)

    try:
        answer = documents.ask(
            question,
            names,
            model=model,
            workspace=app,
            passages=PASSAGES,
            profile=settings.profile.name,
            on_progress=show,
        )
    except Interrupted:
        raise Stopped from None
    return kept(answer)


def _holder(app: AppState, names: list[str], passage: str) -> str:
    """The first collection that holds a passage; empty where none does any more."""
    for name in names:
        try:
            found_passage(library_of(app), name, passage)
        except Missing:
            continue
        return name
    return ""


@router.get("/ask/{question}")
def show(request: Request, app: App, user: Reader, question: str) -> Response:
    """A question with its answer, or how far that is, below the questions that it follows."""
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
    request: Request, app: AppState, asked: QuestionForm, *, job: Job | None = None, status: int = 200, **values: Any
) -> Response:
    """The page of a question, or the empty form; the answer's parts are made from what the job has kept."""
    earlier: list[Job] = []
    before = job.payload["before"] if job is not None else asked.before
    while before and len(earlier) < MOST_EARLIER and (known := app.jobs.many([before])) and known[0].kind == ASK:
        earlier.append(known[0])
        before = known[0].payload["before"]
    shown: dict[str, Any] = {"error": "", "may_stop": False, "numbers": (), "answer": None, "sources": {}}
    shown |= {"notes": (), "copied": "", "sentences": (), "cited": (), "last": 0}
    if job is not None:
        result = job.result
        for event in () if job.ended else app.jobs.events(job.id):
            # What is written so far has the form of the result.
            shown["last"] = event.number
            if "answer" in event.body:
                result = event.body
            elif result is not None:
                result["answer"]["sentences"] = event.body["sentences"]
        if result is not None:
            shown |= _answer_values(app, result)
    return page(
        request,
        "ask.html.j2",
        status=status,
        asked=asked,
        job=job,
        earlier=earlier[::-1],
        collections=library_of(app).with_passages(),
        longest=LONGEST_QUESTION,
        link=safe_link,
        host=lambda url: urlsplit(url).hostname,
        source_details=source_details,
        **shown | values,
    )


def _answer_values(app: AppState, result: dict[str, Any]) -> dict[str, Any]:
    """What the template shows of an answer."""
    answer = result["answer"]
    sentences = [AnswerSentence(**one) for one in answer["sentences"]]
    links = CitationLinks(library_of(app))
    sources = {
        one["number"]: links.current(
            PassageCitation(one["number"], Passage(**one["passage"]), collection, one["cosine"], ())
        )
        for one, collection in zip(answer["sources"], result["collections"], strict=True)
    }
    # An answer quotes nothing word for word: what is marked is the sentence of the passage that is nearest to its own.
    rests_on = {
        (place, number): nearest_sentence(sources[number].passage.text, one.body)
        for place, one in enumerate(sentences)
        for number in one.citations
        if number in sources
    }

    def quotations(number: int, sentence: int | None = None) -> list[str]:
        return [text for (place, one), text in rests_on.items() if one == number and text and sentence in (None, place)]

    cited = sorted({number for one in sentences for number in one.citations})
    notes = [DEMONSTRATION] if result["demonstration"] else []
    if own := sum(one.in_house for one in sentences):
        notes.append(f"Sentences that no passage supports, marked below: {own} of {len(sentences)}.")
    if attributed := sum(one.origin == "attributed" for one in sentences):
        notes.append(f"Sentences whose passages were found by comparison, not named by the model: {attributed}.")
    unchecked = unchecked_note(name for one in sentences for name in one.unchecked_references)
    cut = truncated_note(answer.get("truncated", False))
    notes += filter(None, (cut, removed_note(answer["removed_citations"]), unchecked))
    references = []
    for number in cited:
        if (source := sources.get(number)) is not None:
            at = f"/library/{quote(source.collection)}/passages/{quote(source.passage.id)}"
            address = f" {app.settings.root}{at}" if source.collection else ""
            references.append(f"[{number}] {source.citation}.{address}")
    copied = [answer["question"], answer["text"], "\n".join(references), f"Written by {answer['model']}."]
    return {
        "answer": answer,
        "sentences": sentences,
        "sources": sources,
        "cited": cited,
        "passage_pieces": lambda source: mark_quotations(source.passage.text, quotations(source.number)),
        "evidence": lambda source, sentence=None: links.evidence(
            source.collection, source.passage, quotations(source.number, sentence)
        ),
        "numbers": set(sources),
        "notes": notes,
        "copied": "\n\n".join(filter(None, copied)),
    }
