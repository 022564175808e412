"""Tables of the questions and answers of runs, which pages filter and sort.

A run stores its answers as JSON rows. To filter 300,000 of them a page would have to read them all, so the fields that
pages filter by are written into these tables when somebody first opens the questions of a run.
"""

from collections import Counter, defaultdict
from functools import cache
from typing import Any

import sqlalchemy as sa

from climassay.evaluation.report import is_wrong
from climassay.evaluation.results import Cell, Experiment
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import Kind, Question
from climassay.records import tables
from climassay.records.database import Database
from climassay.records.store import cached

MANY_ROWS = 4000
"""Number of stored rows of a run above which the content of its pages is cached in the records."""
_INSERTED = 5000
"""Rows of one statement."""
metadata = sa.MetaData()
indexes = sa.Table(
    "scored_question_indexes",
    metadata,
    sa.Column("run", sa.String(16), primary_key=True),
    sa.Column("rows", sa.Integer, nullable=False),
    comment="Runs whose questions are in the next three tables. rows: stored rows of the run at that time.",
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
    comment="Questions in the order of a run. wrong: answers that are; words: what a search looks in; position: of its "
    "row.",
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
    comment="What answers are sorted by, a higher score being the better one; answers without a score have no row.",
)


def count_rows(database: Database, run: str) -> int:
    """Rows of all tables that a run stored."""
    ours = sa.select(sa.func.count()).select_from(tables.results).where(tables.results.c.run == run)
    with database.read() as connection:
        return int(connection.execute(ours).scalar_one())


def answered_questions(experiment: Experiment | None) -> dict[tuple[str, str], Question]:
    """Questions with an answer, by benchmark and id, in their order."""
    if experiment is None:
        return {}
    answered = {(one.cell.benchmark, one.question) for one in experiment.outcomes}
    asked = experiment.questions.items()
    return {(name, one.id): one for name, listed in asked for one in listed if (name, one.id) in answered}


def answer_choices(database: Database, run: str, rows: int) -> dict[str, list[Any]]:
    """What the indexed questions and answers of a run can be filtered by, in the order in which it first comes.

    Args:
        database: Where they are.
        run: Id of the run.
        rows: Rows that it stored; of a large run this is computed once.

    Returns:
        Values by ``benchmark``, ``kind``, ``level`` and ``model``; in ``columns`` pairs of a model and a setting.
    """

    def make() -> dict[str, list[Any]]:
        first = sa.func.min(answers.c.position)
        with database.read() as connection:
            cells = sa.select(answers.c.model, answers.c.setting).where(answers.c.run == run)
            columns = connection.execute(cells.group_by(answers.c.model, answers.c.setting).order_by(first)).all()
            results: dict[str, list[Any]] = {"columns": [list(one) for one in columns]}
            for name in ("benchmark", "kind", "level"):
                values = sa.select(questions.c[name]).where(questions.c.run == run, questions.c[name] != "")
                place = sa.func.min(questions.c.position)
                ordered = values.group_by(questions.c[name]).order_by(place, questions.c[name])
                results[name] = list(connection.execute(ordered).scalars())
        return results | {"model": list(dict.fromkeys(model for model, _ in results["columns"] if model))}

    choices: dict[str, list[Any]] = cached(database, ("choices", run, rows), make) if rows > MANY_ROWS else make()
    return choices


def write_index(database: Database, run: str, experiment: Experiment | None, rows: int) -> None:
    """Write down the questions of a run, in place of what was written down before.

    Args:
        database: Where to.
        run: Id of the run.
        experiment: What it kept; None where it has no stored questions.
        rows: Rows that it stored.
    """
    asked = answered_questions(experiment)
    numbers = {key: number for number, key in enumerate(asked)}
    if experiment is None:
        experiment = Experiment(run, "", {}, (), (), {})
    # Rows of questions and answers have the positions in which :func:`save_experiment` writes them.
    saved = ((name, question.id) for name, benchmark in experiment.questions.items() for question in benchmark)
    places = {key: position for position, key in enumerate(saved)}

    @cache
    def sorted_by(task: Kind, names: tuple[str, ...]) -> Metric | None:
        metrics = [one for one in METRICS.ordered(names) if one.scores(task)]
        return next((one for one in metrics if one.binary), metrics[0] if metrics else None)

    chosen: dict[tuple[Cell, str], set[int | None]] = defaultdict(set)
    for cell, ones in experiment.predictions.items():
        for one in ones:
            chosen[cell, one.question].add(one.chosen)
    answer_rows, scored = [], []
    wrong: Counter[int] = Counter()
    for position, outcome in enumerate(experiment.outcomes):
        number = numbers.get((outcome.cell.benchmark, outcome.question))
        if number is None:
            continue
        place = {"run": run, "number": number, "position": position}
        metric = sorted_by(outcome.cell.task, tuple(outcome.scores))
        if metric is not None:
            score = outcome.scores[metric.name]
            scored.append({**place, "score": -score if metric.lower else score})
        answer_rows.append(
            {
                **place,
                "model": outcome.cell.model,
                "setting": outcome.cell.setting,
                "wrong": is_wrong(outcome),
                "invalid": outcome.error is not None or bool(outcome.violations),
                "unstable": len(chosen[outcome.cell, outcome.question]) > 1,
                "words": outcome.answer.lower(),
            }
        )
        wrong[number] += is_wrong(outcome)
    lines = [
        {
            "run": run,
            "number": number,
            "benchmark": key[0],
            "question": key[1],
            "kind": one.kind,
            "level": one.level or "",
            "wrong": wrong[number],
            "words": "\n".join((one.id, one.question, one.answer, *one.options)).lower(),
            "position": places.get(key),
        }
        for number, (key, one) in enumerate(asked.items())
    ]
    database.create_tables(metadata)

    def work(connection: sa.Connection) -> None:
        for table in (indexes, questions, answers, scores):
            connection.execute(table.delete().where(table.c.run == run))
        for table, written in ((questions, lines), (answers, answer_rows), (scores, scored)):
            for start in range(0, len(written), _INSERTED):
                connection.execute(table.insert(), written[start : start + _INSERTED])
        connection.execute(indexes.insert(), [{"run": run, "rows": rows}])

    database.write(work)
