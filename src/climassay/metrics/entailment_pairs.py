"""Labelled pairs of a premise and a statement, and how good an entailment scorer is on them.

Pairs are Climate-FEVER's passages and claims, or a table; the scores are ClimaQA's check of its judge, for any scorer.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.io import parse_json
from climassay.learning.evaluation import RESAMPLES, Calibration, Evaluation, auroc, calibration, evaluate
from climassay.metrics.entailment import RELATIONS, RelationScorer
from climassay.questions.rows import Row, parse_rows, read_bytes

FloatArray = NDArray[np.float64]

LABELS: Mapping[str, int] = {
    "supports": 0, "entailment": 0, "entails": 0, "confirms": 0, "true": 0,
    "refutes": 1, "contradiction": 1, "contradicts": 1, "false": 1,
    "not_enough_info": 2, "neutral": 2, "leaves open": 2, "unknown": 2,
}  # fmt: skip
"""How files name the relations, in lower case: Climate-FEVER's words, those of inference data, and ours."""
UNLABELLED = -1
"""Relation of a pair that nobody has judged."""
_EVIDENCE = ("evidences", "evidence")
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """What a premise does to a statement, as people judged it."""

    premise: str
    statement: str
    relation: int
    """Place in :data:`~climassay.metrics.entailment.RELATIONS`, or :data:`UNLABELLED`."""


@dataclass(frozen=True, slots=True)
class PairTable:
    """The pairs of a file."""

    name: str
    sha256: str
    """Of the file's content (unpacked)."""
    pairs: tuple[LabelledPair, ...]
    skipped: int
    """Pairs without a text or a label."""


def read_pairs(file: Path, *, labelled: bool = True) -> PairTable:
    """Labelled pairs from JSONL, JSON, CSV, TSV or Parquet, gzip included.

    Two forms are understood. Climate-FEVER's: ``claim`` and ``evidences``, a list with ``evidence``, ``article`` and
    ``evidence_label``; the article's title goes before the premise, as its sentences often say "it". Or one pair a row:
    ``premise``, ``statement`` and ``label``. Labels may be any of :data:`LABELS`, in any case.

    Args:
        file: The table.
        labelled: Leave pairs without a label out; otherwise no label is read.

    Raises:
        InputError: The file cannot be read, has other columns, a label that is none, or not one pair.
    """
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    names = {name for row in rows for name in row}
    if "claim" in names and names & set(_EVIDENCE):
        given = [one for number, row in enumerate(rows, start=1) for one in _of_claim(row, f"{file}, row {number}")]
    elif {"premise", "statement", *(["label"] if labelled else [])} <= names:
        given = [
            (row.get("premise"), row.get("statement"), row.get("label"), f"{file}, row {number}")
            for number, row in enumerate(rows, start=1)
        ]
    else:
        raise InputError(
            f"{file} has no{' labelled' * labelled} pairs: give columns premise, statement{' and label' * labelled},"
            " or claim and evidences as Climate-FEVER has them."
        )
    found = [_pair(*one, labelled) for one in given]
    pairs = tuple(pair for pair in found if pair is not None)
    if not pairs:
        raise InputError(f"No row of {file} has a premise, a statement{' and a label' * labelled}.")
    return PairTable(file.name, hashlib.sha256(data).hexdigest(), pairs, len(found) - len(pairs))


def sample_statements(pairs: Sequence[LabelledPair], limit: int | None, seed: int = 0) -> tuple[LabelledPair, ...]:
    """The pairs of so many statements drawn at random, in the order of the pairs; all where ``limit`` is None."""
    statements = list(dict.fromkeys(pair.statement for pair in pairs))
    if limit is None or limit >= len(statements):
        return tuple(pairs)
    drawn = np.random.default_rng(seed).choice(len(statements), limit, replace=False)
    chosen = {statements[place] for place in drawn}
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
    """Score probabilities of the relations.

    Args:
        pairs: Labelled.
        probabilities: Shape [pairs, 3]; NaN where a scorer failed.
        two_class: SUPPORTS or REFUTES, on the pairs that are one of them.
        resamples: For the intervals, over statements.
        seed: Of the resampling.
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
    """Score a scorer on labelled pairs.

    Args:
        pairs: Some of them supporting, some refuting.
        scorer: Any; a trained head is to be scored on statements it was not trained on.
        resamples: For the intervals.
        seed: Of the resampling.
        on_progress: Called with the number of pairs done since the last call.

    Raises:
        InputError: No supporting or no refuting pair, or the scorer failed on all of one kind.
    """
    given = relation_probabilities(pairs, scorer, on_progress=on_progress)
    truth = np.array([pair.relation for pair in pairs], dtype=np.int64)
    known = np.isfinite(given).all(axis=1)
    if not {0, 1} <= set(truth[known].tolist()):
        raise InputError("An entailment scorer is validated on pairs of which some are SUPPORTS and some REFUTES.")
    sure = known & (truth < 2)
    return EntailmentScores(
        scorer=scorer.name,
        two_class=pair_scores(pairs, given, two_class=True, resamples=resamples, seed=seed),
        three_class=pair_scores(pairs, given, resamples=resamples, seed=seed),
        support_auroc=auroc(given[known][:, 0], truth[known] == 0),
        calibration=calibration(supporting(given[sure]), truth[sure] == 0),
    )


def relation_probabilities(
    pairs: Sequence[LabelledPair], scorer: RelationScorer, *, on_progress: Callable[[int], None] | None = None
) -> FloatArray:
    """What a scorer gives each pair, shape [pairs, 3]; NaN where it failed."""
    found: list[tuple[float, ...]] = []
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        read = scorer.relations([(pair.premise, pair.statement) for pair in block])
        found += [(np.nan,) * len(RELATIONS) if one is None else one for one in read]
        if on_progress is not None:
            on_progress(len(block))
    return np.array(found, dtype=np.float64).reshape(-1, len(RELATIONS))


def _of_claim(row: Row, place: str) -> Iterator[tuple[Any, Any, Any, str]]:
    listed = next((row[name] for name in _EVIDENCE if row.get(name) is not None), None)
    if isinstance(listed, str):
        try:
            listed = parse_json(listed)
        except ValueError as error:
            raise InputError(f"{place}: the evidence is no list of labelled passages.") from error
    if listed is None:
        return
    if not isinstance(listed, Sequence) or not all(isinstance(one, Mapping) for one in listed):
        raise InputError(f"{place}: the evidence is no list of labelled passages.")
    for one in listed:
        text, title = _text(one.get("evidence")), _text(one.get("article"))
        premise = f"{title}: {text}" if text and title else text
        yield premise, row.get("claim"), one.get("evidence_label") or one.get("label"), place


def _pair(premise: Any, statement: Any, label: Any, place: str, labelled: bool) -> LabelledPair | None:
    given, said, name = _text(premise), _text(statement), _text(label)
    if not (given and said and (name or not labelled)):
        return None
    relation = LABELS.get(name.casefold()) if labelled else UNLABELLED
    if relation is None:
        raise InputError(f"{place}: {name!r} is no relation; it is one of {', '.join(LABELS)}.")
    return LabelledPair(given, said, relation)


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float | bool) else ""
