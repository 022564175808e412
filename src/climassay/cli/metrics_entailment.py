"""``climassay metrics entailment``: train, evaluate and apply scorers of what a passage does to a statement."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.learning_options import (
    EncoderOption,
    FoldsOption,
    HoldOutOption,
    HtmlOption,
    IncludeTrainedOption,
    LimitOption,
    LinesOption,
    OutputOption,
    SeedOption,
    card,
    check_model_path,
    comparison_table,
    counting,
    note,
    show,
    write_lines,
)
from climassay.cli.model_options import ReachOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, stdout_console, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.metrics.entailment import RelationScorer
    from climassay.metrics.entailment_head import EntailmentScores, LabelledPair
    from climassay.reporting import Table

app = typer.Typer(no_args_is_help=True, help="Train, evaluate and apply scorers of what a passage does to a statement.")

LabelsArgument = Annotated[
    Path,
    typer.Argument(help="Labelled pairs: Climate-FEVER's JSONL, or a table with premise, statement and label."),
]
ScorerArgument = Annotated[
    str,
    typer.Argument(help="bundled, prompted:MODEL, supports:MODEL (the paper's judge), nli:MODEL, or a head's file."),
]
_ALL_FIGURES = 90
"""Columns of a screen that holds all figures of a scorer side by side."""


@dataclass(frozen=True)
class EvaluateOptions:
    """What an evaluation takes and shows."""

    include_trained: IncludeTrainedOption = False
    limit: LimitOption = None
    html: HtmlOption = None
    seed: SeedOption = 0
    workspace: WorkspaceOption = None
    as_json: JsonOption = False


@app.callback()
def group() -> None:
    """Train, evaluate and apply scorers of what a passage does to a statement."""


@app.command()
def train(
    labels: LabelsArgument,
    output: OutputOption,
    hold_out: HoldOutOption = 0,
    encoder: EncoderOption = "local:minilm",
    folds: FoldsOption = 5,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Train an entailment head on labelled pairs; its file is a scorer's name."""
    from climassay.metrics.entailment_head import HeadEntailment, read_pairs, split_pairs, train_entailment
    from climassay.models.encoder import load_encoder
    from climassay.reporting import Table

    check_model_path(output)
    table, vectors = read_pairs(labels), load_encoder(encoder)
    lesson, held_out = split_pairs(table.pairs, hold_out, vectors, seed=seed)
    with counting("Trying settings", quiet=as_json) as advance:
        trained = train_entailment(table, lesson, vectors, folds=folds, seed=seed, on_fit=lambda: advance(1))
    trained.head.save(output)
    scores = []
    if held_out:
        scores.append(_scores(output.name, HeadEntailment(trained.head, vectors), held_out, seed, as_json))
    facts = card(trained.head.provenance)
    if as_json:
        choices = [{**asdict(choice), "merit": choice.merit} for choice in trained.choices]
        held = asdict(scores[0]) if scores else None
        print_json({"model": str(output), "provenance": facts, "choices": choices, "held_out": held})
        return
    rows = [
        (f"{one.regularisation:g}", f"{one.synthetic_share:.0%}", "yes" if one.vectors else "no",
         f"{one.two_class_auroc:.3f}", f"{one.turned_auroc:.3f}")
        for one in trained.choices
    ]  # fmt: skip
    columns = ("C", "made by rule", "vectors", "AUROC, labelled pairs", "AUROC, pairs made by rule")
    words = "On statements not fitted on; the setting with the highest mean of the two is taken."
    show([Table.of("Settings by cross-validation", columns, rows, note=words)])
    note(
        f"Trained on {facts['items']} pairs of {facts['groups']} statements and {facts['settings']['turned']} made by"
        f" rule. Saved as {output}."
    )
    if scores:
        _show(scores)


@app.command()
@grouped
def evaluate(
    scorer: ScorerArgument,
    labels: LabelsArgument,
    beside: Annotated[list[str] | None, typer.Option(help="A further scorer of the same pairs; repeat.")] = None,
    options: EvaluateOptions = EvaluateOptions(),
    reach: ReachOptions = ReachOptions(),
) -> None:
    """Score scorers on labelled pairs that none of them was trained on, beside the constant."""
    _evaluate([scorer, *(beside or [])], labels, options, reach)


@grouped
def validate(
    file: LabelsArgument,
    entailment: Annotated[list[str] | None, typer.Option("--entailment", "-e", help="A scorer; repeat.")] = None,
    options: EvaluateOptions = EvaluateOptions(),
    reach: ReachOptions = ReachOptions(),
) -> None:
    """Score scorers on labelled pairs: the earlier form of ``metrics entailment evaluate``."""
    _evaluate(entailment or ["bundled"], file, options, reach)


@app.command()
@grouped
def apply(
    scorer: ScorerArgument,
    items: Annotated[Path, typer.Argument(help="Pairs: a table with premise and statement, or claim and evidences.")],
    output: LinesOption = None,
    reach: ReachOptions = ReachOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what each passage does to its statement: confirm it, contradict it, or leave it open."""
    from climassay.metrics.entailment import RELATIONS
    from climassay.metrics.entailment_head import read_pairs, relation_probabilities
    from climassay.metrics.entailment_loading import load_entailment
    from climassay.reporting import Table

    pairs = read_pairs(items, labelled=False).pairs
    asked = load_entailment(scorer, load=reach.loader(workspace, quiet=as_json))
    with counting(f"Asking {scorer}", len(pairs), quiet=as_json) as advance:
        found = relation_probabilities(pairs, asked, on_progress=advance).tolist()
    rows = [
        {
            "premise": pair.premise,
            "statement": pair.statement,
            "probabilities": None if row[0] != row[0] else dict(zip(RELATIONS, row, strict=True)),
        }
        for pair, row in zip(pairs, found, strict=True)
    ]
    write_lines(output, rows)
    if as_json:
        print_json({"scorer": scorer, "pairs": rows})
        return
    cells = [
        (pair.premise, pair.statement, *(f"{share:.0%}" if share == share else "failed" for share in row))
        for pair, row in zip(pairs, found, strict=True)
    ]
    show([Table.of("What passages do to statements", ("premise", "statement", *RELATIONS), cells, left=2)])


def _evaluate(names: list[str], labels: Path, options: EvaluateOptions, reach: ReachOptions) -> None:
    from climassay.metrics.entailment_head import read_pairs, sample_statements, unseen_pairs
    from climassay.metrics.entailment_loading import load_entailment

    table = read_pairs(labels)
    load = reach.loader(options.workspace, quiet=options.as_json)
    scorers = {name: load_entailment(name, load=load) for name in names}
    # One set of pairs for all scorers: what any of the heads was trained on is left out for every one of them.
    pairs = table.pairs
    for scorer in () if options.include_trained else scorers.values():
        pairs = unseen_pairs(pairs, scorer)
    left_out = len(table.pairs) - len(pairs)
    pairs = sample_statements(pairs, options.limit, options.seed)
    found = [_scores(name, scorer, pairs, options.seed, options.as_json) for name, scorer in scorers.items()]
    told = f"{left_out} pairs are left out: a head was trained on their statements." if left_out else ""
    if options.html:
        from climassay.reporting import Report, Section

        lead = f"How well scorers tell what a passage does to a statement, on labelled pairs of {labels.name}. {told}"
        report = Report("Entailment scorers", lead.strip(), (Section("Scores", tuple(_tables(found))),))
        write_text(options.html, report.to_html())
    if options.as_json:
        data = {"file": str(labels), "sha256": table.sha256, "left_out": left_out}
        print_json({**data, "scorers": [asdict(one) for one in found]})
        return
    _show(found)
    note(told, f"Report written to {options.html}." if options.html else "")


def _scores(
    name: str, scorer: "RelationScorer", pairs: "Sequence[LabelledPair]", seed: int, quiet: bool
) -> "EntailmentScores":
    from climassay.metrics.entailment_head import validate_entailment

    with counting(f"Asking {name}", len(pairs), quiet=quiet) as advance:
        found = validate_entailment(pairs, scorer, seed=seed, on_progress=advance)
    return replace(found, scorer=name)


def _tables(found: "Sequence[EntailmentScores]") -> "list[Table]":
    from climassay.reporting import Table

    two = comparison_table([(one.scorer, one.two_class) for one in found], "SUPPORTS or REFUTES")
    three = comparison_table([(one.scorer, one.three_class) for one in found], "Three relations")
    rows = []
    for one in found:
        auroc = one.two_class.auroc
        assert auroc is not None
        rows.append(
            (one.scorer, "{:.3f} [{:.3f}, {:.3f}]".format(auroc.value, *auroc.interval), f"{one.support_auroc:.3f}",
             f"{one.calibration.expected_calibration_error:.3f}", str(one.three_class.failed))
        )  # fmt: skip
    columns = ("model", "AUROC", "AUROC of\nsupport", "calibration\nerror", "failed")
    words = "AUROC: supporting pairs above refuting ones; of support: above all others. 0.5 is chance."
    return [replace(table, grouped=1) for table in (two, three, Table.of("Ranking", columns, rows, note=words))]


def _show(found: "Sequence[EntailmentScores]") -> None:
    from climassay.reporting.tables import split_columns

    # Scorers are named on lines of their own, for a file's name may be longer than all figures together.
    width = 4 if stdout_console().width >= _ALL_FIGURES else 2
    show(part for table in _tables(found) for part in split_columns(table, 1, width))
