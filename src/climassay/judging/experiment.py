"""A benchmark of judges as a run: several qualities and methods, harvested together, scored, and kept."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.judging.asking import Questions
from climassay.judging.benchmark import JudgeScores, score_judge
from climassay.judging.candidates import (
    METHODS,
    NEEDS_WEIGHTS,
    CandidateMaker,
    MethodName,
    ProbeSettings,
    both_ways,
    pairs_of_folds,
)
from climassay.judging.folds import Fold, make_folds
from climassay.judging.items import Item
from climassay.judging.judges import layers_of, open_weights
from climassay.judging.preferences import Progress
from climassay.judging.probing import Cost, Harvester
from climassay.judging.quality import Quality
from climassay.judging.sorting import SortMethod
from climassay.learning.activation_store import ActivationStore
from climassay.learning.harvest import harvest
from climassay.models.contract import (
    Generator,
    OpenWeights,
    OptionRequest,
    OptionScores,
    ScoresCallback,
    number_format,
)
from climassay.records import RecordedModel, Records, Run

Stage = Callable[[str, int], Progress]
"""Told what begins and how many steps it has; gives a function that is called with the steps done since."""
_POINT = frozenset({"pointwise", "pointwise-length"})


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """Labelled items and the quality they are labelled for."""

    quality: Quality
    items: tuple[Item, ...]
    skipped: tuple[str, ...] = ()
    """Rows of the table that were left out, and why."""


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """How judges are cross-validated."""

    train_items: int = 100
    folds: int = 3
    seed: int = 0
    pairs_per_item: int | None = None
    sizes: tuple[int, ...] = ()
    """Numbers of labelled items of the learning curve."""
    sort: SortMethod = "strengths"
    probe: ProbeSettings = field(default_factory=ProbeSettings)


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """One method's scores for one quality, and what its answers cost."""

    quality: Quality
    scores: JudgeScores
    cost: Cost
    """Of the comparisons that this method reads. Methods that read the same activations give the same cost, and where
    several qualities were harvested together, what they share is divided by their numbers of requests."""
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeBenchmark:
    """All results of one run."""

    run: str
    """Id in the records."""
    model: str
    fingerprint: str
    settings: BenchmarkSettings
    results: tuple[JudgeResult, ...]
    cost: Cost
    """Of the whole run, everything counted once."""
    dtype: str = ""
    """Number format that a local model computed in; empty where it is not known."""


def benchmark_judges(
    tasks: Sequence[JudgeTask],
    methods: Sequence[MethodName],
    model: Generator,
    records: Records,
    activations: ActivationStore,
    *,
    settings: BenchmarkSettings | None = None,
    prompts: Path | None = None,
    token_budget: int | None = None,
    use_cache: bool = True,
    config: dict[str, Any] | None = None,
    stage: Stage | None = None,
) -> JudgeBenchmark:
    """Cross-validate methods on one or several qualities of labelled items.

    All comparisons of all qualities are harvested in one call first, for their prompts differ only at the end where the
    sources are the same. An interrupted run goes on where it stopped: activations and answers are stored.

    Args:
        tasks: Qualities with their items.
        methods: See :data:`climassay.judging.candidates.METHODS`.
        model: A local model; ``direct`` and ``pairs`` also take a server that gives log-probabilities.
        records: Where the run, its answers and its results are kept.
        activations: Where hidden states are kept.
        settings: How it is done.
        prompts: Folder of the user's own templates.
        token_budget: Most tokens of one forward pass.
        use_cache: False asks ``direct`` and ``pairs`` afresh; for hidden states, give an empty store.
        config: What else the run is to remember.
        stage: Told about the progress.

    Raises:
        InputError: A method does not exist or needs another model, or the items cannot be split.
    """
    chosen = settings or BenchmarkSettings()
    unknown = next((name for name in methods if name not in METHODS), None)
    if unknown is not None:
        raise InputError(f"There is no method {unknown!r}: there are {', '.join(METHODS)}.")
    reading = [name for name in methods if name in NEEDS_WEIGHTS]
    if reading:
        open_weights(model, f"The method {reading[0]}")
    parts = [
        _Part(
            task,
            Questions(task.quality, prompts),
            make_folds(
                task.items,
                train_items=chosen.train_items,
                folds=chosen.folds,
                pairs_per_item=chosen.pairs_per_item,
                seed=chosen.seed,
            ),
        )
        for task in tasks
    ]
    kept = {
        "model": model.name,
        "fingerprint": model.fingerprint,
        "dtype": number_format(model),
        "methods": list(methods),
        "qualities": [asdict(task.quality) for task in tasks],
        "settings": asdict(chosen),
        **(config or {}),
    }
    with records.run(command="judge benchmark", config=kept, seeds={"folds": chosen.seed}) as run:
        bench = _Bench(model, records, run, activations, chosen, token_budget, use_cache, stage or _silent)
        results = bench.evaluate(parts, methods)
        run.save_results("judges", [result_row(result) for result in results])
    made = (run.id, model.name, model.fingerprint, chosen, tuple(results), bench.cost)
    return JudgeBenchmark(*made, dtype=number_format(model))


def result_row(result: JudgeResult) -> dict[str, Any]:
    """One result as a flat object for JSON and records."""
    scores, cost = result.scores, result.cost
    return {
        "method": scores.method,
        "quality": scores.quality,
        "kind": result.quality.kind,
        "wording": result.quality.wording,
        **asdict(scores.agreement),
        "baselines": {name: asdict(agreement) for name, agreement in scores.baselines.items()},
        "versus_longer": _paired(asdict(scores.versus_longer)),
        "versus_longer_nearly_equal": _paired(asdict(scores.versus_longer_nearly_equal)),
        "n_items": scores.n_items,
        "n_groups": scores.n_groups,
        "n_pairs": scores.n_pairs,
        "n_pairs_differing": scores.n_pairs_differing,
        "failed": scores.failed,
        "skipped_rows": len(result.skipped),
        **asdict(cost),
        "layers": [list(layers) for layers in scores.layers],
        "regularisation": list(scores.regularisation),
        "calibration": None if scores.calibration is None else asdict(scores.calibration),
        "learning_curve": [
            {"items": point.items, "accuracy_differing": asdict(point.accuracy_differing)}
            for point in scores.learning_curve
        ],
    }


def _paired(data: dict[str, Any]) -> dict[str, Any]:
    return {**data["difference"], "p_value": data["p_value"]}


def _silent(_what: str, _steps: int) -> Progress:
    return lambda _done: None


@dataclass(frozen=True, slots=True)
class _Part:
    task: JudgeTask
    questions: Questions
    folds: tuple[Fold, ...]

    def contrasts(self) -> list[OptionRequest]:
        return self.questions.contrast(self.task.items, both_ways(pairs_of_folds(self.folds)))

    def points(self) -> list[OptionRequest]:
        return self.questions.point(self.task.items)


class _Counting(RecordedModel):
    """Sums up the tokens of all answers, asked now or served from the records."""

    prompt_tokens = 0

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        answers = super().option_logprobs(requests, on_result=on_result)
        self.prompt_tokens += sum(answer.usage.prompt_tokens for answer in answers)
        return answers


class _Bench:
    """One run's shared harvest and its evaluations."""

    def __init__(
        self,
        model: Generator,
        records: Records,
        run: Run,
        activations: ActivationStore,
        settings: BenchmarkSettings,
        token_budget: int | None,
        use_cache: bool,
        stage: Stage,
    ) -> None:
        self.cost = Cost()
        self._model, self._records, self._run = model, records, run
        self._activations, self._settings = activations, settings
        self._token_budget, self._use_cache, self._stage = token_budget, use_cache, stage
        self._layers = layers_of(settings.probe.layers)

    def evaluate(self, parts: Sequence[_Part], methods: Sequence[MethodName]) -> list[JudgeResult]:
        """Results by quality, then by method, in the order given."""
        pairwise = [name for name in methods if name in NEEDS_WEIGHTS - _POINT]
        points = [name for name in methods if name in _POINT]
        asked = [name for name in methods if name not in NEEDS_WEIGHTS]
        found: dict[tuple[int, str], JudgeResult] = {}
        for names, what in ((pairwise, "Comparisons"), (points, "Items")):
            if names:
                requests = [part.contrasts() if names is pairwise else part.points() for part in parts]
                together = self._harvest_together(what, requests)
                for number, part in enumerate(parts):
                    share = len(requests[number]) / max(1, sum(map(len, requests)))
                    for result in self._read(part, names, together, share):
                        found[number, result.scores.method] = result
        for number, part in enumerate(parts):
            for name in asked:
                found[number, name] = self._ask(part, name)
        return [found[number, name] for number in range(len(parts)) for name in methods]

    def _harvest_together(self, what: str, requests: Sequence[Sequence[OptionRequest]]) -> Cost:
        everything = [request for part in requests for request in part]
        done = harvest(
            self._model,
            everything,
            layers=self._layers,
            store=self._activations,
            token_budget=self._token_budget,
            on_progress=self._stage(f"{what} read by {self._model.name}", len(everything)),
        )
        cost = Cost(done.passes, done.tokens_computed, done.tokens_two_pass, done.computed, done.stored)
        self.cost += cost
        return cost

    def _read(self, part: _Part, names: Sequence[MethodName], together: Cost, share: float) -> list[JudgeResult]:
        """Methods that read one harvest, which is on disk by now."""
        model = open_weights(self._model, "This method")
        settings = self._settings
        harvester = Harvester(model, part.questions, self._layers, self._activations, self._token_budget)
        maker = CandidateMaker(part.task.items, part.questions, model, harvester, settings.probe)
        scores = [self._score(part, maker, name) for name in names]
        more = harvester.cost
        # Sorts may compare pairs that the folds did not foresee; only these are computed now.
        self.cost += replace(more, tokens_two_pass=0, stored=0)
        computed = more.computed + round(share * together.computed)
        cost = Cost(
            more.passes + round(share * together.passes),
            more.tokens_computed + round(share * together.tokens_computed),
            more.tokens_two_pass,
            computed,
            more.computed + more.stored - computed,
        )
        return [JudgeResult(part.task.quality, score, cost, part.task.skipped) for score in scores]

    def _ask(self, part: _Part, name: MethodName) -> JudgeResult:
        """A method that reads the model's answers only."""
        model = _Counting(self._model, self._records, self._run, self._use_cache)
        pairs = pairs_of_folds(part.folds)
        steps = len(part.task.items) if name.startswith("direct") else 2 * len(pairs)
        advance = self._stage(f"{name}, {part.task.quality.name}", steps)
        maker = CandidateMaker(part.task.items, part.questions, model, None, self._settings.probe, advance)
        before = self._model.work if isinstance(self._model, OpenWeights) else None
        scores = self._score(part, maker, name)
        tally = model.tally
        passes, tokens = tally.asked, tally.usage.prompt_tokens
        if before is not None and isinstance(self._model, OpenWeights):
            done = self._model.work - before
            passes, tokens = done.passes, done.tokens
        cost = Cost(passes, tokens, model.prompt_tokens, tally.asked, tally.hits)
        self.cost += cost
        return JudgeResult(part.task.quality, scores, cost, part.task.skipped)

    def _score(self, part: _Part, maker: CandidateMaker, name: MethodName) -> JudgeScores:
        settings = self._settings
        advance = self._stage(f"Folds of {name}, {part.task.quality.name}", len(part.folds))
        return score_judge(
            part.task.items,
            part.folds,
            maker.make(name),
            method=name,
            quality=part.task.quality.name,
            sort=settings.sort,
            sizes=settings.sizes if name in NEEDS_WEIGHTS and name != "zero-shot" else (),
            seed=settings.seed,
            on_fold=lambda _number: advance(1),
        )
