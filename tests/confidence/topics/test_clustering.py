"""Groups of statements: planted ones are found, joined as wanted, and the same every time."""

import importlib

import numpy as np
import pytest

from climassay.confidence.topics import TopicSettings, group_statements, modelling, project_vectors
from climassay.confidence.topics.modelling import compute_centres, find_nearest, merge_clusters
from climassay.errors import InputError, MissingExtraError
from planted_statements import NoisyTopicEncoder, planted

pytestmark = pytest.mark.model

pytest.importorskip("hdbscan", reason="needs the extra topics")


@pytest.fixture(scope="module")
def data():
    statements, encoder = planted(), NoisyTopicEncoder()
    texts = [one.text for one in statements]
    return statements, texts, encoder.encode([one.context for one in statements]), encoder


def grouped(data, **settings):
    _, texts, vectors, encoder = data
    return group_statements(texts, vectors, encoder, TopicSettings(**settings))


def truth(statements):
    return [one.id.split("-")[0] for one in statements]


def test_planted_topics_are_found_with_their_words(data):
    found = grouped(data)
    topics = truth(data[0])
    assert len(found.words) == 6
    assert sum(found.clusters_per_group) == 6
    for group, words in enumerate(found.words):
        members = {topic for topic, given in zip(topics, found.groups, strict=True) if given == group}
        assert len(members) == 1
        assert any(members.pop() in word for word in words)


def test_groups_are_joined_to_as_many_as_are_wanted_and_largest_first(data):
    found = grouped(data, topics=4)
    sizes = np.bincount(found.groups[found.groups >= 0])
    assert len(sizes) == 4
    assert sum(found.clusters_per_group) == 6
    assert list(sizes) == sorted(sizes, reverse=True)
    assert all(abs(np.linalg.norm(centre) - 1) < 1e-5 for centre in found.centres)


def test_joining_by_words_keeps_planted_topics_whole(data):
    found = grouped(data, topics=4, reduction="words")
    groups = {(topic, group) for topic, group in zip(truth(data[0]), found.groups.tolist(), strict=True)}
    assert len(groups) == 6
    assert len(found.words) == 4


def test_the_same_seed_gives_the_same_groups_words_and_map(data):
    first, second = grouped(data), grouped(data)
    assert (first.groups == second.groups).all()
    assert first.words == second.words
    vectors = data[2]
    assert np.array_equal(project_vectors(vectors, 3), project_vectors(vectors, 3))


def test_outliers_are_left_or_given_to_the_nearest_group(data):
    _statements, texts, vectors, encoder = data
    strange = np.random.default_rng(1).normal(size=(6, vectors.shape[1])).astype(np.float32)
    strange /= np.linalg.norm(strange, axis=1, keepdims=True)
    more = ([*texts, *(f"Something else {n} entirely" for n in range(6))], np.concatenate([vectors, strange]), encoder)
    left = group_statements(*more, TopicSettings(outliers="leave"))
    given = group_statements(*more, TopicSettings(outliers="assign"))
    assert (left.groups[left.outliers] == -1).all()
    assert (given.groups >= 0).all()
    assert (given.outliers == left.outliers).all()


def test_clusters_are_joined_by_ward():
    # Three directions a little apart and one far away: with two groups the far one stands alone.
    angles = np.array([0.0, 0.1, 0.3, 1.5])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    joined = merge_clusters((vectors @ vectors.T).astype(np.float32), 2)
    assert joined[0] == joined[1] == joined[2] != joined[3]
    assert merge_clusters(np.eye(3, dtype=np.float32), 5).tolist() == [0, 1, 2]


def test_centres_leave_out_what_has_no_cluster():
    vectors = np.array([[1, 0], [0, 1], [0, 1], [-1, 0]], dtype=np.float32)
    centres = compute_centres(vectors, np.array([0, 1, 1, -1]))
    assert np.allclose(centres, [[1, 0], [0, 1]])
    assert find_nearest(vectors[:2], centres).tolist() == [0, 1]


def test_too_few_statements_are_refused(data):
    _, texts, vectors, encoder = data
    with pytest.raises(InputError, match="at least 20 tagged statements; there are 5"):
        group_statements(texts[:5], vectors[:5], encoder, TopicSettings())


def test_a_missing_library_is_named_with_its_extra(data, monkeypatch):
    real = importlib.import_module

    def without(name, *rest):
        if name == "hdbscan":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingExtraError, match=r"climassay\[topics\]"):
        grouped(data)


class OneHeap:
    """A map on which five subjects lie so near one another, and the sixth so far away, that the five look like one."""

    def __init__(self, topics):
        self._topics = topics

    def fit(self, _vectors, y=None):
        return self

    def transform(self, _vectors):
        names = sorted(set(self._topics))
        seen = dict.fromkeys(names, 0)
        places = []
        for topic in self._topics:
            corner = 5.0 * names.index(topic) if topic != names[-1] else 1000.0
            places.append((corner + 0.6 * (seen[topic] % 5), 0.6 * (seen[topic] // 5)))
            seen[topic] += 1
        return np.asarray(places, dtype=np.float32)

    def fit_transform(self, vectors, y=None):
        return self.transform(vectors)


def test_a_cluster_of_nearly_everything_is_cut_into_what_it_consists_of(data, monkeypatch):
    monkeypatch.setattr(modelling, "_make_umap", lambda *_: OneHeap(truth(data[0])))
    found = grouped(data)
    assert len(found.words) == 6
    assert np.bincount(found.groups[found.groups >= 0]).max() <= len(data[1]) / 2
    # Without the limit they are one, which is what HDBSCAN's excess of mass makes of them.
    monkeypatch.setattr(modelling, "_MAX_CLUSTER_SHARE", 1.0)
    assert sorted(np.bincount(grouped(data).groups)) == [30, 150]
