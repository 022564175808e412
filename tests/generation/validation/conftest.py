"""Drafts, an encoder of shared words and a model of made-up states, for tests of what is learned from them."""

import hashlib

import numpy as np
import pytest

from climassay.generation import Decision, Draft, Origin, SourcePassage, Wording
from climassay.generation.validation import LabelSet
from climassay.generation.validation.labels import LabelledDraft
from climassay.models import Activations, OptionScores, Work
from word_encoder import WordEncoder


def draft(number, *, passage=None, kind="freeform", question=None, answer="It warms.", options=(), decisions=()):
    text = f"Passage {number if passage is None else passage} says that the ocean warms and the ice melts."
    return Draft(
        id=f"q{number}",
        kind=kind,
        level="base",
        wording=Wording(question or f"What does number {number} do?", answer, options, 0 if options else None),
        passages=(SourcePassage(f"p{number}", text, "book", "A book"),),
        origin=Origin("local:test", "f" * 64, (), 0),
        decisions=tuple(decisions),
    )


class VerdictModel:
    """Says VALID where the answer has the word warms; its states say so too. ``fail`` in a question fails."""

    name, dtype, token_budget, layers, fingerprint = "local:verdicts", "float32", 100, 4, "a" * 64
    parameters = 1000
    work = Work(0, 0)

    def __init__(self):
        self.asked = []

    def render(self, messages, assistant_prefix=""):
        return "\n".join(message.content for message in messages) + assistant_prefix

    def generate(self, requests, *, on_result=None):
        raise AssertionError("a validator asks for probabilities")

    def close(self):
        pass

    def option_logprobs(self, requests, *, on_result=None):
        found = []
        for index, request in enumerate(requests):
            prompt = self.render(request.messages)
            self.asked.append(prompt)
            if "fail" in prompt:
                found.append(OptionScores.failed("The model fails."))
            else:
                valid = 2.0 * ("Answer: It warms." in prompt)
                found.append(OptionScores((valid - 3.0, -2.0)))
            if on_result is not None:
                on_result(index, found[-1])
        return found

    def harvest(self, requests, *, layers=(-1,), token_budget=None, on_result=None):
        found = []
        for index, request in enumerate(requests):
            prompt = self.render(request.messages)
            if "fail" in prompt:
                found.append(Activations.failed("The model fails."))
            else:
                seed = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16)
                states = np.random.default_rng(seed).normal(size=(2, len(layers), 6)).astype(np.float32)
                states[0, :, 0] += 4.0 * ("Answer: It warms." in prompt)
                found.append(Activations(states, (-1.0, -1.0), 10))
            if on_result is not None:
                on_result(index, found[-1])
        return found


@pytest.fixture
def make_draft():
    return draft


@pytest.fixture
def encoder():
    return WordEncoder("local:words", width=32, fingerprint="e" * 64)


@pytest.fixture
def verdicts():
    return VerdictModel()


@pytest.fixture
def labels():
    """Sixty labelled drafts, a third invalid: their answer says that it cools; two drafts share each passage."""
    drafts = []
    for number in range(60):
        valid = number % 3 != 0
        made = draft(number, passage=number // 2, answer="It warms." if valid else "It cools.")
        drafts.append(LabelledDraft(made, valid, "" if valid else "wrong answer"))
    return LabelSet("made up", tuple(drafts), 0, (), "0" * 64)


@pytest.fixture
def expert():
    return lambda accepted, reason="": Decision("expert", "anna", accepted, reason)
