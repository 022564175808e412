"""Names of topics, proposed by a model and kept only where they tell their topic from the others.

A small model's proposals are often too general ("Climate change impacts") or made up. A name is therefore judged by
what it is for: the encoder that placed the statements must find the topic by its name. A name is kept if it is short
enough, not only made of words that every topic has, not given already, if its topic's middle is among the
:data:`NEAREST` most similar to it, and if most statements of the topic bear it. Where it fails, phrases of the topic's
statements are its name (:mod:`climassay.confidence.topics.phrases`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.models.contract import Encoder, GenerationRequest, Generator, Sampling
from climassay.prompts import load_prompt

NEAREST = 2
"""A name must find its topic among so many."""
LEAST_SUPPORT = 0.5
"""Share of a topic's statements that must bear its name."""
_BORNE = 0.9
"""A statement bears a name to which it is more similar than this share of the other topics' statements are."""
LONGEST_NAME = 48
"""Characters."""
_MOST_WORDS = 6
_STATEMENTS = 5
_STATEMENT_CHARACTERS = 220
_OTHERS = 12
_EVERYWHERE = (
    "climate change changes global warming research topic statement statements report assessment impact impacts effect "
    "effects of on in and the a an for to by with under future projected projection projections other various key "
    "analysis study studies science environment environmental issue issues risk risks"
)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 3, "maxLength": LONGEST_NAME}},
    "required": ["name"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class NameProposal:
    """What a model called a topic."""

    name: str
    """As proposed, tidied; empty where there was no answer."""
    fault: str = ""
    """Why it is not used; empty if it is."""
    support: float | None = None
    """Share of the topic's statements that bear it."""


def propose_names(
    own: Sequence[str],
    words: Sequence[Sequence[str]],
    examples: Sequence[Sequence[str]],
    model: Generator,
    *,
    seed: int = 0,
    prompts: Path | None = None,
) -> list[str]:
    """Ask a model for the names of topics.

    Args:
        own: Name of each topic by its statements' phrases; those of other topics are shown.
        words: Of each topic.
        examples: Typical statements of each topic.
        model: Asked once for each topic, under a schema; wrap it so that answers are recorded.
        seed: Of the sampling, which is greedy.
        prompts: Folder of the user's own prompts.

    Returns:
        One name a topic, tidied; empty where the model gave no answer that can be read.
    """
    prompt = load_prompt("topic_name", prompts)
    requests = []
    for number, (typical, said) in enumerate(zip(words, examples, strict=True)):
        others = [name for place, name in enumerate(own) if place != number][:_OTHERS]
        texts = [text[:_STATEMENT_CHARACTERS] for text in said[:_STATEMENTS]]
        rendered = prompt.render(statements=texts, words=list(typical), others=others)
        requests.append(
            GenerationRequest(
                rendered.messages,
                Sampling(max_tokens=None, seed=seed),
                schema=_SCHEMA,
                assistant_prefix=rendered.assistant_prefix,
            )
        )
    return [_read(answer.text) if answer.error is None else "" for answer in model.generate(requests)]


def judge_names(
    names: Sequence[str],
    centres: NDArray[np.float32],
    encoder: Encoder,
    taken: Sequence[str] = (),
    *,
    members: Sequence[NDArray[np.float32]] = (),
) -> list[NameProposal]:
    """Which names tell their topic from the others and are borne by most of its statements.

    Args:
        names: One a topic.
        centres: Middle of each topic, unit vectors, shape [topics, width].
        encoder: The one that made the vectors.
        taken: Names that are given already, for example by hand.
        members: Vectors of each topic's statements, shape [size, width] each; without them support is not asked for.
    """
    encoded = encoder.encode([name or "-" for name in names], role="query")
    similarities = encoded @ centres.T
    found: list[NameProposal] = []
    given = {name.casefold() for name in taken}
    for number, name in enumerate(names):
        place = int((similarities[number] > similarities[number, number]).sum())
        fault = _fault(name) or ("another topic has this name" if name.casefold() in given else "")
        if not fault and place >= NEAREST:
            fault = f"it fits {place} other topics better"
        support = _support(encoded[number], number, members) if name and len(members) > 1 else None
        if not fault and support is not None and support < LEAST_SUPPORT:
            fault = f"only {support:.0%} of the topic's statements bear it"
        if not fault:
            given.add(name.casefold())
        found.append(NameProposal(name, fault, support))
    return found


def _support(name: NDArray[np.float32], number: int, members: Sequence[NDArray[np.float32]]) -> float:
    """Share of a topic's statements that are more similar to a name than most statements of other topics are."""
    others = np.concatenate([vectors @ name for place, vectors in enumerate(members) if place != number])
    return float((members[number] @ name > np.quantile(others, _BORNE)).mean())


def _fault(name: str) -> str:
    words = re.findall(r"[^\W\d_]+", name.casefold())
    if not words:
        return "no answer"
    if len(words) > _MOST_WORDS or name.endswith(("-", "...")):
        return "too long"
    if set(words) <= set(_EVERYWHERE.split()):
        return "every topic could be called so"
    if len(set(words)) < len(words) or any(len(word) > 24 for word in words):
        return "it repeats itself"
    return ""


def _read(text: str) -> str:
    try:
        name = json.loads(text)["name"]
    except (ValueError, KeyError, TypeError):
        return ""
    tidy = " ".join(str(name).split()).strip(" .,:;\"'*-")
    return tidy[:1].upper() + tidy[1:]
