"""Judging in tables."""

from collections.abc import Sequence

from climassay.judging.causal import Ablation
from climassay.judging.experiment import JudgeResult
from climassay.judging.ranking import Inserted, ItemRanking
from climassay.judging.scores import Figure, PairedFigure
from climassay.judging.training import TrainedProbe
from climassay.reporting import Table

_NONE = "-"


def judge_tables(results: Sequence[JudgeResult]) -> list[Table]:
    """Accuracy beside the baselines, rank correlation, and cost."""
    return [
        _accuracy_table(results),
        _other_accuracies_table(results),
        _correlation_table(results),
        _cost_table(results),
    ]


def _accuracy_table(results: Sequence[JudgeResult]) -> Table:
    rows = [
        (
            *_names(result),
            str(result.scores.agreement.accuracy_differing.n),
            _share(result.scores.agreement.accuracy_differing),
            _interval(result.scores.agreement.accuracy_differing),
            _share(result.scores.baselines["longer"].accuracy_differing),
            *_gain(result.scores.versus_longer),
            str(result.scores.failed),
        )
        for result in results
    ]
    return Table.of(
        "Agreement with the experts on pairs of unseen items (%)",
        ["quality", "method", "n", "right", "95% interval", "longer", "gain", "95% interval", "p", "failed"],
        rows,
        left=2,
        grouped=1,
        note="right: of the n pairs with different labels, undecided and failed ones half; a constant answer is right "
        "on half of them. longer: 'the longer text is better' on the same pairs; gain: points above it, with the "
        "p-value of a paired bootstrap. Intervals: bootstrap over groups (over items where there is one group).",
    )


def _other_accuracies_table(results: Sequence[JudgeResult]) -> Table:
    rows = []
    for result in results:
        ours, baselines = result.scores.agreement, result.scores.baselines
        near = ours.accuracy_nearly_equal_length
        rows.append(
            (
                *_names(result),
                str(ours.accuracy_three_way.n),
                _share(ours.accuracy_three_way),
                _interval(ours.accuracy_three_way),
                _share(baselines["constant"].accuracy_three_way),
                _share(baselines["longer"].accuracy_three_way),
                str(near.n),
                _share(near),
                *_gain(result.scores.versus_longer_nearly_equal)[:2],
            )
        )
    return Table.of(
        "Three ways, and where length cannot help (%)",
        ["quality", "method", "n", "right", "95% interval", "const.", "longer", "equal\nlength", "right", "gain",
         "95% interval"],
        rows,
        left=2,
        grouped=1,
        note="First: greater, equal or less over all n pairs, beside the best constant and length. Then: pairs that "
        "differ in quality and whose lengths are within 10%; gain: points above 'the longer text is better'.",
    )  # fmt: skip


def _correlation_table(results: Sequence[JudgeResult]) -> Table:
    rows = []
    for result in results:
        agreement, longer = result.scores.agreement, result.scores.baselines["longer"]
        cells: list[str] = [str(agreement.spearman.n)]
        for ours, theirs in ((agreement.spearman, longer.spearman), (agreement.kendall, longer.kendall)):
            cells += [_number(ours.value), _range(ours), _number(theirs.value)]
        rows.append((*_names(result), *cells))
    return Table.of(
        "Rank correlation with the experts within groups",
        ["quality", "method", "groups", "Spearman", "95% interval", "longer", "Kendall", "95% interval", "longer"],
        rows,
        left=2,
        grouped=1,
        note="Means over groups in which labels differ, after sorting by the method's preferences. longer: ranking by "
        "length. Where all items form one group, the folds' lists are ranked and the number is that of items.",
    )


def _cost_table(results: Sequence[JudgeResult]) -> Table:
    rows = []
    for result in results:
        cost = result.cost
        ratio = f"{cost.tokens_two_pass / cost.tokens_computed:.1f}" if cost.tokens_computed else _NONE
        counts = (cost.computed, cost.stored, cost.passes, cost.tokens_computed, cost.tokens_two_pass)
        rows.append((*_names(result), *(f"{count:,}" for count in counts), ratio))
    return Table.of(
        "What the comparisons took",
        ["quality", "method", "computed", "stored", "passes", "tokens", "plain tokens", "ratio"],
        rows,
        left=2,
        grouped=1,
        note="computed, stored: requests computed now and served from disk. plain tokens: what a loop of whole passes "
        "computes, two for each ordered pair, one for each prompt of the others. Methods that read the same "
        "activations share one cost.",
    )


def ranking_table(ranking: ItemRanking, *, quality: str, words: int = 30) -> Table:
    """Items in order, best first."""
    grouped = len({row.group for row in ranking.rows}) > 1
    rows = [
        (
            *((row.group,) if grouped else ()),
            str(row.place),
            row.item.id,
            shortened(row.item.text, words),
            _NONE if row.item.label is None else f"{row.item.label:g}",
            f"{row.strength:+.2f}",
        )
        for row in ranking.rows
    ]
    return Table.of(
        f"Ranking by {quality}",
        [*(["group"] if grouped else []), "place", "item", "text", "label", "strength"],
        rows,
        left=4 if grouped else 3,
        grouped=int(grouped),
        note=f"strength: log-odds, mean 0 in a group. {ranking.comparisons} of {ranking.possible} pairs compared, "
        f"{ranking.failed} without an answer.",
    )


def evidence_table(trained: TrainedProbe) -> Table:
    """A probe's accuracy on held-out items beside the baseline."""
    rows = [
        ("probe", str(trained.accuracy.n), _share(trained.accuracy), _interval(trained.accuracy)),
        ("longer text", str(trained.longer.n), _share(trained.longer), _interval(trained.longer)),
        ("difference", str(trained.accuracy.n), *_gain(trained.versus_longer)[:2]),
    ]
    return Table.of(
        "Accuracy on pairs of held-out items that differ (%)",
        ["judge", "n", "right", "95% interval"],
        rows,
        note="By probes that did not see the items. Layer and regularisation were chosen on the same pairs, which "
        "flatters the probe a little: judge benchmark tests on items that chose nothing. Intervals: bootstrap over "
        "groups.",
    )


def insertion_table(found: Inserted, *, words: int = 30) -> Table:
    """New items with the labels given to them and the way there."""
    rows = [
        (
            item.id,
            shortened(item.text, words),
            insertion.label,
            ", ".join(f"{step.label} {step.preference:.2f}" for step in insertion.path),
            str(insertion.comparisons),
        )
        for item, insertion in zip(found.items, found.insertions, strict=True)
    ]
    return Table.of(
        "Labels",
        ["item", "text", "label", "compared with", "comparisons"],
        rows,
        left=4,
        note="compared with: labels in the order of the search, with the mean probability of having more of the "
        "quality than their anchors.",
    )


def ablation_table(found: Ablation) -> Table:
    """What taking out the probe's direction does, beside random directions."""
    names = ("probe's direction", *(f"random {control.seed + 1}" for control in found.controls))
    own = (found.mean_absolute_change, found.correlation, found.flips)
    rows = [
        (
            names[0],
            f"{_number(own[0].value)} ({_range(own[0])})",
            f"{_number(own[1].value)} ({_range(own[1])})",
            f"{_share(own[2])} ({_interval(own[2])})",
        )
    ]
    rows += [
        (name, _number(control.mean_absolute_change), _number(control.correlation), f"{100 * control.flips:.1f}")
        for name, control in zip(names[1:], found.controls, strict=True)
    ]
    before, after = found.accuracy_before, found.accuracy_after
    right = (
        f" Zero-shot accuracy on {before.n} pairs that differ: {_share(before)}% before, {_share(after)}% after."
        if before.n
        else ""
    )
    p_value = "" if found.p_value is None else f" p = {found.p_value:.3f} that a random direction does as much."
    return Table.of(
        f"Zero-shot preference without a direction ({found.n_pairs} pairs, {found.failed} failed)",
        ["taken out", "mean change (nats)", "correlation", "flipped (%)"],
        rows,
        strong=[0],
        note=f"Taken out of {_listed(found.states)}. correlation: of what is lost with the probe's "
        f"log-odds. In brackets: 95% intervals, bootstrap over groups.{p_value}{right}",
    )


def shortened(text: str, words: int) -> str:
    """The first words of a text."""
    parts = text.split()
    return text if len(parts) <= words else " ".join(parts[:words]) + " ..."


def quality_name(result: JudgeResult) -> str:
    """The quality, with its wording where that is not the first."""
    return result.scores.quality + (f", wording {result.quality.wording}" if result.quality.wording != 1 else "")


def _names(result: JudgeResult) -> tuple[str, str]:
    return quality_name(result), result.scores.method


def _share(figure: Figure) -> str:
    return _NONE if figure.value is None else f"{100 * figure.value:.1f}"


def _interval(figure: Figure) -> str:
    return _NONE if figure.low is None or figure.high is None else f"{100 * figure.low:.1f}-{100 * figure.high:.1f}"


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _range(figure: Figure) -> str:
    return _NONE if figure.low is None or figure.high is None else f"{figure.low:.3f} to {figure.high:.3f}"


def _gain(paired: PairedFigure) -> tuple[str, str, str]:
    figure = paired.difference
    if figure.value is None or figure.low is None or figure.high is None or paired.p_value is None:
        return _NONE, _NONE, _NONE
    p_value = "<0.001" if paired.p_value < 0.001 else f"{paired.p_value:.3f}"
    return f"{100 * figure.value:+.1f}", f"{100 * figure.low:+.1f} to {100 * figure.high:+.1f}", p_value


def _listed(states: Sequence[int]) -> str:
    if len(states) == 1:
        return f"state {states[0]}"
    if len(states) > 2 and list(states) == list(range(states[0], states[-1] + 1)):
        return f"states {states[0]} to {states[-1]}"
    return "states " + ", ".join(map(str, states))
