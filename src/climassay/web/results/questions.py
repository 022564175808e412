"""The questions of a run, one by one: what each model was given, what it said, and how that was scored.

A run keeps its answers as JSON rows. To filter 300,000 of them, a page would have to read them all; so what is filtered
by is written down once, when somebody first looks at the questions, and a page reads the rows of its questions only.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from climassay.evaluation.report import is_wrong
from climassay.evaluation.scores import metrics_of
from climassay.metrics.registry import Metric
from climassay.questions import option_letter
from climassay.records import tables
from climassay.records.queries import RunDetails, RunSummary, answers_about, run_details, run_rows, run_settings
from climassay.web.access import Reader
from climassay.web.app_state import App, AppState
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.results.blocks import PageNumber, Search, block_assets, part_of, within
from climassay.web.results.stored_run import StoredRun, count_rows, found_summary

router = APIRouter(include_in_schema=False)
PAGE = 50
MOST_REQUESTS = 100
Word = Annotated[str, Query(max_length=200)]


metadata = sa.MetaData()
indexes = sa.Table(
    "web_question_indexes",
    metadata,
    sa.Column("run", sa.String(16), primary_key=True),
    sa.Column("rows", sa.Integer, nullable=False),
    comment="Runs whose questions are in the next two tables. rows: stored rows of the run at that time.",
)
questions = sa.Table(
    "web_questions",
    metadata,
    sa.Column("run", sa.String(16), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("benchmark", sa.Text, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("level", sa.String(20), nullable=False),
    sa.Column("words", sa.Text, nullable=False),
    sa.Column("position", sa.Integer),
    sa.Index("web_questions_by_id", "run", "question"),
    comment="Questions in the order of a run. words: what a search looks in; position: of its row.",
)
answers = sa.Table(
    "web_question_answers",
    metadata,
    sa.Column("run", sa.String(16), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("wrong", sa.Boolean, nullable=False),
    sa.Column("words", sa.Text, nullable=False),
    sa.Index("web_answers_by_model", "run", "model", "wrong", "number"),
    comment="Answers to these questions. position: of the answer's row.",
)
_INSERTED = 5000
"""Rows of one statement."""
_ANSWER_ROWS = ("outcomes", "predictions")
_LONG = (*_ANSWER_ROWS, "questions", "passages")
"""Tables of a run of which a page reads some rows only; of all others it reads all."""


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
                details = run_details(database, run_id)
                database.write(lambda connection: _write(connection, details, self._rows))

    def __len__(self) -> int:
        """Number of questions with an answer."""
        return self._app.computed.get(("questions", self.run, self._rows), lambda: self.count(QuestionFilter()))

    def count(self, wanted: QuestionFilter) -> int:
        """How many questions fit."""
        with self._database.read() as connection:
            return int(connection.execute(self._fitting(sa.func.count(), wanted=wanted)).scalar_one())

    def numbers(self, wanted: QuestionFilter, most: int, *, skip: int = 0, after: int = -1) -> list[int]:
        """Numbers of the questions that fit, from 0, in their order."""
        query = self._fitting(questions.c.number, wanted=wanted).where(questions.c.number > after)
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(questions.c.number).offset(skip).limit(most)).scalars())

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

    def choices(self) -> dict[str, list[str]]:
        """Values that tell questions or answers apart, in the order in which they first come."""
        return self._app.computed.get(("choices", self.run, self._rows), self._choices)

    def _choices(self) -> dict[str, list[str]]:
        columns = ((questions, "benchmark"), (questions, "kind"), (questions, "level"), (answers, "model"))
        with self._database.read() as connection:
            return {
                name: list(
                    connection.execute(
                        sa.select(table.c[name])
                        .where(table.c.run == self.run, table.c[name] != "")
                        .group_by(table.c[name])
                        .order_by(sa.func.min(table.c.position), table.c[name])
                    ).scalars()
                )
                for table, name in columns
            }

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


def _write(connection: sa.Connection, details: RunDetails, rows: int) -> None:
    """Write down the questions of a run, in place of what was written down before."""
    run, stored = details.summary.id, StoredRun(details)
    for table in (indexes, questions, answers):
        connection.execute(table.delete().where(table.c.run == run))
    numbers = {key: number for number, key in enumerate(stored.questions)}
    places = {
        (row.get("benchmark"), row["id"]): position for position, row in enumerate(details.results.get("questions", ()))
    }
    asked: list[Mapping[str, Any]] = [
        {
            "run": run,
            "number": number,
            "benchmark": key[0],
            "question": key[1],
            "kind": one.kind,
            "level": one.level or "",
            "words": "\n".join((one.id, one.question, one.answer, *one.options)).lower(),
            "position": places.get(key, places.get((None, key[1]))),
        }
        for (key, one), number in zip(stored.questions.items(), numbers.values(), strict=True)
    ]
    _insert(connection, questions, asked)
    _insert(connection, answers, list(_answer_rows(stored, numbers)))
    connection.execute(indexes.insert(), [{"run": run, "rows": rows}])


def _answer_rows(stored: StoredRun, numbers: Mapping[tuple[str, str], int]) -> Iterator[Mapping[str, Any]]:
    if stored.experiment is None:
        return
    results = stored.details.results
    # Of several option orders of a question, the file's own is the one that is shown.
    shown = [place for place, row in enumerate(results.get("predictions", ())) if row["permutation"] == 0]
    positions = range(len(stored.experiment.outcomes)) if "outcomes" in results else shown
    for position, outcome in zip(positions, stored.experiment.outcomes, strict=True):
        key = (outcome.cell.benchmark, outcome.question)
        if key in numbers:
            yield {
                "run": stored.id,
                "number": numbers[key],
                "position": position,
                "model": outcome.cell.model,
                "wrong": is_wrong(outcome),
                "words": outcome.answer.lower(),
            }


def _insert(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    for start in range(0, len(rows), _INSERTED):
        connection.execute(table.insert(), rows[start : start + _INSERTED])


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
    number: PageNumber = 1,
) -> Response:
    """The questions that fit, with how many answers are wrong."""
    index = index_of(app, run)
    wanted = QuestionFilter(benchmark, kind, level, model, wrong, text.strip())
    total = index.count(wanted)
    shown = within(number, total, PAGE)
    stored = index.part(index.numbers(wanted, PAGE, skip=(shown - 1) * PAGE) if total else [])
    lines = []
    for key, question in stored.questions.items():
        ours = [is_wrong(one) for one in stored.outcomes[key] if model in ("", one.cell.model)]
        counts = {"wrong": sum(ours), "answers": len(ours), "address": _address(run, key)}
        lines.append({"question": question, "benchmark": key[0], **counts})
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
            "text": one.answer if one.chosen is None else f"{option_letter(one.chosen)}) {one.answer}",
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
    request: Request, app: App, _user: Reader, run: str, question: Word, benchmark: Word = ""
) -> Response:
    """The prompts in which a question stands, word for word, with what came back."""
    index, number = _number(app, run, question, benchmark)
    [(key, asked)] = index.part([number]).questions.items()
    # Cloze statements are shown to models with a line in place of the mask, so that only their parts stand as they are.
    words = max(asked.question.split("<MASK>"), key=len).strip()
    found = answers_about(app.database, run, words, MOST_REQUESTS + 1)
    return page(
        request,
        "results/requests.html.j2",
        run=index.summary,
        question=asked,
        address=_address(run, key),
        answers=found[:MOST_REQUESTS],
        more=len(found) > MOST_REQUESTS,
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
