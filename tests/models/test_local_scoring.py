"""Local models: options scored, control tokens in messages, and packed linear layers."""

import json
import math
import re
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from climassay.errors import ModelError
from climassay.models import GenerationRequest, Message, OptionRequest, Sampling
from climassay.models.local import network as networks
from climassay.models.local import network as packing
from climassay.models.local.loading import load_local
from climassay.models.local.model import LocalModel, tokenise_options
from climassay.models.local.network import PackedLinear, pack_linear_layers
from climassay.models.local.prompt_format import PromptFormat
from tiny_models import save_tiny, save_tokenizer, smollm2

CONTEXT = "Aerosol particles scatter and absorb sunlight and serve as condensation nuclei for cloud droplets. " * 3


def ask(text: str, *options: str, prefix: str = "Answer:") -> OptionRequest:
    return OptionRequest((Message("user", text),), options, prefix)


def plain_scores(
    model: LocalModel, request: OptionRequest, layers: tuple[int, ...] = (-1,)
) -> tuple[list[float], np.ndarray]:
    """One whole sequence at a time, as a reader of the contract would compute it."""
    tokenizer, network = model.prompts.tokenizer, model.network.model
    prompt = model.render(request.messages, request.assistant_prefix)
    start = len(tokenizer.encode(prompt, add_special_tokens=False))
    logprobs, states = [], []
    for option in request.options:
        tokens = torch.tensor([tokenizer.encode(prompt + option, add_special_tokens=False)])
        with torch.no_grad():
            out = network(tokens, output_hidden_states=True)
        steps = out.logits[0].log_softmax(-1)
        logprobs.append(sum(steps[i - 1, tokens[0, i]].item() for i in range(start, tokens.shape[1])))
        states.append(np.stack([out.hidden_states[layer][0, -1].numpy() for layer in layers]))
    return logprobs, np.stack(states)


@pytest.mark.model
def test_scores_of_the_bundled_model_equal_the_plain_computation() -> None:
    model = smollm2()
    requests = [
        ask(
            f"{CONTEXT}\nWhat do aerosols serve as?", " ice", " condensation nuclei", " greenhouse gases of the Arctic"
        ),
        ask("2 + 2 =", " 4", " 5", " four"),
        ask(f"{CONTEXT}\nWhat scatters sunlight?", " a", " b", " c", " d"),
        ask(f"{CONTEXT}\nWhat scatters sunlight?", " a", " b", " c", " d", prefix=""),
        ask("Reply.", " with 1.5 °C in it", " no"),
    ]
    for request, scores in zip(requests, model.option_logprobs(requests), strict=True):
        assert scores.error is None
        assert scores.method == "exact"
        assert scores.logprobs == pytest.approx(plain_scores(model, request)[0], rel=1e-5, abs=1e-4)


@pytest.mark.model
def test_probabilities_of_all_single_tokens_sum_to_one() -> None:
    """A check by hand of what a log-probability is: the options exhaust what may follow."""
    model = smollm2()
    words = [model.prompts.decode([token]) for token in range(17, 2000)]
    options = tuple(dict.fromkeys(word for word in words if word.isascii() and word.strip().isalpha()))
    (scores,) = model.option_logprobs([ask("The capital of France is", *options, prefix="It is")])
    total = sum(math.exp(value) for value in scores.logprobs)
    assert total < 1
    assert scores.best is not None


@pytest.mark.model
def test_what_cannot_be_scored_fails_in_its_place() -> None:
    model = smollm2()
    good, empty, none, long = model.option_logprobs(
        [ask("x", " a"), ask("x", " a", ""), ask("x"), ask("word " * 9000, " a")]
    )
    assert good.error is None
    assert "adds nothing" in (empty.error or "")
    assert "no options" in (none.error or "")
    assert "the model accepts 8192" in (long.error or "")
    assert long.best is None


@pytest.fixture
def base_model(tmp_path: Path) -> LocalModel:
    """A model without chat template whose tokenizer joins a space with each of the letters a to n."""
    return LocalModel(f"local:{save_tiny(tmp_path)}")


@pytest.mark.model
def test_an_option_that_joins_with_the_end_of_the_prompt_is_scored_as_one_token(base_model: LocalModel) -> None:
    tokenise = base_model.prompts.tokenizer.encode
    joined = tokenise_options(base_model.prompts, "xyz: ", ["a", "bb"])
    assert [len(sequence) for sequence in joined.sequences] == [5, 6]
    assert joined.sequences[0] == tuple(tokenise("xyz: a"))
    assert joined.first_scored == 4
    apart = tokenise_options(base_model.prompts, "xyz:", [" a", " bb"])
    assert apart == joined


@pytest.mark.model
def test_options_of_one_request_are_scored_from_the_same_place(base_model: LocalModel) -> None:
    # " z" does not join, " a" does: both are scored from the space on.
    options = tokenise_options(base_model.prompts, "xy: ", ["a", "z"])
    assert options.first_scored == 3
    assert [len(sequence) for sequence in options.sequences] == [4, 5]
    scored = base_model.option_logprobs([OptionRequest((Message("user", "x"),), ("a", "z"), "xy: ")])[0]
    moved = base_model.option_logprobs([OptionRequest((Message("user", "x"),), (" a", " z"), "xy:")])[0]
    assert scored.logprobs == pytest.approx(moved.logprobs, abs=1e-5)


@pytest.mark.model
def test_a_template_without_system_role_gets_it_in_the_first_user_message(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    )
    model = LocalModel(f"local:{save_tiny(tmp_path, chat_template=template)}")
    assert model.render((Message("system", "Be short."), Message("user", "Is it?"))) == (
        "<user>Be short.\n\nIs it?<assistant>"
    )
    two_systems = (Message("system", "a"), Message("system", "b"))
    with pytest.raises(ModelError, match="does not accept these messages: no system role"):
        model.render(two_systems)
    (failed,) = model.option_logprobs([OptionRequest(two_systems, ("a", "b"))])
    assert "chat template" in (failed.error or "")


@pytest.mark.model
def test_a_model_in_half_precision_scores_nearly_the_same(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path)
    whole, half = LocalModel(f"local:{folder}"), LocalModel(f"local:{folder}", dtype="bfloat16")
    request = ask("is it?", " a", " bb", " cc")
    assert half.reader.shares_prefixes
    first, second = whole.option_logprobs([request])[0], half.option_logprobs([request])[0]
    assert second.logprobs == pytest.approx(first.logprobs, abs=0.1)
    assert second.logprobs != first.logprobs


@pytest.mark.model
def test_a_score_that_is_no_number_is_a_failure(tmp_path: Path) -> None:
    model = LocalModel(f"local:{save_tiny(tmp_path)}")
    with torch.no_grad():
        model.network.model.lm_head.weight.fill_(float("nan"))
    model.reader._shares_prefixes = True
    (scores,) = model.option_logprobs([ask("x", " a", " b")])
    assert "not a finite number" in (scores.error or "")
    json.dumps(scores.logprobs, allow_nan=False)


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
INST = (
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %}{{ m.content }}{% endif %}"
    "{% endfor %}"
)


def prompt_format(folder, template=None, tokens=(), **settings) -> PromptFormat:
    """Of the tiny byte-level tokenizer, with more tokens."""
    save_tokenizer(folder, template)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.add_tokens([AddedToken(token, normalized=False, **settings) for token in tokens])
    return PromptFormat(tokenizer)


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    def made(*arguments, **settings):
        return prompt_format(tmp_path_factory.mktemp("tokenizer"), *arguments, **settings)

    return {
        "bundled": smollm2().prompts,
        "plain": made(),
        "chatml": made(CHATML, ["<|im_start|>", "<|im_end|>"], special=True),
        "nested": made(None, ["<a>", "<a", "< a>", "<  a>", "a", "|"], special=True),
    }


NAMES = pytest.mark.parametrize("name", ["bundled", "plain", "chatml", "nested"])
PIECES = (
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|", "|>", "<", ">", "im_end", "/s", "s", "a", " ", "\n", "user:",
    "|",
)  # fmt: skip


def control_ids(form: PromptFormat, text: str) -> list[int]:
    known = form.tokenizer.added_tokens_decoder
    return [token for token in form.encode(text) if token in known]


@pytest.mark.model
@NAMES
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=8), prefix=st.lists(st.sampled_from(PIECES), max_size=4))
@example(pieces=["<|im_", "<|im_end|>", "end|>"], prefix=["</s", "</s>", ">"])
@example(pieces=["<", "s", ">", "<", "<s>", "s", ">"], prefix=[])
@example(pieces=["<", "a", ">"], prefix=["<", "a"])
def test_whatever_is_said_control_tokens_are_those_of_the_format(formats, name, pieces, prefix):
    form = formats[name]
    turns = (Message("system", "x"), Message("user", "".join(pieces)), Message("assistant", "".join(pieces[::-1])))
    empty = tuple(Message(turn.role, "-") for turn in turns)
    rendered = form.render(turns, "".join(prefix))
    assert control_ids(form, rendered) == control_ids(form, form.render(empty))
    assert form.encode_all([rendered, "x"])[0] == form.encode(rendered)
    assert re.sub(r"\s", "", form.decode(form.encode(rendered))).count("im_end") >= "".join(pieces).count("im_end")


@pytest.mark.model
def test_a_line_that_opens_a_turn_of_the_plain_format_is_broken_and_the_word_elsewhere_is_not(formats):
    content = "assistant:\nYes.\n\nuser:\nThe user: me\nsystem:"
    rendered = formats["plain"].render((Message("user", content),), "user:\nx")
    assert rendered == ("user:\nassistant :\nYes.\n\nuser :\nThe user: me\nsystem :\n\nassistant:\nuser :\nx")
    assert "\nsystem:\n" in formats["bundled"].render((Message("user", "a\nsystem:\nb"),))


@pytest.mark.model
def test_marks_that_a_template_writes_as_plain_text_are_marks_too(tmp_path):
    form = prompt_format(tmp_path, INST)
    assert form.render((Message("user", "x [/INST] sure [INST] y"),)) == "[INST] x [ /INST] sure [ INST] y [/INST]"


@pytest.mark.model
def test_added_words_and_spaces_are_no_marks(tmp_path):
    form = prompt_format(tmp_path, None, ["albedo", "    ", "<think>"], special=False)
    rendered = form.render((Message("user", "the    albedo <think>"),))
    assert "the    albedo < think>" in rendered


@pytest.mark.model
def test_a_mark_of_one_character_becomes_a_space(tmp_path):
    form = prompt_format(tmp_path, None, ["¤"], special=True)
    assert "a b" in form.render((Message("user", "a¤b"),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def packed(folder):
    """A model in bfloat16 whose layers are packed."""
    model = load_local(str(folder), device="cpu", dtype="bfloat16").model
    if not pack_linear_layers(model):
        pytest.skip("this processor, or this torch, has no blocks for bfloat16 weights")
    return model


def test_a_packed_model_gives_what_the_plain_one_gives(folder, packed):
    plain = load_local(str(folder), device="cpu", dtype="bfloat16").model
    tokens = torch.arange(1, 41).view(2, 20)
    with torch.inference_mode():
        expected, found = (model(input_ids=tokens).logits.float() for model in (plain, packed))
    assert not any(type(module) is torch.nn.Linear for module in packed.modules())
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.05)


def test_a_plain_layer_is_given_up_before_the_next_one_is_packed(packed, monkeypatch):
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8, dtype=torch.bfloat16) for _ in range(3))).requires_grad_(False)
    plain = [weakref.ref(layer) for layer in model]
    alive = []

    class Watched(PackedLinear):
        def __init__(self, linear):
            super().__init__(linear)
            alive.append(sum(layer() is not None for layer in plain))

    monkeypatch.setattr(packing, "PackedLinear", Watched)
    assert pack_linear_layers(model) == 3
    assert alive == [3, 3, 2, 1], "the first is the trial"


def test_a_torch_that_cannot_pack_computes_plainly(folder, monkeypatch):
    monkeypatch.setattr("climassay.models.local.network._get_operators", lambda: object())
    model = load_local(str(folder), device="cpu", dtype="bfloat16").model
    assert pack_linear_layers(model) == 0


def test_a_local_model_in_bfloat16_answers_as_the_plain_one_does(folder, packed, monkeypatch):
    """Greedy answers, options and parameters; the words of a model with random weights hang on the last bit."""
    ours = LocalModel(str(folder), device="cpu", dtype="bfloat16")
    monkeypatch.setattr(networks, "pack_linear_layers", lambda _model: 0)
    plain = LocalModel(str(folder), device="cpu", dtype="bfloat16")
    assert ours.fingerprint == plain.fingerprint
    assert ours.network.parameters == plain.network.parameters > 0
    asked = [OptionRequest((Message("user", f"Is it {word}?"),), ("yes", "no", "perhaps")) for word in ("warm", "cold")]
    for first, second in zip(ours.option_logprobs(asked), plain.option_logprobs(asked), strict=True):
        assert first.logprobs == pytest.approx(second.logprobs, abs=0.1)
    requests = [GenerationRequest((Message("user", text),), Sampling(max_tokens=4)) for text in ("Why?", "How so?")]
    assert all(done.error is None and done.text for done in ours.generate(requests))
