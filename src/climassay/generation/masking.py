"""Choose the term that is left out of a cloze statement: by a model, or by a rule if there is none.

References:
    ClimaQA (Liu et al. 2025), section 4.4 and appendix A.5.3.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, Subject, where
from climassay.generation.terms import GENERIC, Candidate, candidates, words
from climassay.learning import softmax
from climassay.models import load_model
from climassay.models.contract import Generator, OptionRequest, OptionScorer
from climassay.prompts import ProfileSettings, load_prompt, profile_of

STATISTICS = "statistics"
NO_TERM = "no term to mask"
"""Reason of the decision if a statement has no word that could be masked."""
_NOTHING = "..."
"""The statement of the content-free prompt."""
_VERBAL = re.compile(r"(?:ly|ing|ed|ise|ize|ises|izes|ify|ifies|able|ible)$")
_STEM = 5
"""Number of letters by which two words count as forms of one."""
_JOINED = re.compile(r"[-‐‑–’']")


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
    """Masks the term that is rarest in general English; terms of a glossary are preferred.

    The score of a word is minus its Zipf frequency (log10 of its uses in a billion words; Speer 2022, wordfreq 3.0),
    plus 2 if a glossary lists it, minus 1.5 if it looks like a verb or an adverb, minus 1.5 if it is a compound, minus
    1 if another form of it occurs in the statement, minus 10 if reports of any science have it. The weights were set by
    hand.
    """

    name = STATISTICS

    def __init__(self, glossary: Iterable[str] = ()) -> None:
        self._glossary = {word.term.casefold() for term in glossary for word in words(term)}

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """Return the term of each statement, in order; None if no word can be masked."""
        choices: list[Choice | None] = []
        for statement in statements:
            found = candidates(statement)
            scores = [self._score(word, statement) for word in found]
            choices.append(Choice.scored([word.term for word in found], scores) if found else None)
        return choices

    def _score(self, word: Candidate, statement: str) -> float:
        from wordfreq import zipf_frequency

        term = word.term.casefold()
        frequency = min(zipf_frequency(part, "en", wordlist="large") for part in _JOINED.split(term) if part)
        score = -max(float(frequency), 1.0)
        score += 2.0 * (term in self._glossary or term.removesuffix("s") in self._glossary)
        score -= 1.5 * (_VERBAL.search(term) is not None) + 1.5 * (not term.isalnum())
        score -= sum(other.term.casefold()[:_STEM] == term[:_STEM] for other in words(statement)) > 1
        return score - 10.0 * (term in GENERIC)


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
            if given.is_named or (plain is not None and plain.is_named):
                plain = None  # A named answer is not a distribution that could be corrected.
            error = given.error or (plain.error if plain is not None else None)
            scores = np.array(given.logprobs) - (0.0 if plain is None or error else np.array(plain.logprobs))
            chosen[place] = Choice.failed(error) if error else Choice.scored(results[place], scores)
        return chosen


def open_masker(
    name: str = STATISTICS,
    *,
    model: Generator | None = None,
    glossary: Iterable[str] = (),
    subject: Subject | None = None,
    prompts: Path | None = None,
    load: Callable[[str], Generator] = load_model,
    profile: ProfileSettings | None = None,
) -> Masker:
    """Return the masker of a name.

    Args:
        name: ``statistics`` or ``prompted:MODEL``.
        model: What ``prompted`` asks, with or without a name behind it; loaded by that name if None.
        glossary: Terms, for ``statistics``.
        subject: For ``prompted``.
        prompts: Folder of templates that replace built-in ones, for ``prompted``.
        load: Loads a model by its name.
        profile: Whether ``prompted`` is calibrated, if the user has set it.

    Raises:
        InputError: There is no such masker, or the model cannot weigh options.
    """
    if name == STATISTICS:
        return StatisticsMasker(glossary)
    kind, _, model_name = name.partition(":")
    if kind != "prompted":
        raise InputError(f"There is no masker {name!r}: write statistics or prompted:MODEL.")
    if model is None and not model_name:
        raise InputError("The masker 'prompted' asks a model: name one, as in prompted:local:smollm2.")
    model = load(model_name) if model is None else model
    if not isinstance(model, OptionScorer):
        raise InputError(f"{model.name} gives no log-probabilities, which the masker 'prompted' needs.")
    return PromptedMasker(
        model, subject or Subject(), prompts=prompts, calibrated=profile_of(model, profile).calibrated
    )
