"""Entailment scorers by name, labelled pairs to measure them on, and a linear head that learns from such pairs.

Pairs are Climate-FEVER's passages and claims, or a table; the scores are ClimaQA's check of its judge, for any scorer.
The head is linear in an encoder's vectors and in what rules see in the words. Every choice of its training is made by
cross-validation whose folds share no statement, nor nearly the same ones. Cross-encoders trained on inference data are
scorers too.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import words_id
from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.io import Row, parse_json, parse_rows, read_bytes
from climassay.learning.calibration import prior_shift
from climassay.learning.evaluation import RESAMPLES, Calibration, Evaluation, auroc, calibration, evaluate
from climassay.learning.features import FeatureModels, ReadingModel
from climassay.learning.linear import LinearModel, fit_linear
from climassay.learning.model_file import ModelFormat, Provenance
from climassay.learning.splits import (
    FOLDS,
    IntArray,
    group_folds,
    held_out,
    hold_out,
    near_duplicate_groups,
    sample,
    splits_of,
    try_settings,
)
from climassay.metrics.entailment import (
    ENTAILED,
    NAMES,
    RELATIONS,
    FloatArray,
    PairFeatures,
    PromptedEntailment,
    Relations,
    RelationScorer,
    contradict,
    cut_tail,
    nearest_parts,
    pair_features,
)
from climassay.metrics.factual_accuracy import PromptedSupport
from climassay.models import load_model
from climassay.models.contract import Encoder, Generator, OptionScorer
from climassay.prompts import ProfileSettings, profile_of
from climassay.statistics import Estimate, bootstrap_interval, share_interval

LABELS: Mapping[str, int] = {
    "supports": 0, "entailment": 0, "entails": 0, "confirms": 0, "true": 0,
    "refutes": 1, "contradiction": 1, "contradicts": 1, "false": 1,
    "not_enough_info": 2, "neutral": 2, "leaves open": 2, "unknown": 2,
}  # fmt: skip
"""How files name the relations, in lower case: Climate-FEVER's words, those of inference data, and ours."""
UNLABELLED = -1
"""Relation of a pair that nobody has judged."""
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
    """Place in :data:`~climassay.metrics.entailment.RELATIONS`, or :data:`UNLABELLED`."""


@dataclass(frozen=True, slots=True)
class PairTable:
    """The pairs of a file."""

    name: str
    sha256: str
    """Hash of the file's content (unpacked)."""
    pairs: tuple[LabelledPair, ...]
    skipped: int
    """Pairs without a text or a label."""


def read_pairs(file: Path, *, labelled: bool = True) -> PairTable:
    """Labelled pairs from JSONL, JSON, CSV, TSV or Parquet, gzip included.

    Two forms are understood. Climate-FEVER's: ``claim`` and ``evidences``, a list with ``evidence``, ``article`` and
    ``evidence_label``; the article's title goes before the premise, as its sentences often say "it". Or one pair per
    row: ``premise``, ``statement`` and ``label``. Labels may be any of :data:`LABELS`, in any case.

    Args:
        file: The table.
        labelled: Leave pairs without a label out; otherwise no label is read.

    Raises:
        InputError: The file cannot be read, has other columns, a label that is none, or not one pair.
    """
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    names = {name for row in rows for name in row}
    given: list[tuple[Any, Any, Any, str]] = []
    if "claim" in names and names & set(EVIDENCE_COLUMNS):
        for number, row in enumerate(rows, start=1):
            cell, where = next((row[one] for one in EVIDENCE_COLUMNS if row.get(one)), None), f"{file}, row {number}"
            given += [(one.shown, row.get("claim"), one.label, where) for one in read_passages(cell, where)]
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
    pairs = []
    for *texts, place in given:
        premise, said, name = map(plain_text, texts)
        if premise and said and (name or not labelled):
            relation = LABELS.get(name.casefold()) if labelled else UNLABELLED
            if relation is None:
                raise InputError(f"{place}: {name!r} is not a relation; it is one of {', '.join(LABELS)}.")
            pairs.append(LabelledPair(premise, said, relation))
    if not pairs:
        raise InputError(f"No row of {file} has a premise, a statement{' and a label' * labelled}.")
    return PairTable(file.name, hashlib.sha256(data).hexdigest(), tuple(pairs), len(given) - len(pairs))


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
    """Score a scorer on labelled pairs, which a trained head has not seen; progress counts the pairs done.

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


BUNDLED_HEAD = Path(__file__).with_name("entailment_head.safetensors")
"""The head that comes with climassay; see docs/results/entailment.md."""
REGULARISATIONS = (0.3, 1.0)
SYNTHETIC_SHARES = (0.0, 0.3, 1.0)
"""Shares of the pairs made by rule that are tried as additions."""
_TURN_PREMISE = 0.25
_SHORTEN_PREMISE = 0.15


@dataclass(frozen=True, eq=False)
class EntailmentHead(ReadingModel):
    """Probabilities of the three relations, linear in features of a pair.

    It needs no language model, no torch and no GPU. It knows nearness, shared words, negations, directions and numbers,
    and nothing of the world: a contradiction that shows in none of them is mostly not found.

    Attributes:
        model: For the features that :data:`~climassay.metrics.entailment.NAMES` lists and before them, where
            there are more, those of the vectors.
        provenance: ``groups`` counts statements, ``items`` pairs, ``settings["turned"]`` pairs made by rule.
            ``measured``, on statements not fitted on: ``two_class_auroc``, ``two_class_accuracy``,
            ``two_class_constant``, ``accuracy``, ``constant``, ``macro_f1``, ``log_loss``, and ``turned_auroc`` on
            pairs made by rule.
        models: The encoder.
    """

    FORMAT = ModelFormat("climassay-entailment-head", 2, "entailment head", "climassay metrics entailment train")

    model: LinearModel
    provenance: Provenance
    models: FeatureModels = field(default_factory=FeatureModels)

    @property
    def encoder(self) -> Encoder:
        """The encoder whose vectors the head reads."""
        return self.reader.need_encoder()

    def probabilities(self, features: PairFeatures) -> FloatArray:
        """Probabilities of the relations, shape [pairs, 3]."""
        return self.model.probabilities(features.blocks(vectors=len(self.model.weights) > len(NAMES)))

    def predict_proba(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Probabilities of the relations for each pair of (premise, statement), shape [pairs, 3].

        Of a long premise the sentences nearest to the statement are read (:func:`nearest_parts`).
        """
        parts = nearest_parts(pairs, encoder=self.encoder) if pairs else []
        read = [(part, statement) for part, (_, statement) in zip(parts, pairs, strict=True)]
        return self.probabilities(pair_features(read, self.encoder))

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """The most probable relation of each pair."""
        return [RELATIONS[place] for place in self.predict_proba(pairs).argmax(axis=1)]

    def score(self, pairs: Sequence[LabelledPair]) -> Evaluation:
        """Figures of the three relations; they say something only of statements that it was not trained on."""
        return pair_scores(pairs, self.predict_proba([(pair.premise, pair.statement) for pair in pairs]))

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """See :class:`SavedModel`."""
        facts = {"relations": list(RELATIONS), "features": list(NAMES), "provenance": self.provenance.facts()}
        return self.model.arrays(), facts

    @classmethod
    def load(cls, path: Path = BUNDLED_HEAD) -> Self:
        """Read a head exactly as it was saved, the bundled one by default; errors as :meth:`SavedModel.load`."""
        return super().load(path)

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """See :class:`SavedModel`."""
        if tuple(facts["features"]) != NAMES or tuple(facts["relations"]) != RELATIONS:
            raise ValueError("it reads other features than this version of climassay has")
        model = LinearModel.read(arrays, len(RELATIONS))
        if len(model.weights) < len(NAMES):
            raise ValueError(f"weights has shape {model.weights.shape}")
        if facts["version"] > 1:
            return cls(model, Provenance.read(facts["provenance"]))
        old = Provenance.read(facts["source"], items="pairs", groups="statements", measured="cross_validated")
        return cls(model, old)


class HeadEntailment:
    """A head as a scorer of pairs; see :class:`~climassay.metrics.entailment.RelationScorer`."""

    def __init__(self, head: EntailmentHead, encoder: Encoder | None = None, *, name: str = "entailment head") -> None:
        """Prepare; nothing is encoded yet. The encoder is loaded by its name if None.

        Raises:
            InputError: Another encoder than the head's.
        """
        self.name = name
        self.head = head if encoder is None else head.with_models(encoder)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise confirms statement) of each pair; never None."""
        return [None if result is None else result.confirms for result in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations of each pair, in order; never None."""
        return [Relations(*row) for row in self.head.predict_proba(pairs).tolist()]


def unseen_pairs(pairs: Sequence[LabelledPair], scorer: RelationScorer) -> tuple[LabelledPair, ...]:
    """The pairs whose statements a trained head was not trained on; all of them for other scorers.

    Raises:
        InputError: None is left.
    """
    if not isinstance(scorer, HeadEntailment):
        return tuple(pairs)
    left = tuple(pair for pair in pairs if not scorer.head.provenance.knows(pair.statement))
    if not left:
        raise InputError("The head was trained on every statement of this file: give pairs it was not trained on.")
    return left


@dataclass(frozen=True, slots=True)
class HeadChoice:
    """One setting that was tried, and how it did on statements it was not fitted on."""

    regularisation: float
    synthetic_share: float
    """How many of the pairs made by rule were added."""
    vectors: bool
    """Whether the encoder's vectors are read, beside their cosines."""
    two_class_auroc: float = 0.5
    """Supports against refutes, on labelled pairs."""
    turned_auroc: float = 0.5
    """Confirms against contradicts, on pairs made by rule."""

    @property
    def merit(self) -> float:
        """The choice is made by it: the mean of the two.

        On labelled pairs alone a head may score by what a statement is about, for claims of some kinds are mostly
        refuted; on pairs made by rule only what distinguishes premise and statement counts.
        """
        return (self.two_class_auroc + self.turned_auroc) / 2


@dataclass(frozen=True, slots=True, eq=False)
class TrainedEntailment:
    """A head and the evidence behind it."""

    head: EntailmentHead
    choices: tuple[HeadChoice, ...]
    """All settings tried, best first."""


def split_pairs(
    pairs: Sequence[LabelledPair], held_out: float, encoder: Encoder | None, *, seed: int = 0
) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """Training and held-out pairs that share no statement, nor nearly the same ones.

    ``held_out`` is a share of the statements or from 1 on their number; without an encoder only those of the same words
    are nearly the same.

    Raises:
        InputError: There are not more statements than are to be held out.
    """
    statements = list(dict.fromkeys(pair.statement for pair in pairs))
    outside = hold_out(near_duplicate_groups(statements, encoder), held_out, seed=seed).test
    left_out = {statements[place] for place in outside}
    return (
        [pair for pair in pairs if pair.statement not in left_out],
        [pair for pair in pairs if pair.statement in left_out],
    )


def synthetic_pairs(pairs: Sequence[LabelledPair], *, seed: int = 0) -> tuple[list[LabelledPair], IntArray]:
    """Pairs made by rule of labelled ones.

    A statement that its premise confirms is turned round, which contradicts it. Of some premises a turned copy becomes
    a statement that contradicts them, and of some a copy, shortened where it can be, one that they confirm.

    Returns:
        The new pairs, and for each the place of the pair that it was made of, shape [new pairs].
    """
    results, places = [], []
    generator = np.random.default_rng(seed)
    for place, pair in enumerate(pairs):
        text = pair.premise.partition(": ")[2] or pair.premise
        shortened = cut_tail(text) or text
        made: list[tuple[str | None, int]] = []
        if pair.relation == 0:
            made.append((contradict(pair.statement, generator), 1))
        drawn = generator.random()
        if drawn < _TURN_PREMISE:
            made.append((contradict(text if generator.random() < 0.5 else shortened, generator), 1))
        elif drawn < _TURN_PREMISE + _SHORTEN_PREMISE:
            made.append((shortened, 0))
        new = [LabelledPair(pair.premise, said, relation) for said, relation in made if said]
        results += new
        places += [place] * len(new)
    return results, np.array(places, dtype=np.int64)


def train_entailment(
    table: PairTable,
    pairs: Sequence[LabelledPair],
    encoder: Encoder,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    on_fit: Callable[[], None] | None = None,
) -> TrainedEntailment:
    """Train a head; regularisation and the share of pairs made by rule are chosen by :attr:`HeadChoice.merit`.

    The table is where the pairs come from; the encoder also keeps statements that are nearly the same in one fold;
    ``on_fit`` is called after each setting tried.

    Raises:
        InputError: Fewer than two different statements, or not all three relations.
    """
    if {pair.relation for pair in pairs} != set(range(len(RELATIONS))):
        raise InputError(f"An entailment head learns from pairs of all relations: {', '.join(RELATIONS)}.")
    statements = list(dict.fromkeys(pair.statement for pair in pairs))
    dealt = group_folds(near_duplicate_groups(statements, encoder), folds, seed=seed)
    fold_of = dict(zip(statements, dealt.tolist(), strict=True))
    own = np.array([fold_of[pair.statement] for pair in pairs])
    made, sources = synthetic_pairs(pairs, seed=seed)
    every = [*pairs, *made]
    features = pair_features([(pair.premise, pair.statement) for pair in every], encoder)
    relations = np.array([pair.relation for pair in every])
    # Pairs made by rule that are below a share are added at this share; labelled ones always are.
    chances = np.concatenate([np.full(len(pairs), -1.0), np.random.default_rng(seed).random(len(made))])
    splits = list(splits_of(np.concatenate([own, own[sources]])))

    def fit(spec: HeadChoice, places: IntArray) -> LinearModel:
        """Fit on some of the pairs.

        Pairs made by rule are mostly contradictions, whose frequency would be taken for that of real ones: the mean
        probability of each relation is made its share of the labelled pairs.
        """
        chosen, real = places[chances[places] < spec.synthetic_share], places[places < len(pairs)]
        blocks = features.blocks(vectors=spec.vectors, places=chosen)
        model = fit_linear(blocks, relations[chosen], len(RELATIONS), regularisation=spec.regularisation)
        given = model.probabilities(features.blocks(vectors=spec.vectors, places=real))
        shares = np.bincount(relations[real], minlength=len(RELATIONS)) / len(real)
        return replace(model, bias=model.bias + prior_shift(np.log(np.maximum(given, 1e-300)), shares))

    def held(spec: HeadChoice) -> FloatArray:
        def predict(model: LinearModel, test: IntArray) -> FloatArray:
            return model.probabilities(features.blocks(vectors=spec.vectors, places=test))

        return held_out(splits, partial(fit, spec), predict, len(every))

    def aurocs(found: FloatArray) -> tuple[float, float]:
        """Supports against refutes on labelled pairs, and confirms against contradicts on pairs made by rule."""
        decided, turned = np.flatnonzero(relations[: len(pairs)] < 2), np.arange(len(pairs), len(found))
        scores, positive = supporting(found), relations == 0
        return auroc(scores[decided], positive[decided]), auroc(scores[turned], positive[turned])

    specs = [HeadChoice(*one) for one in product(REGULARISATIONS, SYNTHETIC_SHARES, (False, True))]
    tried = try_settings(specs, held, lambda found: sum(aurocs(found)) / 2, on_fit)
    choices = [
        replace(one.spec, two_class_auroc=two, turned_auroc=turned)
        for one, (two, turned) in ((one, aurocs(one.probabilities)) for one in tried)
    ]
    best, guesses = choices[0], tried[0].probabilities[: len(pairs)]
    known = tuple(dict.fromkeys(words_id(pair.statement) for pair in pairs))
    three, two_class = pair_scores(pairs, guesses), pair_scores(pairs, guesses, two_class=True)
    provenance = Provenance(
        data=table.name,
        data_sha256=table.sha256,
        items=len(pairs),
        groups=len(known),
        regularisation=best.regularisation,
        seed=seed,
        measured={
            **three.figures,
            "two_class_auroc": best.two_class_auroc,
            "two_class_accuracy": two_class.accuracy.value,
            "two_class_constant": two_class.constant.value,
            "turned_auroc": best.turned_auroc,
        },
        trained_on=known,
        settings={"turned": int((chances < best.synthetic_share).sum()) - len(pairs)},
    ).reading(encoder)
    return TrainedEntailment(EntailmentHead(fit(best, np.arange(len(every))), provenance), tuple(choices))


BUNDLED = "bundled"
_MEANINGS = {"entailment": 0, "contradiction": 1, "neutral": 2, "supports": 0, "refutes": 1, "not enough info": 2}
"""How models call the relations, in lower case, as places in :data:`~climassay.metrics.entailment.RELATIONS`."""
_BATCH = 16


def load_entailment(
    name: str = BUNDLED,
    *,
    model: OptionScorer | None = None,
    encoder: Encoder | None = None,
    load: Callable[[str], Generator] = load_model,
    profile: ProfileSettings | None = None,
) -> RelationScorer:
    """An entailment scorer by its name.

    Args:
        name: One of

            - ``bundled``: the head that comes with climassay, on the bundled encoder;
            - ``prompted:MODEL``: a model asked whether a passage confirms, contradicts or leaves open;
            - ``supports:MODEL``: the paper's judge, SUPPORTS or REFUTES;
            - ``nli:MODEL``: a cross-encoder trained on inference data, a folder or hub id;
            - a file that ``climassay metrics entailment train`` wrote.
        model: Used instead of loading ``MODEL``, for example one that is recorded.
        encoder: Encoder of a head; loaded by its name if None.
        load: From the name of a model to the model.
        profile: Whether ``prompted:`` is calibrated, where the user has set it.

    Raises:
        InputError: The name is not one of these, or the model gives no probabilities.
        ModelError: The model cannot be loaded.
    """
    kind, _, rest = name.partition(":")
    if name == BUNDLED:
        return (
            bundled_entailment() if encoder is None else HeadEntailment(EntailmentHead.load(), encoder, name="bundled")
        )
    if kind in ("prompted", "supports") and rest:
        asked = load(rest) if model is None else model
        if model is None and not isinstance(asked, OptionScorer):
            raise InputError(f"{rest} gives no probabilities of answers: use another model as entailment scorer.")
        asked = cast(OptionScorer, asked)
        if kind == "supports":
            return PromptedSupport(asked)
        return PromptedEntailment(asked, calibrated=profile_of(asked, profile).calibrated)
    if kind == "nli" and rest:
        return load_classifier(rest)
    file = Path(name).expanduser()
    if file.suffix == ".safetensors" or file.is_file():
        return HeadEntailment(EntailmentHead.load(file), encoder, name=file.name)
    raise InputError(
        f"{name!r} names no entailment scorer: write bundled, prompted:MODEL, supports:MODEL, nli:MODEL, or the file of"
        " a trained head."
    )


@lru_cache(maxsize=1)
def bundled_entailment() -> HeadEntailment:
    """The bundled scorer, loaded once."""
    return HeadEntailment(EntailmentHead.load(), name=BUNDLED)


def model_name(name: str) -> str | None:
    """The language model that a scorer asks; None where it asks none."""
    kind, _, rest = name.partition(":")
    return rest if kind in ("prompted", "supports") and rest else None


class ClassifierEntailment:
    """A sequence classifier of two texts, its labels recognised by the names in its configuration.

    Weights are read from safetensors only, and code that comes with a model is never run. A model with two labels
    (entailment or not) gives what is not entailed to "leaves open": it does not tell contradictions.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Prepare; weights are loaded when first used."""
        self.name = name
        self._folder = folder

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails statement) of each pair; never None."""
        return [None if result is None else result.confirms for result in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations of each pair, in order; a premise too long is cut at its end."""
        import torch

        network, tokenizer, places = self._loaded
        result: list[Relations | None] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]) + len(pairs[place][1]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            first, second = zip(*(pairs[place] for place in batch), strict=True)
            tokens = tokenizer(list(first), list(second), padding=True, truncation="longest_first", max_length=512,
                               return_tensors="pt")  # fmt: skip
            with torch.inference_mode():
                rows = network(**tokens.to(network.device)).logits.double().softmax(dim=1).tolist()
            for place, row in zip(batch, rows, strict=True):
                shares = [0.0, 0.0, 0.0]
                for label, probability in enumerate(row):
                    shares[places[label]] += probability
                result[place] = Relations(*shares)
        return result

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Mapping[int, int]]:
        try:
            from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError(f"{self.name} needs transformers: pip install 'climassay[local]'.") from error
        try:
            config = AutoConfig.from_pretrained(self._folder, local_files_only=True, trust_remote_code=False)
            places = label_places(self.name, config.id2label)
            network = AutoModelForSequenceClassification.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
            )
            tokenizer = AutoTokenizer.from_pretrained(self._folder, local_files_only=True, trust_remote_code=False)
        except ModelError:
            raise
        except Exception as error:
            # What transformers raises for a damaged folder, or one that wants its own code run, is of no one family.
            said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
            raise ModelError(f"The classifier {self.name} cannot be loaded from {self._folder}: {said}.") from error
        network.eval()
        return network, tokenizer, places


def load_classifier(name: str) -> ClassifierEntailment:
    """A classifier by its folder or hub id; its weights are loaded when first used.

    Raises:
        ModelError: There is no such model.
    """
    from climassay.models.local.loading import find_folder

    return ClassifierEntailment(f"nli:{name}", find_folder(name))


def label_places(name: str, labels: Mapping[int, str]) -> dict[int, int]:
    """For each label of a classifier its place in :data:`~climassay.metrics.entailment.RELATIONS`.

    Raises:
        ModelError: The labels are not those of inference data, for example LABEL_0.
    """
    results = {}
    for number, label in labels.items():
        said = label.lower().replace("_", " ").strip()
        # "not entailment" of two-class models: whatever is not entailed.
        place = 2 if said.startswith("not") else _MEANINGS.get(said)
        if place is None:
            raise ModelError(
                f"The classifier {name} calls its labels {', '.join(labels.values())}: entailment, contradiction and"
                " neutral are needed to know what they mean."
            )
        results[int(number)] = place
    if 0 not in results.values():
        raise ModelError(f"The classifier {name} has no label for entailment.")
    return results
