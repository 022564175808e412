"""From questions to Inspect samples and back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

from climassay.integrations.asking import PosedQuestion
from climassay.models.contract import Message
from climassay.questions import Question

_TURNS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
NO_LEVEL = "none"


def as_samples(rows: Sequence[PosedQuestion], *, prefix: bool = True) -> list[Sample]:
    """Samples with the whole chat as input and the question in the metadata.

    Args:
        rows: Questions with their prompts.
        prefix: Whether the chat ends with the start of the answer, for the model to go on from. Some providers refuse
            a chat that ends with the assistant.
    """
    samples = []
    for row in rows:
        turns = list(row.messages)
        if prefix and row.prefix:
            turns.append(Message("assistant", row.prefix))
        samples.append(
            Sample(
                input=as_chat(turns),
                target=row.target,
                id=row.question.id,
                metadata={"level": row.question.level or NO_LEVEL, "question": asdict(row.question)},
            )
        )
    return samples


def as_chat(messages: Sequence[Message]) -> list[ChatMessage]:
    """Messages as Inspect has them."""
    return [_TURNS[message.role](content=message.content) for message in messages]


def question_of(metadata: Mapping[str, Any]) -> Question:
    """The question of a sample that :func:`as_samples` made; it may have been through a log file."""
    fields = dict(metadata["question"])
    return Question(**{**fields, "options": tuple(fields["options"])})
