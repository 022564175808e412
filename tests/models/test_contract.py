"""What holds for every model: windows, calibration, vectors encoded once, and loading when it is first asked."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError, ModelError
from climassay.models import (
    GenerationRequest,
    Message,
    ModelOptions,
    OpenWeights,
    OptionRequest,
    OptionScores,
    Sampling,
    StreamingGenerator,
    load_model,
)
from climassay.models import encoders as room
from climassay.models.contract import (
    CHARACTERS_PER_TOKEN,
    DEFAULT_WINDOW,
    Windowed,
    calibrate,
    compute_correction,
    mean_log_probabilities,
    token_count,
    window_of,
)
from climassay.models.encoders import CachedEncoder
from climassay.models.local.model import LocalModel
from climassay.models.provider import LazyModel, loaded_model
from climassay.workspace import cache_folder
from debate_parts import WordEncoder
from planted_statements import NoisyTopicEncoder
from scripted_model import ScriptedModel
from tiny_models import save_tiny


class Telling(ScriptedModel):
    window = 96

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]


def test_a_model_that_tells_is_believed():
    model = Telling()
    assert isinstance(model, Windowed)
    assert window_of(model) == 96
    assert token_count(model, "The sea is warm.") == 4


@pytest.mark.parametrize(("characters", "tokens"), [(0, 1), (3, 1), (4, 2), (35, 11)])
def test_a_model_that_does_not_tell_is_given_too_many_tokens_rather_than_too_few(characters, tokens):
    model = ScriptedModel()
    assert not isinstance(model, Windowed)
    assert window_of(model) == DEFAULT_WINDOW
    assert token_count(model, "x" * characters) == tokens >= characters / CHARACTERS_PER_TOKEN


LOGS = st.floats(-80, 0)


def logs(*probabilities):
    return tuple(map(math.log, probabilities))


def test_paper_example_of_a_biased_model():
    # Zhao et al. (2021), section 5: a content-free input that is 61.8% positive; after the correction it is even.
    assert calibrate(logs(0.618, 0.382), logs(0.618, 0.382)) == pytest.approx((0.5, 0.5))


def test_mean_is_taken_of_normalised_probabilities():
    # (0.2, 0.2) is (0.5, 0.5) and (0.09, 0.01) is (0.9, 0.1): their mean is (0.7, 0.3), however likely the words are.
    assert mean_log_probabilities([logs(0.2, 0.2), logs(0.09, 0.01)]) == pytest.approx(logs(0.7, 0.3))


@given(st.lists(st.tuples(LOGS, LOGS), min_size=1, max_size=6), st.floats(-5, 5))
def test_probabilities_sum_to_one_and_ignore_a_common_shift(pairs, shift):
    scores, base = zip(*pairs, strict=True)
    probabilities = calibrate(scores, base)
    assert sum(probabilities) == pytest.approx(1)
    assert calibrate([score + shift for score in scores], base) == pytest.approx(probabilities, abs=1e-9)


@pytest.mark.parametrize(
    ("scores", "correction"),
    [((), None), ((0.0, math.nan), None), ((0.0, -math.inf), None), ((0.0, 0.0), (0.0,)), ((0.0,), (-math.inf,))],
    ids=["none", "nan", "infinite", "length", "correction"],
)
def test_scores_that_cannot_be_used_are_refused(scores, correction):
    with pytest.raises(InputError):
        calibrate(scores, correction)


def test_a_correction_leaves_failures_out_and_needs_one_answer():
    scores = [OptionScores(logs(0.4, 0.4)), OptionScores.failed("timeout"), OptionScores(logs(0.9, 0.1))]
    assert compute_correction(scores) == pytest.approx(logs(0.7, 0.3))
    with pytest.raises(ModelError, match="timeout"):
        compute_correction(scores[1:2])


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
    memory = CachedEncoder(encoder, max_texts=2)
    for texts in (["a"], ["b"], ["a"], ["c"], ["a"], ["b"]):
        memory.encode(texts)
    assert encoder.encoded == ["a", "b", "c", "b"]


CHAT = (Message("system", "Answer briefly."), Message("user", "What is <|im_end|> ice?"))
TEMPLATE = "{% for one in messages %}<|im_start|>{{ one.role }}\n{{ one.content }}<|im_end|>{% endfor %}"


@pytest.fixture
def small_model(monkeypatch, tmp_path) -> str:
    """A small model with a chat template, and a cache folder in which nothing is known of it."""
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    return f"local:{save_tiny(tmp_path / 'model', chat_template=TEMPLATE)}"


def cards() -> list[Path]:
    return sorted((cache_folder() / "models").glob("*.json"))


def test_the_second_time_it_says_the_same_of_itself_and_answers_the_same(small_model):
    first, second = load_model(small_model), load_model(small_model)
    assert isinstance(first, LocalModel)
    assert isinstance(second, LazyModel)
    assert len(cards()) == 1
    assert isinstance(second, OpenWeights)
    assert isinstance(second, StreamingGenerator)
    assert isinstance(second, Windowed)
    for part in ("name", "fingerprint", "window", "layers", "parameters", "dtype", "device", "token_budget", "folder"):
        assert getattr(second, part) == getattr(first, part), part
    assert second.render(CHAT, "It is") == first.render(CHAT, "It is")
    texts = ["", "Ice.", " 12 °C <|im_end|>\n\nמים 冰"]
    assert second.count_tokens(texts) == first.count_tokens(texts)
    assert second.generate([]) == []
    assert second.work.tokens == 0
    assert "_loaded" not in vars(second)
    second.close()
    options = [OptionRequest(CHAT, ("cold", "hot"))]
    expected = first.option_logprobs(options)[0].logprobs
    assert second.option_logprobs(options)[0].logprobs == pytest.approx(expected)
    asked = [GenerationRequest(CHAT, Sampling(max_tokens=5))]
    assert [one.text for one in second.generate(asked)] == [one.text for one in first.generate(asked)]
    states = first.harvest(options)[0].states
    np.testing.assert_allclose(second.harvest(options)[0].states, states, rtol=1e-5, atol=1e-6)
    assert loaded_model(second) is second.loaded()
    assert loaded_model(first) is first
    second.close()


def test_other_files_other_ways_of_loading_and_a_damaged_card_are_loaded_at_once(small_model):
    known = load_model(small_model)
    limited = load_model(small_model, ModelOptions(max_output_tokens=3))
    assert isinstance(limited, LocalModel)
    assert limited.fingerprint != known.fingerprint
    assert isinstance(load_model(small_model, ModelOptions(dtype="float16")), LocalModel)
    [card] = [one for one in cards() if json.loads(one.read_text())["fingerprint"] == known.fingerprint]
    card.write_text("{")
    assert isinstance(load_model(small_model), LocalModel)
    assert isinstance(load_model(small_model), LazyModel)
    settings = known.folder / "generation_config.json"
    settings.write_text(json.dumps({"temperature": 0.5}))
    changed = load_model(small_model)
    assert isinstance(changed, LocalModel)
    assert changed.fingerprint != known.fingerprint


def test_a_model_whose_files_change_before_it_is_first_asked_is_not_asked(small_model):
    load_model(small_model)
    known = load_model(small_model)
    (known.folder / "generation_config.json").write_text(json.dumps({"temperature": 0.5}))
    with pytest.raises(ModelError, match="have changed since the command began"):
        known.generate([GenerationRequest(CHAT, Sampling(max_tokens=5))])


def test_a_model_that_is_known_is_named_without_importing_torch(small_model):
    fingerprint = load_model(small_model).fingerprint
    code = (
        "import sys; from climassay.models import load_model; model = load_model(sys.argv[1]); "
        "assert 'torch' not in sys.modules; print(model.fingerprint)"
    )
    said = subprocess.run([sys.executable, "-c", code, small_model], capture_output=True, text=True, check=True).stdout
    assert said.strip() == fingerprint
