"""Verdicts of a model on claims whose file names the evidence."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.models import DEFAULT_MODEL
from climassay.reporting import Table, counted
from climassay.reporting.results import AssembledResult
from climassay.reporting.tables import skipped_note
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.factcheck.evidence_mode import EvidencePrediction, EvidenceTable


def _make_result(
    run: str,
    table: "EvidenceTable",
    predictions: "Sequence[EvidencePrediction]",
    labels: Sequence[str],
    **result_fields: Any,
) -> AssembledResult:
    """Return predictions as a result with a table and notes.

    ``result_fields`` may contain ``scores``, which become part of the data, and fields of :class:`AssembledResult`.
    """
    n_omitted = len(table.rows) - len(predictions)
    errors = [prediction.error for prediction in predictions if prediction.error is not None]
    rows = _make_prediction_rows(predictions)
    data = {
        "run": run,
        "claims": len(predictions),
        "left_out": n_omitted,
        "failed": sum(prediction.verdict is None for prediction in predictions),
        "predictions": rows,
        "labels": list(labels),
        "scores": result_fields.pop("scores", None),
    }
    notes = []
    if n_omitted:
        notes.append(f"{n_omitted} claims of {table.name} were left out of the sample.")
    notes += skipped_note(table.skipped)
    if errors:
        notes.append(f"{counted(len(errors), 'claim')} got no verdict, the first because: {errors[0]}")
    cells = [
        (
            prediction.claim.text,
            prediction.verdict or "failed",
            f"{max(prediction.probabilities, default=0):.0%}",
        )
        for prediction in predictions
    ]
    tables = (Table.of("Verdicts", ("claim", "verdict", "probability"), cells, left_columns=2),)
    return AssembledResult(data, **{"result_tables": tables, "records": rows, "noted": notes, **result_fields})


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
) -> AssembledResult:
    """Have a model judge claims by the evidence in the same file, and score the verdicts if true verdicts are known.

    Args:
        file: Claims with evidence: Climate-FEVER's JSONL, or a table with the columns claim and evidence (or
            evidence_1, evidence_2, ...).
        claim: Name of the column of claims.
        truth: Name of the column of true verdicts; by default claim_label, label or verdict.
        limit: Number of claims to draw at random; by default all are used.
        scale: Scale of verdicts: climate-fever, accuracy, climate-feedback, science-feedback, binary, or a .toml file.
        calibrated: Whether the probabilities of the verdicts are calibrated by content-free prompts.
        model: Model that gives the verdicts.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file or the scale cannot be read.
        ModelError: The model cannot be loaded.
    """
    from climassay.factcheck import ScoredVerdicts, evidence_mode, load_scale
    from climassay.factcheck.results.scoring import score_verdicts, verdict_data
    from climassay.learning import sample

    file = Path(file)
    verdict_scale = load_scale(scale)
    table = evidence_mode.read_evidence_claims(file, claim=claim, label=truth)
    rows = sample(table.rows, limit, seed)
    config = {"file": str(file), "model": model, "scale": scale, "calibrate": calibrated, "limit": limit}
    with (
        Session.opened(workspace) as session,
        session.run("factcheck evidence", config, {"seed": seed}) as run,
        session.progress.task(f"Asking {model}", len(rows)) as task,
    ):
        predictions = evidence_mode.check_with_evidence(
            rows,
            session.recorded(session.model(model), run),
            verdict_scale,
            calibrated=calibrated,
            prompts=session.options.prompts,
            on_progress=task.advance,
        )
        run.save_results("predictions", _make_prediction_rows(predictions))
    labels = (*verdict_scale.labels, verdict_scale.nei)
    if not any(row.label for row in rows):
        return _make_result(run.id, table, predictions, labels)
    verdicts, texts = [prediction.verdict for prediction in predictions], [row.text for row in rows]
    scores = score_verdicts([row.label for row in rows], verdicts, verdict_scale, claims=texts, seed=seed)
    scored_verdicts = ScoredVerdicts(scores, f"verdicts on {file.name}")
    result_fields: dict[str, Any] = {
        "result_tables": scored_verdicts.tables,
        "records": None,
        "reported": scored_verdicts.report,
    }
    return _make_result(run.id, table, predictions, labels, scores=verdict_data(scores), **result_fields)


def _make_prediction_rows(predictions: "Sequence[EvidencePrediction]") -> list[dict[str, Any]]:
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
