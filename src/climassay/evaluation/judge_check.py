"""The judge is judged: does it agree with people and with itself, and stay firm where nothing that matters changes?

Answers that people have rated are rated by the judge, again at temperature 1, with the dimensions in the opposite
order, and after code made them longer or more confident without adding anything. Pairs of answers to one question are
compared in both orders. Each test has a bound that was fixed beforehand; it is passed or failed where the whole
interval lies on one side of it, and the judge can be relied on where all are passed.

References:
    Krippendorff (2004), Content Analysis, section 11.4 (alpha of 0.667 as the least for tentative conclusions).
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, cycle, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from climassay.corpus.documents import split_sentences
from climassay.errors import InputError
from climassay.evaluation.long_answers import Better, prefer
from climassay.evaluation.results import Experiment
from climassay.io import parse_rows, read_bytes
from climassay.metrics.factual_accuracy import JudgeFailure
from climassay.metrics.long_answers import CREDITS, DIMENSIONS, HIGHEST, LOWEST, LongAnswerAssessment, Marker
from climassay.metrics.registry import LongAnswer
from climassay.models.contract import Generator
from climassay.prompts import profile_of
from climassay.questions import TYPES, Question
from climassay.questions.types.longform import CriterionVerdict
from climassay.reporting import Table
from climassay.reporting.results import Result
from climassay.statistics import (
    Estimate,
    ResampledEstimate,
    bootstrap_interval,
    krippendorff_alpha,
    mean_estimate,
    paired_difference,
    percentile_interval,
    proportion,
)
from climassay.statistics.agreement import spearman_of_resamples

Outcome = Literal["passed", "failed", "not decided"]
LEAST_ALPHA = 0.667
LEAST_REPETITION = 0.8
LEAST_CONSISTENCY = 0.8
MOST_SHIFT = 0.25
"""Points of 5 that an answer may gain by being longer or more confident."""
RESAMPLES = 500
_ANOTHER_SEED = 1000
_LEAST_GROUP = 3
"""Answers of a question that have a rank correlation."""


class RatedAnswer(NamedTuple):
    """An answer with what people said of it."""

    answer: LongAnswer
    group: str
    """Answers to one question, or about one source, are compared with each other only."""
    ratings: Mapping[str, tuple[float, ...]]
    """Ratings from 1 to 5 by dimension, one a rater; none where nobody rated."""
    verdicts: Mapping[int, tuple[CriterionVerdict, ...]] = {}
    """Verdicts on criteria of the answer's rubric by their place in it, one a rater."""


class Preferred(NamedTuple):
    """Two answers to one question, and which of them a person found better."""

    question: str
    audience: str
    first: str
    second: str
    better: Better


class BlindAnswer(NamedTuple):
    """A long answer of an experiment, to be rated by somebody who cannot tell which model wrote it."""

    id: str
    """Digest of run, cell and question."""
    question: Question
    answer: str


def read_ratings(
    file: Path,
    labels: Mapping[str, str],
    *,
    question: str = "question",
    answer: str = "answer",
    group: str | None = None,
    scale: tuple[float, float] = (LOWEST, HIGHEST),
) -> list[RatedAnswer]:
    """Rated answers of a table (CSV, JSONL, Parquet ...), such as :func:`blind_rows` makes, filled in.

    Args:
        file: The table.
        labels: Dimension of each column of ratings; several columns of one dimension are several raters. By default
            the columns that are called as the eight dimensions are.
        question: Column of the question, or of the source that the answers are about.
        answer: Column of the answer.
        group: Column that says which answers belong together; by default the question.
        scale: Lowest and highest rating of the file, drawn to 1 and 5.

    Raises:
        InputError: A column is missing, a rating is not a number of the scale, or nothing is rated.
    """
    low, high = scale
    if not low < high:
        raise InputError(f"The scale of ratings goes from a lower to a higher number, not from {low:g} to {high:g}.")
    rows = list(parse_rows(file, read_bytes(file)))
    present = {name for row in rows for name in row}
    known = [one.name for one in DIMENSIONS]
    named = dict(labels) or {name: name for name in known if name in present}
    missing = [name for name in (question, answer, *((group,) if group else ()), *named) if name not in present]
    if missing or not named:
        what = f"the column {missing[0]!r}" if missing else f"ratings: a column such as {known[4]}, or --label COLUMN"
        raise InputError(f"{file} lacks {what}.")
    results = []
    for number, row in enumerate(rows, start=1):
        given: dict[str, list[float]] = defaultdict(list)
        for column, dimension in named.items():
            value = row.get(column)
            if value is None or not str(value).strip():
                continue
            try:
                rating = float(str(value))
            except ValueError:
                rating = float("nan")
            if not low <= rating <= high:
                raise InputError(
                    f"Row {number} of {file}: {value!r} in {column!r} is not a rating from {low:g} to {high:g}."
                )
            given[dimension].append(LOWEST + (rating - low) / (high - low) * (HIGHEST - LOWEST))
        asked, text = (" ".join(str(row.get(name) or "").split(" ")) for name in (question, answer))
        if given and text.strip():
            audience = str(row.get("audience") or "")
            ratings = {name: tuple(values) for name, values in given.items()}
            results.append(
                RatedAnswer(LongAnswer(asked, text, (), audience), str(row[group] if group else asked), ratings)
            )
    if not results:
        raise InputError(f"{file} has no rated answer.")
    return results


def blind_answers(experiment: Experiment, *, seed: int = 0) -> list[BlindAnswer]:
    """Long answers of an experiment, those to one question together, in an order drawn by the seed.

    Raises:
        InputError: The experiment has no long answer.
    """
    asked = {(name, one.id): one for name, ones in experiment.questions.items() for one in ones}
    results = []
    for outcome in experiment.outcomes:
        if TYPES[outcome.cell.task].judged and outcome.answer:
            question = asked[outcome.cell.benchmark, outcome.question]
            key = "\n".join((experiment.run, repr(outcome.cell), outcome.question))
            results.append(BlindAnswer(hashlib.sha256(key.encode()).hexdigest()[:12], question, outcome.answer))
    if not results:
        raise InputError(f"The experiment {experiment.run} has no long answers to rate.")
    order = np.random.default_rng(seed).permutation(len(results))
    return sorted((results[int(place)] for place in order), key=lambda one: one.question.question)


def blind_rows(experiment: Experiment, *, seed: int = 0) -> list[dict[str, str]]:
    """:func:`blind_answers` as rows: question, audience and answer, and an empty column for each dimension."""
    empty = dict.fromkeys((one.name for one in DIMENSIONS), "")
    return [
        {"id": id_, "question": asked.question, "audience": asked.audience, "answer": answer, **empty}
        for id_, asked, answer in blind_answers(experiment, seed=seed)
    ]


def made_longer(text: str) -> str:
    """The text with all of its sentences said again, and nothing else."""
    return f"{text}\n\nTo say it once more: {' '.join(split_sentences(text))} These are the points that matter here."


_CERTAIN = ("There is no doubt about this: ", "It is beyond question: ", "Every expert agrees: ", "Without exception: ")


def made_confident(text: str) -> str:
    """The text with a word of certainty before each sentence, and nothing else."""
    return "\n\n".join(
        " ".join(f"{word}{one}" for word, one in zip(cycle(_CERTAIN), split_sentences(part), strict=False))
        for part in text.split("\n\n")
    )


PERTURBATIONS: Mapping[str, Callable[[str], str]] = {"longer": made_longer, "more confident": made_confident}


@dataclass(frozen=True, slots=True)
class JudgeTest:
    """One thing that is asked of a judge."""

    name: str
    dimension: str
    """Empty for tests of all dimensions together."""
    estimate: Estimate | ResampledEstimate | None
    """None where it could not be measured."""
    bound: float | None
    """None for figures that are shown and decide nothing."""
    above: bool = True
    """Whether the value is to lie above the bound."""

    @property
    def outcome(self) -> Outcome | None:
        """Passed or failed where the whole interval lies beyond the bound; a judge at a bound has passed nothing."""
        if self.bound is None:
            return None
        if self.estimate is None or self.estimate.interval is None:
            return "not decided"
        low, high = self.estimate.interval
        if not self.above:
            low, high = -high, -low
        bound = self.bound if self.above else -self.bound
        return "passed" if low > bound else "failed" if high < bound else "not decided"


@dataclass(frozen=True)
class JudgeCheck(Result):
    """Whether a judge can be relied on."""

    judge: str
    answers: int
    groups: int
    tests: tuple[JudgeTest, ...]
    failed: int
    """Answers that the judge did not give, over all askings."""
    ratings: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> Outcome:
        """Passed where every test is passed, failed where one is failed."""
        outcomes = {test.outcome for test in self.tests} - {None}
        return "failed" if "failed" in outcomes else "not decided" if "not decided" in outcomes else "passed"

    @property
    def sentence(self) -> str:
        """The verdict in words, with the tests that stand against it."""
        open_ = [f"{one.name} ({one.dimension})" if one.dimension else one.name for one in self.tests
                 if one.outcome == self.verdict]  # fmt: skip
        words = {
            "passed": "The judge can be relied on for answers like these: it passed every test.",
            "failed": f"The judge cannot be relied on: it failed {'; '.join(open_)}.",
            "not decided": f"Whether the judge is reliable is open: too few answers to decide {'; '.join(open_)}.",
        }
        return words[self.verdict]

    def title(self) -> str:
        """The judge's name."""
        return f"Can {self.judge} be relied on as a judge?"

    def lines(self) -> Iterator[str]:
        """The verdict, before any figure."""
        yield self.sentence

    def notes(self) -> Iterator[str]:
        """What was measured."""
        yield self.sentence
        yield f"{self.answers} answers in {self.groups} groups; {self.failed} answers of the judge failed."

    def tables(self) -> list[Table]:
        """Every test with its interval and bound."""
        rows = []
        for one in self.tests:
            shown, interval = "-", "-"
            if one.estimate is not None:
                shown = f"{one.estimate.value:.3f}"
            if one.estimate is not None and one.estimate.interval is not None:
                interval = " to ".join(f"{end:.3f}" for end in one.estimate.interval)
            bound = "-" if one.bound is None else f"{'above' if one.above else 'below'} {one.bound:g}"
            n = "-" if one.estimate is None else str(one.estimate.n)
            rows.append([one.name, one.dimension or "all", shown, interval, n, bound, one.outcome or "-"])
        note = (
            "Agreement: Krippendorff's alpha (interval scale) of the judge and the people's mean; intervals by "
            "resampling groups. Rank correlation: Spearman's, within groups, mean over groups; a constant judge has 0, "
            "and length is the baseline. With itself: alpha of two askings, the second at temperature 1. Gains are in "
            "points of five."
        )
        headings = ["test", "dimension", "value", "95% interval", "n", "bound", "outcome"]
        return [Table.of(self.title(), headings, rows, left=2, note=note)]

    def to_dict(self) -> dict[str, Any]:
        """Verdict, tests and every rating."""
        tests = [
            {"name": t.name, "dimension": t.dimension, "estimate": t.estimate, "bound": t.bound, "outcome": t.outcome}
            for t in self.tests
        ]
        facts = {"judge": self.judge, "verdict": self.verdict, "sentence": self.sentence, "answers": self.answers}
        return {**facts, "groups": self.groups, "failed": self.failed, "tests": tests, "ratings": list(self.ratings)}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row per answer and dimension: people's ratings and the judge's."""
        return self.ratings


def check_judge(
    items: Sequence[RatedAnswer],
    judge: Generator,
    *,
    preferred: Sequence[Preferred] = (),
    pairs: int = 100,
    seed: int = 0,
    on_step: Callable[[str], None] = lambda _: None,
) -> JudgeCheck:
    """Rate answers that people have rated, in every manner, and compare.

    Args:
        items: From :func:`read_ratings`.
        judge: The judge, behind records.
        preferred: Pairs that people compared; without any, whom they prefer follows from their ratings.
        pairs: Maximum number of pairs of answers that are compared in both orders, drawn by the seed.
        seed: Seed of draws and resampling.
        on_step: Called with the name of each step as it begins.

    Raises:
        InputError: A dimension is not one of the eight.
    """
    known = {one.name: one for one in DIMENSIONS}
    names = list(dict.fromkeys(name for item in items for name in item.ratings))
    if strange := [name for name in names if name not in known]:
        raise InputError(f"{strange[0]!r} is not one of the dimensions {', '.join(known)}.")
    dimensions = [known[name] for name in names]
    answers = [item.answer._replace(rubric=()) for item in items]
    groups = [item.group for item in items]
    tests: list[JudgeTest] = []
    failed = 0

    def rated(what: str, texts: Sequence[LongAnswer], **options: Any) -> dict[str, list[float | None]]:
        nonlocal failed
        on_step(what)
        result = [
            {rated.dimension: round(rated.rating, 2) for rated in one.ratings}
            for one in Marker(judge, **options).assess(texts, dimensions)
        ]
        failed += sum(not one for one in result)
        return {name: [one.get(name) for one in result] for name in names}

    plain = rated("rating", answers)
    # What is read from probabilities, one dimension per request, is the same every time and in every order.
    words = not profile_of(judge).scored
    again = rated("rating again", answers, seed=_ANOTHER_SEED, temperature=1.0) if words else {}
    turned = rated("rating in reversed order", answers, reverse=True) if words and len(names) > 1 else {}
    changed = {
        what: rated(f"rating answers made {what}", [one._replace(answer=change(one.answer)) for one in answers])
        for what, change in PERTURBATIONS.items()
    }
    lengths = [float(len(one.answer.split())) for one in answers]
    for name in names:
        people = [_mean(item.ratings.get(name, ())) for item in items]
        tests.append(
            JudgeTest("agreement with people", name, alpha_estimate([people, plain[name]], groups, seed), LEAST_ALPHA)
        )
        each = list(zip_longest(*(item.ratings.get(name, ()) for item in items)))
        if len(each) > 1:
            tests.append(JudgeTest("agreement among people", name, alpha_estimate(each, groups, seed), None))
        tests.append(JudgeTest("rank correlation with people", name, _ranks(people, plain[name], groups, seed), 0.0))
        tests.append(JudgeTest("rank correlation of length", name, _ranks(people, lengths, groups, seed), None))
        if again:
            repeated = alpha_estimate([plain[name], again[name]], groups, seed)
            tests.append(JudgeTest("agreement with itself", name, repeated, LEAST_REPETITION))
        if turned:
            reversed_ = alpha_estimate([plain[name], turned[name]], groups, seed)
            tests.append(JudgeTest("dimensions in the opposite order", name, reversed_, LEAST_REPETITION))
        for what, values in changed.items():
            both = [(a, b) for a, b in zip(plain[name], values[name], strict=True) if None not in (a, b)]
            gain = paired_difference(*zip(*both, strict=True), seed=seed).difference if both else None
            tests.append(JudgeTest(f"gain of answers made {what}", name, gain, MOST_SHIFT, above=False))
    if any(item.verdicts for item in items):
        on_step("marking rubrics")
        result = Marker(judge).assess([item.answer for item in items if item.verdicts], ())
        failed += sum(not one.criteria for one in result)
        agreement = _verdict_agreement([item for item in items if item.verdicts], result, seed)
        tests.append(JudgeTest("agreement on criteria", "", agreement, LEAST_ALPHA))
    on_step("comparing pairs")
    compared, lost = _compared(preferred or _by_ratings(items), judge, pairs, seed)
    failed += lost
    tests += compared
    shown = {"judge": plain, "again": again, **changed}
    rows = [
        {
            "question": item.answer.question,
            "answer": item.answer.answer,
            "group": item.group,
            "dimension": name,
            "people": _mean(item.ratings.get(name, ())),
            **{what: values[name][place] for what, values in shown.items() if values},
        }
        for place, item in enumerate(items)
        for name in names
    ]
    return JudgeCheck(judge.name, len(items), len(set(groups)), tuple(tests), failed, tuple(rows))


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _verdict_agreement(
    items: Sequence[RatedAnswer], found: Sequence[LongAnswerAssessment], seed: int
) -> ResampledEstimate | None:
    """Alpha of the judge's verdicts with what most people said, ties by the first of them; criteria as units."""
    people, judge, groups = [], [], []
    verdicts = list(CREDITS)
    for item, assessed in zip(items, found, strict=True):
        for place, given in item.verdicts.items():
            people.append(float(verdicts.index(max(given, key=given.count))))
            judge.append(float(verdicts.index(assessed.criteria[place].verdict)) if assessed.criteria else None)
            groups.append(item.group)
    return alpha_estimate([people, judge], groups, seed, nominal=True)


def alpha_estimate(
    rows: Sequence[Sequence[float | None]], groups: Sequence[str], seed: int, *, nominal: bool = False
) -> ResampledEstimate | None:
    """Alpha, its interval over groups (over answers where there is one group only); None where nothing has two."""
    units: dict[str, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        units[group if len(set(groups)) > 1 else str(place)].append(place)
    members = list(units.values())

    def alpha(places: Sequence[int]) -> float | None:
        try:
            rated = [[row[place] for place in places] for row in rows]
            return krippendorff_alpha(rated, measurement="nominal" if nominal else "interval")
        except InputError:
            return None

    value = alpha(range(len(groups)))
    if value is None:
        return None
    generator = np.random.default_rng(seed)
    drawn = (
        alpha([place for unit in generator.integers(0, len(members), len(members)) for place in members[unit]])
        for _ in range(RESAMPLES)
    )
    drawn_interval = percentile_interval([one for one in drawn if one is not None])
    return ResampledEstimate.of(value, drawn_interval, len(members))


def _ranks(
    people: Sequence[float | None], judge: Sequence[float | None], groups: Sequence[str], seed: int
) -> ResampledEstimate | None:
    """Mean rank correlation within groups; a group in which the judge says the same of all has 0."""
    members: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for group, one, other in zip(groups, people, judge, strict=True):
        if one is not None and other is not None:
            members[group].append((one, other))
    results = []
    for pairs in members.values():
        first, second = np.array(pairs, dtype=np.float64).T
        if len(pairs) >= _LEAST_GROUP and np.ptp(first) > 0:
            rho = spearman_of_resamples(first, second, np.arange(len(pairs))[None])[0]
            results.append(0.0 if np.isnan(rho) else float(rho))
    if not results:
        return None
    drawn = bootstrap_interval(results, lambda rows: float(rows.mean()), seed=seed)
    return ResampledEstimate.of(float(np.mean(results)), drawn, len(results))


def _by_ratings(items: Sequence[RatedAnswer]) -> list[Preferred]:
    """Every two answers of a group, with whom people's ratings prefer."""
    members: dict[str, list[RatedAnswer]] = defaultdict(list)
    for item in items:
        members[item.group].append(item)
    results = []
    for own in members.values():
        for one, other in combinations(own, 2):
            gap = sum(map(np.mean, one.ratings.values())) - sum(map(np.mean, other.ratings.values()))
            better: Better = "first" if gap > 0 else "second" if gap < 0 else "tie"
            shown = one.answer
            results.append(Preferred(shown.question, shown.audience, shown.answer, other.answer.answer, better))
    return results


def _compared(every: Sequence[Preferred], judge: Generator, most: int, seed: int) -> tuple[list[JudgeTest], int]:
    """Whether the two orders of a pair agree, how often the first is preferred, and whether people agree."""
    chosen = sorted(np.random.default_rng(seed).permutation(len(every))[:most].tolist())
    pairs = [every[place] for place in chosen]
    asked = [
        (pair.question, pair.audience, *answers)
        for pair in pairs
        for answers in ((pair.first, pair.second), (pair.second, pair.first))
    ]
    verdicts = prefer(asked, judge) if asked else []
    agreeing, decided, right = [], [], []
    signs = {"first": 1, "second": -1, "tie": 0}
    for number, pair in enumerate(pairs):
        there, back = verdicts[2 * number : 2 * number + 2]
        if isinstance(there, JudgeFailure) or isinstance(back, JudgeFailure):
            continue
        forth, other_way = signs[there[0]], -signs[back[0]]
        agreeing.append(forth == other_way)
        decided += [better == "first" for better in (there[0], back[0]) if better != "tie"]
        if pair.better != "tie":
            right.append((1 + signs[pair.better] * np.sign(forth + other_way)) / 2)

    def share(values: Sequence[bool]) -> Estimate | None:
        return proportion(sum(values), len(values)) if values else None

    tests = [
        JudgeTest("both orders of a pair agree", "", share(agreeing), LEAST_CONSISTENCY),
        JudgeTest("prefers the answer shown first", "", share(decided), None),
        JudgeTest("prefers whom people prefer", "", mean_estimate(right, seed=seed) if right else None, 0.5),
    ]
    return tests, sum(isinstance(one, JudgeFailure) for one in verdicts)
