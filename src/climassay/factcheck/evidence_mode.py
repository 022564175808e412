"""Verdicts on claims with known evidence, which score models without retrieval.

The verdict is the most probable label of the scale after a prompt with claim and evidence. The probabilities are
calibrated with the same prompt without content.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from climassay.claim_identity import claim_id
from climassay.errors import InputError
from climassay.factcheck.scales import Scale
from climassay.io import find_column, parse_rows, read_bytes, require_column
from climassay.metrics import EVIDENCE_COLUMNS, ClaimPassage, plain_text, read_passages
from climassay.models.contract import (
    PLACEHOLDERS,
    OptionRequest,
    OptionScorer,
    compute_correction,
    option_probabilities,
)
from climassay.prompts import Prompt, load_prompt

PROMPT = "factcheck_evidence"
_LABEL_COLUMNS = ("claim_label", "label", "verdict")
Progress = Callable[[int], None]
"""Callback that receives the number of claims finished since its last call."""


@dataclass(frozen=True, slots=True)
class EvidenceClaim:
    """A claim with its evidence."""

    text: str
    evidence: tuple[ClaimPassage, ...]
    label: str | None = None
    """Published verdict, as spelled in the file; None if there is none."""

    @property
    def id(self) -> str:
        """Hash of the claim's text (:func:`~climassay.claim_identity.claim_id`)."""
        return claim_id(self.text)

    @property
    def passages(self) -> tuple[str, ...]:
        """Texts of the evidence, with their titles, for a prompt."""
        return tuple(evidence.titled_text for evidence in self.evidence)


@dataclass(frozen=True, slots=True)
class EvidenceTable:
    """Claims of a file with their evidence."""

    name: str
    sha256: str
    """SHA-256 of the file's uncompressed content."""
    rows: tuple[EvidenceClaim, ...]
    skipped: tuple[str, ...]
    """Reasons for skipped rows, one sentence each."""


@dataclass(frozen=True, slots=True)
class EvidencePrediction:
    """Predicted verdict of a claim, with its probabilities."""

    claim: EvidenceClaim
    verdict: str | None
    """Most probable label; None if the model call failed."""
    probabilities: tuple[float, ...] = ()
    """Probability of each label of the scale, in order, and of "not enough information"."""
    error: str | None = None


def read_evidence_claims(file: Path, *, claim: str = "claim", label: str | None = None) -> EvidenceTable:
    """Read claims with their evidence from JSONL, JSON, CSV, TSV or Parquet, also gzipped.

    Evidence is read from the column ``evidences`` or ``evidence``, or else from ``evidence_1``, ``evidence_2`` and so
    on. A cell contains a text, a list of texts, or a list of objects with ``evidence``, ``article`` and
    ``evidence_label`` as in Climate-FEVER. In CSV, lists are written as JSON.

    Args:
        file: Table of claims.
        claim: Column of the claims.
        label: Column of the published verdicts; by default ``claim_label``, ``label`` or ``verdict`` if it exists.

    Raises:
        InputError: The file cannot be read, a column is missing, or no row has a claim.
    """
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    names = list(dict.fromkeys(name for row in rows for name in row))
    claim = require_column(file, names, claim)
    label = require_column(file, names, label) if label else find_column(names, *_LABEL_COLUMNS)
    numbered_columns = [
        name for name in names if name.startswith("evidence_") and name.removeprefix("evidence_").isdigit()
    ]
    columns = [name for name in EVIDENCE_COLUMNS if name in names][:1]
    columns = columns or sorted(numbered_columns, key=lambda name: int(name.removeprefix("evidence_")))
    if not columns:
        raise InputError(f"{file} has no evidence: give a column evidence, evidences or evidence_1, evidence_2, ...")
    results, skip_reasons = [], []
    for number, row in enumerate(rows, start=1):
        text = plain_text(row.get(claim))
        if not text:
            skip_reasons.append(f"row {number} has no claim")
            continue
        evidence = tuple(item for column in columns for item in read_passages(row.get(column), f"{file}, row {number}"))
        verdict = plain_text(row.get(label)) if label else ""
        results.append(EvidenceClaim(text, evidence, verdict or None))
    if not results:
        raise InputError(f"No row of {file} has a claim in the column {claim}.")
    return EvidenceTable(file.name, hashlib.sha256(data).hexdigest(), tuple(results), tuple(skip_reasons))


def check_with_evidence(
    rows: Sequence[EvidenceClaim],
    scorer: OptionScorer,
    scale: Scale,
    *,
    calibrated: bool = True,
    prompts: Path | None = None,
    on_progress: Progress | None = None,
) -> list[EvidencePrediction]:
    """Predict verdicts by the probabilities of the scale's labels, with one prompt per claim.

    Args:
        rows: Claims with any number of passages.
        scorer: Model; a recorded one makes the run resumable.
        scale: Scale whose labels, including "not enough information", are scored.
        calibrated: Whether to calibrate with content-free prompts (one for each placeholder and number of passages; see
            :mod:`climassay.models.contract`).
        prompts: Folder of templates that replace the bundled ones.
        on_progress: Callback that receives the number of claims finished since its last call.

    Returns:
        Predictions in the order of the rows, including failed ones.

    Raises:
        ModelError: The model cannot score options, or all content-free prompts failed.
    """
    prompt = load_prompt(PROMPT, prompts)
    requests = [_label_request(prompt, scale, row.text, row.passages) for row in rows]
    # Content-free log-probabilities for each number of passages, requested in one call.
    corrections: dict[int, tuple[float, ...] | None] = {}
    if calibrated:
        counts, n_placeholders = sorted({len(row.evidence) for row in rows}), len(PLACEHOLDERS)
        blank_scores = scorer.option_logprobs(
            [_label_request(prompt, scale, text, [text] * count) for count in counts for text in PLACEHOLDERS]
        )
        corrections = {
            count: compute_correction(blank_scores[index * n_placeholders : (index + 1) * n_placeholders])
            for index, count in enumerate(counts)
        }
    on_result = (lambda _, __: on_progress(1)) if on_progress else None
    scores = scorer.option_logprobs(requests, on_result=on_result)
    labels, results = (*scale.labels, scale.nei), []
    for row, score in zip(rows, scores, strict=True):
        if score.error is not None:
            results.append(EvidencePrediction(row, None, error=score.error))
            continue
        results.append(make_prediction(row, option_probabilities(score, corrections.get(len(row.evidence))), labels))
    return results


def make_prediction(row: EvidenceClaim, probabilities: tuple[float, ...], labels: Sequence[str]) -> EvidencePrediction:
    """Return a prediction of the most probable label."""
    best_index = max(range(len(probabilities)), key=probabilities.__getitem__)
    return EvidencePrediction(row, labels[best_index], probabilities)


def _label_request(prompt: Prompt, scale: Scale, claim: str, evidence: Sequence[str]) -> OptionRequest:
    labels = [{"name": name, "definition": scale.meaning(name)} for name in (*scale.labels, scale.nei)]
    rendered_prompt = prompt.render(claim=claim, evidence=list(evidence), labels=labels)
    options = tuple(f" {label['name']}" for label in labels)
    return OptionRequest(rendered_prompt.messages, options, rendered_prompt.assistant_prefix)
