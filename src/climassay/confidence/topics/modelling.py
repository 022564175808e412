"""From statements to named topics.

Groups of statements as BERTopic makes them: seeded UMAP, HDBSCAN and class-based TF-IDF; and joining of what is alike.

Vectors are of a statement with its context, words of the statement alone: neighbouring statements share most of their
context, so that its words would be counted many times over.

References:
    Grootendorst 2022, BERTopic (arXiv 2203.05794); McInnes, Healy and Melville 2018, UMAP (arXiv 1802.03426);
    Campello, Moulavi and Sander 2013, HDBSCAN; Carbonell and Goldstein 1998, maximal marginal relevance;
    Maiya 2024, appendix C.2 (206 topics of 10,065 statements, joined to 49).
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.statement import Statement
from climassay.confidence.topics.naming import (
    NamedTopic,
    NameProposal,
    joined_name,
    judge_names,
    match_names,
    phrases,
    propose_names,
    smallest_hashes,
    terms,
    written,
)
from climassay.confidence.topics.topic import OUTSIDE, AssignedStatement, Topic, TopicModel, TopicSettings
from climassay.errors import InputError, MissingExtraError
from climassay.models.contract import Encoder, Generator
from climassay.models.encoders import cached_vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
LEAST_STATEMENTS = 20
"""Fewer have no neighbourhoods to speak of."""
_LARGEST = 0.5
"""Share of all statements that a cluster has at most; a larger one is cut into what it consists of."""
_CANDIDATE_WORDS = 30
"""Words that maximal marginal relevance chooses among."""
_MANY = 1000
"""Statements from which a word must occur three times to describe a topic."""
_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Grouping:
    """Statements in numbered groups, the largest first."""

    groups: IntArray
    """Shape [n]: group of each statement, -1 for none."""
    outliers: NDArray[np.bool_]
    """Shape [n]: lay outside every cluster."""
    words: tuple[tuple[str, ...], ...]
    joined: tuple[int, ...]
    """Clusters that each group was made of."""
    centres: FloatArray
    """Shape [groups, width]: mean unit vectors of the statements inside clusters, normalised."""


def group_statements(texts: Sequence[str], vectors: FloatArray, encoder: Encoder, settings: TopicSettings) -> Grouping:
    """Find groups of statements.

    Args:
        texts: The statements' words, n of them.
        vectors: Unit vectors of statements with context, shape [n, width].
        encoder: For the choice of words.
        settings: The same settings and data give the same groups.

    Raises:
        InputError: There are fewer than 20 statements, or they have no clusters.
        MissingExtraError: The extra ``topics`` is not installed.
    """
    if len(texts) != len(vectors):
        raise InputError(f"{len(texts)} statements have {len(vectors)} vectors.")
    if len(texts) < LEAST_STATEMENTS:
        raise InputError(f"Topics need at least {LEAST_STATEMENTS} tagged statements; there are {len(texts)}.")
    if settings.topics < 2:
        raise InputError("Ask for at least 2 topics.")
    with warnings.catch_warnings(action="ignore"):  # a seeded UMAP, for example, says that it is slower
        fine = _fine_clusters(vectors, settings)
    outliers = fine == OUTSIDE
    if outliers.all():
        raise InputError("The statements have no clusters: try a smaller --min-cluster-size or more statements.")
    counts, terms_counted = _term_counts(texts)
    centres = cluster_centres(vectors, fine)
    similarities = centres @ centres.T
    if settings.reduction == "words":
        from sklearn.preprocessing import normalize

        weights = normalize(class_weights(counts, fine))
        similarities = np.asarray((weights @ weights.T).toarray(), dtype=np.float32)
    joined = join_clusters(similarities, settings.topics)
    if settings.outliers == "assign":
        fine = np.where(outliers, nearest(vectors, centres), fine)
    coarse = np.where(fine == OUTSIDE, OUTSIDE, joined[fine])
    groups, order = _largest_first(coarse)
    words = _typical_words(class_weights(counts, groups).toarray(), terms_counted, encoder, settings)
    clustered = np.where(outliers, OUTSIDE, groups)
    sizes = tuple(int((joined == old).sum()) for old in order)
    return Grouping(groups, outliers, words, sizes, cluster_centres(vectors, clustered))


def map_of(vectors: FloatArray, seed: int, neighbours: int = 15) -> FloatArray:
    """Places of vectors on a plane, shape [n, 2]; near ones stay near (UMAP by cosine distance).

    Raises:
        MissingExtraError: The extra ``topics`` is not installed.
    """
    with warnings.catch_warnings(action="ignore"):
        places = _umap(2, 0.1, seed, neighbours, vectors).fit_transform(vectors)
    return np.asarray(places, dtype=np.float32)


def cluster_centres(vectors: FloatArray, clusters: IntArray) -> FloatArray:
    """Normalised mean of each cluster's vectors, shape [clusters, width]; -1 is not one of them."""
    count = int(clusters.max()) + 1
    sums = np.zeros((count, vectors.shape[1]))
    inside = clusters >= 0
    np.add.at(sums, clusters[inside], vectors[inside])
    return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def nearest(vectors: FloatArray, centres: FloatArray) -> IntArray:
    """Number of the centre most similar to each vector, shape [n]."""
    return np.asarray((vectors @ centres.T).argmax(axis=1), dtype=np.int64)


def join_clusters(similarities: FloatArray, wanted: int) -> IntArray:
    """Join clusters to as many groups as are wanted, those first whose union spreads least (Ward).

    Args:
        similarities: Cosines between clusters, shape [clusters, clusters].
        wanted: Groups; with fewer clusters each stays by itself.

    Returns:
        Group of each cluster, from 0, shape [clusters].
    """
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    count = len(similarities)
    if count <= wanted:
        return np.arange(count)
    # Unit vectors of cosine s lie sqrt(2 - 2 s) apart, so that Ward's method needs nothing but the cosines.
    distances = np.sqrt(np.clip(2 - 2 * np.asarray(similarities, dtype=np.float64), 0, None))
    np.fill_diagonal(distances, 0)
    tree = linkage(squareform((distances + distances.T) / 2, checks=False), method="ward")
    return np.asarray(cut_tree(tree, n_clusters=wanted)[:, 0], dtype=np.int64)


def _fine_clusters(vectors: FloatArray, settings: TopicSettings) -> IntArray:
    """Each statement's cluster, -1 for none."""
    hdbscan = _import("hdbscan")
    least = min(settings.least, max(3, len(vectors) // 10))
    # HDBSCAN's excess of mass may take nearly everything for one cluster, which says nothing about anything. Whether it
    # does can hang on the rounding of a processor; what is cut too fine is joined again.
    most = max(least, int(_LARGEST * len(vectors)))
    clusters = hdbscan.HDBSCAN(min_cluster_size=least, max_cluster_size=most, metric="euclidean", core_dist_n_jobs=1)
    reduced = _umap(settings.components, 0.0, settings.seed, settings.neighbours, vectors).fit_transform(vectors)
    return np.asarray(clusters.fit_predict(reduced), dtype=np.int64)


def _term_counts(texts: Sequence[str]) -> "tuple[csr_matrix, list[str]]":
    """How often each text has each word or pair of words, shape [texts, terms], and the terms.

    Stop words are not counted, nor, where there are many statements, rare words.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(analyzer=terms, min_df=3 if len(texts) >= _MANY else 1)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:
        raise InputError("The statements contain only stop words.") from None
    return counts, vectorizer.get_feature_names_out().tolist()


def class_weights(counts: "csr_matrix", groups: IntArray) -> "csr_matrix":
    """Class-based TF-IDF (Grootendorst 2022, section 3.3) with the square root of a group's frequencies of terms.

    Args:
        counts: Terms of each text, shape [texts, terms]; each term occurs.
        groups: Group of each text, shape [texts]; -1, where it occurs, is a group whose weights are left out.

    Returns:
        Shape [groups, terms].
    """
    from scipy.sparse import csr_matrix, diags
    from sklearn.preprocessing import normalize

    first = int(groups.min())
    texts = np.arange(len(groups))
    members = csr_matrix((np.ones(len(groups)), (groups - first, texts)))
    sums = members @ counts
    inverse = np.log1p(int(sums.sum(axis=1).mean()) / sums.sum(axis=0).A1)
    return csr_matrix(normalize(sums, norm="l1").sqrt() @ diags(inverse))[-first:]


def _typical_words(
    weights: NDArray[np.float64], words: Sequence[str], encoder: Encoder, settings: TopicSettings
) -> tuple[tuple[str, ...], ...]:
    """Words of each group: of those with most weight, shape [groups, terms], the ones of most marginal relevance."""
    order = np.argsort(-weights, axis=1, kind="stable")[:, :_CANDIDATE_WORDS]
    candidates = [
        [words[place] for place in places if row[place] > 0] for row, places in zip(weights, order, strict=True)
    ]
    every = list(dict.fromkeys(word for group in candidates for word in group))
    known = dict(zip(every, encoder.encode(every), strict=True))
    wholes = encoder.encode([" ".join(group) for group in candidates])
    chosen = []
    for group, whole in zip(candidates, wholes, strict=True):
        if not group:
            chosen.append(())
            continue
        vectors = np.stack([known[word] for word in group])
        relevance, similarities = (1 - settings.diversity) * (vectors @ whole), settings.diversity * vectors @ vectors.T
        places = [int(relevance.argmax())]
        while len(places) < min(settings.words, len(group)):
            gain = relevance - similarities[:, places].max(axis=1)
            gain[places] = -np.inf
            places.append(int(gain.argmax()))
        chosen.append(tuple(group[place] for place in sorted(places)))
    return tuple(chosen)


def _largest_first(coarse: IntArray) -> tuple[IntArray, list[int]]:
    """Groups renumbered by size, and the old number of each; of equal ones the one that comes first."""
    numbers, first, counts = np.unique(coarse[coarse >= 0], return_index=True, return_counts=True)
    order = [int(numbers[place]) for place in sorted(range(len(numbers)), key=lambda p: (-counts[p], first[p]))]
    renumbered = np.full(int(numbers.max()) + 2, OUTSIDE)
    renumbered[order] = np.arange(len(order))
    return np.asarray(renumbered[coarse], dtype=np.int64), order


def nearest_neighbours(vectors: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Each vector's nearest ones by cosine, itself first, and their distances, both of shape [n, count].

    Exact: to compile an approximate search takes longer than to compare a hundred thousand vectors.
    """
    results = np.zeros((len(vectors), count), dtype=np.int64)
    distances = np.zeros((len(vectors), count), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = 2  # above all others, those of the same words too
        near = np.sort(np.argpartition(-cosines, count - 1, axis=1)[:, :count], axis=1)
        order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
        results[start : start + _BLOCK] = near
        distances[start : start + _BLOCK] = np.clip(1 - np.take_along_axis(cosines, near, axis=1), 0, None)
    return results, distances


def _umap(components: int, spread: float, seed: int, neighbours: int, vectors: FloatArray) -> Any:
    count = min(neighbours, len(vectors) - 1)
    return _import("umap").UMAP(
        n_neighbors=count,
        n_components=components,
        min_dist=spread,
        metric="cosine",
        random_state=seed,
        n_jobs=1,
        precomputed_knn=nearest_neighbours(vectors, count),
    )


def _import(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(f"Topics need {name}: pip install 'climassay[topics]'.") from error


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
        place_untagged: Also assign untagged statements to the nearest topic.
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
    result = group_statements([one.text for one in tagged], own, encoder, asked)
    places = map_of(own, asked.seed, asked.neighbours).round(3)
    placed = [
        AssignedStatement(one.id, int(group), bool(outlier), float(x), float(y))
        for one, group, outlier, (x, y) in zip(tagged, result.groups, result.outliers, places.tolist(), strict=True)
    ]
    if untagged:
        numbers = nearest(vectors[len(tagged) :], result.centres)
        placed += [AssignedStatement(one.id, int(number)) for one, number in zip(untagged, numbers, strict=True)]
    several = len({one.report for one in tagged}) > 1
    topics = tuple(_topic(number, tagged, own, result, several) for number in range(len(result.words)))
    outliers = int(result.outliers.sum())
    model = TopicModel(topics, tuple(placed), sum(result.joined), outliers, encoder.fingerprint, asked)
    return FittedTopics(model, result.centres, tuple(own[result.groups == number] for number in range(len(topics))))


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
