"""Tables of plans and of comparisons between benchmarks."""

from collections.abc import Sequence

from climassay.evaluation.comparing import Favour, ModelMeans, RankAgreement
from climassay.evaluation.experiment_tables import shown_p_value, shown_value
from climassay.evaluation.outcome import METRICS
from climassay.evaluation.planning import Plan
from climassay.reporting import Table
from climassay.statistics import Correlation, Interval


def plan_table(plan: Plan) -> Table:
    """Questions needed by difference and design."""
    given = plan.assumptions
    unit = "points" if given.binary else "difference"
    return Table.of(
        f"Questions needed to see a difference in {METRICS[plan.metric].label}",
        [unit, "same questions", "own questions,\na system", "interval so wide\neach side"],
        [
            [
                f"{100 * row.difference:g}" if given.binary else f"{row.difference:g}",
                "-" if row.paired is None else f"{'' if row.exact else '~'}{row.paired:,}",
                "-" if row.unpaired is None else f"{row.unpaired:,}",
                f"{row.interval:,}",
            ]
            for row in plan.rows
        ],
        note=f"Power {100 * plan.power:g}%, two-sided level {plan.alpha:g}. Assumed: {_assumed(plan)} "
        f"({given.origin}). same questions: {_paired_test(plan)}. -: no such difference is possible.",
    )


def _assumed(plan: Plan) -> str:
    given = plan.assumptions
    if given.binary:
        return (
            f"the first system is right on {100 * (given.mean or 0):.1f}% and the two disagree on "
            f"{100 * (given.discordance or 0):.1f}% of the questions"
        )
    return (
        f"scores spread by {given.deviation:.3g} over questions and differences of two systems by "
        f"{given.paired_deviation:.3g} (standard deviations)"
    )


def _paired_test(plan: Plan) -> str:
    if plan.assumptions.binary:
        return "exact McNemar test (~: normal approximation)"
    return "paired test of means, normal approximation (~)"


def agreement_table(found: Sequence[RankAgreement], first: ModelMeans, second: ModelMeans) -> Table:
    """Rank correlation of models between two benchmarks, a row a metric."""
    return Table.of(
        f"Do {first.name} and {second.name} rank models alike? Setting {_settings(first, second)}",
        ["metric", "models", "Spearman", "95%, models", "95%, questions", "Kendall", "95%, models", "p"],
        [
            [
                METRICS[one.metric].label,
                str(len(one.models)),
                f"{one.spearman.value:.2f}",
                _ends(one.spearman),
                _interval(one.over_questions),
                f"{one.kendall.value:.2f}",
                _ends(one.kendall),
                shown_p_value(one.spearman.p_value if one.p_value is None else one.p_value),
            ]
            for one in found
        ],
        note="95%, models: bootstrap over models, wide because there are few, and without width where no resample can "
        "break the order. 95%, questions: bootstrap over the questions of both (only where single scores are known). "
        "p: one-sided over all orders of the models (up to eight models, else asymptotic and two-sided).",
    )


def _settings(first: ModelMeans, second: ModelMeans) -> str:
    return first.setting if first.setting == second.setting else f"{first.setting} and {second.setting}"


def means_table(found: Sequence[RankAgreement], first: ModelMeans, second: ModelMeans) -> Table:
    """The means behind the rank correlations, a row a model and metric."""
    return Table.of(
        "Means behind it",
        ["metric", "model", first.name, second.name],
        [
            [METRICS[one.metric].label, model, shown_value(one.metric, a), shown_value(one.metric, b)]
            for one in found
            for model, a, b in zip(one.models, one.first, one.second, strict=True)
        ],
        left=2,
        grouped=1,
    )


def favour_table(found: Sequence[Favour], means: ModelMeans) -> Table:
    """How metrics treat the generating model, a row a metric."""
    generator, anchor = found[0].generator, METRICS[found[0].anchor].label
    return Table.of(
        f"Do metrics favour {generator}, which wrote the questions? {means.name}, setting {means.setting}",
        [
            "metric",
            "models",
            f"place by\n{anchor}",
            "place by\nmetric",
            "value",
            "expected",
            "excess",
            "95%, questions",
            "t",
            "p",
            "excess's\nplace",
        ],
        [
            [
                METRICS[one.metric].label,
                str(one.models),
                str(one.anchor_rank),
                str(one.rank),
                f"{one.value:.3f}",
                f"{one.expected:.3f}",
                f"{one.excess:+.3f}",
                _interval(one.over_questions),
                f"{one.studentised:.2f}",
                shown_p_value(one.p_value),
                f"{one.place} of {one.models}",
            ]
            for one in found
        ],
        note=f"expected: from the line between {anchor} and the metric over the other models. t: the excess in units "
        "of its standard error, with three degrees of freedom fewer than models; p: one-sided. excess's place: among "
        "the excesses of all models, each against the line of the others; the first place falls to any model by chance "
        f"once in {found[0].models}. Few models show only large favours, and a model may be better at one task than at "
        "another: read rows of the same answers against each other.",
    )


def _ends(correlation: Correlation) -> str:
    return _interval(correlation.interval)


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"
