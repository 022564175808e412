"""Verdicts on claims whose evidence is given, by a model or by a head that is trained on them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.api.learned import card, check_model_path
from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL
from climassay.reporting import Table, counted
from climassay.reporting.results import Shown
from climassay.reporting.tables import skipped_note
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.factcheck.evidence_mode import EvidenceClaim, EvidencePrediction, EvidenceTable
    from climassay.factcheck.verdict_head import VerdictHead

_SHOWN = 5
"""Settings of a training that the screen shows."""


def _claims(
    file: Path, claim: str, truth: str | None, limit: int | None, seed: int, unknown_to: "VerdictHead | None" = None
) -> "tuple[EvidenceTable, tuple[EvidenceClaim, ...]]":
    """The file, and the claims to work on: those that a head does not know, or all."""
    from climassay.factcheck.evidence_mode import read_evidence_claims
    from climassay.learning import sample

    table = read_evidence_claims(file, claim=claim, label=truth)
    rows = [row for row in table.rows if unknown_to is None or not unknown_to.provenance.knows(row.text)]
    if not rows:
        raise InputError(
            f"The head was trained on every claim of {table.name}: hold some out (climassay factcheck train"
            " --hold-out), or see how well it knows them with --include-trained."
        )
    return table, sample(rows, limit, seed)


def _verdicts(
    run: str, table: "EvidenceTable", found: "Sequence[EvidencePrediction]", labels: Sequence[str], **others: Any
) -> Shown:
    """Verdicts on claims, with what is known of them: ``scores`` for JSON, and further parts of the result."""
    left_out, failed = len(table.rows) - len(found), [one.error for one in found if one.error is not None]
    rows = _prediction_rows(found)
    data = {
        "run": run,
        "claims": len(found),
        "left_out": left_out,
        "failed": sum(one.verdict is None for one in found),
        "predictions": rows,
        "labels": list(labels),
        "scores": others.pop("scores", None),
    }
    notes = []
    if left_out:
        notes.append(f"{left_out} claims of {table.name} were left out (sample, or in the head's training).")
    notes += skipped_note(table.skipped)
    if failed:
        notes.append(f"{counted(len(failed), 'claim')} got no verdict, the first because: {failed[0]}")
    cells = [(one.claim.text, one.verdict or "failed", f"{max(one.probabilities, default=0):.0%}") for one in found]
    listed = (Table.of("Verdicts", ("claim", "verdict", "probability"), cells, left=2),)
    return Shown(data, **{"shown": listed, "records": rows, "noted": notes, **others})


def check_with_evidence(
    file: Path,
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
    """Have a model judge claims on given evidence, scored where the file has published verdicts.

    Args:
        file: Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ...
        claim: Column of the claims.
        truth: Column of the published verdicts; by default claim_label, label or verdict.
        limit: Number of items drawn at random; all by default.
        scale: climate-fever, accuracy, climate-feedback, science-feedback, binary, or a .toml file.
        calibrated: Calibrate probabilities with content-free prompts.
        model: Who is asked.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Where records lie.

    Raises:
        InputError: The file cannot be read.
        ModelError: The model cannot be loaded.
    """
    from climassay.factcheck import ScoredVerdicts, evidence_mode, load_scale
    from climassay.factcheck.results.scoring import score_verdicts, verdict_data

    wanted = load_scale(scale)
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
            wanted,
            calibrated=calibrated,
            prompts=session.options.prompts,
            on_progress=task.advance,
        )
        run.save_results("predictions", _prediction_rows(result))
    labels = (*wanted.labels, wanted.nei)
    if not any(row.label for row in rows):
        return _verdicts(run.id, table, result, labels)
    given, names = [one.verdict for one in result], [row.text for row in rows]
    scores = score_verdicts([row.label for row in rows], given, wanted, claims=names, seed=seed)
    scored = ScoredVerdicts(scores, f"verdicts on {file.name}")
    parts: dict[str, Any] = {"shown": scored.tables, "records": None, "reported": scored.report}
    return _verdicts(run.id, table, result, labels, scores=verdict_data(scores), **parts)


def evaluate_verdict_head(
    head: Path,
    labels: Path,
    *,
    claim: str = "claim",
    truth: str | None = None,
    limit: int | None = None,
    include_trained: bool = False,
    model: str = DEFAULT_MODEL,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Score a verdict head on claims it was not trained on, beside the constant baseline.

    Args:
        head: A head that climassay factcheck train made.
        labels: Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ...
        claim: As in :func:`check_with_evidence`.
        truth: As in :func:`check_with_evidence`.
        limit: As in :func:`check_with_evidence`.
        include_trained: Also score items of the training data.
        model: The model whose hidden states it reads.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Where records lie.

    Raises:
        InputError: The file cannot be read, or has no published verdicts to score by.
        ModelError: The model cannot be loaded.
    """
    from climassay.factcheck.verdict_head import VERDICT_LABELS, VerdictHead, verdict_scores

    trained = VerdictHead.load(head)
    table, rows = _claims(labels, claim, truth, limit, seed, None if include_trained else trained)
    rows = tuple(row for row in rows if row.label)
    if not rows:
        raise InputError(f"{labels} has no published verdicts to score by: name their column with --truth.")
    run, result = _by_head("factcheck evaluate", trained, head, labels, rows, limit, seed, model, workspace)
    scores = verdict_scores(rows, [one.probabilities or None for one in result], seed=seed)
    return _verdicts(run, table, result, VERDICT_LABELS, scores=scores.to_dict(), shown=scores.tables())


def apply_verdict_head(
    head: Path,
    items: Path,
    *,
    claim: str = "claim",
    truth: str | None = None,
    limit: int | None = None,
    model: str = DEFAULT_MODEL,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Predict a verdict for each claim from its evidence.

    Args:
        head: A head that climassay factcheck train made.
        items: Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ...
        claim: As in :func:`check_with_evidence`.
        truth: As in :func:`check_with_evidence`.
        limit: As in :func:`check_with_evidence`.
        model: The model whose hidden states it reads.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Where records lie.

    Raises:
        InputError: The file cannot be read.
        ModelError: The model cannot be loaded.
    """
    from climassay.factcheck.verdict_head import VERDICT_LABELS, VerdictHead

    trained = VerdictHead.load(head)
    table, rows = _claims(items, claim, truth, limit, seed)
    run, result = _by_head("factcheck apply", trained, head, items, rows, limit, seed, model, workspace)
    return _verdicts(run, table, result, VERDICT_LABELS)


def _by_head(
    command: str,
    trained: "VerdictHead",
    head: Path,
    file: Path,
    rows: "Sequence[EvidenceClaim]",
    limit: int | None,
    seed: int,
    model: str,
    workspace: Place,
) -> "tuple[str, tuple[EvidencePrediction, ...]]":
    """A recorded run of a head: its id, and a prediction per claim."""
    from climassay.factcheck.verdict_head import check_with_head

    config = {"file": str(file), "head": str(head), "limit": limit, "model": model}
    with (
        Session.opened(workspace) as session,
        session.run(command, config, {"seed": seed}) as run,
        session.progress.task(f"Reading {model}", sum(len(row.evidence) for row in rows)) as task,
    ):
        loaded = session.model(model, dtype=trained.provenance.dtype or None)
        reader = trained.with_models(model=loaded, store=session.activations)
        result = check_with_head(rows, reader, on_read=task.advance)
        run.save_results("predictions", _prediction_rows(result))
        return run.id, tuple(result)


def _prediction_rows(found: "Sequence[EvidencePrediction]") -> list[dict[str, Any]]:
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


def train_verdict_head(
    labels: Path,
    output: Path,
    *,
    claim: str = "claim",
    truth: str | None = None,
    limit: int | None = None,
    hold_out: float = 0,
    layers: Sequence[tuple[int, ...]] = (),
    encoder: str = "local:minilm",
    folds: int = 5,
    model: str = DEFAULT_MODEL,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Train a verdict head on claims with labelled passages; without --layer, three middle layers are tried.

    Args:
        labels: Claims with evidence: Climate-FEVER's JSONL, or any table with claim and evidence or evidence_1, ...
        output: File to save the head in.
        claim: As in :func:`check_with_evidence`.
        truth: As in :func:`check_with_evidence`.
        limit: As in :func:`check_with_evidence`.
        hold_out: Items held out of training to measure on, in whole groups: their number, or a share below 1.
        layers: Sets of layers to choose from; by default three about the middle.
        encoder: Encoder whose vectors are used, or none.
        folds: Number of cross-validation folds.
        model: The local model whose hidden states are read.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Where records lie.

    Raises:
        InputError: The claims cannot be read or learned from, or the head cannot be written.
        ModelError: The model cannot be loaded.
    """
    from climassay.factcheck.verdict_head import REGULARISATIONS, default_readings, state_readings, train_head
    from climassay.learning.features import FeatureModels
    from climassay.learning.splits import hold_out as split_off
    from climassay.learning.splits import near_duplicate_groups

    check_model_path(output)
    table, rows = _claims(labels, claim, truth, limit, seed)
    named = [",".join(map(str, one)) for one in layers] or None
    config = {
        "file": str(labels),
        "model": model,
        "layers": named,
        "encoder": encoder,
        "hold_out": hold_out,
    }
    with Session.opened(workspace) as session:
        loaded = session.model(model)
        with session.run("factcheck train", config, {"seed": seed}) as run:
            states = FeatureModels(model=loaded).need_model()
            vectors = None if encoder == "none" else session.encoder(encoder)
            split = split_off(near_duplicate_groups([row.text for row in rows], vectors), hold_out, seed=seed)
            readings = default_readings(states.layers, vectors is not None)
            if layers:
                readings = state_readings(list(layers), vectors is not None)
            lesson, held_out = ([rows[place] for place in part] for part in split)
            with (
                session.progress.task(f"Reading {model}", sum(len(row.evidence) for row in lesson)) as reading,
                session.progress.task("Choosing a setting", len(readings) * len(REGULARISATIONS)) as fitting,
            ):
                trained = train_head(
                    table,
                    lesson,
                    states,
                    encoder=vectors,
                    readings=readings,
                    folds=folds,
                    seed=seed,
                    store=session.activations,
                    on_read=reading.advance,
                    on_fit=fitting.advance,
                )
            head = trained.head
            head.save(output)
            scores = head.score(held_out, seed=seed) if any(row.label for row in held_out) else None
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
    settings = [
        (str(choice.reading), f"{choice.regularisation:g}", f"{choice.log_loss:.4f}", f"{choice.accuracy:.1%}")
        for choice in trained.choices[:_SHOWN]
    ]
    verdicts = [
        (f"{balance:g}", f"{one.macro_f1.value:.3f}", f"{one.accuracy.value:.1%}")
        for balance, one in trained.balances.items()
    ]
    tables = [
        Table.of(
            "Settings by cross-validation",
            ("reading", "C", "log-loss", "accuracy"),
            settings,
            note=f"What passages do, on held-out claims; the best {len(settings)} of {len(trained.choices)} settings.",
        ),
        Table.of(
            "Verdicts by cross-validation",
            ("balance", "macro-F1", "accuracy"),
            verdicts,
            note="0: as frequent as in training; 1: all four equally frequent. The best macro-F1 is taken.",
        ),
        *(() if scores is None else scores.tables()),
    ]
    told = (
        f"Trained on {facts['groups']} claims with {facts['items']} passages ({trained.left_out} left out). "
        f"Saved as {output}."
    )
    return Shown(data, tables, noted=(told,))
