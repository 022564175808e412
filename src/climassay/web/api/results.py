"""Results in the API: runs, their tables as data, questions one by one, comparisons, usage, generated datasets."""

import json
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from fastapi import Path, Query
from pydantic import AfterValidator, AliasPath, BeforeValidator, Field, JsonValue

from climassay.evaluation.report import is_wrong
from climassay.generation import Draft
from climassay.generation.dataset_results import dataset_stats
from climassay.generation.dataset_store import State
from climassay.generation.draft import draft_row
from climassay.grounding.references import ReferenceStatus
from climassay.grounding.text_check import Status as SentenceStatus
from climassay.questions import Kind, Level
from climassay.questions.types.longform.rubric import CriterionVerdict
from climassay.records import tables
from climassay.records.queries import UsageGroup, run_lines, run_settings, usage_by, usage_by_model
from climassay.reporting import Table
from climassay.reporting.tables import Align, Mark
from climassay.web.access import Adjudicator, Annotator, Reader
from climassay.web.api.base import (
    NO_NUL,
    PRINTABLE,
    AfterName,
    AfterNumber,
    CriterionData,
    Data,
    Extended,
    Figure,
    Limit,
    Listed,
    Moment,
    Share,
    area,
    field,
    first_of,
    named,
    part_of,
    whole,
)
from climassay.web.app_state import App
from climassay.web.failures import Missing
from climassay.web.results.pages import MOST_RUNS, compared, dataset_store, marks_of, placed_drafts
from climassay.web.results.questions import QuestionFilter, grid_columns, grid_rows, index_of
from climassay.web.results.stored_run import StoredRun, found_run, found_summary

router = area("", "results")
datasets = area("/datasets", "datasets")
RunId = Annotated[str, named("Id of the run.", "r00c0ffee")]
DatasetName = Annotated[str, named("Name of the dataset.", "clouds")]
Word = Annotated[str, Query(pattern=NO_NUL, max_length=200)]


class RunData(Data):
    """One command that asked models, in numbers."""

    id: str = field("r00c0ffee", validation_alias=AliasPath("summary", "id"))
    command: str = field("evaluate run", validation_alias=AliasPath("summary", "command"))
    status: str = field("done", validation_alias=AliasPath("summary", "status"))
    """`running`, `done`, `failed` or `interrupted`."""
    version: str = field("0.7.0", "Version of climassay.", validation_alias=AliasPath("summary", "version"))
    started_at: Moment = Field(validation_alias=AliasPath("summary", "started_at"))
    ended_at: Moment | None = Field(validation_alias=AliasPath("summary", "ended_at"))
    models: list[str] = field(["local:smollm2"], "Whose answers it has.")
    asked: int = field(240, "Answers asked for, failed ones included.", validation_alias=AliasPath("summary", "asked"))
    failed: int = field(0, validation_alias=AliasPath("summary", "failed"))
    served: int = field(12, validation_alias=AliasPath("summary", "served"))
    """Answers of earlier runs that it was served from the records."""
    tokens: int = field(51_200, "Tokens of prompts and completions.")
    cost: Figure = field(0.42, validation_alias=AliasPath("summary", "cost"))
    """US dollars, of what has a price; null where nothing has."""
    page: Annotated[str, AfterValidator("/results/{}".format)] = Field(
        validation_alias=AliasPath("summary", "id"), examples=["/results/r00c0ffee"]
    )
    """Address of its page on this server."""


class ModelUsageData(Data):
    """What was asked of one model."""

    model: str = field("local:smollm2")
    fingerprint: str = field("5e1f", "Hash over weights, adapter, tokenizer, template and number format.")
    answers: int = field(240)
    failed: int = field(0)
    attempts: int = field(240, "Requests sent, retries included.")
    prompt_tokens: int = field(48_000)
    completion_tokens: int = field(3_200)
    reasoning_tokens: int = field(0, "Completion tokens that the model spent on reasoning before its answer.")
    cost: Figure = field(None, "US dollars; null where it has no price.")
    unpriced: int = field(240, "Answers with tokens but without a known price.")


class RunDetailsData(Data):
    """One run with how it was set up and what it used."""

    run: RunData
    config: dict[str, JsonValue] = field({"seed": 0}, "As the command understood it; depends on the command.")
    seeds: dict[str, JsonValue] = field({"bootstrap": 0})
    error: str | None = field(None, "Why it failed.")
    usage: list[ModelUsageData]
    stored: dict[str, int] = field({"outcomes": 240, "cells": 6}, "Rows that it stored, by the name of their table.")


class MarkData(Data):
    """A cell that is set off."""

    row: int = field(0, "From 0.")
    column: int = field(3)
    marks: list[Mark] = field(["best"])


class ColumnData(Data):
    """A column of a table."""

    heading: str = field("MCQ Overall n=120", validation_alias="label")
    align: Align = field("right")


class TableData(Data):
    """A table as the run's page shows it."""

    number: int = field(1, "From 1, in the order of the page.")
    section: str = field("Scores")
    title: str = field("Multiple choice and cloze")
    note: str = field("In brackets: 95% intervals.")
    columns: list[ColumnData]
    rows: list[list[str]] = field([["small", "default", "41.7"]], "Cells as they are shown.")
    strong: list[int] = field([], "Rows that are set off, from 0.")
    marks: list[MarkData]


class AskedData(Data):
    """A question that was asked."""

    number: int = field(0, "In the run, from 0; `GET /api/v1/runs/{run}/questions/{number}` has the answers.")
    benchmark: str = field("primer")
    id: str = field("mcq-17")
    kind: Kind = field("mcq")
    level: Level | None = field("base")
    question: str = field("What drives the seasonal cycle of carbon dioxide?", "A cloze statement has `<MASK>`.")


class QuestionData(AskedData):
    """A question that was asked, with how its answers did."""

    answer: str = field("Growth and decay of plants", "The reference.")
    options: list[str] = field(["Volcanoes", "Growth and decay of plants"])
    correct: int | None = field(1, "Index of the correct option, from 0.")
    audience: str = field("", "Long answers: for whom they are; empty where nobody is named.")
    rubric: list[CriterionData]
    """Long answers: what a good one says."""
    answers: int = field(6, "Number of answers by models.")
    wrong: int = field(2)


class JudgedCriterionData(Data):
    """What a judge says of one criterion of the rubric."""

    verdict: CriterionVerdict = field("partly met")
    reason: str = field("It names the gas and not the effect.")
    quotation: str = field("CO2 is rising.", "From the answer; empty where nothing is quoted.")
    quoted: bool = field(True, "Whether the quotation stands in the answer.")


class RatingData(Data):
    """What a judge says of one dimension of adequacy."""

    dimension: str = field("accuracy")
    rating: float = field(4.0, "From 1 (not usable) to 5 (no fault).")
    reason: str = field("All figures are right.")
    issues: list[str] = field(["vague"])
    quotation: str = field("")
    quoted: bool = field(True)


class AssessmentData(Data):
    """What a judge says of a long answer."""

    criteria: list[JudgedCriterionData]
    """In the order of the rubric; empty without one, and where the judge failed."""
    ratings: list[RatingData]
    """Empty where the judge failed."""
    errors: list[str] = field([], "Why the judge failed.")


class ReferenceData(Data):
    """A reference of an answer, and whether what it points to exists."""

    text: str = field("[1]")
    status: ReferenceStatus = field("exists")
    reason: str = field("It is the first passage that was given.")
    document: str | None = field("Physical climate", "Title of the document of the collections that it names.")


class PointData(Data):
    """A sentence of a long answer, and what the collections say of it."""

    text: str = field("The stratosphere cools.")
    status: SentenceStatus = field("supported")
    reason: str = field("A passage says so.")
    references: list[ReferenceData]


class AnswerData(Data):
    """What one model said in one setting."""

    model: str = field("small")
    setting: str = field("default")
    answer: str = field("Volcanoes")
    chosen: int | None = field(0, "Multiple choice: index of the chosen option.")
    probability: Figure = field(0.61, "Probability of the chosen option among all options, where it is known.")
    wrong: bool = field(True)
    scores: dict[str, Figure] = field({"accuracy": 0.0}, "By metric.")
    violations: list[str] = field([], "Rules of the answer that were not kept.")
    passages: list[str] = field(["3f2a9c1d-4"], "Ids of what the model was given.")
    assessment: AssessmentData | None
    """Long answers: what the judge says, behind the scores; null without a judge."""
    points: list[PointData]
    """Long answers: their sentences, where collections were named to look them up in."""
    error: str | None = field(None)


class GridColumnData(Data):
    """One model in one setting of a run."""

    run: str = field("r00c0ffee")
    model: str = field("small")
    setting: str = field("default")


class GridCellData(Data):
    """An answer in the grid of questions."""

    wrong: bool = field(True)
    failed: Annotated[bool, BeforeValidator(lambda error: error is not None)] = field(False, validation_alias="error")
    scores: dict[str, Figure] = field(
        {"accuracy": 0.25}, "By metric; accuracy over several option orders is their mean."
    )
    violations: list[str] = field([], "Rules of the answer that were not kept.")


class GridRowData(AskedData):
    """A question with an answer by each column."""

    cells: list[GridCellData | None]
    """One per column; null where the question was not asked there."""


class GridData(Listed[GridRowData]):
    """Questions by models and settings, of one run or of two."""

    columns: list[GridColumnData]


class AnsweredQuestionData(Data):
    """A question with everything that was said to it."""

    question: QuestionData
    context: str | None = field("Plants take up carbon dioxide in summer.", "The text that it was made from.")
    answers: list[AnswerData]
    passages: dict[str, str] = field({"3f2a9c1d-4": "Plants take up carbon dioxide in summer."})
    """Texts that models were given, by id."""


class CellScoreData(Data):
    """One model in one setting of one run."""

    run: str = field("r00c0ffee")
    benchmark: str = field("primer", validation_alias=AliasPath("cell", "benchmark"))
    model: str = field("small", validation_alias=AliasPath("cell", "model"))
    setting: str = field("default", validation_alias=AliasPath("cell", "setting"))
    score: Share = Field(validation_alias="estimate")


class CellTestData(Data):
    """Two cells of different runs, on the questions that both were asked."""

    first: int = field(0, "Place in `scores`.")
    second: int = field(1)
    difference: Share
    """Mean of second minus first."""
    p_value: float = field(0.04)
    p_holm: float = field(0.12, "Adjusted over all tests of the comparison.")


class ComparisonData(Data):
    """One metric of several runs."""

    metric: str = field("accuracy")
    level: str = field("overall")
    scores: list[CellScoreData]
    tests: list[CellTestData]


class UsageData(Data):
    """What was used by one model, by one command or on one day."""

    name: str = field("local:smollm2", "The model, the command, or the day (UTC).")
    answers: int = field(240, "Asked for, failed ones included.")
    failed: int = field(0)
    served: int = field(12, "From the records instead.")
    attempts: int = field(240)
    prompt_tokens: int = field(48_000)
    completion_tokens: int = field(3_200)
    reasoning_tokens: int = field(0, "Completion tokens that the model spent on reasoning before its answer.")
    cost: Figure = field(None, "US dollars, of what has a price; null where nothing has.")
    unpriced: int = field(240)


class DatasetData(Data):
    """A dataset of generated questions."""

    name: str = field("clouds")
    made_at: Moment
    drafts: dict[State, int] = field({"accepted": 40, "rejected": 18, "failed": 2}, validation_alias="states")
    """By what became of them, as the line left them."""
    page: Annotated[str, AfterValidator("/results/datasets/{}".format)] = Field(
        validation_alias="name", examples=["/results/datasets/clouds"]
    )
    """Address of its page on this server."""


class YieldData(Data):
    """What came of one kind and level."""

    kind: Kind = field("mcq")
    level: Level = field("base")
    asked: int = field(30)
    accepted: int = field(21)
    failed: int = field(1, "Never written.")


class RemovalData(Data):
    """Why drafts were rejected."""

    step: str = field("screen")
    reason: str = field("off topic")
    drafts: dict[Kind, int] = field({"mcq": 3}, "By kind.")


class DatasetStatsData(Data):
    """A dataset in numbers, experts' decisions included."""

    dataset: DatasetData
    accepted: int = field(40, "Questions of all kinds.")
    streams: list[YieldData]
    removed: list[RemovalData]
    failures: dict[str, int] = field({"the model's answer was cut off": 2})
    """Drafts that were never written, by what went wrong."""
    sources: dict[str, int] = field({"Clouds and Climate": 40}, "Accepted questions by title of the source.")


def _row(given: Any) -> Any:
    """A draft as JSON writes it: tuples become lists."""
    return json.loads(json.dumps(draft_row(given))) if isinstance(given, Draft) else given


class DraftData(Data):
    """A generated question, with everything that was decided about it."""

    id: str = field("q0123456789ab", validation_alias=AliasPath("draft", "id"))
    kind: Kind = field("freeform", validation_alias=AliasPath("draft", "kind"))
    level: Level = field("base", validation_alias=AliasPath("draft", "level"))
    state: State = field("accepted")
    draft: Annotated[dict[str, JsonValue], BeforeValidator(_row)] = Field(
        examples=[{"wording": {"question": "Why?", "answer": "Because."}}]
    )
    """As `climassay generate export` writes it: wording, passages, origin, decisions."""


@router.get("/runs", response_model=Listed[RunData])
def list_runs(
    app: App,
    user: Reader,
    command: Annotated[Word, Query(description="Only runs of this command.", examples=["evaluate run"])] = "",
    text: Annotated[Word, Query(description="In the id, the command or the configuration, whatever its case.")] = "",
    limit: Limit = 50,
    after: AfterName = None,
) -> dict[str, Any]:
    """All runs that fit, the newest first."""
    found = run_lines(app.database, command=command, text=text, most=limit + 1, after=after)
    return first_of(found, limit, lambda one: one.summary.id)


@router.get("/runs/compare", response_model=ComparisonData)
def compare_several_runs(
    app: App,
    user: Reader,
    run: Annotated[
        list[Annotated[str, Query(pattern=PRINTABLE, max_length=64)]],
        Query(description="Ids of runs, in the order of the answer.", min_length=1, max_length=MOST_RUNS),
    ],
    metric: Annotated[str, Query(description="What is compared.", pattern=PRINTABLE, max_length=120)],
    level: Annotated[
        Literal["overall", "base", "reasoning", "hypothetical"], Query(description="Level of the questions.")
    ] = "overall",
) -> Extended:
    """One metric of several runs, with paired tests on the questions that they share."""
    found = compared(app, list(dict.fromkeys(run)), metric, level)
    places = {id(score): number for number, score in enumerate(found.scores)}
    tests = [Extended(one.result, first=places[id(one.first)], second=places[id(one.second)]) for one in found.tests]
    return Extended(found, tests=tests)


@router.get("/runs/{run}", response_model=RunDetailsData)
def get_run(app: App, user: Reader, run: RunId) -> dict[str, Any]:
    """One run: how it was set up, what it used, and what it stored."""
    found_summary(app, run)
    [line] = run_lines(app.database, run=run, most=1)
    config, seeds, error = run_settings(app.database, run)
    name = tables.results.c.name
    query = sa.select(name, sa.func.count()).where(tables.results.c.run == run).group_by(name).order_by(name)
    stored = {table: int(count) for table, count in app.database.rows(query)}
    usage = usage_by_model(app.database, run)
    return {"run": line, "config": config, "seeds": seeds, "error": error, "usage": usage, "stored": stored}


@router.get("/runs/{run}/tables", response_model=Listed[TableData])
def list_tables(
    app: App,
    user: Reader,
    run: RunId,
    published: Annotated[
        Literal["", "gold", "silver"], Query(description="Results of the paper to show beside an experiment's.")
    ] = "",
) -> dict[str, Any]:
    """The tables of a run's page, computed from what it stored."""
    sections = found_run(app, run).report(published).sections
    blocks = ((section.heading, block) for section in sections for block in section.blocks)
    return whole(
        [
            Extended(block, number=number, section=heading, strong=sorted(block.strong), marks=marks_of(block))
            for number, (heading, block) in enumerate(blocks, start=1)
            if isinstance(block, Table)
        ]
    )


@router.get("/runs/{run}/questions", response_model=Listed[QuestionData])
def list_questions(
    app: App,
    user: Reader,
    run: RunId,
    benchmark: Annotated[Word, Query(description="Only questions of this benchmark.")] = "",
    kind: Annotated[Kind | Literal[""], Query(description="Only questions of this kind.")] = "",
    level: Annotated[Level | Literal[""], Query(description="Only questions of this level.")] = "",
    model: Annotated[Word, Query(description="Only this model's answers are counted.")] = "",
    wrong: Annotated[bool, Query(description="Only questions with a wrong answer.")] = False,
    text: Annotated[Word, Query(description="In the question, its reference or an answer.")] = "",
    limit: Limit = 50,
    after: AfterNumber = -1,
) -> dict[str, Any]:
    """The questions of an evaluation, in its order; `after` is the number of the last one."""
    index = index_of(app, run)
    wanted = QuestionFilter(benchmark, kind, level, model, wrong, text.strip())
    part = first_of(index.numbers(wanted, limit + 1, after=after), limit, lambda number: number)
    stored = index.part(part["items"])
    numbered = zip(part["items"], stored.questions, strict=True)
    return part | {"items": [_question(stored, number, key, model) for number, key in numbered]}


@router.get("/runs/{run}/grid", response_model=GridData)
def get_grid(
    app: App,
    user: Reader,
    run: RunId,
    beside: Annotated[Word, Query(description="Id of another run, whose columns follow.")] = "",
    benchmark: Annotated[Word, Query(description="Only questions of this benchmark.")] = "",
    kind: Annotated[Kind | Literal[""], Query(description="Only questions of this kind.")] = "",
    level: Annotated[Level | Literal[""], Query(description="Only questions of this level.")] = "",
    text: Annotated[Word, Query(description="In the question, its reference or an answer.")] = "",
    right: Annotated[
        int | None, Query(description="Only questions answered rightly in this column, from 0.", ge=0)
    ] = None,
    fails: Annotated[
        int | None, Query(description="Only questions answered wrongly in this column, from 0.", ge=0)
    ] = None,
    wrong: Annotated[bool, Query(description="Only questions with a wrong answer.")] = False,
    invalid: Annotated[bool, Query(description="Only questions with a failed or invalid answer.")] = False,
    unstable: Annotated[bool, Query(description="Only questions on whose option orders a model disagrees.")] = False,
    limit: Limit = 50,
    after: AfterNumber = -1,
) -> dict[str, Any]:
    """Questions that fit, with every model and setting of the run, and of another run; `after` is the last number."""
    index, other, columns = grid_columns(app, run, beside)
    unknown = [place for place in (right, fails) if place is not None and place >= len(columns)]
    if unknown:
        raise Missing(f"The grid has {len(columns)} columns, numbered from 0; there is no column {unknown[0]}.")
    good, bad = (None if place is None else columns[place] for place in (right, fails))
    wanted = QuestionFilter(benchmark, kind, level, "", wrong, text.strip(), good, bad, invalid, unstable)
    part = first_of(index.numbers(wanted, limit + 1, after=after), limit, lambda number: number)
    rows = [
        Extended(
            row.question,
            number=row.number,
            benchmark=row.key[0],
            cells=[cell and Extended(cell.outcome, wrong=is_wrong(cell.outcome)) for cell in row.cells],
        )
        for row in grid_rows(index, other, part["items"])
    ]
    return part | {"items": rows, "columns": [one._asdict() for one in columns]}


@router.get("/runs/{run}/questions/{number}", response_model=AnsweredQuestionData)
def get_question(
    app: App,
    user: Reader,
    run: RunId,
    number: Annotated[int, Path(description="Number of the question, from 0.", ge=0, le=2**31 - 1, examples=[0])],
) -> dict[str, Any]:
    """One question with every answer to it, its scores, and what the models were given."""
    index = index_of(app, run)
    if number >= len(index):
        raise Missing(f"The run {run} has {len(index)} questions, numbered from 0.")
    stored = index.part([number])
    [(key, asked)] = stored.questions.items()
    outcomes = stored.outcomes[key]
    texts = stored.experiment.passages if stored.experiment else {}
    answers = [Extended(one, model=one.cell.model, setting=one.cell.setting, wrong=is_wrong(one)) for one in outcomes]
    return {
        "question": _question(stored, number, key, ""),
        "context": asked.context,
        "answers": answers,
        "passages": {name: texts[name] for one in outcomes for name in one.passages if name in texts},
    }


def _question(stored: StoredRun, number: int, key: tuple[str, str], model: str) -> Extended:
    ours = [outcome for outcome in stored.outcomes[key] if model in ("", outcome.cell.model)]
    counted = {"answers": len(ours), "wrong": sum(map(is_wrong, ours))}
    return Extended(stored.questions[key], number=number, benchmark=key[0], **counted)


@router.get("/usage", response_model=Listed[UsageData])
def list_usage(
    app: App, user: Annotator, by: Annotated[UsageGroup, Query(description="What is added up.")] = "model"
) -> dict[str, Any]:
    """What all runs used: tokens, cost, failures, and what the records saved."""
    return whole(usage_by(app.database, by))


@datasets.get("", response_model=Listed[DatasetData])
def list_datasets(app: App, user: Reader, limit: Limit = 50, after: AfterName = None) -> dict[str, Any]:
    """All generated datasets, by name."""
    return part_of(dataset_store(app).list(), limit, lambda one: one.name, after)


@datasets.get("/{dataset}", response_model=DatasetStatsData)
def get_dataset(app: App, user: Reader, dataset: DatasetName) -> dict[str, Any]:
    """Yield by kind and level, reasons for rejection, sources."""
    stats = dataset_stats(dataset, placed_drafts(app, dataset))
    return {
        "dataset": next(one for one in dataset_store(app).list() if one.name == dataset),
        "accepted": stats.accepted,
        "streams": [Extended(one, kind=stream.kind, level=stream.level) for stream, one in stats.streams.items()],
        "removed": [
            {"step": step, "reason": reason, "drafts": dict(kinds)} for (step, reason), kinds in stats.reasons.items()
        ],
        "failures": dict(stats.failures),
        "sources": {title: counts.total() for title, counts in stats.books.items()},
    }


@datasets.get("/{dataset}/drafts", response_model=Listed[DraftData])
def list_drafts(
    app: App,
    user: Adjudicator,
    dataset: DatasetName,
    state: Annotated[State | Literal[""], Query(description="Only drafts of which this became.")] = "",
    limit: Limit = 50,
    after: AfterName = None,
) -> dict[str, Any]:
    """The drafts of a dataset by id, with what the line and the experts decided.

    Experts' words are in them, which is why they are not for annotators who have yet to judge.
    """
    fitting = [one for one in placed_drafts(app, dataset) if state in ("", one.state)]
    return part_of(fitting, limit, lambda one: one.draft.id, after)
