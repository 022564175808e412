"""Tasks: asking a model questions of a kind, and recording what it chose or wrote.

Scorings:

``likelihood``
    The model sees the lettered options; its choice is the letter with the highest log-probability, so that there is
    always a choice. The published benchmark does this.
``letter``
    The model sees the lettered options and generates text; its choice is the letter in the text. Works with any chat
    API. If an answer names no option, the model is asked once, under a schema, which option it chose; such answers
    are counted as *asked again*. An answer still without a letter is *unparsed* and counts as wrong.
``text``
    The model sees the question only; its choice is the option whose text has the highest log-probability per
    character (``acc_norm`` of lm-evaluation-harness 0.4). Small models that cannot yet handle letters show here what
    they know. Has no option order. Only local models can be scored by texts: chat servers give no log-probabilities of
    texts.
``text-sum``, ``text-per-token``, ``text-per-byte``
    As ``text``, with the log-probability not divided (``acc`` of the harness, which favours short options), or divided
    by tokens or by bytes of UTF-8 (``acc_bytes``). They reuse the log-probabilities of ``text``.
``text-pmi``
    As ``text-sum``, less the log-probability of the option's text after the prompt without question, passages and
    examples: domain-conditional pointwise mutual information, log P(option | question) - log P(option | domain
    premise). No option is preferred for being a likely text.

Decide which scoring counts before seeing the answers: the best of several is too good by chance.

References:
    Holtzman et al. (2021), Surface Form Competition: Why the Highest Probability Answer Isn't Always Right, EMNLP,
    section 3 (``text-pmi``).

A failed request counts as wrong too; unparsed and failed answers are reported with the accuracy.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Any, Literal, TypeGuard, get_args

import numpy as np

from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError, ModelError
from climassay.evaluation.settings import (
    PromptContext,
    Setting,
    TaskPrompts,
    after_prefix,
    example_values,
    with_letters,
)
from climassay.models.contract import (
    MIN_OPTION_MASS,
    Completion,
    ConcurrentModel,
    GenerationRequest,
    Generator,
    OptionRequest,
    OptionScorer,
    OptionScores,
    Sampling,
    Windowed,
    object_schema,
    unwrap_model,
)
from climassay.prompts import Prompt, RenderedPrompt, profile_of
from climassay.questions import Question, QuestionType

TextScoring = Literal["text", "text-sum", "text-per-token", "text-per-byte", "text-pmi"]
Scoring = Literal["likelihood", "letter"] | TextScoring
ReadingMethod = Literal["probability", "low mass", "enumeration", "text"]
"""Method by which a choice is determined from a model's response.

``probability``: from the probabilities of the letters, which sum to at least one half. ``low mass``: from probabilities
of the letters that sum to less; the model would more likely have written something else (local models only).
``enumeration``: from a letter that a server generated under a schema that allows nothing else. ``text``: from generated
text.
"""
_READING_METHODS: Mapping[str, ReadingMethod] = {"constrained": "enumeration", "generated": "text"}


def _is_by_text(scoring: Scoring) -> TypeGuard[TextScoring]:
    return scoring in get_args(TextScoring)


ASKED_AGAIN = "asked again"
"""Method of a prediction if the answer named no option and the model was asked which option it had chosen."""
WHICH_OPTION_TOKENS = 32
"""Maximum number of tokens of the JSON answer that names the chosen option."""
_NO_OPTION = "none"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A model's choice for a question in one option order."""

    question: str
    level: str | None
    setting: str
    scoring: Scoring
    permutation: int
    """Index of the option order; 0 is the order of the file."""
    order: tuple[int, ...]
    """Indices of the options by position: option ``order[p]`` was shown at position p."""
    chosen: int | None
    """Index of the chosen option in the order of the file; None if the answer failed or could not be parsed."""
    position: int | None
    correct: bool
    correct_position: int
    logprobs: tuple[float, ...] = ()
    """Log-probabilities of the options' letters or texts, by position; empty for the scoring ``letter``."""
    scores: tuple[float, ...] = ()
    """Scores of the options by position, for scorings by text: the log-probabilities after the scoring's
    normalisation."""
    text: str = ""
    method: str = ""
    """Method of the log-probabilities (:class:`~climassay.models.contract.OptionScores`), or :data:`ASKED_AGAIN`."""
    passages: tuple[str, ...] = ()
    note: str = ""
    """Note on a truncated context (:class:`~climassay.evaluation.settings.PromptContext`)."""
    error: str | None = None
    model: str = ""
    """Label of the model in an experiment; empty outside of experiments."""

    @property
    def reading(self) -> ReadingMethod | None:
        """Method by which the choice was determined; None for a failed request or options scored by their texts."""
        if self.error is not None or _is_by_text(self.scoring):
            return None
        if self.scoring == "letter" or self.method in _READING_METHODS:
            return _READING_METHODS.get(self.method, "text")
        return "probability" if sum(map(math.exp, self.logprobs)) >= MIN_OPTION_MASS else "low mass"

    @property
    def probability(self) -> float | None:
        """Probability of the chosen option relative to all options; None except for the scoring ``likelihood``.

        Unlike probabilities of letters, probabilities of texts with different lengths are not comparable.
        """
        if self.reading not in ("probability", "low mass") or self.position is None or not self.logprobs:
            return None
        return float(np.exp(self.logprobs[self.position] - np.logaddexp.reduce(self.logprobs)))


@dataclass(frozen=True, slots=True)
class _PresentedQuestion:
    """A question as presented to a model, in one setting and option order."""

    question: Question
    setting: str
    permutation: int
    order: tuple[int, ...]
    context: PromptContext

    def render(self, prompt: Prompt, scoring: Scoring) -> RenderedPrompt:
        return prompt.render(
            question=self.question.question,
            options=with_letters(self.question.order_options(self.order)),
            passages=self.context.passages,
            examples=[example_values(example, as_text=_is_by_text(scoring)) for example in self.context.examples],
        )

    def continuations(self, scoring: Scoring, prefix: str) -> tuple[str, ...]:
        """Return the letters or texts of the options as the model would write them after the prefix."""
        options = self.question.order_options(self.order)
        texts = options if _is_by_text(scoring) else self.question.type.labels(options)
        return tuple(after_prefix(prefix) + text for text in texts)

    def predict(self, scoring: Scoring, position: int | None, **fields: Any) -> Prediction:
        """Return the prediction that chooses the option at a position; ``fields`` are its further fields."""
        assert self.question.correct is not None
        option_index = None if position is None else self.order[position]
        return Prediction(
            question=self.question.id,
            level=self.question.level,
            setting=self.setting,
            scoring=scoring,
            permutation=self.permutation,
            order=self.order,
            chosen=option_index,
            position=position,
            correct=option_index == self.question.correct,
            correct_position=self.order.index(self.question.correct),
            passages=self.context.passage_ids,
            note=self.context.note,
            **fields,
        )


def option_orders(options: int, n_orders: int, seed: int) -> list[tuple[int, ...]]:
    """Return distinct orders of a question's options, beginning with the order of the file.

    The first k orders are rotations, so that each option appears once at each position. Further orders are drawn at
    random from the other permutations.

    Args:
        options: Number of options, k.
        n_orders: Number of orders, at least 1; no more than k! are returned.
        seed: Random seed with which orders beyond the rotations are drawn.

    Returns:
        Orders as tuples; element p is the index of the option shown at position p.

    Raises:
        InputError: ``n_orders`` is less than 1.
    """
    if n_orders < 1:
        raise InputError(f"At least one option order is needed, not {n_orders}.")
    rotations = [tuple((start + shift) % options for shift in range(options)) for start in range(options)]
    if n_orders <= options:
        return rotations[:n_orders]
    # Beyond 7 options all orders no longer fit in memory, and a prefix of them is as good a pool as any.
    pool = [order for order in islice(permutations(range(options)), 5040) if order not in set(rotations)]
    drawn_indices = np.random.default_rng(seed).permutation(len(pool))[: n_orders - options]
    return rotations + [pool[int(index)] for index in drawn_indices]


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
    """Ask multiple-choice questions in every setting, scoring and option order.

    Args:
        questions: Questions of one kind, with options of which one is correct.
        model: Generator; all scorings but ``letter`` need an option scorer, ``text-per-token`` also a token counter.
        settings: Settings that prepare passages and examples.
        prompts: Prompt templates.
        scorings: Scorings to apply, as listed in the module's docstring.
        orders: Number of option orders per question (:func:`option_orders`); scorings by text use only one.
        seed: Random seed with which orders beyond the rotations are drawn.
        on_progress: Function that is called with the number of new answers.

    Returns:
        Predictions, ordered by setting, scoring, question and order.

    Raises:
        ModelError: The scoring needs log-probabilities of letters or texts, or token counts, which the model lacks.
    """
    if any(scoring != "letter" for scoring in scorings) and not isinstance(model, OptionScorer):
        raise ModelError(f"{model.name} gives no log-probabilities: use letter scoring (--scoring letter).")
    if any(_is_by_text(scoring) for scoring in scorings) and isinstance(unwrap_model(model), ConcurrentModel):
        names = " and ".join(filter(_is_by_text, scorings))
        raise ModelError(
            f"{names} needs log-probabilities of whole texts, which the chat server of {model.name} does not give: "
            "use --scoring likelihood or letter, or a local: model."
        )
    if "text-per-token" in scorings:
        _find_token_counter(model)
    on_result = None if on_progress is None else lambda _index, _result: on_progress(1)
    predictions: list[Prediction] = []
    for setting in settings:
        contexts = setting.prepare(questions, model)
        text_scores: list[OptionScores] | None = None  # one request serves all scorings by text
        for scoring in scorings:
            items = [
                _PresentedQuestion(question, setting.name, order_index, order, context)
                for question, context in zip(questions, contexts, strict=True)
                for order_index, order in enumerate(
                    option_orders(len(question.options), n_option_orders(question.type, scoring, orders), seed)
                )
            ]
            prompt = prompts.for_task(questions[0].kind, by_text=_is_by_text(scoring)) if questions else prompts.mcq
            rendered_prompts = [item.render(prompt, scoring) for item in items]
            if scoring == "letter":
                max_tokens = profile_of(model).limit_answer_tokens(
                    max((item.question.type.max_tokens for item in items), default=0)
                )
                sampling = Sampling(max_tokens=max_tokens)
                completions = model.generate(
                    [
                        GenerationRequest(text.messages, sampling, assistant_prefix=text.assistant_prefix)
                        for text in rendered_prompts
                    ],
                    on_result=on_result,
                )
                predictions += _parse_letters(items, completions, model, prompts.which_option)
                continue
            assert isinstance(model, OptionScorer)
            requests = [
                OptionRequest(
                    text.messages,
                    item.continuations(scoring, text.assistant_prefix),
                    text.assistant_prefix,
                )
                for item, text in zip(items, rendered_prompts, strict=True)
            ]
            if not _is_by_text(scoring):
                for item, score in zip(items, model.option_logprobs(requests, on_result=on_result), strict=True):
                    method = "" if score.error else score.method
                    predictions.append(
                        item.predict(
                            "likelihood", score.best, logprobs=score.logprobs, method=method, error=score.error
                        )
                    )
                continue
            if text_scores is None:
                text_scores = model.option_logprobs(requests, on_result=on_result)
            elif on_progress is not None:
                on_progress(len(items))
            predictions += _predict_by_text(scoring, items, requests, text_scores, prompt, model)
    return predictions


def _parse_letters(
    questions: Sequence[_PresentedQuestion], completions: Sequence[Completion], model: Generator, option_prompt: Prompt
) -> list[Prediction]:
    """Parse the option that each answer chooses; ask the model once more about answers that name none."""
    positions: list[int | None] = []
    for item, completion in zip(questions, completions, strict=True):
        ordered_options = item.question.order_options(item.order)
        kind = item.question.type
        positions.append(
            None if completion.error else kind.parse_choice(completion.text, len(ordered_options), ordered_options)
        )
    indices_without_option = [
        index
        for index, (position, completion) in enumerate(zip(positions, completions, strict=True))
        if position is None and completion.error is None and completion.text.strip()
    ]
    options_by_index: dict[int, int] = {}
    if indices_without_option:
        requests = [
            _make_option_request(questions[index], completions[index].text, option_prompt)
            for index in indices_without_option
        ]
        for index, request, reply in zip(indices_without_option, requests, model.generate(requests), strict=True):
            labels = request.schema["properties"]["option"]["enum"] if request.schema else ()
            option = ""
            with suppress(ValueError, KeyError, TypeError):
                option = json.loads(reply.text)["option"]
            if option in labels and option != _NO_OPTION:
                options_by_index[index] = labels.index(option)
    return [
        item.predict(
            "letter",
            options_by_index.get(index, position),
            text=completion.text,
            error=completion.error,
            method=ASKED_AGAIN if index in options_by_index else "",
        )
        for index, (item, completion, position) in enumerate(zip(questions, completions, positions, strict=True))
    ]


def _make_option_request(item: _PresentedQuestion, answer: str, prompt: Prompt) -> GenerationRequest:
    ordered_options = item.question.order_options(item.order)
    labels = item.question.type.labels(ordered_options)
    options = [{"letter": label, "text": text} for label, text in zip(labels, ordered_options, strict=True)]
    rendered_prompt = prompt.render(question=item.question.question, options=options, answer=answer)
    schema = object_schema({"option": {"enum": [*labels, _NO_OPTION]}})
    return GenerationRequest(rendered_prompt.messages, Sampling(max_tokens=WHICH_OPTION_TOKENS), schema)


def n_option_orders(kind: QuestionType, scoring: Scoring, orders: int) -> int:
    """Return the number of option orders of a question: 1 if its options are fixed or not shown, else ``orders``."""
    return 1 if _is_by_text(scoring) or kind.fixed_options else orders


def _predict_by_text(
    scoring: TextScoring,
    questions: Sequence[_PresentedQuestion],
    requests: Sequence[OptionRequest],
    text_scores: Sequence[OptionScores],
    prompt: Prompt,
    model: OptionScorer,
) -> list[Prediction]:
    """Predict the option with the highest score under a scoring by text."""
    priors: Sequence[OptionScores | None] = [None] * len(questions)
    if scoring == "text-pmi":
        # The same options after the prompt with an empty question: the domain premise.
        empty_prompt = prompt.render(question="", options=[], passages=[], examples=[])
        priors = model.option_logprobs(
            [
                OptionRequest(empty_prompt.messages, request.options, empty_prompt.assistant_prefix)
                for request in requests
            ]
        )
    predictions = []
    for item, request, score, prior in zip(questions, requests, text_scores, priors, strict=True):
        error = score.error or (None if prior is None else prior.error)
        scores: tuple[float, ...] = ()
        if error is None and prior is not None:
            scores = tuple(
                logprob - prior_logprob for logprob, prior_logprob in zip(score.logprobs, prior.logprobs, strict=True)
            )
        elif error is None:
            lengths = _compute_lengths(scoring, item.question.order_options(item.order), request, model)
            scores = tuple(total / length for total, length in zip(score.logprobs, lengths, strict=True))
        position = int(np.argmax(scores)) if scores else None
        method = "" if error else score.method
        predictions.append(
            item.predict(scoring, position, logprobs=score.logprobs, scores=scores, method=method, error=error)
        )
    return predictions


def _compute_lengths(
    scoring: TextScoring, options: Sequence[str], request: OptionRequest, model: OptionScorer
) -> list[int]:
    """Return the length by which each option's log-probability is divided when options are scored by their text."""
    if scoring == "text-sum":
        return [1] * len(options)
    if scoring == "text-per-token":
        prompt = model.render(request.messages, request.assistant_prefix)
        texts = [prompt, *(prompt + option for option in request.options)]
        n_prompt_tokens, *totals = _find_token_counter(model).count_tokens(texts)
        return [max(1, total - n_prompt_tokens) for total in totals]
    return [len(text.encode() if scoring == "text-per-byte" else text) for text in options]


def _find_token_counter(model: Generator) -> Windowed:
    """Return the model that counts tokens, without its wrappers; raise ModelError if there is none."""
    wrapped_model: object = model
    while not isinstance(wrapped_model, Windowed):
        wrapped_model = getattr(wrapped_model, "wrapped", None)
        if wrapped_model is None:
            raise ModelError(f"{model.name} does not count tokens: use another scoring, for example text-per-byte.")
    return wrapped_model


@dataclass(frozen=True, slots=True)
class GeneratedAnswer:
    """Generated answer to a question."""

    question: str
    text: str
    """First paragraph (freeform) or first line (cloze) of the generated text; empty if the request failed."""
    context: PromptContext
    violations: tuple[str, ...] = ()
    """Constraints that the answer violates."""
    error: str | None = None


def ask_written(
    questions: Sequence[Question],
    model: Generator,
    setting: Setting,
    prompts: TaskPrompts,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> list[GeneratedAnswer]:
    """Ask questions that are answered in words in one setting, with greedy decoding.

    The prompt asks for at most two sentences (freeform) or one scientific word (cloze). A longer answer is kept, and
    the violation is recorded. Text after the first paragraph (freeform) or line (cloze) is dropped, because small
    models continue with questions of their own.

    Args:
        questions: Questions of one kind that is answered in words.
        model: Generator.
        setting: Setting that prepares passages and examples.
        prompts: Prompt templates.
        on_progress: Function that is called with the number of new answers.

    Returns:
        Answers in the order of the questions.

    References:
        Manivannan et al. (2025), ClimaQA, section 5.1 (the constraints).
    """
    contexts = setting.prepare(questions, model)
    profile = profile_of(model)
    max_tokens = {question.kind: profile.limit_answer_tokens(question.type.max_tokens) for question in questions}
    requests = []
    for question, context in zip(questions, contexts, strict=True):
        rendered_prompt = prompts.render(
            question, context.passages, [example_values(example) for example in context.examples]
        )
        sampling = Sampling(max_tokens=max_tokens[question.kind])
        requests.append(
            GenerationRequest(rendered_prompt.messages, sampling, assistant_prefix=rendered_prompt.assistant_prefix)
        )
    answers = model.generate(
        requests, on_result=None if on_progress is None else lambda _index, _answer: on_progress(1)
    )
    results = []
    for question, context, answer in zip(questions, contexts, answers, strict=True):
        text = "" if answer.error is not None else question.type.parse_answer(answer.text)
        violations: tuple[str, ...] = ()
        if answer.error is None:
            violations = question.type.violations(text, len(split_sentences(text)))
            if question.type.is_prose and answer.finish_reason == "length":
                violations = (*violations, f"cut at {max_tokens[question.kind]} tokens")
        results.append(GeneratedAnswer(question.id, text, context, violations, answer.error))
    return results
