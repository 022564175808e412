"""``climassay metrics validate-entailment`` and ``train-entailment``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.model_options import ReachOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    WorkspaceOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.metrics.entailment import RelationScorer
    from climassay.metrics.entailment_head_training import TrainedEntailment
    from climassay.metrics.entailment_pairs import LabelledPair
    from climassay.metrics.entailment_validation import EntailmentScores
    from climassay.reporting import Table

FileArgument = Annotated[
    Path,
    typer.Argument(help="Labelled pairs: Climate-FEVER's JSONL, or a table with premise, statement and label."),
]

_ALL_FIGURES = 90
"""Columns of a screen that holds all figures of a scorer side by side."""


@grouped
def validate(
    file: FileArgument,
    entailment: Annotated[
        list[str] | None,
        typer.Option(
            "--entailment",
            "-e",
            help="bundled, prompted:MODEL, supports:MODEL (the paper's judge), nli:MODEL, or a head's file; repeat.",
        ),
    ] = None,
    include_trained: Annotated[
        bool, typer.Option("--include-trained", help="Score a head on statements it was trained on too.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Take a random sample of so many statements.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the scores as a self-contained HTML report.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample and of the resampling.")] = 0,
    reach: ReachOptions = ReachOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accuracy of entailment scorers on labelled pairs, with intervals and the constant baseline."""
    from climassay.metrics.entailment_loading import load_entailment
    from climassay.metrics.entailment_pairs import read_pairs
    from climassay.metrics.entailment_validation import sample_statements, unseen_pairs

    names = list(dict.fromkeys(entailment or ["bundled"]))
    table = read_pairs(file)
    scorers = [load_entailment(name, load=reach.loader(workspace, quiet=as_json)) for name in names]
    # One set of pairs for all scorers: what any of the heads was trained on is left out for every one of them.
    pairs = table.pairs
    if not include_trained:
        for scorer in scorers:
            pairs = unseen_pairs(pairs, scorer)
    left_out = len(table.pairs) - len(pairs)
    pairs = sample_statements(pairs, limit, seed)
    found = [_validated(name, scorer, pairs, seed, as_json) for name, scorer in zip(names, scorers, strict=True)]
    if html:
        _write_report(html, file, found, left_out)
    if as_json:
        print_json(
            {"file": str(file), "sha256": table.sha256, "left_out": left_out, "scorers": list(map(asdict, found))}
        )
        return
    _show(found, left_out, html)


def train(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The head's file, for example head.safetensors.")],
    hold_out: Annotated[
        int, typer.Option(min=0, help="Keep so many statements out of the training; whole groups of like statements.")
    ] = 0,
    encoder: Annotated[str, typer.Option(help="Encoder whose vectors the head reads.")] = "local:minilm",
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of split, folds and the pairs made by rule.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train an entailment head on labelled pairs; --entailment HEAD uses it."""
    from climassay.metrics.entailment_head import HeadEntailment, save_head
    from climassay.metrics.entailment_head_training import split_pairs, train_entailment
    from climassay.metrics.entailment_pairs import read_pairs
    from climassay.models.encoder import load_encoder

    if output.is_dir() or not output.parent.is_dir():
        raise InputError(f"{output} is no place for a file: give the head a name in a folder that exists.")
    table, vectors = read_pairs(file), load_encoder(encoder)
    lesson, held_out = split_pairs(table.pairs, hold_out, vectors, seed=seed)
    with progress_bar(as_json) as progress:
        task = progress.add_task("Trying settings", total=None)
        trained = train_entailment(
            table, lesson, vectors, folds=folds, seed=seed, on_fit=lambda: progress.advance(task)
        )
    save_head(trained.head, output)
    scores = None
    if held_out:
        scores = _validated(output.name, HeadEntailment(trained.head, vectors), held_out, seed, as_json)
    if as_json:
        print_json(_training_data(trained, scores, output))
        return
    _show_training(trained, output)
    if scores is not None:
        _show([scores], len(lesson), None)


def _validated(
    name: str, scorer: "RelationScorer", pairs: "Sequence[LabelledPair]", seed: int, quiet: bool
) -> "EntailmentScores":
    from dataclasses import replace

    from climassay.metrics.entailment_validation import validate_entailment

    with progress_bar(quiet) as progress:
        task = progress.add_task(f"Asking {name}", total=len(pairs))
        found = validate_entailment(pairs, scorer, seed=seed, on_progress=lambda count: progress.advance(task, count))
    return replace(found, scorer=name)


def _tables(found: "Sequence[EntailmentScores]") -> "tuple[Table, ...]":
    from climassay.reporting import Table

    def share(value: float, interval: tuple[float, float]) -> str:
        return f"{value:.1%} ({interval[0]:.1%} to {interval[1]:.1%})"

    two = [
        (
            one.scorer,
            share(one.two_class.accuracy.value, one.two_class_interval),
            f"{one.two_class.baseline.accuracy:.1%}",
            f"{one.two_class.balanced_accuracy:.1%}",
            "{:.3f} ({:.3f} to {:.3f})".format(one.two_class_auroc, *one.two_class_auroc_interval),
            f"{one.calibration_error:.3f}",
        )
        for one in found
    ]
    three = [
        (
            one.scorer,
            share(one.three_class.accuracy.value, one.three_class_interval),
            f"{one.three_class.baseline.accuracy:.1%}",
            f"{one.three_class.macro_f1:.3f}",
            f"{one.support_auroc:.3f}",
            str(one.failed),
        )
        for one in found
    ]
    first = found[0]
    note = (
        "95% bootstrap intervals over statements. Constant: always the most frequent label. An AUROC of 0.5 is chance."
    )
    return (
        Table.of(
            f"SUPPORTS or REFUTES: {first.two_class.accuracy.n} pairs",
            ("scorer", "accuracy", "constant", "balanced", "AUROC", "calibration\nerror"),
            two,
            note=note,
            grouped=1,
        ),
        Table.of(
            f"Three relations: {first.pairs} pairs of {first.statements} statements",
            ("scorer", "accuracy", "constant", "macro-F1", "AUROC of\nsupport", "failed"),
            three,
            grouped=1,
        ),
    )


def _show(found: "Sequence[EntailmentScores]", left_out: int, html: Path | None) -> None:
    from climassay.reporting import as_rich
    from climassay.reporting.tables import split_columns

    console = stdout_console()
    for table in _tables(found):
        # Scorers are named on lines of their own, for a file's name may be longer than all figures together.
        for part in split_columns(table, 1, 5 if console.width >= _ALL_FIGURES else 3):
            console.print(as_rich(part))
    told = stderr_console()
    if left_out:
        told.print(f"{left_out} pairs are left out: a head was trained on their statements.", highlight=False)
    if html:
        told.print(f"Report written to {html}.", highlight=False)


def _write_report(html: Path, file: Path, found: "Sequence[EntailmentScores]", left_out: int) -> None:
    from climassay.reporting import Report, Section

    lead = f"How well scorers tell what a passage does to a statement, on labelled pairs of {file.name}."
    if left_out:
        lead += f" {left_out} pairs are left out, because a head was trained on their statements."
    write_text(html, Report("Entailment scorers", lead, (Section("Scores", _tables(found)),)).to_html())


def _training_data(trained: "TrainedEntailment", scores: "EntailmentScores | None", output: Path) -> dict[str, Any]:
    source = asdict(trained.head.source)
    source.pop("trained_on")
    return {
        "head": str(output),
        "source": source,
        "choices": [{**asdict(choice), "merit": choice.merit} for choice in trained.choices],
        "held_out": None if scores is None else asdict(scores),
    }


def _show_training(trained: "TrainedEntailment", output: Path) -> None:
    from climassay.reporting import Table, as_rich

    rows = [
        (
            f"{one.regularisation:g}",
            f"{one.turned_share:.0%}",
            "yes" if one.vectors else "no",
            f"{one.two_class_auroc:.3f}",
            f"{one.turned_auroc:.3f}",
        )
        for one in trained.choices
    ]
    columns = ("C", "made by rule", "vectors", "AUROC, labelled pairs", "AUROC, pairs made by rule")
    note = "On statements not fitted on; the setting with the highest mean of the two is taken."
    stdout_console().print(as_rich(Table.of("Settings by cross-validation", columns, rows, note=note)))
    source = trained.head.source
    stderr_console().print(
        f"Trained on {source.pairs} pairs of {source.statements} statements and {source.turned} made by rule. "
        f"Saved as {output}.",
        highlight=False,
    )
