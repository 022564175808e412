"""Statements of planted topics, and an encoder whose vectors can be worked out: what they name, and a little noise."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from climassay.confidence.statement import Statement
from climassay.confidence.topics import AssignedStatement, Topic, TopicModel
from climassay.confidence.vocabulary import LEVELS
from climassay.reporting.results import write_rows
from topic_encoder import TOPICS, TopicEncoder

WORDS = {
    "albedo": "surface reflects sunlight snow brightness",
    "cloud": "droplets stratus convection cover shading",
    "aerosol": "sulphate particles soot haze emissions",
    "ocean": "heat salinity currents acidification depth",
    "carbon": "dioxide uptake forests soils sink",
    "glacier": "ice mass retreat mountains meltwater",
}


class NoisyTopicEncoder(TopicEncoder):
    """Topics named, and noise drawn from a hash of the text, so that no two texts have one vector."""

    fingerprint = "8" * 64
    width = len(TOPICS) + 9
    encoded = 0

    def encode(self, texts: Sequence[str], *, role: Any = "passage", on_progress: Any = None) -> Any:
        self.encoded += len(texts)
        named = super().encode.__func__(_Narrow(), texts)
        noise = np.array([_noise(text) for text in texts], dtype=np.float32).reshape(len(texts), 8)
        vectors = np.concatenate([named, 0.15 * noise], axis=1)
        if on_progress is not None:
            on_progress(len(texts))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class _Narrow(TopicEncoder):
    """The plain encoder, with its own width."""


def _noise(text: str) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).normal(size=8).tolist()


def statement(number: int, topic: str, **changes: Any) -> Statement:
    """One statement of a topic; sections hold five, tags and working groups alternate."""
    words = WORDS[topic].split()
    made = Statement(
        f"{topic}-{number:03}",
        f"Observed {topic} and {words[number % 5]} respond to {words[(number + 1) % 5]} in region {number}.",
        LEVELS[1 + number % 4],
        f"AR6 WG{1 + number % 2}",
        f"doc-{topic}",
        f"Chapter on {topic}",
        headings=(f"Section {number // 5}",),
        before=(f"The {topic} was measured {number} times.",),
        cycle="AR6",
        working_group=f"WG{1 + number % 2}",
    )
    return replace(made, **changes)


def write_statements(statements: Iterable[Statement], file: Path) -> None:
    """Write statements as ``climassay confidence extract`` does."""
    write_rows(file, map(asdict, statements))


def planted(each: int = 30, topics: Sequence[str] = TOPICS) -> list[Statement]:
    """So many statements of every topic."""
    return [statement(number, topic) for topic in topics for number in range(each)]


def topics_of(statements: Sequence[Statement], numbers: Sequence[int]) -> TopicModel:
    """A model in which every statement has the topic given for it, on a diagonal map."""
    count = max(numbers) + 1
    topics = tuple(
        Topic(number, f"Topic {number}", ("a", "b"), sum(n == number for n in numbers), 0, 1, ())
        for number in range(count)
    )
    placed = tuple(
        AssignedStatement(one.id, number, False, *((place / 10, number + place / 100) if one.tag else (None, None)))
        for place, (one, number) in enumerate(zip(statements, numbers, strict=True))
    )
    return TopicModel(topics, placed, count, 0, "8" * 64)
