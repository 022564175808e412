"""Long answers: sentences and references checked against collections, and answers compared side by side.

A judge decides which of two answers is better, in both orders. A pair whose orders disagree counts as a tie and shows
the judge's position bias. Strengths are those of Davidson's model, Bradley and Terry's with ties; intervals come from
resampling questions, never pairs.

References:
    Davidson (1970), On Extending the Bradley-Terry Model to Accommodate Ties, J. Am. Stat. Assoc. 65, 317-328.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import locate_quotation
from climassay.evaluation.results import Cell, Outcome, Preference
from climassay.grounding.text_check import CheckedSentence
from climassay.learning.linear import davidson_loss, minimise
from climassay.metrics.factual_accuracy import JudgeFailure, JudgeRequest, ask_json
from climassay.models.contract import Generator, object_schema
from climassay.prompts import load_prompt
from climassay.questions import Question
from climassay.reporting import Table
from climassay.reporting.html import ColouredText, Finding, Tone
from climassay.statistics import Estimate, Interval, percentile_interval, proportion, share_interval

Better = Literal["first", "second", "tie"]
Comparer = Callable[[Sequence[tuple[str, str, str, str]]], Sequence[tuple[Better, str] | JudgeFailure]]
"""Function that compares pairs of answers, each given as (question, audience, first answer, second answer). For each
pair, it returns the better answer and the reason, or a failure."""
SIGNS: Mapping[Better, int] = {"first": 1, "second": -1, "tie": 0}
RESAMPLES = 300
_INVERSE_PENALTY = 100.0
"""Inverse of the L2 penalty; the penalty is weak, and only keeps the strength of an undefeated contestant finite."""
_MAX_TOKENS = 300
_SCHEMA = object_schema(
    {"reason": {"type": "string", "maxLength": 800}, "better": {"type": "string", "enum": list(get_args(Better))}}
)


def judge_pairs(
    items: Sequence[tuple[str, str, str, str]], judge: Generator
) -> list[tuple[Better, str] | JudgeFailure]:
    """Ask a judge which answer of each pair is better, and why; each pair is shown only in the given order.

    Args:
        items: Question, audience, first answer and second answer of each pair.
        judge: Model that judges.
    """
    template = load_prompt("side_by_side")
    judge_requests: list[JudgeRequest[tuple[Better, str]]] = [
        JudgeRequest(
            template.render(question=question, audience=audience, first=first_answer, second=second_answer),
            _SCHEMA,
            _parse_preference,
            _MAX_TOKENS,
        )
        for question, audience, first_answer, second_answer in items
    ]
    return ask_json(judge_requests, judge)


def _parse_preference(data: Mapping[str, Any]) -> tuple[Better, str]:
    if data["better"] not in get_args(Better):
        raise ValueError(data["better"])
    return data["better"], " ".join(str(data["reason"]).split())


def compare_answers(
    questions: Mapping[str, Question], outcomes: Mapping[Cell, Sequence[Outcome]], compare: Comparer, judge: str = ""
) -> list[Preference]:
    """Compare the long answers of every two models or settings in both orders. ``compare`` is called only once.

    Args:
        questions: Questions by id.
        outcomes: Outcomes by cell (a model in a setting), for one benchmark and task. A failed answer loses without a
            request.
        compare: Function that compares answers, for example :func:`judge_pairs` with a model.
        judge: Name of the trained judge; empty for the plan's judge.

    Returns:
        Two preferences for each question and pair of cells, one for each order.
    """
    answers = {
        cell: {outcome.question: outcome.answer for outcome in cell_outcomes}
        for cell, cell_outcomes in outcomes.items()
    }
    pairs = [
        (question, first_cell, second_cell)
        for cells in combinations(outcomes, 2)
        for question in answers[cells[0]]
        if question in answers[cells[1]]
        for first_cell, second_cell in (cells, reversed(cells))
    ]
    indices, items = [], []
    for index, (question, first_cell, second_cell) in enumerate(pairs):
        texts = answers[first_cell][question], answers[second_cell][question]
        if all(texts):
            indices.append(index)
            items.append((questions[question].question, questions[question].audience, *texts))
    verdicts = dict(zip(indices, compare(items), strict=True))
    preferences = []
    for index, (question, first_cell, second_cell) in enumerate(pairs):
        verdict = verdicts.get(index)
        if isinstance(verdict, JudgeFailure):
            preferences.append(Preference(first_cell, second_cell, question, None, error=verdict.error, judge=judge))
        elif verdict is not None:
            preferences.append(Preference(first_cell, second_cell, question, verdict[0], verdict[1], judge=judge))
        else:
            has_first, has_second = bool(answers[first_cell][question]), bool(answers[second_cell][question])
            better: Better = "tie" if has_first == has_second else "first" if has_first else "second"
            reason = "Without an answer there is nothing to compare."
            preferences.append(Preference(first_cell, second_cell, question, better, reason, judge=judge))
    return preferences


@dataclass(frozen=True, slots=True)
class Contestant:
    """Model in one setting whose long answers were compared with those of other models or settings."""

    cell: Cell
    win_rate: Estimate
    """Proportion of comparisons won, over all questions and both orders. A tie counts as half a win."""
    strength: float
    """Strength in Davidson's model, in nats; the mean over all contestants is 0."""
    interval: Interval


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Result of comparing the long answers of one benchmark and task."""

    contestants: tuple[Contestant, ...]
    """Contestants, the strongest first."""
    questions: int
    """Number of questions."""
    ties: float
    """Proportion of pairs without a winner, including pairs whose two orders disagree."""
    consistent: Estimate
    """Proportion of pairs whose two orders agree."""
    first: Estimate
    """Proportion of comparisons without a tie that preferred the answer shown first; 0.5 without position bias.

    The interval is Wilson's, which assumes independent comparisons.
    """
    failed: int
    """Number of failed comparisons, whose pairs are left out."""


def side_by_side(preferences: Sequence[Preference], *, seed: int = 0) -> SideBySide | None:
    """Compute strengths, win rates and position bias from preferences; return None if no pair was compared.

    Args:
        preferences: Preferences of one benchmark, task and judge.
        seed: Seed of the bootstrap over questions.
    """
    cells = list(dict.fromkeys(cell for preference in preferences for cell in (preference.first, preference.second)))
    questions = list(dict.fromkeys(preference.question for preference in preferences))
    verdicts = {(item.question, item.first, item.second): item.better for item in preferences}
    rows = []
    n_agreeing = 0
    for question_index, question in enumerate(questions):
        for i, j in combinations(range(len(cells)), 2):
            forward = verdicts.get((question, cells[i], cells[j]))
            backward = verdicts.get((question, cells[j], cells[i]))
            if forward is None or backward is None:
                continue
            sign = SIGNS[forward]
            is_consistent = sign == -SIGNS[backward]
            n_agreeing += is_consistent
            rows.append((question_index, i, j, sign if is_consistent else 0))
    if not rows:
        return None
    question_of_row, first_indices, second_indices, winner = (
        np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)
    )
    design = np.zeros((len(rows), len(cells)))
    design[np.arange(len(rows)), first_indices], design[np.arange(len(rows)), second_indices] = 1.0, -1.0
    n = len(questions)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    strengths = _fit_strengths(design, winner, np.ones(len(rows)))
    resampled_strengths = np.array(
        [_fit_strengths(design, winner, sample[question_of_row].astype(float)) for sample in counts]
    )
    contestants = []
    for index, cell in enumerate(cells):
        is_compared = (first_indices == index) | (second_indices == index)
        points = np.where(first_indices[is_compared] == index, winner[is_compared] + 1, 1 - winner[is_compared]) / 2
        weights = counts[:, question_of_row[is_compared]]
        totals = weights.sum(axis=1)
        rates = (weights @ points)[totals > 0] / totals[totals > 0]
        win_proportion, n_questions = float(points.mean()), len(set(question_of_row[is_compared].tolist()))
        win_rate = Estimate(
            win_proportion, share_interval(percentile_interval(rates), win_proportion, n_questions), n_questions
        )
        interval = percentile_interval(resampled_strengths[:, index])
        contestants.append(Contestant(cell, win_rate, float(strengths[index]), interval))
    decided_preferences = [better for better in verdicts.values() if better in ("first", "second")]
    return SideBySide(
        tuple(sorted(contestants, key=lambda contestant: -contestant.strength)),
        n,
        float(np.mean(winner == 0)),
        proportion(n_agreeing, len(rows)),
        proportion(decided_preferences.count("first"), len(decided_preferences))
        if decided_preferences
        else Estimate(0.5, Interval(0.0, 1.0), 0),
        sum(better is None for better in verdicts.values()),
    )


def _fit_strengths(
    design: NDArray[np.float64], winner: NDArray[np.int64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit Davidson's model, and return the strengths, shape [contestants], with mean 0."""
    has_ties = bool((weight[winner == 0] > 0).any())
    loss = davidson_loss(winner, weight, has_ties)
    strengths, _, _ = minimise(design, loss, _INVERSE_PENALTY, parameters=(0.0,) * has_ties)
    return np.asarray(strengths - strengths.mean(), dtype=np.float64)


def side_by_side_table(result: SideBySide, benchmark: str, judge: str = "") -> Table:
    """Return a table of the contestants' win rates and strengths, with a note on ties and position bias.

    Args:
        result: Win rates and strengths.
        benchmark: Name of the benchmark, for the title.
        judge: Name of the trained judge; empty for a prompted model. The note omits position bias for a trained judge,
            because such a judge averages both orders.
    """
    lower_bound, upper_bound = result.first.interval
    orders = (
        "The judge averages both orders."
        if judge
        else f"Both orders agree in {100 * result.consistent.value:.0f}% of the pairs; the answer shown first is "
        f"preferred in {100 * result.first.value:.0f}% of the decided comparisons (95% interval "
        f"{100 * lower_bound:.0f} to {100 * upper_bound:.0f}; 50 without position bias)."
    )
    rows = [
        [
            contestant.cell.model,
            contestant.cell.setting,
            str(contestant.win_rate.n),
            f"{100 * contestant.win_rate.value:.1f}",
            " to ".join(f"{100 * bound:.1f}" for bound in contestant.win_rate.interval),
            f"{contestant.strength:+.2f}",
            " to ".join(f"{bound:+.2f}" for bound in contestant.interval),
        ]
        for contestant in result.contestants
    ]
    return Table.of(
        f"Long answers side by side, {benchmark}" + (f", judged by {judge}" if judge else ""),
        ["model", "setting", "questions", "won (%)", "95% interval", "strength", "95% interval of it"],
        rows,
        left_columns=2,
        note="Every pair in both orders; ties count a half: "
        f"{100 * result.ties:.0f}% of the pairs have no winner. {orders} {result.failed} comparisons failed. "
        "Strength: Davidson's model, in nats, mean 0; "
        "intervals by resampling questions.",
    )


TONES: Mapping[str, Tone] = {
    "supported": "right",
    "similar": "outside",
    "unsupported": "middle",
    "contradicted": "wrong",
}


def point_scores(points: Sequence[CheckedSentence]) -> dict[str, float]:
    """Return the scores of a checked answer by metric, from 0 to 1 (best).

    ``points_supported``
        Proportion of the sentences with a claim that the judge finds supported by a passage. Missing without a judge
        or without claims.
    ``references_found``
        Proportion of the checked references that exist. Missing without checked references.
    """
    claims = [sentence.status for sentence in points if sentence.status != "no claim"]
    references = [reference for sentence in points for reference in sentence.references]
    statuses = [reference.status for reference in references if reference.status != "not checked"]
    is_read = any(sentence.judgement is not None for sentence in points)
    scores = {"points_supported": claims.count("supported") / len(claims)} if claims and is_read else {}
    return scores | ({"references_found": statuses.count("exists") / len(statuses)} if statuses else {})


def numbered_passages(ids: Sequence[str], texts: Sequence[str]) -> dict[int, Passage]:
    """Return the passages of a prompt by their number in the prompt."""
    numbered_texts = enumerate(zip(ids, texts, strict=False), start=1)
    return {number: Passage(name, text, name, name, name, number) for number, (name, text) in numbered_texts}


def coloured_parts(answer: str, points: Sequence[CheckedSentence]) -> tuple[ColouredText, ...]:
    """Split an answer into parts in which each sentence with a claim is coloured by its support; () without claims."""
    parts: list[ColouredText] = []
    offset = 0
    for point in points:
        span = locate_quotation(answer[offset:], point.text)
        if span is None or point.status not in TONES:
            continue
        start, end = offset + span[0], offset + span[1]
        parts += [ColouredText(answer[offset:start])] * (start > offset)
        parts.append(ColouredText(answer[start:end], TONES[point.status], f"{point.status}: {point.reason}"))
        offset = end
    return (*parts, ColouredText(answer[offset:])) if parts else ()


def point_findings(points: Sequence[CheckedSentence]) -> list[Finding]:
    """Return the contradicted and unsupported sentences and the wrong references as findings for a report."""
    findings = []
    for point in points:
        quotation = point.evidence[0].quotation if point.evidence else ""
        if point.status in ("contradicted", "unsupported"):
            findings.append(Finding(point.text, point.status, TONES[point.status], point.reason, quotation))
        findings += [
            Finding(reference.text, reference.status, "wrong", reference.reason) for reference in point.wrong_references
        ]
    return findings
