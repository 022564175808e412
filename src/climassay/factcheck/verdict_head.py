"""A trained verdict head: from a claim and its passages to probabilities of Climate-FEVER's four verdicts.

Small models know more than they say: their answers to "does this support the claim?" are near chance where a linear
probe on their hidden states is not. A head works in two steps. Every passage is judged by itself: it refutes the claim,
supports it, or neither. Then Climate-FEVER's rule (both: disputed; one of them: that; none: not enough information) is
applied to the probabilities as if passages were independent, and a small regression corrects for that they are not.
Hence any number of passages will do. Every choice of the training is made by cross-validation whose folds share no
claim.

A head reads a model's hidden states, an encoder's vectors and the words. The model is asked whether the passage
supports or refutes the claim, and its answer is made to end in each of three ways. The states at these ends are a
contrast: what claim and passage have in common is in all three, and what differs is how each answer follows from them
(Burns et al. 2023; Maiya 2024, with three answers instead of two).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.claim_identity import words_id
from climassay.errors import InputError, ModelError
from climassay.factcheck.evidence_mode import EvidenceClaim, EvidencePrediction, EvidenceTable, prediction
from climassay.factcheck.scales import CLIMATE_FEVER
from climassay.learning import harvest
from climassay.learning.calibration import class_shares, reweighted
from climassay.learning.evaluation import Evaluation, evaluate, log_loss
from climassay.learning.features import FeatureModels, Progress, ReadingModel, text_vectors
from climassay.learning.harvest import ActivationStore
from climassay.learning.linear import LinearModel, fit_linear
from climassay.learning.model_file import ModelFormat, Provenance, checked_array
from climassay.learning.splits import (
    FOLDS,
    IntArray,
    group_folds,
    held_out,
    near_duplicate_groups,
    splits_of,
    try_settings,
)
from climassay.models.contract import Encoder, Generator, OpenWeights, OptionRequest
from climassay.prompts import Prompt, load_prompt

FloatArray = NDArray[np.float64]
StateUse = Literal["contrast", "mean", "none"]
EncoderUse = Literal["vectors", "cosine", "none"]

PROMPT = "factcheck_head"
EVIDENCE_LABELS = ("REFUTES", "SUPPORTS", "NOT_ENOUGH_INFO")
"""What a passage does to a claim (Climate-FEVER's labels of evidence)."""
ANSWERS = (" refutes", " supports", " neither")
"""Ends of the model's answer, in the order of :data:`EVIDENCE_LABELS`."""

_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nor|neither|without|cannot|false|myth|incorrect|wrong|contrary|however|although|despite)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True)
class Reading:
    """Which features a head reads."""

    states: StateUse = "contrast"
    """``contrast``: how the states of "refutes" and "supports" differ from that of "neither"; ``mean``: their mean."""
    layers: tuple[int, ...] = ()
    """Layers whose states are read, side by side; numbered as in :meth:`OpenWeights.harvest`."""
    encoder: EncoderUse = "cosine"
    """``cosine``: of claim and passage; ``vectors``: also u, v, |u - v| and u * v (Conneau et al. 2017)."""

    def __post_init__(self) -> None:
        if (self.states == "none") != (not self.layers):
            raise InputError("A reading names layers exactly if it uses hidden states.")

    def __str__(self) -> str:
        parts = [] if self.states == "none" else [f"{self.states} of layer {'+'.join(map(str, self.layers))}"]
        return ", ".join([*parts, *([] if self.encoder == "none" else [self.encoder]), "words"])


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What was read of pairs of a claim and a passage, once for all readings."""

    layers: tuple[int, ...]
    states: NDArray[np.float32]
    """Shape [pairs, answers, layers, width]; no layers where no model was read."""
    claims: FloatArray
    """Unit vectors of the claims, shape [pairs, width]; width 0 without an encoder."""
    passages: FloatArray
    words: FloatArray
    """Shape [pairs, features]: see :func:`word_features`."""
    failed: dict[int, str]
    """Why a pair could not be read, by its place."""

    def blocks(self, reading: Reading) -> list[FloatArray]:
        """Features of one reading, in blocks of one kind each; shape [pairs, features] each.

        Raises:
            InputError: The reading needs what was not read.
        """
        blocks: list[FloatArray] = []
        if reading.states != "none":
            if not set(reading.layers) <= set(self.layers):
                raise InputError(f"This reading needs layers {reading.layers}, and {self.layers} were read.")
            places = [self.layers.index(layer) for layer in reading.layers]
            states: FloatArray = self.states[:, :, places].astype(np.float64)
            states = states.mean(axis=1) if reading.states == "mean" else states[:, :2] - states[:, 2:]
            blocks.append(np.reshape(states, (len(states), -1)))
        if reading.encoder == "none":
            return [*blocks, self.words]
        if not self.claims.shape[1]:
            raise InputError("This reading compares vectors of claim and passage: it needs an encoder.")
        first, second = self.claims, self.passages
        if reading.encoder == "vectors":
            blocks.append(np.concatenate([first, second, np.abs(first - second), first * second], axis=1))
        return [*blocks, np.concatenate([self.words, np.sum(first * second, axis=1, keepdims=True)], axis=1)]

    def take(self, kept: NDArray[np.bool_]) -> "Material":
        """Only some of the pairs, none of which may have failed; ``kept`` has shape [pairs]."""
        return Material(
            self.layers, self.states[kept], self.claims[kept], self.passages[kept], self.words[kept], failed={}
        )


def read_pairs(
    pairs: Sequence[tuple[str, str]],
    prompt: Prompt,
    *,
    model: OpenWeights | None,
    layers: Sequence[int] = (),
    encoder: Encoder | None = None,
    store: ActivationStore | None = None,
    on_read: Progress | None = None,
) -> Material:
    """Read pairs of a claim and a passage: states of the model's layers, vectors of the encoder, where there are any.

    The ``prompt`` is a template with ``claim`` and ``passage``; ``on_read`` is called with the number of pairs whose
    states are known since the last call.
    """
    states = np.zeros((len(pairs), len(ANSWERS), 0, 0), dtype=np.float32)
    failed: dict[int, str] = {}
    if model is not None and layers and pairs:
        rendered = [prompt.render(claim=claim, passage=passage) for claim, passage in pairs]
        requests = [OptionRequest(one.messages, ANSWERS, one.assistant_prefix) for one in rendered]
        result = harvest(model, requests, layers=tuple(layers), store=store, on_progress=on_read)
        states, failed = result.states, result.failed
    claims = passages = np.zeros((len(pairs), 0))
    if encoder is not None:
        claims, passages = (text_vectors([pair[side] for pair in pairs], encoder) for side in (0, 1))
    words = np.array([word_features(*pair) for pair in pairs], dtype=np.float64).reshape(len(pairs), -1)
    return Material(tuple(layers) if model is not None else (), states, claims, passages, words, failed)


def word_features(claim: str, passage: str) -> tuple[float, ...]:
    """Features of the words alone.

    Returns:
        Whether the claim has a negation, the passage has one, only one of them has; how many numbers they share and how
        many the claim has alone; and the share of the claim's words (of four letters or more) that the passage has.
    """
    negated, denied = (bool(_NEGATION.search(text)) for text in (claim, passage))
    numbers, given = (set(_NUMBER.findall(text)) for text in (claim, passage))
    words, others = (set(_WORD.findall(text.casefold())) for text in (claim, passage))
    overlap = len(words & others) / max(1, len(words))
    shared = float(len(numbers & given))
    return (float(negated), float(denied), float(negated != denied), shared, len(numbers) - shared, overlap)


VERDICT_LABELS = (*CLIMATE_FEVER.labels, CLIMATE_FEVER.nei)
"""REFUTES, DISPUTED, SUPPORTS, NOT_ENOUGH_INFO: the order of a head's probabilities."""
REGULARISATIONS = (0.1, 0.3, 1.0, 3.0)
BALANCES = (0.0, 0.5, 1.0)
DEPTHS = (0.5, 0.6, 0.7)
"""Depths of the layers that are tried: what a passage does to a claim is most legible a little above the middle."""
STATE_USES: tuple[StateUse, ...] = ("contrast", "mean")
"""How states are tried."""
_VERDICT_REGULARISATION = 1.0
"""C of the second step, for features as they are: four, for which every claim speaks, so that little rests on it."""
_FLOOR = 1e-4
"""Smallest probability whose logarithm the second step reads."""

Claims = Sequence[tuple[str, Sequence[str]]]
"""Claims, each with any number of passages."""


@dataclass(frozen=True, eq=False)
class VerdictHead(ReadingModel):
    """A linear model of a claim and a passage, and one of what the passages say together."""

    FORMAT = ModelFormat("climassay-verdict-head", 2, "verdict head", "climassay factcheck train")

    reading: Reading
    evidence: LinearModel
    """From the features of :attr:`reading`, block after block, to :data:`EVIDENCE_LABELS`."""
    verdicts: LinearModel
    """From the logarithms of :func:`rule_probabilities` to :data:`VERDICT_LABELS`."""
    shares: FloatArray
    """Shape [4]: how frequent each verdict is in the training data."""
    balance: float
    """0: probabilities as for claims of which each verdict is as frequent as in training; 1: as if all four were
    equally frequent; between: in between (:func:`~climassay.learning.calibration.reweighted`)."""
    provenance: Provenance
    """``groups`` counts claims, ``items`` passages; ``measured``: cross-validated ``accuracy``, ``macro_f1`` and
    ``log_loss`` of the verdicts (the last at balance 0), ``passage_log_loss`` of the first step. The settings were
    chosen on the same folds, so a fresh test set may come out a little lower."""

    models: FeatureModels = field(default_factory=FeatureModels)
    store: ActivationStore | None = None
    """Where hidden states are kept."""

    def with_models(
        self, encoder: Encoder | None = None, model: Generator | None = None, store: ActivationStore | None = None
    ) -> Self:
        """The same with models that are loaded already, and perhaps a store of states; see :class:`ReadingModel`."""
        return replace(super().with_models(encoder, model), store=store)

    def predict_proba(self, claims: Claims, *, on_read: Progress | None = None) -> list[tuple[float, ...] | None]:
        """Probabilities of the verdicts; without passages, there is not enough information.

        Returns:
            For each claim one probability per label of :data:`VERDICT_LABELS`, summing to 1; None where a passage could
            not be read. ``on_read`` is called with the number of passages read since the last call.

        Raises:
            InputError: A model or encoder that it reads is missing, or another than it was trained on.
        """
        read = self.predict_evidence(claims, on_read=on_read)
        return [None if passages is None else self.combine(passages) for passages in read]

    def predict(self, claims: Claims) -> list[str | None]:
        """The most probable verdict of each claim; errors as :meth:`predict_proba`."""
        return [None if row is None else VERDICT_LABELS[int(np.argmax(row))] for row in self.predict_proba(claims)]

    def score(self, rows: Sequence[EvidenceClaim], *, seed: int = 0) -> Evaluation:
        """Figures on claims with a published verdict; they say something only of claims that it was not trained on."""
        known = [row for row in rows if row.label is not None]
        return verdict_scores(known, self.predict_proba([(row.text, row.passages) for row in known]), seed=seed)

    def predict_evidence(
        self, claims: Claims, *, on_read: Progress | None = None
    ) -> list[tuple[tuple[float, ...], ...] | None]:
        """What each passage by itself does to its claim, as probabilities of :data:`EVIDENCE_LABELS`.

        Arguments and errors as :meth:`predict_proba`.
        """
        source, states = self.provenance, self.reading.states != "none"
        if states:
            self.models.need_model()
        read = self.reader
        prompt = load_prompt(source.template)
        if prompt.sha256 != source.template_sha256:
            raise InputError(
                f"This verdict head was trained with another text of the prompt {prompt.name} than this version of"
                " climassay has; train it again."
            )
        pairs = [(claim, passage) for claim, passages in claims for passage in passages]
        material = read_pairs(
            pairs, prompt, model=read.need_model() if states else None, layers=self.reading.layers,
            encoder=read.encoder, store=self.store, on_read=on_read,
        )  # fmt: skip
        rows = [tuple(row) for row in self.judge(material).tolist()]
        ends = np.cumsum([0, *(len(passages) for _, passages in claims)]).tolist()
        return [
            None if material.failed.keys() & set(range(start, end)) else tuple(rows[start:end])
            for start, end in pairwise(ends)
        ]

    def judge(self, material: Material) -> FloatArray:
        """First step: probabilities of :data:`EVIDENCE_LABELS`, shape [pairs, 3]; meaningless where reading failed.

        Raises:
            InputError: What was read has another number of features than the head was trained on.
        """
        return self.evidence.probabilities(material.blocks(self.reading))

    def combine(self, evidence: Sequence[Sequence[float]]) -> tuple[float, ...]:
        """Second step: from what the passages of one claim do to it to probabilities of the verdicts.

        ``evidence`` has one row per passage, probabilities of :data:`EVIDENCE_LABELS`, in any order.
        """
        if not len(evidence):
            return (0.0, 0.0, 0.0, 1.0)
        plain = self.verdicts.probabilities([verdict_features(evidence)[None]])[0]
        return tuple(reweighted(plain, self.shares, balance=self.balance).tolist())

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """See :class:`SavedModel`."""
        arrays = {**self.evidence.arrays("evidence_{}"), **self.verdicts.arrays("verdict_{}"), "shares": self.shares}
        facts = {
            "labels": list(VERDICT_LABELS),
            "evidence_labels": list(EVIDENCE_LABELS),
            "reading": asdict(self.reading),
            "balance": self.balance,
            "provenance": self.provenance.facts(),
        }
        return arrays, facts

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """See :class:`SavedModel`."""
        if tuple(facts["labels"]) != VERDICT_LABELS or tuple(facts["evidence_labels"]) != EVIDENCE_LABELS:
            raise ValueError("its labels are others")
        verdicts = len(VERDICT_LABELS)
        shares = checked_array("shares", arrays["shares"], (verdicts,))
        if not 0 <= float(facts["balance"]) <= 1 or not (shares > 0).all():
            raise ValueError("balance or shares are not what they can be")
        evidence = LinearModel.read(arrays, len(EVIDENCE_LABELS), name="evidence_{}")
        second = LinearModel.read(arrays, verdicts, name="verdict_{}", features=verdicts)
        reading = Reading(**{**facts["reading"], "layers": tuple(facts["reading"]["layers"])})
        renamed = {} if facts["version"] > 1 else {"items": "passages", "groups": "claims", "measured": "held_out"}
        provenance = Provenance.read(facts["provenance"], **renamed)
        return cls(reading, evidence, second, shares, float(facts["balance"]), provenance)


def check_with_head(
    rows: Sequence[EvidenceClaim], head: VerdictHead, *, on_read: Progress | None = None
) -> list[EvidencePrediction]:
    """Verdicts by a trained head with its models; arguments and errors as :meth:`VerdictHead.predict_proba`.

    Returns:
        One prediction per row, in order; failures in their place. Labels are those of Climate-FEVER.
    """
    result = head.predict_proba([(row.text, row.passages) for row in rows], on_read=on_read)
    return [
        EvidencePrediction(row, None, error="A passage could not be read.") if probabilities is None
        else prediction(row, probabilities, VERDICT_LABELS)
        for row, probabilities in zip(rows, result, strict=True)
    ]  # fmt: skip


def verdict_scores(
    rows: Sequence[EvidenceClaim], probabilities: Sequence[Sequence[float] | None], *, seed: int = 0
) -> Evaluation:
    """Score probabilities of :data:`VERDICT_LABELS`, None where there are none, on claims with a published verdict."""
    truth = [_truth(row) for row in rows]
    given = [(np.nan,) * len(VERDICT_LABELS) if row is None else row for row in probabilities]
    return evaluate(truth, given, VERDICT_LABELS, groups=[row.id for row in rows], seed=seed)


def rule_probabilities(evidence: ArrayLike) -> FloatArray:
    """Climate-FEVER's rule on uncertain evidence, as if what passages say were independent.

    With ``n``, ``s`` and ``r`` a passage's probabilities of neither, support and refutation: not enough information is
    ``prod(n)``, supported ``prod(s + n) - prod(n)``, refuted ``prod(r + n) - prod(n)``, and disputed is the rest.

    Args:
        evidence: Shape [passages, 3], probabilities of :data:`EVIDENCE_LABELS`.

    Returns:
        Shape [4], in the order of :data:`VERDICT_LABELS`, summing to 1.

    References:
        Diggelmann et al. (2020), arXiv 2012.00614, section 3 (how a claim gets its label).
    """
    rows = np.asarray(evidence, dtype=np.float64).reshape(-1, len(EVIDENCE_LABELS))
    nothing = float(np.prod(rows[:, 2]))
    refuted = float(np.prod(rows[:, 0] + rows[:, 2])) - nothing
    supported = float(np.prod(rows[:, 1] + rows[:, 2])) - nothing
    return np.maximum([refuted, 1.0 - refuted - supported - nothing, supported, nothing], 0.0)


def rule_verdict(evidence: IntArray) -> int:
    """Climate-FEVER's verdict from labels of passages, shape [passages], as a place in :data:`VERDICT_LABELS`."""
    return int(rule_probabilities(np.eye(len(EVIDENCE_LABELS))[evidence]).argmax())


def verdict_features(evidence: ArrayLike) -> FloatArray:
    """What the second step reads of a claim's passages [passages, 3]: log rule probabilities, shape [4]."""
    return np.asarray(np.log(np.maximum(rule_probabilities(evidence), _FLOOR)), dtype=np.float64)


# ------------------------------------------------------------------------------------------------------- training


@dataclass(frozen=True, slots=True)
class HeadChoice:
    """One setting that was tried, and how it did on held-out claims."""

    reading: Reading
    regularisation: float
    log_loss: float = np.nan
    """Mean negative log-likelihood of what passages do, in nats. The choice is made by it."""
    accuracy: float = np.nan
    """Accuracy of what passages do."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedHead:
    """A head and the evidence behind it."""

    head: VerdictHead
    choices: tuple[HeadChoice, ...]
    """All settings tried, best first."""
    balances: dict[float, Evaluation]
    """Verdicts on held-out claims by balance (:attr:`VerdictHead.balance`), which is chosen by macro-F1."""
    left_out: int
    """Claims without passages or without labels on all of them, or with a passage that could not be read."""


def default_readings(layers: int | None, encoder: bool) -> tuple[Reading, ...]:
    """What is tried where nobody says otherwise, with a model of so many layers, if any, and perhaps an encoder."""
    if layers is None:
        return (Reading("none", (), "vectors" if encoder else "none"),)
    return state_readings([(layer,) for layer in sorted({max(1, round(depth * layers)) for depth in DEPTHS})], encoder)


def state_readings(layers: Sequence[tuple[int, ...]], encoder: bool) -> tuple[Reading, ...]:
    """Each way of reading states for each set of layers, with the encoder's cosine where there is one."""
    return tuple(Reading(use, some, "cosine" if encoder else "none") for use in STATE_USES for some in layers)


def train_head(
    table: EvidenceTable,
    rows: Sequence[EvidenceClaim],
    model: OpenWeights | None,
    *,
    encoder: Encoder | None = None,
    readings: Sequence[Reading] | None = None,
    layers: Sequence[int] = (),
    regularisations: Sequence[float] = REGULARISATIONS,
    folds: int = FOLDS,
    seed: int = 0,
    store: ActivationStore | None = None,
    on_read: Progress | None = None,
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
        regularisations: C of the first step to try, the prior variance of what a block of features adds to a logit.
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
    usable = [row for row in rows if row.evidence and all(one.label in EVIDENCE_LABELS for one in row.evidence)]
    if len(usable) < 2:
        raise InputError(
            f"A verdict head learns from claims whose passages are labelled {', '.join(EVIDENCE_LABELS)}: "
            f"{len(usable)} of {len(rows)} are."
        )
    if read and model is None:
        raise InputError("A reading of hidden states needs a model with accessible weights.")
    prompt = load_prompt(PROMPT)
    pairs = [(row.text, passage) for row in usable for passage in row.passages]
    material = read_pairs(pairs, prompt, model=model, layers=read, encoder=encoder, store=store, on_read=on_read)
    data = TrainingData(usable, material, near_duplicate_groups([row.text for row in usable], encoder), folds, seed)
    specs = [HeadChoice(*one) for one in product(tried, regularisations)]
    result = try_settings(specs, data.held_out_evidence, lambda given: -log_loss(given, data.evidence), on_fit)
    best, guesses = result[0].spec, result[0].probabilities
    plain = data.held_out_verdicts(guesses)
    shares = class_shares(np.bincount(data.truth, minlength=len(VERDICT_LABELS)))
    balances = {
        balance: evaluate(
            data.truth, reweighted(plain, shares, balance=balance), VERDICT_LABELS, groups=data.groups, seed=seed
        )
        for balance in BALANCES
    }
    chosen = max(balances, key=lambda balance: balances[balance].macro_f1.value)
    provenance = Provenance(
        data=table.name,
        data_sha256=table.sha256,
        items=len(data.evidence),
        groups=len(data.rows),
        layers=best.reading.layers,
        template=prompt.name,
        template_sha256=prompt.sha256,
        regularisation=best.regularisation,
        seed=seed,
        measured={
            **balances[chosen].figures, "log_loss": log_loss(plain, data.truth), "passage_log_loss": -result[0].merit
        },
        trained_on=tuple(dict.fromkeys(words_id(row.text) for row in data.rows)),
    ).reading(
        None if best.reading.encoder == "none" else encoder, None if best.reading.states == "none" else model
    )  # fmt: skip
    first = data.fit_evidence(best, np.arange(len(data.evidence)))
    second = data.fit_verdicts(guesses, np.arange(len(data.rows)))
    head = VerdictHead(best.reading, first, second, shares, chosen, provenance).with_models(encoder, model, store)
    choices = tuple(
        replace(
            one.spec, log_loss=-one.merit, accuracy=float((one.probabilities.argmax(axis=1) == data.evidence).mean())
        )
        for one in result
    )
    return TrainedHead(head, choices, balances, len(rows) - len(data.rows))


class TrainingData:
    """Training claims as arrays; their passages lie claim after claim. Claims that could not be read are left out.

    ``groups`` (never split between ``folds``) and ``truth`` (places in :data:`VERDICT_LABELS`) have the shape [claims],
    ``evidence`` (places in :data:`EVIDENCE_LABELS`) and ``owner`` (numbers of claims) the shape [passages].
    """

    def __init__(
        self, rows: Sequence[EvidenceClaim], material: Material, groups: IntArray, folds: int, seed: int
    ) -> None:
        owner = np.repeat(np.arange(len(rows)), [len(row.evidence) for row in rows])
        readable = np.ones(len(rows), dtype=bool)
        readable[owner[list(material.failed)]] = False
        if not readable.any():
            raise ModelError(f"No claim could be read: {next(iter(material.failed.values()))}")
        self.rows = [row for row, kept in zip(rows, readable, strict=True) if kept]
        self.material = material.take(readable[owner])
        self.groups = groups[readable]
        self.evidence = np.concatenate([_evidence(row) for row in self.rows])
        self.owner = np.repeat(np.arange(len(self.rows)), [len(row.evidence) for row in self.rows])
        self.truth = np.array([_truth(row) for row in self.rows])
        self.folds = group_folds(self.groups, folds, seed=seed)
        self._seed = seed

    def fit_evidence(self, choice: HeadChoice, places: IntArray) -> LinearModel:
        """First step, on some of the passages, places of shape [chosen]."""
        blocks = [block[places] for block in self.material.blocks(choice.reading)]
        return fit_linear(blocks, self.evidence[places], len(EVIDENCE_LABELS), regularisation=choice.regularisation)

    def held_out_evidence(self, choice: HeadChoice) -> FloatArray:
        """What passages do by models fitted on the other folds; shape [passages, 3]."""
        blocks = self.material.blocks(choice.reading)
        return held_out(
            splits_of(self.folds[self.owner]),
            partial(self.fit_evidence, choice),
            lambda fitted, test: fitted.probabilities([block[test] for block in blocks]),
            len(self.evidence),
        )

    def fit_verdicts(self, guesses: FloatArray, claims: IntArray) -> LinearModel:
        """Second step, on all passages of some claims and on one random set of each smaller number.

        ``guesses`` are held-out probabilities of what passages do, shape [passages, 3].
        """
        features, labels = [], []
        generator = np.random.default_rng(self._seed)
        for claim in claims:
            places = np.flatnonzero(self.owner == claim)
            features.append(verdict_features(guesses[places]))
            labels.append(int(self.truth[claim]))
            for size in range(1, len(places)):
                some = generator.choice(places, size, replace=False)
                features.append(verdict_features(guesses[some]))
                labels.append(rule_verdict(self.evidence[some]))
        # Logarithms of probabilities need no scaling: with the mean squared norm as C, fit_linear undoes its own.
        rows = np.array(features)
        norm = _VERDICT_REGULARISATION * float(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())
        return fit_linear([rows], np.array(labels), len(VERDICT_LABELS), regularisation=norm, standardise=False)

    def held_out_verdicts(self, guesses: FloatArray) -> FloatArray:
        """Probabilities of the verdicts by second steps fitted on the other folds; shape [claims, 4]."""
        features = np.array([verdict_features(guesses[self.owner == claim]) for claim in range(len(self.rows))])
        return held_out(
            splits_of(self.folds),
            partial(self.fit_verdicts, guesses),
            lambda fitted, test: fitted.probabilities([features[test]]),
            len(self.rows),
        )


def _evidence(row: EvidenceClaim) -> IntArray:
    """Places of the passages' labels in :data:`EVIDENCE_LABELS`, shape [passages]."""
    return np.array([EVIDENCE_LABELS.index(one.label or "") for one in row.evidence], dtype=np.int64)


def _truth(row: EvidenceClaim) -> int:
    """Place of the published verdict in :data:`VERDICT_LABELS`; by the rule where there is none."""
    if row.label is None:
        return rule_verdict(_evidence(row))
    label = CLIMATE_FEVER.match(row.label)
    if label is None:
        raise InputError(
            f"The claim {row.text[:60]!r} has the verdict {row.label!r}: a verdict head learns "
            f"{', '.join(VERDICT_LABELS)}."
        )
    return VERDICT_LABELS.index(label)
