"""``climassay factcheck evidence``: verdicts on claims with given evidence, without retrieval."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.judge_options import ModelSetup, opened
from climassay.cli.learning_options import LimitOption, SeedOption
from climassay.cli.option_groups import grouped
from climassay.cli.output import FilesOption, JsonOption, emit, progress_bar, stderr_console
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.factcheck.evidence_mode import EvidenceClaim, EvidencePrediction, EvidenceTable
    from climassay.factcheck.scales import Scale
    from climassay.factcheck.verdict_head import VerdictHead
    from climassay.reporting import Table

ClaimsArgument = Annotated[
    Path,
    typer.Argument(
        help="Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ..."
    ),
]
IncludeTrainedOption = Annotated[
    bool, typer.Option("--include-trained", help="Score a head on claims it was trained on too.")
]


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

    def read(
        self, file: Path, unknown_to: "VerdictHead | None" = None
    ) -> "tuple[EvidenceTable, tuple[EvidenceClaim, ...]]":
        """The file, and the claims to work on: of those that a head does not know, or of all.

        Raises:
            InputError: The file cannot be read, or the head was trained on all of it.
        """
        from climassay.factcheck.evidence_mode import read_evidence_claims, sample_claims

        table = read_evidence_claims(file, claim=self.claim, label=self.truth)
        rows = [row for row in table.rows if unknown_to is None or not unknown_to.provenance.knows(row.text)]
        if not rows:
            raise InputError(
                f"The head was trained on every claim of {table.name}: hold some out (climassay factcheck train"
                " --hold-out), or see how well it knows them with --include-trained."
            )
        return table, sample_claims(rows, self.limit, self.seed)


@grouped
def factcheck_evidence(
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
    as_json: JsonOption = False,
) -> None:
    """Give verdicts on claims with given evidence, scored where the file has published verdicts."""
    from climassay.factcheck.results.checked_claims import ScoredVerdicts
    from climassay.factcheck.results.scoring import score_verdicts, verdict_data
    from climassay.factcheck.scales import load_scale
    from climassay.reporting.results import Result, Shown
    from climassay.reporting.row_files import write_rows

    wanted = load_scale(scale)
    trained = None
    if head is not None:
        from climassay.factcheck.verdict_head import VERDICT_LABELS, VerdictHead

        if (*wanted.labels, wanted.nei) != VERDICT_LABELS:
            raise InputError(f"A verdict head gives verdicts of the scale climate-fever, not of {wanted.name}.")
        trained = VerdictHead.load(head)
    table, rows = claims.read(file, None if include_trained else trained)
    labelled = any(row.label for row in rows)
    if any(one.suffix != ".jsonl" for one in output or ()) and not labelled:
        raise InputError(f"{file} has no published verdicts to score by: name their column, or use --predictions.")
    config = {"file": str(file), "scale": scale, "calibrate": calibrate, "limit": claims.limit, "head": str(head)}
    run, found = predicted(
        "factcheck evidence", rows, trained or wanted, setup, config, claims.seed, as_json, calibrate
    )
    if predictions:
        write_rows(predictions, prediction_rows(found))
    data = {**prediction_data(run, table, found), "labels": [*wanted.labels, wanted.nei], "scores": None}
    shown: Result = Shown(data, (prediction_table(found),))
    if labelled:
        scores = score_verdicts(
            [row.label for row in rows],
            [one.verdict for one in found],
            wanted,
            claims=[row.text for row in rows],
            seed=claims.seed,
        )
        data["scores"] = verdict_data(scores)
        scored = ScoredVerdicts(scores, f"verdicts on {file.name}")
        shown = Shown(data, scored.tables, reported=scored.report)
    emit(shown, as_json, output)
    if not as_json:
        tell_missing(table, found)


def predicted(
    command: str,
    rows: "Sequence[EvidenceClaim]",
    judge: "VerdictHead | Scale",
    setup: ModelSetup,
    config: dict[str, Any],
    seed: int,
    quiet: bool,
    calibrated: bool = True,
) -> "tuple[str, list[EvidencePrediction]]":
    """A recorded run of a head, or of the model itself on a scale: its id, and a prediction a claim."""
    from climassay.factcheck.evidence_mode import check_with_evidence, check_with_head
    from climassay.factcheck.scales import Scale

    dtype = None if isinstance(judge, Scale) else judge.provenance.dtype
    with (
        opened(setup, quiet=quiet, dtype=dtype) as bench,
        bench.records.run(command=command, config={**config, "model": setup.model}, seeds={"seed": seed}) as run,
        progress_bar(quiet) as progress,
    ):
        units = len(rows) if isinstance(judge, Scale) else sum(len(row.evidence) for row in rows)
        task = progress.add_task(f"Asking {setup.model}", total=units)

        def tell(count: int) -> None:
            progress.advance(task, count)

        if isinstance(judge, Scale):
            found = check_with_evidence(
                rows, bench.recorded(run), judge, calibrated=calibrated, prompts=setup.prompts, on_progress=tell
            )
        else:
            found = check_with_head(rows, judge.with_models(bench.model, store=bench.activations), on_read=tell)
        run.save_results("predictions", prediction_rows(found))
        return run.id, found


def prediction_data(run: str, table: "EvidenceTable", found: "Sequence[EvidencePrediction]") -> dict[str, Any]:
    """Predictions of a run, for JSON."""
    return {
        "run": run,
        "claims": len(found),
        "left_out": len(table.rows) - len(found),
        "failed": sum(one.verdict is None for one in found),
        "predictions": prediction_rows(found),
    }


def prediction_rows(found: "Sequence[EvidencePrediction]") -> list[dict[str, Any]]:
    """Predictions as data, one a claim."""
    return [
        {
            "id": one.claim.id,
            "claim": one.claim.text,
            "truth": one.claim.label,
            "verdict": one.verdict,
            "probabilities": list(one.probabilities),
            "error": one.error,
        }
        for one in found
    ]


def prediction_table(found: "Sequence[EvidencePrediction]") -> "Table":
    """Each claim with its verdict."""
    from climassay.reporting import Table

    rows = [(one.claim.text, one.verdict or "failed", f"{max(one.probabilities, default=0):.0%}") for one in found]
    return Table.of("Verdicts", ("claim", "verdict", "probability"), rows, left=2)


def tell_missing(table: "EvidenceTable", found: "Sequence[EvidencePrediction]") -> None:
    """Say on stderr which claims have no verdict, and why."""
    note, left_out = stderr_console(), len(table.rows) - len(found)
    if left_out:
        note.print(f"{left_out} claims of {table.name} were left out (sample, or in the head's training).")
    if table.skipped:
        note.print(f"{len(table.skipped)} rows were skipped, the first: {table.skipped[0]}.")
    failed = [one.error for one in found if one.error is not None]
    if failed:
        note.print(f"{len(failed)} claims got no verdict, the first because: {failed[0]}")
