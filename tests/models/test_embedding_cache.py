"""Vectors are encoded once for a text, in files and in memory; a spoilt cache is made anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.models import encoders as room
from climassay.models.encoders import CachedEncoder
from debate_parts import WordEncoder
from planted_statements import NoisyTopicEncoder


def cached_vectors(texts, encoder, **more):
    return room.cached_vectors(texts, encoder, "statement_vectors", **more)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))
    return tmp_path


def test_a_text_is_encoded_once_whatever_else_is_asked_for(cache):
    encoder = NoisyTopicEncoder()
    first = cached_vectors(["ocean a", "cloud b", "ocean a"], encoder)
    assert encoder.encoded == 2
    done = []
    again = cached_vectors(["cloud b", "glacier c"], encoder, on_progress=done.append)
    assert encoder.encoded == 3
    assert sum(done) == 2
    assert np.array_equal(again[0], first[1])
    assert np.array_equal(first[0], first[2])


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"], ids=["empty", "text", "cut"])
def test_a_spoilt_cache_is_made_anew(cache, content):
    encoder = NoisyTopicEncoder()
    cached_vectors(["ocean"], encoder)
    [file] = (cache / "statement_vectors").iterdir()
    file.write_bytes(content)
    assert cached_vectors(["ocean"], encoder).shape == (1, encoder.width)
    assert encoder.encoded == 2


TEXTS = st.lists(st.sampled_from(["ice", "ice melts", "the sea", ""]), max_size=6)


@given(st.lists(TEXTS, max_size=5), st.integers(0, 3))
def test_vectors_are_those_of_the_encoder_whatever_is_kept(calls, most):
    plain, memory = WordEncoder(), CachedEncoder(WordEncoder(), most)
    for texts in calls:
        np.testing.assert_array_equal(memory.encode(texts), plain.encode(texts))


@given(st.lists(TEXTS, max_size=5))
def test_a_text_is_encoded_once(calls):
    encoder = WordEncoder()
    memory = CachedEncoder(encoder)
    for texts in calls:
        memory.encode(texts)
    assert sorted(encoder.encoded) == sorted({text for texts in calls for text in texts})


def test_queries_and_passages_may_differ_and_are_kept_apart():
    class ByRole(WordEncoder):
        def encode(self, texts, *, role="passage", on_progress=None):
            return super().encode([f"{role} {text}" for text in texts])

    memory = CachedEncoder(ByRole())
    for _ in range(2):
        assert (memory.encode(["ice"]) != memory.encode(["ice"], role="query")).any()
    assert memory.wrapped.encoded == ["passage ice", "query ice"]


def test_what_was_not_met_for_the_longest_time_goes_first():
    encoder = WordEncoder()
    memory = CachedEncoder(encoder, most=2)
    for texts in (["a"], ["b"], ["a"], ["c"], ["a"], ["b"]):
        memory.encode(texts)
    assert encoder.encoded == ["a", "b", "c", "b"]
