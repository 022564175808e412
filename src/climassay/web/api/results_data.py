"""Results in the API's words: runs, usage, tables, questions and their answers."""

from collections.abc import Sequence

from pydantic import Field, JsonValue

from climassay.evaluation.results import Outcome
from climassay.questions import Kind, Level, Question
from climassay.records.queries import ModelUsage, RunLine, UsageLine
from climassay.reporting import Table
from climassay.reporting.tables import Align, Mark
from climassay.web.api.fields import Data, Figure, Moment, Share
from climassay.web.results.stored_run import StoredRun


class RunData(Data):
    """One command that asked models, in numbers."""

    id: str = Field(examples=["r00c0ffee"])
    command: str = Field(examples=["evaluate run"])
    status: str = Field(examples=["done"])
    """`running`, `done`, `failed` or `interrupted`."""
    version: str = Field(examples=["0.7.0"])
    """Of climassay."""
    started_at: Moment
    ended_at: Moment | None
    models: list[str] = Field(examples=[["local:smollm2"]])
    """Whose answers it has."""
    asked: int = Field(examples=[240])
    """Answers asked for, failed ones included."""
    failed: int = Field(examples=[0])
    served: int = Field(examples=[12])
    """Answers of earlier runs that it was served from the records."""
    tokens: int = Field(examples=[51_200])
    """Of prompts and completions."""
    cost: Figure = Field(examples=[0.42])
    """US dollars, of what has a price; null where nothing has."""
    page: str = Field(examples=["/results/r00c0ffee"])
    """Address of its page on this server."""


class ModelUsageData(Data):
    """What was asked of one model."""

    model: str = Field(examples=["local:smollm2"])
    fingerprint: str = Field(examples=["5e1f"])
    """Hash over weights, adapter, tokenizer, template and number format."""
    answers: int = Field(examples=[240])
    failed: int = Field(examples=[0])
    attempts: int = Field(examples=[240])
    """Requests sent, retries included."""
    prompt_tokens: int = Field(examples=[48_000])
    completion_tokens: int = Field(examples=[3_200])
    reasoning_tokens: int = Field(examples=[0])
    """Of the completion tokens, those that a model thought before it answered."""
    cost: Figure = Field(examples=[None])
    """US dollars; null where it has no price."""
    unpriced: int = Field(examples=[240])
    """Answers with tokens but without a known price."""


class RunDetailsData(Data):
    """One run with how it was set up and what it used."""

    run: RunData
    config: dict[str, JsonValue] = Field(examples=[{"seed": 0}])
    """As the command understood it; depends on the command."""
    seeds: dict[str, JsonValue] = Field(examples=[{"bootstrap": 0}])
    error: str | None = Field(examples=[None])
    """Why it failed."""
    usage: list[ModelUsageData]
    stored: dict[str, int] = Field(examples=[{"outcomes": 240, "cells": 6}])
    """Rows that it stored, by the name of their table."""


class MarkData(Data):
    """A cell that is set off."""

    row: int = Field(examples=[0])
    """From 0."""
    column: int = Field(examples=[3])
    marks: list[Mark] = Field(examples=[["best"]])


class ColumnData(Data):
    """A column of a table."""

    heading: str = Field(examples=["MCQ Overall n=120"])
    align: Align = Field(examples=["right"])


class TableData(Data):
    """A table as the run's page shows it."""

    number: int = Field(examples=[1])
    """From 1, in the order of the page."""
    section: str = Field(examples=["Scores"])
    title: str = Field(examples=["Multiple choice and cloze"])
    note: str = Field(examples=["Behind ±: how far the farther end of the 95% interval lies."])
    columns: list[ColumnData]
    rows: list[list[str]] = Field(examples=[[["small", "default", "41.7"]]])
    """Cells as they are shown."""
    strong: list[int] = Field(examples=[[]])
    """Rows that are set off, from 0."""
    marks: list[MarkData]


class QuestionData(Data):
    """A question that was asked, with how its answers did."""

    number: int = Field(examples=[0])
    """In the run, from 0; `GET /api/v1/runs/{run}/questions/{number}` has the answers."""
    benchmark: str = Field(examples=["primer"])
    id: str = Field(examples=["mcq-17"])
    kind: Kind = Field(examples=["mcq"])
    level: Level | None = Field(examples=["base"])
    question: str = Field(examples=["What drives the seasonal cycle of carbon dioxide?"])
    """Of a cloze statement with `<MASK>`."""
    answer: str = Field(examples=["Growth and decay of plants"])
    """The reference."""
    options: list[str] = Field(examples=[["Volcanoes", "Growth and decay of plants"]])
    correct: int | None = Field(examples=[1])
    """Index of the correct option, from 0."""
    answers: int = Field(examples=[6])
    """Of the models."""
    wrong: int = Field(examples=[2])


class AnswerData(Data):
    """What one model said in one setting."""

    model: str = Field(examples=["small"])
    setting: str = Field(examples=["default"])
    answer: str = Field(examples=["Volcanoes"])
    chosen: int | None = Field(examples=[0])
    """Multiple choice: index of the chosen option."""
    probability: Figure = Field(examples=[0.61])
    """Of the chosen option among the options, where it is known."""
    wrong: bool = Field(examples=[True])
    scores: dict[str, Figure] = Field(examples=[{"accuracy": 0.0}])
    """By metric."""
    violations: list[str] = Field(examples=[[]])
    """Rules of the answer that were not kept."""
    passages: list[str] = Field(examples=[["3f2a9c1d-4"]])
    """Ids of what the model was given."""
    error: str | None = Field(examples=[None])


class AnsweredQuestionData(Data):
    """A question with everything that was said to it."""

    question: QuestionData
    context: str | None = Field(examples=["Plants take up carbon dioxide in summer."])
    """The text that it was made from."""
    answers: list[AnswerData]
    passages: dict[str, str] = Field(examples=[{"3f2a9c1d-4": "Plants take up carbon dioxide in summer."}])
    """Texts that models were given, by id."""


class CellScoreData(Data):
    """One model in one setting of one run."""

    run: str = Field(examples=["r00c0ffee"])
    benchmark: str = Field(examples=["primer"])
    model: str = Field(examples=["small"])
    setting: str = Field(examples=["default"])
    score: Share


class CellTestData(Data):
    """Two cells of different runs, on the questions that both were asked."""

    first: int = Field(examples=[0])
    """Place in `scores`."""
    second: int = Field(examples=[1])
    difference: Share
    """Mean of second minus first."""
    p_value: float = Field(examples=[0.04])
    p_holm: float = Field(examples=[0.12])
    """Adjusted over all tests of the comparison."""


class ComparisonData(Data):
    """One metric of several runs."""

    metric: str = Field(examples=["accuracy"])
    level: str = Field(examples=["overall"])
    scores: list[CellScoreData]
    tests: list[CellTestData]


class UsageData(Data):
    """What was used by one model, by one command or on one day."""

    name: str = Field(examples=["local:smollm2"])
    """The model, the command, or the day (UTC)."""
    answers: int = Field(examples=[240])
    """Asked for, failed ones included."""
    failed: int = Field(examples=[0])
    served: int = Field(examples=[12])
    """From the records instead."""
    attempts: int = Field(examples=[240])
    prompt_tokens: int = Field(examples=[48_000])
    completion_tokens: int = Field(examples=[3_200])
    reasoning_tokens: int = Field(examples=[0])
    """Of the completion tokens, those that a model thought before it answered."""
    cost: Figure = Field(examples=[None])
    """US dollars, of what has a price; null where nothing has."""
    unpriced: int = Field(examples=[240])


def run_data(line: RunLine) -> RunData:
    """A run as it is answered."""
    one = line.summary
    return RunData.model_validate(
        {
            "id": one.id,
            "command": one.command,
            "status": one.status,
            "version": one.version,
            "started_at": one.started_at,
            "ended_at": one.ended_at,
            "models": list(line.models),
            "asked": one.asked,
            "failed": one.failed,
            "served": one.served,
            "tokens": line.tokens,
            "cost": one.cost,
            "page": f"/results/{one.id}",
        }
    )


def model_usage_data(used: ModelUsage) -> ModelUsageData:
    """Usage by a model as it is answered."""
    return ModelUsageData(**{name: getattr(used, name) for name in ModelUsageData.model_fields})


def usage_data(line: UsageLine) -> UsageData:
    """A line of usage as it is answered."""
    return UsageData(**{name: getattr(line, name) for name in UsageData.model_fields})


def table_data(number: int, section: str, table: Table) -> TableData:
    """A table as it is answered."""
    return TableData(
        number=number,
        section=section,
        title=table.title,
        note=table.note,
        columns=[ColumnData(heading=one.label, align=one.align) for one in table.columns],
        rows=[list(row) for row in table.rows],
        strong=sorted(table.strong),
        marks=[
            MarkData(row=row, column=column, marks=sorted(found))
            for (row, column), found in sorted(table.marks.items())
        ],
    )


def question_data(
    number: int, benchmark: str, question: Question, outcomes: Sequence[Outcome], wrong: int
) -> QuestionData:
    """A question as it is answered."""
    return QuestionData(
        number=number,
        benchmark=benchmark,
        id=question.id,
        kind=question.kind,
        level=question.level,
        question=question.question,
        answer=question.answer,
        options=list(question.options),
        correct=question.correct,
        answers=len(outcomes),
        wrong=wrong,
    )


def answer_data(outcome: Outcome, *, wrong: bool) -> AnswerData:
    """An answer of a model as it is answered."""
    return AnswerData(
        model=outcome.cell.model,
        setting=outcome.cell.setting,
        answer=outcome.answer,
        chosen=outcome.chosen,
        probability=outcome.probability,
        wrong=wrong,
        scores=dict(outcome.scores),
        violations=list(outcome.violations),
        passages=list(outcome.passages),
        error=outcome.error,
    )


def given_passages(stored: StoredRun, outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Texts of the passages that answers rest on, by id; those whose text was not kept are left out."""
    texts = stored.experiment.passages if stored.experiment else {}
    return {name: texts[name] for outcome in outcomes for name in outcome.passages if name in texts}
