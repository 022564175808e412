"""Does the model use what a probe reads? Take the probe's direction out of the residual stream and ask again.

    python benchmarks/long/judge_ablation.py accuracy.safetensors claims.csv --text claim --label verdict

A probe that predicts the experts' order may read something that the model itself never uses. So the direction is
projected out of the hidden states while the model answers the zero-shot question "1 or 2", and the change of its
log-odds is compared with the change that random directions of the same number make. The thesis names this
check as future work.

Where the direction is taken out: state k, for k from 0 to the number of layers minus 1, is what goes into layer k + 1
(the residual stream), and the last state is what comes out of the final norm: what a probe on layer -1 reads and what
the head turns into answers. The last layer's own output, before that norm, is not a numbered state and is left as it
is, for a direction found after the norm means something else before it, where no gain has been applied yet.

What is taken out are the probe's weights. A logistic probe's weights lean away from noise as much as towards the
quality, so that a small effect says that this direction is not used, not that the model does not know the quality.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.judging import load_probe
from climassay.judging.item_tables import (
    ItemColumns,
    read_items,
)
from climassay.judging.judges import (
    BootstrapUnits,
    JudgedPairs,
    JudgeScore,
    StateExtractor,
    average_both_orders,
    correctness,
    margins,
    probe_judge,
)
from climassay.judging.preferences import (
    FloatArray,
    IntArray,
    Item,
    Judgements,
    Method,
    Progress,
    QualityRequests,
    with_mirrors,
)
from climassay.judging.probe import Probe, three_way
from climassay.judging.training import labels_of, load_quality, pairs_within
from climassay.learning import ActivationStore
from climassay.models import load_model
from climassay.reporting import Table, as_markdown
from climassay.reporting.tables import percent

if TYPE_CHECKING:
    from torch import Tensor

    from climassay.models.local.model import LocalModel

Scope = Literal["probed", "onward", "all"]
Directions = dict[int, FloatArray]
"""Orthonormal directions [directions, width] to take out of each state, by its number from 0."""


@dataclass(frozen=True, slots=True)
class Control:
    """What taking out random directions did."""

    seed: int
    mean_absolute_change: float
    correlation: float | None
    flips: float


@dataclass(frozen=True, slots=True)
class Ablation:
    """The change of the zero-shot preference when a probe's direction is taken out."""

    scope: Scope
    states: tuple[int, ...]
    """From which states the direction was taken, numbered from 0."""
    n_pairs: int
    """Unordered pairs, each asked in both orders, average_both_orders in log-odds."""
    failed: int
    """Pairs without an answer, before or after; left out of the figures."""
    mean_absolute_change: JudgeScore
    """Change of the log-odds, in nats."""
    correlation: JudgeScore
    """Pearson's, of what is lost (log-odds before minus after) with the probe's log-odds: near 1 where the model's
    preference passes through the direction, near 0 where it does not use it."""
    flips: JudgeScore
    """Share of pairs whose preferred side changes."""
    accuracy_before: JudgeScore
    """Accuracy of the zero-shot preference on labelled pairs that differ."""
    accuracy_after: JudgeScore
    controls: tuple[Control, ...]
    p_value: float | None
    """Share of random directions that change at least as much, the probe's own counted with them; None without."""


def ablate(
    model: "LocalModel",
    questions: QualityRequests,
    probe: Probe,
    judge: Method,
    items: Sequence[Item],
    pairs: IntArray,
    *,
    scope: Scope = "onward",
    controls: int = 10,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Ablation:
    """Compare the zero-shot preference with and without the probe's direction.

    Args:
        model: A local model whose weights the probe was trained on.
        questions: Templates of the quality.
        probe: Its weights, cut into one direction for each of its layers, are what is taken out.
        judge: The same probe as a method.
        items: Items, labelled or not.
        pairs: Unordered pairs [pairs, 2] to ask about.
        scope: ``probed`` takes each direction out of the state it reads, ``onward`` also of all later ones, ``all`` of
            every state from the embeddings on.
        controls: Number of random directions, drawn evenly from the sphere.
        seed: Seed of the random directions and of the bootstrap over groups.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: The probe does not name its layers, or there are no pairs.
        ModelError: The model's layers cannot be found.
    """
    if not len(pairs):
        raise InputError("There are no two items to compare: a group needs at least two.")
    own = probe_directions(probe, model.network.layers, scope)
    requests = questions.contrast(items, with_mirrors(pairs))

    def ask(directions: Directions) -> Judgements:
        progress = None if on_progress is None else lambda _place, _scores: on_progress(1)
        with ablated(model, directions):
            answers = model.option_logprobs(requests, on_result=progress)
        return average_both_orders(*margins(answers), 2)

    before, after = ask({}), ask(own)
    probed = judge.compare(items, pairs)
    kept = ~(before.failed | after.failed | probed.failed)
    units = BootstrapUnits.of([item.group for item in items], seed=seed)
    chosen, odds = pairs[kept], probed.log_odds[kept]
    lost, flips = _changes(before, after, kept)
    results = []
    for number in range(controls):
        answer = ask(random_directions(own, np.random.default_rng([seed, number])))
        known = ~(before.failed | answer.failed)
        change, turned = _changes(before, answer, known)
        value = _weighted_correlation(change, probed.log_odds[known], np.ones((1, len(change))))[0]
        means = [float(part.mean()) if len(part) else 0.0 for part in (np.abs(change), turned)]
        results.append(Control(number, means[0], None if np.isnan(value) else float(value), means[1]))
    size = units.mean(np.abs(lost), chosen)
    p_value = None
    if size.value is not None and results:
        p_value = (1 + sum(one.mean_absolute_change >= size.value for one in results)) / (1 + len(results))
    correlation = JudgeScore(None, None, None, len(lost))
    value = _weighted_correlation(lost, odds, np.ones((1, len(lost))))[0] if len(lost) > 1 else np.nan
    samples = _weighted_correlation(lost, odds, units.pair_weights(chosen))
    samples = samples[np.isfinite(samples)]
    if np.isfinite(value) and len(samples):
        correlation = BootstrapUnits.make_score(float(value), samples, len(lost))
    return Ablation(
        scope,
        tuple(sorted(own)),
        len(pairs),
        int((~kept).sum()),
        size,
        correlation,
        units.proportion(flips, chosen),
        _accuracy(units, items, chosen, before.log_odds[kept]),
        _accuracy(units, items, chosen, after.log_odds[kept]),
        tuple(results),
        p_value,
    )


def probe_directions(probe: Probe, layers: int, scope: Scope) -> Directions:
    """Which directions to take out of which states of a model with so many layers; see :func:`ablate`.

    Raises:
        InputError: The probe does not name its layers.
    """
    read = [layer % (layers + 1) for layer in probe.provenance.layers]
    if not read or probe.weights.size % len(read):
        raise InputError("The probe does not say which layers it reads: train it again.")
    rows = list(zip(read, probe.weights.reshape(len(read), -1), strict=True))
    result: Directions = {}
    for state in range(layers + 1):
        here = [row for at, row in rows if at == state or scope == "all" or (scope == "onward" and at < state)]
        if here:
            result[state] = _orthonormal(np.array(here))
    return result


def random_directions(like: Directions, generator: np.random.Generator) -> Directions:
    """Random directions, as many as given and the same ones in every state."""
    count = max(len(rows) for rows in like.values())
    width = next(iter(like.values())).shape[1]
    drawn = generator.standard_normal((count, width))
    return {state: _orthonormal(drawn[: len(rows)]) for state, rows in like.items()}


@contextmanager
def ablated(model: "LocalModel", directions: Directions) -> Iterator[None]:
    """Take directions out of a model's hidden states while the ``with`` block runs.

    Keys and values that the model keeps between calls are dropped before and after, for they carry the states.

    Args:
        model: Nothing else may use it meanwhile.
        directions: Orthonormal [directions, width] for each state; none leaves the model as it is.

    Raises:
        ModelError: The model's layers cannot be found.
    """
    import torch

    from climassay.models.local.network import backbone_layers

    # The reader's check of itself and the look for the layers must see the model as it is.
    _ = model.reader.shares_prefixes
    backbone, layers = backbone_layers(model.network.model)
    if layers is None:
        raise ModelError(f"The layers of {model.name} cannot be found, so nothing can be taken out of them.")

    def remover(rows: FloatArray) -> "Callable[[Tensor], Tensor]":
        # In float32 whatever the model's own format: a projection in 16 bits would leave a rest of the direction.
        basis = torch.tensor(rows, dtype=torch.float32, device=model.network.device)

        def remove(states: "Tensor") -> "Tensor":
            there, full = basis.to(states.device), states.float()
            return (full - (full @ there.T) @ there).to(states.dtype)

        return remove

    def before_layer(
        remove: "Callable[[Tensor], Tensor]", _module: Any, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if given:
            return (remove(given[0]), *given[1:]), named
        return given, {**named, "hidden_states": remove(named["hidden_states"])}

    def after_norm(remove: "Callable[[Tensor], Tensor]", _module: Any, _given: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (remove(output[0]), *output[1:])
        output.last_hidden_state = remove(output.last_hidden_state)
        return output

    handles: list[Any] = []
    model.reader.release()
    try:
        for state, rows in directions.items():
            remove = remover(rows)
            if state == len(layers):
                handles.append(backbone.register_forward_hook(partial(after_norm, remove)))
            else:
                handles.append(layers[state].register_forward_pre_hook(partial(before_layer, remove), with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
        model.reader.release()


def _orthonormal(rows: FloatArray) -> FloatArray:
    """An orthonormal basis of the rows' span, [directions, width]; rows that add nothing are dropped."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(basis[sizes > 1e-10 * sizes.max(initial=0.0)], dtype=np.float64)


def _changes(before: Judgements, after: Judgements, kept: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """What is lost of the log-odds, and whether the preferred side changes, of the pairs kept; both [kept pairs]."""
    flips = np.sign(before.log_odds) != np.sign(after.log_odds)
    return (before.log_odds - after.log_odds)[kept], flips[kept].astype(np.float64)


def _weighted_correlation(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """Pearson's correlation of [pairs] with [pairs] under each row of weights [samples, pairs]; NaN where undefined."""
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_a, mean_b = weights @ first / total, weights @ second / total
        covariance = weights @ (first * second) / total - mean_a * mean_b
        spread_a = weights @ first**2 / total - mean_a**2
        spread_b = weights @ second**2 / total - mean_b**2
        # Differences of nearly equal squares: what rounding leaves of a constant is no spread.
        small = (spread_a <= 1e-12 * (1 + mean_a**2)) | (spread_b <= 1e-12 * (1 + mean_b**2))
        return np.asarray(np.where(small, np.nan, np.clip(covariance / np.sqrt(spread_a * spread_b), -1, 1)))


def _accuracy(units: BootstrapUnits, items: Sequence[Item], pairs: IntArray, log_odds: FloatArray) -> JudgeScore:
    labels = labels_of(items)
    truth = labels[pairs[:, 0]] - labels[pairs[:, 1]]
    known = np.isfinite(truth) & (truth != 0)
    test = JudgedPairs(pairs[known], truth[known], log_odds[known], three_way(log_odds[known], 0.0))
    return units.proportion(correctness(test), test.pairs)


def ablation_table(found: Ablation) -> Table:
    """What taking out the probe's direction does, beside random directions."""
    change, correlation = (f"{one.value:.3f} ({one.range})" for one in (found.mean_absolute_change,
                                                                             found.correlation))  # fmt: skip
    rows = [("probe's direction", change, correlation, f"{found.flips.share} ({found.flips.interval})")]
    for one in found.controls:
        numbers = (f"{one.mean_absolute_change:.3f}", f"{one.correlation or 0:.3f}", percent(one.flips))
        rows.append((f"random {one.seed + 1}", *numbers))
    first, last = found.states[0], found.states[-1]
    places = "states " + ", ".join(map(str, found.states))
    if len(found.states) == 1:
        places = f"state {first}"
    elif len(found.states) > 2 and found.states == tuple(range(first, last + 1)):
        places = f"states {first} to {last}"
    before, after = found.accuracy_before, found.accuracy_after
    right = f" Zero-shot accuracy on {before.n} pairs that differ: {before.share}% before, {after.share}% after."
    p_value = "" if found.p_value is None else f" p = {found.p_value:.3f} that a random direction does as much."
    return Table.of(
        f"Zero-shot preference without a direction ({found.n_pairs} pairs, {found.failed} failed)",
        ["taken out", "mean change (nats)", "correlation", "flipped (%)"],
        rows,
        strong=[0],
        note=f"Taken out of {places}. correlation: of what is lost with the probe's "
        f"log-odds. In brackets: 95% intervals, bootstrap over groups.{p_value}{right if before.n else ''}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("probe", type=Path, help="A probe that climassay judge train made.")
    parser.add_argument("items", type=Path, help="Table of texts.")
    parser.add_argument("--text", required=True, help="Column of the texts.")
    parser.add_argument("--label", help="Column of numeric labels.")
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--scope", default="onward", choices=("probed", "onward", "all"))
    parser.add_argument("--controls", type=int, default=10)
    parser.add_argument("--pairs-per-item", type=int)
    options = parser.parse_args()
    probe = load_probe(options.probe)
    items = read_items(options.items, ItemColumns(text=options.text, label=options.label)).items
    groups = [item.group for item in items]
    pairs = pairs_within(groups, np.arange(len(groups)), options.pairs_per_item, np.random.default_rng(0))
    model = load_model(options.model)
    questions = QualityRequests(load_quality(probe.provenance))
    with tempfile.TemporaryDirectory() as folder:
        extractor = StateExtractor(model, questions, probe.provenance.layers, ActivationStore(Path(folder)), None)
        judge = probe_judge(probe, extractor)
        result = ablate(model, questions, probe, judge, items, pairs, scope=options.scope, controls=options.controls)
    print(as_markdown(ablation_table(result)))


if __name__ == "__main__":
    main()
