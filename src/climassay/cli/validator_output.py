"""What the commands of ``climassay validator`` print."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.cli.output import print_json, stderr_console, stdout_console, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.generation import Draft
    from climassay.generation.validation import (
        LabelSet,
        SimulationSettings,
        SimulationSummary,
        Threshold,
        TrainedHead,
        TrainedModel,
        ValidatorScores,
    )
    from climassay.reporting import Table


def head_data(trained: "TrainedHead") -> dict[str, Any]:
    """What is known of a trained head, for JSON."""
    source = asdict(trained.head.source)
    source.pop("trained_on")
    return {
        "source": source,
        "scores": trained.scores,
        "choices": trained.choices,
        "threshold": trained.head.threshold,
        "refusal": trained.refusal,
        "left_out": trained.left_out,
    }


def finish(
    table: "LabelSet",
    trained: "TrainedHead | TrainedModel",
    data: dict[str, Any],
    threshold: "Threshold | None",
    html: Path | None,
    as_json: bool,
) -> None:
    """Print the figures of a trained validator, or all of it as JSON, and write its report."""
    if html is not None:
        _write_report(html, table, trained.scores)
    if as_json:
        print_json(data)
    else:
        from climassay.reporting import as_rich

        for shown in [scores_table(trained.scores), *([threshold_table(threshold)] if threshold else [])]:
            stdout_console().print(as_rich(shown))
        if table.skipped:
            stderr_console().print(
                f"{len(table.skipped)} labelled rows left out, the first: {table.skipped[0]}.", highlight=False
            )
    if trained.refusal is not None:
        stderr_console().print(f"No threshold: {trained.refusal}", highlight=False)


def scores_table(scores: "ValidatorScores") -> "Table":
    """A validator on labels it was not trained on."""
    from climassay.reporting import Table
    from climassay.statistics import Estimate

    def share(estimate: Estimate) -> str:
        return f"{estimate.value:.1%} ({estimate.interval.low:.1%} to {estimate.interval.high:.1%})"

    rows = [("precision without a validator (constant)", share(scores.constant), "100%")]
    if scores.precision is not None:
        rows.append(("precision at P(valid) of 1/2", share(scores.precision), f"{scores.kept:.0%}"))
    rows += [
        (f"precision, likeliest {one.share:.0%}", share(one.precision), f"{one.share:.0%}") for one in scores.at_shares
    ]
    low, high = scores.auroc_interval
    rows.append(("AUROC (chance: 0.5)", f"{scores.auroc:.3f} ({low:.3f} to {high:.3f})", ""))
    judged = scores.calibration
    rows.append(("Brier score (constant in brackets)", f"{judged.brier:.3f} ({judged.brier_constant:.3f})", ""))
    note = f"{scores.n} questions on {scores.passages} passages, none trained on; 95% intervals."
    return Table.of("The validator on labels it has not seen", ("", "value", "kept"), rows, note=note)


def threshold_table(threshold: "Threshold") -> "Table":
    """A threshold and what may be expected of it."""
    from climassay.reporting import Table

    low, high = threshold.precision.interval
    rows = [
        ("P(valid) of at least", f"{threshold.value:.3f}"),
        ("precision wanted", f"{threshold.wanted:.1%}"),
        ("precision on labels", f"{threshold.precision.value:.1%} ({low:.1%} to {high:.1%})"),
        ("share kept", f"{threshold.yield_.value:.1%}"),
    ]
    return Table.of("Threshold", ("", ""), rows, note="Chosen on these labels: new questions may do a little worse.")


def _write_report(html: Path, table: "LabelSet", scores: "ValidatorScores") -> None:
    from climassay.generation.validation import reason_figure, reliability_figure
    from climassay.reporting import Report, Section

    reasons = reason_figure([(table.name, table.drafts)])
    sections = [Section("Figures", (scores_table(scores), reliability_figure(scores)))]
    if reasons is not None:
        sections.append(Section("Why questions were rejected", (reasons,)))
    lead = f"A validator trained on {table.name}, measured on passages that it was not trained on."
    write_text(html, Report("Validator", lead, tuple(sections)).to_html())


def show_simulation(summary: "SimulationSummary", settings: "SimulationSettings", html: Path | None) -> None:
    """Print the tables of a simulation."""
    from climassay.generation.validation.simulation_results import simulation_tables
    from climassay.reporting import as_rich

    for shown in simulation_tables(summary, settings):
        stdout_console().print(as_rich(shown))
    if html is not None:
        stderr_console().print(f"Report written to {html}.", highlight=False)


def trained_facts(path: Path) -> "tuple[dict[str, Any], Threshold | None]":
    """What a trained validator says of itself, and its threshold; no model is loaded.

    Raises:
        InputError: It is none.
    """
    from climassay.generation.validation.asked import FACTS_FILE, read_facts
    from climassay.generation.validation.head import FORMAT, load_head

    if (path / FACTS_FILE).is_file():
        facts = read_facts(path)
    else:
        start = _beginning(path)
        if start.lstrip()[:1] != b"{" or FORMAT.name.encode() in start:
            head = load_head(path)
            found = asdict(head.source)
            found["trained_on"] = len(head.source.trained_on)
            return found, head.threshold
        from climassay.generation.validation.fine_tuning import facts_of
        from climassay.models.openai_finetuning import read_state

        facts = facts_of(read_state(path))
    found = asdict(facts)
    found["trained_on"] = len(facts.trained_on)
    for name in ("threshold", "calibrator"):
        found.pop(name)
    return found, facts.threshold


def _beginning(path: Path) -> bytes:
    """What tells the kind of a file; empty where it is none."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(200)


def words(value: Any) -> str:
    """A value as a reader wants it."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {words(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(words, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def decision_counts(before: "Sequence[Draft]", after: "Sequence[Draft]") -> dict[str, int]:
    """How many drafts a validator kept, rejected and could not judge."""
    new = [draft.decisions[-1] for old, draft in zip(before, after, strict=True) if old.usable]
    return {
        "kept": sum(one.accepted is True for one in new),
        "rejected": sum(one.accepted is False for one in new),
        "not judged": sum(one.accepted is None for one in new),
        "rejected or failed before": len(after) - len(new),
    }
