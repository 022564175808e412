"""Passages given with claims, and labelled pairs on which entailment scorers are measured.

Pairs are Climate-FEVER's passages and claims, or a table; the scores are ClimaQA's check of its judge, for any scorer.
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
from climassay.learning.evaluation import RESAMPLES, Calibration, Evaluation, auroc, calibration, evaluate
from climassay.learning.splits import sample
from climassay.metrics.entailment import ENTAILED, RELATIONS, RelationScorer
from climassay.statistics import Estimate, bootstrap_interval, share_interval

FloatArray = NDArray[np.float64]

LABELS: Mapping[str, int] = {
    "supports": 0, "entailment": 0, "entails": 0, "confirms": 0, "true": 0,
    "refutes": 1, "contradiction": 1, "contradicts": 1, "false": 1,
    "not_enough_info": 2, "neutral": 2, "leaves open": 2, "unknown": 2,
}  # fmt: skip
"""How files name the relations, in lower case: Climate-FEVER's words, those of inference data, and ours."""
EVIDENCE_COLUMNS = ("evidences", "evidence")
"""Columns in which claims have their passages."""
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage given with a claim."""

    text: str
    source: str = ""
    """Title of the article it appears in."""
    label: str | None = None
    """What it does to the claim, as the file spells it; None where the file does not say."""

    @property
    def shown(self) -> str:
        """What is put before a model: sentences often say "it", so that the title belongs to them."""
        return f"{self.source}: {self.text}" if self.source else self.text


def read_passages(value: Any, where: str) -> list[Evidence]:
    """Passages of one cell: a text, or a list of texts or of objects as in Climate-FEVER, also as JSON.

    Raises:
        InputError: It is something else; ``where`` begins the sentence.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = parse_json(value)
        except ValueError:
            return [Evidence(plain_text(value))]
    if isinstance(value, (str, Mapping)) or value is None:
        value = [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, (str, Mapping, type(None))) for one in value):
        raise InputError(f"{where}: evidence must be a text, or a list of texts or of objects with a text.")
    results = []
    for one in value:
        if one is None or one == "":
            continue
        entry: Row = {"text": one} if isinstance(one, str) else one
        text, source, label = (
            next((entry[name] for name in names if name in entry), None)
            for names in (("evidence", "text"), ("article", "source", "title"), ("evidence_label", "label"))
        )
        if not isinstance(text, str):
            raise InputError(f"{where}: a piece of evidence has no text in evidence or text.")
        results.append(Evidence(plain_text(text), plain_text(source), plain_text(label) or None))
    return [evidence for evidence in results if evidence.text]


def plain_text(value: object) -> str:
    """A cell as a text with single spaces."""
    return "" if value is None else " ".join(str(value).split())


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """What a premise does to a statement, as people judged it."""

    premise: str
    statement: str
    relation: int
    """Index in :data:`~climassay.metrics.entailment.RELATIONS`."""


@dataclass(frozen=True, slots=True)
class PairTable:
    """The pairs of a file."""

    name: str
    sha256: str
    """Hash of the file's content (unpacked)."""
    pairs: tuple[LabelledPair, ...]
    skipped: int
    """Pairs without a text or a label."""


def read_pairs(file: Path) -> PairTable:
    """Read labelled pairs from JSONL, JSON, CSV, TSV or Parquet, gzip included.

    Two forms are understood. Climate-FEVER's: ``claim`` and ``evidences``, a list with ``evidence``, ``article`` and
    ``evidence_label``; the article's title goes before the premise, as its sentences often say "it". Or one pair per
    row: ``premise``, ``statement`` and ``label``. Labels may be any of :data:`LABELS`, in any case.

    Raises:
        InputError: The file cannot be read, has other columns, a label that is none, or not one pair.
    """
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    columns = {name for row in rows for name in row}
    entries: list[tuple[Any, Any, Any, str]] = []
    if "claim" in columns and columns & set(EVIDENCE_COLUMNS):
        for number, row in enumerate(rows, start=1):
            cell = next((row[name] for name in EVIDENCE_COLUMNS if row.get(name)), None)
            where = f"{file}, row {number}"
            entries += [(piece.shown, row.get("claim"), piece.label, where) for piece in read_passages(cell, where)]
    elif {"premise", "statement", "label"} <= columns:
        entries = [
            (row.get("premise"), row.get("statement"), row.get("label"), f"{file}, row {number}")
            for number, row in enumerate(rows, start=1)
        ]
    else:
        raise InputError(
            f"{file} has no labelled pairs: give columns premise, statement and label, or claim and evidences as "
            "Climate-FEVER has them."
        )
    pairs = []
    for *cells, where in entries:
        premise, statement, label = map(plain_text, cells)
        if not (premise and statement and label):
            continue
        relation = LABELS.get(label.casefold())
        if relation is None:
            raise InputError(f"{where}: {label!r} is not a relation; it is one of {', '.join(LABELS)}.")
        pairs.append(LabelledPair(premise, statement, relation))
    if not pairs:
        raise InputError(f"No row of {file} has a premise, a statement and a label.")
    return PairTable(file.name, hashlib.sha256(data).hexdigest(), tuple(pairs), len(entries) - len(pairs))


def sample_statements(pairs: Sequence[LabelledPair], limit: int | None, seed: int = 0) -> tuple[LabelledPair, ...]:
    """The pairs of so many statements drawn at random, in the order of the pairs; all where ``limit`` is None."""
    chosen = set(sample(list(dict.fromkeys(pair.statement for pair in pairs)), limit, seed))
    return tuple(pair for pair in pairs if pair.statement in chosen)


@dataclass(frozen=True, slots=True)
class EntailmentScores:
    """How a scorer did on labelled pairs. Intervals are over statements, whose pairs are resampled together."""

    scorer: str
    two_class: Evaluation
    """SUPPORTS or REFUTES on the pairs that are one of them (the paper's 81% is of such pairs); a half and less is
    REFUTES."""
    three_class: Evaluation
    support_auroc: float
    """P(a supporting pair ranks above any other by P(confirms))."""
    calibration: Calibration
    """Calibration of P(SUPPORTS) on the pairs of the two classes."""
    unsupporting: Estimate
    """Share of all pairs that do not support: how often a mark on every pair would be right."""
    marked: Estimate | None
    """Share of the pairs with P(confirms) below :data:`~climassay.metrics.entailment.ENTAILED` that do not support:
    how often "may not say so" is right. None where there is no such pair."""


def supporting(probabilities: FloatArray) -> FloatArray:
    """P(SUPPORTS) of SUPPORTS and REFUTES, shape [pairs], from probabilities of the relations, shape [pairs, 3]."""
    return np.asarray(probabilities[:, 0] / np.maximum(probabilities[:, 0] + probabilities[:, 1], 1e-300))


def pair_scores(
    pairs: Sequence[LabelledPair],
    probabilities: FloatArray,
    *,
    two_class: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Evaluation:
    """Score probabilities of the relations [pairs, 3], NaN where a scorer failed; intervals are over statements.

    ``two_class``: SUPPORTS or REFUTES, on the pairs that are one of them.
    """
    truth = np.array([pair.relation for pair in pairs], dtype=np.int64)
    groups = np.array([pair.statement for pair in pairs])
    if not two_class:
        return evaluate(truth, probabilities, RELATIONS, groups=groups, resamples=resamples, seed=seed)
    kept = truth < 2
    share = supporting(probabilities[kept])
    return evaluate(
        1 - truth[kept], np.stack([1 - share, share], axis=1), ("REFUTES", "SUPPORTS"), groups=groups[kept],
        resamples=resamples, seed=seed,
    )  # fmt: skip


def validate_entailment(
    pairs: Sequence[LabelledPair],
    scorer: RelationScorer,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> EntailmentScores:
    """Score a scorer on labelled pairs; progress counts the pairs done.

    Raises:
        InputError: No supporting or no refuting pair, or the scorer failed on all of one kind.
    """
    given = relation_probabilities(pairs, scorer, on_progress=on_progress)
    truth = np.array([pair.relation for pair in pairs], dtype=np.int64)
    known = np.asarray(np.isfinite(given).all(axis=1))
    if not {0, 1} <= set(truth[known].tolist()):
        raise InputError("An entailment scorer is validated on pairs that include both SUPPORTS and REFUTES.")
    sure, marked = known & (truth < 2), known & (given[:, 0] < ENTAILED)
    statements = np.unique([pair.statement for pair in pairs], return_inverse=True)[1]

    def unsupporting(chosen: NDArray[np.bool_]) -> Estimate:
        counts = np.stack([np.bincount(statements, chosen & right) for right in (truth != 0, truth >= 0)], axis=1)
        value = float((truth[chosen] != 0).mean())
        drawn = bootstrap_interval(counts[counts[:, 1] > 0], lambda rows: float(np.divide(*rows.sum(axis=0))),
                                   resamples=resamples, seed=seed)  # fmt: skip
        return Estimate(value, share_interval(drawn, value, int((counts[:, 1] > 0).sum())), int(chosen.sum()))

    return EntailmentScores(
        scorer=scorer.name,
        two_class=pair_scores(pairs, given, two_class=True, resamples=resamples, seed=seed),
        three_class=pair_scores(pairs, given, resamples=resamples, seed=seed),
        support_auroc=auroc(given[known][:, 0], truth[known] == 0),
        calibration=calibration(supporting(given[sure]), truth[sure] == 0),
        unsupporting=unsupporting(known),
        marked=unsupporting(marked) if marked.any() else None,
    )


def relation_probabilities(
    pairs: Sequence[LabelledPair], scorer: RelationScorer, *, on_progress: Callable[[int], None] | None = None
) -> FloatArray:
    """What a scorer gives each pair, shape [pairs, 3]; NaN where it failed."""
    results: list[tuple[float, ...]] = []
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        read = scorer.relations([(pair.premise, pair.statement) for pair in block])
        results += [(np.nan,) * len(RELATIONS) if one is None else one for one in read]
        if on_progress is not None:
            on_progress(len(block))
    return np.array(results, dtype=np.float64).reshape(-1, len(RELATIONS))
