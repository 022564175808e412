"""Verdicts of a model on claims whose file names the evidence."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.models import DEFAULT_MODEL
from climassay.reporting import Table, counted
from climassay.reporting.results import Shown
from climassay.reporting.tables import skipped_note
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.factcheck.evidence_mode import EvidenceClaim, EvidencePrediction, EvidenceTable


def _claims(
    file: Path, claim: str, truth: str | None, limit: int | None, seed: int
) -> "tuple[EvidenceTable, tuple[EvidenceClaim, ...]]":
    """Return the file's claims and the sample to work on."""
    from climassay.factcheck.evidence_mode import read_evidence_claims
    from climassay.learning import sample

    table = read_evidence_claims(file, claim=claim, label=truth)
    return table, sample(table.rows, limit, seed)


def _verdicts(
    run: str,
    table: "EvidenceTable",
    predictions: "Sequence[EvidencePrediction]",
    labels: Sequence[str],
    **result_fields: Any,
) -> Shown:
    """Return predictions with a table and notes.

    ``result_fields`` may hold ``scores`` for the data, and fields of :class:`Shown` that replace the defaults.
    """
    left_out, failed = (
        len(table.rows) - len(predictions),
        [prediction.error for prediction in predictions if prediction.error is not None],
    )
    rows = _prediction_rows(predictions)
    data = {
        "run": run,
        "claims": len(predictions),
        "left_out": left_out,
        "failed": sum(prediction.verdict is None for prediction in predictions),
        "predictions": rows,
        "labels": list(labels),
        "scores": result_fields.pop("scores", None),
    }
    notes = []
    if left_out:
        notes.append(f"{left_out} claims of {table.name} were left out of the sample.")
    notes += skipped_note(table.skipped)
    if failed:
        notes.append(f"{counted(len(failed), 'claim')} got no verdict, the first because: {failed[0]}")
    cells = [
        (
            prediction.claim.text,
            prediction.verdict or "failed",
            f"{max(prediction.probabilities, default=0):.0%}",
        )
        for prediction in predictions
    ]
    listed = (Table.of("Verdicts", ("claim", "verdict", "probability"), cells, left=2),)
    return Shown(data, **{"result_tables": listed, "records": rows, "noted": notes, **result_fields})


def check_with_evidence(
    file: Path | str,
    *,
    claim: str = "claim",
    truth: str | None = None,
    limit: int | None = None,
    scale: str = "climate-fever",
    calibrated: bool = True,
    model: str = DEFAULT_MODEL,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Have a model judge claims by their evidence, and score its verdicts if the file has published ones.

    Args:
        file: Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ...
        claim: Column of the claims.
        truth: Column of the published verdicts; by default claim_label, label or verdict.
        limit: Number of items drawn at random; all by default.
        scale: climate-fever, accuracy, climate-feedback, science-feedback, binary, or a .toml file.
        calibrated: Calibrate probabilities with content-free prompts.
        model: Model that gives the verdicts.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read.
        ModelError: The model cannot be loaded.
    """
    from climassay.factcheck import ScoredVerdicts, evidence_mode, load_scale
    from climassay.factcheck.results.scoring import score_verdicts, verdict_data

    file = Path(file)
    verdict_scale = load_scale(scale)
    table, rows = _claims(file, claim, truth, limit, seed)
    config = {"file": str(file), "model": model, "scale": scale, "calibrate": calibrated, "limit": limit}
    with (
        Session.opened(workspace) as session,
        session.run("factcheck evidence", config, {"seed": seed}) as run,
        session.progress.task(f"Asking {model}", len(rows)) as task,
    ):
        result = evidence_mode.check_with_evidence(
            rows,
            session.recorded(session.model(model), run),
            verdict_scale,
            calibrated=calibrated,
            prompts=session.options.prompts,
            on_progress=task.advance,
        )
        run.save_results("predictions", _prediction_rows(result))
    labels = (*verdict_scale.labels, verdict_scale.nei)
    if not any(row.label for row in rows):
        return _verdicts(run.id, table, result, labels)
    verdicts, names = [prediction.verdict for prediction in result], [row.text for row in rows]
    scores = score_verdicts([row.label for row in rows], verdicts, verdict_scale, claims=names, seed=seed)
    scored = ScoredVerdicts(scores, f"verdicts on {file.name}")
    parts: dict[str, Any] = {"result_tables": scored.tables, "records": None, "reported": scored.report}
    return _verdicts(run.id, table, result, labels, scores=verdict_data(scores), **parts)


def _prediction_rows(predictions: "Sequence[EvidencePrediction]") -> list[dict[str, Any]]:
    return [
        {
            "id": prediction.claim.id,
            "claim": prediction.claim.text,
            "truth": prediction.claim.label,
            "verdict": prediction.verdict,
            "probabilities": list(prediction.probabilities),
            "error": prediction.error,
        }
        for prediction in predictions
    ]
