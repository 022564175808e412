"""A local model that is known from before is loaded when it is first asked."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from climassay.errors import ModelError
from climassay.models import load_model
from climassay.models.contract import (
    GenerationRequest,
    Message,
    OpenWeights,
    OptionRequest,
    Sampling,
    StreamingGenerator,
    Windowed,
)
from climassay.models.local.model import LocalModel
from climassay.models.provider import LazyModel, loaded_model
from climassay.workspace import cache_folder
from tiny_models import save_tiny

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
    assert second.option_logprobs(options)[0].logprobs == first.option_logprobs(options)[0].logprobs
    asked = [GenerationRequest(CHAT, Sampling(max_tokens=5))]
    assert [one.text for one in second.generate(asked)] == [one.text for one in first.generate(asked)]
    assert (second.harvest(options)[0].states == first.harvest(options)[0].states).all()
    assert loaded_model(second) is second.loaded()
    assert loaded_model(first) is first
    second.close()


def test_other_files_other_ways_of_loading_and_a_damaged_card_are_loaded_at_once(small_model):
    known = load_model(small_model)
    limited = load_model(small_model, max_output_tokens=3)
    assert isinstance(limited, LocalModel)
    assert limited.fingerprint != known.fingerprint
    assert isinstance(load_model(small_model, dtype="float16"), LocalModel)
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
