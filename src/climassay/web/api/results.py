"""Results in the API: runs, their tables as data, questions one by one, comparisons, usage."""

from typing import Annotated, Literal

import sqlalchemy as sa
from fastapi import Path, Query

from climassay.evaluation.report import is_wrong
from climassay.metrics.registry import METRICS
from climassay.questions import Kind, Level
from climassay.records import tables
from climassay.records.queries import UsageGroup, run_lines, run_settings, usage_by, usage_by_model
from climassay.reporting import Table
from climassay.web.access import Annotator, Reader
from climassay.web.api.fields import (
    NO_NUL,
    PRINTABLE,
    AfterName,
    AfterNumber,
    Limit,
    Listed,
    named,
    share,
)
from climassay.web.api.results_data import (
    AnsweredQuestionData,
    CellScoreData,
    CellTestData,
    ComparisonData,
    QuestionData,
    RunData,
    RunDetailsData,
    TableData,
    UsageData,
    answer_data,
    given_passages,
    model_usage_data,
    question_data,
    run_data,
    table_data,
    usage_data,
)
from climassay.web.api.routing import area
from climassay.web.failures import Missing
from climassay.web.place import Place, PlaceHere
from climassay.web.results.comparing import MOST_RUNS
from climassay.web.results.comparisons import compared
from climassay.web.results.question_index import QuestionFilter
from climassay.web.results.questions import index_of
from climassay.web.results.runs import found_run, found_summary
from climassay.web.results.stored_run import StoredRun

router = area("", "results")
RunId = Annotated[str, named("Id of the run.", "r00c0ffee")]
Word = Annotated[str, Query(pattern=NO_NUL, max_length=200)]


@router.get("/runs")
def list_runs(
    place: PlaceHere,
    user: Reader,
    command: Annotated[Word, Query(description="Only runs of this command.", examples=["evaluate run"])] = "",
    text: Annotated[Word, Query(description="In the id, the command or the configuration, whatever its case.")] = "",
    limit: Limit = 50,
    after: AfterName = None,
) -> Listed[RunData]:
    """All runs that fit, the newest first."""
    found = run_lines(place.database, command=command, text=text, most=limit + 1, after=after)
    shown = found[:limit]
    return Listed(items=[run_data(one) for one in shown], next=shown[-1].summary.id if len(found) > limit else None)


@router.get("/runs/compare")
def compare_several_runs(
    place: PlaceHere,
    user: Reader,
    run: Annotated[
        list[Annotated[str, Query(pattern=PRINTABLE, max_length=64)]],
        Query(description="Ids of runs, in the order of the answer.", min_length=1, max_length=MOST_RUNS),
    ],
    metric: Annotated[Literal[*METRICS], Query(description="What is compared.")],  # type: ignore[valid-type]
    level: Annotated[
        Literal["overall", "base", "reasoning", "hypothetical"], Query(description="Level of the questions.")
    ] = "overall",
) -> ComparisonData:
    """One metric of several runs, with paired tests on the questions that they share."""
    found = compared(place, list(dict.fromkeys(run)), metric, level)
    places = {id(score): number for number, score in enumerate(found.scores)}
    return ComparisonData(
        metric=metric,
        level=level,
        scores=[
            CellScoreData(
                run=one.run,
                benchmark=one.cell.benchmark,
                model=one.cell.model,
                setting=one.cell.setting,
                score=share(one.estimate),
            )
            for one in found.scores
        ],
        tests=[
            CellTestData(
                first=places[id(one.first)],
                second=places[id(one.second)],
                difference=share(one.difference),
                p_value=one.p_value,
                p_holm=one.p_holm,
            )
            for one in found.tests
        ],
    )


@router.get("/runs/{run}")
def get_run(place: PlaceHere, user: Reader, run: RunId) -> RunDetailsData:
    """One run: how it was set up, what it used, and what it stored."""
    found_summary(place, run)
    [line] = run_lines(place.database, run=run, most=1)
    config, seeds, error = run_settings(place.database, run)
    return RunDetailsData(
        run=run_data(line),
        config=config,
        seeds=seeds,
        error=error,
        usage=[model_usage_data(one) for one in usage_by_model(place.database, run)],
        stored=_stored_rows(place, run),
    )


@router.get("/runs/{run}/tables")
def list_tables(
    place: PlaceHere,
    user: Reader,
    run: RunId,
    published: Annotated[
        Literal["", "gold", "silver"], Query(description="Results of the paper to show beside an experiment's.")
    ] = "",
) -> Listed[TableData]:
    """The tables of a run's page, computed from what it stored."""
    number, found = 0, []
    for section in found_run(place, run).report(published).sections:
        for block in section.blocks:
            number += 1
            if isinstance(block, Table):
                found.append(table_data(number, section.heading, block))
    return Listed(items=found, next=None)


@router.get("/runs/{run}/questions")
def list_questions(
    place: PlaceHere,
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
) -> Listed[QuestionData]:
    """The questions of an evaluation, in its order; `after` is the number of the last one."""
    index = index_of(place, run)
    wanted = QuestionFilter(benchmark, kind, level, model, wrong, text.strip())
    found = index.numbers(wanted, limit + 1, after=after)
    shown = found[:limit]
    stored = index.part(shown)
    return Listed(
        items=[_question(stored, number, key, model) for number, key in zip(shown, stored.questions, strict=True)],
        next=shown[-1] if len(found) > limit else None,
    )


@router.get("/runs/{run}/questions/{number}")
def get_question(
    place: PlaceHere,
    user: Reader,
    run: RunId,
    number: Annotated[int, Path(description="Of the question in the run, from 0.", ge=0, le=2**31 - 1, examples=[0])],
) -> AnsweredQuestionData:
    """One question with every answer to it, its scores, and what the models were given."""
    index = index_of(place, run)
    if number >= len(index):
        raise Missing(f"The run {run} has {len(index)} questions, numbered from 0.")
    stored = index.part([number])
    [(key, asked)] = stored.questions.items()
    outcomes = stored.outcomes[key]
    return AnsweredQuestionData(
        question=_question(stored, number, key, ""),
        context=asked.context,
        answers=[answer_data(one, wrong=is_wrong(one)) for one in outcomes],
        passages=given_passages(stored, outcomes),
    )


@router.get("/usage")
def list_usage(
    place: PlaceHere, user: Annotator, by: Annotated[UsageGroup, Query(description="What is added up.")] = "model"
) -> Listed[UsageData]:
    """What all runs used: tokens, cost, failures, and what the records saved."""
    return Listed(items=[usage_data(one) for one in usage_by(place.database, by)], next=None)


def _question(stored: StoredRun, number: int, key: tuple[str, str], model: str) -> QuestionData:
    ours = [outcome for outcome in stored.outcomes[key] if model in ("", outcome.cell.model)]
    return question_data(number, key[0], stored.questions[key], ours, sum(map(is_wrong, ours)))


def _stored_rows(place: Place, run: str) -> dict[str, int]:
    stored = tables.results
    query = sa.select(stored.c.name, sa.func.count()).where(stored.c.run == run).group_by(stored.c.name)
    with place.database.read() as connection:
        return {name: int(count) for name, count in connection.execute(query.order_by(stored.c.name))}
