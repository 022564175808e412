"""Pages of a run's questions: the grid of questions and models, each question with its answers, and the prompts."""

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
from climassay.records.recorded_answers import RecordedAnswer, search_answers
from climassay.reporting.html import render_answer
from climassay.web.access import Reader
from climassay.web.app_state import App, AppState
from climassay.web.checks.moderation import require_visible_run
from climassay.web.failures import NotFound
from climassay.web.pages import PageNumber, clamp_page, make_part, page
from climassay.web.results.blocks import block_assets
from climassay.web.results.question_index import QuestionFilter, QuestionIndex, RunColumn, open_question_index
from climassay.web.results.stored_run import StoredRun, find_run_summary

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_visible_run)])
PAGE_SIZE = 50
"""Number of questions on one page."""
REQUESTS_PER_PAGE = 25
MAX_OTHER_RUNS = 100
"""Maximum number of runs offered for comparison with a run: the newest runs of each command."""
Word = Annotated[str, Query(pattern=r"^[^\x00]*$", max_length=200)]
ColumnIndex = Annotated[
    Annotated[int, Field(ge=0, le=9999)] | None, BeforeValidator(lambda value: None if value == "" else value)
]
"""Index of a column of the grid; None if the parameter is empty."""


@dataclass(frozen=True, slots=True)
class GridQuery:
    """Query parameters of the grid of questions; see :class:`QuestionFilter`."""

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
    """Id of a second run, whose columns are shown after the columns of the first."""

    def filters(self, columns: Sequence[RunColumn]) -> QuestionFilter:
        """Return the filter for the questions.

        Args:
            columns: Columns of the grid. ``right`` and ``fails`` are indices into them; an index past the last column
                is ignored.
        """
        right_column, wrong_column = (
            columns[index] if index is not None and index < len(columns) else None for index in (self.right, self.fails)
        )
        return QuestionFilter(
            self.benchmark,
            self.kind,
            self.level,
            self.text.strip(),
            self.wrong,
            self.model,
            right_column,
            wrong_column,
            self.invalid,
            self.unstable,
        )

    def parameters(self) -> dict[str, str]:
        """Return the parameters that differ from their defaults as strings for a URL."""
        values = {name: getattr(self, name) for name in self.__slots__} | {"text": self.text.strip()}
        return {
            name: "true" if value is True else str(value)
            for name, value in values.items()
            if value not in (None, "") and value is not False
        }


class GridCell(NamedTuple):
    """Answer in the grid of questions."""

    number: int
    """Number of the answer among the run's answers to the question, from 1."""
    outcome: Outcome


class GridRow(NamedTuple):
    """Question with its answers, one per column; None for a column without an answer."""

    key: tuple[str, str]
    """Benchmark and id of the question."""
    question: Question
    cells: tuple[GridCell | None, ...]


class PromptMessage(NamedTuple):
    """Message of a recorded prompt."""

    role: str
    """``system``, ``user`` or ``assistant``; ``prompt`` for a text whose messages cannot be separated."""
    text: str


class Exchange(NamedTuple):
    """Recorded request with its messages, and with the experiment's answers that may have come from it."""

    messages: Sequence[PromptMessage]
    outcomes: "Sequence[tuple[Outcome, AnswerMark]]"
    grades: bool
    """Whether the request asked a judge to grade an answer."""


_TURN_PATTERNS = (
    r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>\n?|\Z)",
    r"<\|start_header_id\|>(\w+)<\|end_header_id\|>\n\n(.*?)(?:<\|eot_id\|>|\Z)",
    r"<start_of_turn>(\w+)\n(.*?)(?:<end_of_turn>\n?|\Z)",
    r"<\|(system|user|assistant)\|>\n?(.*?)(?:<\|end\|>\n?|</s>\n?|(?=<\|(?:system|user|assistant)\|>)|\Z)",
)
"""Regular expressions for one turn (role, content) in the chat templates of local models."""


def prompt_messages(prompt: str) -> list[PromptMessage]:
    """Split a recorded prompt into its messages.

    Args:
        prompt: JSON messages as sent to a server, or text in the chat template of a local model.
    """
    if prompt.startswith("[{"):
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return [
                PromptMessage(str(message["role"]), _content_text(message["content"])) for message in json.loads(prompt)
            ]
    for pattern in _TURN_PATTERNS:
        turns = [PromptMessage(*turn) for turn in re.findall(pattern, prompt, re.DOTALL)]
        if turns:
            # The last turn is the model's own, which is empty unless the prompt contains the beginning of its answer.
            return [turn for turn in turns if turn.text]
    return [PromptMessage("prompt", prompt)]


def _content_text(content: Any) -> str:
    """Return the content of a message, which may be a list of parts, as one text."""
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
    """Show the matching questions as a grid with a row per question and a column per model and setting."""
    index = open_question_index(app, run)
    other_index = open_question_index(app, query.other) if query.other and query.other != run else None
    columns = [*index.columns(), *(other_index.columns() if other_index else ())]
    filters = query.filters(columns)
    total = index.count(filters)
    page_number = clamp_page(number, total, PAGE_SIZE)
    sort_order: Any = next(iter(columns[int(order) :]), "") if order.isdigit() else order
    offset, reverse = (page_number - 1) * PAGE_SIZE, direction == "down"
    numbers = index.numbers(filters, PAGE_SIZE, offset=offset, order=sort_order, reverse=reverse) if total else []
    rows = [
        (
            row,
            _question_address(run, row.key),
            [
                cell and answer_mark(cell.outcome, f"{_question_address(column.run, row.key)}#answer-{cell.number}")
                for column, cell in zip(columns, row.cells, strict=True)
            ],
        )
        for row in _grid_rows(index, other_index, columns, numbers)
    ]
    recent_runs = [
        entry.summary
        for command in COMMANDS
        for entry in list_run_entries(app.database, command=command, limit=MAX_OTHER_RUNS)
    ]
    run_summaries = [*([other_index.summary] if other_index else []), *recent_runs]
    parameters, address = query.parameters(), f"/results/{run}/questions"
    sort_parameters = {"order": order, "direction": direction}
    return page(
        request,
        "results/questions.html.j2",
        run=index.summary,
        index=index,
        part=make_part(rows, page_number, total, PAGE_SIZE, address, parameters | sort_parameters),
        headings=make_part((), 1, 0, PAGE_SIZE, address, parameters),
        filters=filters,
        parameters=parameters,
        choices=index.choices(),
        columns=columns,
        other=other_index,
        others={summary.id: summary.name for summary in run_summaries if summary.id != run},
        order=order,
        direction=direction,
    )


def _grid_rows(
    index: QuestionIndex, other_index: QuestionIndex | None, columns: Sequence[RunColumn], numbers: Sequence[int]
) -> list[GridRow]:
    """Load the questions with the given numbers, in order, with their answers in the run and in the second run."""
    stored_run = index.load(numbers)
    keys = dict(zip(sorted(numbers), stored_run.questions, strict=True))
    other_runs = []
    if other_index is not None and numbers:
        other_runs.append(other_index.load(other_index.numbers_by_key(list(stored_run.questions))))
    cells = {
        (RunColumn(run.id, outcome.cell.model, outcome.cell.setting), key): GridCell(number, outcome)
        for run in (stored_run, *other_runs)
        for key, outcomes in run.outcomes.items()
        for number, outcome in enumerate(outcomes, start=1)
    }
    return [
        GridRow(key, stored_run.questions[key], tuple(cells.get((column, key)) for column in columns))
        for key in (keys[number] for number in numbers)
    ]


def answer_mark(outcome: Outcome, address: str) -> AnswerMark:
    """Return the mark of an answer: right or wrong if it has a binary metric, otherwise its first score."""
    if outcome.error is not None:
        return AnswerMark("!", "warn", "failed", address)
    metrics = metrics_of([outcome])
    if not any(metric.binary for metric in metrics):
        score = outcome.scores.get(metrics[0].name) if metrics else None
        text = "–" if score is None else f"{score:.2f}"
        return AnswerMark(text, "", metrics[0].label if metrics else "no score", address)
    style: Literal["bad", "good"] = "bad" if is_wrong(outcome) else "good"
    accuracy = outcome.scores.get("accuracy", 0.0)
    if 0 < accuracy < 1:
        return AnswerMark(
            f"{100 * accuracy:.0f}%", style, f"right in {100 * accuracy:.0f}% of the option orders", address
        )
    text, meaning = ("✗", "wrong") if style == "bad" else ("✓", "right")
    violations = f" ({', '.join(outcome.violations)})" if outcome.violations else ""
    return AnswerMark(text, style, meaning + violations, address)


def answer_verdict(outcome: Outcome) -> AnswerMark:
    """Return the mark of an answer; without a binary metric, a judge's verdict or factual accuracy decides."""
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
    """Show one question with all of the run's answers to it."""
    index, number = _find_question(app, run, question, benchmark)
    stored_run = index.load([number], with_orders=True)
    [(key, content)] = stored_run.questions.items()
    outcomes = stored_run.outcomes[key]
    metrics = metrics_of(outcomes)
    answers = []
    for outcome in outcomes:
        row = answer_row(outcome, content, metrics)
        remarks = (*row.remarks, *_option_order_remarks(stored_run, outcome))
        mark = answer_verdict(outcome)
        answers.append({"outcome": outcome, "text": render_answer(row), "remarks": remarks, "mark": mark})
    previous_key, next_key = index.key(number - 1), index.key(number + 1)
    return page(
        request,
        "results/question.html.j2",
        run=stored_run.details.summary,
        question=content,
        benchmark=key[0],
        metrics=metrics,
        answers=answers,
        texts=stored_run.experiment.passages if stored_run.experiment else {},
        requests_address=f"/results/{run}/requests?{urlencode({'question': key[1], 'benchmark': key[0]})}",
        previous_address=_question_address(run, previous_key) if previous_key else "",
        next_address=_question_address(run, next_key) if next_key else "",
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
    """Show the recorded requests of a run whose prompts contain a question, with their raw answers and grades."""
    summary = find_run_summary(app, run)
    index, question_number = _find_question(app, run, question, benchmark)
    stored_run = index.load([question_number])
    [(key, content)] = stored_run.questions.items()
    # Prompts contain a line in place of the mask of a cloze statement, so its longest unmasked part is searched for.
    text = max(content.question.split("<MASK>"), key=len).strip()
    answers = search_answers(app.database, run, text, REQUESTS_PER_PAGE + 1, (number - 1) * REQUESTS_PER_PAGE)
    exchanges = [(answer, make_exchange(answer, stored_run, key)) for answer in answers[:REQUESTS_PER_PAGE]]
    address = f"/results/{run}/requests?{urlencode({'question': question, 'benchmark': benchmark})}&page="
    return page(
        request,
        "results/requests.html.j2",
        run=summary,
        question=content,
        address=_question_address(run, key),
        answers=exchanges,
        **block_assets(),
        previous_address=f"{address}{number - 1}" if number > 1 else "",
        next_address=f"{address}{number + 1}" if len(answers) > REQUESTS_PER_PAGE else "",
    )


def make_exchange(answer: RecordedAnswer, stored_run: StoredRun, key: tuple[str, str]) -> Exchange:
    """Return a recorded request with the experiment's answers that may have come from it.

    If the prompt contains a graded answer, the request is a judge's, and its only answer is the graded one. Otherwise,
    the answers are those that the requested model wrote from the passages in the prompt. ``key`` is the benchmark and
    id of the question.
    """
    messages = prompt_messages(answer.prompt)
    outcomes = stored_run.outcomes[key]
    if stored_run.experiment is None:
        return Exchange(messages, (), False)
    text = " ".join(" ".join(message.text for message in messages).split())
    graded_outcomes = [
        outcome
        for outcome in outcomes
        if (outcome.judgement or outcome.assessment)
        and outcome.answer.strip()
        and " ".join(outcome.answer.split()) in text
    ]
    models = {record.cell: record.model for record in stored_run.experiment.cells}
    passage_texts = {name: " ".join(passage.split()) for name, passage in stored_run.experiment.passages.items()}
    prompted_passages = {
        name for outcome in outcomes for name in outcome.passages if passage_texts.get(name, "\0") in text
    }
    answer_outcomes = [
        outcome
        for outcome in outcomes
        if models.get(outcome.cell) == answer.model
        and prompted_passages == {name for name in outcome.passages if name in passage_texts}
    ]
    selected_outcomes = graded_outcomes or answer_outcomes
    return Exchange(
        messages, [(outcome, answer_verdict(outcome)) for outcome in selected_outcomes], bool(graded_outcomes)
    )


def _find_question(app: AppState, run: str, question: str, benchmark: str) -> tuple[QuestionIndex, int]:
    """Return the index of a run and the number of a question in it; raise NotFound if the question has no answer."""
    index = open_question_index(app, run)
    number = index.number(question, benchmark)
    if number is None:
        raise NotFound(f"The run {run} has no answer to a question {question[:60]}.")
    return index, number


def _option_order_remarks(stored_run: StoredRun, outcome: Outcome) -> list[str]:
    """Return a remark on the options chosen in each option order; empty for fewer than two orders."""
    predictions = stored_run.experiment.predictions.get(outcome.cell, ()) if stored_run.experiment else ()
    orders = sorted(
        (prediction for prediction in predictions if prediction.question == outcome.question),
        key=lambda prediction: prediction.permutation,
    )
    if len(orders) < 2:
        return []
    choices = ", ".join("none" if order.chosen is None else f"{option_letter(order.chosen)})" for order in orders)
    return [f"right in {sum(order.correct for order in orders)} of {len(orders)} option orders: {choices}"]


def _question_address(run: str, key: tuple[str, str]) -> str:
    benchmark, question = key
    return f"/results/{run}/questions/{quote(question, safe='')}?{urlencode({'benchmark': benchmark})}"
