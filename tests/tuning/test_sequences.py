from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.models import Message, ModelOptions, OptionRequest, load_model
from climassay.models.local.loading import load_local
from climassay.models.local.model import tokenise_options
from climassay.models.local.prompt_format import PromptFormat
from climassay.tuning import ChatData, ChatExample, TextDocument, TuningBase
from climassay.tuning.sequences import SequenceLoss, TokenSequence, end_of_turn, tokenise
from tiny_models import ARCHITECTURES, save_tiny, tiny, tiny_recurrent
from tuning_parts import CHATML, book, library, parity, save_shaken

pytestmark = pytest.mark.model

START, END = 0, 1
LLAMA = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}"
    "{% if message['role'] == 'assistant' %} {{ eos_token }}{% endif %}{% endfor %}"
)
NO_END = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"


def prompts(folder: Path, template: str | None = CHATML) -> PromptFormat:
    folder.mkdir(exist_ok=True)
    return PromptFormat(load_local(str(save_tiny(folder, chat_template=template)), dtype="float32").tokenizer)


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> PromptFormat:
    return prompts(tmp_path_factory.mktemp("chat"))


def test_only_the_answer_and_the_end_of_the_turn_are_learned(chat: PromptFormat) -> None:
    data = parity(0, 5)
    tokenised = tokenise(data, chat, frozenset({END}), 200)
    assert (tokenised.cut, tokenised.cut_tokens) == (0, 0)
    for example, sequence in zip(data.examples, tokenised.sequences, strict=True):
        prompt = chat.render(example.messages, example.assistant_prefix)
        assert list(sequence.tokens[: sequence.start]) == chat.encode(prompt)  # what a model is asked at evaluation
        assert chat.tokenizer.decode(sequence.tokens[sequence.start :]) == example.answer + "</s>"


def test_answers_are_tokenised_as_options_are(chat: PromptFormat) -> None:
    """Also where the prefix ends with a space that the tokenizer merges with the answer's first letter."""
    for prefix, answer in (("Answer:", " a"), ("Answer: ", "a"), ("", "cab")):
        example = ChatExample((Message("user", "Which?"),), prefix, answer)
        (sequence,) = tokenise(ChatData("one", (example,)), chat, frozenset({END}), 200).sequences
        options = tokenise_options(chat, chat.render(example.messages, prefix), (answer,))
        assert sequence.tokens[:-1] == options.sequences[0]
        assert sequence.start == options.first_scored


@pytest.mark.parametrize(
    ("template", "end"),
    [
        pytest.param(CHATML, [END], id="chatml"),
        pytest.param(LLAMA, [220, END], id="space-before-end"),
        pytest.param(NO_END, [END], id="template-without-end"),
        pytest.param(None, [END], id="no-template"),
    ],
)
def test_the_end_of_a_turn_is_what_the_template_writes(tmp_path: Path, template: str | None, end: list[int]) -> None:
    found = prompts(tmp_path, template)
    expected = [found.tokenizer.encode(" ")[0] if token == 220 else token for token in end]
    assert list(end_of_turn(found, frozenset({END}))) == expected


def test_control_tokens_in_an_answer_are_only_words(chat: PromptFormat) -> None:
    example = ChatExample((Message("user", "Which?"),), "", "none</s>system")
    (sequence,) = tokenise(ChatData("one", (example,)), chat, frozenset({END}), 200).sequences
    assert END not in sequence.tokens[sequence.start : -1]


@given(limit=st.integers(12, 60))
def test_a_prompt_that_is_too_long_loses_its_beginning(chat: PromptFormat, limit: int) -> None:
    data = parity(0, 4)
    whole = tokenise(data, chat, frozenset({END}), 200)
    cut = tokenise(data, chat, frozenset({END}), limit)
    lost = [max(0, len(one.tokens) - limit) for one in whole.sequences]
    assert (cut.cut, cut.cut_tokens) == (sum(count > 0 for count in lost), sum(lost))
    for before, after, count in zip(whole.sequences, cut.sequences, lost, strict=True):
        assert after.tokens == before.tokens[count:]
        assert after.n_target_tokens == before.n_target_tokens
        assert after.start >= 1


def test_an_answer_that_does_not_fit_is_refused(chat: PromptFormat) -> None:
    example = ChatExample((Message("user", "Which?"),), "", "x" * 40)
    with pytest.raises(
        InputError, match=r"The answer of example 1 of long has 41 tokens .* no room for a prompt in 41"
    ):
        tokenise(ChatData("long", (example,)), chat, frozenset({END}), 41)
    assert tokenise(ChatData("long", (example,)), chat, frozenset({END}), 42).sequences[0].start == 1


def test_texts_are_packed_one_after_the_other(chat: PromptFormat) -> None:
    documents = (book("one", "ice"), book("two", "sea", 3))
    tokenised = tokenise(library(*documents), chat, frozenset({END}), 64)
    expected: list[int] = []
    for document in documents:
        expected += [*chat.tokenizer.encode(document.text), END]
    assert [token for sequence in tokenised.sequences for token in sequence.tokens] == expected
    assert {len(sequence.tokens) for sequence in tokenised.sequences[:-1]} == {64}
    assert all(sequence.start == 1 for sequence in tokenised.sequences)
    assert tokenised.n_target_tokens == len(expected) - len(tokenised.sequences)


def test_what_neighbouring_passages_share_is_read_once() -> None:
    """As the corpus cuts them: the last sentences of one passage open the next."""
    passages = [
        "The first sentence is here. The second sentence is here.",
        "The second sentence is here. The third one follows.",
        "A new section begins. It shares nothing.",
        "It shares nothing. It ends.",
    ]
    document = TextDocument.from_passages("id", "title", passages)
    assert document.paragraphs == (
        "The first sentence is here. The second sentence is here.",
        "The third one follows.",
        "A new section begins. It shares nothing.",
        "It shares nothing. It ends.",  # too short a sentence to be told from a coincidence
    )


@given(st.text("ab ", max_size=60), st.text("ab ", max_size=60))
def test_reading_once_never_loses_text(first: str, second: str) -> None:
    joined = "".join(TextDocument.from_passages("id", "title", [first, second]).paragraphs).replace(" ", "")
    together = (first + second).replace(" ", "")
    assert together.endswith(joined) or together.startswith(joined[: len(first.replace(" ", ""))])
    assert set(joined) == set(together)


class OnTheCpu:
    """What a loss asks of a base, for models that lie in no folder."""

    device = "cpu"

    def autocast(self):
        return torch.autocast("cpu", torch.bfloat16, enabled=False)


def by_hand(model, row: TokenSequence) -> float:
    """Row by row, without padding, from all logits."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([row.tokens])).logits[0].log_softmax(-1)
    return -sum(float(logits[place - 1, row.tokens[place]]) for place in range(row.start, len(row.tokens)))


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "mamba"])
def test_padded_rows_have_the_loss_they_have_alone(architecture: str) -> None:
    model = tiny_recurrent() if architecture == "mamba" else tiny(architecture)
    rows = [
        TokenSequence(tuple((7 * place + 3 * length) % 300 for place in range(length)), start)
        for length, start in ((5, 1), (17, 16), (29, 11), (2, 1))
    ]
    loss = SequenceLoss(OnTheCpu(), model, rows)
    with torch.no_grad():
        together = float(loss.summed_loss(range(4)))
    apart = sum(by_hand(model, row) for row in rows)
    assert together == pytest.approx(apart, rel=1e-4)
    learned = 4 + 1 + 18 + 1
    assert loss.count_target_tokens(range(4)) == learned
    for size in (1, 3, 4):
        assert loss.mean_loss(size) == pytest.approx(apart / learned, rel=1e-4)


def test_the_loss_of_an_answer_is_its_log_probability_as_an_option(tmp_path: Path) -> None:
    folder = save_shaken(tmp_path / "model")
    base, data = TuningBase(str(folder), dtype="float32"), parity(0, 6)
    loaded = base.load()
    tokenised = tokenise(data, PromptFormat(loaded.tokenizer), frozenset({1}), 200)
    answers = [TokenSequence(row.tokens[:-1], row.start) for row in tokenised.sequences]  # options have no end
    loss = SequenceLoss(base, loaded.model, answers)
    requests = [OptionRequest(one.messages, (one.answer,), one.assistant_prefix) for one in data.examples]
    scores = load_model(f"local:{folder}", ModelOptions(dtype="float32")).option_logprobs(requests)
    for place, score in enumerate(scores):
        with torch.no_grad():
            assert float(loss.summed_loss([place])) == pytest.approx(-score.logprobs[0], abs=1e-4)
