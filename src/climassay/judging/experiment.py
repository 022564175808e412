"""A benchmark of judges as a run: several qualities and methods, harvested together, scored, kept, and read back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from climassay.judging.benchmark import Agreement, JudgeScores, score_judge
from climassay.judging.candidates import (
    NEEDS_WEIGHTS,
    PROBE_METHODS,
    Fold,
    MethodName,
    ProbeSettings,
    candidate_of,
    check_method,
    make_folds,
    pairs_of_folds,
)
from climassay.judging.items import Item
from climassay.judging.judges import Cost, Harvester, StateTable, layers_of, open_weights
from climassay.judging.preferences import Progress
from climassay.judging.prompts import Questions, both_ways
from climassay.judging.quality import Quality
from climassay.judging.sorting import SortMethod
from climassay.learning.harvest import ActivationStore
from climassay.models.contract import (
    Generator,
    OpenWeights,
    OptionRequest,
    OptionScores,
    ScoresCallback,
    number_format,
)
from climassay.records import RecordedModel, Records, Run
from climassay.records.queries import RunDetails

Stage = Callable[[str, int], Progress]
"""Told what begins and how many steps it has; gives a function that is called with the steps done since."""
BENCHMARK = "judge benchmark"
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
    for name in methods:
        check_method(name)
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
    with records.run(command=BENCHMARK, config=kept, seeds={"folds": chosen.seed}) as run:
        resources = _Resources(
            model, records, run, activations, chosen, token_budget, use_cache,
            stage or (lambda _what, _steps: lambda _done: None),
        )  # fmt: skip
        results = resources.evaluate(parts, methods)
        run.save_results("judges", [result_row(result) for result in results])
    made = (run.id, model.name, model.fingerprint, chosen, tuple(results), resources.cost)
    return JudgeBenchmark(*made, dtype=number_format(model))


def result_row(result: JudgeResult) -> dict[str, Any]:
    """One result as a flat object for JSON and records; :func:`judge_results_of` reads it again."""
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


def judge_results_of(details: RunDetails) -> tuple[JudgeResult, ...]:
    """The results of a finished ``climassay judge benchmark``.

    The orders of single items are not kept with a run.
    """
    from pydantic import TypeAdapter

    qualities = TypeAdapter(list[Quality]).validate_python(details.config["qualities"])
    read_scores, read_cost = TypeAdapter(JudgeScores).validate_python, TypeAdapter(Cost).validate_python

    def agreement(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in Agreement.__dataclass_fields__}

    found = []
    for row in details.results["judges"]:
        given = {name: row[name] for name in JudgeScores.__dataclass_fields__ if name in row}
        given["agreement"] = agreement(row)
        for name in ("versus_longer", "versus_longer_nearly_equal"):
            paired = dict(row[name])
            given[name] = {"p_value": paired.pop("p_value"), "difference": paired}
        if row["calibration"] is not None:
            given["calibration"] = {**row["calibration"], "curve": [_bin(one) for one in row["calibration"]["curve"]]}
        quality = next(one for one in qualities if (one.name, one.wording) == (row["quality"], row["wording"]))
        cost = read_cost({name: row[name] for name in Cost.__dataclass_fields__})
        found.append(JudgeResult(quality, read_scores(given), cost))
    return tuple(found)


def _bin(stored: Any) -> Any:
    """A bin of a reliability curve; version 0.1 stored it before its bins were those of the statistics."""
    if isinstance(stored, Mapping):
        return stored
    n, predicted, observed, ends = stored
    low = min(int(predicted * 10), 9) / 10
    accuracy = {"value": observed, "interval": ends, "n": n}
    return {"low": low, "high": low + 0.1, "confidence": predicted, "accuracy": accuracy}


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


@dataclass
class _Resources:
    """What one run's evaluations share: the model, its harvest, and what both have cost so far."""

    model: Generator
    records: Records
    run: Run
    activations: ActivationStore
    settings: BenchmarkSettings
    token_budget: int | None
    use_cache: bool
    stage: Stage
    cost: Cost = field(default_factory=Cost)

    def evaluate(self, parts: Sequence[_Part], methods: Sequence[MethodName]) -> list[JudgeResult]:
        """Results by quality, then by method, in the order given."""
        found: dict[tuple[int, str], JudgeResult] = {}
        pointwise = [name for name in methods if name in _POINT]
        pairwise = [name for name in methods if name in NEEDS_WEIGHTS - _POINT]
        for names, what in ((pairwise, "Comparisons"), (pointwise, "Items")):
            if not names:
                continue
            requests = [part.contrasts() if names is pairwise else part.points() for part in parts]
            everything = [request for some in requests for request in some]
            reader = self._harvester(parts[0])
            reader.harvest(everything, self.stage(f"{what} read by {self.model.name}", len(everything)))
            self.cost += reader.cost
            for number, part in enumerate(parts):
                share = len(requests[number]) / max(1, len(everything))
                for result in self._read(part, names, reader.cost, share):
                    found[number, result.scores.method] = result
        for number, part in enumerate(parts):
            for name in methods:
                if name not in NEEDS_WEIGHTS:
                    found[number, name] = self._ask(part, name)
        return [found[number, name] for number in range(len(parts)) for name in methods]

    def _harvester(self, part: _Part) -> Harvester:
        weights = open_weights(self.model, "This method")
        layers = layers_of(self.settings.probe.layers)
        return Harvester(weights, part.questions, layers, self.activations, self.token_budget)

    def _read(self, part: _Part, names: Sequence[MethodName], together: Cost, share: float) -> list[JudgeResult]:
        """Methods that read one harvest, which is on disk by now; a share of its cost is theirs."""
        harvester = self._harvester(part)
        table = StateTable(harvester, part.task.items)
        scores = [self._score(part, name, harvester.model, table) for name in names]
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
        model = _Counting(self.model, self.records, self.run, self.use_cache)
        steps = len(part.task.items) if name.startswith("direct") else 2 * len(pairs_of_folds(part.folds))
        advance = self.stage(f"{name}, {part.task.quality.name}", steps)
        before = self.model.work if isinstance(self.model, OpenWeights) else None
        scores = self._score(part, name, model, None, advance)
        tally = model.tally
        passes, tokens = tally.asked, tally.usage.prompt_tokens
        if before is not None and isinstance(self.model, OpenWeights):
            done = self.model.work - before
            passes, tokens = done.passes, done.tokens
        cost = Cost(passes, tokens, model.prompt_tokens, tally.asked, tally.hits)
        self.cost += cost
        return JudgeResult(part.task.quality, scores, cost, part.task.skipped)

    def _score(
        self,
        part: _Part,
        name: MethodName,
        model: Any,
        table: StateTable | None,
        on_progress: Progress | None = None,
    ) -> JudgeScores:
        settings, items = self.settings, part.task.items
        advance = self.stage(f"Folds of {name}, {part.task.quality.name}", len(part.folds))
        return score_judge(
            items,
            part.folds,
            candidate_of(name, items, part.questions, model, table, settings.probe, on_progress),
            method=name,
            quality=part.task.quality.name,
            sort=settings.sort,
            sizes=settings.sizes if name in PROBE_METHODS else (),
            seed=settings.seed,
            on_fold=lambda _number: advance(1),
        )
