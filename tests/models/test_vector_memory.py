"""Vectors kept in memory: the same as without, each text encoded once, and no more kept than wanted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from climassay.models.encoders.embedding_cache import CachedEncoder
from debate_parts import WordEncoder

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


def test_a_memory_is_not_put_around_a_memory():
    memory = CachedEncoder.of(WordEncoder())
    assert CachedEncoder.of(memory) is memory
