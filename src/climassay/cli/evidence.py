"""``climassay factcheck evidence``, ``train``, ``evaluate`` and ``apply``: verdicts on claims with given evidence."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from climassay.api import verdict_heads as api
from climassay.cli.learning_options import (
    EncoderOption,
    FoldsOption,
    HoldOutOption,
    IncludeTrainedOption,
    LayerOption,
    LimitOption,
    OutputOption,
    SeedOption,
)
from climassay.cli.model_options import ModelSetup
from climassay.cli.option_groups import grouped
from climassay.cli.output import FilesOption
from climassay.cli.verbs import verb

ClaimsArgument = Annotated[
    Path,
    typer.Argument(
        help="Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ..."
    ),
]
HeadArgument = Annotated[Path, typer.Argument(help="A head that climassay factcheck train made.")]


@dataclass(frozen=True)
class ClaimOptions(api.EvidenceColumns):
    """Which columns and rows of a table of claims to use."""

    claim: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the claims.")] = "claim"
    truth: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of the published verdicts; claim_label, label or verdict if there."
        ),
    ] = None
    limit: LimitOption = None
    seed: SeedOption = 0


@grouped
def evidence(
    file: ClaimsArgument,
    scale: Annotated[
        str, typer.Option(help="climate-fever, accuracy, climate-feedback, science-feedback, binary, or a .toml file.")
    ] = "climate-fever",
    calibrated: Annotated[
        bool, typer.Option("--calibrate/--no-calibrate", help="Correct probabilities by prompts without content.")
    ] = True,
    columns: ClaimOptions = ClaimOptions(),
    predictions: Annotated[Path | None, typer.Option(help="Write every prediction (.jsonl, .csv, .xlsx).")] = None,
    output: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Let a model give verdicts on claims with given evidence, scored where the file has published verdicts."""
    from climassay.reporting.results import write_rows

    with setup.session() as session:
        found = api.check_with_evidence(
            file, columns=columns, scale=scale, calibrated=calibrated, model=setup.model, workspace=session
        )
    if predictions is not None:
        write_rows(predictions, found.to_dict()["predictions"])
    setup.emit(found, output)


@grouped
@verb(api.train_verdict_head)
def train(
    labels: ClaimsArgument,
    output: OutputOption,
    hold_out: HoldOutOption = 0,
    layers: LayerOption = None,
    encoder: EncoderOption = "local:minilm",
    folds: FoldsOption = 5,
    columns: ClaimOptions = ClaimOptions(),
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Train a head on claims whose passages are labelled; without --layer, three about the middle are tried."""


@grouped
@verb(api.evaluate_verdict_head)
def evaluate(
    head: HeadArgument,
    labels: ClaimsArgument,
    include_trained: IncludeTrainedOption = False,
    columns: ClaimOptions = ClaimOptions(),
    files: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Score a head on claims with published verdicts that it was not trained on, beside the constant."""


@grouped
@verb(api.apply_verdict_head)
def apply(
    head: HeadArgument,
    items: ClaimsArgument,
    files: FilesOption = None,
    columns: ClaimOptions = ClaimOptions(),
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Give every claim the verdict of a head on its evidence."""
