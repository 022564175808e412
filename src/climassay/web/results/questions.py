"""The questions of a run, one by one: what each model was given, what it said, and how that was scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from climassay.evaluation.experiment_report import is_wrong
from climassay.evaluation.experiment_scores import metrics_of
from climassay.evaluation.outcome import Metric, Outcome
from climassay.questions import Question, option_letter
from climassay.records.queries import answers_about
from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.place import PlaceHere
from climassay.web.results.paging import cut
from climassay.web.results.runs import PageNumber, Search, found_run
from climassay.web.results.stored_run import StoredRun
from climassay.web.results.style import block_assets

router = APIRouter(include_in_schema=False)
PAGE = 50
MOST_REQUESTS = 100
Word = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """Which questions a reader wants to see."""

    benchmark: str = ""
    kind: str = ""
    level: str = ""
    model: str = ""
    """Only this model's answers count as wrong."""
    wrong: bool = False
    text: str = ""
    """In the question, its reference or an answer, whatever its case."""

    def takes(self, benchmark: str, question: Question, outcomes: Sequence[Outcome]) -> bool:
        """Whether a question fits."""
        plain = (
            self.benchmark in ("", benchmark),
            self.kind in ("", question.kind),
            self.level in ("", question.level),
        )
        ours = [outcome for outcome in outcomes if self.model in ("", outcome.cell.model)]
        if not all(plain) or not ours or (self.wrong and not any(map(is_wrong, ours))):
            return False
        words = self.text.lower()
        said = (question.id, question.question, question.answer, *question.options, *(one.answer for one in ours))
        return not words or any(words in text.lower() for text in said)


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
    stored = _asked(found_run(place, run))
    wanted = QuestionFilter(benchmark, kind, level, model, wrong, text.strip())
    fitting = [key for key, one in stored.questions.items() if wanted.takes(key[0], one, stored.outcomes[key])]
    values = {"benchmark": benchmark, "kind": kind, "level": level, "model": model, "text": wanted.text}
    part = cut(fitting, number, PAGE, f"/results/{run}/questions", {**values, "wrong": "true" if wrong else ""})
    return page(
        request,
        "results/questions.html.j2",
        run=stored.details.summary,
        part=part,
        lines=[_line(stored, key, model) for key in part.entries],
        wanted=wanted,
        choices=_choices(stored),
    )


@router.get("/results/{run}/questions/{question:path}")
def show_question(
    request: Request, place: PlaceHere, _user: Reader, run: str, question: str, benchmark: Word = ""
) -> Response:
    """One question with every answer to it."""
    stored = _asked(found_run(place, run))
    key = _key(stored, question, benchmark)
    asked, outcomes = stored.questions[key], stored.outcomes[key]
    metrics = metrics_of(outcomes)
    keys = list(stored.questions)
    at = keys.index(key)
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
        before=_address(stored.id, keys[at - 1]) if at else "",
        after=_address(stored.id, keys[at + 1]) if at + 1 < len(keys) else "",
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
    stored = _asked(found_run(place, run))
    key = _key(stored, question, benchmark)
    asked = stored.questions[key]
    # Cloze statements are shown to models with a line in place of the mask, so that only their parts stand as they are.
    words = max(asked.question.split("<MASK>"), key=len).strip()
    found = answers_about(place.database, run, words, MOST_REQUESTS + 1)
    return page(
        request,
        "results/requests.html.j2",
        run=stored.details.summary,
        question=asked,
        address=_address(stored.id, key),
        answers=found[:MOST_REQUESTS],
        more=len(found) > MOST_REQUESTS,
    )


def _asked(stored: StoredRun) -> StoredRun:
    if stored.experiment is None:
        raise Missing(f"The run {stored.id} kept no questions.")
    return stored


def _key(stored: StoredRun, question: str, benchmark: str) -> tuple[str, str]:
    found = [key for key in stored.questions if key[1] == question and benchmark in ("", key[0])]
    if not found:
        raise Missing(f"The run {stored.id} has no answer to a question {question[:60]}.")
    return found[0]


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


def _choices(stored: StoredRun) -> dict[str, list[str]]:
    """What the filters offer: values that tell questions or answers apart."""
    asked = list(stored.questions.values())
    models = dict.fromkeys(one.cell.model for outcomes in stored.outcomes.values() for one in outcomes)
    return {
        "benchmark": list(dict.fromkeys(name for name, _ in stored.questions)),
        "kind": list(dict.fromkeys(one.kind for one in asked)),
        "level": list(dict.fromkeys(one.level for one in asked if one.level)),
        "model": list(models),
    }
