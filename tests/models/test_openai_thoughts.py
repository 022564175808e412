"""Thoughts in a model's answer: separated in every wrapper, kept in the record, never confused with talk about them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_server import ApiServer, Reply
from climassay.models import GenerationRequest, Message
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.replies import parse_reply
from climassay.questions.thoughts import separate_thoughts
from climassay.records import RecordedModel, Records

THOUGHT = 'Could it be (a)? The answer is (d): {"answer": "d"}. Hmm.'
HARMONY = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>b"
WRAPPERS = [
    "<think>{}</think>b",
    "<think>\n{}\n</think>\n\nb",
    "\n\n<THINK>{}</THINK>\nb",
    "<thinking>{}</thinking>b",
    "<thought>\n{}\n</thought>\nb",
    "<reasoning>{}</reasoning> b",
    "<mm:think>{}</mm:think>b",
    "<seed:think>{}</seed:think>b",
    "[THINK]{}[/THINK]b",
    "◁think▷{}◁/think▷b",
    "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>",
    "<|begin_of_thought|>{}<|end_of_thought|>\n<|begin_of_solution|>b<|end_of_solution|>",
    "<|channel>thought\n{}<channel|>b",
    HARMONY,
    HARMONY + "<|return|>",
    "<|start|>assistant" + HARMONY,
    "<|channel|>commentary<|message|>Let us see.<|end|><|start|>assistant" + HARMONY,
    HARMONY.removeprefix("<|channel|>analysis<|message|>"),
    "analysis{}assistantfinalb",
    "{}</think>b",
    "{}\n[/THINK]\nb",
    "<think></think>\n<think>{}</think>b",
    "<think>They say `</think>` ends it. {}</think>b",
    "<think>{}\n<think>\nand\n</think>\nb",
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_thoughts_are_separated(wrapper):
    answer, thoughts = separate_thoughts(wrapper.replace("{}", THOUGHT))
    assert answer.strip() == "b"
    assert THOUGHT in thoughts


def test_thoughts_after_the_answer_has_begun():
    assert separate_thoughts(f"Let me see.\n<think>\n{THOUGHT}\n</think>\nb") == ("Let me see.\nb", THOUGHT)


@pytest.mark.parametrize("text", ["<think>", "[THINK]", "<thought>\n", "<|channel|>analysis<|message|>", "<reasoning>"])
def test_thoughts_that_are_never_ended_leave_no_answer(text):
    assert separate_thoughts(text + THOUGHT) == ("", THOUGHT)


@pytest.mark.parametrize(
    "text",
    [
        "The `<think>` tag opens and `</think>` ends a thought. b",
        "Use <think>reasoning</think> before the answer. b",
        "```\n<think>\nreasoning\n</think>\n```\nb",
        "In code:\n~~~xml\n<thinking>x</thinking>\n~~~\nb",
        "Write:\n<think>\nreasoning\n</think>\nand then b",
        "`<think>` is a tag. b",
        "<think> is a tag of some models. b",
        "'</think>' ends thoughts; \"</thinking>\" does, too. b",
        "Some models end their thoughts with </think> and go on. b",
        "The <|channel|> mark of harmony names a channel. b",
        "analysis of the data says b",
        "The [think] tank says b",
        "<answer>b</answer>",
        "Let f(x) <think of it> b",
        "CO2 < 400 and [CO3] > 2: b",
        "",
    ],
)
def test_a_text_that_only_mentions_the_marks_stays_as_it_is(text):
    assert separate_thoughts(text) == (text, "")


@given(st.text(alphabet="<>/[]|`\n thinkab:channelfinal", max_size=60))
def test_whatever_a_text_is_no_thought_is_made_up(text):
    answer, thoughts = separate_thoughts(text)
    assert len(answer) + len(thoughts) <= len(text) + text.count("<") + text.count("[")
    assert thoughts or answer == text


def content(*parts, **more):
    message = {"role": "assistant", "content": list(parts), **more}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


TEXT = {"type": "text", "text": "b"}


@pytest.mark.parametrize(
    "body",
    [
        content({"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, TEXT),
        content({"type": "thinking", "thinking": THOUGHT, "signature": "x9"}, TEXT),
        content({"type": "reasoning", "text": THOUGHT}, {"type": "output_text", "text": "b"}),
        content({"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]}, TEXT),
        content({"text": THOUGHT, "thought": True}, TEXT),
        content(TEXT, reasoning_content=THOUGHT),
        content(TEXT, reasoning=THOUGHT, reasoning_content=THOUGHT),
        content(TEXT, thinking=THOUGHT),
        content(TEXT, reasoning_details=[{"type": "reasoning.text", "text": THOUGHT, "signature": "x9"}]),
    ],
)
def test_parts_and_fields_that_hold_thoughts(body):
    reply = parse_reply(body)
    assert (reply.text, reply.reasoning) == ("b", THOUGHT)


def test_thoughts_are_kept_in_the_record_beside_the_answer(tmp_path):
    asked = GenerationRequest((Message("user", "Which?"),))
    with (
        Records(f"sqlite:///{tmp_path}/r.sqlite") as store,
        ApiServer(rule=lambda _: Reply(f"[THINK]{THOUGHT}[/THINK]b")) as server,
    ):
        for _ in range(2):
            client = OpenAIModel("m", base_url=server.url)
            with store.run("test", {}) as run:
                (answer,) = RecordedModel(client, store, run).generate([asked])
            client.close()
            assert (answer.text, answer.reasoning) == ("b", THOUGHT)
        assert len(server.asked) == 1
