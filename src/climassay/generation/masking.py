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
from climassay.generation.draft import Decision, Draft, Subject, apply_where
from climassay.generation.terms import GENERIC, TermCandidate, candidates, words
from climassay.learning import softmax
from climassay.models import load_model
from climassay.models.contract import Generator, OptionRequest, OptionScorer
from climassay.prompts import ProfileSettings, load_prompt, profile_of

STATISTICS = "statistics"
NO_TERM = "no term to mask"
"""Rejection reason for a statement that has no word to mask."""
_NOTHING = "..."
"""Statement of the content-free prompt."""
_VERBAL = re.compile(r"(?:ly|ing|ed|ise|ize|ises|izes|ify|ifies|able|ible)$")
_STEM = 5
"""Number of equal first letters by which two words count as forms of the same word."""
_JOINED = re.compile(r"[-‐‑–’']")


@dataclass(frozen=True, slots=True)
class Choice:
    """The term that a masker chose, or the error if it failed."""

    term: str
    """Term as it appears in the statement; empty if ``error`` is set."""
    score: float
    """Probability of the term among all candidates, 0 to 1."""
    ranked: tuple[tuple[str, float], ...]
    """All candidates with their probabilities, best first."""
    error: str | None = None
    """Error of the model's failed answer, in one sentence."""

    @classmethod
    def of(cls, ranked: Sequence[tuple[str, float]]) -> "Choice":
        """Return the choice of the best of one or more (term, probability) pairs; the first of equals wins."""
        ordered = tuple(sorted(ranked, key=lambda pair: -pair[1]))
        return cls(*ordered[0], ordered)

    @classmethod
    def scored(cls, terms: Sequence[str], scores: ArrayLike) -> "Choice":
        """Return the choice among terms by the softmax of their scores, shape [terms]."""
        shares = softmax(np.asarray(scores, dtype=np.float64)).tolist()
        return cls.of(list(zip(terms, shares, strict=True)))

    @classmethod
    def failed(cls, error: str) -> "Choice":
        """Return a choice that records a failure."""
        return cls("", 0.0, (), error)


class Masker(Protocol):
    """Chooses the scientific term of a statement that is masked."""

    @property
    def name(self) -> str:
        """Name of the masker in decisions."""

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """Return the term of each statement, in order; None if no word can be masked."""


def mask(drafts: Sequence[Draft], masker: Masker) -> list[Draft]:
    """Choose the term of every cloze statement without one, and return all drafts in the same order.

    Drafts of other kinds, failed and rejected drafts, and statements that have a term are unchanged. The statement
    itself is unchanged, too: :meth:`Draft.as_question` inserts the gap.
    """

    def decided(draft: Draft, choice: Choice | None) -> Draft:
        by = masker.name
        if choice is None:
            detail = "Every word of the statement is repeated, or is a function word, a number or a unit."
            return draft.with_decisions(Decision("mask", by, accepted=False, reason=NO_TERM, detail=detail))
        if choice.error is not None:
            return draft.with_decisions(Decision("mask", by, accepted=None, detail=choice.error))
        second = f", before {choice.ranked[1][0]} ({choice.ranked[1][1]:.2f})" if len(choice.ranked) > 1 else ""
        detail = f"{choice.term} ({choice.score:.2f}) of {len(choice.ranked)} words{second}."
        decision = Decision("mask", by, accepted=True, detail=detail, score=choice.score)
        return draft.with_wording(replace(draft.wording, answer=choice.term), decision)

    def masked(statements: Sequence[Draft]) -> list[Draft]:
        return list(map(decided, statements, masker.choose([draft.wording.question for draft in statements])))

    return apply_where(lambda draft: draft.type.has_gap and draft.usable and not draft.wording.answer, masked, drafts)


class StatisticsMasker:
    """Masks the term that is rarest in general English; terms of a glossary are preferred.

    The score of a word is minus its Zipf frequency (log10 of its uses in a billion words; Speer 2022, wordfreq 3.0),
    plus 2 if a glossary lists it, minus 1.5 if it looks like a verb or an adverb, minus 1.5 if it is a compound, minus
    1 if another form of it occurs in the statement, minus 10 if it is frequent in reports of any science. The weights
    were set by
    hand.
    """

    name = STATISTICS

    def __init__(self, glossary: Iterable[str] = ()) -> None:
        self._glossary = {word.term.casefold() for term in glossary for word in words(term)}

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """Return the term of each statement, in order; None if no word can be masked."""
        choices: list[Choice | None] = []
        for statement in statements:
            words = candidates(statement)
            scores = [self._score(word, statement) for word in words]
            choices.append(Choice.scored([word.term for word in words], scores) if words else None)
        return choices

    def _score(self, word: TermCandidate, statement: str) -> float:
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
    """Masker that asks a model for the probability of each candidate word (ClimaQA, A.5.3, in our words).

    A small model prefers short and frequent words whatever the statement. Its log-probability of each word after a
    prompt with an empty statement is therefore subtracted (contextual calibration, Zhao et al. 2021).
    """

    model: OptionScorer
    subject: Subject = field(default_factory=Subject)
    """Science of the statements."""
    prompts: Path | None = None
    """Folder of templates that replace the built-in template ``mask``."""
    calibrated: bool | None = None
    """Whether to subtract the log-probabilities without a statement, which doubles the requests; by default the
    model's profile decides."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """Return the choice for each statement, with an error if the request failed; None if no word can be masked."""
        calibrated = profile_of(self.model).calibrated if self.calibrated is None else self.calibrated
        prompt = load_prompt("mask", self.prompts)
        terms_by_index = {}
        for index, statement in enumerate(statements):
            if terms := [word.term for word in candidates(statement)]:
                terms_by_index[index] = terms
        pairs = [(statements[index], terms) for index, terms in terms_by_index.items()]
        requests = []
        for statement, terms in [*pairs, *((_NOTHING, terms) for _, terms in pairs if calibrated)]:
            rendered = prompt.render(statement=statement, field=self.subject.field)
            # The prefix ends without a space, so the space belongs to the answer, as in the models' tokens.
            options = tuple(f" {term}" for term in terms)
            requests.append(OptionRequest(rendered.messages, options, rendered.assistant_prefix))
        answers = self.model.option_logprobs(requests) if requests else []
        choices: list[Choice | None] = [None] * len(statements)
        for number, (index, terms) in enumerate(terms_by_index.items()):
            answer, baseline = answers[number], answers[len(pairs) + number] if calibrated else None
            if answer.is_named or (baseline is not None and baseline.is_named):
                baseline = None  # a named answer is no distribution that could be corrected
            error = answer.error or (baseline.error if baseline is not None else None)
            scores = np.array(answer.logprobs) - (0.0 if baseline is None or error else np.array(baseline.logprobs))
            choices[index] = Choice.failed(error) if error else Choice.scored(terms, scores)
        return choices


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
    """Return the masker with a name.

    Args:
        name: ``statistics`` or ``prompted:MODEL``.
        model: Model of the masker ``prompted``; loaded by the name after the colon if None.
        glossary: Terms, for ``statistics``.
        subject: Science of the statements, for ``prompted``.
        prompts: Folder of templates that replace built-in ones, for ``prompted``.
        load: Function that loads a model by its name.
        profile: Settings that may override whether ``prompted`` is calibrated.

    Raises:
        InputError: There is no such masker, or the model gives no log-probabilities.
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
