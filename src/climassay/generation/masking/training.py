"""Learning to mask from expert choices, and how well it works on statements it was not fitted on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from climassay.errors import InputError
from climassay.generation.draft_files import read_drafts
from climassay.generation.masking.candidates import Candidate, candidates
from climassay.generation.masking.choosing import Choice, Masker
from climassay.generation.masking.context_features import ReadsWords, bundled_reader
from climassay.generation.masking.statistics_masker import shares
from climassay.generation.masking.trained_masker import (
    FloatArray,
    MaskerProvenance,
    MaskerReading,
    TrainedMasker,
    feature_blocks,
    masker_features,
)
from climassay.generation.masking.word_features import WordStatistics
from climassay.questions import GAP, QuestionSet, read_questions
from climassay.statistics import Estimate, proportion

REGULARISATION = 10.0
"""Prior variance of what a block of features adds to a word's logit, in standardised features."""
FEWEST = 5
"""Expert choices below which nothing is fitted."""


@dataclass(frozen=True, slots=True)
class ExpertChoice:
    """The term that a person masked."""

    statement: str
    """Whole, nothing masked."""
    term: str


@dataclass(frozen=True, slots=True)
class MaskingScores:
    """How often the expert's term was among a masker's first."""

    name: str
    first: Estimate
    """Share of statements whose term came first."""
    among_three: Estimate
    """Share of statements whose term was among the first three."""


def choices_of(questions: QuestionSet) -> list[ExpertChoice]:
    """Expert choices of cloze questions: the gap filled with its answer, where the answer is a single word."""
    filled = [
        ExpertChoice(question.question.replace(GAP, question.answer), question.answer)
        for question in questions.of_kind("cloze")
    ]
    return [choice for choice in filled if any(word.term == choice.term for word in candidates(choice.statement))]


def read_choices(path: Path) -> list[ExpertChoice]:
    """Expert choices of a file of drafts whose terms experts have chosen, or of a file of cloze questions.

    Raises:
        InputError: The file cannot be read or has no choice that can be learned from.
    """
    try:
        drafts = [draft for draft in read_drafts(path) if draft.kind == "cloze" and draft.usable]
    except InputError:
        found = choices_of(read_questions(path))
    else:
        found = [
            ExpertChoice(draft.wording.question, draft.wording.answer)
            for draft in drafts
            if draft.wording.answer and any(one.step == "expert" and one.accepted for one in draft.decisions)
        ]
    if not found:
        raise InputError(f"{path} has no cloze statement whose term an expert chose as one of its words.")
    return found


def train_masker(
    choices: Sequence[ExpertChoice],
    *,
    data: str = "",
    statistics: WordStatistics | None = None,
    reading: MaskerReading | None = None,
    regularisation: float = REGULARISATION,
    measure: bool = True,
    reader: ReadsWords | None = None,
) -> TrainedMasker:
    """Fit a masker to expert choices.

    Args:
        choices: Statements with the words that people masked.
        data: Name of the choices, kept with the masker.
        statistics: Word counts of the collection and a glossary.
        reading: What it looks at; by default everything there is.
        regularisation: Prior variance; larger trusts the choices more.
        measure: Leave each statement out once and keep the accuracies.
        reader: Encoder of tokens; by default the bundled one.

    Raises:
        InputError: Fewer than five choices, or a term that is no candidate of its statement.
    """
    if len(choices) < FEWEST:
        raise InputError(f"A masker needs at least {FEWEST} expert choices, there are {len(choices)}.")
    looks = reading or MaskerReading()
    rows, truth = _material(choices, looks, statistics, reader)
    held_out: dict[str, float] = {}
    if measure:
        scores = accuracies("trained", choices, _left_out(choices, rows, truth, looks, regularisation))
        held_out = {"accuracy@1": scores.first.value, "accuracy@3": scores.among_three.value}
    encoder = (reader or bundled_reader()).name if looks.encodes else ""
    source = MaskerProvenance(data, len(choices), regularisation, encoder, held_out)
    weights = fit(rows, truth, looks, regularisation)
    return TrainedMasker(weights, looks, statistics or WordStatistics(), source, reader)


def leave_one_out(
    choices: Sequence[ExpertChoice],
    *,
    statistics: WordStatistics | None = None,
    reading: MaskerReading | None = None,
    regularisation: float = REGULARISATION,
    reader: ReadsWords | None = None,
) -> list[Choice | None]:
    """The choice for each statement by a masker fitted on all the others; arguments as :func:`train_masker`."""
    looks = reading or MaskerReading()
    rows, truth = _material(choices, looks, statistics, reader)
    return _left_out(choices, rows, truth, looks, regularisation)


def measure(masker: Masker, choices: Sequence[ExpertChoice]) -> MaskingScores:
    """How often a masker that has not seen the choices agrees with them; a failed choice counts as wrong."""
    return accuracies(masker.name, choices, masker.choose([choice.statement for choice in choices]))


def accuracies(name: str, choices: Sequence[ExpertChoice], chosen: Sequence[Choice | None]) -> MaskingScores:
    """Accuracy among the first and the first three, with Wilson's 95% intervals."""
    ranks = [
        [term for term, _ in one.ranked].index(expert.term)
        if one is not None and any(term == expert.term for term, _ in one.ranked)
        else len(expert.statement)
        for expert, one in zip(choices, chosen, strict=True)
    ]
    count = len(ranks)
    return MaskingScores(
        name, proportion(sum(rank < 1 for rank in ranks), count), proportion(sum(rank < 3 for rank in ranks), count)
    )


def fit(rows: Sequence[FloatArray], truth: Sequence[int], reading: MaskerReading, regularisation: float) -> FloatArray:
    """Weights of the softmax over each statement's words that best explain the experts' words, with an L2 penalty.

    Features are standardised over all candidates, and each block is scaled to mean squared norm 1, so that a vector of
    hundreds of features does not drown a dozen; the weights given back are for raw features.

    Args:
        rows: Features of each statement's candidates, shape [candidates, features] each.
        truth: Place of the expert's word among each statement's candidates.
        reading: Says where the blocks lie.
        regularisation: Prior variance.

    References:
        McFadden (1974), conditional logit analysis of qualitative choice behavior.
    """
    from scipy.optimize import minimize

    every = np.concatenate(rows)
    deviation = every.std(axis=0)
    sizes = np.concatenate([np.full(size, np.sqrt(size)) for size in feature_blocks(reading, every.shape[1])])
    scale = np.where(deviation > 1e-9, 1 / (np.maximum(deviation, 1e-9) * sizes), 0.0)
    # The mean of a feature moves all words of a statement alike: the softmax does not see it.
    scaled = [one * scale for one in rows]

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        value, slope = float(weights @ weights) / (2 * regularisation), weights / regularisation
        for features, place in zip(scaled, truth, strict=True):
            given = np.array(shares(features @ weights))
            value -= float(np.log(max(given[place], 1e-300)))
            slope = slope + given @ features - features[place]
        return value, slope

    found = minimize(loss, np.zeros(every.shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(found.x * scale, dtype=np.float64)


def _material(
    choices: Sequence[ExpertChoice],
    reading: MaskerReading,
    statistics: WordStatistics | None,
    reader: ReadsWords | None,
) -> tuple[list[FloatArray], list[int]]:
    found = [candidates(choice.statement) for choice in choices]
    truth = [_place(choice, own) for choice, own in zip(choices, found, strict=True)]
    rows = masker_features([choice.statement for choice in choices], found, reading, statistics, reader)
    return rows, truth


def _place(choice: ExpertChoice, found: Sequence[Candidate]) -> int:
    place = next((number for number, word in enumerate(found) if word.term == choice.term), None)
    if place is None:
        raise InputError(f"{choice.term!r} is no word that could be masked in the statement {choice.statement!r}.")
    return place


def _left_out(
    choices: Sequence[ExpertChoice],
    rows: Sequence[FloatArray],
    truth: Sequence[int],
    reading: MaskerReading,
    regularisation: float,
) -> list[Choice | None]:
    chosen: list[Choice | None] = []
    for number, choice in enumerate(choices):
        others = [other for other in range(len(choices)) if other != number]
        weights = fit([rows[one] for one in others], [truth[one] for one in others], reading, regularisation)
        terms = [word.term for word in candidates(choice.statement)]
        chosen.append(Choice.of(list(zip(terms, shares(rows[number] @ weights), strict=True))))
    return chosen
