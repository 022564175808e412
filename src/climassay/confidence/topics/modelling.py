"""Group statements into named topics.

Statements are clustered as in BERTopic: seeded UMAP, HDBSCAN and class-based TF-IDF. Similar clusters are then joined.

A statement's vector represents the statement with its context. Its words are counted without the context: neighbouring
statements share most of their context, whose words would be counted many times.

References:
    Grootendorst 2022, BERTopic (arXiv 2203.05794); McInnes, Healy and Melville 2018, UMAP (arXiv 1802.03426); Campello,
    Moulavi and Sander 2013, HDBSCAN; Carbonell and Goldstein 1998, maximal marginal relevance; Maiya 2024, appendix C.2
    (206 topics of 10,065 statements, joined to 49).
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

from climassay.confidence.settings import TopicSettings
from climassay.confidence.statement import Statement
from climassay.confidence.topics.naming import (
    NamedTopic,
    NameProposal,
    find_noun_phrases,
    join_phrases,
    judge_names,
    make_sketch,
    match_names,
    propose_names,
    spell_terms,
    split_terms,
)
from climassay.confidence.topics.topic import OUTSIDE, AssignedStatement, Topic, TopicModel
from climassay.errors import InputError, MissingExtraError
from climassay.models.contract import Encoder, Generator
from climassay.models.encoders import cached_vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
MIN_STATEMENTS = 20
"""Minimum number of statements for clustering; in a smaller set, nearest neighbours mean little."""
_MAX_CLUSTER_SHARE = 0.5
"""Maximum proportion of all statements in one cluster; a larger cluster is split."""
_N_CANDIDATE_WORDS = 30
"""Number of candidate words from which maximal marginal relevance selects."""
_MIN_STATEMENTS_FOR_RARE_WORDS = 1000
"""If there are at least this many statements, words that occur in fewer than three statements are ignored."""
_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Grouping:
    """Assignment of statements to groups, which are numbered by decreasing size."""

    groups: IntArray
    """Group of each statement, shape [n]; -1 means none."""
    outliers: NDArray[np.bool_]
    """Mask of the statements outside every cluster, shape [n]."""
    words: tuple[tuple[str, ...], ...]
    clusters_per_group: tuple[int, ...]
    """Number of clusters that were merged to form each group."""
    centres: FloatArray
    """Unit vectors of each group's centre, which is the mean of the group's statements inside clusters, shape [groups,
    width]."""


def group_statements(texts: Sequence[str], vectors: FloatArray, encoder: Encoder, settings: TopicSettings) -> Grouping:
    """Cluster statements into groups.

    Args:
        texts: Texts of the statements.
        vectors: Unit vectors of the statements with context, shape [n, width].
        encoder: Encoder of the words that may describe groups.
        settings: Settings of the clustering; the same settings and data give the same groups.

    Raises:
        InputError: There are fewer than 20 statements, or they have no clusters.
        MissingExtraError: The extra ``topics`` is not installed.
    """
    if len(texts) != len(vectors):
        raise InputError(f"{len(texts)} statements have {len(vectors)} vectors.")
    if len(texts) < MIN_STATEMENTS:
        raise InputError(f"Topics need at least {MIN_STATEMENTS} tagged statements; there are {len(texts)}.")
    if settings.topics < 2:
        raise InputError("Ask for at least 2 topics.")
    with warnings.catch_warnings(action="ignore"):  # for example of a seeded UMAP, that it is slower
        clusters = _find_clusters(vectors, settings)
    outliers = clusters == OUTSIDE
    if outliers.all():
        raise InputError("The statements have no clusters: try a smaller --min-cluster-size or more statements.")
    counts, vocabulary = _count_terms(texts)
    centres = compute_centres(vectors, clusters)
    similarities = centres @ centres.T
    if settings.reduction == "words":
        from sklearn.preprocessing import normalize

        weights = normalize(compute_class_weights(counts, clusters))
        similarities = np.asarray((weights @ weights.T).toarray(), dtype=np.float32)
    group_by_cluster = merge_clusters(similarities, settings.topics)
    if settings.outliers == "assign":
        clusters = np.where(outliers, find_nearest(vectors, centres), clusters)
    unordered_groups = np.where(clusters == OUTSIDE, OUTSIDE, group_by_cluster[clusters])
    groups, original_numbers = _renumber_by_size(unordered_groups)
    words = _select_typical_words(compute_class_weights(counts, groups).toarray(), vocabulary, encoder, settings)
    core_groups = np.where(outliers, OUTSIDE, groups)
    sizes = tuple(int((group_by_cluster == cluster).sum()) for cluster in original_numbers)
    return Grouping(groups, outliers, words, sizes, compute_centres(vectors, core_groups))


def project_vectors(vectors: FloatArray, seed: int, neighbours: int = 15) -> FloatArray:
    """Project vectors onto a plane by UMAP with cosine distance, and return their coordinates, shape [n, 2].

    Raises:
        MissingExtraError: The extra ``topics`` is not installed.
    """
    with warnings.catch_warnings(action="ignore"):
        coordinates = _make_umap(2, 0.1, seed, neighbours, vectors).fit_transform(vectors)
    return np.asarray(coordinates, dtype=np.float32)


def compute_centres(vectors: FloatArray, clusters: IntArray) -> FloatArray:
    """Return the normalised mean of each cluster's vectors, shape [clusters, width].

    Vectors of cluster -1 are ignored.
    """
    count = int(clusters.max()) + 1
    sums = np.zeros((count, vectors.shape[1]))
    is_clustered = clusters >= 0
    np.add.at(sums, clusters[is_clustered], vectors[is_clustered])
    return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def find_nearest(vectors: FloatArray, centres: FloatArray) -> IntArray:
    """Return the index of the centre most similar to each vector, shape [n]."""
    return np.asarray((vectors @ centres.T).argmax(axis=1), dtype=np.int64)


def merge_clusters(similarities: FloatArray, max_groups: int) -> IntArray:
    """Merge clusters into at most ``max_groups`` groups by Ward's method, from cosines of shape [clusters, clusters].

    Returns:
        Group of each cluster, from 0, shape [clusters].
    """
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    count = len(similarities)
    if count <= max_groups:
        return np.arange(count)
    # Unit vectors of cosine s have the distance sqrt(2 - 2 s), so that Ward's method needs only the cosines.
    distances = np.sqrt(np.clip(2 - 2 * np.asarray(similarities, dtype=np.float64), 0, None))
    np.fill_diagonal(distances, 0)
    tree = linkage(squareform((distances + distances.T) / 2, checks=False), method="ward")
    return np.asarray(cut_tree(tree, n_clusters=max_groups)[:, 0], dtype=np.int64)


def _find_clusters(vectors: FloatArray, settings: TopicSettings) -> IntArray:
    """Return the cluster of each statement, shape [n]; -1 means none."""
    hdbscan = _import("hdbscan")
    min_size = min(settings.min_cluster_size, max(3, len(vectors) // 10))
    # HDBSCAN's excess of mass may put nearly everything into one cluster, sometimes depending on a processor's
    # rounding. With a maximum size clusters may be too small, but these are joined again.
    max_size = max(min_size, int(_MAX_CLUSTER_SHARE * len(vectors)))
    clusters = hdbscan.HDBSCAN(
        min_cluster_size=min_size, max_cluster_size=max_size, metric="euclidean", core_dist_n_jobs=1
    )
    reduced_vectors = _make_umap(settings.components, 0.0, settings.seed, settings.neighbours, vectors).fit_transform(
        vectors
    )
    return np.asarray(clusters.fit_predict(reduced_vectors), dtype=np.int64)


def _count_terms(texts: Sequence[str]) -> "tuple[csr_matrix, list[str]]":
    """Return the counts of words and word pairs, shape [texts, terms], and the list of these terms.

    Stop words are excluded; with at least :data:`_MIN_STATEMENTS_FOR_RARE_WORDS` texts, so are words that occur in
    fewer than three of them.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(analyzer=split_terms, min_df=3 if len(texts) >= _MIN_STATEMENTS_FOR_RARE_WORDS else 1)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:
        raise InputError("The statements contain only stop words.") from None
    return counts, vectorizer.get_feature_names_out().tolist()


def compute_class_weights(counts: "csr_matrix", groups: IntArray) -> "csr_matrix":
    """Return class-based TF-IDF (Grootendorst 2022, section 3.3) with square roots of the groups' term frequencies.

    Args:
        counts: Number of occurrences of each term in each text, shape [texts, terms]; every term must occur.
        groups: Group of each text, shape [texts]; texts of group -1 count for the inverse frequencies, but have no
            weights.

    Returns:
        Weights of the terms in each group, shape [groups, terms].
    """
    from scipy.sparse import csr_matrix, diags
    from sklearn.preprocessing import normalize

    min_group = int(groups.min())
    texts = np.arange(len(groups))
    membership = csr_matrix((np.ones(len(groups)), (groups - min_group, texts)))
    sums = membership @ counts
    inverse_frequencies = np.log1p(int(sums.sum(axis=1).mean()) / sums.sum(axis=0).A1)
    return csr_matrix(normalize(sums, norm="l1").sqrt() @ diags(inverse_frequencies))[-min_group:]


def _select_typical_words(
    weights: NDArray[np.float64], words: Sequence[str], encoder: Encoder, settings: TopicSettings
) -> tuple[tuple[str, ...], ...]:
    """Select words that describe each group by maximal marginal relevance; ``weights`` has shape [groups, terms]."""
    order = np.argsort(-weights, axis=1, kind="stable")[:, :_N_CANDIDATE_WORDS]
    candidates = [
        [words[term] for term in ranked_terms if row[term] > 0]
        for row, ranked_terms in zip(weights, order, strict=True)
    ]
    distinct_words = list(dict.fromkeys(word for group in candidates for word in group))
    vector_by_word = dict(zip(distinct_words, encoder.encode(distinct_words), strict=True))
    group_vectors = encoder.encode([" ".join(group) for group in candidates])
    results = []
    for group, group_vector in zip(candidates, group_vectors, strict=True):
        if not group:
            results.append(())
            continue
        vectors = np.stack([vector_by_word[word] for word in group])
        relevance = (1 - settings.diversity) * (vectors @ group_vector)
        similarities = settings.diversity * vectors @ vectors.T
        selected_indices = [int(relevance.argmax())]
        while len(selected_indices) < min(settings.words, len(group)):
            gain = relevance - similarities[:, selected_indices].max(axis=1)
            gain[selected_indices] = -np.inf
            selected_indices.append(int(gain.argmax()))
        results.append(tuple(group[index] for index in sorted(selected_indices)))
    return tuple(results)


def _renumber_by_size(groups: IntArray) -> tuple[IntArray, list[int]]:
    """Renumber groups by decreasing size, ties by first occurrence.

    Return the new group of each statement, and the old number of each new group.
    """
    numbers, first_indices, counts = np.unique(groups[groups >= 0], return_index=True, return_counts=True)
    order = [int(numbers[index]) for index in sorted(range(len(numbers)), key=lambda p: (-counts[p], first_indices[p]))]
    new_numbers = np.full(int(numbers.max()) + 2, OUTSIDE)
    new_numbers[order] = np.arange(len(order))
    return np.asarray(new_numbers[groups], dtype=np.int64), order


def find_nearest_neighbours(vectors: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Return each vector's nearest neighbours by cosine (itself first) and their distances, both of shape [n, count].

    The search is exact, since compiling an approximate search takes longer than comparing a hundred thousand vectors.
    """
    indices = np.zeros((len(vectors), count), dtype=np.int64)
    distances = np.zeros((len(vectors), count), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = 2  # above all others, including equal vectors
        neighbours = np.sort(np.argpartition(-cosines, count - 1, axis=1)[:, :count], axis=1)
        order = np.argsort(-np.take_along_axis(cosines, neighbours, axis=1), axis=1, kind="stable")
        neighbours = np.take_along_axis(neighbours, order, axis=1)
        indices[start : start + _BLOCK] = neighbours
        distances[start : start + _BLOCK] = np.clip(1 - np.take_along_axis(cosines, neighbours, axis=1), 0, None)
    return indices, distances


def _make_umap(components: int, spread: float, seed: int, neighbours: int, vectors: FloatArray) -> Any:
    count = min(neighbours, len(vectors) - 1)
    return _import("umap").UMAP(
        n_neighbors=count,
        n_components=components,
        min_dist=spread,
        metric="cosine",
        random_state=seed,
        n_jobs=1,
        precomputed_knn=find_nearest_neighbours(vectors, count),
    )


def _import(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(f"Topics need {name}: pip install 'climassay[topics]'.") from error


N_EXAMPLES = 8
_STATEMENT_WEIGHT = 2
"""Weight of a statement relative to the sentences around it."""
ONE_REPORT_SHARE = 0.9
"""A topic is attributed to a report if at least this proportion of its statements are in the report.

Topics are only attributed if there are several reports.
"""


@dataclass(frozen=True, slots=True)
class FittedTopics:
    """Topics found among statements, each named after its most characteristic words, with their vectors."""

    model: TopicModel
    centres: NDArray[np.float32]
    """Unit vectors of the topics' centres, shape [topics, width]."""
    members: tuple[NDArray[np.float32], ...]
    """Vectors of each topic's tagged statements, shape [size, width] each."""


@dataclass(frozen=True, slots=True)
class NamedTopics:
    """Named topics, with the data by which the next run recognises them."""

    model: TopicModel
    named: tuple[NamedTopic, ...]
    unused: tuple[NamedTopic, ...]
    """Topics that were named by hand in an earlier run and not found again."""
    proposals: tuple[NameProposal | None, ...]
    """Name that a model proposed for each topic; None if no model was used."""


def fit_topics(
    statements: Sequence[Statement],
    encoder: Encoder,
    settings: TopicSettings | None = None,
    *,
    assign_untagged: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> FittedTopics:
    """Find topics among tagged statements.

    Args:
        statements: Statements in any order; duplicates are ignored.
        encoder: Encoder of the sentences; their vectors are cached.
        settings: Settings; the same statements, encoder and settings give the same topics.
        assign_untagged: Whether to assign untagged statements to the nearest topic, too; otherwise they are omitted.
        on_progress: Callback that receives the number of sentences of :func:`context_sentences` encoded since its last
            call.

    Raises:
        InputError: Too few statements are tagged, two have the same id, or no clusters are found.
        MissingExtraError: The extra ``topics`` is not installed.
    """
    settings = settings or TopicSettings()
    # Sorted by id, so that the order of a file has no effect.
    sorted_statements = sorted(_select_statements(statements, assign_untagged), key=lambda statement: statement.id)
    duplicate_id = next((a.id for a, b in pairwise(sorted_statements) if a.id == b.id), None)
    if duplicate_id is not None:
        raise InputError(f"Two statements have the id {duplicate_id!r}: extract the reports together, or rename one.")
    tagged_statements = [statement for statement in sorted_statements if statement.tag is not None]
    untagged_statements = [statement for statement in sorted_statements if statement.tag is None]
    vectors = encode_with_context([*tagged_statements, *untagged_statements], encoder, on_progress=on_progress)
    tagged_vectors = vectors[: len(tagged_statements)]
    grouping = group_statements([statement.text for statement in tagged_statements], tagged_vectors, encoder, settings)
    coordinates = project_vectors(tagged_vectors, settings.seed, settings.neighbours).round(3).tolist()
    assigned_statements = [
        AssignedStatement(statement.id, int(group), bool(is_outlier), float(x), float(y))
        for statement, group, is_outlier, (x, y) in zip(
            tagged_statements, grouping.groups, grouping.outliers, coordinates, strict=True
        )
    ]
    if untagged_statements:
        numbers = find_nearest(vectors[len(tagged_statements) :], grouping.centres)
        assigned_statements += [
            AssignedStatement(s.id, int(number)) for s, number in zip(untagged_statements, numbers, strict=True)
        ]
    has_reports = len({statement.report for statement in tagged_statements}) > 1
    topics = tuple(
        _make_topic(number, tagged_statements, tagged_vectors, grouping, has_reports)
        for number in range(len(grouping.words))
    )
    outliers = int(grouping.outliers.sum())
    model = TopicModel(
        topics, tuple(assigned_statements), sum(grouping.clusters_per_group), outliers, encoder.fingerprint, settings
    )
    member_vectors = tuple(tagged_vectors[grouping.groups == number] for number in range(len(topics)))
    return FittedTopics(model, grouping.centres, member_vectors)


def _select_statements(statements: Iterable[Statement], assign_untagged: bool) -> list[Statement]:
    return [s for s in statements if s.duplicate_of is None and (assign_untagged or s.tag is not None)]


def context_sentences(statements: Iterable[Statement], *, assign_untagged: bool = False) -> list[str]:
    """Return the distinct sentences of statements and their contexts."""
    selected_statements = _select_statements(statements, assign_untagged)
    return list(dict.fromkeys(sentence for s in selected_statements for sentence in (*s.before, s.text, *s.after)))


def encode_with_context(
    statements: Sequence[Statement], encoder: Encoder, *, on_progress: Callable[[int], None] | None = None
) -> NDArray[np.float32]:
    """Return unit vectors of statements with context, shape [statements, width].

    A vector is the mean of the sentences' vectors, weighted by their length in characters; the statement itself counts
    twice. Neighbouring statements share most sentences, so each distinct sentence is encoded once and cached.
    """
    from scipy.sparse import csr_matrix

    sentences = context_sentences(statements, assign_untagged=True)
    sentence_vectors = cached_vectors(sentences, encoder, "sentence_vectors", on_progress=on_progress)
    column_by_sentence = {sentence: column for column, sentence in enumerate(sentences)}
    entries = [
        (
            row,
            column_by_sentence[sentence],
            (_STATEMENT_WEIGHT if sentence is statement.text else 1) * (len(sentence) or 1),
        )
        for row, statement in enumerate(statements)
        for sentence in (*statement.before, statement.text, *statement.after)
    ]
    rows, columns, weights = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = csr_matrix((np.array(weights, np.float32), (rows, columns)), (len(statements), len(sentences)))
    vectors = matrix @ sentence_vectors
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def name_topics(
    fitted_topics: FittedTopics,
    statements: Sequence[Statement],
    encoder: Encoder,
    *,
    earlier: Sequence[NamedTopic] = (),
    generator: Generator | None = None,
    prompts: Path | None = None,
) -> NamedTopics:
    """Name topics.

    Names come from an earlier run if it had the same topics, otherwise from a model or, without a model, from the
    topics' words.

    Args:
        fitted_topics: Topics to name.
        statements: Statements of the topics.
        encoder: Encoder with which the topics were fitted; it is used to judge a model's names.
        earlier: Names of an earlier run, including names that users wrote.
        generator: Model that proposes names; None names topics by their words.
        prompts: Folder of templates that replace the bundled ones.
    """
    model, topics = fitted_topics.model, fitted_topics.model.topics
    texts: list[list[str]] = [[] for _ in topics]
    for statement in statements:
        number = model.topic_of(statement.id)
        if statement.tag is not None and number is not None and number != OUTSIDE:
            texts[number].append(statement.text)
    matches = match_names(earlier, texts)
    proposals: dict[int, NameProposal] = {}
    if generator is not None:
        # Names are requested for all topics, so that answers do not depend on earlier names.
        text_by_id = {statement.id: statement.text for statement in statements}
        examples = [[text_by_id[id_] for id_ in topic.examples] for topic in topics]
        word_names, words = [topic.name for topic in topics], [topic.words for topic in topics]
        names = propose_names(word_names, words, examples, generator, seed=model.settings.seed, prompts=prompts)
        used_names = [earlier[index].name for index in matches.values()]
        proposals = dict(
            enumerate(judge_names(names, fitted_topics.centres, encoder, used_names, members=fitted_topics.members))
        )
    renamed_topics, named_topics = [], []
    for topic in topics:
        match = earlier[matches[topic.number]] if topic.number in matches else None
        proposal = proposals.get(topic.number) if match is None else None
        name, source = topic.name, topic.named_by
        if match is not None:
            name, source = match.name, "hand" if match.by_hand else "earlier"
        elif proposal is not None and not proposal.fault:
            name, source = proposal.name, "model"
        renamed_topics.append(replace(topic, name=name, named_by=source))
        topic_texts = texts[topic.number]
        proposed_name = name if match is None else match.proposed
        named_topics.append(NamedTopic(name, proposed_name, len(set(topic_texts)), make_sketch(topic_texts)))
    matched_indices = set(matches.values())
    unused_names = tuple(topic for index, topic in enumerate(earlier) if topic.by_hand and index not in matched_indices)
    all_proposals = tuple(proposals.get(topic.number) for topic in topics)
    return NamedTopics(replace(model, topics=tuple(renamed_topics)), tuple(named_topics), unused_names, all_proposals)


def _make_topic(
    number: int,
    tagged_statements: Sequence[Statement],
    vectors: NDArray[np.float32],
    grouping: Grouping,
    has_reports: bool,
) -> Topic:
    """Return a topic named after phrases in its statements; ``vectors`` has the shape [tagged statements, width]."""
    members = np.flatnonzero(grouping.groups == number)
    core_members = members[~grouping.outliers[members]]
    order = np.argsort(-(vectors[core_members] @ grouping.centres[number]), kind="stable")
    examples, texts = [], set()
    for index in core_members[order]:
        if tagged_statements[index].text not in texts:
            texts.add(tagged_statements[index].text)
            examples.append(tagged_statements[index].id)
        if len(examples) == N_EXAMPLES:
            break
    member_texts = [tagged_statements[index].text for index in members.tolist()]
    words = spell_terms(grouping.words[number], member_texts)
    ((report, n_in_report),) = Counter(tagged_statements[index].report for index in members.tolist()).most_common(1)
    return Topic(
        number,
        join_phrases(find_noun_phrases(grouping.words[number], member_texts) or words),
        words,
        len(members),
        len(members) - len(core_members),
        grouping.clusters_per_group[number],
        tuple(examples),
        report=report if has_reports and n_in_report >= ONE_REPORT_SHARE * len(members) else None,
    )
