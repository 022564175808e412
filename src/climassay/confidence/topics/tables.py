"""Topics as tables."""

from collections import Counter
from collections.abc import Sequence

from climassay.confidence.statement import Statement
from climassay.confidence.topics.topic import OUTSIDE, TopicModel
from climassay.reporting import Table

_SOURCES = {"hand": "by hand", "model": "model", "words": "its words", "earlier": "earlier run"}


def topic_table(model: TopicModel) -> Table:
    """Every topic with its size and words."""
    rows = [
        (
            topic.name,
            ", ".join(topic.words),
            _SOURCES[topic.named_by],
            str(topic.size),
            str(topic.outliers),
            str(topic.clusters),
            topic.report or "",
        )
        for topic in model.topics
    ]
    tagged = sum(one.x is not None for one in model.statements)
    what = "were given to the nearest topic" if model.settings.outliers == "assign" else "belong to no topic"
    note = (
        f"{tagged} tagged statements in {model.clusters} clusters, joined to {len(model.topics)} topics. "
        f"{model.outliers} of them ({model.outliers / max(1, tagged):.0%}) lay outside every cluster and {what}."
    )
    if any(topic.report for topic in model.topics):
        note += (
            " Only in: nine in ten of its statements are that report's, so that it may be a subject that no other "
            "report has, or one report's way of writing."
        )
    headings = ["topic", "words", "named by", "statements", "outliers", "clusters", "only in"]
    return Table.of("Topics", headings, rows, note=note, left=3)


def report_table(model: TopicModel, statements: Sequence[Statement]) -> Table:
    """Tagged statements by topic and report."""
    reports, counts = counts_by_report(model, statements)
    numbers = [*range(len(model.topics)), *([OUTSIDE] if any(row == OUTSIDE for row, _ in counts) else [])]
    rows = [
        (
            model.name(number),
            *(str(counts[number, one]) for one in reports),
            str(sum(counts[number, o] for o in reports)),
        )
        for number in numbers
    ]
    sums = [sum(counts[number, one] for number in numbers) for one in reports]
    rows.append(("all", *map(str, sums), str(sum(sums))))
    note = "Tagged statements; one that is repeated counts where it stands first."
    return Table.of("Topics by report", ["topic", *reports, "all"], rows, note=note, strong=[len(rows) - 1])


def counts_by_report(
    model: TopicModel, statements: Sequence[Statement]
) -> tuple[tuple[str, ...], Counter[tuple[int, str]]]:
    """Reports in order, and tagged statements by topic and report."""
    counts: Counter[tuple[int, str]] = Counter()
    for one in statements:
        topic = model.topic_of(one.id) if one.tag is not None else None
        if topic is not None:
            counts[topic, one.report] += 1
    return tuple(sorted({report for _, report in counts})), counts
