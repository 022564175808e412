"""The questions of a run, one by one: what each model was given, what it said, and how that was scored.

A page reads the rows of its questions only, which it finds by :mod:`climassay.evaluation.question_index`.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from climassay.evaluation.question_index import (
    answer_choices,
    answers,
    count_rows,
    indexes,
    metadata,
    questions,
    write_index,
)
from climassay.evaluation.report import answer_row, is_wrong
from climassay.evaluation.results import Outcome
from climassay.evaluation.scores import metrics_of
from climassay.metrics.registry import Metric
from climassay.questions import option_letter
from climassay.records import tables
from climassay.records.queries import RunDetails, RunSummary, answers_about, run_details, run_rows, run_settings
from climassay.reporting.html import render_answer
from climassay.web.access import Reader
from climassay.web.app_state import App, AppState
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.results.blocks import PageNumber, Search, block_assets, part_of, within
from climassay.web.results.stored_run import StoredRun, found_summary

router = APIRouter(include_in_schema=False)
PAGE = 50
REQUESTS = 25
"""Requests on one page."""
Word = Annotated[str, Query(max_length=200)]
Place = Annotated[str, Query(pattern=r"^[0-9]{0,4}$")]
"""Number of a column of the grid, from 0; empty for none."""
_ANSWER_ROWS = ("outcomes", "predictions")
_LONG = (*_ANSWER_ROWS, "questions", "passages")
"""Tables of a run of which a page reads some rows only; of all others it reads all."""


class Column(NamedTuple):
    """A column of the grid: one model in one setting of a run."""

    run: str
    model: str
    setting: str


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
    right: Column | None = None
    """Only questions that are answered rightly here."""
    fails: Column | None = None
    """Only questions that are answered wrongly here."""
    invalid: bool = False
    """Only questions with an answer that failed or breaks the rules of an answer."""
    unstable: bool = False
    """Only questions to which the option orders of a model disagree."""


class QuestionIndex:
    """The questions of one run, indexed where they are not yet, and the pieces of it that are shown with them."""

    _turn = threading.Lock()

    def __init__(self, app: AppState, run: RunSummary) -> None:
        self._app, self._database, self.run, self.summary = app, app.database, run.id, run
        database, run_id = self._database, run.id
        app.shared("results:question tables", lambda: database.create_tables(metadata))
        with self._turn:
            self._rows = count_rows(database, run_id)
            with database.read() as connection:
                known = connection.execute(sa.select(indexes.c.rows).where(indexes.c.run == run_id)).scalar()
            if known != self._rows:
                self._write(run_details(database, run_id))

    def __len__(self) -> int:
        """Number of questions with an answer."""
        return self._app.computed.get(("questions", self.run, self._rows), lambda: self.count(QuestionFilter()))

    def count(self, wanted: QuestionFilter) -> int:
        """How many questions fit."""
        with self._database.read() as connection:
            return int(connection.execute(self._fitting(sa.func.count(), wanted=wanted)).scalar_one())

    def _write(self, details: RunDetails) -> None:
        stored, listed = details.results, details.results.get("questions", ())
        places = {(row.get("benchmark"), row["id"]): position for position, row in enumerate(listed)}
        experiment = StoredRun(details).experiment
        # In runs of earlier versions a row of a question does not say which benchmark it is of.
        known = {
            (name, one.id): place
            for name, ones in (experiment.questions.items() if experiment else ())
            for one in ones
            if (place := places.get((name, one.id), places.get((None, one.id)))) is not None
        }
        # Of several option orders of a question, the file's own is the one that is shown.
        shown = [place for place, row in enumerate(stored.get("predictions", ())) if row["permutation"] == 0]
        positions = None if "outcomes" in stored else shown
        write_index(self._database, self.run, experiment, self._rows, places=known, positions=positions)

    def numbers(
        self, wanted: QuestionFilter, most: int, *, skip: int = 0, after: int = -1, wrong_first: bool = False
    ) -> list[int]:
        """Numbers of the questions that fit, from 0, in their order, or those with most wrong answers first."""
        query = self._fitting(questions.c.number, wanted=wanted).where(questions.c.number > after)
        order = (questions.c.wrong.desc(), questions.c.number) if wrong_first else (questions.c.number,)
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(*order).offset(skip).limit(most)).scalars())

    def numbers_of(self, keys: Sequence[tuple[str, str]]) -> list[int]:
        """Numbers of the questions of some benchmarks and ids, those that there are."""
        key = sa.tuple_(questions.c.benchmark, questions.c.question)
        query = sa.select(questions.c.number).where(questions.c.run == self.run, key.in_(keys))
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def columns(self) -> list[Column]:
        """Models and settings, in the order of the run."""
        return [Column(self.run, *one) for one in self.choices()["columns"]]

    def number(self, question: str, benchmark: str = "") -> int | None:
        """Number of a question by its id; None where there is none."""
        query = sa.select(questions.c.number).where(questions.c.run == self.run, questions.c.question == question)
        if benchmark:
            query = query.where(questions.c.benchmark == benchmark)
        with self._database.read() as connection:
            return connection.execute(query.order_by(questions.c.number).limit(1)).scalar()

    def key(self, number: int) -> tuple[str, str] | None:
        """Benchmark and id of a question; None where there is none of that number."""
        query = sa.select(questions.c.benchmark, questions.c.question)
        with self._database.read() as connection:
            found = connection.execute(query.where(questions.c.run == self.run, questions.c.number == number)).first()
        return None if found is None else (str(found.benchmark), str(found.question))

    def choices(self) -> dict[str, list[Any]]:
        """See :func:`~climassay.evaluation.question_index.answer_choices`."""
        key = ("choices", self.run, self._rows)
        return self._app.computed.get(key, lambda: answer_choices(self._database, self.run, self._rows))

    def part(self, numbers: Sequence[int]) -> StoredRun:
        """The run with the questions of some numbers, their answers and the passages of these."""
        config, seeds, error = run_settings(self._database, self.run)
        ours = questions.c.run == self.run, questions.c.number.in_(numbers)
        theirs = answers.c.run == self.run, answers.c.number.in_(numbers)
        with self._database.read() as connection:
            asked = list(connection.execute(sa.select(questions.c.position).where(*ours)).scalars())
            said = sorted(connection.execute(sa.select(answers.c.position).where(*theirs)).scalars())
        known = [position for position in asked if position is not None]
        results = run_rows(self._database, self.run, tables.results.c.name.not_in(_LONG))
        for names, positions in ((("questions",), sorted(known)), (_ANSWER_ROWS, said)):
            place = tables.results.c.name.in_(names) & tables.results.c.position.in_(positions)
            results |= run_rows(self._database, self.run, place)
        given = {name for row in results.get("outcomes", ()) for name in row["passages"]}
        if given:
            results |= run_rows(self._database, self.run, _passages(given))
        return StoredRun(RunDetails(self.summary, config, seeds, error, (), results))

    def _fitting(self, *columns: Any, wanted: QuestionFilter) -> sa.Select[Any]:
        query = sa.select(*columns).select_from(questions).where(questions.c.run == self.run)
        for column, value in (
            (questions.c.benchmark, wanted.benchmark),
            (questions.c.kind, wanted.kind),
            (questions.c.level, wanted.level),
        ):
            query = query.where(column == value) if value else query
        theirs = answers.select().where(answers.c.run == self.run, answers.c.number == questions.c.number)
        if wanted.model:
            theirs = theirs.where(answers.c.model == wanted.model)
        if wanted.model or wanted.wrong:
            query = query.where((theirs.where(answers.c.wrong) if wanted.wrong else theirs).exists())
        for flag, told in ((wanted.invalid, answers.c.invalid), (wanted.unstable, answers.c.unstable)):
            if flag:
                query = query.where(theirs.where(told).exists())
        for cell, is_so in ((wanted.right, False), (wanted.fails, True)):
            if cell is not None:
                query = query.where(_answered(cell, wrong=is_so))
        if wanted.text:
            words = wanted.text.lower()
            said = theirs.where(answers.c.words.contains(words, autoescape=True)).exists()
            query = query.where(questions.c.words.contains(words, autoescape=True) | said)
        return query


def _passages(ids: set[str]) -> sa.ColumnElement[bool]:
    """Rows of the passages of these ids, found by how such a row begins."""
    row = tables.results.c.row
    starts = (row.startswith(f'{{"id": {json.dumps(one, ensure_ascii=False)}', autoescape=True) for one in sorted(ids))
    return (tables.results.c.name == "passages") & sa.or_(*starts)


def _answered(cell: Column, *, wrong: bool) -> sa.ColumnElement[bool]:
    """Whether a column has an answer to a question that is wrong, or right; also in another run."""
    said, asked = answers.alias(), questions.alias()
    joined = said.join(asked, (asked.c.run == said.c.run) & (asked.c.number == said.c.number))
    same = asked.c.question == questions.c.question, asked.c.benchmark == questions.c.benchmark
    there = said.c.run == cell.run, said.c.model == cell.model, said.c.setting == cell.setting
    return sa.select(sa.literal(1)).select_from(joined).where(*same, *there, said.c.wrong == wrong).exists()


@router.get("/results/{run}/questions")
def show_questions(
    request: Request,
    app: App,
    _user: Reader,
    run: str,
    benchmark: Word = "",
    kind: Word = "",
    level: Word = "",
    model: Word = "",
    wrong: bool = False,
    text: Search = "",
    right: Place = "",
    fails: Place = "",
    invalid: bool = False,
    unstable: bool = False,
    order: Literal["", "wrong"] = "",
    beside: Word = "",
    number: PageNumber = 1,
) -> Response:
    """A grid of the questions that fit: a row a question, a column a model in a setting, of this run and of another."""
    index = index_of(app, run)
    other = index_of(app, beside) if beside and beside != run else None
    columns = [*index.columns(), *(other.columns() if other else ())]
    good, bad = (next(iter(columns[int(place) :]), None) if place else None for place in (right, fails))
    wanted = QuestionFilter(benchmark, kind, level, model, wrong, text.strip(), good, bad, invalid, unstable)
    total = index.count(wanted)
    shown = within(number, total, PAGE)
    found = index.numbers(wanted, PAGE, skip=(shown - 1) * PAGE, wrong_first=order == "wrong") if total else []
    stored = index.part(found)
    keys = dict(zip(sorted(found), stored.questions, strict=True))
    runs = [stored, *([other.part(other.numbers_of(list(stored.questions)))] if other and found else [])]
    marks = {
        (one.id, said.cell.model, said.cell.setting, key): mark_of(said, f"{_address(one.id, key)}#answer-{place}")
        for one in runs
        for key, outcomes in one.outcomes.items()
        for place, said in enumerate(outcomes, start=1)
    }
    lines = [
        {"question": stored.questions[key], "benchmark": key[0], "address": _address(run, key)}
        | {"marks": [marks.get((*column, key)) for column in columns]}
        for key in map(keys.__getitem__, found)
    ]
    filters = {"benchmark": benchmark, "kind": kind, "level": level, "model": model, "text": wanted.text}
    filters |= {"order": order, "beside": beside, "right": right, "fails": fails}
    filters |= {name: "true" for name, on in (("wrong", wrong), ("invalid", invalid), ("unstable", unstable)) if on}
    return page(
        request,
        "results/questions.html.j2",
        run=index.summary,
        part=part_of(lines, shown, total, PAGE, f"/results/{run}/questions", filters),
        lines=lines,
        wanted=wanted,
        choices=index.choices(),
        columns=columns,
        right=right,
        fails=fails,
        order=order,
        beside=other.run if other else "",
    )


class AnswerMark(NamedTuple):
    """What a cell of the grid shows."""

    text: str
    tone: Literal["good", "bad", "warn", ""]
    words: str
    """For readers who cannot see it."""
    address: str


def mark_of(said: Outcome, address: str) -> AnswerMark:
    """Whether an answer is right; where its metrics are no matter of right or wrong, the first of them."""
    if said.error is not None:
        return AnswerMark("!", "warn", "failed", address)
    metrics = metrics_of([said])
    if not any(metric.binary for metric in metrics):
        score = said.scores.get(metrics[0].name) if metrics else None
        return AnswerMark(
            "–" if score is None else f"{score:.2f}", "", metrics[0].label if metrics else "no score", address
        )
    wrong = is_wrong(said)
    words = ("wrong" if wrong else "right") + (f" ({', '.join(said.violations)})" if said.violations else "")
    return AnswerMark("✗" if wrong else "✓", "bad" if wrong else "good", words, address)


@router.get("/results/{run}/questions/{question:path}")
def show_question(request: Request, app: App, _user: Reader, run: str, question: str, benchmark: Word = "") -> Response:
    """One question with every answer to it."""
    index, number = _number(app, run, question, benchmark)
    stored = index.part([number])
    [(key, asked)] = stored.questions.items()
    outcomes = stored.outcomes[key]
    metrics = metrics_of(outcomes)
    texts = stored.experiment.passages if stored.experiment else {}
    requests = f"/results/{run}/requests?{urlencode({'question': key[1], 'benchmark': key[0]})}"
    given = [
        {
            "outcome": one,
            "said": render_answer(row := answer_row(one, asked, metrics)),
            "remarks": row.remarks,
            "wrong": is_wrong(one),
            "scores": [_score(metric, one.scores.get(metric.name)) for metric in metrics],
            "passages": [(name, texts.get(name, "(text not kept)")) for name in one.passages],
        }
        for one in outcomes
    ]
    before, after = index.key(number - 1), index.key(number + 1)
    return page(
        request,
        "results/question.html.j2",
        run=stored.details.summary,
        question=asked,
        benchmark=key[0],
        letter=option_letter,
        metrics=metrics,
        answers=given,
        requests_address=requests,
        before=_address(run, before) if before else "",
        after=_address(run, after) if after else "",
        **block_assets(),
    )


@router.get("/results/{run}/requests")
def show_requests(
    request: Request,
    app: App,
    _user: Reader,
    run: str,
    question: Word = "",
    benchmark: Word = "",
    text: Search = "",
    number: PageNumber = 1,
) -> Response:
    """Prompts, word for word, with what came back: of a run, or those in which one question or a text stands."""
    summary, asked, address, words = found_summary(app, run), None, "", text.strip()
    if question:
        index, place = _number(app, run, question, benchmark)
        [(key, asked)] = index.part([place]).questions.items()
        address = _address(run, key)
        # Cloze statements are shown to models with a line in place of the mask: only their parts stand as they are.
        words = max(asked.question.split("<MASK>"), key=len).strip()
    found = answers_about(app.database, run, words, REQUESTS + 1, (number - 1) * REQUESTS)
    here = {"question": question, "benchmark": benchmark, "text": text.strip()}
    turn = f"/results/{run}/requests?{urlencode({name: value for name, value in here.items() if value})}&page="
    return page(
        request,
        "results/requests.html.j2",
        run=summary,
        question=asked,
        address=address,
        text=text.strip(),
        answers=found[:REQUESTS],
        before=f"{turn}{number - 1}" if number > 1 else "",
        after=f"{turn}{number + 1}" if len(found) > REQUESTS else "",
    )


def index_of(app: AppState, run: str) -> QuestionIndex:
    """The questions of a run; missing where there is no such run, or it kept none."""
    index = QuestionIndex(app, found_summary(app, run))
    if not len(index):
        raise Missing(f"The run {run} kept no questions.")
    return index


def _number(app: AppState, run: str, question: str, benchmark: str) -> tuple[QuestionIndex, int]:
    """A run's questions, and the number of one of them."""
    index = index_of(app, run)
    number = index.number(question, benchmark)
    if number is None:
        raise Missing(f"The run {run} has no answer to a question {question[:60]}.")
    return index, number


def _score(metric: Metric, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if metric.percent else f"{value:.3f}"


def _address(run: str, key: tuple[str, str]) -> str:
    return f"/results/{run}/questions/{quote(key[1], safe='')}?{urlencode({'benchmark': key[0]})}"
