"""``climassay factcheck evidence``, ``train``, ``evaluate`` and ``apply``: verdicts on claims with given evidence."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.learning_options import (
    EncoderOption,
    FoldsOption,
    HoldOutOption,
    IncludeTrainedOption,
    LayerOption,
    LimitOption,
    OutputOption,
    SeedOption,
    numbers,
)
from climassay.cli.model_options import ModelSetup
from climassay.cli.option_groups import grouped
from climassay.cli.output import FilesOption

if TYPE_CHECKING:
    from climassay.api.verdict_heads import EvidenceColumns

ClaimsArgument = Annotated[
    Path,
    typer.Argument(
        help="Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ..."
    ),
]
HeadArgument = Annotated[Path, typer.Argument(help="A head that climassay factcheck train made.")]


@dataclass(frozen=True)
class ClaimOptions:
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

    @property
    def columns(self) -> "EvidenceColumns":
        """As the room takes them."""
        from climassay.api.verdict_heads import EvidenceColumns

        return EvidenceColumns(self.claim, self.truth, self.limit, self.seed)


@grouped
def evidence(
    file: ClaimsArgument,
    scale: Annotated[
        str, typer.Option(help="climate-fever, accuracy, climate-feedback, science-feedback, binary, or a .toml file.")
    ] = "climate-fever",
    calibrate: Annotated[
        bool, typer.Option(help="Correct the model's probabilities by prompts without content.")
    ] = True,
    head: Annotated[
        Path | None, typer.Option(help="Judge by a verdict head that climassay factcheck train made.")
    ] = None,
    include_trained: IncludeTrainedOption = False,
    claims: ClaimOptions = ClaimOptions(),
    predictions: Annotated[Path | None, typer.Option(help="Write every prediction (.jsonl, .csv, .xlsx).")] = None,
    output: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Give verdicts on claims with given evidence, scored where the file has published verdicts."""
    from climassay.api.verdict_heads import check_with_evidence
    from climassay.reporting.results import write_rows

    with setup.session() as session:
        found = check_with_evidence(
            file,
            columns=claims.columns,
            scale=scale,
            calibrated=calibrate,
            head=head,
            include_trained=include_trained,
            model=setup.model,
            workspace=session,
        )
    if predictions is not None:
        write_rows(predictions, found.to_dict()["predictions"])
    setup.emit(found, output)


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
) -> None:
    """Train a head on claims whose passages are labelled; without --layer, three about the middle are tried."""
    from climassay.api.verdict_heads import train_verdict_head

    with setup.session() as session:
        trained = train_verdict_head(
            labels,
            output,
            columns=claims.columns,
            hold_out=hold_out,
            layers=[numbers(text, "--layer") for text in layer or ()],
            encoder=None if encoder == "none" else encoder,
            folds=folds,
            model=setup.model,
            workspace=session,
        )
    setup.emit(trained)


@grouped
def evaluate(
    head: HeadArgument,
    labels: ClaimsArgument,
    include_trained: IncludeTrainedOption = False,
    claims: ClaimOptions = ClaimOptions(),
    output: FilesOption = None,
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Score a head on claims with published verdicts that it was not trained on, beside the constant."""
    _apply(head, labels, claims, setup, output, scored=True, include_trained=include_trained)


@grouped
def apply(
    head: HeadArgument,
    items: ClaimsArgument,
    output: FilesOption = None,
    claims: ClaimOptions = ClaimOptions(),
    setup: ModelSetup = ModelSetup(),
) -> None:
    """Give every claim the verdict of a head on its evidence."""
    _apply(head, items, claims, setup, output, scored=False)


def _apply(
    head: Path,
    file: Path,
    claims: ClaimOptions,
    setup: ModelSetup,
    output: list[Path] | None,
    *,
    scored: bool,
    include_trained: bool = False,
) -> None:
    from climassay.api.verdict_heads import apply_verdict_head

    with setup.session() as session:
        found = apply_verdict_head(
            head,
            file,
            columns=claims.columns,
            scored=scored,
            include_trained=include_trained,
            model=setup.model,
            workspace=session,
        )
    setup.emit(found, output)
