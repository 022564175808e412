"""From statements to named topics."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.statement import Statement
from climassay.confidence.topics.clustering import Grouping, group_statements, map_of, nearest
from climassay.confidence.topics.naming import (
    NamedTopic,
    NameProposal,
    judge_names,
    match_names,
    propose_names,
    smallest_hashes,
)
from climassay.confidence.topics.phrases import joined_name, phrases, written
from climassay.confidence.topics.topic import OUTSIDE, AssignedStatement, Topic, TopicModel, TopicSettings
from climassay.errors import InputError
from climassay.models.contract import Encoder, Generator
from climassay.models.encoders import cached_vectors

EXAMPLES = 8
_OWN = 2
"""Weight of the statement itself among the sentences around it."""
ONE_REPORT = 0.9
"""Share of a topic's statements in one report, of several, from which the topic is marked as that report's."""


@dataclass(frozen=True, slots=True)
class FittedTopics:
    """Topics under the names that their words give, and their middles."""

    model: TopicModel
    centres: NDArray[np.float32]
    """Unit vectors, shape [topics, width]."""
    members: tuple[NDArray[np.float32], ...]
    """Vectors of each topic's tagged statements, shape [size, width] each."""


@dataclass(frozen=True, slots=True)
class NamedTopics:
    """Topics with names, and what the next run needs to keep them."""

    model: TopicModel
    named: tuple[NamedTopic, ...]
    unused: tuple[NamedTopic, ...]
    """Named by hand in an earlier run, and not found again."""
    proposals: tuple[NameProposal | None, ...]
    """What a model proposed for each topic; None where it was not asked."""


def fit_topics(
    statements: Sequence[Statement],
    encoder: Encoder,
    settings: TopicSettings | None = None,
    *,
    place_untagged: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> FittedTopics:
    """Find topics among tagged statements.

    Args:
        statements: In any order; duplicates are left out.
        encoder: Its vectors of sentences are kept in the cache.
        settings: The same statements, encoder and settings give the same topics.
        place_untagged: Give untagged statements the nearest topic too.
        on_progress: Called with the number of sentences whose vectors are known since the last call; there are as many
            as :func:`context_sentences` gives.

    Raises:
        InputError: Too few statements are tagged, two have the same id, or no clusters are found.
        MissingExtraError: The extra ``topics`` is not installed.
    """
    asked = settings or TopicSettings()
    # By id, so that the order of a file changes nothing.
    ordered = sorted(
        (one for one in statements if one.duplicate_of is None and (place_untagged or one.tag is not None)),
        key=lambda one: one.id,
    )
    twice = next((a.id for a, b in pairwise(ordered) if a.id == b.id), None)
    if twice is not None:
        raise InputError(f"Two statements have the id {twice!r}: extract the reports together, or rename one.")
    tagged, untagged = ([one for one in ordered if (one.tag is not None) is wanted] for wanted in (True, False))
    vectors = context_vectors([*tagged, *untagged], encoder, on_progress=on_progress)
    own = vectors[: len(tagged)]
    found = group_statements([one.text for one in tagged], own, encoder, asked)
    places = map_of(own, asked.seed, asked.neighbours).round(3)
    placed = [
        AssignedStatement(one.id, int(group), bool(outlier), float(x), float(y))
        for one, group, outlier, (x, y) in zip(tagged, found.groups, found.outliers, places.tolist(), strict=True)
    ]
    if untagged:
        numbers = nearest(vectors[len(tagged) :], found.centres)
        placed += [AssignedStatement(one.id, int(number)) for one, number in zip(untagged, numbers, strict=True)]
    several = len({one.report for one in tagged}) > 1
    topics = tuple(_topic(number, tagged, own, found, several) for number in range(len(found.words)))
    outliers = int(found.outliers.sum())
    model = TopicModel(topics, tuple(placed), sum(found.joined), outliers, encoder.fingerprint, asked)
    return FittedTopics(model, found.centres, tuple(own[found.groups == number] for number in range(len(topics))))


def context_sentences(statements: Iterable[Statement], *, place_untagged: bool = False) -> list[str]:
    """The sentences that the vectors of statements are made of, each once."""
    counted = (one for one in statements if one.duplicate_of is None and (place_untagged or one.tag is not None))
    return list(dict.fromkeys(sentence for one in counted for sentence in (*one.before, one.text, *one.after)))


def context_vectors(
    statements: Sequence[Statement], encoder: Encoder, *, on_progress: Callable[[int], None] | None = None
) -> NDArray[np.float32]:
    """Unit vectors of statements with their context: the mean of their sentences' vectors, weighted by length.

    The statement itself counts twice.

    Neighbouring statements share most of their sentences, so that each is encoded once and kept in the cache.

    Returns:
        Shape [statements, width].
    """
    from scipy.sparse import csr_matrix

    sentences = context_sentences(statements, place_untagged=True)
    known = cached_vectors(sentences, encoder, "sentence_vectors", on_progress=on_progress)
    places = {sentence: place for place, sentence in enumerate(sentences)}
    entries = [
        (row, places[sentence], (_OWN if sentence is one.text else 1) * (len(sentence) or 1))
        for row, one in enumerate(statements)
        for sentence in (*one.before, one.text, *one.after)
    ]
    rows, columns, weights = zip(*entries, strict=True) if entries else ((), (), ())
    table = csr_matrix((np.array(weights, np.float32), (rows, columns)), (len(statements), len(sentences)))
    vectors = table @ known
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def name_topics(
    fitted: FittedTopics,
    statements: Sequence[Statement],
    encoder: Encoder,
    *,
    earlier: Sequence[NamedTopic] = (),
    generator: Generator | None = None,
    prompts: Path | None = None,
) -> NamedTopics:
    """Name topics: as in an earlier run where they are the same, else by a model, else by their words.

    Args:
        fitted: Topics.
        statements: Those that they were found among.
        encoder: The one that placed them; it judges a model's names.
        earlier: Names of an earlier run, those given by hand among them.
        generator: Proposes names; None leaves it at the words.
        prompts: Folder of the user's own prompts.
    """
    model, topics = fitted.model, fitted.model.topics
    texts: list[list[str]] = [[] for _ in topics]
    for one in statements:
        number = model.topic_of(one.id)
        if one.tag is not None and number is not None and number != OUTSIDE:
            texts[number].append(one.text)
    kept = match_names(earlier, texts)
    proposals: dict[int, NameProposal] = {}
    if generator is not None:
        # All are asked for, so that answers do not depend on what was named before.
        said = {one.id: one.text for one in statements}
        examples = [[said[id] for id in topic.examples] for topic in topics]
        own, words = [topic.name for topic in topics], [topic.words for topic in topics]
        names = propose_names(own, words, examples, generator, seed=model.settings.seed, prompts=prompts)
        taken = [earlier[place].name for place in kept.values()]
        proposals = dict(enumerate(judge_names(names, fitted.centres, encoder, taken, members=fitted.members)))
    done, named = [], []
    for topic in topics:
        proposal = proposals.get(topic.number) if topic.number not in kept else None
        name, source = topic.name, topic.named_by
        known = earlier[kept[topic.number]] if topic.number in kept else None
        if known is not None:
            name, source = known.name, "hand" if known.by_hand else "earlier"
        elif proposal is not None and not proposal.fault:
            name, source = proposal.name, "model"
        done.append(replace(topic, name=name, named_by=source))
        mine = texts[topic.number]
        named.append(NamedTopic(name, known.proposed if known else name, len(set(mine)), smallest_hashes(mine)))
    used = set(kept.values())
    unused = tuple(one for place, one in enumerate(earlier) if one.by_hand and place not in used)
    asked = tuple(proposals.get(topic.number) for topic in topics)
    return NamedTopics(replace(model, topics=tuple(done)), tuple(named), unused, asked)


def _topic(
    number: int, tagged: Sequence[Statement], vectors: NDArray[np.float32], found: Grouping, several: bool
) -> Topic:
    """A topic under the name that its statements' own phrases give; vectors of shape [tagged, width]."""
    members = np.flatnonzero(found.groups == number)
    inside = members[~found.outliers[members]]
    order = np.argsort(-(vectors[inside] @ found.centres[number]), kind="stable")
    examples, texts = [], set()
    for place in inside[order]:
        if tagged[place].text not in texts:
            texts.add(tagged[place].text)
            examples.append(tagged[place].id)
        if len(examples) == EXAMPLES:
            break
    said = [tagged[place].text for place in members.tolist()]
    words = written(found.words[number], said)
    ((report, most),) = Counter(tagged[place].report for place in members.tolist()).most_common(1)
    return Topic(
        number,
        joined_name(phrases(found.words[number], said) or words),
        words,
        len(members),
        len(members) - len(inside),
        found.joined[number],
        tuple(examples),
        report=report if several and most >= ONE_REPORT * len(members) else None,
    )
