"""Maskers: who chooses the term of a cloze statement that is left out, and the step of the pipeline that asks them.

By statistics, by asking a model, or learned from experts: a conditional logit over the words of each statement, linear
in features of them with and without an encoder. ClimaQA (Liu et al. 2025), section 4.4 and appendix A.5.3.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, Subject, read_drafts, where
from climassay.generation.masking.words import (
    FEATURES,
    GENERIC,
    Candidate,
    WordStatistics,
    candidates,
    count_words,
    word_features,
)
from climassay.io import parse_json, read_text
from climassay.learning import ModelFormat, Provenance, SavedModel, checked_array, softmax
from climassay.learning.linear import Scaling, conditional_loss, minimise
from climassay.learning.splits import held_out, splits_of
from climassay.metrics.overlap import TokenEncoder, TokenVectors, token_encoder
from climassay.models import load_model
from climassay.models.contract import Generator, OptionRequest, OptionScorer
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.prompts import ProfileSettings, load_prompt, profile_of
from climassay.questions import GAP, QuestionSet, read_questions
from climassay.statistics import Estimate, proportion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

STATISTICS = "statistics"
NO_TERM = "no term to mask"
"""Reason of the decision where a statement has no word that could be masked."""
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "rarity": 1.0,
        "keyness": 0.25,
        "glossary": 2.0,
        "length": 0.0,
        "position": 0.5,
        "named": 1.0,
        "noun": 0.5,
        "verbal": -1.5,
        "eponym": 0.0,
        "place": -2.0,
        "symbol": -1.0,
        "compound": -1.5,
        "repeated": -1.0,
    }
)
"""Set by hand, in units of one power of ten of rarity; not fitted to any labels."""

_GENERAL = 10.0
"""Taken off the score of a word that reports of any science have: such words come last, whatever their features."""
_NOTHING = "..."
"""The statement of the content-free prompt."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The term that a masker chose, or why it could not."""

    term: str
    """As it appears in the statement; empty where ``error`` is set."""
    score: float
    """Share of the masker's belief that went to the term, among all candidates; 0 to 1."""
    ranked: tuple[tuple[str, float], ...]
    """Every candidate with its score, best first; the scores sum to 1."""
    error: str | None = None
    """Why nothing could be decided, in one sentence: a model's failed answer."""

    @classmethod
    def of(cls, ranked: Sequence[tuple[str, float]]) -> "Choice":
        """The choice of the best of one or more candidates; of equals the first given wins."""
        ordered = tuple(sorted(ranked, key=lambda pair: -pair[1]))
        return cls(*ordered[0], ordered)

    @classmethod
    def scored(cls, terms: Sequence[str], scores: ArrayLike) -> "Choice":
        """The choice among terms by their scores, shape [terms], whose softmax makes them shares."""
        shares = softmax(np.asarray(scores, dtype=np.float64)).tolist()
        return cls.of(list(zip(terms, shares, strict=True)))

    @classmethod
    def failed(cls, error: str) -> "Choice":
        """A choice that records a failure."""
        return cls("", 0.0, (), error)


class Masker(Protocol):
    """Anything that picks the scientific term of a statement."""

    @property
    def name(self) -> str:
        """As decisions name it."""

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """The term of each statement, in order; None where no word can be masked."""


def mask(drafts: Sequence[Draft], masker: Masker) -> list[Draft]:
    """Choose the term of every cloze statement that has none yet; as many drafts in the same order.

    Drafts of other kinds, failed or rejected ones, and statements whose term an expert has chosen pass through. The
    statement's words stay as they are: the gap is made where the draft becomes a question.
    """

    def decided(draft: Draft, choice: Choice | None) -> Draft:
        by = masker.name
        if choice is None:
            detail = "No word stands in the statement once that is neither a function word nor a number nor a unit."
            return draft.decided(Decision("mask", by, accepted=False, reason=NO_TERM, detail=detail))
        if choice.error is not None:
            return draft.decided(Decision("mask", by, accepted=None, detail=choice.error))
        second = f", before {choice.ranked[1][0]} ({choice.ranked[1][1]:.2f})" if len(choice.ranked) > 1 else ""
        detail = f"{choice.term} ({choice.score:.2f}) of {len(choice.ranked)} words{second}."
        decision = Decision("mask", by, accepted=True, detail=detail, score=choice.score)
        return draft.reworded(replace(draft.wording, answer=choice.term), decision)

    def masked(own: Sequence[Draft]) -> list[Draft]:
        return list(map(decided, own, masker.choose([draft.wording.question for draft in own])))

    return where(lambda one: one.kind == "cloze" and one.usable and not one.wording.answer, masked, drafts)


class StatisticsMasker:
    """TF-IDF's thought with general English as the other documents, and rules on how and where a term stands.

    The score of a word is a weighted sum of its features (:data:`WEIGHTS`); the softmax over the statement's words
    makes them shares.
    """

    name = STATISTICS

    def __init__(
        self, passages: Iterable[str] = (), glossary: Iterable[str] = (), *, weights: Mapping[str, float] = WEIGHTS
    ) -> None:
        """Count the collection's words; without any, only general English counts.

        Terms of the glossary are preferred wherever they occur. A feature without a weight counts nothing.
        """
        self._statistics = count_words(passages, glossary)
        self._weights = np.array([weights.get(name, 0.0) for name in FEATURES])

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """The term of each statement, in order; None where no word can be masked."""
        chosen: list[Choice | None] = []
        for statement in statements:
            result = candidates(statement)
            general = np.array([word.term.casefold() in GENERIC for word in result])
            scores = word_features(statement, result, self._statistics) @ self._weights - _GENERAL * general
            chosen.append(Choice.scored([word.term for word in result], scores) if result else None)
        return chosen


@dataclass(frozen=True)
class PromptedMasker:
    """The model weighs every candidate word as its answer (ClimaQA, A.5.3, in our words).

    A small model prefers words that are short and frequent whatever the statement. So what it gives each word after a
    prompt whose statement is only dots is taken off again (contextual calibration, Zhao et al. 2021).
    """

    model: OptionScorer
    subject: Subject = field(default_factory=Subject)
    """The science that statements are about."""
    prompts: Path | None = None
    """Folder of templates that replace built-in ones (``mask``)."""
    calibrated: bool | None = None
    """Take off what words get without a statement, which doubles the requests; by default as the profile says."""

    @property
    def name(self) -> str:
        """That of the model."""
        return self.model.name

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """The term of each statement; None where no word can be masked; with an error where the request failed."""
        calibrated = profile_of(self.model).calibrated if self.calibrated is None else self.calibrated
        prompt = load_prompt("mask", self.prompts)
        results = [[word.term for word in candidates(statement)] for statement in statements]
        places = [place for place, terms in enumerate(results) if terms]
        said = [(statements[place], results[place]) for place in places]
        asked = []
        for statement, terms in [*said, *((_NOTHING, terms) for _, terms in said if calibrated)]:
            shown = prompt.render(statement=statement, field=self.subject.field)
            # The prefix ends without a space, so the space is the answer's, as tokenizers want it.
            options = tuple(f" {term}" for term in terms)
            asked.append(OptionRequest(shown.messages, options, shown.assistant_prefix))
        answers = self.model.option_logprobs(asked) if asked else []
        chosen: list[Choice | None] = [None] * len(statements)
        for number, place in enumerate(places):
            given, plain = answers[number], answers[len(places) + number] if calibrated else None
            if "generated" in (given.method, plain.method if plain is not None else ""):
                plain = None  # A named answer is not a distribution that could be corrected.
            error = given.error or (plain.error if plain is not None else None)
            scores = np.array(given.logprobs) - (0.0 if plain is None or error else np.array(plain.logprobs))
            chosen[place] = Choice.failed(error) if error else Choice.scored(results[place], scores)
        return chosen


REGULARISATION = 10.0
"""Prior variance of what a block of features adds to a word's logit."""
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
        result = choices_of(read_questions(path))
    else:
        result = [
            ExpertChoice(draft.wording.question, draft.wording.answer)
            for draft in drafts
            if draft.wording.answer and any(one.step == "expert" and one.accepted for one in draft.decisions)
        ]
    if not result:
        raise InputError(f"{path} has no cloze statement whose term an expert chose as one of its words.")
    return result


@cache
def bundled_reader() -> TokenEncoder:
    """The bundled encoder's tokens, loaded when they are first asked for."""
    return token_encoder(BUNDLED_ENCODER)


def context_features(
    statements: Sequence[str], found: Sequence[Sequence[Candidate]], reader: TokenEncoder
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Impact and vectors of the candidates of statements.

    The impact of a word is 1 less the cosine between the statement and the statement without the word, each the mean of
    its tokens' vectors: the paper asks for the word "that has a significant impact if removed" (ClimaQA, A.5.3). The
    vector is the mean over the word's tokens less the mean over the statement's, so that what is learned is about words
    and not about the topics of the statements.

    Returns:
        For each statement impacts, shape [candidates, 1], and vectors, shape [candidates, width]. A word behind the end
        of what the encoder reads has the vector 0.
    """
    whole = reader.encode(statements)
    cut = [
        " ".join((statement[: word.start] + statement[word.end :]).split())
        for statement, own in zip(statements, found, strict=True)
        for word in own
    ]
    terms = [word.term for own in found for word in own]
    left, spelled = iter(reader.encode(cut)), iter(reader.encode(terms))
    features = []
    for statement, text, own in zip(statements, whole, found, strict=True):
        middle = _mean(text)
        impacts = []
        for _ in own:
            without = _mean(next(left))
            size = float(np.linalg.norm(middle) * np.linalg.norm(without))
            impacts.append([1.0 - (float(middle @ without) / size if size else 0.0)])
        vectors = []
        for word in own:
            # A candidate appears in its statement once, so its tokens tell where.
            alone = next(spelled)
            tokens = [token for token, special in zip(alone.ids, alone.special, strict=True) if not special]
            ends = range(len(tokens), len(text.ids) + 1) if tokens else ()
            starts = [end - len(tokens) for end in ends if list(text.ids[end - len(tokens) : end]) == tokens]
            if not starts:
                vectors.append(np.zeros(len(middle)))
                continue
            # Where the tokens of a short word also begin a longer one, take the place nearest to the word's own.
            share = word.start / len(statement)
            best = min(starts, key=lambda start: abs(start / len(text.ids) - share))
            vectors.append(text.vectors[best : best + len(tokens)].mean(axis=0).astype(np.float64) - middle)
        features.append((np.array(impacts).reshape(len(own), 1), np.array(vectors).reshape(len(own), len(middle))))
    return features


def _mean(text: TokenVectors) -> NDArray[np.float64]:
    kept = text.vectors if text.empty else text.vectors[~text.special]
    return np.asarray(kept.mean(axis=0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class MaskerFeatures:
    """What a trained masker looks at, besides the features of words."""

    impact: bool = True
    """How the statement changes without the word (:func:`context_features`)."""
    vectors: bool = True
    """The word's vector in the statement."""

    def blocks(
        self,
        statements: Sequence[str],
        found: Sequence[Sequence[Candidate]],
        statistics: WordStatistics,
        reader: TokenEncoder | None = None,
    ) -> list[FloatArray]:
        """Blocks of features of all candidates, one statement after the other, shape [candidates, features] each.

        Those of words and the impact are one block, the vectors the other.
        """
        plain = [word_features(statement, own, statistics) for statement, own in zip(statements, found, strict=True)]
        if not (self.impact or self.vectors):
            return [np.concatenate(plain)]
        seen = context_features(statements, found, reader or bundled_reader())
        impact = [np.concatenate([impact for impact, _ in seen])] if self.impact else []
        first = np.concatenate([np.concatenate(plain), *impact], axis=1)
        return [first, np.concatenate([vectors for _, vectors in seen])] if self.vectors else [first]


@dataclass(frozen=True, eq=False)
class TrainedMasker(SavedModel):
    """A softmax over the words of a statement, linear in their features (conditional logit)."""

    FORMAT = ModelFormat("climassay-masker", 2, "masker", "climassay generate mask train")

    weights: FloatArray
    """Shape [features]: those of words, then impact, then the vector, as :attr:`reading` says; for raw features."""
    reading: MaskerFeatures = field(default_factory=MaskerFeatures)
    statistics: WordStatistics = field(default_factory=WordStatistics)
    provenance: Provenance = field(default_factory=Provenance)
    """``accuracy@1`` and ``accuracy@3`` are measured, each statement left out once."""
    reader: TokenEncoder | None = None
    """Encoder of tokens, where it needs one; the bundled one if None. Not saved."""

    @property
    def name(self) -> str:
        """As decisions name it."""
        return "trained"

    def predict_proba(self, statements: Sequence[str]) -> list[FloatArray]:
        """Shares of each statement's candidates, in its order, shape [candidates] each; empty where none can be masked.

        Raises:
            MissingExtraError: It reads an encoder, and the packages for that are not installed.
        """
        results = [candidates(statement) for statement in statements]
        places = [place for place, own in enumerate(results) if own]
        shares = [np.zeros(0)] * len(statements)
        if places:
            kept = [statements[place] for place in places], [results[place] for place in places]
            blocks = self.reading.blocks(*kept, self.statistics, self.reader)
            scores = np.concatenate(blocks, axis=1) @ self.weights
            ends = np.cumsum([len(results[place]) for place in places])[:-1]
            for place, own in zip(places, np.split(scores, ends), strict=True):
                shares[place] = softmax(own)
        return shares

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """The term of each statement with all its candidates ranked; None where no word can be masked."""
        return [
            _ranked(statement, shares) if len(shares) else None
            for statement, shares in zip(statements, self.predict_proba(statements), strict=True)
        ]

    def predict(self, statements: Sequence[str]) -> list[str | None]:
        """The term of each statement; None where no word can be masked."""
        return [None if choice is None else choice.term for choice in self.choose(statements)]

    def score(self, choices: Sequence[ExpertChoice]) -> MaskingScores:
        """How often it agrees with experts; this says something only of choices that it was not trained on."""
        return measure(self, choices)

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """See :class:`SavedModel`."""
        facts = {
            "features": list(FEATURES),
            "reading": asdict(self.reading),
            "glossary": sorted(self.statistics.glossary),
            "counts": dict(self.statistics.counts),
            "provenance": self.provenance.facts(),
        }
        return {"weights": self.weights}, facts

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read one exactly as it was saved, also a JSON file of an earlier climassay; see :meth:`SavedModel.load`."""
        if path.is_file():
            with path.open("rb") as opened:
                start = opened.read(200)
            # A safetensors file begins with the length of its header, whose last bytes are 0.
            if start[:1] == b"{" and b"\0" not in start[:8] and cls.FORMAT.name.encode() in start:
                try:
                    row = parse_json(read_text(path))
                    return cls.build(row, {"weights": np.array(row["weights"], dtype=np.float64)})
                except (AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError) as error:
                    raise InputError(f"The masker {path} is damaged ({error}); train it again.") from None
        return super().load(path)

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """See :class:`SavedModel`."""
        if facts["features"] != list(FEATURES):
            raise ValueError("it reads word features that this version of climassay does not compute")
        reading, weights = MaskerFeatures(**facts["reading"]), checked_array("weights", arrays["weights"], (None,))
        least = len(FEATURES) + int(reading.impact)
        if not (len(weights) > least if reading.vectors else len(weights) == least):
            raise ValueError(f"it has {weights.size} weights")
        counts = {str(word): int(count) for word, count in facts["counts"].items()}
        renamed = {"items": "statements", "measured": "held_out"} if facts["version"] == 1 else {}
        source = Provenance.read(facts["provenance"], **renamed)
        return cls(weights, reading, WordStatistics(counts, frozenset(facts["glossary"])), source)


def train_masker(
    choices: Sequence[ExpertChoice],
    *,
    data: str = "",
    statistics: WordStatistics | None = None,
    reading: MaskerFeatures | None = None,
    measured: bool = True,
    reader: TokenEncoder | None = None,
) -> TrainedMasker:
    """Fit a masker to expert choices, whose name it keeps; by default it looks at everything, with the bundled encoder.

    ``measured`` leaves each statement out once and keeps the accuracies.

    Raises:
        InputError: Fewer than five choices, or a term that is not a candidate of its statement.
    """
    if len(choices) < FEWEST:
        raise InputError(f"A masker needs at least {FEWEST} expert choices, there are {len(choices)}.")
    looks, words = reading or MaskerFeatures(), statistics or WordStatistics()
    blocks, sets, chosen = _material(choices, looks, words, reader)
    figures: dict[str, float] = {}
    if measured:
        scores = accuracies("trained", choices, _left_out(choices, blocks, sets, chosen))
        figures = {"accuracy@1": scores.first.value, "accuracy@3": scores.among_three.value}
    encoder = (reader or bundled_reader()).name if looks.impact or looks.vectors else ""
    source = Provenance(
        data=data, items=len(choices), encoder=encoder, regularisation=REGULARISATION, measured=figures
    )  # fmt: skip
    return TrainedMasker(fit(blocks, sets, chosen), looks, words, source, reader)


def leave_one_out(
    choices: Sequence[ExpertChoice],
    *,
    statistics: WordStatistics | None = None,
    reading: MaskerFeatures | None = None,
    reader: TokenEncoder | None = None,
) -> list[Choice | None]:
    """The choice for each statement by a masker fitted on all the others; arguments as :func:`train_masker`."""
    material = _material(choices, reading or MaskerFeatures(), statistics or WordStatistics(), reader)
    return _left_out(choices, *material)


def fit(
    blocks: Sequence[FloatArray], sets: IntArray, chosen: NDArray[np.bool_], regularisation: float = REGULARISATION
) -> FloatArray:
    """Weights, shape [features], of the softmax over each statement's words that best explain the experts' words.

    Args:
        blocks: Features of all candidates, shape [candidates, features] each.
        sets: Number of each candidate's statement, shape [candidates], ascending.
        chosen: Whether the candidate is the expert's word, shape [candidates]; one of each statement is.
        regularisation: Prior variance; larger trusts the choices more.
    """
    # The mean of a feature moves all words of a statement alike: the softmax does not see it.
    ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
    parts = np.split(Scaling.of(blocks).factor, ends)
    # Features that do not vary among these choices keep their part of what a block may say.
    factor = np.concatenate([part * np.sqrt((part > 0).mean()) for part in parts])
    rows, numbers = np.concatenate(blocks, axis=1) * factor, np.unique(sets, return_inverse=True)[1]
    loss = conditional_loss(numbers, np.flatnonzero(chosen))
    return np.asarray(minimise(rows, loss, regularisation).weights * factor)


def measure(masker: Masker, choices: Sequence[ExpertChoice]) -> MaskingScores:
    """How often a masker that has not seen the choices agrees with them; a failed choice counts as wrong."""
    return accuracies(masker.name, choices, masker.choose([choice.statement for choice in choices]))


def accuracies(name: str, choices: Sequence[ExpertChoice], chosen: Sequence[Choice | None]) -> MaskingScores:
    """Accuracy among the first and the first three, with Wilson's 95% intervals."""
    best = [[] if one is None else [term for term, _ in one.ranked[:3]] for one in chosen]
    hits = [sum(expert.term in terms[:count] for expert, terms in zip(choices, best, strict=True)) for count in (1, 3)]
    return MaskingScores(name, *(proportion(count, len(choices)) for count in hits))


def _material(
    choices: Sequence[ExpertChoice], reading: MaskerFeatures, statistics: WordStatistics, reader: TokenEncoder | None
) -> tuple[list[FloatArray], IntArray, NDArray[np.bool_]]:
    """Blocks of features of all candidates, the statement of each, and whether it is the expert's word."""
    results = [candidates(choice.statement) for choice in choices]
    for choice, own in zip(choices, results, strict=True):
        if choice.term not in {word.term for word in own}:
            raise InputError(f"{choice.term!r} is not a word to be masked in the statement {choice.statement!r}.")
    chosen = [word.term == choice.term for choice, own in zip(choices, results, strict=True) for word in own]
    sets = np.repeat(np.arange(len(results)), [len(own) for own in results])
    blocks = reading.blocks([choice.statement for choice in choices], results, statistics, reader)
    return blocks, sets, np.array(chosen)


def _left_out(
    choices: Sequence[ExpertChoice], blocks: Sequence[FloatArray], sets: IntArray, chosen: NDArray[np.bool_]
) -> list[Choice | None]:
    rows = np.concatenate(blocks, axis=1)
    scores = held_out(
        splits_of(sets),
        lambda train: fit([block[train] for block in blocks], sets[train], chosen[train]),
        lambda weights, test: rows[test] @ weights,
        len(rows),
    )
    return [_ranked(one.statement, softmax(scores[sets == number])) for number, one in enumerate(choices)]


def _ranked(statement: str, shares: FloatArray) -> Choice:
    terms = (word.term for word in candidates(statement))
    return Choice.of(list(zip(terms, shares.tolist(), strict=True)))


def open_masker(
    name: str = STATISTICS,
    *,
    model: Generator | None = None,
    passages: Iterable[str] = (),
    glossary: Iterable[str] = (),
    subject: Subject | None = None,
    prompts: Path | None = None,
    load: Callable[[str], Generator] = load_model,
    profile: ProfileSettings | None = None,
) -> Masker:
    """The masker of a name.

    Args:
        name: ``statistics``, ``prompted:MODEL`` or the file of a trained masker.
        model: What ``prompted`` asks, with or without a name behind it; loaded by that name if None.
        passages: Texts of the collection, for ``statistics``.
        glossary: Terms, for ``statistics``.
        subject: For ``prompted``.
        prompts: Folder of templates that replace built-in ones, for ``prompted``.
        load: From the name of a model to the model.
        profile: Whether ``prompted`` is calibrated, where the user has set it.

    Raises:
        InputError: There is no such masker, or the model cannot weigh options.
    """
    if name == STATISTICS:
        return StatisticsMasker(passages, glossary)
    kind, _, asked = name.partition(":")
    if kind == "prompted":
        if model is None and not asked:
            raise InputError("The masker 'prompted' asks a model: name one, as in prompted:local:smollm2.")
        model = load(asked) if model is None else model
        if not isinstance(model, OptionScorer):
            raise InputError(f"{model.name} gives no log-probabilities, which the masker 'prompted' needs.")
        calibrated = profile_of(model, profile).calibrated
        return PromptedMasker(model, subject or Subject(), prompts=prompts, calibrated=calibrated)
    if not Path(name).is_file():
        raise InputError(
            f"There is no masker {name!r}: write statistics, prompted:MODEL, or the file of a trained one."
        )
    return TrainedMasker.load(Path(name))
