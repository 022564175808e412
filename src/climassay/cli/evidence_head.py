"""``climassay factcheck train``: train, evaluate and apply verdict heads."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.evidence import (
    ClaimOptions,
    ClaimsArgument,
    predicted,
    prediction_data,
    prediction_rows,
    prediction_table,
    tell_missing,
)
from climassay.cli.judge_options import ModelSetup, opened
from climassay.cli.learning_options import (
    EncoderOption,
    FoldsOption,
    HoldOutOption,
    IncludeTrainedOption,
    LayerOption,
    LinesOption,
    OutputOption,
    card,
    check_model_path,
    note,
    numbers,
    show,
    write_lines,
)
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, print_json, progress_bar
from climassay.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Train, evaluate and apply verdict heads on hidden states.")

HeadArgument = Annotated[Path, typer.Argument(help="A head that climassay factcheck train made.")]
_SHOWN = 5
"""Settings of a training that the screen shows."""


@app.callback()
def group() -> None:
    """Train, evaluate and apply verdict heads on hidden states."""


@app.command()
@grouped
def train(
    labels: ClaimsArgument,
    output: OutputOption,
    hold_out: HoldOutOption = 0,
    layer: LayerOption = None,
    encoder: EncoderOption = "local:minilm",
    folds: FoldsOption = 5,
    claims: ClaimOptions = ClaimOptions(),
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Train a head on claims whose passages are labelled; without --layer, three about the middle are tried."""
    from climassay.factcheck.verdict_head import REGULARISATIONS, default_readings, state_readings, train_head
    from climassay.learning.features import FeatureModels
    from climassay.learning.splits import hold_out as split_off
    from climassay.learning.splits import near_duplicate_groups
    from climassay.models.encoders.loading import load_encoder
    from climassay.reporting import Table

    check_model_path(output)
    table, rows = claims.read(labels)
    seed, config = claims.seed, {"file": str(labels), "model": setup.model, "layers": layer, "encoder": encoder}
    with (
        opened(setup, quiet=as_json) as bench,
        bench.records.run(
            command="factcheck train", config={**config, "hold_out": hold_out}, seeds={"seed": seed}
        ) as run,
    ):
        model = FeatureModels(model=bench.model).need_model()
        vectors = None if encoder == "none" else load_encoder(encoder)
        split = split_off(near_duplicate_groups([row.text for row in rows], vectors), hold_out, seed=seed)
        readings = default_readings(model.layers, vectors is not None)
        if layer:
            readings = state_readings([numbers(text, "--layer") for text in layer], vectors is not None)
        lesson, held_out = ([rows[place] for place in part] for part in split)
        with progress_bar(as_json) as progress:
            reading = progress.add_task(f"Reading {setup.model}", total=sum(len(row.evidence) for row in lesson))
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
        head = trained.head
        head.save(output)
        scores = None
        if any(row.label for row in held_out):
            scores = head.score(held_out, seed=seed)
        facts = card(head.provenance)
        data = {
            "run": run.id,
            "model": str(output),
            "reading": str(head.reading),
            "balance": head.balance,
            "choices": [{**asdict(choice), "reading": str(choice.reading)} for choice in trained.choices],
            "balances": [{"balance": balance, **one.to_dict()} for balance, one in trained.balances.items()],
            "left_out": trained.left_out,
            "provenance": facts,
            "held_out": None if scores is None else scores.to_dict(),
        }
        run.save_results("head", [data])
    if as_json:
        print_json(data)
        return
    settings = [
        (str(choice.reading), f"{choice.regularisation:g}", f"{choice.log_loss:.4f}", f"{choice.accuracy:.1%}")
        for choice in trained.choices[:_SHOWN]
    ]
    words = f"What passages do, on held-out claims; the best {len(settings)} of {len(trained.choices)} settings."
    columns = ("reading", "C", "log-loss", "accuracy")
    shown = [Table.of("Settings by cross-validation", columns, settings, note=words)]
    verdicts = [
        (f"{balance:g}", f"{one.macro_f1.value:.3f}", f"{one.accuracy.value:.1%}")
        for balance, one in trained.balances.items()
    ]
    words = "0: as frequent as in training; 1: all four equally frequent. The best macro-F1 is taken."
    shown.append(Table.of("Verdicts by cross-validation", ("balance", "macro-F1", "accuracy"), verdicts, note=words))
    show([*shown, *(() if scores is None else scores.tables())])
    note(
        f"Trained on {facts['groups']} claims with {facts['items']} passages ({trained.left_out} left out). "
        f"Saved as {output}."
    )


@app.command()
@grouped
def evaluate(
    head: HeadArgument,
    labels: ClaimsArgument,
    include_trained: IncludeTrainedOption = False,
    claims: ClaimOptions = ClaimOptions(),
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Score a head on claims with published verdicts that it was not trained on, beside the constant."""
    from climassay.factcheck.verdict_head import VerdictHead, verdict_scores

    trained = VerdictHead.load(head)
    table, rows = claims.read(labels, None if include_trained else trained)
    rows = tuple(row for row in rows if row.label)
    if not rows:
        raise InputError(f"{labels} has no published verdicts to score by: name their column with --truth.")
    config = {"file": str(labels), "head": str(head), "limit": claims.limit}
    run, found = predicted("factcheck evaluate", rows, trained, setup, config, claims.seed, as_json)
    scores = verdict_scores(rows, [one.probabilities or None for one in found], seed=claims.seed)
    if as_json:
        print_json({**prediction_data(run, table, found), "scores": scores.to_dict()})
        return
    show(scores.tables())
    tell_missing(table, found)


@app.command()
@grouped
def apply(
    head: HeadArgument,
    items: ClaimsArgument,
    output: LinesOption = None,
    claims: ClaimOptions = ClaimOptions(),
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Give every claim the verdict of a head on its evidence."""
    from climassay.factcheck.verdict_head import VERDICT_LABELS, VerdictHead

    trained = VerdictHead.load(head)
    table, rows = claims.read(items)
    config = {"file": str(items), "head": str(head), "limit": claims.limit}
    run, found = predicted("factcheck apply", rows, trained, setup, config, claims.seed, as_json)
    write_lines(output, prediction_rows(found))
    if as_json:
        print_json({**prediction_data(run, table, found), "labels": VERDICT_LABELS})
        return
    show([prediction_table(found)])
    tell_missing(table, found)
