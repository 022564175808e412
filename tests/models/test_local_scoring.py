import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from climassay.errors import ModelError
from climassay.models.contract import Message, OptionRequest
from climassay.models.local.model import LocalModel, tokenise_options
from tiny_models import save_tiny, smollm2

pytestmark = pytest.mark.model

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


def test_probabilities_of_all_single_tokens_sum_to_one() -> None:
    """A check by hand of what a log-probability is: the options exhaust what may follow."""
    model = smollm2()
    words = [model.prompts.decode([token]) for token in range(17, 2000)]
    options = tuple(dict.fromkeys(word for word in words if word.isascii() and word.strip().isalpha()))
    (scores,) = model.option_logprobs([ask("The capital of France is", *options, prefix="It is")])
    total = sum(math.exp(value) for value in scores.logprobs)
    assert total < 1
    assert scores.best is not None


def test_what_cannot_be_scored_fails_in_its_place() -> None:
    model = smollm2()
    good, empty, none, long = model.option_logprobs(
        [ask("x", " a"), ask("x", " a", ""), ask("x"), ask("word " * 9000, " a")]
    )
    assert good.error is None
    assert "adds nothing" in (empty.error or "")
    assert "no options" in (none.error or "")
    assert "the model takes 8192" in (long.error or "")
    assert long.best is None


@pytest.fixture
def base_model(tmp_path: Path) -> LocalModel:
    """A model without chat template whose tokenizer joins a space with each of the letters a to n."""
    return LocalModel(f"local:{save_tiny(tmp_path)}")


def test_an_option_that_joins_with_the_end_of_the_prompt_is_scored_as_one_token(base_model: LocalModel) -> None:
    tokenise = base_model.prompts.tokenizer.encode
    joined = tokenise_options(base_model.prompts, "xyz: ", ["a", "bb"])
    assert [len(sequence) for sequence in joined.sequences] == [5, 6]
    assert joined.sequences[0] == tuple(tokenise("xyz: a"))
    assert joined.start == 4
    apart = tokenise_options(base_model.prompts, "xyz:", [" a", " bb"])
    assert apart == joined


def test_options_of_one_request_are_scored_from_the_same_place(base_model: LocalModel) -> None:
    # " z" does not join, " a" does: both are scored from the space on.
    options = tokenise_options(base_model.prompts, "xy: ", ["a", "z"])
    assert options.start == 3
    assert [len(sequence) for sequence in options.sequences] == [4, 5]
    scored = base_model.option_logprobs([OptionRequest((Message("user", "x"),), ("a", "z"), "xy: ")])[0]
    moved = base_model.option_logprobs([OptionRequest((Message("user", "x"),), (" a", " z"), "xy:")])[0]
    assert scored.logprobs == pytest.approx(moved.logprobs, abs=1e-5)


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


def test_a_model_in_half_precision_scores_nearly_the_same(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path)
    whole, half = LocalModel(f"local:{folder}"), LocalModel(f"local:{folder}", dtype="bfloat16")
    request = ask("is it?", " a", " bb", " cc")
    assert half.reader.shares
    first, second = whole.option_logprobs([request])[0], half.option_logprobs([request])[0]
    assert second.logprobs == pytest.approx(first.logprobs, abs=0.1)
    assert second.logprobs != first.logprobs


def test_a_score_that_is_no_number_is_a_failure(tmp_path: Path) -> None:
    model = LocalModel(f"local:{save_tiny(tmp_path)}")
    with torch.no_grad():
        model.network.model.lm_head.weight.fill_(float("nan"))
    model.reader._shares = True
    (scores,) = model.option_logprobs([ask("x", " a", " b")])
    assert "not a finite number" in (scores.error or "")
    json.dumps(scores.logprobs, allow_nan=False)
