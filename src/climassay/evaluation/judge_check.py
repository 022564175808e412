"""Checks of a judge: agreement with people and with itself, and stability under changes that do not matter.

The judge rates answers that people have rated: once, again at temperature 1, with the dimensions in reversed order, and
after code made the answers longer or more confident without adding anything. Pairs of answers to one question are
compared in both orders. Each test has a bound that was fixed beforehand. A test is passed or failed if the whole
interval lies on one side of the bound; the judge is reliable if it passes all tests.

References:
    Krippendorff (2004), Content Analysis, section 11.4 (alpha of 0.667 as the minimum for tentative conclusions).
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, cycle, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError
from climassay.evaluation.long_answers import SIGNS, Better, judge_pairs
from climassay.evaluation.results import Experiment
from climassay.io import parse_rows, read_bytes
from climassay.metrics.factual_accuracy import JudgeFailure
from climassay.metrics.long_answers import CREDITS, DIMENSIONS, HIGHEST, LOWEST, LongAnswerAssessment, LongAnswerGrader
from climassay.metrics.registry import LongAnswer
from climassay.models.contract import Generator
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

CheckOutcome = Literal["passed", "failed", "not decided"]
MIN_ALPHA = 0.667
"""Minimum Krippendorff's alpha between the judge and people."""
MIN_REPETITION = 0.8
"""Minimum Krippendorff's alpha between two ratings of the same answer by the judge."""
MIN_CONSISTENCY = 0.8
"""Minimum proportion of pairs in which the judge prefers the same answer in both orders."""
MAX_GAIN = 0.25
"""Maximum mean gain in rating, on the scale from 1 to 5, of answers made longer or more confident."""
RESAMPLES = 500
_SECOND_SEED = 1000
_MIN_GROUP_SIZE = 3
"""Minimum number of answers in a group for a rank correlation."""


class RatedAnswer(NamedTuple):
    """An answer with the ratings that people gave it."""

    answer: LongAnswer
    group: str
    """Name of the answer's group, such as its question. Only answers in the same group are compared."""
    ratings: Mapping[str, tuple[float, ...]]
    """Ratings from 1 to 5 by dimension, one per rater; empty if nobody rated the answer."""
    verdicts: Mapping[int, tuple[CriterionVerdict, ...]] = {}
    """Verdicts on criteria by index in the rubric, one per rater."""


class PreferredAnswer(NamedTuple):
    """Two answers to a question, with a person's preference."""

    question: str
    audience: str
    first: str
    second: str
    better: Better


class BlindAnswer(NamedTuple):
    """A long answer of an experiment, without the name of its model."""

    id: str
    """Hash of the run, model, setting and question, 12 hexadecimal digits."""
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
    """Read rated answers from a table (CSV, JSONL, Parquet ...), such as a completed table of :func:`blind_rows`.

    Args:
        file: File of the table.
        labels: Dimension of each column of ratings, by name of the column; several columns of a dimension are those of
            several raters. By default the columns that are named like one of the eight dimensions.
        question: Column of the question, or of the source text that the answers are about.
        answer: Column of the answer.
        group: Column that identifies the answers to compare with each other; by default the question.
        scale: Lowest and highest possible rating in the file, which are mapped to 1 and 5.

    Raises:
        InputError: A column is missing, a rating is not a number of the scale, or nothing is rated.
    """
    low, high = scale
    if not low < high:
        raise InputError(f"The scale of ratings goes from a lower to a higher number, not from {low:g} to {high:g}.")
    rows = list(parse_rows(file, read_bytes(file)))
    columns_present = {name for row in rows for name in row}
    dimensions = [dimension.name for dimension in DIMENSIONS]
    dimension_by_column = dict(labels) or {name: name for name in dimensions if name in columns_present}
    columns = (question, answer, *((group,) if group else ()), *dimension_by_column)
    missing_columns = [name for name in columns if name not in columns_present]
    if missing_columns or not dimension_by_column:
        expected_columns = f"ratings: a column such as {dimensions[4]}, or --label COLUMN"
        raise InputError(
            f"{file} lacks {f'the column {missing_columns[0]!r}' if missing_columns else expected_columns}."
        )
    results = []
    for row_number, row in enumerate(rows, start=1):
        ratings: dict[str, list[float]] = defaultdict(list)
        for column, dimension in dimension_by_column.items():
            value = row.get(column)
            if value is None or not str(value).strip():
                continue
            try:
                rating = float(str(value))
            except ValueError:
                rating = float("nan")
            if not low <= rating <= high:
                raise InputError(
                    f"Row {row_number} of {file}: {value!r} in {column!r} is not a rating from {low:g} to {high:g}."
                )
            ratings[dimension].append(LOWEST + (rating - low) / (high - low) * (HIGHEST - LOWEST))
        question_text, answer_text = (str(row.get(name) or "") for name in (question, answer))
        if ratings and answer_text.strip():
            long_answer = LongAnswer(question_text, answer_text, (), str(row.get("audience") or ""))
            group_name = str(row[group] if group else question_text)
            ratings_by_rater = {name: tuple(values) for name, values in ratings.items()}
            results.append(RatedAnswer(long_answer, group_name, ratings_by_rater))
    if not results:
        raise InputError(f"{file} has no rated answer.")
    return results


def blind_answers(experiment: Experiment, *, seed: int = 0) -> list[BlindAnswer]:
    """Return the long answers of an experiment, grouped by question and in random order within a question.

    Raises:
        InputError: The experiment has no long answer.
    """
    questions = {
        (benchmark, question.id): question
        for benchmark, benchmark_questions in experiment.questions.items()
        for question in benchmark_questions
    }
    results = []
    for outcome in experiment.outcomes:
        if TYPES[outcome.cell.task].is_judged and outcome.answer:
            question = questions[outcome.cell.benchmark, outcome.question]
            key = "\n".join((experiment.run, repr(outcome.cell), outcome.question))
            results.append(BlindAnswer(hashlib.sha256(key.encode()).hexdigest()[:12], question, outcome.answer))
    if not results:
        raise InputError(f"The experiment {experiment.run} has no long answers to rate.")
    order = np.random.default_rng(seed).permutation(len(results))
    return sorted((results[index] for index in order), key=lambda answer: answer.question.question)


def blind_rows(experiment: Experiment, *, seed: int = 0) -> list[dict[str, str]]:
    """Return :func:`blind_answers` as rows with question, audience, answer and an empty column per dimension."""
    empty_ratings = dict.fromkeys((dimension.name for dimension in DIMENSIONS), "")
    return [
        {
            "id": answer_id,
            "question": question.question,
            "audience": question.audience,
            "answer": answer,
            **empty_ratings,
        }
        for answer_id, question, answer in blind_answers(experiment, seed=seed)
    ]


def lengthen(text: str) -> str:
    """Return a text in which all sentences are repeated once at the end."""
    return f"{text}\n\nTo say it once more: {' '.join(split_sentences(text))} These are the points that matter here."


_CERTAINTY_PHRASES = (
    "There is no doubt about this: ",
    "It is beyond question: ",
    "Every expert agrees: ",
    "Without exception: ",
)


def add_certainty(text: str) -> str:
    """Return a text with a phrase that claims certainty before each sentence."""
    return "\n\n".join(
        " ".join(
            f"{phrase}{sentence}"
            for phrase, sentence in zip(cycle(_CERTAINTY_PHRASES), split_sentences(paragraph), strict=False)
        )
        for paragraph in text.split("\n\n")
    )


PERTURBATIONS: Mapping[str, Callable[[str], str]] = {"longer": lengthen, "more confident": add_certainty}


@dataclass(frozen=True, slots=True)
class JudgeTest:
    """Result of one test of a judge."""

    name: str
    dimension: str
    """Dimension whose ratings are tested; empty for a test of the judge as a whole."""
    estimate: Estimate | ResampledEstimate | None
    """Measured value; None if it could not be measured."""
    bound: float | None
    """Bound that the value must meet; None for a value that is reported but not tested."""
    is_minimum: bool = True
    """Whether the bound is a minimum of the value; otherwise it is a maximum."""

    @property
    def outcome(self) -> CheckOutcome | None:
        """Outcome of the test: ``passed``, ``failed`` or ``not decided``; None if the test has no bound.

        A test is passed if the whole confidence interval lies on the required side of the bound (above a minimum, below
        a maximum), and failed if the whole interval lies on the other side. It is not decided if the interval contains
        the bound, or if there is no interval.
        """
        if self.bound is None:
            return None
        if self.estimate is None or self.estimate.interval is None:
            return "not decided"
        lower_bound, upper_bound = self.estimate.interval
        if not self.is_minimum:
            lower_bound, upper_bound = -upper_bound, -lower_bound
        bound = self.bound if self.is_minimum else -self.bound
        return "passed" if lower_bound > bound else "failed" if upper_bound < bound else "not decided"


@dataclass(frozen=True)
class JudgeCheck(Result):
    """Result of all tests of a judge."""

    judge: str
    answers: int
    groups: int
    tests: tuple[JudgeTest, ...]
    failed: int
    """Number of failed requests to the judge."""
    ratings: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> CheckOutcome:
        """Overall outcome: ``failed`` if any test failed, ``passed`` if all tests passed, else ``not decided``."""
        outcomes = {test.outcome for test in self.tests} - {None}
        return "failed" if "failed" in outcomes else "not decided" if "not decided" in outcomes else "passed"

    @property
    def sentence(self) -> str:
        """Sentence that states whether the judge is reliable, and names the tests that it failed or did not decide."""
        decisive_tests = [test for test in self.tests if test.outcome == self.verdict]
        names = "; ".join(f"{test.name} ({test.dimension})" if test.dimension else test.name for test in decisive_tests)
        sentences = {
            "passed": "The judge can be relied on for answers like these: it passed every test.",
            "failed": f"The judge cannot be relied on: it failed {names}.",
            "not decided": f"Whether the judge is reliable is open: too few answers to decide {names}.",
        }
        return sentences[self.verdict]

    def title(self) -> str:
        """Return a title with the name of the judge."""
        return f"Can {self.judge} be relied on as a judge?"

    def lines(self) -> Iterator[str]:
        """Yield a sentence that states whether the judge is reliable."""
        yield self.sentence

    def notes(self) -> Iterator[str]:
        """Yield a sentence that states whether the judge is reliable, then the numbers of answers and failures."""
        yield self.sentence
        yield f"{self.answers} answers in {self.groups} groups; {self.failed} answers of the judge failed."

    def tables(self) -> list[Table]:
        """Return a table of all tests with intervals and bounds."""
        rows = []
        for test in self.tests:
            value, interval = "-", "-"
            if test.estimate is not None:
                value = f"{test.estimate.value:.3f}"
            if test.estimate is not None and test.estimate.interval is not None:
                interval = " to ".join(f"{end:.3f}" for end in test.estimate.interval)
            bound = "-" if test.bound is None else f"{'above' if test.is_minimum else 'below'} {test.bound:g}"
            n = "-" if test.estimate is None else str(test.estimate.n)
            rows.append([test.name, test.dimension or "all", value, interval, n, bound, test.outcome or "-"])
        note = (
            "Agreement: Krippendorff's alpha (interval scale) of the judge and the people's mean; intervals by "
            "resampling groups. Rank correlation: Spearman's, within groups, mean over groups; a constant judge has 0, "
            "and length is the baseline. With itself: alpha of two askings, the second at temperature 1. Gains are in "
            "points of five."
        )
        headings = ["test", "dimension", "value", "95% interval", "n", "bound", "outcome"]
        return [Table.of(self.title(), headings, rows, left_columns=2, note=note)]

    def to_dict(self) -> dict[str, Any]:
        """Return verdict, tests and ratings as JSON-serialisable values."""
        tests = [
            {"name": t.name, "dimension": t.dimension, "estimate": t.estimate, "bound": t.bound, "outcome": t.outcome}
            for t in self.tests
        ]
        facts = {"judge": self.judge, "verdict": self.verdict, "sentence": self.sentence, "answers": self.answers}
        return {**facts, "groups": self.groups, "failed": self.failed, "tests": tests, "ratings": list(self.ratings)}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return a row for each answer and dimension, with people's and the judge's ratings."""
        return self.ratings


def check_judge(
    items: Sequence[RatedAnswer],
    judge: Generator,
    *,
    preferred: Sequence[PreferredAnswer] = (),
    pairs: int = 100,
    seed: int = 0,
    on_step: Callable[[str], None] = lambda _: None,
) -> JudgeCheck:
    """Test a judge on answers that people rated.

    The judge rates the answers, rates them again, rates changed versions of them, and compares pairs of them.

    Args:
        items: Rated answers (:func:`read_ratings`).
        judge: Judge, wrapped so that its answers are recorded.
        preferred: Pairs that people compared; if empty, preferences are derived from people's ratings.
        pairs: Maximum number of pairs of answers, drawn at random, that are compared in both orders.
        seed: Random seed for sampling and bootstraps.
        on_step: Function that is called with the name of each step when it begins.

    Raises:
        InputError: An answer is rated in an unknown dimension.
    """
    by_name = {dimension.name: dimension for dimension in DIMENSIONS}
    names = list(dict.fromkeys(name for item in items for name in item.ratings))
    if unknown_names := [name for name in names if name not in by_name]:
        raise InputError(f"{unknown_names[0]!r} is not one of the dimensions {', '.join(by_name)}.")
    dimensions = [by_name[name] for name in names]
    answers = [item.answer._replace(rubric=()) for item in items]
    groups = [item.group for item in items]
    tests: list[JudgeTest] = []
    n_failures = 0

    def rate(step: str, texts: Sequence[LongAnswer], **options: Any) -> dict[str, list[float | None]]:
        nonlocal n_failures
        on_step(step)
        ratings = [
            {rating.dimension: round(rating.rating, 2) for rating in assessment.ratings}
            for assessment in LongAnswerGrader(judge, **options).assess(texts, dimensions)
        ]
        n_failures += sum(not by_dimension for by_dimension in ratings)
        return {name: [by_dimension.get(name) for by_dimension in ratings] for name in names}

    ratings_once = rate("rating", answers)
    ratings_again = rate("rating again", answers, seed=_SECOND_SEED, temperature=1.0)
    ratings_reversed = rate("rating in reversed order", answers, reverse=True) if len(names) > 1 else {}
    ratings_by_perturbation = {
        label: rate(f"rating answers made {label}", [text._replace(answer=change(text.answer)) for text in answers])
        for label, change in PERTURBATIONS.items()
    }
    lengths = [float(len(text.answer.split())) for text in answers]
    for name in names:
        human_ratings = [_mean_or_none(item.ratings.get(name, ())) for item in items]
        tests.append(
            JudgeTest(
                "agreement with people",
                name,
                alpha_estimate([human_ratings, ratings_once[name]], groups, seed),
                MIN_ALPHA,
            )
        )
        by_rater = list(zip_longest(*(item.ratings.get(name, ()) for item in items)))
        if len(by_rater) > 1:
            tests.append(JudgeTest("agreement among people", name, alpha_estimate(by_rater, groups, seed), None))
        correlation = _correlate_ranks(human_ratings, ratings_once[name], groups, seed)
        tests.append(JudgeTest("rank correlation with people", name, correlation, 0.0))
        baseline = _correlate_ranks(human_ratings, lengths, groups, seed)
        tests.append(JudgeTest("rank correlation of length", name, baseline, None))
        agreement = alpha_estimate([ratings_once[name], ratings_again[name]], groups, seed)
        tests.append(JudgeTest("agreement with itself", name, agreement, MIN_REPETITION))
        if ratings_reversed:
            agreement = alpha_estimate([ratings_once[name], ratings_reversed[name]], groups, seed)
            tests.append(JudgeTest("dimensions in reversed order", name, agreement, MIN_REPETITION))
        for label, ratings in ratings_by_perturbation.items():
            complete_pairs = [pair for pair in zip(ratings_once[name], ratings[name], strict=True) if None not in pair]
            gain = (
                paired_difference(*zip(*complete_pairs, strict=True), seed=seed).difference if complete_pairs else None
            )
            tests.append(JudgeTest(f"gain of answers made {label}", name, gain, MAX_GAIN, is_minimum=False))
    if items_with_verdicts := [item for item in items if item.verdicts]:
        on_step("marking rubrics")
        assessments = LongAnswerGrader(judge).assess([item.answer for item in items_with_verdicts], ())
        n_failures += sum(not assessment.criteria for assessment in assessments)
        tests.append(
            JudgeTest(
                "agreement on criteria",
                "",
                _compute_verdict_alpha(items_with_verdicts, assessments, seed),
                MIN_ALPHA,
            )
        )
    on_step("comparing pairs")
    comparison_tests, n_failed = _test_comparisons(preferred or _derive_preferences(items), judge, pairs, seed)
    n_failures += n_failed
    tests += comparison_tests
    columns = {"judge": ratings_once, "again": ratings_again, **ratings_by_perturbation}
    rows = [
        {
            "question": item.answer.question,
            "answer": item.answer.answer,
            "group": item.group,
            "dimension": name,
            "people": _mean_or_none(item.ratings.get(name, ())),
            **{column: ratings[name][index] for column, ratings in columns.items()},
        }
        for index, item in enumerate(items)
        for name in names
    ]
    return JudgeCheck(judge.name, len(items), len(set(groups)), tuple(tests), n_failures, tuple(rows))


def _mean_or_none(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _compute_verdict_alpha(
    items: Sequence[RatedAnswer], assessments: Sequence[LongAnswerAssessment], seed: int
) -> ResampledEstimate | None:
    """Return Krippendorff's alpha between the judge's verdicts on criteria and people's most frequent verdicts."""
    people, judge, groups = [], [], []
    verdicts = list(CREDITS)
    for item, assessment in zip(items, assessments, strict=True):
        for index, raters in item.verdicts.items():
            people.append(float(verdicts.index(max(raters, key=raters.count))))
            judge.append(float(verdicts.index(assessment.criteria[index].verdict)) if assessment.criteria else None)
            groups.append(item.group)
    return alpha_estimate([people, judge], groups, seed, nominal=True)


def alpha_estimate(
    rows: Sequence[Sequence[float | None]], groups: Sequence[str], seed: int, *, nominal: bool = False
) -> ResampledEstimate | None:
    """Return Krippendorff's alpha of several raters, with a bootstrap interval over groups.

    Args:
        rows: For each rater, one rating per answer; None for a missing rating.
        groups: Group of each answer; if all answers are in one group, answers are resampled instead of groups.
        seed: Seed of the bootstrap.
        nominal: Whether ratings are nominal; otherwise they are on an interval scale.

    Returns:
        The estimate, or None if no answer has two ratings.
    """
    indices_by_unit: dict[str, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        indices_by_unit[group if len(set(groups)) > 1 else str(index)].append(index)
    index_groups = list(indices_by_unit.values())

    def alpha(indices: Sequence[int]) -> float | None:
        try:
            ratings = [[row[index] for index in indices] for row in rows]
            return krippendorff_alpha(ratings, measurement="nominal" if nominal else "interval")
        except InputError:
            return None

    alpha_of_all = alpha(range(len(groups)))
    if alpha_of_all is None:
        return None
    generator = np.random.default_rng(seed)
    samples = (
        alpha(
            [
                index
                for group_index in generator.integers(0, len(index_groups), len(index_groups))
                for index in index_groups[group_index]
            ]
        )
        for _ in range(RESAMPLES)
    )
    interval = percentile_interval([sample for sample in samples if sample is not None])
    return ResampledEstimate.from_resamples(alpha_of_all, interval, len(index_groups))


def _correlate_ranks(
    human_ratings: Sequence[float | None], judge_ratings: Sequence[float | None], groups: Sequence[str], seed: int
) -> ResampledEstimate | None:
    """Return the mean rank correlation within groups. A group with constant ratings from the judge counts as 0."""
    pairs_by_group: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for group, rating, judge_rating in zip(groups, human_ratings, judge_ratings, strict=True):
        if rating is not None and judge_rating is not None:
            pairs_by_group[group].append((rating, judge_rating))
    correlations = []
    for pairs in pairs_by_group.values():
        human_values, judge_values = np.array(pairs, dtype=np.float64).T
        if len(pairs) >= _MIN_GROUP_SIZE and np.ptp(human_values) > 0:
            rho = spearman_of_resamples(human_values, judge_values, np.arange(len(pairs))[None])[0]
            correlations.append(0.0 if np.isnan(rho) else float(rho))
    if not correlations:
        return None
    interval = bootstrap_interval(correlations, lambda rows: float(rows.mean()), seed=seed)
    return ResampledEstimate.from_resamples(float(np.mean(correlations)), interval, len(correlations))


def _derive_preferences(items: Sequence[RatedAnswer]) -> list[PreferredAnswer]:
    """Return all pairs of answers of a group; the answer whose mean ratings have the higher sum is preferred."""
    items_by_group: dict[str, list[RatedAnswer]] = defaultdict(list)
    for item in items:
        items_by_group[item.group].append(item)
    preferences = []
    for group in items_by_group.values():
        for first, second in combinations(group, 2):
            first_sum, second_sum = (sum(map(np.mean, item.ratings.values())) for item in (first, second))
            better: Better = "first" if first_sum > second_sum else "second" if first_sum < second_sum else "tie"
            preferences.append(
                PreferredAnswer(
                    first.answer.question, first.answer.audience, first.answer.answer, second.answer.answer, better
                )
            )
    return preferences


def _test_comparisons(
    preferences: Sequence[PreferredAnswer], judge: Generator, max_pairs: int, seed: int
) -> tuple[list[JudgeTest], int]:
    """Have the judge compare pairs in both orders, and return tests of its preferences and the number of failures."""
    indices = sorted(np.random.default_rng(seed).permutation(len(preferences))[:max_pairs].tolist())
    pairs = [preferences[index] for index in indices]
    items = [
        (pair.question, pair.audience, *answers)
        for pair in pairs
        for answers in ((pair.first, pair.second), (pair.second, pair.first))
    ]
    verdicts = judge_pairs(items, judge) if items else []
    is_consistent, prefers_first, credits = [], [], []
    for pair, forward, backward in zip(pairs, verdicts[::2], verdicts[1::2], strict=True):
        if isinstance(forward, JudgeFailure) or isinstance(backward, JudgeFailure):
            continue
        signs = SIGNS[forward[0]], -SIGNS[backward[0]]
        is_consistent.append(signs[0] == signs[1])
        prefers_first += [better == "first" for better in (forward[0], backward[0]) if better != "tie"]
        if pair.better != "tie":
            credits.append((1 + SIGNS[pair.better] * np.sign(sum(signs))) / 2)

    def estimate_proportion(values: Sequence[bool]) -> Estimate | None:
        return proportion(sum(values), len(values)) if values else None

    agreement = mean_estimate(credits, seed=seed) if credits else None
    tests = [
        JudgeTest("both orders of a pair agree", "", estimate_proportion(is_consistent), MIN_CONSISTENCY),
        JudgeTest("prefers the answer shown first", "", estimate_proportion(prefers_first), None),
        JudgeTest("prefers the answer that people prefer", "", agreement, 0.5),
    ]
    return tests, sum(isinstance(verdict, JudgeFailure) for verdict in verdicts)
