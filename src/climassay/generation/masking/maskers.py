"""Maskers: who chooses the term of a cloze statement that is left out, and the step of the pipeline that asks them.

ClimaQA (Liu et al. 2025), section 4.4 and appendix A.5.3.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, Subject
from climassay.generation.masking.words import FEATURES, GENERIC, candidates, count_words, word_features
from climassay.learning import softmax
from climassay.models import load_model
from climassay.models.contract import Generator, OptionRequest, OptionScorer
from climassay.models.profiles import ProfileSettings, profile_of
from climassay.prompts import load_prompt

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
    open_places = [
        place
        for place, draft in enumerate(drafts)
        if draft.kind == "cloze" and draft.usable and not draft.wording.answer
    ]
    choices = masker.choose([drafts[place].wording.question for place in open_places])
    masked = list(drafts)
    for place, choice in zip(open_places, choices, strict=True):
        draft, by = drafts[place], masker.name
        if choice is None:
            detail = "No word stands in the statement once that is neither a function word nor a number nor a unit."
            decided = draft.decided(Decision("mask", by, accepted=False, reason=NO_TERM, detail=detail))
        elif choice.error is not None:
            decided = draft.decided(Decision("mask", by, accepted=None, detail=choice.error))
        else:
            second = f", before {choice.ranked[1][0]} ({choice.ranked[1][1]:.2f})" if len(choice.ranked) > 1 else ""
            detail = f"{choice.term} ({choice.score:.2f}) of {len(choice.ranked)} words{second}."
            decision = Decision("mask", by, accepted=True, detail=detail, score=choice.score)
            decided = draft.reworded(replace(draft.wording, answer=choice.term), decision)
        masked[place] = decided
    return masked


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
            found = candidates(statement)
            general = np.array([word.term.casefold() in GENERIC for word in found])
            scores = word_features(statement, found, self._statistics) @ self._weights - _GENERAL * general
            chosen.append(Choice.scored([word.term for word in found], scores) if found else None)
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
        found = [[word.term for word in candidates(statement)] for statement in statements]
        places = [place for place, terms in enumerate(found) if terms]
        said = [(statements[place], found[place]) for place in places]
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
            chosen[place] = Choice.failed(error) if error else Choice.scored(found[place], scores)
        return chosen


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
    from climassay.generation.masking.trained import TrainedMasker

    return TrainedMasker.load(Path(name))
