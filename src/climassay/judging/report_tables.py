"""Judging in tables, of what has just been found and of what the records keep of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from climassay.judging.causal import Ablation
from climassay.judging.experiment import JudgeResult
from climassay.judging.scores import Figure, PairedFigure
from climassay.judging.training import TrainedProbe
from climassay.records.queries import RunDetails
from climassay.reporting import Table

_NONE = "-"
Rows = Sequence[Mapping[str, Any]]


def judge_tables(results: Sequence[JudgeResult]) -> list[Table]:
    """Accuracy beside the baselines, rank correlation, and cost."""

    def table(title: str, headings: Sequence[str], cells: Callable[[JudgeResult], Sequence[str]], note: str) -> Table:
        rows = [(quality_name(one), one.scores.method, *cells(one)) for one in results]
        return Table.of(title, ["quality", "method", *headings], rows, left=2, grouped=1, note=note)

    def accuracy(result: JudgeResult) -> tuple[str, ...]:
        ours, longer = result.scores.agreement.accuracy_differing, result.scores.baselines["longer"]
        gain = _gain(result.scores.versus_longer)
        beside = _share(longer.accuracy_differing)
        return str(ours.n), _share(ours), _interval(ours), beside, *gain, str(result.scores.failed)

    def other_accuracies(result: JudgeResult) -> tuple[str, ...]:
        ours, beside = result.scores.agreement, result.scores.baselines
        three, near = ours.accuracy_three_way, ours.accuracy_nearly_equal_length
        constant, longer = (_share(beside[name].accuracy_three_way) for name in ("constant", "longer"))
        gain = _gain(result.scores.versus_longer_nearly_equal)[:2]
        return str(three.n), _share(three), _interval(three), constant, longer, str(near.n), _share(near), *gain

    def correlation(result: JudgeResult) -> tuple[str, ...]:
        agreement, longer = result.scores.agreement, result.scores.baselines["longer"]
        cells: list[str] = [str(agreement.spearman.n)]
        for ours, theirs in ((agreement.spearman, longer.spearman), (agreement.kendall, longer.kendall)):
            cells += [_number(ours.value), _range(ours), _number(theirs.value)]
        return tuple(cells)

    def cost(result: JudgeResult) -> tuple[str, ...]:
        one = result.cost
        ratio = f"{one.tokens_two_pass / one.tokens_computed:.1f}" if one.tokens_computed else _NONE
        counts = (one.computed, one.stored, one.passes, one.tokens_computed, one.tokens_two_pass)
        return *(f"{count:,}" for count in counts), ratio

    return [
        table(
            "Agreement with the experts on pairs of unseen items (%)",
            ["n", "right", "95% interval", "longer", "gain", "95% interval", "p", "failed"],
            accuracy,
            "right: of the n pairs with different labels, undecided and failed ones half; a constant answer is right "
            "on half of them. longer: 'the longer text is better' on the same pairs; gain: points above it, with the "
            "p-value of a paired bootstrap. Intervals: bootstrap over groups (over items where there is one group).",
        ),
        table(
            "Three ways, and where length cannot help (%)",
            ["n", "right", "95% interval", "const.", "longer", "equal\nlength", "right", "gain", "95% interval"],
            other_accuracies,
            "First: greater, equal or less over all n pairs, beside the best constant and length. Then: pairs that "
            "differ in quality and whose lengths are within 10%; gain: points above 'the longer text is better'.",
        ),
        table(
            "Rank correlation with the experts within groups",
            ["groups", "Spearman", "95% interval", "longer", "Kendall", "95% interval", "longer"],
            correlation,
            "Means over groups in which labels differ, after sorting by the method's preferences. longer: ranking by "
            "length. Where all items form one group, the folds' lists are ranked and the number is that of items.",
        ),
        table(
            "What the comparisons took",
            ["computed", "stored", "passes", "tokens", "plain tokens", "ratio"],
            cost,
            "computed, stored: requests computed now and served from disk. plain tokens: what a loop of whole passes "
            "computes, two for each ordered pair, one for each prompt of the others. Methods that read the same "
            "activations share one cost.",
        ),
    ]


def ranking_table(rows: Rows, *, quality: str, words: int | None = 30, note: str = "") -> Table:
    """Items in order, best first.

    Args:
        rows: From :meth:`climassay.judging.ItemRanking.to_rows`.
        quality: Its name.
        words: Of a text that are shown; None: all.
        note: Goes behind what the strength means.
    """
    grouped = len({row["group"] for row in rows}) > 1
    cells = [
        (
            *((row["group"],) if grouped else ()),
            str(row["place"]),
            str(row["item"]),
            shortened(row["text"], words),
            _NONE if row["label"] is None else f"{row['label']:g}",
            f"{row['strength']:+.2f}",
        )
        for row in rows
    ]
    return Table.of(
        f"Ranking by {quality}",
        [*(["group"] if grouped else []), "place", "item", "text", "label", "strength"],
        cells,
        left=4 if grouped else 3,
        grouped=int(grouped),
        note=f"strength: log-odds, mean 0 in a group. {note}".strip(),
    )


def insertion_table(rows: Rows, *, words: int | None = 30) -> Table:
    """New items with the labels given to them and the way there.

    Args:
        rows: From :meth:`climassay.judging.ranking.Inserted.to_rows`.
        words: Of a text that are shown; None: all.
    """
    cells = [
        (
            str(row["item"]),
            shortened(row["text"], words),
            row["label"],
            ", ".join(f"{step['label']} {step['preference']:.2f}" for step in row["path"]),
            str(row["comparisons"]),
        )
        for row in rows
    ]
    note = (
        "compared with: labels in the order of the search, with the mean probability of having more of the quality "
        "than their anchors."
    )
    return Table.of("Labels", ["item", "text", "label", "compared with", "comparisons"], cells, left=4, note=note)


def stored_ranking_table(details: RunDetails) -> Table:
    """The items that ``climassay judge rank`` put in order, with their whole texts."""
    return ranking_table(details.results["ranking"], quality=details.config.get("quality", "quality"), words=None)


def stored_label_table(details: RunDetails) -> Table:
    """The labels that ``climassay judge insert`` gave, with the whole texts."""
    return insertion_table(details.results["labels"], words=None)


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


def ablation_table(found: Ablation) -> Table:
    """What taking out the probe's direction does, beside random directions."""
    change, correlation = (f"{_number(one.value)} ({_range(one)})" for one in (found.mean_absolute_change,
                                                                             found.correlation))  # fmt: skip
    rows = [("probe's direction", change, correlation, f"{_share(found.flips)} ({_interval(found.flips)})")]
    rows += [
        (
            f"random {one.seed + 1}",
            _number(one.mean_absolute_change),
            _number(one.correlation),
            f"{100 * one.flips:.1f}",
        )
        for one in found.controls
    ]
    first, last = found.states[0], found.states[-1]
    if len(found.states) == 1:
        places = f"state {first}"
    elif len(found.states) > 2 and found.states == tuple(range(first, last + 1)):
        places = f"states {first} to {last}"
    else:
        places = "states " + ", ".join(map(str, found.states))
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
        note=f"Taken out of {places}. correlation: of what is lost with the probe's "
        f"log-odds. In brackets: 95% intervals, bootstrap over groups.{p_value}{right}",
    )


def shortened(text: str, words: int | None) -> str:
    """The first words of a text; all where ``words`` is None."""
    parts = text.split()
    return text if words is None or len(parts) <= words else " ".join(parts[:words]) + " ..."


def quality_name(result: JudgeResult) -> str:
    """The quality, with its wording where that is not the first."""
    return result.scores.quality + (f", wording {result.quality.wording}" if result.quality.wording != 1 else "")


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
