"""Benchmark of judges: cross-validation by group, comparison with baselines, and storage as a run.

Unlike in the published evaluation, a pair and its mirror image, or two pairs of one article, are never on both sides of
a split. The baselines "constant" and "the longer text is better" are always shown. Accuracy on pairs of nearly equal
length shows how well a judge performs if length is no clue.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np

from climassay.errors import InputError
from climassay.judging.benchmark_result import BenchmarkedJudges
from climassay.judging.judges import (
    NO_ANSWER,
    BootstrapUnits,
    Cost,
    JudgedPairs,
    JudgeScore,
    PairedDifference,
    StateExtractor,
    StateTable,
    correctness,
    correlations,
    layer_choices,
    layers_of,
    open_weights,
    pair_calibration,
)
from climassay.judging.preferences import (
    FloatArray,
    IntArray,
    Item,
    Method,
    Progress,
    Quality,
    QualityRequests,
    by_group,
    with_mirrors,
    word_counts,
)
from climassay.judging.probe import log_length_differences, three_way
from climassay.judging.published_evaluation import LAST_LAYER, PublishedScores, score_as_published
from climassay.judging.ranking import Ranking, sort_items
from climassay.judging.settings import BenchmarkSettings, SortMethod
from climassay.judging.training import (
    METHODS,
    NEEDS_WEIGHTS,
    PROBE_METHODS,
    Candidate,
    Fold,
    MethodName,
    TrainedJudge,
    UntrainedCandidate,
    check_method,
    collect_pairs,
    create_candidate,
    labels_of,
    make_folds,
    pair_outcomes,
    pairs_within,
    train_probe,
)
from climassay.learning.calibration import fit_tie_band
from climassay.learning.evaluation import Calibration
from climassay.models import DEFAULT_MODEL
from climassay.models.contract import Generator, OpenWeights, OptionRequest, OptionScores, ScoresCallback, number_format
from climassay.records import RecordedModel, Run
from climassay.records.queries import RunDetails
from climassay.session import Place, Session

MAX_LENGTH_RATIO = 1.1
"""Two texts count as nearly equally long if the ratio of their word counts, the larger to the smaller, is at most this
value."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a judge with the experts."""

    accuracy_differing: JudgeScore
    """Proportion of the pairs with different labels that the judge orders correctly; an undecided pair counts as half.
    """
    accuracy_three_way: JudgeScore
    """Proportion of all pairs for which the predicted outcome (greater, equal or less) is correct."""
    spearman: JudgeScore
    """Spearman's rank correlation within groups, averaged over groups."""
    kendall: JudgeScore
    """Kendall's tau-b within groups, averaged over groups."""
    accuracy_nearly_equal_length: JudgeScore
    """Accuracy on pairs with different labels whose ratio of word counts is below :data:`MAX_LENGTH_RATIO`."""


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """Point of a learning curve: accuracy of a probe trained on a given number of labelled items."""

    items: int
    """Number of labelled training items."""
    accuracy_differing: JudgeScore


@dataclass(frozen=True, slots=True)
class JudgeScores:
    """Agreement of a method, and of baselines, with the experts."""

    method: str
    quality: str
    agreement: Agreement
    baselines: dict[str, Agreement]
    """Agreement of two baselines by name. ``constant`` always answers "not greater" (in three-way accuracy, the most
    frequent outcome); ``longer`` prefers the longer text.

    The most frequent outcome and the tie band of ``longer`` are fitted on the training pairs, or on the test pairs
    themselves for a judge that is only evaluated.
    """
    versus_longer: PairedDifference
    """Accuracy on pairs with different labels minus the accuracy of "the longer text is better" on the same pairs."""
    versus_longer_nearly_equal: PairedDifference
    """Difference as in ``versus_longer``, on the pairs of nearly equal length."""
    calibration: Calibration | None
    """Calibration of the probabilities on pairs with different labels; None for methods without probabilities."""
    n_items: int
    n_pairs: int
    """Number of unordered test pairs, each judged in both orders."""
    n_pairs_differing: int
    n_groups: int
    failed: int
    """Number of test pairs without an answer. They count as half right in ``accuracy_differing`` and as wrong in
    ``accuracy_three_way``."""
    layers: tuple[tuple[int, ...], ...]
    """Layers whose hidden states the probe of each fold uses."""
    regularisation: tuple[float | None, ...]
    """Regularisation C of the probe of each fold; None for methods without a probe."""
    learning_curve: tuple[LearningPoint, ...] = ()
    order: tuple[tuple[str, float], ...] = field(default=())
    """Id and rank of each item; rank 1 is the best of the group."""
    as_published: PublishedScores | None = None
    """Scores by the evaluation of Maiya (2024), whose training and test pairs share items.

    None if they were not requested, or if the thesis lacks the method.
    """


def score_judge(
    items: Sequence[Item],
    folds: Sequence[Fold],
    candidate: Candidate,
    *,
    method: str,
    quality: str,
    sort: SortMethod = "strengths",
    beam_size: int = 1000,
    threshold: float = 0.6,
    score: Literal["mean", "sum"] = "mean",
    sizes: Sequence[int] = (),
    seed: int = 0,
    on_fold: Callable[[int], None] | None = None,
) -> JudgeScores:
    """Cross-validate one method on folds of labelled items.

    Args:
        items: Labelled items.
        folds: Folds of the items.
        candidate: Method to be scored.
        method: Name of the method, for tables.
        quality: Name of the quality, for tables.
        sort: Sort that ranks each test group from its preferences.
        beam_size: See :func:`climassay.judging.sort_items`.
        threshold: See :func:`climassay.judging.sort_items`.
        score: See :func:`climassay.judging.sort_items`.
        sizes: Numbers of training items at which the learning curve is computed.
        seed: Seed of the bootstrap.
        on_fold: Called with the number of each finished fold.

    Raises:
        InputError: The method cannot learn from the training items of a fold, for example because all have one label.
    """
    candidate.prepare(folds)
    groups = [item.group for item in items]
    bootstrap_units = BootstrapUnits.of(groups, seed=seed)
    n_words = np.array(word_counts(items))
    judged_pairs: list[JudgedPairs] = []
    length_by_fold: list[JudgedPairs] = []
    constant_correct: list[FloatArray] = []
    rankings: list[tuple[IntArray, FloatArray]] = []
    n_failed = 0
    trained_judges: list[TrainedJudge] = []
    labels = labels_of(items)
    sort_group = partial(sort_items, method=sort, beam_size=beam_size, threshold=threshold, score=score)
    for fold in folds:
        try:
            trained_judge = candidate.fit_fold(fold)
        except InputError as error:
            raise InputError(f"Fold {fold.number + 1} of {method}: {error}") from error
        trained_judges.append(trained_judge)
        judgements = trained_judge.judge(fold.test_pairs)
        n_failed += int(judgements.failed.sum())
        truth = labels[fold.test_pairs[:, 0]] - labels[fold.test_pairs[:, 1]]
        # A comparison that failed is not a prediction of equality.
        predictions = np.where(judgements.failed, NO_ANSWER, three_way(judgements.log_odds, trained_judge.tie_band))
        judged_pairs.append(JudgedPairs(fold.test_pairs, truth, judgements.log_odds, predictions))
        ratios, outcomes = log_length_differences(n_words, fold.test_pairs), pair_outcomes(labels, fold.train_pairs)
        band = fit_tie_band(log_length_differences(n_words, fold.train_pairs), outcomes)
        length_by_fold.append(JudgedPairs(fold.test_pairs, truth, ratios, three_way(ratios, band)))
        # Accuracy of the most frequent answer on each test pair, over both its orders.
        n_ties, n_per_side = int((outcomes == 0).sum()), int((outcomes != 0).sum()) / 2
        constant_correct.append(np.where(truth == 0, float(n_ties > n_per_side), 0.0 if n_ties > n_per_side else 0.5))
        rankings += [
            _rank_group(members, trained_judge, sort_group) for members in by_group(groups, fold.test).values()
        ]
        if on_fold is not None:
            on_fold(fold.number)
    judge_pairs, length_pairs = _concatenate(judged_pairs), _concatenate(length_by_fold)
    ratios = log_length_differences(n_words, judge_pairs.pairs)
    is_nearly_equal = np.abs(ratios) < np.log(MAX_LENGTH_RATIO)
    is_differing = judge_pairs.truth != 0
    by_length = [(members, n_words[members].astype(np.float64)) for members, _ in rankings]
    constant_ranking = [(members, np.zeros(len(members))) for members, _ in rankings]
    constant_pairs = replace(judge_pairs, log_odds=np.zeros(len(judge_pairs.pairs)))
    # Direct scoring gives no probabilities but 1, 0.5 and 0.
    pair_scores = None if method.startswith("direct") else pair_calibration(judge_pairs)
    return JudgeScores(
        method,
        quality,
        _measure_agreement(
            bootstrap_units, judge_pairs, is_nearly_equal, correlations(bootstrap_units, rankings, labels)
        ),
        {
            "constant": replace(
                _measure_agreement(
                    bootstrap_units,
                    constant_pairs,
                    is_nearly_equal,
                    correlations(bootstrap_units, constant_ranking, labels),
                ),
                accuracy_three_way=bootstrap_units.proportion(np.concatenate(constant_correct), judge_pairs.pairs),
            ),
            "longer": _measure_agreement(
                bootstrap_units, length_pairs, is_nearly_equal, correlations(bootstrap_units, by_length, labels)
            ),
        },
        _compute_paired_difference(bootstrap_units, length_pairs, judge_pairs, is_differing),
        _compute_paired_difference(bootstrap_units, length_pairs, judge_pairs, is_differing & is_nearly_equal),
        pair_scores,
        n_items=len(items),
        n_pairs=len(judge_pairs.pairs),
        n_pairs_differing=int(is_differing.sum()),
        n_groups=len(set(groups)),
        failed=n_failed,
        layers=tuple(trained_judge.layers for trained_judge in trained_judges),
        regularisation=tuple(trained_judge.regularisation for trained_judge in trained_judges),
        learning_curve=_compute_learning_curve(items, folds, candidate, bootstrap_units, labels, sizes),
        order=tuple(
            (items[index].id, rank)
            for members, scores in rankings
            for rank, index in enumerate(members[np.argsort(-scores, kind="stable")], start=1)
        ),
    )


def evaluate_judge(
    items: Sequence[Item],
    method: Method,
    *,
    quality: str,
    band: float = 0.0,
    pairs_per_item: int | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> JudgeScores:
    """Score a judge on labelled items, without training it; a probe must not have been trained on these items.

    The most frequent outcome and the length baseline's tie band are estimated on the scored pairs themselves.

    Args:
        items: Labelled items.
        method: Judge that compares two items.
        quality: Name of the quality, for tables.
        band: Log-odds up to which the judge calls two items equal.
        pairs_per_item: Number of other items of its group that each item is compared with; None for all.
        seed: Seed of the draw of pairs and of the bootstrap.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: Items are not labelled, or no two can be compared.
    """
    if any(item.label is None for item in items):
        raise InputError("A judge is scored on items that have a label: name the column with --label.")
    indices = np.arange(len(items))
    pairs = pairs_within([item.group for item in items], indices, pairs_per_item, np.random.default_rng(seed))
    if not len(pairs):
        raise InputError("No two of the items can be compared: each is the only one of its group.")
    # The judge does not learn from the training pairs. The baselines do, which makes them as strong as they can be.
    fold = Fold(0, indices, pairs, indices, pairs)
    candidate = UntrainedCandidate(method, items, band=band, on_progress=on_progress)
    return score_judge(items, [fold], candidate, method=method.name, quality=quality, seed=seed)


def _measure_agreement(
    bootstrap_units: BootstrapUnits,
    test_pairs: JudgedPairs,
    is_nearly_equal: np.ndarray,
    rank_correlations: dict[str, JudgeScore],
) -> Agreement:
    is_differing = test_pairs.truth != 0
    differing_pairs, nearly_equal_pairs = test_pairs.take(is_differing), test_pairs.take(is_differing & is_nearly_equal)
    return Agreement(
        bootstrap_units.proportion(correctness(differing_pairs), differing_pairs.pairs),
        bootstrap_units.proportion(
            np.asarray(test_pairs.predictions == np.sign(test_pairs.truth), dtype=np.float64), test_pairs.pairs
        ),
        rank_correlations["spearman"],
        rank_correlations["kendall"],
        bootstrap_units.proportion(correctness(nearly_equal_pairs), nearly_equal_pairs.pairs),
    )


def _compute_paired_difference(
    bootstrap_units: BootstrapUnits, baseline: JudgedPairs, judge_pairs: JudgedPairs, mask: np.ndarray
) -> PairedDifference:
    baseline_pairs, own_pairs = baseline.take(mask), judge_pairs.take(mask)
    return bootstrap_units.paired_difference(correctness(baseline_pairs), correctness(own_pairs), own_pairs.pairs)


def _concatenate(parts: Sequence[JudgedPairs]) -> JudgedPairs:
    columns = zip(*((part.pairs, part.truth, part.log_odds, part.predictions) for part in parts), strict=True)
    return JudgedPairs(*map(np.concatenate, columns))


def _rank_group(
    group: Sequence[int], trained_judge: TrainedJudge, sort_group: Callable[..., Ranking]
) -> tuple[IntArray, FloatArray]:
    """Sort a group; return its item indices and their scores, both of shape [members].

    If the sort fits strengths, the scores are the strengths. Items between which the judge has no preference then have
    equal scores. Otherwise the score of an item is one plus the number of items ranked below it.
    """
    members = np.array(group, dtype=np.int64)

    def ask(pairs: IntArray) -> FloatArray:
        item_pairs = members[pairs]
        is_reversed = item_pairs[:, 0] > item_pairs[:, 1]
        log_odds = trained_judge.judge(np.sort(item_pairs, axis=1)).log_odds
        return np.where(is_reversed, -log_odds, log_odds)

    # With one seed for all groups, a judge without preferences would put every group into the same shuffled order. In
    # tables that list the same systems in the same order in every group, this order would correlate with the labels.
    ranking = sort_group(len(members), ask, seed=int(members[0]))
    if ranking.strengths is not None:
        return members, np.round(ranking.strengths, 9)
    scores = np.empty(len(members))
    scores[list(ranking.order)] = np.arange(len(members), 0, -1)
    return members, scores


def _compute_learning_curve(
    items: Sequence[Item],
    folds: Sequence[Fold],
    candidate: Candidate,
    bootstrap_units: BootstrapUnits,
    labels: FloatArray,
    sizes: Sequence[int],
) -> tuple[LearningPoint, ...]:
    """Return the accuracy on the same test pairs after training on nested subsets of each fold's training items.

    A size is omitted if the subset of any fold is too small to learn from.
    """
    points = []
    for size in sizes:
        judged_pairs_by_fold = []
        for fold in folds:
            if size > len(fold.train):
                continue
            # Whole groups in a seeded order, or items if there is only one group.
            members = by_group([item.group for item in items], fold.train)
            generator = np.random.default_rng([fold.number, 2])
            order = generator.permutation(sorted(members)).tolist() if len(members) > 1 else []
            indices = [index for name in order for index in members[name]] or generator.permutation(fold.train).tolist()
            pairs = fold.train_pairs[np.isin(fold.train_pairs, indices[:size]).all(axis=1)]
            if not pair_outcomes(labels, pairs).any():
                continue
            try:
                judgements = candidate.fit_fold(fold, pairs).judge(fold.test_pairs)
            except InputError:  # so few items can be too few to choose the regularisation on
                continue
            truth = labels[fold.test_pairs[:, 0]] - labels[fold.test_pairs[:, 1]]
            judged_pairs_by_fold.append(
                JudgedPairs(fold.test_pairs, truth, judgements.log_odds, np.sign(judgements.log_odds).astype(np.int64))
            )
        if len(judged_pairs_by_fold) == len(folds):
            test_pairs = _concatenate(judged_pairs_by_fold)
            test_pairs = test_pairs.take(test_pairs.truth != 0)
            points.append(LearningPoint(size, bootstrap_units.proportion(correctness(test_pairs), test_pairs.pairs)))
    return tuple(points)


BENCHMARK = "judge benchmark"
_POINTWISE_METHODS = frozenset({"pointwise", "pointwise-length"})


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """Labelled items, and the quality that their labels rate."""

    quality: Quality
    items: tuple[Item, ...]
    skipped: tuple[str, ...] = ()
    """Reasons for skipped rows of the table, one clause each."""
    notes: tuple[str, ...] = ()
    """Notes on the table, for example on averaged ratings."""


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """Scores and cost of one method for one quality."""

    quality: Quality
    scores: JudgeScores
    cost: Cost
    """Cost of the method's comparisons. Methods that share activations have the same cost. If activations for several
    qualities were computed together, their cost is divided among the qualities in proportion to the numbers of
    requests."""
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeBenchmark:
    """Results of one benchmark run."""

    run: str
    model: str
    fingerprint: str
    settings: BenchmarkSettings
    results: tuple[JudgeResult, ...]
    cost: Cost
    """Cost of the run. Comparisons that several methods use are counted once."""
    dtype: str = ""
    """Number format of a local model; empty if unknown."""


def benchmark_judges(
    tasks: Sequence[JudgeTask],
    settings: BenchmarkSettings,
    methods: Sequence[str] = ("ppairs",),
    *,
    file: str = "",
    model: str | Generator = DEFAULT_MODEL,
    workspace: Place = None,
    token_budget: int | None = None,
) -> BenchmarkedJudges:
    """Measure how well judges agree with experts on unseen groups of items, and compare them with two baselines.

    One baseline prefers the longer text, the other always gives the same answer. The hidden states for all comparisons
    of all qualities are computed first, in one call, because prompts about the same source differ only at their end.
    Hidden states and answers are stored, so that an interrupted run can be resumed.

    Args:
        tasks: Qualities, each with its labelled items.
        settings: Settings of folds, pairs, sorting and probes; without layers, a probe's layer is chosen from four
            layers in the upper half of the model.
        methods: Names from :data:`climassay.judging.METHODS`, or ``all`` for every method that the model supports.
        file: Name of the items' file, for the report.
        model: Model that compares the texts; ``direct`` and ``pairs`` also take a server that gives log-probabilities.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        token_budget: Maximum number of tokens in one forward pass.

    Raises:
        InputError: A method does not exist, the model does not support it, or the items cannot be split.
    """
    with Session.opened(workspace) as session:
        generator = session.model(model)
        names = _select_methods(methods, generator)
        settings = replace(
            settings, probe=replace(settings.probe, layers=layer_choices(generator, settings.probe.layers))
        )
        parts = []
        for task in tasks:
            folds = make_folds(
                task.items,
                train_items=settings.train_items,
                folds=settings.folds,
                pairs_per_item=settings.pairs_per_item,
                seed=settings.seed,
            )
            parts.append(_TaskFolds(task, QualityRequests(task.quality, session.options.prompts), folds))
        config = {
            "model": generator.name,
            "fingerprint": generator.fingerprint,
            "dtype": number_format(generator),
            "methods": names,
            "qualities": [asdict(task.quality) for task in tasks],
            "settings": asdict(settings),
            "file": file,
        }
        with session.run(BENCHMARK, config, {"folds": settings.seed}) as run:
            benchmark_run = _BenchmarkRun(generator, session, run, settings, token_budget)
            results = benchmark_run.evaluate(parts, names)
            run.save_results("judges", [result_row(result) for result in results])
        benchmark = JudgeBenchmark(
            run.id,
            generator.name,
            generator.fingerprint,
            settings,
            tuple(results),
            benchmark_run.cost,
            dtype=number_format(generator),
        )
        evidence = None
        method = next((name for name in PROBE_METHODS if name in names), None)
        if method is not None:
            extractor = StateExtractor(
                open_weights(generator, "A probe"),
                parts[0].quality_requests,
                layers_of(settings.probe.layers),
                session.activations,
                token_budget,
            )
            pairs = parts[0].folds[0].train_pairs
            evidence = train_probe(tasks[0].items, extractor, method=method, settings=settings.probe, pairs=pairs)
    return BenchmarkedJudges(benchmark, tuple(tasks), file, evidence)


def _select_methods(names: Sequence[str], model: Generator) -> list[MethodName]:
    """Return the distinct methods with these names; ``all`` stands for every method that the model supports."""
    has_weights = isinstance(model, OpenWeights)
    if "all" in names:
        return [name for name in METHODS if has_weights or name not in NEEDS_WEIGHTS]
    for name in names:
        check_method(name)
    methods = cast("list[MethodName]", list(dict.fromkeys(names)))
    if not has_weights and (unsupported := next((name for name in methods if name in NEEDS_WEIGHTS), None)):
        try:
            open_weights(model, f"The method {unsupported}")
        except InputError as error:
            raise InputError(f"{error} Or ask it: --method pairs, direct or direct-expected.") from None
    return methods


def result_row(result: JudgeResult) -> dict[str, Any]:
    """Return a result as a flat dictionary for JSON and records; :func:`load_judge_results` is the inverse."""
    scores = asdict(result.scores)
    del scores["order"]
    for name in ("versus_longer", "versus_longer_nearly_equal"):
        scores[name] = {**scores[name]["difference"], "p_value": scores[name]["p_value"]}
    return {
        "kind": result.quality.kind,
        "wording": result.quality.wording,
        **scores.pop("agreement"),
        **scores,
        "skipped_rows": len(result.skipped),
        **asdict(result.cost),
    }


def load_judge_results(details: RunDetails) -> tuple[JudgeResult, ...]:
    """Return the results of a recorded run of ``climassay judge benchmark``; rankings are not recorded."""
    from pydantic import TypeAdapter

    qualities = TypeAdapter(list[Quality]).validate_python(details.config["qualities"])
    results = []
    for row in details.results["judges"]:
        scores = {name: row[name] for name in JudgeScores.__dataclass_fields__ if name in row}
        scores["agreement"] = {name: row[name] for name in Agreement.__dataclass_fields__}
        for name in ("versus_longer", "versus_longer_nearly_equal"):
            scores[name] = {"difference": row[name], "p_value": row[name]["p_value"]}
        quality = next(
            quality for quality in qualities if (quality.name, quality.wording) == (row["quality"], row["wording"])
        )
        cost = TypeAdapter(Cost).validate_python(row)
        results.append(JudgeResult(quality, TypeAdapter(JudgeScores).validate_python(scores), cost))
    return tuple(results)


@dataclass(frozen=True, slots=True)
class _TaskFolds:
    task: JudgeTask
    quality_requests: QualityRequests
    folds: tuple[Fold, ...]

    def requests(self, pointwise: bool) -> list[OptionRequest]:
        if pointwise:
            return self.quality_requests.point(self.task.items)
        return self.quality_requests.contrast(self.task.items, with_mirrors(collect_pairs(self.folds)))


class _TokenCountingModel(RecordedModel):
    """Recorded model that counts the prompt tokens of all answers, whether computed or cached."""

    prompt_tokens = 0

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        answers = super().option_logprobs(requests, on_result=on_result)
        self.prompt_tokens += sum(answer.usage.prompt_tokens for answer in answers)
        return answers


@dataclass
class _BenchmarkRun:
    """Model, session and settings that all evaluations of one run use, and the cost so far."""

    model: Generator
    session: Session
    run: Run
    settings: BenchmarkSettings
    token_budget: int | None
    cost: Cost = field(default_factory=Cost)

    def evaluate(self, parts: Sequence[_TaskFolds], methods: Sequence[MethodName]) -> list[JudgeResult]:
        """Score all methods on all qualities; return the results ordered by quality, then by method."""
        results: dict[tuple[int, str], JudgeResult] = {}
        for pointwise, noun in ((False, "Comparisons"), (True, "Items")):
            names = [name for name in methods if name in NEEDS_WEIGHTS and (name in _POINTWISE_METHODS) == pointwise]
            if not names:
                continue
            requests = [part.requests(pointwise) for part in parts]
            all_requests = [request for part_requests in requests for request in part_requests]
            extractor = self._create_extractor(parts[0])
            with self.session.progress.task(f"{noun} read by {self.model.name}", len(all_requests)) as bar:
                extractor.extract_states(all_requests, bar.advance)
            self.cost += extractor.cost
            for number, part in enumerate(parts):
                cost_fraction = len(requests[number]) / max(1, len(all_requests))
                for result in self._score_on_harvest(part, names, extractor.cost, cost_fraction):
                    results[number, result.scores.method] = result
        for number, part in enumerate(parts):
            for name in methods:
                if name not in NEEDS_WEIGHTS:
                    results[number, name] = self._score_on_answers(part, name)
        return [results[number, name] for number in range(len(parts)) for name in methods]

    def _create_extractor(self, part: _TaskFolds) -> StateExtractor:
        weights = open_weights(self.model, "This method")
        layers = layers_of((*self.settings.probe.layers, *((LAST_LAYER,) if self.settings.as_published else ())))
        return StateExtractor(weights, part.quality_requests, layers, self.session.activations, self.token_budget)

    def _score_on_harvest(
        self, part: _TaskFolds, names: Sequence[MethodName], joint_cost: Cost, cost_fraction: float
    ) -> list[JudgeResult]:
        """Score methods on stored hidden states; ``cost_fraction`` is the quality's part of the joint cost."""
        extractor = self._create_extractor(part)
        table = StateTable(extractor, part.task.items)
        scores = [self._score_by_folds(part, name, extractor.model, table) for name in names]
        additional_cost = extractor.cost
        # Sorts may compare pairs that the folds did not foresee; only these are computed now.
        self.cost += replace(additional_cost, tokens_two_pass=0, stored=0)
        n_computed = additional_cost.computed + round(cost_fraction * joint_cost.computed)
        cost = Cost(
            additional_cost.passes + round(cost_fraction * joint_cost.passes),
            additional_cost.tokens_computed + round(cost_fraction * joint_cost.tokens_computed),
            additional_cost.tokens_two_pass,
            n_computed,
            additional_cost.computed + additional_cost.stored - n_computed,
        )
        return [JudgeResult(part.task.quality, score, cost, part.task.skipped) for score in scores]

    def _score_on_answers(self, part: _TaskFolds, name: MethodName) -> JudgeResult:
        model = _TokenCountingModel(self.model, self.session.records, self.run, not self.session.options.no_cache)
        work_before = self.model.work if isinstance(self.model, OpenWeights) else None
        # A sort may compare pairs that the folds did not foresee: the number of requests is not known.
        with self.session.progress.task(f"{name}, {part.task.quality.name}") as bar:
            scores = self._score(part, name, model, None, on_progress=bar.advance)
        counts = model.tally
        passes, tokens = counts.sent, counts.usage.prompt_tokens
        if work_before is not None and isinstance(self.model, OpenWeights):
            computation = self.model.work - work_before
            passes, tokens = computation.passes, computation.tokens
        cost = Cost(passes, tokens, model.prompt_tokens, counts.sent, counts.hits)
        self.cost += cost
        return JudgeResult(part.task.quality, scores, cost, part.task.skipped)

    def _score_by_folds(self, part: _TaskFolds, name: MethodName, model: Any, table: StateTable) -> JudgeScores:
        with self.session.progress.task(f"Folds of {name}, {part.task.quality.name}", len(part.folds)) as bar:
            return self._score(part, name, model, table, on_fold=lambda _number: bar.advance())

    def _score(
        self,
        part: _TaskFolds,
        name: MethodName,
        model: Any,
        table: StateTable | None,
        *,
        on_progress: Progress | None = None,
        on_fold: Callable[[int], None] | None = None,
    ) -> JudgeScores:
        settings, items = self.settings, part.task.items
        scores = score_judge(
            items,
            part.folds,
            create_candidate(name, items, part.quality_requests, model, table, settings.probe, on_progress),
            method=name,
            quality=part.task.quality.name,
            sort=settings.sort,
            beam_size=settings.beam_size,
            threshold=settings.threshold,
            score=settings.score,
            sizes=settings.sizes if name in PROBE_METHODS else (),
            seed=settings.seed,
            on_fold=on_fold,
        )
        if not settings.as_published:
            return scores
        published_scores = score_as_published(
            name,
            items,
            part.quality_requests,
            model,
            table,
            beam_size=settings.beam_size,
            threshold=settings.threshold,
            seed=settings.seed,
        )
        return replace(scores, as_published=published_scores)
