"""Labelled pairs of premise and statement, and the scores of entailment scorers on them.

Pairs are Climate-FEVER's passages and claims, or come from a table. The scores are those with which ClimaQA's authors
check their judge, for any scorer.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.io import Row, parse_json, parse_rows, read_bytes
from climassay.learning.evaluation import RESAMPLES, Calibration, HeldOutScores, auroc, calibration, evaluate
from climassay.learning.splits import sample
from climassay.metrics.entailment import ENTAILED, RELATIONS, RelationScorer
from climassay.statistics import Estimate, bootstrap_interval, share_interval

FloatArray = NDArray[np.float64]

LABELS: Mapping[str, int] = {
    "supports": 0, "entailment": 0, "entails": 0, "confirms": 0, "true": 0,
    "refutes": 1, "contradiction": 1, "contradicts": 1, "false": 1,
    "not_enough_info": 2, "neutral": 2, "leaves open": 2, "unknown": 2,
}  # fmt: skip
"""Mapping from lower-case labels (of Climate-FEVER, inference data and climassay) to indices in :data:`RELATIONS`."""
EVIDENCE_COLUMNS = ("evidences", "evidence")
"""Accepted names of the column with a claim's passages."""
_BATCH_SIZE = 64


@dataclass(frozen=True, slots=True)
class ClaimPassage:
    """Passage of evidence that a file gives for a claim."""

    text: str
    source: str = ""
    """Title of the article that contains the passage."""
    label: str | None = None
    """Relation of the passage to the claim, as spelt in the file; None if the file does not give it."""

    @property
    def titled_text(self) -> str:
        """Text preceded by the article's title, because sentences often refer to the title's subject as "it"."""
        return f"{self.source}: {self.text}" if self.source else self.text


def read_passages(value: Any, where: str) -> list[ClaimPassage]:
    """Parse the passages in a cell.

    The cell is a text, or a list of texts or of objects as in Climate-FEVER; the list may be given as JSON.

    Raises:
        InputError: The cell has another form; the message begins with ``where``.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = parse_json(value)
        except ValueError:
            return [ClaimPassage(plain_text(value))]
    if isinstance(value, (str, Mapping)) or value is None:
        value = [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, (str, Mapping, type(None))) for item in value):
        raise InputError(f"{where}: evidence must be a text, or a list of texts or of objects with a text.")
    results = []
    for item in value:
        if item is None or item == "":
            continue
        entry: Row = {"text": item} if isinstance(item, str) else item
        text, source, label = (
            next((entry[name] for name in names if name in entry), None)
            for names in (("evidence", "text"), ("article", "source", "title"), ("evidence_label", "label"))
        )
        if not isinstance(text, str):
            raise InputError(f"{where}: a piece of evidence has no text in evidence or text.")
        results.append(ClaimPassage(plain_text(text), plain_text(source), plain_text(label) or None))
    return [evidence for evidence in results if evidence.text]


def plain_text(value: object) -> str:
    """Return the value of a cell as text, with each sequence of white space replaced by a space."""
    return "" if value is None else " ".join(str(value).split())


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Premise and statement, with the relation that people assigned to them."""

    premise: str
    statement: str
    relation: int
    """Index in :data:`~climassay.metrics.entailment.RELATIONS`."""


@dataclass(frozen=True, slots=True)
class PairTable:
    """Labelled pairs that were read from a file."""

    name: str
    sha256: str
    """SHA-256 of the file's uncompressed content."""
    pairs: tuple[LabelledPair, ...]
    skipped: int
    """Number of pairs that were skipped because a text or the label is missing."""


def read_pairs(file: Path) -> PairTable:
    """Read labelled pairs from a JSONL, JSON, CSV, TSV or Parquet file, also gzipped.

    A file has either one pair per row, with the columns ``premise``, ``statement`` and ``label``, or one claim per row
    as in Climate-FEVER, with ``claim`` and ``evidences``, a list of objects with ``evidence``, ``article`` and
    ``evidence_label``. The title of the article then precedes the premise. Labels are those of :data:`LABELS`; case is
    ignored.

    Raises:
        InputError: The file cannot be read, or has other columns, an unknown label, or no complete pair.
    """
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    columns = {name for row in rows for name in row}
    entries: list[tuple[Any, Any, Any, str]] = []
    if "claim" in columns and columns & set(EVIDENCE_COLUMNS):
        for row_number, row in enumerate(rows, start=1):
            cell = next((row[name] for name in EVIDENCE_COLUMNS if row.get(name)), None)
            row_name = f"{file}, row {row_number}"
            passages = read_passages(cell, row_name)
            entries += [(passage.titled_text, row.get("claim"), passage.label, row_name) for passage in passages]
    elif {"premise", "statement", "label"} <= columns:
        entries = [
            (row.get("premise"), row.get("statement"), row.get("label"), f"{file}, row {row_number}")
            for row_number, row in enumerate(rows, start=1)
        ]
    else:
        raise InputError(
            f"{file} has no labelled pairs: give columns premise, statement and label, or claim and evidences as "
            "Climate-FEVER has them."
        )
    pairs = []
    for *cells, row_name in entries:
        premise, statement, label = map(plain_text, cells)
        if not (premise and statement and label):
            continue
        relation = LABELS.get(label.casefold())
        if relation is None:
            raise InputError(f"{row_name}: {label!r} is not a relation; it is one of {', '.join(LABELS)}.")
        pairs.append(LabelledPair(premise, statement, relation))
    if not pairs:
        raise InputError(f"No row of {file} has a premise, a statement and a label.")
    return PairTable(file.name, hashlib.sha256(data).hexdigest(), tuple(pairs), len(entries) - len(pairs))


def sample_statements(pairs: Sequence[LabelledPair], limit: int | None, seed: int = 0) -> tuple[LabelledPair, ...]:
    """Draw ``limit`` statements at random, and return all their pairs in order; all pairs if ``limit`` is None."""
    sampled_statements = set(sample(list(dict.fromkeys(pair.statement for pair in pairs)), limit, seed))
    return tuple(pair for pair in pairs if pair.statement in sampled_statements)


@dataclass(frozen=True, slots=True)
class EntailmentScores:
    """Scores of an entailment scorer on labelled pairs, with bootstrap intervals over statements."""

    scorer: str
    two_class: HeldOutScores
    """Evaluation of SUPPORTS against REFUTES on the pairs with one of these labels, as in the ClimaQA paper (81%)."""
    three_class: HeldOutScores
    support_auroc: float
    """Probability that a supporting pair has a higher P(confirms) than another pair (area under the ROC curve)."""
    calibration: Calibration
    """Calibration of P(SUPPORTS) on the pairs labelled SUPPORTS or REFUTES."""
    unsupporting: Estimate
    """Proportion of pairs whose premise does not support the statement. This would be the precision of the mark "may
    not say so" if every pair had it."""
    marked: Estimate | None
    """Precision of the mark "may not say so": the proportion of pairs without support among those with P(confirms)
    below :data:`~climassay.metrics.entailment.ENTAILED`. None if there are no such pairs."""


def support_probabilities(probabilities: FloatArray) -> FloatArray:
    """Convert the relations' probabilities, shape [pairs, 3], to P(SUPPORTS) as opposed to REFUTES, shape [pairs]."""
    return np.asarray(probabilities[:, 0] / np.maximum(probabilities[:, 0] + probabilities[:, 1], 1e-300))


def pair_scores(
    pairs: Sequence[LabelledPair],
    probabilities: FloatArray,
    *,
    two_class: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> HeldOutScores:
    """Evaluate the relations' probabilities, shape [pairs, 3], with bootstrap intervals over statements.

    The probabilities of a pair are NaN if the scorer failed. ``two_class`` evaluates SUPPORTS against REFUTES on the
    pairs with one of these labels.
    """
    truth = np.array([pair.relation for pair in pairs], dtype=np.int64)
    groups = np.array([pair.statement for pair in pairs])
    if not two_class:
        return evaluate(truth, probabilities, RELATIONS, groups=groups, resamples=resamples, seed=seed)
    is_decided = truth < 2
    support = support_probabilities(probabilities[is_decided])
    return evaluate(
        1 - truth[is_decided], np.stack([1 - support, support], axis=1), ("REFUTES", "SUPPORTS"),
        groups=groups[is_decided], resamples=resamples, seed=seed,
    )  # fmt: skip


def validate_entailment(
    pairs: Sequence[LabelledPair],
    scorer: RelationScorer,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> EntailmentScores:
    """Evaluate a scorer on labelled pairs; ``on_progress`` is called with the number of newly scored pairs.

    Raises:
        InputError: No supporting or no refuting pair was scored.
    """
    probabilities = relation_probabilities(pairs, scorer, on_progress=on_progress)
    truth = np.array([pair.relation for pair in pairs], dtype=np.int64)
    is_scored = np.asarray(np.isfinite(probabilities).all(axis=1))
    if not {0, 1} <= set(truth[is_scored].tolist()):
        raise InputError("An entailment scorer is validated on pairs that include both SUPPORTS and REFUTES.")
    is_decided, is_marked = is_scored & (truth < 2), is_scored & (probabilities[:, 0] < ENTAILED)
    statements = np.unique([pair.statement for pair in pairs], return_inverse=True)[1]

    def estimate_unsupporting(is_selected: NDArray[np.bool_]) -> Estimate:
        counts = np.stack(
            [np.bincount(statements, is_selected & is_counted) for is_counted in (truth != 0, truth >= 0)], axis=1
        )
        value = float((truth[is_selected] != 0).mean())
        interval = bootstrap_interval(counts[counts[:, 1] > 0], lambda rows: float(np.divide(*rows.sum(axis=0))),
                                   resamples=resamples, seed=seed)  # fmt: skip
        return Estimate(value, share_interval(interval, value, int((counts[:, 1] > 0).sum())), int(is_selected.sum()))

    return EntailmentScores(
        scorer=scorer.name,
        two_class=pair_scores(pairs, probabilities, two_class=True, resamples=resamples, seed=seed),
        three_class=pair_scores(pairs, probabilities, resamples=resamples, seed=seed),
        support_auroc=auroc(probabilities[is_scored][:, 0], truth[is_scored] == 0),
        calibration=calibration(support_probabilities(probabilities[is_decided]), truth[is_decided] == 0),
        unsupporting=estimate_unsupporting(is_scored),
        marked=estimate_unsupporting(is_marked) if is_marked.any() else None,
    )


def relation_probabilities(
    pairs: Sequence[LabelledPair], scorer: RelationScorer, *, on_progress: Callable[[int], None] | None = None
) -> FloatArray:
    """Return a scorer's probabilities of the relations, shape [pairs, 3]; NaN for a pair on which it failed."""
    results: list[tuple[float, ...]] = []
    for start in range(0, len(pairs), _BATCH_SIZE):
        batch = pairs[start : start + _BATCH_SIZE]
        relations = scorer.relations([(pair.premise, pair.statement) for pair in batch])
        results += [
            (np.nan,) * len(RELATIONS) if probabilities is None else probabilities for probabilities in relations
        ]
        if on_progress is not None:
            on_progress(len(batch))
    return np.array(results, dtype=np.float64).reshape(-1, len(RELATIONS))
