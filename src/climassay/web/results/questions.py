"""The questions of a run, one by one: what each model was given, what it said, and how that was scored.

A page reads the rows of its questions only, which it finds by :mod:`climassay.web.results.question_index`.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Query, Request
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from climassay.evaluation.report import answer_row, is_wrong
from climassay.evaluation.results import COMMANDS, Outcome
from climassay.evaluation.scores import metrics_of
from climassay.questions import Kind, Level, Question, option_letter
from climassay.records import tables
from climassay.records.queries import (
    RunDetails,
    RunSummary,
    answers_about,
    run_details,
    run_lines,
    run_rows,
    run_settings,
)
from climassay.reporting.html import render_answer
from climassay.web.access import Reader
from climassay.web.app_state import App, AppState
from climassay.web.failures import Missing
from climassay.web.pages import PageNumber, page, part_of, within
from climassay.web.results.pages import block_assets
from climassay.web.results.question_index import (
    answer_choices,
    answers,
    count_rows,
    indexes,
    metadata,
    questions,
    scores,
    write_index,
)
from climassay.web.results.stored_run import StoredRun, found_summary

router = APIRouter(include_in_schema=False)
PAGE = 50
MOST_BESIDE = 100
"""Newest runs of a command from which one is chosen to stand beside another."""
REQUESTS = 25
"""Requests on one page."""
Word = Annotated[str, Query(pattern=r"^[^\x00]*$", max_length=200)]
Number = Annotated[int, Field(ge=0, le=9999)]
Place = Annotated[Number | None, BeforeValidator(lambda given: None if given == "" else given)]
"""Number of a column of the grid, from 0; none where it is empty."""
_LONG = ("outcomes", "predictions", "questions", "passages")
"""Tables of a run of which a page reads some rows only; of all others it reads all."""


class Column(NamedTuple):
    """A column of the grid: one model in one setting of a run."""

    run: str
    model: str
    setting: str


@dataclass(frozen=True, slots=True)
class QuestionQuery:
    """Which questions of a run are asked for, in the addresses of pages and of the API."""

    benchmark: Annotated[Word, Query(description="Only questions of this benchmark.")] = ""
    kind: Annotated[Kind | Literal[""], Query(description="Only questions of this kind.")] = ""
    level: Annotated[Level | Literal[""], Query(description="Only questions of this level.")] = ""
    text: Annotated[Word, Query(description="In the question, its reference or an answer.")] = ""
    wrong: Annotated[bool, Query(description="Only questions with a wrong answer.")] = False


@dataclass(frozen=True, slots=True)
class QuestionFilter(QuestionQuery):
    """Which questions are shown: those asked for, of answers by a model or in a column."""

    model: str = ""
    """Only this model's answers count as wrong."""
    right: Column | None = None
    """Only questions that are answered rightly here."""
    fails: Column | None = None
    """Only questions that are answered wrongly here."""
    invalid: bool = False
    """Only questions with an answer that failed or breaks the rules of an answer."""
    unstable: bool = False
    """Only questions to which the option orders of a model disagree."""


@dataclass(frozen=True, slots=True)
class GridQuery(QuestionQuery):
    """Which questions of a run are asked for in its grid, and what stands beside it."""

    beside: Annotated[Word, Query(description="Id of another run, whose columns follow.")] = ""
    right: Annotated[Place, Query(description="Only questions answered rightly in this column, from 0.")] = None
    fails: Annotated[Place, Query(description="Only questions answered wrongly in this column, from 0.")] = None
    invalid: Annotated[bool, Query(description="Only questions with a failed or invalid answer.")] = False
    unstable: Annotated[bool, Query(description="Only questions on whose option orders a model disagrees.")] = False

    def filter(self, columns: Sequence[Column], model: str = "") -> QuestionFilter:
        """The filter that is asked for; a column that is not there excludes nothing."""
        good, bad = (None if place is None else next(iter(columns[place:]), None) for place in (self.right, self.fails))
        given = asdict(self) | {"text": self.text.strip(), "model": model, "right": good, "fails": bad}
        del given["beside"]
        return QuestionFilter(**given)


class QuestionIndex:
    """The questions of one run, indexed where they are not yet, and the pieces of it that are shown with them."""

    _turn = threading.Lock()

    def __init__(self, app: AppState, run: RunSummary) -> None:
        self._app, self._database, self.run, self.summary = app, app.database, run.id, run
        database, run_id = self._database, run.id
        app.shared("results:question tables", lambda: database.create_tables(metadata))
        with self._turn:
            self._rows = count_rows(database, run_id)
            if database.scalar(sa.select(indexes.c.rows).where(indexes.c.run == run_id)) != self._rows:
                self._write(run_details(database, run_id))

    def __len__(self) -> int:
        """Number of questions with an answer."""
        return self._app.computed.get(("questions", self.run, self._rows), lambda: self.count(QuestionFilter()))

    def count(self, wanted: QuestionFilter) -> int:
        """How many questions fit."""
        return int(self._database.scalar(self._fitting(sa.func.count(), wanted=wanted)))

    def _write(self, details: RunDetails) -> None:
        write_index(self._database, self.run, StoredRun(details).experiment, self._rows)

    def numbers(
        self,
        wanted: QuestionFilter,
        most: int,
        *,
        skip: int = 0,
        after: int = -1,
        by: Literal["", "wrong", "question"] | Column = "",
        backwards: bool = False,
    ) -> list[int]:
        """Numbers of the questions that fit, from 0, in their order or in another one.

        Args:
            wanted: Which questions.
            most: How many.
            skip: So many come before.
            after: Only questions with higher numbers.
            by: Most wrong answers first, by the question's id, or the worst answer of a column first; questions without
                a score there are the last.
            backwards: The other way round.
        """
        query = self._fitting(questions.c.number, wanted=wanted).where(questions.c.number > after)
        order: tuple[sa.ColumnElement[Any], ...] = ()
        if isinstance(by, Column):
            result = _scores_of(by)
            same = (result.c.question == questions.c.question) & (result.c.benchmark == questions.c.benchmark)
            query = query.join(result, same, isouter=True)
            order = (result.c.score.is_(None), result.c.score.desc() if backwards else result.c.score)
        elif by == "wrong":
            order = (questions.c.wrong if backwards else questions.c.wrong.desc(),)
        elif by == "question":
            order = (questions.c.question.desc() if backwards else questions.c.question,)
        order = (*order, questions.c.number)
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(*order).offset(skip).limit(most)).scalars())

    def numbers_of(self, keys: Sequence[tuple[str, str]]) -> list[int]:
        """Numbers of the questions of some benchmarks and ids, those that there are."""
        key = sa.tuple_(questions.c.benchmark, questions.c.question)
        query = sa.select(questions.c.number).where(questions.c.run == self.run, key.in_(keys))
        return [row.number for row in self._database.rows(query)]

    def columns(self) -> list[Column]:
        """Models and settings, in the order of the run."""
        return [Column(self.run, *one) for one in self.choices()["columns"]]

    def number(self, question: str, benchmark: str = "") -> int | None:
        """Number of a question by its id; None where there is none."""
        query = sa.select(questions.c.number).where(questions.c.run == self.run, questions.c.question == question)
        if benchmark:
            query = query.where(questions.c.benchmark == benchmark)
        result: int | None = self._database.scalar(query.order_by(questions.c.number).limit(1))
        return result

    def key(self, number: int) -> tuple[str, str] | None:
        """Benchmark and id of a question; None where none has that number."""
        query = sa.select(questions.c.benchmark, questions.c.question)
        result = self._database.first(query.where(questions.c.run == self.run, questions.c.number == number))
        return None if result is None else (str(result.benchmark), str(result.question))

    def choices(self) -> dict[str, list[Any]]:
        """See :func:`~climassay.web.results.question_index.answer_choices`."""
        key = ("choices", self.run, self._rows)
        return self._app.computed.get(key, lambda: answer_choices(self._database, self.run, self._rows))

    def part(self, numbers: Sequence[int], *, orders: bool = False) -> StoredRun:
        """The run with the questions of some numbers, their answers and the passages of these.

        Args:
            numbers: Of the questions.
            orders: Whether the choices in every option order come with them.
        """
        config, seeds, error = run_settings(self._database, self.run)
        ours = questions.c.run == self.run, questions.c.number.in_(numbers)
        theirs = answers.c.run == self.run, answers.c.number.in_(numbers)
        with self._database.read() as connection:
            asked = list(connection.execute(sa.select(questions.c.position).where(*ours)).scalars())
            said = sorted(connection.execute(sa.select(answers.c.position).where(*theirs)).scalars())
        known = [position for position in asked if position is not None]
        results = run_rows(self._database, self.run, tables.results.c.name.not_in(_LONG))
        for name, positions in (("questions", sorted(known)), ("outcomes", said)):
            chosen = (tables.results.c.name == name) & tables.results.c.position.in_(positions)
            results |= run_rows(self._database, self.run, chosen)
        said_of = [("passages", "id", {name for row in results.get("outcomes", ()) for name in row["passages"]})]
        if orders:
            said_of.append(("predictions", "question", {row["question"] for row in results.get("outcomes", ())}))
        row = tables.results.c.row
        for name, first, values in said_of:
            # Rows whose first field has one of these values are found by how such a row begins.
            beginnings = (f'{{"{first}": {json.dumps(one, ensure_ascii=False)}' for one in sorted(values))
            starts = [row.startswith(one, autoescape=True) for one in beginnings]
            if starts:
                results |= run_rows(self._database, self.run, (tables.results.c.name == name) & sa.or_(*starts))
        return StoredRun(RunDetails(self.summary, config, seeds, error, (), results))

    def _fitting(self, *columns: Any, wanted: QuestionFilter) -> sa.Select[Any]:
        query = sa.select(*columns).select_from(questions).where(questions.c.run == self.run)
        for name in ("benchmark", "kind", "level"):
            value = getattr(wanted, name)
            query = query.where(questions.c[name] == value) if value else query
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


def _answered(cell: Column, *, wrong: bool) -> sa.ColumnElement[bool]:
    """Whether a column has an answer to a question that is wrong, or right; also in another run."""
    said, asked = answers.alias(), questions.alias()
    joined = said.join(asked, (asked.c.run == said.c.run) & (asked.c.number == said.c.number))
    same = asked.c.question == questions.c.question, asked.c.benchmark == questions.c.benchmark
    there = said.c.run == cell.run, said.c.model == cell.model, said.c.setting == cell.setting
    return sa.select(sa.literal(1)).select_from(joined).where(*same, *there, said.c.wrong == wrong).exists()


def _scores_of(cell: Column) -> sa.Subquery:
    """The score of each question in a column, also of another run; of several, the worst."""
    asked, said = questions.alias(), answers.alias()
    same = (said.c.run == asked.c.run) & (said.c.number == asked.c.number)
    scored = (scores.c.run == said.c.run) & (scores.c.number == said.c.number) & (scores.c.position == said.c.position)
    there = said.c.run == cell.run, said.c.model == cell.model, said.c.setting == cell.setting
    keys = asked.c.benchmark, asked.c.question
    result = sa.select(*keys, sa.func.min(scores.c.score).label("score"))
    return result.select_from(asked.join(said, same).join(scores, scored)).where(*there).group_by(*keys).subquery()


@router.get("/results/{run}/questions")
def show_questions(
    request: Request,
    app: App,
    _user: Reader,
    run: str,
    asked: Annotated[GridQuery, Depends()],
    model: Word = "",
    order: Annotated[str, Query(pattern=r"^(wrong|question|[0-9]{1,4})?$")] = "",
    direction: Literal["", "down"] = "",
    number: PageNumber = 1,
) -> Response:
    """A grid of the questions that fit: a row per question, a column per model and setting, of this run and another."""
    index, other, columns = grid_columns(app, run, asked.beside)
    wanted = asked.filter(columns, model)
    total = index.count(wanted)
    shown = within(number, total, PAGE)
    by: Any = next(iter(columns[int(order) :]), "") if order.isdigit() else order

    result = index.numbers(wanted, PAGE, skip=(shown - 1) * PAGE, by=by, backwards=direction == "down") if total else []
    lines = [
        (
            row,
            _address(run, row.key),
            [
                cell and mark_of(cell.outcome, f"{_address(column.run, row.key)}#answer-{cell.place}")
                for column, cell in zip(columns, row.cells, strict=True)
            ],
        )
        for row in grid_rows(index, other, result)
    ]
    listed = [
        line.summary for command in COMMANDS for line in run_lines(app.database, command=command, most=MOST_BESIDE)
    ]
    others = {one.id: one.name for one in (*([other.summary] if other else []), *listed) if one.id != run}
    given = asdict(asked) | {"model": model, "text": wanted.text}
    # A column of number 0 is asked for, too.
    set_ones = {name: one for name, one in given.items() if one not in (None, "") and one is not False}
    filters = {name: "true" if one is True else str(one) for name, one in set_ones.items()}
    address = f"/results/{run}/questions"
    return page(
        request,
        "results/questions.html.j2",
        run=index.summary,
        index=index,
        part=part_of(lines, shown, total, PAGE, address, {**filters, "order": order, "direction": direction}),
        headings=part_of((), 1, 0, PAGE, address, filters),
        wanted=wanted,
        choices=index.choices(),
        columns=columns,
        other=other,
        others=others,
        filters=filters,
        order=order,
        direction=direction,
    )


class GridCell(NamedTuple):
    """An answer in the grid."""

    place: int
    """Among the answers to its question in its run, from 1."""
    outcome: Outcome


class GridRow(NamedTuple):
    """A question and the answers to it, one a column."""

    number: int
    key: tuple[str, str]
    """Benchmark and id."""
    question: Question
    cells: tuple[GridCell | None, ...]


def grid_columns(app: AppState, run: str, beside: str) -> tuple[QuestionIndex, QuestionIndex | None, list[Column]]:
    """The questions of a run, those of the run beside it, and the columns of both; missing where there are none."""
    index = index_of(app, run)
    other = index_of(app, beside) if beside and beside != run else None
    return index, other, [*index.columns(), *(other.columns() if other else ())]


def grid_rows(index: QuestionIndex, other: QuestionIndex | None, numbers: Sequence[int]) -> list[GridRow]:
    """Questions of a run by their numbers, in that order, with the answers of both runs."""
    stored = index.part(numbers)
    keys = dict(zip(sorted(numbers), stored.questions, strict=True))
    runs = [stored, *([other.part(other.numbers_of(list(stored.questions)))] if other and numbers else [])]
    cells = {
        (Column(one.id, said.cell.model, said.cell.setting), key): GridCell(place, said)
        for one in runs
        for key, outcomes in one.outcomes.items()
        for place, said in enumerate(outcomes, start=1)
    }
    columns = [*index.columns(), *(other.columns() if other else ())]
    return [
        GridRow(
            number,
            keys[number],
            stored.questions[keys[number]],
            tuple(cells.get((one, keys[number])) for one in columns),
        )
        for number in numbers
    ]


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
        text = "–" if score is None else f"{score:.2f}"
        return AnswerMark(text, "", metrics[0].label if metrics else "no score", address)
    tone: Literal["bad", "good"] = "bad" if is_wrong(said) else "good"
    share = said.scores.get("accuracy", 0.0)
    if 0 < share < 1:
        return AnswerMark(f"{100 * share:.0f}%", tone, f"right in {100 * share:.0f}% of the option orders", address)
    text, words = ("✗", "wrong") if tone == "bad" else ("✓", "right")
    return AnswerMark(text, tone, words + (f" ({', '.join(said.violations)})" if said.violations else ""), address)


@router.get("/results/{run}/questions/{question:path}")
def show_question(request: Request, app: App, _user: Reader, run: str, question: str, benchmark: Word = "") -> Response:
    """One question with every answer to it."""
    index, number = _number(app, run, question, benchmark)
    stored = index.part([number], orders=True)
    [(key, asked)] = stored.questions.items()
    outcomes = stored.outcomes[key]
    metrics = metrics_of(outcomes)
    given = [
        {
            "outcome": one,
            "said": render_answer(row := answer_row(one, asked, metrics)),
            "remarks": (*row.remarks, *_order_words(stored, one)),
            "wrong": is_wrong(one),
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
        metrics=metrics,
        answers=given,
        texts=stored.experiment.passages if stored.experiment else {},
        requests_address=f"/results/{run}/requests?{urlencode({'question': key[1], 'benchmark': key[0]})}",
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
    question: Annotated[str, Query(pattern=r"^[^\x00]+$", max_length=200)],
    benchmark: Word = "",
    number: PageNumber = 1,
) -> Response:
    """Show the prompts of a run that contain a question, each with its raw answer."""
    summary = found_summary(app, run)
    index, place = _number(app, run, question, benchmark)
    [(key, asked)] = index.part([place]).questions.items()
    # Models see a line in place of the mask of a cloze statement, so only the parts around it occur in prompts.
    words = max(asked.question.split("<MASK>"), key=len).strip()
    result = answers_about(app.database, run, words, REQUESTS + 1, (number - 1) * REQUESTS)
    turn = f"/results/{run}/requests?{urlencode({'question': question, 'benchmark': benchmark})}&page="
    return page(
        request,
        "results/requests.html.j2",
        run=summary,
        question=asked,
        address=_address(run, key),
        answers=result[:REQUESTS],
        before=f"{turn}{number - 1}" if number > 1 else "",
        after=f"{turn}{number + 1}" if len(result) > REQUESTS else "",
    )


def index_of(app: AppState, run: str) -> QuestionIndex:
    """The questions of a run; missing where there is no such run, or it kept none."""
    index = QuestionIndex(app, found_summary(app, run))
    if not len(index):
        raise Missing(f"The run {run} has no stored questions.")
    return index


def _number(app: AppState, run: str, question: str, benchmark: str) -> tuple[QuestionIndex, int]:
    """A run's questions, and the number of one of them."""
    index = index_of(app, run)
    number = index.number(question, benchmark)
    if number is None:
        raise Missing(f"The run {run} has no answer to a question {question[:60]}.")
    return index, number


def _order_words(stored: StoredRun, said: Outcome) -> list[str]:
    """What a model chose in each option order, where it was asked in several."""
    known = stored.experiment.predictions.get(said.cell, ()) if stored.experiment else ()
    orders = sorted((one for one in known if one.question == said.question), key=lambda one: one.permutation)
    if len(orders) < 2:
        return []
    chosen = ", ".join("none" if one.chosen is None else f"{option_letter(one.chosen)})" for one in orders)
    return [f"right in {sum(one.correct for one in orders)} of {len(orders)} option orders: {chosen}"]


def _address(run: str, key: tuple[str, str]) -> str:
    return f"/results/{run}/questions/{quote(key[1], safe='')}?{urlencode({'benchmark': key[0]})}"
