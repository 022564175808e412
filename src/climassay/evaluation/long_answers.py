"""Long answers: what collections say of their sentences and references, and which of two is better.

A judge says in both orders which of two answers is better. A pair whose two orders disagree counts as a tie and shows
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

from climassay.corpus.documents import Passage, locate_quotation
from climassay.evaluation.results import Cell, Outcome, Preference
from climassay.grounding.text_check import CheckedSentence
from climassay.learning.linear import minimise
from climassay.learning.pairwise import davidson_loss
from climassay.metrics.factual_accuracy import JudgeFailure, JudgeRequest, ask_json
from climassay.models.contract import Generator, OptionRequest, OptionScorer, object_schema
from climassay.prompts import load_prompt, profile_of
from climassay.questions import Question
from climassay.reporting import Table
from climassay.reporting.html import Finding, TextPart, Tone
from climassay.statistics import Estimate, Interval, percentile_interval, proportion, share_interval

Better = Literal["first", "second", "tie"]
Comparer = Callable[[Sequence[tuple[str, str, str, str]]], Sequence[tuple[Better, str] | JudgeFailure]]
"""From question, audience, first and second answer of each pair to which is better, and why."""
RESAMPLES = 300
_PENALTY = 100.0
"""C of the fit: so weak a penalty that it decides nothing but the strength of who never lost."""
_TOKENS = 300
_WORDS = 350
"""Maximum number of words of each answer that a very small judge reads."""
_SCHEMA = object_schema(
    {"reason": {"type": "string", "maxLength": 800}, "better": {"type": "string", "enum": list(get_args(Better))}}
)


def prefer(
    items: Sequence[tuple[str, str, str, str]], judge: Generator, *, seed: int = 0
) -> list[tuple[Better, str] | JudgeFailure]:
    """Which of two answers is better, and why, in the order given only.

    Args:
        items: Question, audience, first answer, second answer.
        judge: A strong model, or a very small one that gives probabilities of options, which never says tie.
        seed: Part of every request's identity.
    """
    if profile_of(judge).scored and isinstance(judge, OptionScorer):
        brief = load_prompt("side_by_side_brief")
        requests = []
        for question, _, *answers in items:
            first, second = (" ".join(answer.split()[:_WORDS]) for answer in answers)
            rendered = brief.render(question=question, first=first, second=second)
            requests.append(OptionRequest(rendered.messages, (" A", " B"), rendered.assistant_prefix))
        places: tuple[Better, Better] = ("first", "second")
        return [
            JudgeFailure(one.error or "") if one.best is None else (places[one.best], "")
            for one in judge.option_logprobs(requests)
        ]
    template = load_prompt("side_by_side")
    asked: list[JudgeRequest[tuple[Better, str]]] = [
        JudgeRequest(
            template.render(question=question, audience=audience, first=first, second=second), _SCHEMA, _read, _TOKENS
        )
        for question, audience, first, second in items
    ]
    return ask_json(asked, judge, seed=seed)


def _read(data: Mapping[str, Any]) -> tuple[Better, str]:
    if data["better"] not in get_args(Better):
        raise ValueError(data["better"])
    return data["better"], " ".join(str(data["reason"]).split())


def compare_answers(
    questions: Mapping[str, Question], outcomes: Mapping[Cell, Sequence[Outcome]], compare: Comparer, judge: str = ""
) -> list[Preference]:
    """Every two cells' answers to the same questions, in both orders, in one call of the judge.

    Args:
        questions: By id.
        outcomes: Cells of one benchmark and task with their outcomes. An answer that failed loses to one that did not,
            and nobody is asked.
        compare: Who compares, for example :func:`prefer` with its judge.
        judge: Name of the trained judge; empty for the judge of the plan.

    Returns:
        Two preferences a pair and question, one for each order.
    """
    answers = {cell: {one.question: one for one in ones} for cell, ones in outcomes.items()}
    pairs = [
        (key, a, b)
        for one, other in combinations(outcomes, 2)
        for key in answers[one]
        if key in answers[other]
        for a, b in ((one, other), (other, one))
    ]
    open_, items = [], []
    for number, (key, a, b) in enumerate(pairs):
        first, second = answers[a][key], answers[b][key]
        if first.answer and second.answer:
            open_.append(number)
            items.append((questions[key].question, questions[key].audience, first.answer, second.answer))
    verdicts = dict(zip(open_, compare(items), strict=True))
    results = []
    for number, (key, a, b) in enumerate(pairs):
        verdict = verdicts.get(number)
        if isinstance(verdict, JudgeFailure):
            results.append(Preference(a, b, key, None, error=verdict.error, judge=judge))
        elif verdict is not None:
            results.append(Preference(a, b, key, verdict[0], verdict[1], judge=judge))
        else:
            here, there = bool(answers[a][key].answer), bool(answers[b][key].answer)
            better: Better = "tie" if here == there else "first" if here else "second"
            nothing = "Without an answer there is nothing to compare."
            results.append(Preference(a, b, key, better, nothing, judge=judge))
    return results


@dataclass(frozen=True, slots=True)
class Contestant:
    """A cell among those that were compared."""

    cell: Cell
    win_rate: Estimate
    """Share of its comparisons that it won, ties a half; over questions, in both orders."""
    strength: float
    """In nats; the mean of all contestants is 0."""
    interval: Interval


@dataclass(frozen=True, slots=True)
class SideBySide:
    """What the comparisons of one benchmark and task come to."""

    contestants: tuple[Contestant, ...]
    """The strongest first."""
    questions: int
    ties: float
    """Share of the pairs without a winner, disagreeing orders included."""
    consistent: Estimate
    """Share of the pairs whose two orders agree."""
    first: Estimate
    """Share of the answers with a winner that preferred the answer shown first; 0.5 without position bias. Wilson's
    interval, which takes them as independent."""
    failed: int
    """Answers that the judge did not give; their pairs are left out."""


def side_by_side(preferences: Sequence[Preference], *, seed: int = 0, resamples: int = RESAMPLES) -> SideBySide | None:
    """Strengths, win rates and position bias; None where nothing was compared.

    Args:
        preferences: Of one benchmark, task and judge.
        seed: Seed of the resampling of questions.
        resamples: Bootstrap samples.
    """
    cells = list(dict.fromkeys(cell for one in preferences for cell in (one.first, one.second)))
    keys = list(dict.fromkeys(one.question for one in preferences))
    verdicts = {(one.question, one.first, one.second): one.better for one in preferences}
    rows = []
    agreeing = 0
    for key in keys:
        for i, j in combinations(range(len(cells)), 2):
            there, back = verdicts.get((key, cells[i], cells[j])), verdicts.get((key, cells[j], cells[i]))
            if there is None or back is None:
                continue
            forth = {"first": 1, "second": -1, "tie": 0}[there]
            other = {"first": -1, "second": 1, "tie": 0}[back]
            agreeing += forth == other
            rows.append((keys.index(key), i, j, forth if forth == other else 0))
    if not rows:
        return None
    unit, one, two, outcome = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    design = np.zeros((len(rows), len(cells)))
    design[np.arange(len(rows)), one], design[np.arange(len(rows)), two] = 1.0, -1.0
    counts = np.random.default_rng(seed).multinomial(len(keys), np.full(len(keys), 1 / len(keys)), size=resamples)
    strengths = _fit(design, outcome, np.ones(len(rows)))
    drawn = np.array([_fit(design, outcome, own[unit].astype(float)) for own in counts])
    results = []
    for number, cell in enumerate(cells):
        mine = (one == number) | (two == number)
        points = np.where(one[mine] == number, outcome[mine] + 1, 1 - outcome[mine]) / 2
        weights = counts[:, unit[mine]]
        totals = weights.sum(axis=1)
        rates = (weights @ points)[totals > 0] / totals[totals > 0]
        share, asked = float(points.mean()), len(set(unit[mine].tolist()))
        rate = Estimate(share, share_interval(percentile_interval(rates), share, asked), asked)
        results.append(Contestant(cell, rate, float(strengths[number]), percentile_interval(drawn[:, number])))
    decided = [better for better in verdicts.values() if better in ("first", "second")]
    return SideBySide(
        tuple(sorted(results, key=lambda each: -each.strength)),
        len(keys),
        float(np.mean(outcome == 0)),
        proportion(agreeing, len(rows)),
        proportion(decided.count("first"), len(decided)) if decided else Estimate(0.5, Interval(0.0, 1.0), 0),
        sum(better is None for better in verdicts.values()),
    )


def _fit(design: NDArray[np.float64], outcome: NDArray[np.int64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Strengths of Davidson's model, mean 0."""
    ties = bool((weight[outcome == 0] > 0).any())
    result = minimise(design, davidson_loss(outcome, weight, ties), _PENALTY, own=(0.0,) * ties)
    return np.asarray(result.weights - result.weights.mean(), dtype=np.float64)


def side_by_side_table(found: SideBySide, benchmark: str, judge: str = "") -> Table:
    """Contestants with win rate and strength; ties, agreement of the orders and position bias in the note.

    A trained judge, which is named, averages both orders, so that nothing can be said of them.
    """
    low, high = found.first.interval
    orders = (
        "The judge averages both orders."
        if judge
        else f"Both orders agree in {100 * found.consistent.value:.0f}% of the pairs; the answer shown first is "
        f"preferred in {100 * found.first.value:.0f}% of the decided comparisons (95% interval {100 * low:.0f} to "
        f"{100 * high:.0f}; 50 without position bias)."
    )
    rows = [
        [
            one.cell.model,
            one.cell.setting,
            str(one.win_rate.n),
            f"{100 * one.win_rate.value:.1f}",
            " to ".join(f"{100 * end:.1f}" for end in one.win_rate.interval),
            f"{one.strength:+.2f}",
            " to ".join(f"{end:+.2f}" for end in one.interval),
        ]
        for one in found.contestants
    ]
    return Table.of(
        f"Long answers side by side, {benchmark}" + (f", judged by {judge}" if judge else ""),
        ["model", "setting", "questions", "won (%)", "95% interval", "strength", "95% interval of it"],
        rows,
        left=2,
        note="Every pair in both orders; ties count a half: "
        f"{100 * found.ties:.0f}% of the pairs have no winner. {orders} {found.failed} comparisons failed. "
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
    """Scores of a looked-up answer from 0 to 1, 1 being best.

    ``points_supported``
        Share of the sentences that claim something which a judge that has read both finds supported. Without a judge,
        an answer has no such score.
    ``references_found``
        Share of the references that exist among those that exist, are invented or malformed. References that nobody
        could look up ("not checked") count in neither.

    An answer that claims nothing, or gives no reference that could be looked up, has no score.
    """
    claims = [one.status for one in points if one.status != "no claim"]
    statuses = [one.status for point in points for one in point.references if one.status != "not checked"]
    is_read = any(one.judgement is not None for one in points)
    result = {"points_supported": claims.count("supported") / len(claims)} if claims and is_read else {}
    return result | ({"references_found": statuses.count("exists") / len(statuses)} if statuses else {})


def given_passages(ids: Sequence[str], texts: Sequence[str]) -> dict[int, Passage]:
    """The passages that the writer of an answer was given, by the numbers under which they were shown."""
    shown = enumerate(zip(ids, texts, strict=False), start=1)
    return {number: Passage(name, text, name, name, name, number) for number, (name, text) in shown}


def coloured(answer: str, points: Sequence[CheckedSentence]) -> tuple[TextPart, ...]:
    """An answer in parts, each sentence that claims something in the colour of its support; nothing without points."""
    parts: list[TextPart] = []
    done = 0
    for point in points:
        span = locate_quotation(answer[done:], point.text)
        if span is None or point.status not in TONES:
            continue
        start, end = done + span[0], done + span[1]
        parts += [TextPart(answer[done:start])] * (start > done)
        parts.append(TextPart(answer[start:end], TONES[point.status], f"{point.status}: {point.reason}"))
        done = end
    return (*parts, TextPart(answer[done:])) if parts else ()


def point_findings(points: Sequence[CheckedSentence]) -> list[Finding]:
    """What was looked up, for reports: sentences that are contradicted or that nothing bears, and wrong references."""
    results = []
    for point in points:
        quotation = "" if point.evidence is None else point.evidence.quotation
        if point.status in ("contradicted", "unsupported"):
            results.append(Finding(point.text, point.status, TONES[point.status], point.reason, quotation))
        results += [Finding(one.text, one.status, "wrong", one.reason) for one in point.wrong_references]
    return results
