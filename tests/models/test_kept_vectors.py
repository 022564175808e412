"""Vectors are encoded once for a text, and a spoilt cache is made anew."""

import numpy as np
import pytest

from climassay.models.encoders import embedding_cache as room
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


def test_order_is_that_of_the_texts(cache):
    texts = ["a much longer text about the ocean and its depth", "short cloud"]
    encoder = NoisyTopicEncoder()
    assert np.array_equal(cached_vectors(texts, encoder), encoder.encode(texts))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"], ids=["empty", "text", "cut"])
def test_a_spoilt_cache_is_made_anew(cache, content):
    encoder = NoisyTopicEncoder()
    cached_vectors(["ocean"], encoder)
    [file] = (cache / "statement_vectors").iterdir()
    file.write_bytes(content)
    assert cached_vectors(["ocean"], encoder).shape == (1, encoder.width)
    assert encoder.encoded == 2


def test_no_texts_have_no_vectors(cache):
    assert cached_vectors([], NoisyTopicEncoder()).shape == (0, NoisyTopicEncoder.width)
