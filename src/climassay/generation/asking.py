"""Asking a model for questions: prompts that fit its window, schema-constrained requests, and readable answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from climassay.corpus.sentences import sentence_spans
from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, SourcePassage, Step, Wording
from climassay.generation.schemas import (
    DeclinedError,
    Lengths,
    UnreadableAnswerError,
    answer_schema,
    deal_positions,
    example_answer,
    read_wording,
)
from climassay.models.contract import (
    Completion,
    GenerationRequest,
    Generator,
    Message,
    Sampling,
    token_count,
    window_of,
)
from climassay.prompts import Prompt, RenderedPrompt
from climassay.questions import TYPES, Kind, Question
from climassay.records import RecordedModel

UNREADABLE = "unreadable reply"
"""Reason of the decision against a draft whose reply gave no wording."""
DECLINED = "declined"
"""Reason of the decision against a draft whose writer found the passage unfit."""
Examples = Mapping[Kind, Sequence[Question]]
"""Questions that are shown as a writer's good work."""


@dataclass(frozen=True, slots=True)
class Order:
    """One question to be asked for."""

    kind: Kind
    passages: tuple[SourcePassage, ...]
    """The main passage first."""
    seed: int
    """Of the sampling and of the options' order."""
    render: Callable[[Sequence[SourcePassage]], RenderedPrompt]
    """The prompt about these passages, the main one first."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of an order."""

    passages: tuple[SourcePassage, ...]
    """Those that were shown, each with the part of its text that was shown."""
    wording: Wording | None
    error: str | None = None
    """Why the call failed, in one sentence; asking again may help."""
    unreadable: str | None = None
    """Why the reply gives no wording, in one sentence; the same request would be answered the same."""
    declined: str | None = None
    """Why the model would not write from the main passage, in its own words."""


OnDelivery = Callable[[int, Delivery], None]


class QuestionAsker:
    """Asks one model for questions of all kinds; nothing that a model answers raises an error."""

    def __init__(self, model: Generator, *, temperature: float, max_tokens: int, lengths: Lengths) -> None:
        """Prepare to ask.

        Args:
            model: To be asked; a recorded one as well.
            temperature: Of the sampling.
            max_tokens: Of an answer; one that needs more is cut off and counts as failed.
            lengths: Bounds of the texts, and what is asked beside them.

        Raises:
            InputError: The temperature is negative, or no token is allowed.
        """
        if temperature < 0:
            raise InputError(f"The temperature is {temperature}: it cannot be negative.")
        if max_tokens < 1:
            raise InputError(f"max_tokens is {max_tokens}: at least one token must be allowed.")
        self._model = model
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._lengths = lengths

    def ask(self, orders: Sequence[Order], on_delivery: OnDelivery | None = None) -> list[Delivery]:
        """Ask for all questions in one call of the model.

        Args:
            orders: Any kinds.
            on_delivery: Called with (index, delivery) as soon as each is known, in any order.
        """
        fitted = [self._fitted(order) for order in orders]
        positions = _positions(orders)
        deliveries: dict[int, Delivery] = {}

        def read(index: int, completion: Completion) -> None:
            deliveries[index] = self._delivery(orders[index], fitted[index][0], completion, positions[index])
            if on_delivery is not None:
                on_delivery(index, deliveries[index])

        self._model.generate([request for _, request in fitted], on_result=read)
        return [deliveries[index] for index in range(len(orders))]

    def _fitted(self, order: Order) -> tuple[tuple[SourcePassage, ...], GenerationRequest]:
        """The passages that the model's window holds, and the request about them."""
        model = self._model.wrapped if isinstance(self._model, RecordedModel) else self._model
        room = window_of(model) - self._max_tokens

        def request(passages: Sequence[SourcePassage]) -> GenerationRequest:
            rendered = order.render(passages)
            return GenerationRequest(
                rendered.messages,
                Sampling(self._max_tokens, self._temperature, seed=order.seed),
                answer_schema(order.kind, self._lengths),
                rendered.assistant_prefix,
            )

        def fits(passages: Sequence[SourcePassage]) -> bool:
            asked = request(passages)
            return token_count(model, model.render(asked.messages, asked.assistant_prefix)) <= room

        shown = fitting_passages(order.passages, fits)
        return shown, request(shown)

    def _delivery(
        self, order: Order, shown: tuple[SourcePassage, ...], completion: Completion, position: int
    ) -> Delivery:
        if completion.error is not None:
            return Delivery(shown, None, completion.error)
        if completion.finish_reason == "length":
            return Delivery(shown, None, unreadable=f"The reply was cut off at {self._max_tokens} tokens.")
        try:
            wording = read_wording(order.kind, completion.text, self._lengths, position=position, seed=order.seed)
        except DeclinedError as refusal:
            return Delivery(shown, None, declined=str(refusal))
        except UnreadableAnswerError as fault:
            return Delivery(shown, None, unreadable=str(fault))
        return Delivery(shown, wording)


def with_delivery(draft: Draft, delivery: Delivery, step: Step, by: str) -> Draft:
    """A draft with what came of its order; a refusal to write or an unreadable reply is a decision against it.

    Args:
        draft: All of it but the wording, the passages shown and the error.
        delivery: What came.
        step: Of the decision.
        by: Who was asked.
    """
    made = replace(draft, wording=delivery.wording or Wording(""), passages=delivery.passages, error=delivery.error)
    if delivery.declined is not None:
        return made.decided(Decision(step, by, False, DECLINED, delivery.declined))
    if delivery.unreadable is None:
        return made
    return made.decided(Decision(step, by, False, UNREADABLE, delivery.unreadable))


def fitting_passages(
    passages: tuple[SourcePassage, ...], fits: Callable[[Sequence[SourcePassage]], bool]
) -> tuple[SourcePassage, ...]:
    """The passages that fit: retrieved ones are dropped from the end, then the main one is cut at a sentence.

    Where not even its first sentence fits, that sentence is all that is left, and it is for the model to refuse.

    Args:
        passages: The main one first.
        fits: Whether a prompt about some passages fits.
    """
    for count in range(len(passages), 0, -1):
        if fits(passages[:count]):
            return passages[:count]
    main = passages[0]
    ends = [end for _, end in sentence_spans(main.text)] or [len(main.text)]
    fewest, most = 0, len(ends) - 1  # at least the first sentence stays, and the last one has to go
    while fewest + 1 < most:
        middle = (fewest + most) // 2
        if fits((replace(main, text=main.text[: ends[middle]].rstrip()),)):
            fewest = middle
        else:
            most = middle
    return (replace(main, text=main.text[: ends[fewest]].rstrip()),)


def passage_values(passages: Sequence[SourcePassage]) -> dict[str, Any]:
    """What templates read of the passages, the main one first: texts, and title and section of each."""
    sources = [passage.source for passage in passages]
    return {
        "main": passages[0].text,
        "main_source": sources[0],
        "retrieved": [passage.text for passage in passages[1:]],
        "retrieved_sources": sources[1:],
    }


def example_turns(
    prompt: Prompt, examples: Sequence[Question], values: Mapping[str, object], lengths: Lengths
) -> tuple[Message, ...]:
    """Examples as turns of the chat: the prompt about each example's passage, and the answer in the asked format.

    Args:
        prompt: Template with ``main`` and ``retrieved``; its system message is left out.
        examples: With the passages they were made from.
        values: What the template needs besides.
        lengths: Those of the schema that answers follow.

    Raises:
        InputError: An example has no passage, or does not fit its kind.
    """
    turns: list[Message] = []
    for example in examples:
        if not example.context:
            raise InputError(
                f"The question {example.id} cannot be an example: the passage it was made from is missing."
            )
        passage = SourcePassage("", example.context, "", example.document or "", example.section or "")
        rendered = prompt.render(**passage_values([passage]), **values)
        turns += [message for message in rendered.messages if message.role != "system"]
        turns.append(Message("assistant", rendered.assistant_prefix + example_answer(example, lengths)))
    return tuple(turns)


def with_turns(rendered: RenderedPrompt, turns: tuple[Message, ...]) -> RenderedPrompt:
    """A prompt with turns between its system message and what it asks."""
    at = next((place for place, message in enumerate(rendered.messages) if message.role != "system"), 0)
    return replace(rendered, messages=(*rendered.messages[:at], *turns, *rendered.messages[at:]))


def counted(on_progress: Callable[[int], None] | None) -> OnDelivery:
    """A callback that hands on how many were delivered so far."""
    delivered = 0

    def count(_index: int, _delivery: Delivery) -> None:
        nonlocal delivered
        delivered += 1
        if on_progress is not None:
            on_progress(delivered)

    return count


def _positions(orders: Sequence[Order]) -> list[int]:
    """Positions of the correct option for the questions with options among the orders, dealt by kind; else 0."""
    dealt: dict[int, int] = {}
    for kind in dict.fromkeys(order.kind for order in orders if TYPES[order.kind].options):
        choices = [place for place, order in enumerate(orders) if order.kind == kind]
        dealt |= dict(zip(choices, deal_positions([orders[place].seed for place in choices]), strict=True))
    return [dealt.get(place, 0) for place in range(len(orders))]
