"""Results in the API: runs, their tables as data, questions one by one, comparisons, usage, generated datasets."""

import json
from dataclasses import asdict
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from fastapi import Depends, Path, Query
from pydantic import BeforeValidator, JsonValue

from climassay.evaluation.comparing import RunComparison, RunScore
from climassay.evaluation.report import is_wrong
from climassay.evaluation.results import Outcome
from climassay.generation import Draft
from climassay.generation.dataset_results import dataset_stats
from climassay.generation.dataset_store import DatasetSummary, State
from climassay.generation.pipeline import StreamCounts
from climassay.grounding.references import CheckedReference
from climassay.grounding.text_check import CheckedSentence
from climassay.metrics.long_answers import Assessment, CriterionJudgement, DimensionRating
from climassay.questions import Kind, Level, Question
from climassay.records import queries, tables
from climassay.reporting import Table
from climassay.reporting.tables import Column, Mark
from climassay.statistics.intervals import PairedComparison
from climassay.web.access import Adjudicator, Annotator, Reader
from climassay.web.api.answers import Figure, Share, answer, at, many, page_at, said
from climassay.web.api.base import (
    NO_NUL,
    PRINTABLE,
    AfterName,
    AfterNumber,
    Extended,
    Limit,
    area,
    first_of,
    listed,
    named,
    part_of,
    whole,
)
from climassay.web.app_state import App
from climassay.web.failures import Missing
from climassay.web.results.pages import MOST_RUNS, compared, dataset_store, marks_of, placed_drafts
from climassay.web.results.questions import Column as GridColumn
from climassay.web.results.questions import GridQuery, QuestionFilter, QuestionQuery, grid_columns, grid_rows, index_of
from climassay.web.results.stored_run import StoredRun, found_run, found_summary

router = area("", "results")
datasets = area("/datasets", "datasets")
RunId = Annotated[str, named("Id of the run.", "r00c0ffee")]
DatasetName = Annotated[str, named("Name of the dataset.", "clouds")]
Word = Annotated[str, Query(pattern=NO_NUL, max_length=200)]


RunData = answer(
    "Run",
    queries.RunSummary,
    "id command status version started_at ended_at asked failed served cost",
    below="summary",
    models=said(list[str], "Whose answers it has."),
    tokens=said(int, "Tokens of prompts and completions."),
    page=page_at("/results/{}", "summary.id"),
)
USAGE = "answers failed attempts prompt_tokens completion_tokens reasoning_tokens cost unpriced"
ModelUsageData = answer("ModelUsage", queries.ModelUsage, f"model fingerprint {USAGE}")
UsageData = answer("Usage", queries.UsageRow, f"name served {USAGE}")
RunDetailsData = answer(
    "RunDetails",
    "One run with how it was set up and what it used.",
    run=RunData,
    config=said(dict[str, JsonValue], "As the command understood it; depends on the command."),
    seeds=dict[str, JsonValue],
    error=said(str | None, "Why it failed."),
    usage=many(ModelUsageData),
    stored=said(dict[str, int], "Rows that it stored, by the name of their table."),
)
MarkData = answer("Mark", "A cell that is set off.", row=said(int, "From 0."), column=int, marks=list[Mark])
ColumnData = answer("Column", Column, "align", heading=at("label", str))
TableData = answer(
    "Table",
    "A table as the run's page shows it.",
    number=said(int, "From 1, in the order of the page."),
    section=str,
    title=str,
    note=str,
    columns=many(ColumnData),
    rows=said(list[list[str]], "Cells as they are shown."),
    strong=said(list[int], "Rows that are set off, from 0."),
    marks=many(MarkData),
)
_ASKED: dict[str, Any] = {
    "number": said(int, "In the run, from 0; `GET /api/v1/runs/{run}/questions/{number}` has the answers."),
    "benchmark": str,
}
QuestionData = answer(
    "Question",
    Question,
    "id kind level question answer options correct audience rubric",
    **_ASKED,
    answers=said(int, "Number of answers by models."),
    wrong=int,
)
JudgedCriterionData = answer("JudgedCriterion", CriterionJudgement, "verdict reason quotation quoted")
RatingData = answer("Rating", DimensionRating, "dimension rating reason issues quotation quoted")
AssessmentData = answer("Assessment", Assessment, "criteria ratings errors")
ReferenceData = answer("Reference", CheckedReference, "text status reason document")
PointData = answer("Point", CheckedSentence, "text status reason references")
_SCORES = said(dict[str, Figure], "By metric; accuracy over several option orders is their mean.")
AnswerData = answer(
    "Answer",
    Outcome,
    "answer chosen probability scores violations passages assessment points error",
    model=at("cell.model", str),
    setting=at("cell.setting", str),
    wrong=bool,
    scores=_SCORES,
)
GridColumnData = answer("GridColumn", GridColumn, "run model setting")
GridCellData = answer(
    "GridCell",
    Outcome,
    "scores violations",
    wrong=bool,
    failed=at("error", Annotated[bool, BeforeValidator(lambda error: error is not None)]),
    scores=_SCORES,
)
GridRowData = answer(
    "GridRow",
    Question,
    "id kind level question",
    **_ASKED,
    cells=said(many(GridCellData | None), "One per column; null where the question was not asked there."),
)
GridData = answer(
    "Grid",
    "Questions by models and settings, of one run or of two.",
    items=many(GridRowData),
    next=said(int | None, "Value of `after` for the entries behind these; null where there are none."),
    columns=many(GridColumnData),
)
AnsweredQuestionData = answer(
    "AnsweredQuestion",
    "A question with everything that was said to it.",
    question=QuestionData,
    context=said(str | None, "The text that it was made from."),
    answers=many(AnswerData),
    passages=said(dict[str, str], "Texts that models were given, by id."),
)
CellScoreData = answer(
    "CellScore",
    RunScore,
    "run",
    benchmark=at("cell.benchmark", str),
    model=at("cell.model", str),
    setting=at("cell.setting", str),
    score=at("estimate", Share),
)
CellTestData = answer(
    "CellTest",
    PairedComparison,
    "p_value p_holm",
    first=said(int, "Place in `scores`."),
    second=int,
    difference=said(Share, "Mean of second minus first."),
)
ComparisonData = answer(
    "Comparison", RunComparison, "metric level", scores=many(CellScoreData), tests=many(CellTestData)
)
DatasetData = answer(
    "Dataset",
    DatasetSummary,
    "name made_at",
    drafts=at("states", dict[State, int], "By what became of them, as the pipeline left them."),
    page=page_at("/results/datasets/{}", "name"),
)
YieldData = answer("Yield", StreamCounts, "drafts accepted failed", kind=Kind, level=Level)
RemovalData = answer(
    "Removal", "Why drafts were rejected.", step=str, reason=str, drafts=said(dict[Kind, int], "By kind.")
)
DatasetStatsData = answer(
    "DatasetStats",
    "A dataset in numbers, experts' decisions included.",
    dataset=DatasetData,
    accepted=said(int, "Questions of all kinds."),
    streams=many(YieldData),
    removed=many(RemovalData),
    failures=said(dict[str, int], "Drafts that were never written, by what went wrong."),
    sources=said(dict[str, int], "Accepted questions by title of the source."),
)


def _row(given: Any) -> Any:
    """A draft as JSON writes it: tuples become lists."""
    return json.loads(json.dumps(asdict(given))) if isinstance(given, Draft) else given


DraftData = answer(
    "Draft",
    "A generated question, with everything that was decided about it.",
    id=at("draft.id", str),
    kind=at("draft.kind", Kind),
    level=at("draft.level", Level),
    state=State,
    draft=said(
        Annotated[dict[str, JsonValue], BeforeValidator(_row)],
        "As `climassay generate export` writes it: wording, passages, origin, decisions.",
    ),
)


@router.get("/runs", response_model=listed(RunData))
def list_runs(
    app: App,
    user: Reader,
    command: Annotated[Word, Query(description="Only runs of this command.", examples=["evaluate run"])] = "",
    text: Annotated[Word, Query(description="In the id, the command or the configuration, whatever its case.")] = "",
    limit: Limit = 50,
    after: AfterName = None,
) -> Any:
    """All runs that fit, the newest first."""
    result = queries.run_lines(app.database, command=command, text=text, most=limit + 1, after=after)
    return first_of(result, limit, lambda one: one.summary.id)


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
) -> Any:
    """One metric of several runs, with paired tests on the questions that they share."""
    result = compared(app, list(dict.fromkeys(run)), metric, level)
    places = {id(score): number for number, score in enumerate(result.scores)}
    tests = [Extended(one.result, first=places[id(one.first)], second=places[id(one.second)]) for one in result.tests]
    return Extended(result, tests=tests)


@router.get("/runs/{run}", response_model=RunDetailsData)
def get_run(app: App, user: Reader, run: RunId) -> Any:
    """One run: how it was set up, what it used, and what it stored."""
    found_summary(app, run)
    [line] = queries.run_lines(app.database, run=run, most=1)
    config, seeds, error = queries.run_settings(app.database, run)
    name = tables.results.c.name
    query = sa.select(name, sa.func.count()).where(tables.results.c.run == run).group_by(name).order_by(name)
    stored = {table: int(count) for table, count in app.database.rows(query)}
    usage = queries.usage_by_model(app.database, run)
    return {"run": line, "config": config, "seeds": seeds, "error": error, "usage": usage, "stored": stored}


@router.get("/runs/{run}/tables", response_model=listed(TableData))
def list_tables(
    app: App,
    user: Reader,
    run: RunId,
    published: Annotated[
        Literal["", "gold", "silver"], Query(description="Results of the paper to show beside an experiment's.")
    ] = "",
) -> Any:
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


@router.get("/runs/{run}/questions", response_model=listed(QuestionData))
def list_questions(
    app: App,
    user: Reader,
    run: RunId,
    asked: Annotated[QuestionQuery, Depends()],
    model: Annotated[Word, Query(description="Only this model's answers are counted.")] = "",
    limit: Limit = 50,
    after: AfterNumber = -1,
) -> Any:
    """The questions of an evaluation, in its order; `after` is the number of the last one."""
    index = index_of(app, run)
    wanted = QuestionFilter(**asdict(asked) | {"model": model, "text": asked.text.strip()})
    part = first_of(index.numbers(wanted, limit + 1, after=after), limit, lambda number: number)
    stored = index.part(part["items"])
    numbered = zip(part["items"], stored.questions, strict=True)
    return part | {"items": [_question(stored, number, key, model) for number, key in numbered]}


@router.get("/runs/{run}/grid", response_model=GridData)
def get_grid(
    app: App,
    user: Reader,
    run: RunId,
    asked: Annotated[GridQuery, Depends()],
    limit: Limit = 50,
    after: AfterNumber = -1,
) -> Any:
    """Questions that fit, with every model and setting of the run, and of another run; `after` is the last number."""
    index, other, columns = grid_columns(app, run, asked.beside)
    unknown = [place for place in (asked.right, asked.fails) if place is not None and place >= len(columns)]
    if unknown:
        raise Missing(f"The grid has {len(columns)} columns, numbered from 0; there is no column {unknown[0]}.")
    wanted = asked.filter(columns)
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
) -> Any:
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


def _question(stored: StoredRun, number: int, key: tuple[str, str], model: str) -> Any:
    ours = [outcome for outcome in stored.outcomes[key] if model in ("", outcome.cell.model)]
    counted = {"answers": len(ours), "wrong": sum(map(is_wrong, ours))}
    return Extended(stored.questions[key], number=number, benchmark=key[0], **counted)


@router.get("/usage", response_model=listed(UsageData))
def list_usage(
    app: App, user: Annotator, by: Annotated[queries.UsageGroup, Query(description="What is added up.")] = "model"
) -> Any:
    """What all runs used: tokens, cost, failures, and what the records saved."""
    return whole(queries.usage_by(app.database, by))


@datasets.get("", response_model=listed(DatasetData))
def list_datasets(app: App, user: Reader, limit: Limit = 50, after: AfterName = None) -> Any:
    """All generated datasets, by name."""
    return part_of(dataset_store(app).list(), limit, lambda one: one.name, after)


@datasets.get("/{dataset}", response_model=DatasetStatsData)
def get_dataset(app: App, user: Reader, dataset: DatasetName) -> Any:
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


@datasets.get("/{dataset}/drafts", response_model=listed(DraftData))
def list_drafts(
    app: App,
    user: Adjudicator,
    dataset: DatasetName,
    state: Annotated[State | Literal[""], Query(description="Only drafts of which this became.")] = "",
    limit: Limit = 50,
    after: AfterName = None,
) -> Any:
    """The drafts of a dataset by id, with what the line and the experts decided.

    Experts' words are in them, which is why they are not for annotators who have yet to judge.
    """
    fitting = [one for one in placed_drafts(app, dataset) if state in ("", one.state)]
    return part_of(fitting, limit, lambda one: one.draft.id, after)
