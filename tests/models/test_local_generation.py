import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from climassay.errors import ModelError
from climassay.models import Completion, GenerationRequest, Message, Sampling, StreamingGenerator, load_model
from climassay.models.local.generation import AddedRow, SharedRows, TokenSampler, draw_tokens
from climassay.models.local.model import LocalModel
from climassay.models.local.network import Network
from debate_workspaces import make_model
from tiny_models import save_tiny, smollm2

pytestmark = pytest.mark.model

PROMPTS = (
    "Name a greenhouse gas.",
    "What is the capital of France?",
    "Explain in two sentences why the ocean becomes more acid when it takes up carbon dioxide from the air.",
    "Count from one to ten.",
    "hi",
)


def ask(text: str, prefix: str = "", schema: dict | None = None, **sampling) -> GenerationRequest:
    return GenerationRequest((Message("user", text),), Sampling(**sampling), schema, prefix)


def texts(completions: list[Completion]) -> list[str]:
    assert [completion.error for completion in completions] == [None] * len(completions)
    return [completion.text for completion in completions]


def test_a_batch_gives_what_each_prompt_gives_alone_and_what_transformers_generates() -> None:
    model = smollm2()
    requests = [ask(prompt, max_tokens=16 + 4 * number) for number, prompt in enumerate(PROMPTS)]
    together = texts(model.generate(requests))
    assert together == [texts(model.generate([request]))[0] for request in requests]
    tokenizer = model.prompts.tokenizer
    for request, text in zip(requests[:3], together, strict=False):
        tokens = torch.tensor([model.prompts.encode(model.render(request.messages))])
        mask = torch.ones_like(tokens)
        made = model.network.model.generate(
            tokens, attention_mask=mask, max_new_tokens=request.sampling.max_tokens, do_sample=False
        )
        assert text == tokenizer.decode(made[0, tokens.shape[1] :], skip_special_tokens=True)


def test_a_row_may_end_after_the_cache_has_grown_while_others_go_on(tmp_path: Path) -> None:
    model = load_model(make_model(tmp_path / "tiny"))
    # The buffers begin with 256 columns and grow while tokens are added to prompts of some 235.
    for limits in ((8, 40, 44), (44, 8, 40), (40, 44, 8)):
        words = zip(("ice", "sea", "air"), limits, strict=True)
        requests = [ask(f"The {word} is warming, they say. " * 8, max_tokens=limit) for word, limit in words]
        assert all(220 < len(model.prompts.encode(model.render(request.messages))) < 256 for request in requests)
        answered = model.generate(requests)
        assert [completion.usage.completion_tokens for completion in answered] == list(limits)
        assert texts(answered) == [texts(model.generate([request]))[0] for request in requests]


def test_a_small_token_budget_changes_no_answer_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(make_model(tmp_path / "tiny"))
    beginning = "Read these passages about the sea and answer. " * 12
    requests = [
        ask(beginning + word, max_tokens=30 + 40 * number, temperature=float(number % 2), seed=number)
        for number, word in enumerate(("ice", "sea", "air", "soil", "sun", "ice"))
    ]
    shared = min(len(model.prompts.encode(model.render(request.messages))) for request in requests)
    assert shared > 256
    alone = [model.generate([request])[0] for request in requests]
    held: list[tuple[int, int]] = []
    admitted: list[int] = []
    advance, admit = SharedRows.append_tokens, SharedRows.add_rows

    def watched(rows: SharedRows, tokens: list[int]) -> torch.Tensor:
        held.append((len(tokens), rows.tokens()))
        return advance(rows, tokens)

    def counted(rows: SharedRows, prompts: list[list[int]]) -> Iterator[AddedRow]:
        admitted.append(len(prompts))
        return admit(rows, prompts)

    monkeypatch.setattr(SharedRows, "append_tokens", watched)
    monkeypatch.setattr(SharedRows, "add_rows", counted)
    unbounded = model.generate(requests)
    assert admitted == [6]
    assert max(tokens for _, tokens in held) < shared + 6 * 257  # what all begin with is held once
    held.clear()
    budget = shared + 6 * 64  # all six for a beginning, and fewer the longer they are
    monkeypatch.setattr(Network, "free_tokens", lambda network: budget)
    monkeypatch.setattr("climassay.models.local.generation._MAX_RESERVED", 1)
    assert model.generate(requests) == unbounded == alone
    assert max(held)[0] > 2
    assert max(tokens for count, tokens in held if count > 1) <= budget
    assert sum(admitted) > 6 + 6  # a row was put back into the queue, and came again


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    return LocalModel(f"local:{save_tiny(tmp_path_factory.mktemp('tiny'))}", concurrency=3)


def word_requests(count: int, **sampling) -> list[GenerationRequest]:
    chance = random.Random(4)
    words = ["".join(chance.choices("abcdefgh ", k=chance.randint(1, 90))) for _ in range(count)]
    return [ask(word, max_tokens=1 + number % 7, **sampling) for number, word in enumerate(words)]


def test_a_seed_decides_what_is_drawn_whatever_else_is_in_the_batch(tiny: LocalModel) -> None:
    requests = word_requests(9, temperature=1.0, top_p=0.9, seed=11)
    together = texts(tiny.generate(requests))
    assert together == texts(tiny.generate(list(reversed(requests))))[::-1]
    assert together == [texts(tiny.generate([request]))[0] for request in requests]
    others = texts(tiny.generate(word_requests(9, temperature=1.0, top_p=0.9, seed=12)))
    assert sum(first != second for first, second in zip(together, others, strict=True)) >= 6


def test_threads_wait_for_each_other_and_a_callback_must_not_ask(tiny: LocalModel) -> None:
    from concurrent.futures import ThreadPoolExecutor

    requests = word_requests(6)
    alone = [tiny.generate([request])[0] for request in requests]
    with ThreadPoolExecutor(4) as pool:
        assert [done for (done,) in pool.map(lambda request: tiny.generate([request]), requests)] == alone
    with pytest.raises(ModelError, match="called from within its own on_result"):
        tiny.generate(requests, on_result=lambda index, completion: tiny.generate(requests[:1]))
    assert tiny.generate(requests) == alone


def test_generation_ends_before_a_stop_text_even_across_tokens() -> None:
    model = smollm2()
    (whole,) = texts(model.generate([ask("Count from one to ten.", max_tokens=40)]))
    middle = len(whole) // 2
    stop = whole[middle : middle + 3]
    (cut,) = model.generate([ask("Count from one to ten.", max_tokens=40, stop=("never said", stop))])
    assert cut.text == whole[: whole.index(stop)]
    assert cut.finish_reason == "stop"


def test_an_end_token_stops_and_the_limit_cuts() -> None:
    model = smollm2()
    ended, cut = model.generate(
        [ask("What is the capital of France?"), ask("What is the capital of France?", max_tokens=3)]
    )
    assert ended.finish_reason == "stop"
    assert ended.text == "The capital of France is Paris."
    assert cut.finish_reason == "length"
    assert cut.text == "The capital of"
    assert (
        ended.usage.prompt_tokens
        == cut.usage.prompt_tokens
        == len(model.prompts.encode(model.render((Message("user", "What is the capital of France?"),))))
    )


def test_an_assistant_prefix_is_continued_and_not_repeated() -> None:
    model = smollm2()
    with_space, without = texts(
        model.generate(
            [
                ask("Capital of France?", "The capital is ", max_tokens=2),
                ask("Capital of France?", "The capital is", max_tokens=2),
            ]
        )
    )
    assert without == f" {with_space}"
    assert "Paris" in with_space


def test_what_cannot_be_generated_fails_in_its_place(tiny: LocalModel) -> None:
    long, good, none, unbounded = tiny.generate(
        [
            ask("word " * 400),
            ask("ab", max_tokens=2),
            ask("ab", max_tokens=0),
            ask("ab", schema={"type": "object", "properties": {"why": {"type": "string"}}}),
        ]
    )
    assert "the model accepts 1 to 255" in (long.error or "")
    assert good.error is None
    assert "max_tokens is 0" in (none.error or "")
    assert "$.why has no maxLength" in (unbounded.error or "")


def test_an_answer_is_no_longer_than_the_context_window(tiny: LocalModel) -> None:
    (completion,) = tiny.generate([ask("ab" * 60, max_tokens=500)])
    assert completion.usage.prompt_tokens + completion.usage.completion_tokens == 256
    assert completion.finish_reason == "length"


def draws(count: int, **sampling) -> list[TokenSampler]:
    return [TokenSampler(Sampling(**sampling, seed=seed), [1, 2]) for seed in range(count)]


def test_draws_have_the_frequencies_of_the_distribution() -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    logits = probabilities.log().repeat(4000, 1)
    tokens = torch.tensor(draw_tokens(logits, draws(4000, temperature=1.0)))
    counts = tokens.bincount(minlength=4) / 4000
    # Four standard errors of the largest share are 0.032.
    torch.testing.assert_close(counts, probabilities, atol=0.032, rtol=0)


def test_a_nucleus_leaves_out_the_tail_and_temperature_sharpens() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().repeat(500, 1)
    # Before the third token lie 0.8 of the mass, so it is out; before the second 0.5, so it is in.
    assert set(draw_tokens(logits, draws(500, temperature=1.0, top_p=0.79))) == {0, 1}
    assert set(draw_tokens(logits, draws(500, temperature=1.0, top_p=0.0))) == {0}
    cold = draw_tokens(logits, draws(500, temperature=0.2))
    assert cold.count(0) > 450
    assert set(draw_tokens(logits, draws(500, temperature=0.0))) == {0}


def test_the_text_so_far_grows_to_the_answer_and_changes_nothing(tmp_path: Path) -> None:
    model = load_model(make_model(tmp_path / "tiny"))
    assert isinstance(model, StreamingGenerator)
    requests = [ask("The ice is melting.", max_tokens=12), ask("The sea is rising, they say.", max_tokens=20)]
    requests.append(ask("A name", schema={"type": "string", "maxLength": 8}, max_tokens=40))
    shown: dict[int, list[str]] = {0: [], 1: [], 2: []}
    streamed = model.generate_stream(requests, on_text=lambda index, text: shown[index].append(text))
    assert streamed == model.generate(requests)
    for index, completion in enumerate(streamed):
        assert len(shown[index]) == completion.usage.completion_tokens - 1
        assert all(completion.text.startswith(text) for text in shown[index])
        assert completion.text.startswith(shown[index][-1])
        assert [len(text) for text in shown[index]] == sorted(len(text) for text in shown[index])
