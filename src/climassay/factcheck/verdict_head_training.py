"""Training a verdict head: every choice by cross-validation whose folds share no claim."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from climassay.claim_identity import words_id
from climassay.errors import InputError, ModelError
from climassay.factcheck.evidence_mode import EvidenceClaim, EvidenceTable
from climassay.factcheck.scales import CLIMATE_FEVER
from climassay.factcheck.verdict_head import VERDICT_LABELS, HeadProvenance, VerdictHead, balanced
from climassay.factcheck.verdict_head_fitting import (
    IntArray,
    Lesson,
    fit_evidence,
    fit_verdicts,
    held_out_evidence,
    held_out_verdicts,
    log_loss,
    rule_verdict,
)
from climassay.factcheck.verdict_reading import EVIDENCE_LABELS, PROMPT, FloatArray, Reading, StateUse, read_pairs
from climassay.learning import ActivationStore
from climassay.learning.splits import group_folds, near_duplicate_groups
from climassay.models.contract import Encoder, OpenWeights
from climassay.prompts import load_prompt
from climassay.statistics import classification_scores

REGULARISATIONS = (0.1, 0.3, 1.0, 3.0)
BALANCES = (0.0, 0.5, 1.0)
DEPTHS = (0.5, 0.6, 0.7)
"""Of the layers that are tried: what a passage does to a claim is most legible a little above the middle."""
STATE_USES: tuple[StateUse, ...] = ("contrast", "mean")
"""How states are tried."""


@dataclass(frozen=True, slots=True)
class HeadChoice:
    """One setting that was tried, and how it did on held-out claims."""

    reading: Reading
    regularisation: float
    log_loss: float
    """Of what passages do: mean negative log-likelihood in nats. The choice is made by it."""
    accuracy: float
    """Of what passages do."""


@dataclass(frozen=True, slots=True)
class BalanceChoice:
    """One balance of the verdicts (see :attr:`VerdictHead.balance`) on held-out claims."""

    balance: float
    macro_f1: float
    """The choice is made by it."""
    accuracy: float


@dataclass(frozen=True, slots=True, eq=False)
class TrainedHead:
    """A head and the evidence behind it."""

    head: VerdictHead
    choices: tuple[HeadChoice, ...]
    """All settings tried, best first."""
    balances: tuple[BalanceChoice, ...]
    probabilities: FloatArray
    """Of the verdicts of held-out claims at the balance chosen, shape [claims, 4]."""
    truth: IntArray
    """Shape [claims]: place in :data:`VERDICT_LABELS`."""
    left_out: int
    """Claims without passages or without labels on all of them, or with a passage that could not be read."""


def default_readings(layers: int | None, encoder: bool) -> tuple[Reading, ...]:
    """What is tried where nobody says otherwise.

    Args:
        layers: Of the model; None where there is none.
        encoder: Whether there is one.
    """
    if layers is None:
        return (Reading("none", (), "vectors" if encoder else "none"),)
    chosen = sorted({max(1, round(depth * layers)) for depth in DEPTHS})
    return tuple(Reading(use, (layer,), "cosine" if encoder else "none") for use in STATE_USES for layer in chosen)


def train_head(
    table: EvidenceTable,
    rows: Sequence[EvidenceClaim],
    model: OpenWeights | None,
    *,
    encoder: Encoder | None = None,
    readings: Sequence[Reading] | None = None,
    layers: Sequence[int] = (),
    regularisations: Sequence[float] = REGULARISATIONS,
    folds: int = 5,
    seed: int = 0,
    store: ActivationStore | None = None,
    on_read: Callable[[int], None] | None = None,
    on_fit: Callable[[], None] | None = None,
) -> TrainedHead:
    """Train a head: reading and regularisation are chosen by log-loss, the balance by macro-F1, on held-out claims.

    Args:
        table: Where the rows come from, for the head's provenance.
        rows: Training claims with labels of Climate-FEVER on every passage.
        model: Whose hidden states are read; None: a head that reads none.
        encoder: For cosines and vectors; None: a head without. It also finds claims that are nearly the same, which are
            never split between folds (without it only those of the same words are).
        readings: Which features to try; :func:`default_readings` by default.
        layers: Layers to read beside those of the readings: a store finds states by the layers that were read together,
            so that several trainings which read the same layers compute them once.
        regularisations: C to try (see :func:`climassay.factcheck.verdict_head_fitting.fit_evidence`).
        folds: Of the cross-validation.
        seed: Of folds and of smaller sets of passages.
        store: Where hidden states are kept, so that an interrupted training goes on where it was.
        on_read: Called with the number of passages read since the last call.
        on_fit: Called after each setting tried.

    Raises:
        InputError: Too few claims, or a reading that model and encoder cannot serve.
        ModelError: No claim could be read.
    """
    tried = tuple(readings or default_readings(None if model is None else model.layers, encoder is not None))
    read = sorted({*layers, *(layer for reading in tried for layer in reading.layers)})
    lesson, kept = _lesson(rows, read, model, encoder, store, (folds, seed), on_read)
    choices = []
    for reading in tried:
        blocks = lesson.material.blocks(reading)
        for regularisation in regularisations:
            guesses = held_out_evidence(lesson, blocks, regularisation)
            right = float((guesses.argmax(axis=1) == lesson.evidence).mean())
            choices.append(HeadChoice(reading, regularisation, log_loss(guesses, lesson.evidence), right))
            if on_fit is not None:
                on_fit()
    choices.sort(key=lambda choice: choice.log_loss)
    return _finish(table, lesson, kept, tuple(choices), model, encoder, len(rows) - len(kept))


def _lesson(
    rows: Sequence[EvidenceClaim],
    layers: Sequence[int],
    model: OpenWeights | None,
    encoder: Encoder | None,
    store: ActivationStore | None,
    folds_seed: tuple[int, int],
    on_read: Callable[[int], None] | None,
) -> tuple[Lesson, list[EvidenceClaim]]:
    """Read the passages of all claims that can be learned from; gives these claims too."""
    usable = [row for row in rows if row.evidence and all(one.label in EVIDENCE_LABELS for one in row.evidence)]
    if len(usable) < 2:
        raise InputError(
            f"A verdict head learns from claims whose passages are labelled {', '.join(EVIDENCE_LABELS)}: "
            f"{len(usable)} of {len(rows)} are."
        )
    if layers and model is None:
        raise InputError("A reading of hidden states needs a model whose weights are at hand.")
    pairs = [(row.text, passage) for row in usable for passage in row.passages]
    owner = np.repeat(np.arange(len(usable)), [len(row.evidence) for row in usable])
    material = read_pairs(
        pairs, load_prompt(PROMPT), model=model, layers=layers, encoder=encoder, store=store, on_read=on_read
    )
    bad = set(owner[list(material.failed)].tolist())
    if len(bad) == len(usable):
        raise ModelError(f"No claim could be read: {next(iter(material.failed.values()))}")
    if bad:
        material = material.take(~np.isin(owner, list(bad)))
        usable = [row for place, row in enumerate(usable) if place not in bad]
        owner = np.repeat(np.arange(len(usable)), [len(row.evidence) for row in usable])
    evidence = np.array([EVIDENCE_LABELS.index(one.label or "") for row in usable for one in row.evidence])
    truth = [_truth(row, evidence[owner == place]) for place, row in enumerate(usable)]
    groups = near_duplicate_groups([row.text for row in usable], encoder)
    folds, seed = folds_seed
    return Lesson(material, evidence, owner, np.array(truth), group_folds(groups, folds, seed=seed), seed), usable


def _truth(row: EvidenceClaim, evidence: IntArray) -> int:
    """The published verdict; by the rule where there is none."""
    label = None if row.label is None else CLIMATE_FEVER.match(row.label)
    if row.label is not None and label is None:
        raise InputError(
            f"The claim {row.text[:60]!r} has the verdict {row.label!r}: a verdict head learns "
            f"{', '.join(VERDICT_LABELS)}."
        )
    return rule_verdict(evidence) if label is None else VERDICT_LABELS.index(label)


def _finish(
    table: EvidenceTable,
    lesson: Lesson,
    kept: Sequence[EvidenceClaim],
    choices: tuple[HeadChoice, ...],
    model: OpenWeights | None,
    encoder: Encoder | None,
    left_out: int,
) -> TrainedHead:
    """Fit both steps on all claims with the best setting."""
    best = choices[0]
    blocks = lesson.material.blocks(best.reading)
    guesses = held_out_evidence(lesson, blocks, best.regularisation)
    plain = held_out_verdicts(lesson, guesses)
    balances = tuple(_balance_choice(lesson, plain, balance) for balance in BALANCES)
    chosen = max(balances, key=lambda choice: choice.macro_f1)
    source = _provenance(table, lesson, kept, best, model, encoder, {
        "accuracy": chosen.accuracy,
        "macro_f1": chosen.macro_f1,
        "log_loss": log_loss(plain, lesson.truth),
        "passage_log_loss": best.log_loss,
    })  # fmt: skip
    first = fit_evidence(blocks, lesson.evidence, best.regularisation)
    second = fit_verdicts(lesson, guesses, np.arange(len(kept)))
    # A verdict that training does not have must not get a share of 0, by which probabilities are divided.
    shares = np.maximum(lesson.shares, 1 / len(kept))
    head = VerdictHead(best.reading, *first, *second, shares, chosen.balance, source)
    return TrainedHead(head, choices, balances, balanced(plain, shares, chosen.balance), lesson.truth, left_out)


def _balance_choice(lesson: Lesson, plain: FloatArray, balance: float) -> BalanceChoice:
    shares = np.maximum(lesson.shares, 1 / len(lesson.truth))
    verdicts = balanced(plain, shares, balance).argmax(axis=1)
    scores = classification_scores(lesson.truth.tolist(), verdicts.tolist())
    return BalanceChoice(balance, scores.macro_f1, scores.accuracy.value)


def _provenance(
    table: EvidenceTable,
    lesson: Lesson,
    kept: Sequence[EvidenceClaim],
    best: HeadChoice,
    model: OpenWeights | None,
    encoder: Encoder | None,
    held_out: dict[str, float],
) -> HeadProvenance:
    read = model if best.reading.states != "none" else None
    compared = encoder if best.reading.encoder != "none" else None
    prompt = load_prompt(PROMPT)
    return HeadProvenance(
        model=read.name if read else "",
        fingerprint=read.fingerprint if read else "",
        dtype=read.dtype if read else "",
        encoder=compared.name if compared else "",
        encoder_fingerprint=compared.fingerprint if compared else "",
        template=prompt.name,
        template_sha256=prompt.sha256,
        data=table.name,
        data_sha256=table.sha256,
        claims=len(kept),
        passages=len(lesson.evidence),
        regularisation=best.regularisation,
        seed=lesson.seed,
        held_out=held_out,
        trained_on=tuple(dict.fromkeys(words_id(row.text) for row in kept)),
    )
