"""Tasks: asking a model questions of a kind, and keeping what it chose or wrote.

Ways of scoring:

``likelihood``
    The model sees the lettered options; the letter with the highest log-probability is its choice, so that there always
    is one. This is what the published benchmark does.
``letter``
    The model sees the lettered options and writes; the letter it gives is its choice. Works with any chat API. If an
    answer names no option, a model that is prompted as a strong one is asked once, under a schema, which option it
    chose; such answers are counted as *asked again*. A small model would name any. An answer without a letter after
    that is *unparsed* and counts as wrong.
``text``
    The model sees the question only; the option whose text has the highest log-probability a character is its choice
    (``acc_norm`` of lm-evaluation-harness 0.4). Small models that cannot yet handle letters show here what they know.
    Has no option order.
``text-sum``, ``text-per-token``, ``text-per-byte``
    The same log-probabilities as they are (``acc`` of the harness, which favours short options), a token, and a byte of
    UTF-8 (``acc_bytes``). They are read from the same pass as ``text``.
``text-pmi``
    The same, less the log-probability of the option's text after the prompt without question, passages and examples:
    domain-conditional pointwise mutual information, log P(option | question) - log P(option | domain premise). No
    option is preferred for being a likely text.

Which of them counts is to be decided before the answers are seen: the best of several is too good by chance.

References:
    Holtzman et al. (2021), Surface Form Competition: Why the Highest Probability Answer Isn't Always Right, EMNLP,
    section 3 (``text-pmi``).

A failed request counts as wrong too; both are reported beside the accuracy.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Any, Literal, TypeGuard, get_args

import numpy as np

from climassay.corpus.documents import split_sentences
from climassay.errors import InputError, ModelError
from climassay.evaluation.settings import Prepared, Setting, TaskPrompts, after_prefix, example_values, lettered
from climassay.models.contract import (
    MIN_OPTION_MASS,
    Completion,
    GenerationRequest,
    Generator,
    OptionRequest,
    OptionScorer,
    OptionScores,
    Sampling,
    Windowed,
    object_schema,
)
from climassay.prompts import Prompt, RenderedPrompt, profile_of
from climassay.questions import Question, QuestionType

TextScoring = Literal["text", "text-sum", "text-per-token", "text-per-byte", "text-pmi"]
Scoring = Literal["likelihood", "letter"] | TextScoring
Reading = Literal["probability", "low mass", "enumeration", "text"]
"""How a choice was read from a model. ``probability``: the letters' probabilities, which are at least half of all.
``low mass``: likewise with less than half, so that the model would rather have written something else; local models
only. ``enumeration``: a server generated one of the letters under a schema that allows nothing else. ``text``: from
what the model wrote."""
_READINGS: Mapping[str, Reading] = {"constrained": "enumeration", "generated": "text"}


def _by_text(scoring: Scoring) -> TypeGuard[TextScoring]:
    return scoring in get_args(TextScoring)


ASKED_AGAIN = "asked again"
"""Method of a prediction whose text was not read: the model said which option it chose."""
WHICH_OPTION_TOKENS = 32
"""Maximum number of tokens of the JSON that names the chosen option."""
_NO_OPTION = "none"


@dataclass(frozen=True, slots=True)
class Prediction:
    """One question asked once."""

    question: str
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
    correct: bool
    correct_position: int
    logprobs: tuple[float, ...] = ()
    """Log-probabilities of the letters or texts, by position (all but ``letter``)."""
    scores: tuple[float, ...] = ()
    """What the choice was made by where options are scored by their texts: log-probabilities as the scoring has them,
    by position."""
    text: str = ""
    method: str = ""
    """How log-probabilities were got, see :class:`~climassay.models.contract.OptionScores`; :data:`ASKED_AGAIN` if the
    model was asked which option its text chose."""
    passages: tuple[str, ...] = ()
    note: str = ""
    """What was done to the context so that it fits, see :class:`~climassay.evaluation.settings.Prepared`."""
    error: str | None = None
    model: str = ""
    """The model's label in an experiment; runs of earlier versions lack it."""

    @property
    def reading(self) -> Reading | None:
        """How the choice was read; None if the request failed or options were scored by their texts."""
        if self.error is not None or _by_text(self.scoring):
            return None
        if self.scoring == "letter" or self.method in _READINGS:
            return _READINGS.get(self.method, "text")
        return "probability" if sum(map(math.exp, self.logprobs)) >= MIN_OPTION_MASS else "low mass"

    @property
    def probability(self) -> float | None:
        """Probability of the chosen option among the options (``likelihood``), or None.

        The probabilities of letters are comparable as they are; those of texts of different lengths are not.
        """
        if self.reading not in ("probability", "low mass") or self.position is None or not self.logprobs:
            return None
        return float(np.exp(self.logprobs[self.position] - np.logaddexp.reduce(self.logprobs)))


@dataclass(frozen=True, slots=True)
class _PresentedQuestion:
    """A question in one option order under one setting."""

    question: Question
    setting: str
    permutation: int
    order: tuple[int, ...]
    prepared: Prepared

    def render(self, prompt: Prompt, scoring: Scoring) -> RenderedPrompt:
        return prompt.render(
            question=self.question.question,
            options=lettered(self.question.arranged(self.order)),
            passages=self.prepared.passages,
            examples=[example_values(one, as_text=_by_text(scoring)) for one in self.prepared.examples],
        )

    def answers(self, scoring: Scoring, prefix: str) -> tuple[str, ...]:
        """Option letters or texts as the model would write them after the prefix."""
        shown = self.question.arranged(self.order)
        texts = shown if _by_text(scoring) else self.question.type.labels(shown)
        return tuple(after_prefix(prefix) + text for text in texts)

    def predict(self, scoring: Scoring, position: int | None, **more: Any) -> Prediction:
        """What came of it; ``more`` are further fields of :class:`Prediction`."""
        assert self.question.correct is not None
        chosen = None if position is None else self.order[position]
        return Prediction(
            question=self.question.id,
            level=self.question.level,
            setting=self.setting,
            scoring=scoring,
            permutation=self.permutation,
            order=self.order,
            chosen=chosen,
            position=position,
            correct=chosen == self.question.correct,
            correct_position=self.order.index(self.question.correct),
            passages=self.prepared.passage_ids,
            note=self.prepared.note,
            **more,
        )


def option_orders(options: int, wanted: int, seed: int) -> list[tuple[int, ...]]:
    """Distinct orders of a question's options, the file's own first.

    The first ``options`` orders are rotations, in which every option appears at every position exactly once; further
    ones are drawn at random from the rest.

    Args:
        options: Number of options, k.
        wanted: Number of orders, 1 or more; at most k! are possible and given.
        seed: Seed of the draw.

    Returns:
        Orders; position p of an order holds the index of the option shown there.

    Raises:
        InputError: Fewer than one order is wanted.
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
    prompts: TaskPrompts,
    *,
    scorings: Sequence[Scoring] = ("likelihood",),
    orders: int = 1,
    seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> list[Prediction]:
    """Ask every question in every setting, scoring and option order.

    Args:
        questions: Questions of one kind, with options and a correct one.
        model: Any generator; all but ``letter`` need an option scorer, and ``text-per-token`` one that counts tokens.
        settings: What the model is given besides the question.
        prompts: Templates.
        scorings: One or more, see the module.
        orders: Option orders a question, see :func:`option_orders`; scorings by text have one only.
        seed: Seed of the orders beyond rotations.
        on_progress: Called with the number of answers that came in.

    Returns:
        Predictions, ordered by setting, scoring, question and order.

    Raises:
        ModelError: The model gives no log-probabilities, or counts no tokens, which the scoring needs.
    """
    if any(scoring != "letter" for scoring in scorings) and not isinstance(model, OptionScorer):
        raise ModelError(f"{model.name} gives no log-probabilities: use letter scoring (--scoring letter).")
    if "text-per-token" in scorings:
        _counter(model)
    counting = None if on_progress is None else lambda _index, _result: on_progress(1)
    predictions: list[Prediction] = []
    for setting in settings:
        prepared = setting.prepare(questions, model)
        read: list[OptionScores] | None = None
        for scoring in scorings:
            askings = [
                _PresentedQuestion(question, setting.name, number, order, given)
                for question, given in zip(questions, prepared, strict=True)
                for number, order in enumerate(
                    option_orders(len(question.options), orders_of(question.type, scoring, orders), seed)
                )
            ]
            prompt = prompts.of(questions[0].kind, by_text=_by_text(scoring)) if questions else prompts.mcq
            rendered = [asking.render(prompt, scoring) for asking in askings]
            if scoring == "letter":
                room = profile_of(model).room(max((one.question.type.tokens for one in askings), default=0))
                sampling = Sampling(max_tokens=room)
                completions = model.generate(
                    [
                        GenerationRequest(one.messages, sampling, assistant_prefix=one.assistant_prefix)
                        for one in rendered
                    ],
                    on_result=counting,
                )
                predictions += _read_letters(askings, completions, model, prompts.which_option)
                continue
            assert isinstance(model, OptionScorer)
            requests = [
                OptionRequest(
                    one.messages,
                    asking.answers(scoring, one.assistant_prefix),
                    one.assistant_prefix,
                    enumerable=not _by_text(scoring),
                )
                for asking, one in zip(askings, rendered, strict=True)
            ]
            if not _by_text(scoring):
                for asking, score in zip(askings, model.option_logprobs(requests, on_result=counting), strict=True):
                    method = "" if score.error else score.method
                    predictions.append(
                        asking.predict(
                            "likelihood", score.best, logprobs=score.logprobs, method=method, error=score.error
                        )
                    )
                continue
            if read is None:
                read = model.option_logprobs(requests, on_result=counting)
            elif on_progress is not None:
                on_progress(len(askings))
            predictions += _from_texts(scoring, askings, requests, read, prompt, model)
    return predictions


def _read_letters(
    askings: Sequence[_PresentedQuestion], completions: Sequence[Completion], model: Generator, which_option: Prompt
) -> list[Prediction]:
    """Read which option each answer chooses; ask a strong model once about answers that name none."""
    positions: list[int | None] = []
    for asking, completion in zip(askings, completions, strict=True):
        arranged = asking.question.arranged(asking.order)
        kind = asking.question.type
        positions.append(None if completion.error else kind.choice(completion.text, len(arranged), arranged))
    unread = [
        index
        for index, (position, completion) in enumerate(zip(positions, completions, strict=True))
        if position is None and completion.error is None and completion.text.strip()
    ]
    named: dict[int, int] = {}
    if unread and profile_of(model).name == "strong":
        requests = [_which_option(askings[index], completions[index].text, which_option) for index in unread]
        for index, request, reply in zip(unread, requests, model.generate(requests), strict=True):
            labels = request.schema["properties"]["option"]["enum"] if request.schema else ()
            option = ""
            with suppress(ValueError, KeyError, TypeError):
                option = json.loads(reply.text)["option"]
            if option in labels and option != _NO_OPTION:
                named[index] = labels.index(option)
    return [
        asking.predict(
            "letter",
            named.get(index, position),
            text=completion.text,
            error=completion.error,
            method=ASKED_AGAIN if index in named else "",
        )
        for index, (asking, completion, position) in enumerate(zip(askings, completions, positions, strict=True))
    ]


def _which_option(asking: _PresentedQuestion, answer: str, prompt: Prompt) -> GenerationRequest:
    arranged = asking.question.arranged(asking.order)
    labels = asking.question.type.labels(arranged)
    options = [{"letter": label, "text": text} for label, text in zip(labels, arranged, strict=True)]
    rendered = prompt.render(question=asking.question.question, options=options, answer=answer)
    schema = object_schema({"option": {"enum": [*labels, _NO_OPTION]}})
    return GenerationRequest(rendered.messages, Sampling(max_tokens=WHICH_OPTION_TOKENS), schema)


def orders_of(kind: QuestionType, scoring: Scoring, wanted: int) -> int:
    """Option orders in which a question is asked: options that are not shown, or are always the same, have no order."""
    return 1 if _by_text(scoring) or kind.fixed else wanted


def _from_texts(
    scoring: TextScoring,
    askings: Sequence[_PresentedQuestion],
    requests: Sequence[OptionRequest],
    read: Sequence[OptionScores],
    prompt: Prompt,
    model: OptionScorer,
) -> list[Prediction]:
    """Choose by the texts' log-probabilities, as the scoring has them."""
    premises: Sequence[OptionScores | None] = [None] * len(askings)
    if scoring == "text-pmi":
        # The same options after the prompt with an empty question: the domain premise.
        bare = prompt.render(question="", options=[], passages=[], examples=[])
        premises = model.option_logprobs(
            [
                OptionRequest(bare.messages, request.options, bare.assistant_prefix, enumerable=False)
                for request in requests
            ]
        )
    predictions = []
    for asking, request, score, premise in zip(askings, requests, read, premises, strict=True):
        error = score.error or (None if premise is None else premise.error)
        scores: tuple[float, ...] = ()
        if error is None and premise is not None:
            scores = tuple(given - alone for given, alone in zip(score.logprobs, premise.logprobs, strict=True))
        elif error is None:
            lengths = _lengths(scoring, asking.question.arranged(asking.order), request, model)
            scores = tuple(total / length for total, length in zip(score.logprobs, lengths, strict=True))
        position = int(np.argmax(scores)) if scores else None
        method = "" if error else score.method
        predictions.append(
            asking.predict(scoring, position, logprobs=score.logprobs, scores=scores, method=method, error=error)
        )
    return predictions


def _lengths(scoring: TextScoring, shown: Sequence[str], request: OptionRequest, model: OptionScorer) -> list[int]:
    """What the log-probabilities of options are divided by."""
    if scoring == "text-sum":
        return [1] * len(shown)
    if scoring == "text-per-token":
        prompt = model.render(request.messages, request.assistant_prefix)
        alone, *together = _counter(model).count_tokens([prompt, *(prompt + option for option in request.options)])
        return [max(1, tokens - alone) for tokens in together]
    return [len(text.encode() if scoring == "text-per-byte" else text) for text in shown]


def _counter(model: Generator) -> Windowed:
    """The model, looked through where it is wrapped, as one that counts tokens."""
    inner: object = model
    while not isinstance(inner, Windowed):
        inner = getattr(inner, "wrapped", None)
        if inner is None:
            raise ModelError(f"{model.name} does not count tokens: use another scoring, for example text-per-byte.")
    return inner


@dataclass(frozen=True, slots=True)
class Written:
    """One question answered in words."""

    question: str
    text: str
    """The first paragraph (freeform) or first line (cloze) of what the model wrote; empty on failure."""
    prepared: Prepared
    violations: tuple[str, ...] = ()
    """Constraints that the answer does not keep."""
    error: str | None = None


def ask_written(
    questions: Sequence[Question],
    model: Generator,
    setting: Setting,
    prompts: TaskPrompts,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> list[Written]:
    """Ask freeform or cloze questions in one setting, greedily.

    The prompt asks for at most two sentences (freeform) or one scientific word (cloze). What the model writes beyond is
    kept and scored as it is, and the violation recorded; only what follows the first paragraph or line is left out,
    for small models go on with questions of their own.

    Args:
        questions: All of one kind that is answered in words.
        model: Any generator.
        setting: What the model is given besides.
        prompts: Templates.
        on_progress: Called with the number of answers that came in.

    Returns:
        One answer per question, in order.

    References:
        Manivannan et al. (2025), ClimaQA, section 5.1 (the constraints).
    """
    prepared = setting.prepare(questions, model)
    profile = profile_of(model)
    room = {question.kind: profile.room(question.type.tokens) for question in questions}
    requests = []
    for question, given in zip(questions, prepared, strict=True):
        rendered = prompts.render(question, given.passages, [example_values(one) for one in given.examples])
        sampling = Sampling(max_tokens=room[question.kind])
        requests.append(GenerationRequest(rendered.messages, sampling, assistant_prefix=rendered.assistant_prefix))
    answers = model.generate(
        requests, on_result=None if on_progress is None else lambda _index, _answer: on_progress(1)
    )
    written = []
    for question, given, answer in zip(questions, prepared, answers, strict=True):
        text = "" if answer.error is not None else question.type.answer(answer.text)
        broken: tuple[str, ...] = ()
        if answer.error is None:
            broken = question.type.violations(text, len(split_sentences(text)))
            if question.type.prose and answer.finish_reason == "length":
                broken = (*broken, f"cut at {room[question.kind]} tokens")
        written.append(Written(question.id, text, given, broken, answer.error))
    return written
