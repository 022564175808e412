"""``climassay factcheck-evidence``: verdicts on claims with given evidence, without retrieval."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.judge_options import Bench, ModelSetup, opened
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.factcheck.evidence_mode import EvidenceClaim, EvidencePrediction, EvidenceTable
    from climassay.factcheck.scales import Scale
    from climassay.factcheck.scoring import VerdictScores
    from climassay.factcheck.verdict_head import VerdictHead
    from climassay.reporting import Table

FileArgument = Annotated[
    Path,
    typer.Argument(
        help="Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ..."
    ),
]
ClaimOption = Annotated[str, typer.Option(metavar="COLUMN", help="Column of the claims.")]
TruthOption = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the published verdicts; claim_label, label or verdict if there."),
]


@grouped
def factcheck_evidence(
    file: FileArgument,
    scale: Annotated[
        str, typer.Option(help="climate-fever, accuracy, climate-feedback, science-feedback, binary, or a .toml file.")
    ] = "climate-fever",
    calibrate: Annotated[
        bool, typer.Option(help="Correct the model's probabilities by prompts without content.")
    ] = True,
    head: Annotated[
        Path | None, typer.Option(help="Judge by a verdict head that climassay factcheck-head train made.")
    ] = None,
    include_trained: Annotated[
        bool, typer.Option("--include-trained", help="Score a head on claims it was trained on too.")
    ] = False,
    claim: ClaimOption = "claim",
    truth: TruthOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take a random sample of so many claims.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample and of the resampling.")] = 0,
    predictions: Annotated[Path | None, typer.Option(help="Write every prediction as JSONL.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the figures as CSV.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the scores as a self-contained HTML report.")] = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Verdicts of a model on claims with given evidence, scored where the file has published verdicts."""
    from climassay.factcheck.evidence_mode import read_evidence_claims, sample_claims
    from climassay.factcheck.scales import load_scale

    wanted = load_scale(scale)
    trained = _load(head, wanted)
    table = read_evidence_claims(file, claim=claim, label=truth)
    rows = table.rows if trained is None or include_trained else _unseen(table, trained)
    rows = sample_claims(rows, limit, seed)
    if (csv_file or html) and not any(row.label for row in rows):
        raise InputError(f"{file} has no published verdicts to score by: name their column, or use --predictions.")
    config = {"file": str(file), "model": setup.model, "scale": scale, "calibrate": calibrate, "limit": limit}
    with opened(setup, quiet=as_json, dtype=None if trained is None else trained.provenance.dtype) as bench:
        run, found = _check(bench, rows, wanted, trained, calibrate, {**config, "head": str(head)}, seed, as_json)
    scores = evidence_scores(found, wanted, seed)
    _write(found, scores, predictions, csv_file, html, file)
    if as_json:
        print_json(_data(run, found, scores, wanted, len(table.rows) - len(rows)))
        return
    _show(found, scores, table, len(table.rows) - len(rows))


def _load(file: Path | None, scale: "Scale") -> "VerdictHead | None":
    if file is None:
        return None
    from climassay.factcheck.verdict_head import VERDICT_LABELS, load_head

    if (*scale.labels, scale.nei) != VERDICT_LABELS:
        raise InputError(f"A verdict head gives verdicts of the scale climate-fever, not of {scale.name}.")
    return load_head(file)


def _unseen(table: "EvidenceTable", head: "VerdictHead") -> "tuple[EvidenceClaim, ...]":
    rows = tuple(row for row in table.rows if not head.knows(row.text))
    if not rows:
        raise InputError(
            f"The head was trained on every claim of {table.name}: hold some out (climassay factcheck-head train"
            " --hold-out), or see how well it knows them with --include-trained."
        )
    return rows


def _check(
    bench: Bench,
    rows: "Sequence[EvidenceClaim]",
    scale: "Scale",
    head: "VerdictHead | None",
    calibrated: bool,
    config: dict[str, Any],
    seed: int,
    quiet: bool,
) -> "tuple[str, list[EvidencePrediction]]":
    from climassay.factcheck.evidence_mode import check_with_evidence, check_with_head

    model, setup = bench.model, bench.setup
    with (
        bench.records.run(command="factcheck-evidence", config=config, seeds={"seed": seed}) as run,
        progress_bar(quiet) as progress,
    ):
        units = len(rows) if head is None else sum(len(row.evidence) for row in rows)
        task = progress.add_task(f"Asking {setup.model}", total=units)

        def tell(count: int) -> None:
            progress.advance(task, count)

        if head is not None:
            found = check_with_head(rows, head, model, store=bench.activations, on_read=tell)
        else:
            found = check_with_evidence(
                rows, bench.recorded(run), scale, calibrated=calibrated, prompts=setup.prompts, on_progress=tell
            )
        run.save_results("predictions", [_row(one) for one in found])
        return run.id, found


def evidence_scores(found: "Sequence[EvidencePrediction]", scale: "Scale", seed: int) -> "VerdictScores | None":
    """Scores of predictions; None where no claim has a published verdict."""
    from climassay.factcheck.scoring import score_verdicts

    if not any(one.claim.label for one in found):
        return None
    return score_verdicts(
        [one.claim.label for one in found],
        [one.verdict for one in found],
        scale,
        claims=[one.claim.text for one in found],
        seed=seed,
    )


def _row(one: "EvidencePrediction") -> dict[str, Any]:
    return {
        "id": one.claim.id,
        "claim": one.claim.text,
        "truth": one.claim.label,
        "verdict": one.verdict,
        "probabilities": list(one.probabilities),
        "error": one.error,
    }


def _data(
    run: str, found: "Sequence[EvidencePrediction]", scores: "VerdictScores | None", scale: "Scale", left_out: int
) -> dict[str, Any]:
    from climassay.factcheck.scoring_tables import verdict_data

    return {
        "run": run,
        "claims": len(found),
        "left_out": left_out,
        "failed": sum(one.verdict is None for one in found),
        "labels": [*scale.labels, scale.nei],
        "scores": None if scores is None else verdict_data(scores),
        "predictions": [_row(one) for one in found],
    }


def _write(
    found: "Sequence[EvidencePrediction]",
    scores: "VerdictScores | None",
    predictions: Path | None,
    csv_file: Path | None,
    html: Path | None,
    file: Path,
) -> None:
    import json

    from climassay.factcheck.scoring_tables import verdict_report, verdict_tables
    from climassay.reporting import as_csv

    if predictions:
        lines = [json.dumps(_row(one), ensure_ascii=False, allow_nan=False) for one in found]
        write_text(predictions, "".join(line + "\n" for line in lines))
    if csv_file and scores is not None:
        write_text(csv_file, as_csv(verdict_tables(scores)[0]))
    if html and scores is not None:
        write_text(html, verdict_report(scores, f"verdicts on {file.name}").to_html())


def _show(
    found: "Sequence[EvidencePrediction]", scores: "VerdictScores | None", table: "EvidenceTable", left_out: int
) -> None:
    from climassay.factcheck.scoring_tables import verdict_tables
    from climassay.reporting import as_rich

    console, note = stdout_console(), stderr_console()
    if scores is None:
        console.print(as_rich(_verdicts(found)))
    else:
        for shown in verdict_tables(scores, width=console.width):
            console.print(as_rich(shown))
    if left_out:
        note.print(f"{left_out} claims of {table.name} were left out (sample, or in the head's training).")
    if table.skipped:
        note.print(f"{len(table.skipped)} rows were skipped, the first: {table.skipped[0]}.")
    failed = [one.error for one in found if one.error is not None]
    if failed:
        note.print(f"{len(failed)} claims got no verdict, the first because: {failed[0]}")


def _verdicts(found: "Sequence[EvidencePrediction]") -> "Table":
    from climassay.reporting import Table

    rows = [(one.claim.text, one.verdict or "failed", f"{max(one.probabilities, default=0):.0%}") for one in found]
    return Table.of("Verdicts", ("claim", "verdict", "probability"), rows, left=2)
