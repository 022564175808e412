"""Multiple choice: asking a model and keeping what it chose.

Two ways of scoring. ``likelihood`` compares the model's log-probabilities of the option letters, so that there is
always a choice. ``letter`` lets the model write and takes the first option letter it wrote; an answer without one is
*unparsed* and counts as wrong, as does a failed request. Both are reported beside the number of each.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Literal

import numpy as np

from climassay.errors import InputError, ModelError
from climassay.evaluation.settings import Prepared, Setting
from climassay.models.contract import (
    Completion,
    GenerationRequest,
    Generator,
    OptionRequest,
    OptionScorer,
    OptionScores,
    Sampling,
)
from climassay.prompts import Prompt, RenderedPrompt
from climassay.questions import Question, option_letter

Scoring = Literal["likelihood", "letter"]
LETTER_TOKENS = 8
"""Tokens a model may write in ``letter`` scoring: room for ``The answer is (c)``."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One question asked once."""

    question: str
    """Id of the question."""
    level: str | None
    setting: str
    scoring: Scoring
    permutation: int
    """Number of the option order, 0 for the order of the file."""
    order: tuple[int, ...]
    """Position p showed option ``order[p]``."""
    chosen: int | None
    """Index of the chosen option in the file's order; None when unparsed or failed."""
    position: int | None
    """Position at which the chosen option stood."""
    correct: bool
    correct_position: int
    logprobs: tuple[float, ...] = ()
    """Of the letters, by position (``likelihood`` only)."""
    text: str = ""
    """What the model wrote (``letter`` only)."""
    method: str = ""
    """How log-probabilities were got, see :class:`~climassay.models.contract.OptionScores`."""
    passages: tuple[str, ...] = ()
    """Ids of the retrieved passages."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Asking:
    """A question in one option order under one setting."""

    question: Question
    setting: str
    permutation: int
    order: tuple[int, ...]
    prepared: Prepared


def option_orders(options: int, wanted: int, seed: int) -> list[tuple[int, ...]]:
    """Distinct orders of a question's options, the file's own first.

    The first ``options`` orders are rotations, in which every option stands at every position exactly once; further
    ones are drawn at random from the rest.

    Args:
        options: Number of options, k.
        wanted: Number of orders, 1 or more; at most k! are possible and given.
        seed: Seed of the draw.

    Returns:
        Orders; position p of an order holds the index of the option shown there.
    """
    if wanted < 1:
        raise InputError(f"At least one option order is needed, not {wanted}.")
    rotations = [tuple((start + shift) % options for shift in range(options)) for start in range(options)]
    if wanted <= options:
        return rotations[:wanted]
    # Beyond 7 options all orders no longer fit in memory, and a prefix of them is as good a pool as any.
    pool = [order for order in islice(permutations(range(options)), 5040) if order not in set(rotations)]
    drawn = np.random.default_rng(seed).permutation(len(pool))[: wanted - options]
    return rotations + [pool[int(index)] for index in drawn]


def ask_mcq(
    questions: Sequence[Question],
    model: Generator,
    settings: Sequence[Setting],
    prompt: Prompt,
    *,
    scorings: Sequence[Scoring] = ("likelihood",),
    orders: int = 1,
    seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> list[Prediction]:
    """Ask every question in every setting, scoring and option order.

    Args:
        questions: Multiple-choice questions with options and a correct one.
        model: Any generator; ``likelihood`` needs an option scorer.
        settings: What the model is given besides the question.
        prompt: Template with ``question``, ``options`` (``letter``, ``text``) and ``passages``.
        scorings: ``likelihood``, ``letter`` or both.
        orders: Option orders a question, see :func:`option_orders`.
        seed: Seed of the orders beyond rotations.
        on_progress: Called with the number of answers that came in.

    Returns:
        Predictions, ordered by setting, scoring, question and order.

    Raises:
        ModelError: The model gives no log-probabilities and ``likelihood`` is asked for.
    """
    if "likelihood" in scorings and not isinstance(model, OptionScorer):
        raise ModelError(f"{model.name} gives no log-probabilities: use letter scoring (--scoring letter).")
    predictions: list[Prediction] = []
    for setting in settings:
        prepared = setting.prepare(questions)
        askings = [
            _Asking(question, setting.name, number, order, given)
            for question, given in zip(questions, prepared, strict=True)
            for number, order in enumerate(option_orders(len(question.options), orders, seed))
        ]
        rendered = [_render(asking, prompt) for asking in askings]
        for scoring in scorings:
            ask = _ask_likelihood if scoring == "likelihood" else _ask_letter
            predictions += ask(askings, rendered, model, on_progress)
    return predictions


def _render(asking: _Asking, prompt: Prompt) -> RenderedPrompt:
    shown = asking.question.arranged(asking.order)
    options = [{"letter": option_letter(place), "text": text} for place, text in enumerate(shown)]
    return prompt.render(question=asking.question.question, options=options, passages=asking.prepared.passages)


def _ask_likelihood(
    askings: Sequence[_Asking],
    rendered: Sequence[RenderedPrompt],
    model: Generator,
    on_progress: Callable[[int], None] | None,
) -> list[Prediction]:
    assert isinstance(model, OptionScorer)
    requests = [
        OptionRequest(prompt.messages, _letters(len(asking.order), prompt.assistant_prefix), prompt.assistant_prefix)
        for asking, prompt in zip(askings, rendered, strict=True)
    ]
    scores = model.option_logprobs(requests, on_result=_counting(on_progress))
    return [_from_scores(asking, score) for asking, score in zip(askings, scores, strict=True)]


def _letters(count: int, prefix: str) -> tuple[str, ...]:
    """Option letters as the model would write them after the prefix (``Answer:`` is followed by a space)."""
    gap = " " if prefix and not prefix[-1].isspace() else ""
    return tuple(gap + option_letter(place) for place in range(count))


def _ask_letter(
    askings: Sequence[_Asking],
    rendered: Sequence[RenderedPrompt],
    model: Generator,
    on_progress: Callable[[int], None] | None,
) -> list[Prediction]:
    requests = [
        GenerationRequest(prompt.messages, Sampling(max_tokens=LETTER_TOKENS), assistant_prefix=prompt.assistant_prefix)
        for prompt in rendered
    ]
    completions = model.generate(requests, on_result=_counting(on_progress))
    return [_from_completion(asking, answer) for asking, answer in zip(askings, completions, strict=True)]


def _counting(on_progress: Callable[[int], None] | None) -> Callable[[int, object], None] | None:
    return None if on_progress is None else lambda _index, _result: on_progress(1)


def _from_scores(asking: _Asking, score: OptionScores) -> Prediction:
    return _predict(
        asking,
        "likelihood",
        position=score.best,
        logprobs=score.logprobs,
        method="" if score.error else score.method,
        error=score.error,
    )


def _from_completion(asking: _Asking, answer: Completion) -> Prediction:
    position = None if answer.error else parse_letter(answer.text, len(asking.order))
    return _predict(asking, "letter", position=position, text=answer.text, error=answer.error)


def _predict(
    asking: _Asking,
    scoring: Scoring,
    *,
    position: int | None,
    logprobs: tuple[float, ...] = (),
    text: str = "",
    method: str = "",
    error: str | None = None,
) -> Prediction:
    question = asking.question
    assert question.correct is not None
    chosen = None if position is None else asking.order[position]
    return Prediction(
        question=question.id,
        level=question.level,
        setting=asking.setting,
        scoring=scoring,
        permutation=asking.permutation,
        order=asking.order,
        chosen=chosen,
        position=position,
        correct=chosen == question.correct,
        correct_position=asking.order.index(question.correct),
        logprobs=logprobs,
        text=text,
        method=method,
        passages=asking.prepared.passage_ids,
        error=error,
    )


def parse_letter(text: str, options: int) -> int | None:
    """Position of the option whose letter an answer gives, or None.

    The answer may be the letter alone, a lettered option (``c) ...``, ``(C)``, ``**c**``) or name it after *answer* or
    *option*. A lone ``a`` inside a sentence is an article, not an answer.

    Args:
        text: What the model wrote.
        options: Number of options.
    """
    last = option_letter(options - 1)
    letter = rf"[a-{last}A-{last.upper()}]"
    stripped = text.strip().strip("*_`\"'").strip()
    start = re.match(rf"\(?\[?({letter})(?:[)\].:,*]|\s*$|\s*\n)", stripped)
    named = re.search(
        rf"\b(?:answer|option|choice)\b(?:\s+is)?\s*:?\s*[(\[*]*({letter})\b(?!\w)", stripped, re.IGNORECASE
    )
    marked = re.search(rf"\(({letter})\)", stripped)
    found = start or named or marked
    return None if found is None else ord(found[1].lower()) - ord("a")
