"""``climassay factcheck-head``: train verdict heads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.evidence import ClaimOption, FileArgument, TruthOption, evidence_scores
from climassay.cli.judge_options import Bench, ModelSetup, numbers, opened
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, print_json, progress_bar, stderr_console, stdout_console
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.factcheck.evidence_mode import EvidenceClaim, EvidenceTable
    from climassay.factcheck.scoring import VerdictScores
    from climassay.factcheck.verdict_head_training import TrainedHead
    from climassay.factcheck.verdict_reading import Reading

app = typer.Typer(no_args_is_help=True, help="Train verdict heads on hidden states.")

_SHOWN = 5
"""Settings of a training that the screen shows."""


@app.callback()
def group() -> None:
    """Train verdict heads on hidden states."""


@app.command()
@grouped
def train(
    file: FileArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="The head's file, for example head.safetensors.")],
    hold_out: Annotated[
        int, typer.Option(min=0, help="Keep so many claims out of the training; whole groups of like claims.")
    ] = 0,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            help="Layer to read (-1: last), several side by side as 16,-1; repeat to have the best chosen by "
            "cross-validation.  [default: three about the middle]"
        ),
    ] = None,
    encoder: Annotated[str, typer.Option(help="Encoder for cosines of claim and passage, or none.")] = "local:minilm",
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation.")] = 5,
    claim: ClaimOption = "claim",
    truth: TruthOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take a random sample of so many claims.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of sample, split, folds and resampling.")] = 0,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Train a head on claims whose passages are labelled, with its scores on claims it was not trained on."""
    from climassay.factcheck.evidence_mode import read_evidence_claims, sample_claims
    from climassay.factcheck.verdict_head import save_head

    _check_place(output)
    table = read_evidence_claims(file, claim=claim, label=truth)
    rows = sample_claims(table.rows, limit, seed)
    config = {"file": str(file), "model": setup.model, "layers": layer, "hold_out": hold_out, "encoder": encoder}
    with (
        opened(setup, quiet=as_json) as bench,
        bench.records.run(command="factcheck-head train", config=config, seeds={"seed": seed}) as run,
    ):
        trained, held_out = _train(bench, table, rows, hold_out, layer, encoder, folds, seed, as_json)
        data = {"run": run.id, "head": str(output), **_training_data(trained)}
        save_head(trained.head, output)
        scores = _held_out_scores(bench, trained, held_out, seed)
        if scores is not None:
            from climassay.factcheck.scoring_tables import verdict_data

            data["scores"] = verdict_data(scores)
        run.save_results("head", [data])
    if as_json:
        print_json(data)
        return
    _show_training(trained, scores, output)


def _check_place(output: Path) -> None:
    if output.is_dir():
        raise InputError(f"{output} is a folder: give the head a file's name, for example {output}/head.safetensors.")
    if not output.parent.is_dir():
        raise InputError(f"The folder of {output} does not exist: make it first, or choose another place.")


def _train(
    bench: Bench,
    table: "EvidenceTable",
    rows: "Sequence[EvidenceClaim]",
    hold_out: int,
    layer: list[str] | None,
    encoder: str,
    folds: int,
    seed: int,
    quiet: bool,
) -> "tuple[TrainedHead, list[EvidenceClaim]]":
    from climassay.factcheck.verdict_head_training import REGULARISATIONS, default_readings, train_head
    from climassay.learning import splits
    from climassay.models import OpenWeights
    from climassay.models.encoder import load_encoder

    model = bench.model
    if not isinstance(model, OpenWeights):
        raise InputError(f"A verdict head reads hidden states: use a local: model, not {model.name}.")
    vectors = None if encoder == "none" else load_encoder(encoder)
    groups = splits.near_duplicate_groups([row.text for row in rows], vectors)
    kept, held_out = splits.hold_out(groups, hold_out, seed=seed)
    readings = default_readings(model.layers, vectors is not None)
    if layer:
        readings = _readings(layer, vectors is not None)
    lesson = [rows[place] for place in kept]
    with progress_bar(quiet) as progress:
        passages = sum(len(row.evidence) for row in lesson)
        reading = progress.add_task(f"Reading {bench.setup.model}", total=passages)
        fitting = progress.add_task("Choosing a setting", total=len(readings) * len(REGULARISATIONS))
        trained = train_head(
            table,
            lesson,
            model,
            encoder=vectors,
            readings=readings,
            folds=folds,
            seed=seed,
            store=bench.activations,
            on_read=lambda count: progress.advance(reading, count),
            on_fit=lambda: progress.advance(fitting),
        )
    return trained, [rows[place] for place in held_out]


def _readings(layers: list[str], encoder: bool) -> "tuple[Reading, ...]":
    from climassay.factcheck.verdict_head_training import STATE_USES
    from climassay.factcheck.verdict_reading import Reading

    chosen = [numbers(text, "--layer") for text in layers]
    return tuple(Reading(use, some, "cosine" if encoder else "none") for use in STATE_USES for some in chosen)


def _held_out_scores(
    bench: Bench, trained: "TrainedHead", rows: "Sequence[EvidenceClaim]", seed: int
) -> "VerdictScores | None":
    from climassay.factcheck.evidence_mode import check_with_head
    from climassay.factcheck.scales import CLIMATE_FEVER

    if not rows:
        return None
    found = check_with_head(rows, trained.head, bench.model, store=bench.activations)
    return evidence_scores(found, CLIMATE_FEVER, seed)


def _training_data(trained: "TrainedHead") -> dict[str, Any]:
    from dataclasses import asdict

    source = asdict(trained.head.provenance)
    source.pop("trained_on")
    return {
        "reading": str(trained.head.reading),
        "balance": trained.head.balance,
        "cross_validation": source.pop("held_out"),
        "choices": [{**asdict(choice), "reading": str(choice.reading)} for choice in trained.choices],
        "balances": [asdict(choice) for choice in trained.balances],
        "left_out": trained.left_out,
        "provenance": source,
    }


def _show_training(trained: "TrainedHead", scores: "VerdictScores | None", output: Path) -> None:
    from climassay.factcheck.scoring_tables import verdict_tables
    from climassay.reporting import Table, as_rich

    console, source = stdout_console(), trained.head.provenance
    rows = [
        (str(choice.reading), f"{choice.regularisation:g}", f"{choice.log_loss:.4f}", f"{choice.accuracy:.1%}")
        for choice in trained.choices[:_SHOWN]
    ]
    note = f"What passages do, on held-out claims; the best {len(rows)} of {len(trained.choices)} settings."
    columns = ("reading", "C", "log-loss", "accuracy")
    console.print(as_rich(Table.of("Settings by cross-validation", columns, rows, note=note)))
    verdicts = [(f"{one.balance:g}", f"{one.macro_f1:.3f}", f"{one.accuracy:.1%}") for one in trained.balances]
    note = "0: as frequent as in training; 1: all four equally frequent. The best macro-F1 is taken."
    headings = ("balance", "macro-F1", "accuracy")
    console.print(as_rich(Table.of("Verdicts by cross-validation", headings, verdicts, note=note)))
    if scores is not None:
        for shown in verdict_tables(scores, width=console.width):
            console.print(as_rich(shown))
    stderr_console().print(
        f"Trained on {source.claims} claims with {source.passages} passages ({trained.left_out} left out). "
        f"Saved as {output}.",
        highlight=False,
    )
