"""Pages of the questions of a run: the grid of questions and models, one question with its answers, its prompts."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from climassay.evaluation.report import answer_row, is_wrong
from climassay.evaluation.results import COMMANDS, Outcome
from climassay.evaluation.scores import metrics_of
from climassay.questions import Kind, Level, Question, option_letter
from climassay.records.queries import list_run_entries
from climassay.records.recorded_answers import (
    RecordedAnswer,
    search_answers,
)
from climassay.reporting.html import render_answer
from climassay.web.access import Reader
from climassay.web.app_state import App, AppState
from climassay.web.checks.moderation import require_visible_run
from climassay.web.failures import Missing
from climassay.web.pages import PageNumber, clamp_page, page, part_of
from climassay.web.results.pages import block_assets
from climassay.web.results.question_index import QuestionFilter, QuestionIndex, RunColumn, index_of
from climassay.web.results.stored_run import StoredRun, find_run_summary

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_visible_run)])
PAGE_SIZE = 50
"""Number of questions on one page."""
REQUESTS_PER_PAGE = 25
MAX_OTHER_RUNS = 100
"""Maximum number of runs per command, newest first, that can be compared with a run."""
Word = Annotated[str, Query(pattern=r"^[^\x00]*$", max_length=200)]
ColumnIndex = Annotated[
    Annotated[int, Field(ge=0, le=9999)] | None, BeforeValidator(lambda value: None if value == "" else value)
]
"""Index of a column of the grid; None if the parameter is empty."""


@dataclass(frozen=True, slots=True)
class GridQuery:
    """Parameters of the grid in its address; see :class:`QuestionFilter`."""

    benchmark: Word = ""
    kind: Kind | Literal[""] = ""
    level: Level | Literal[""] = ""
    text: Word = ""
    wrong: bool = False
    model: Word = ""
    right: ColumnIndex = None
    fails: ColumnIndex = None
    invalid: bool = False
    unstable: bool = False
    other: Word = ""
    """Id of a run to compare with; its columns follow."""

    def filters(self, columns: Sequence[RunColumn]) -> QuestionFilter:
        """Return the filter; the index of a column that does not exist is ignored."""
        right, fails = (
            columns[index] if index is not None and index < len(columns) else None for index in (self.right, self.fails)
        )
        return QuestionFilter(
            self.benchmark,
            self.kind,
            self.level,
            self.text.strip(),
            self.wrong,
            self.model,
            right,
            fails,
            self.invalid,
            self.unstable,
        )

    def parameters(self) -> dict[str, str]:
        """Return the parameters that differ from their defaults, for an address."""
        values = {name: getattr(self, name) for name in self.__slots__} | {"text": self.text.strip()}
        return {
            name: "true" if value is True else str(value)
            for name, value in values.items()
            if value not in (None, "") and value is not False
        }


class GridCell(NamedTuple):
    """An answer in the grid."""

    number: int
    """Number of the answer among those to its question in its run, from 1."""
    outcome: Outcome


class GridRow(NamedTuple):
    """A question with its answers, one per column."""

    key: tuple[str, str]
    """Benchmark and id."""
    question: Question
    cells: tuple[GridCell | None, ...]


class PromptMessage(NamedTuple):
    """A message of a prompt."""

    role: str
    """``system``, ``user`` or ``assistant``; ``prompt`` for a text whose messages cannot be separated."""
    text: str


class Exchange(NamedTuple):
    """A recorded request: its messages, and the answers of the experiment that it can have led to."""

    messages: Sequence[PromptMessage]
    outcomes: "Sequence[tuple[Outcome, AnswerMark]]"
    grades: bool
    """Whether a judge was asked to grade the answer."""


_TURNS = (
    r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>\n?|\Z)",
    r"<\|start_header_id\|>(\w+)<\|end_header_id\|>\n\n(.*?)(?:<\|eot_id\|>|\Z)",
    r"<start_of_turn>(\w+)\n(.*?)(?:<end_of_turn>\n?|\Z)",
    r"<\|(system|user|assistant)\|>\n?(.*?)(?:<\|end\|>\n?|</s>\n?|(?=<\|(?:system|user|assistant)\|>)|\Z)",
)
"""Patterns of a turn in the chat templates of local models. Contents cannot contain a template's own tokens."""


def prompt_messages(prompt: str) -> list[PromptMessage]:
    """Return the messages of a recorded prompt: JSON of a served model, or the text of a local model's template."""
    if prompt.startswith("[{"):
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return [
                PromptMessage(str(message["role"]), _content_text(message["content"])) for message in json.loads(prompt)
            ]
    for pattern in _TURNS:
        turns = [PromptMessage(*turn) for turn in re.findall(pattern, prompt, re.DOTALL)]
        if turns:
            # The last turn is the beginning of the model's own, which is empty unless its answer was begun for it.
            return [turn for turn in turns if turn.text]
    return [PromptMessage("prompt", prompt)]


def _content_text(content: Any) -> str:
    """Return the text of a message's content, which servers also take in parts."""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", part)) for part in content)


class AnswerMark(NamedTuple):
    """Mark of an answer in the grid."""

    text: str
    tone: Literal["good", "bad", "warn", ""]
    words: str
    """Meaning of the mark, for screen readers."""
    address: str


@router.get("/results/{run}/questions")
def show_questions(
    request: Request,
    app: App,
    _user: Reader,
    run: str,
    query: Annotated[GridQuery, Depends()],
    order: Annotated[str, Query(pattern=r"^(wrong|question|[0-9]{1,4})?$")] = "",
    direction: Literal["", "down"] = "",
    number: PageNumber = 1,
) -> Response:
    """Show the questions that match as a grid: a row per question, a column per model and setting."""
    index = index_of(app, run)
    other = index_of(app, query.other) if query.other and query.other != run else None
    columns = [*index.columns(), *(other.columns() if other else ())]
    filters = query.filters(columns)
    total = index.count(filters)
    page_number = clamp_page(number, total, PAGE_SIZE)
    sort: Any = next(iter(columns[int(order) :]), "") if order.isdigit() else order
    offset, reverse = (page_number - 1) * PAGE_SIZE, direction == "down"
    numbers = index.numbers(filters, PAGE_SIZE, offset=offset, order=sort, reverse=reverse) if total else []
    rows = [
        (
            row,
            _question_address(run, row.key),
            [
                cell and answer_mark(cell.outcome, f"{_question_address(column.run, row.key)}#answer-{cell.number}")
                for column, cell in zip(columns, row.cells, strict=True)
            ],
        )
        for row in _grid_rows(index, other, columns, numbers)
    ]
    recent = [
        entry.summary
        for command in COMMANDS
        for entry in list_run_entries(app.database, command=command, limit=MAX_OTHER_RUNS)
    ]
    summaries = [*([other.summary] if other else []), *recent]
    parameters, address = query.parameters(), f"/results/{run}/questions"
    sorting = {"order": order, "direction": direction}
    return page(
        request,
        "results/questions.html.j2",
        run=index.summary,
        index=index,
        part=part_of(rows, page_number, total, PAGE_SIZE, address, parameters | sorting),
        headings=part_of((), 1, 0, PAGE_SIZE, address, parameters),
        filters=filters,
        parameters=parameters,
        choices=index.choices(),
        columns=columns,
        other=other,
        others={summary.id: summary.name for summary in summaries if summary.id != run},
        order=order,
        direction=direction,
    )


def _grid_rows(
    index: QuestionIndex, other: QuestionIndex | None, columns: Sequence[RunColumn], numbers: Sequence[int]
) -> list[GridRow]:
    """Load questions of a run with their answers in the run and another one, in the order of the numbers."""
    stored = index.load(numbers)
    keys = dict(zip(sorted(numbers), stored.questions, strict=True))
    runs = [stored]
    if other is not None and numbers:
        runs.append(other.load(other.numbers_of(list(stored.questions))))
    cells = {
        (RunColumn(stored_run.id, outcome.cell.model, outcome.cell.setting), key): GridCell(number, outcome)
        for stored_run in runs
        for key, outcomes in stored_run.outcomes.items()
        for number, outcome in enumerate(outcomes, start=1)
    }
    return [
        GridRow(key, stored.questions[key], tuple(cells.get((column, key)) for column in columns))
        for key in (keys[number] for number in numbers)
    ]


def answer_mark(outcome: Outcome, address: str) -> AnswerMark:
    """Return the mark of an answer: right or wrong, or its first score if no metric decides between the two."""
    if outcome.error is not None:
        return AnswerMark("!", "warn", "failed", address)
    metrics = metrics_of([outcome])
    if not any(metric.binary for metric in metrics):
        score = outcome.scores.get(metrics[0].name) if metrics else None
        text = "–" if score is None else f"{score:.2f}"
        return AnswerMark(text, "", metrics[0].label if metrics else "no score", address)
    tone: Literal["bad", "good"] = "bad" if is_wrong(outcome) else "good"
    share = outcome.scores.get("accuracy", 0.0)
    if 0 < share < 1:
        return AnswerMark(f"{100 * share:.0f}%", tone, f"right in {100 * share:.0f}% of the option orders", address)
    text, words = ("✗", "wrong") if tone == "bad" else ("✓", "right")
    violations = f" ({', '.join(outcome.violations)})" if outcome.violations else ""
    return AnswerMark(text, tone, words + violations, address)


def answer_verdict(outcome: Outcome) -> AnswerMark:
    """Return the mark of an answer, which a judge's verdict or factual accuracy may also decide."""
    mark = answer_mark(outcome, "")
    if mark.tone:
        return mark
    if is_wrong(outcome):
        return AnswerMark("✗", "bad", "wrong", "")
    if outcome.scores.get("judged_accuracy") == 0.5:
        return AnswerMark("~", "warn", "partly right", "")
    is_judged = {"judged_accuracy", "rubric_score", "factual_accuracy"} & outcome.scores.keys()
    return AnswerMark("✓", "good", "right", "") if is_judged else mark


@router.get("/results/{run}/questions/{question:path}")
def show_question(request: Request, app: App, _user: Reader, run: str, question: str, benchmark: Word = "") -> Response:
    """Show one question with every answer to it."""
    index, number = _find_question(app, run, question, benchmark)
    stored = index.load([number], with_orders=True)
    [(key, content)] = stored.questions.items()
    outcomes = stored.outcomes[key]
    metrics = metrics_of(outcomes)
    answers = []
    for outcome in outcomes:
        row = answer_row(outcome, content, metrics)
        remarks = (*row.remarks, *_option_order_remarks(stored, outcome))
        mark = answer_verdict(outcome)
        answers.append({"outcome": outcome, "text": render_answer(row), "remarks": remarks, "mark": mark})
    before, after = index.key(number - 1), index.key(number + 1)
    return page(
        request,
        "results/question.html.j2",
        run=stored.details.summary,
        question=content,
        benchmark=key[0],
        metrics=metrics,
        answers=answers,
        texts=stored.experiment.passages if stored.experiment else {},
        requests_address=f"/results/{run}/requests?{urlencode({'question': key[1], 'benchmark': key[0]})}",
        before=_question_address(run, before) if before else "",
        after=_question_address(run, after) if after else "",
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
    """Show the messages of a run that contain a question, each with its setting, its raw answer and its grade."""
    summary = find_run_summary(app, run)
    index, question_number = _find_question(app, run, question, benchmark)
    stored = index.load([question_number])
    [(key, content)] = stored.questions.items()
    # Models see a line in place of the mask of a cloze statement, so only the parts around it occur in prompts.
    text = max(content.question.split("<MASK>"), key=len).strip()
    answers = search_answers(app.database, run, text, REQUESTS_PER_PAGE + 1, (number - 1) * REQUESTS_PER_PAGE)
    exchanges = [(answer, exchange_of(answer, stored, key)) for answer in answers[:REQUESTS_PER_PAGE]]
    address = f"/results/{run}/requests?{urlencode({'question': question, 'benchmark': benchmark})}&page="
    return page(
        request,
        "results/requests.html.j2",
        run=summary,
        question=content,
        address=_question_address(run, key),
        answers=exchanges,
        **block_assets(),
        before=f"{address}{number - 1}" if number > 1 else "",
        after=f"{address}{number + 1}" if len(answers) > REQUESTS_PER_PAGE else "",
    )


def exchange_of(answer: RecordedAnswer, stored: StoredRun, key: tuple[str, str]) -> Exchange:
    """Return a recorded request beside the answers to its question.

    A request leads to the answers of its model in whose settings the model was given the passages of the prompt. A
    request that contains a graded answer is its judge's.
    """
    messages = prompt_messages(answer.prompt)
    outcomes = stored.outcomes[key]
    if stored.experiment is None:
        return Exchange(messages, (), False)
    text = " ".join(" ".join(message.text for message in messages).split())
    graded = [
        outcome
        for outcome in outcomes
        if (outcome.judgement or outcome.assessment)
        and outcome.answer.strip()
        and " ".join(outcome.answer.split()) in text
    ]
    models = {record.cell: record.model for record in stored.experiment.cells}
    texts = {name: " ".join(passage.split()) for name, passage in stored.experiment.passages.items()}
    retrieved = {name for outcome in outcomes for name in outcome.passages if texts.get(name, "\0") in text}
    answers = [
        outcome
        for outcome in outcomes
        if models.get(outcome.cell) == answer.model
        and retrieved == {name for name in outcome.passages if name in texts}
    ]
    fitting = graded or answers
    return Exchange(messages, [(outcome, answer_verdict(outcome)) for outcome in fitting], bool(graded))


def _find_question(app: AppState, run: str, question: str, benchmark: str) -> tuple[QuestionIndex, int]:
    """Return the index of a run and the number of a question in it, or raise Missing."""
    index = index_of(app, run)
    number = index.number(question, benchmark)
    if number is None:
        raise Missing(f"The run {run} has no answer to a question {question[:60]}.")
    return index, number


def _option_order_remarks(stored: StoredRun, outcome: Outcome) -> list[str]:
    """Return a remark on the choices in each option order, if there are several."""
    predictions = stored.experiment.predictions.get(outcome.cell, ()) if stored.experiment else ()
    orders = sorted(
        (prediction for prediction in predictions if prediction.question == outcome.question),
        key=lambda prediction: prediction.permutation,
    )
    if len(orders) < 2:
        return []
    chosen = ", ".join("none" if order.chosen is None else f"{option_letter(order.chosen)})" for order in orders)
    return [f"right in {sum(order.correct for order in orders)} of {len(orders)} option orders: {chosen}"]


def _question_address(run: str, key: tuple[str, str]) -> str:
    benchmark, question = key
    return f"/results/{run}/questions/{quote(question, safe='')}?{urlencode({'benchmark': benchmark})}"
