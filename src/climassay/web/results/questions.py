"""The questions of a run, one by one: what each model was given, what it said, and how that was scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from climassay.evaluation.report import is_wrong
from climassay.evaluation.results import Outcome
from climassay.evaluation.scores import metrics_of
from climassay.metrics.registry import Metric
from climassay.questions import Question, option_letter
from climassay.records.queries import answers_about
from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.place import Place, PlaceHere
from climassay.web.results.paging import part_of, within
from climassay.web.results.question_index import QuestionFilter, QuestionIndex
from climassay.web.results.runs import PageNumber, Search, found_summary
from climassay.web.results.stored_run import StoredRun
from climassay.web.results.style import block_assets

router = APIRouter(include_in_schema=False)
PAGE = 50
MOST_REQUESTS = 100
Word = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """A question in the list."""

    question: Question
    benchmark: str
    wrong: int
    answers: int
    address: str


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer as the page of its question shows it."""

    outcome: Outcome
    text: str
    wrong: bool
    scores: tuple[str, ...]
    passages: tuple[tuple[str, str], ...]
    """Ids and texts of what the model was given."""
    address: str
    """Of the requests behind it."""


@router.get("/results/{run}/questions")
def show_questions(
    request: Request,
    place: PlaceHere,
    _user: Reader,
    run: str,
    benchmark: Word = "",
    kind: Word = "",
    level: Word = "",
    model: Word = "",
    wrong: bool = False,
    text: Search = "",
    number: PageNumber = 1,
) -> Response:
    """The questions that fit, with how many answers are wrong."""
    index = index_of(place, run)
    wanted = QuestionFilter(benchmark, kind, level, model, wrong, text.strip())
    total = index.count(wanted)
    shown = within(number, total, PAGE)
    stored = index.part(index.numbers(wanted, PAGE, skip=(shown - 1) * PAGE) if total else [])
    lines = [_line(stored, key, model) for key in stored.questions]
    values = {"benchmark": benchmark, "kind": kind, "level": level, "model": model, "text": wanted.text}
    filters = {**values, "wrong": "true" if wrong else ""}
    return page(
        request,
        "results/questions.html.j2",
        run=index.summary,
        part=part_of(lines, shown, total, PAGE, f"/results/{run}/questions", filters),
        lines=lines,
        wanted=wanted,
        choices=index.choices(),
    )


@router.get("/results/{run}/questions/{question:path}")
def show_question(
    request: Request, place: PlaceHere, _user: Reader, run: str, question: str, benchmark: Word = ""
) -> Response:
    """One question with every answer to it."""
    index, number = _number(place, run, question, benchmark)
    stored = index.part([number])
    [(key, asked)] = stored.questions.items()
    outcomes = stored.outcomes[key]
    metrics = metrics_of(outcomes)
    before, after = index.key(number - 1), index.key(number + 1)
    return page(
        request,
        "results/question.html.j2",
        run=stored.details.summary,
        question=asked,
        benchmark=key[0],
        letter=option_letter,
        metrics=metrics,
        answers=[_answer(stored, key, outcome, metrics) for outcome in outcomes],
        requests_address=_requests_address(stored.id, key),
        before=_address(run, before) if before else "",
        after=_address(run, after) if after else "",
        **block_assets(),
    )


@router.get("/results/{run}/requests")
def show_requests(
    request: Request,
    place: PlaceHere,
    _user: Reader,
    run: str,
    question: Word,
    benchmark: Word = "",
) -> Response:
    """The prompts in which a question stands, word for word, with what came back."""
    index, number = _number(place, run, question, benchmark)
    [(key, asked)] = index.part([number]).questions.items()
    # Cloze statements are shown to models with a line in place of the mask, so that only their parts stand as they are.
    words = max(asked.question.split("<MASK>"), key=len).strip()
    found = answers_about(place.database, run, words, MOST_REQUESTS + 1)
    return page(
        request,
        "results/requests.html.j2",
        run=index.summary,
        question=asked,
        address=_address(run, key),
        answers=found[:MOST_REQUESTS],
        more=len(found) > MOST_REQUESTS,
    )


def index_of(place: Place, run: str) -> QuestionIndex:
    """The questions of a run.

    Raises:
        Missing: There is no such run, or it kept no questions.
    """
    index = QuestionIndex(place, found_summary(place, run))
    if not len(index):
        raise Missing(f"The run {run} kept no questions.")
    return index


def _number(place: Place, run: str, question: str, benchmark: str) -> tuple[QuestionIndex, int]:
    """A run's questions, and the number of one of them."""
    index = index_of(place, run)
    number = index.number(question, benchmark)
    if number is None:
        raise Missing(f"The run {run} has no answer to a question {question[:60]}.")
    return index, number


def _line(stored: StoredRun, key: tuple[str, str], model: str) -> QuestionLine:
    ours = [outcome for outcome in stored.outcomes[key] if model in ("", outcome.cell.model)]
    return QuestionLine(stored.questions[key], key[0], sum(map(is_wrong, ours)), len(ours), _address(stored.id, key))


def _answer(stored: StoredRun, key: tuple[str, str], outcome: Outcome, metrics: Sequence[Metric]) -> GivenAnswer:
    assert stored.experiment is not None
    text = outcome.answer
    if outcome.chosen is not None:
        text = f"{option_letter(outcome.chosen)}) {text}"
    texts = stored.experiment.passages
    return GivenAnswer(
        outcome,
        text,
        is_wrong(outcome),
        tuple(_shown(metric, outcome.scores.get(metric.name)) for metric in metrics),
        tuple((name, texts.get(name, "(text not kept)")) for name in outcome.passages),
        _requests_address(stored.id, key),
    )


def _shown(metric: Metric, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if metric.binary else f"{value:.3f}"


def _address(run: str, key: tuple[str, str]) -> str:
    from urllib.parse import quote

    return f"/results/{run}/questions/{quote(key[1], safe='')}?{urlencode({'benchmark': key[0]})}"


def _requests_address(run: str, key: tuple[str, str]) -> str:
    return f"/results/{run}/requests?{urlencode({'question': key[1], 'benchmark': key[0]})}"
