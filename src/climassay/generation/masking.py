"""Choose the term that is left out of a cloze statement: by a model, or by a rule if there is none.

References:
    ClimaQA (Manivannan et al. 2025), section 4.4 and appendix A.5.3.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, Subject, apply_where
from climassay.generation.terms import GENERIC, TermCandidate, candidates, words
from climassay.learning import softmax
from climassay.models import load_model
from climassay.models.contract import Generator, OptionRequest, OptionScorer, unwrap_model
from climassay.prompts import load_prompt

STATISTICS = "statistics"
NO_TERM = "no term to mask"
"""Reason for rejecting a statement in which no word can be masked."""
_VERB_OR_ADVERB = re.compile(r"(?:ly|ing|ed|ise|ize|ises|izes|ify|ifies|able|ible)$")
_STEM_LENGTH = 5
"""Number of initial letters that two words must share to count as forms of the same word."""
_JOINER = re.compile(r"[-‐‑–’']")


@dataclass(frozen=True, slots=True)
class Choice:
    """Term that a masker chose, or the error if it failed."""

    term: str
    """Term as it appears in the statement; empty if ``error`` is set."""
    score: float
    """Probability of the term among all candidates."""
    ranked: tuple[tuple[str, float], ...]
    """All candidates with their probabilities, best first."""
    error: str | None = None
    """Error of the model call in one sentence; None if the call succeeded."""

    @classmethod
    def of(cls, ranked: Sequence[tuple[str, float]]) -> "Choice":
        """Choose the most probable term of one or more (term, probability) pairs, in a tie the first."""
        sorted_pairs = tuple(sorted(ranked, key=lambda pair: -pair[1]))
        return cls(*sorted_pairs[0], sorted_pairs)

    @classmethod
    def scored(cls, terms: Sequence[str], scores: ArrayLike) -> "Choice":
        """Choose the term with the highest score; the softmax of the scores, shape [terms], gives the probabilities."""
        probabilities = softmax(np.asarray(scores, dtype=np.float64)).tolist()
        return cls.of(list(zip(terms, probabilities, strict=True)))

    @classmethod
    def failed(cls, error: str) -> "Choice":
        """Return a choice that records an error and has no term."""
        return cls("", 0.0, (), error)


class Masker(Protocol):
    """Interface of maskers, which choose the scientific term to mask in a statement."""

    @property
    def name(self) -> str:
        """Name of the masker, recorded in its decisions."""

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """Choose a term in each statement; None if no word can be masked."""


def mask(drafts: Sequence[Draft], masker: Masker) -> list[Draft]:
    """Choose a term in every cloze statement that has none, and return all drafts in the same order.

    All other drafts, and those that failed or are rejected, are unchanged. The text of the statement is unchanged, too:
    :meth:`Draft.as_question` inserts the gap.
    """

    def add_choice(draft: Draft, choice: Choice | None) -> Draft:
        if choice is None:
            detail = "Every word of the statement is repeated, or is a function word, a number or a unit."
            return draft.with_decisions(Decision("mask", masker.name, accepted=False, reason=NO_TERM, detail=detail))
        if choice.error is not None:
            return draft.with_decisions(Decision("mask", masker.name, accepted=None, detail=choice.error))
        runner_up_text = f", before {choice.ranked[1][0]} ({choice.ranked[1][1]:.2f})" if len(choice.ranked) > 1 else ""
        detail = f"{choice.term} ({choice.score:.2f}) of {len(choice.ranked)} words{runner_up_text}."
        decision = Decision("mask", masker.name, accepted=True, detail=detail, score=choice.score)
        return draft.with_wording(replace(draft.wording, answer=choice.term), decision)

    def choose_terms(statements: Sequence[Draft]) -> list[Draft]:
        return list(map(add_choice, statements, masker.choose([draft.wording.question for draft in statements])))

    return apply_where(
        lambda draft: draft.type.has_gap and draft.usable and not draft.wording.answer, choose_terms, drafts
    )


class StatisticsMasker:
    """Masker that prefers words that are rare in general English and terms of a glossary.

    The score of a word is its negative Zipf frequency (log10 of its occurrences in a billion words; Speer 2022,
    wordfreq 3.0). The score rises by 2 if the glossary lists the word. The score is reduced by 1.5 for a word that
    looks like a verb or an adverb, by 1.5 for a compound, by 1 if another form of the word occurs in the statement, and
    by 10 if the word is common in scientific texts of any field. These weights were set by hand.
    """

    name = STATISTICS

    def __init__(self, glossary: Iterable[str] = ()) -> None:
        self._glossary = {word.term.casefold() for term in glossary for word in words(term)}

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """Choose the word with the highest score in each statement; None if no word can be masked."""
        choices: list[Choice | None] = []
        for statement in statements:
            words = candidates(statement)
            scores = [self._score(word, statement) for word in words]
            choices.append(Choice.scored([word.term for word in words], scores) if words else None)
        return choices

    def _score(self, word: TermCandidate, statement: str) -> float:
        from wordfreq import zipf_frequency

        term = word.term.casefold()
        frequency = min(zipf_frequency(part, "en", wordlist="large") for part in _JOINER.split(term) if part)
        score = -max(float(frequency), 1.0)
        score += 2.0 * (term in self._glossary or term.removesuffix("s") in self._glossary)
        score -= 1.5 * (_VERB_OR_ADVERB.search(term) is not None) + 1.5 * (not term.isalnum())
        stems = [form.term.casefold()[:_STEM_LENGTH] for form in words(statement)]
        score -= stems.count(term[:_STEM_LENGTH]) > 1
        return score - 10.0 * (term in GENERIC)


@dataclass(frozen=True)
class PromptedMasker:
    """Masker that asks a model for the probability of each candidate word (ClimaQA, A.5.3, with prompts of our own)."""

    model: OptionScorer
    subject: Subject = field(default_factory=Subject)
    """Field of science of the statements."""
    prompts: Path | None = None
    """Folder of templates that replace the built-in template ``mask``."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """Choose the most probable word of each statement; None if no word can be masked.

        If a request fails, its choice has an error instead of a term.
        """
        prompt = load_prompt("mask", self.prompts)
        terms_by_index = {}
        requests = []
        for index, statement in enumerate(statements):
            if terms := [word.term for word in candidates(statement)]:
                terms_by_index[index] = terms
                rendered_prompt = prompt.render(statement=statement, field=self.subject.field)
                # The prefix ends without a space, so the space belongs to the answer, as in the models' tokens.
                options = tuple(f" {term}" for term in terms)
                requests.append(OptionRequest(rendered_prompt.messages, options, rendered_prompt.assistant_prefix))
        answers = self.model.option_logprobs(requests) if requests else []
        choices: list[Choice | None] = [None] * len(statements)
        for (index, terms), answer in zip(terms_by_index.items(), answers, strict=True):
            choices[index] = Choice.failed(answer.error) if answer.error else Choice.scored(terms, answer.logprobs)
        return choices


def open_masker(
    name: str = STATISTICS,
    *,
    glossary: Iterable[str] = (),
    subject: Subject | None = None,
    prompts: Path | None = None,
    load: Callable[[str], Generator] = load_model,
) -> Masker:
    """Create a masker by its name.

    Args:
        name: ``statistics`` or ``prompted:MODEL``.
        glossary: Preferred terms, for ``statistics``.
        subject: Field of science of the statements, for ``prompted``.
        prompts: Folder of templates that replace built-in ones, for ``prompted``.
        load: Function that loads a model by its name.

    Raises:
        InputError: The masker does not exist, or the model gives no log-probabilities.
    """
    if name == STATISTICS:
        return StatisticsMasker(glossary)
    kind, _, model_name = name.partition(":")
    if kind != "prompted":
        raise InputError(f"There is no masker {name!r}: write statistics or prompted:MODEL.")
    if not model_name:
        raise InputError("The masker 'prompted' asks a model: name one, as in prompted:local:smollm2.")
    model = load(model_name)
    if not isinstance(unwrap_model(model), OptionScorer):
        raise InputError(f"{model.name} gives no log-probabilities, which the masker 'prompted' needs.")
    return PromptedMasker(cast(OptionScorer, model), subject or Subject(), prompts)
