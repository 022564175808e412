"""Search tables of the questions and answers of runs.

A run stores its answers as JSON rows. Since filtering would require reading all of them (up to 300,000), the fields by
which pages filter and sort are written to these tables when the questions of a run are first opened.
"""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from climassay.evaluation.report import is_wrong
from climassay.evaluation.results import Cell, Experiment
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import Kind, Level
from climassay.records import tables
from climassay.records.database import Database
from climassay.records.queries import RunDetails, RunSummary, run_details, run_rows, run_settings
from climassay.records.store import cached_value
from climassay.web.app_state import AppState
from climassay.web.failures import NotFound
from climassay.web.results.stored_run import MANY_ROWS, StoredRun, answered_questions, count_rows, find_run_summary

_BATCH_ROWS = 5000
"""Maximum number of rows in one INSERT statement."""
_PARTLY_LOADED_TABLES = ("outcomes", "predictions", "questions", "passages")
"""Result tables of a run from which :meth:`QuestionIndex.load` reads only the rows that it needs."""

metadata = sa.MetaData()
indexes = sa.Table(
    "scored_question_indexes",
    metadata,
    sa.Column("run", sa.String(16), primary_key=True),
    sa.Column("rows", sa.Integer, nullable=False),
    comment="Runs whose questions are in the next three tables. rows: number of stored rows of the run at that time.",
)
questions = sa.Table(
    "indexed_questions",
    metadata,
    sa.Column("run", sa.String(16), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("benchmark", sa.Text, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("level", sa.String(20), nullable=False),
    sa.Column("wrong", sa.Integer, nullable=False),
    sa.Column("words", sa.Text, nullable=False),
    sa.Column("position", sa.Integer),
    sa.Index("indexed_questions_by_id", "run", "question"),
    sa.Index("indexed_questions_by_wrong", "run", "wrong", "number"),
    comment="Questions in the order of a run. wrong: wrong answers; words: searched text; position: of its row.",
)
answers = sa.Table(
    "indexed_answers",
    metadata,
    sa.Column("run", sa.String(16), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("setting", sa.Text, nullable=False),
    sa.Column("wrong", sa.Boolean, nullable=False),
    sa.Column("invalid", sa.Boolean, nullable=False),
    sa.Column("unstable", sa.Boolean, nullable=False),
    sa.Column("words", sa.Text, nullable=False),
    sa.Index("indexed_answers_by_model", "run", "model", "wrong", "number"),
    comment="Answers to these questions. invalid: failed or against the rules of an answer; unstable: option orders "
    "disagree; position: of the answer's row.",
)
scores = sa.Table(
    "indexed_scores",
    metadata,
    sa.Column("run", sa.String(16), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("score", sa.Float, nullable=False),
    comment="Scores that answers are sorted by, higher is better; answers without a score have no row.",
)


class RunColumn(NamedTuple):
    """Column of the grid of questions: one model in one setting of a run."""

    run: str
    model: str
    setting: str


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """Conditions by which the questions of a run are filtered; a question must meet all of them."""

    benchmark: str = ""
    kind: Kind | Literal[""] = ""
    level: Level | Literal[""] = ""
    text: str = ""
    """Text that the question, its reference or an answer must contain, ignoring case."""
    wrong: bool = False
    """Require at least one wrong answer."""
    model: str = ""
    """Model that must have answered. The conditions on answers then apply to this model's answers only."""
    right: RunColumn | None = None
    """Column in which the answer must be right."""
    fails: RunColumn | None = None
    """Column in which the answer must be wrong."""
    invalid: bool = False
    """Require at least one invalid answer: one whose request failed or that violates the constraints on answers."""
    unstable: bool = False
    """Require at least one model whose choice depends on the order of the options."""


class QuestionIndex:
    """Searchable index of the questions of one run. It is written to the database if it is missing or out of date."""

    _lock = threading.Lock()

    def __init__(self, app: AppState, run: RunSummary) -> None:
        self._app, self._database, self.run, self.summary = app, app.database, run.id, run
        database = self._database
        app.shared("results:question tables", lambda: database.create_tables(metadata))
        with self._lock:
            self._n_rows = count_rows(database, run.id)
            if database.scalar(sa.select(indexes.c.rows).where(indexes.c.run == run.id)) != self._n_rows:
                experiment = StoredRun(run_details(database, run.id)).experiment
                _write_index(database, run.id, experiment, self._n_rows)

    def __len__(self) -> int:
        """Return the number of questions with an answer."""
        return self._app.computed.get(("questions", self.run, self._n_rows), lambda: self.count(QuestionFilter()))

    def count(self, filters: QuestionFilter) -> int:
        """Return the number of questions that match the filters."""
        return int(self._database.scalar(self._select(sa.func.count(), filters=filters)))

    def numbers(
        self,
        filters: QuestionFilter,
        limit: int,
        *,
        offset: int = 0,
        order: Literal["", "wrong", "question"] | RunColumn = "",
        reverse: bool = False,
    ) -> list[int]:
        """Return the sorted numbers (from 0, in the order of the run) of the questions that match the filters.

        Args:
            filters: Conditions on the questions.
            limit: Maximum number of questions to return.
            offset: Number of matching questions to skip.
            order: Sort by the question's number (empty), by the number of wrong answers, largest first (``wrong``), by
                the question's id (``question``), or by the lowest score in a column. Questions without a score come
                last.
            reverse: Whether to sort in the opposite direction; ignored if ``order`` is empty.
        """
        query = self._select(questions.c.number, filters=filters)
        keys: tuple[sa.ColumnElement[Any], ...] = ()
        if isinstance(order, RunColumn):
            lowest_scores = _lowest_scores(order)
            is_same = (lowest_scores.c.question == questions.c.question) & (
                lowest_scores.c.benchmark == questions.c.benchmark
            )
            query = query.join(lowest_scores, is_same, isouter=True)
            keys = (lowest_scores.c.score.is_(None), lowest_scores.c.score.desc() if reverse else lowest_scores.c.score)
        elif order == "wrong":
            keys = (questions.c.wrong if reverse else questions.c.wrong.desc(),)
        elif order == "question":
            keys = (questions.c.question.desc() if reverse else questions.c.question,)
        page_query = query.order_by(*keys, questions.c.number).offset(offset).limit(limit)
        with self._database.read() as connection:
            return list(connection.execute(page_query).scalars())

    def numbers_by_key(self, keys: Sequence[tuple[str, str]]) -> list[int]:
        """Return the numbers of the questions with these pairs of benchmark and id; unknown pairs are left out."""
        pair = sa.tuple_(questions.c.benchmark, questions.c.question)
        query = sa.select(questions.c.number).where(questions.c.run == self.run, pair.in_(keys))
        return [row.number for row in self._database.rows(query)]

    def number(self, question: str, benchmark: str = "") -> int | None:
        """Return the number of the first question with an id, in a benchmark (any if empty); None if there is none."""
        query = sa.select(questions.c.number).where(questions.c.run == self.run, questions.c.question == question)
        if benchmark:
            query = query.where(questions.c.benchmark == benchmark)
        number: int | None = self._database.scalar(query.order_by(questions.c.number).limit(1))
        return number

    def key(self, number: int) -> tuple[str, str] | None:
        """Return the benchmark and id of the question with the given number, or None if there is none."""
        query = sa.select(questions.c.benchmark, questions.c.question)
        row = self._database.first(query.where(questions.c.run == self.run, questions.c.number == number))
        return None if row is None else (str(row.benchmark), str(row.question))

    def columns(self) -> list[RunColumn]:
        """Return the column of each model and setting, in the order of the run."""
        return [RunColumn(self.run, model, setting) for model, setting in self.choices()["columns"]]

    def choices(self) -> dict[str, list[Any]]:
        """Return the distinct values of the fields by which questions can be filtered, in the order of the run.

        Returns:
            Values by field: ``benchmark``, ``kind``, ``level``, ``model``, and ``columns`` with [model, setting] pairs.
        """
        key = ("choices", self.run, self._n_rows)

        def compute() -> dict[str, list[Any]]:
            if self._n_rows <= MANY_ROWS:
                return self._read_choices()
            choices: dict[str, list[Any]] = cached_value(self._database, key, self._read_choices)
            return choices

        return self._app.computed.get(key, compute)

    def _read_choices(self) -> dict[str, list[Any]]:
        with self._database.read() as connection:
            columns_query = sa.select(answers.c.model, answers.c.setting).where(answers.c.run == self.run)
            ordered_columns_query = columns_query.group_by(answers.c.model, answers.c.setting).order_by(
                sa.func.min(answers.c.position)
            )
            columns = [list(row) for row in connection.execute(ordered_columns_query)]
            choices: dict[str, list[Any]] = {"columns": columns}
            for name in ("benchmark", "kind", "level"):
                values_query = sa.select(questions.c[name]).where(questions.c.run == self.run, questions.c[name] != "")
                first_position = sa.func.min(questions.c.position)
                ordered_values_query = values_query.group_by(questions.c[name]).order_by(
                    first_position, questions.c[name]
                )
                choices[name] = list(connection.execute(ordered_values_query).scalars())
        return choices | {"model": list(dict.fromkeys(model for model, _ in columns if model))}

    def load(self, numbers: Sequence[int], *, with_orders: bool = False) -> StoredRun:
        """Load the run with a subset of its questions, the answers to them, and the passages in the models' prompts.

        Args:
            numbers: Numbers of the questions to load.
            with_orders: Whether to also load the options chosen in each option order.
        """
        config, seeds, error = run_settings(self._database, self.run)
        question_positions = sa.select(questions.c.position).where(
            questions.c.run == self.run, questions.c.number.in_(numbers)
        )
        answer_positions = sa.select(answers.c.position).where(answers.c.run == self.run, answers.c.number.in_(numbers))
        with self._database.read() as connection:
            positions = {
                "questions": sorted(connection.execute(question_positions).scalars()),
                "outcomes": sorted(connection.execute(answer_positions).scalars()),
            }
        results = run_rows(self._database, self.run, tables.results.c.name.not_in(_PARTLY_LOADED_TABLES))
        for name, row_positions in positions.items():
            condition = (tables.results.c.name == name) & tables.results.c.position.in_(row_positions)
            results |= run_rows(self._database, self.run, condition)
        outcomes = results.get("outcomes", ())
        first_fields = [("passages", "id", {passage for row in outcomes for passage in row["passages"]})]
        if with_orders:
            first_fields.append(("predictions", "question", {row["question"] for row in outcomes}))
        for name, field, values in first_fields:
            # The JSON of a row starts with its first field, so rows are found by how they start.
            prefixes = (f'{{"{field}": {json.dumps(value, ensure_ascii=False)}' for value in sorted(values))
            conditions = [tables.results.c.row.startswith(prefix, autoescape=True) for prefix in prefixes]
            if conditions:
                condition = (tables.results.c.name == name) & sa.or_(*conditions)
                results |= run_rows(self._database, self.run, condition)
        return StoredRun(RunDetails(self.summary, config, seeds, error, (), results))

    def _select(self, *columns: Any, filters: QuestionFilter) -> sa.Select[Any]:
        query = sa.select(*columns).select_from(questions).where(questions.c.run == self.run)
        for name in ("benchmark", "kind", "level"):
            value = getattr(filters, name)
            query = query.where(questions.c[name] == value) if value else query
        answers_to_question = answers.select().where(answers.c.run == self.run, answers.c.number == questions.c.number)
        if filters.model:
            answers_to_question = answers_to_question.where(answers.c.model == filters.model)
        if filters.model or filters.wrong:
            query = query.where(
                (answers_to_question.where(answers.c.wrong) if filters.wrong else answers_to_question).exists()
            )
        for is_required, flag in ((filters.invalid, answers.c.invalid), (filters.unstable, answers.c.unstable)):
            if is_required:
                query = query.where(answers_to_question.where(flag).exists())
        for column, has_failed in ((filters.right, False), (filters.fails, True)):
            if column is not None:
                query = query.where(_is_answered(column, wrong=has_failed))
        if filters.text:
            text = filters.text.lower()
            in_answer = answers_to_question.where(answers.c.words.contains(text, autoescape=True)).exists()
            query = query.where(questions.c.words.contains(text, autoescape=True) | in_answer)
        return query


def open_question_index(app: AppState, run: str) -> QuestionIndex:
    """Return the index of a run's questions, which is written first if necessary.

    Raises:
        NotFound: The run does not exist, or it stored no questions.
    """
    index = QuestionIndex(app, find_run_summary(app, run))
    if not len(index):
        raise NotFound(f"The run {run} has no stored questions.")
    return index


def _is_answered(column: RunColumn, *, wrong: bool) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a question has a wrong (or right) answer in a column, possibly of another run."""
    other_answers, other_questions = answers.alias(), questions.alias()
    is_same_question = (other_questions.c.run == other_answers.c.run) & (
        other_questions.c.number == other_answers.c.number
    )
    query = sa.select(sa.literal(1)).select_from(other_answers.join(other_questions, is_same_question))
    return query.where(
        other_questions.c.question == questions.c.question,
        other_questions.c.benchmark == questions.c.benchmark,
        other_answers.c.run == column.run,
        other_answers.c.model == column.model,
        other_answers.c.setting == column.setting,
        other_answers.c.wrong == wrong,
    ).exists()


def _lowest_scores(column: RunColumn) -> sa.Subquery:
    """Return a subquery with the lowest ``score`` of each question in a column, possibly of another run."""
    other_questions, other_answers = questions.alias(), answers.alias()
    is_answer = (other_answers.c.run == other_questions.c.run) & (other_answers.c.number == other_questions.c.number)
    is_score = sa.and_(*(scores.c[name] == other_answers.c[name] for name in ("run", "number", "position")))
    keys = other_questions.c.benchmark, other_questions.c.question
    query = sa.select(*keys, sa.func.min(scores.c.score).label("score"))
    scores_query = query.select_from(other_questions.join(other_answers, is_answer).join(scores, is_score))
    in_column = (
        other_answers.c.run == column.run,
        other_answers.c.model == column.model,
        other_answers.c.setting == column.setting,
    )
    return scores_query.where(*in_column).group_by(*keys).subquery()


def _write_index(database: Database, run: str, experiment: Experiment | None, n_rows: int) -> None:
    """Write the index of a run, replacing any earlier index. ``n_rows`` is the number of rows stored for the run."""
    rows_by_table = _index_rows(run, experiment) if experiment is not None else []

    def write(connection: sa.Connection) -> None:
        for table in (indexes, questions, answers, scores):
            connection.execute(table.delete().where(table.c.run == run))
        for table, rows in rows_by_table:
            for first in range(0, len(rows), _BATCH_ROWS):
                connection.execute(table.insert(), rows[first : first + _BATCH_ROWS])
        connection.execute(indexes.insert(), [{"run": run, "rows": n_rows}])

    database.write(write)


def _index_rows(run: str, experiment: Experiment) -> list[tuple[sa.Table, list[dict[str, Any]]]]:
    questions_by_key = answered_questions(experiment)
    numbers = {key: number for number, key in enumerate(questions_by_key)}
    row_keys = (
        (name, question.id)
        for name, benchmark_questions in experiment.questions.items()
        for question in benchmark_questions
    )
    row_positions = {key: position for position, key in enumerate(row_keys)}

    @cache
    def sort_metric(task: Kind, names: tuple[str, ...]) -> Metric | None:
        metrics = [metric for metric in METRICS.ordered(names) if metric.scores(task)]
        return next((metric for metric in metrics if metric.binary), metrics[0] if metrics else None)

    choices: dict[tuple[Cell, str], set[int | None]] = defaultdict(set)
    for cell, predictions in experiment.predictions.items():
        for prediction in predictions:
            choices[cell, prediction.question].add(prediction.chosen)
    answer_rows, score_rows = [], []
    n_wrong: Counter[int] = Counter()
    for position, outcome in enumerate(experiment.outcomes):
        number = numbers.get((outcome.cell.benchmark, outcome.question))
        if number is None:
            continue
        key = {"run": run, "number": number, "position": position}
        metric = sort_metric(outcome.cell.task, tuple(outcome.scores))
        if metric is not None:
            score = outcome.scores[metric.name]
            score_rows.append({**key, "score": -score if metric.is_lower_better else score})
        answer_rows.append(
            {
                **key,
                "model": outcome.cell.model,
                "setting": outcome.cell.setting,
                "wrong": is_wrong(outcome),
                "invalid": outcome.error is not None or bool(outcome.violations),
                "unstable": len(choices[outcome.cell, outcome.question]) > 1,
                "words": outcome.answer.lower(),
            }
        )
        n_wrong[number] += is_wrong(outcome)
    question_rows = [
        {
            "run": run,
            "number": number,
            "benchmark": benchmark,
            "question": question.id,
            "kind": question.kind,
            "level": question.level or "",
            "wrong": n_wrong[number],
            "words": "\n".join((question.id, question.question, question.answer, *question.options)).lower(),
            "position": row_positions[benchmark, question.id],
        }
        for number, ((benchmark, _), question) in enumerate(questions_by_key.items())
    ]
    return [(questions, question_rows), (answers, answer_rows), (scores, score_rows)]
