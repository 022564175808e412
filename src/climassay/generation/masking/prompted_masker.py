"""A masker that asks a language model which word to leave out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from climassay.generation.draft import Subject
from climassay.generation.masking.candidates import candidates
from climassay.generation.masking.choosing import Choice
from climassay.generation.masking.statistics_masker import shares
from climassay.models.contract import OptionRequest, OptionScorer, OptionScores
from climassay.models.profiles import profile_of
from climassay.prompts import load_prompt

_NOTHING = "..."
"""The statement of the content-free prompt."""


class PromptedMasker:
    """The model weighs every candidate word as its answer (ClimaQA, A.5.3, in our words).

    A small model prefers words that are short and frequent whatever the statement. So what it gives each word after a
    prompt whose statement is only dots is taken off again (contextual calibration, Zhao et al. 2021).
    """

    def __init__(
        self,
        model: OptionScorer,
        *,
        subject: Subject | None = None,
        prompts: Path | None = None,
        calibrated: bool | None = None,
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            model: Gives log-probabilities of options.
            subject: The science that statements are about.
            prompts: Folder of templates that replace built-in ones (``mask``).
            calibrated: Take off what words get without a statement, which doubles the requests; by default as the
                model's profile says.
        """
        self.name = model.name
        self._model = model
        self._subject = subject or Subject()
        self._prompt = load_prompt("mask", prompts)
        self._calibrated = profile_of(model).calibrated if calibrated is None else calibrated

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """The term of each statement, in order; None where no word can be masked.

        A failed request gives a choice with an error.
        """
        found = [[word.term for word in candidates(statement)] for statement in statements]
        places = [place for place, terms in enumerate(found) if terms]
        asked = [self._request(statements[place], found[place]) for place in places]
        if self._calibrated:
            asked += [self._request(_NOTHING, found[place]) for place in places]
        answers = self._model.option_logprobs(asked) if asked else []
        chosen: list[Choice | None] = [None] * len(statements)
        for number, place in enumerate(places):
            plain = answers[len(places) + number] if self._calibrated else None
            chosen[place] = _choice(found[place], answers[number], plain)
        return chosen

    def _request(self, statement: str, terms: Sequence[str]) -> OptionRequest:
        prompt = self._prompt.render(statement=statement, field=self._subject.field)
        # The prefix ends without a space, so the space is the answer's, as tokenizers want it.
        return OptionRequest(prompt.messages, tuple(f" {term}" for term in terms), prompt.assistant_prefix)


def _choice(terms: Sequence[str], given: OptionScores, plain: OptionScores | None) -> Choice:
    if "generated" in (given.method, plain.method if plain is not None else ""):
        plain = None  # A named answer is no distribution that could be corrected.
    error = given.error or (plain.error if plain is not None else None)
    if error is not None:
        return Choice.failed(error)
    scores = np.array(given.logprobs)
    if plain is not None:
        scores = scores - np.array(plain.logprobs)
    return Choice.of(list(zip(terms, shares(scores), strict=True)))
