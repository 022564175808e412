"""Answering what debates ask: in order, in few calls, content-free prompts once, and failures where they belong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import ModelError
from climassay.factcheck.debate.scheduler import RequestBatcher
from climassay.factcheck.debate.steps import AskEntailment, AskHead, AskOptions, AskPassages, AskText
from climassay.models.contract import Completion, GenerationRequest, Message, OptionRequest, OptionScores
from debate_parts import Shelf
from scripted_model import ScriptedModel


class Counting(ScriptedModel):
    """Also notes how many requests each call brings."""

    def __init__(self, **script):
        super().__init__(**script)
        self.calls = []

    def generate(self, requests, *, on_result=None):
        self.calls.append(("texts", len(requests)))
        return super().generate(requests, on_result=on_result)

    def option_logprobs(self, requests, *, on_result=None):
        self.calls.append(("options", len(requests)))
        return super().option_logprobs(requests, on_result=on_result)


def options(words, model="m", blank=False):
    return AskOptions(model, OptionRequest((Message("user", words),), (" yes", " no")), blank)


def text(words, model="m"):
    return AskText(model, GenerationRequest((Message("user", words),)))


def echoing(**script):
    return Counting(write=lambda prompt, schema: prompt, choose=lambda prompt, _: [-float(len(prompt)), 0.0], **script)


KINDS = st.sampled_from(
    [
        options("a"), options("bb"), options("a", "other"), options("ccc", blank=True), options("a", blank=True),
        text("a"), text("bb"), text("a", "other"),
        AskPassages(("shelf",), "arctic ice", 1), AskPassages(("shelf",), "cows", 1),
        AskHead("claim", ("e",)), AskHead("other claim", ()), AskEntailment("p", "s"),
    ]
)  # fmt: skip


@given(st.lists(KINDS, max_size=14))
def test_answers_stand_in_the_order_of_the_asks_whatever_is_mixed(asks):
    shelf = Shelf("shelf", "The arctic ice melts.", "All cows graze.")
    models = {"m": echoing(), "other": echoing()}
    exchange = RequestBatcher(
        models, {"shelf": shelf}, lambda pairs: [(float(len(claim)),) for claim, _ in pairs],
        lambda pairs: [float(len(premise + statement)) for premise, statement in pairs],
    )  # fmt: skip
    answers = exchange.answer(asks)
    assert len(answers) == len(asks)
    for ask, answer in zip(asks, answers, strict=True):
        match ask:
            case AskText(request=request):
                assert answer.text == models["m"].render(request.messages)
            case AskOptions(request=request):
                assert answer.logprobs == (-float(len(models["m"].render(request.messages))), 0.0)
            case AskPassages(query=query):
                assert [found.passage.id for found in answer] == ["shelf-0" if "ice" in query else "shelf-1"]
            case AskHead(claim=claim):
                assert answer == (float(len(claim)),)
            case AskEntailment():
                assert answer == 2.0
    for name, model in models.items():
        wanted = {
            "options": len({ask for ask in asks if isinstance(ask, AskOptions) and ask.model == name}),
            "texts": sum(isinstance(ask, AskText) and ask.model == name for ask in asks),
        }
        assert sorted(model.calls) == sorted((kind, count) for kind, count in wanted.items() if count)


def test_nothing_asked_nothing_answered():
    assert RequestBatcher({}, {}).answer([]) == []


def test_a_content_free_prompt_is_asked_once_a_run():
    model = echoing()
    exchange = RequestBatcher({"m": model}, {})
    first = exchange.answer([options("N/A", blank=True), options("a"), options("N/A", blank=True)])
    second = exchange.answer([options("b"), options("N/A", blank=True)])
    assert first[0] == first[2] == second[1]
    assert [prompt for prompt, _ in model.options].count("<user>N/A\n<answer>") == 1
    exchange.answer([options("a")])
    assert [prompt for prompt, _ in model.options].count("<user>a\n<answer>") == 2


def test_a_content_free_prompt_that_failed_is_asked_again():
    answers = [RuntimeError("No luck."), " no"]
    model = ScriptedModel(choose=lambda *_: answers.pop(0))
    exchange = RequestBatcher({"m": model}, {})
    assert exchange.answer([options("N/A", blank=True)])[0].error == "No luck."
    assert exchange.answer([options("N/A", blank=True)])[0].best == 1
    assert exchange.answer([options("N/A", blank=True)])[0].best == 1
    assert answers == []


def test_a_failed_answer_leaves_the_others_alone():
    def weigh(prompt, _):
        return RuntimeError("No luck.") if "bad" in prompt else " yes"

    model = ScriptedModel(choose=weigh, write=lambda prompt, _: RuntimeError("Gone.") if "bad" in prompt else "Fine.")
    found = RequestBatcher({"m": model}, {}).answer([options("bad"), options("good"), text("bad"), text("good")])
    assert [answer.error for answer in found] == ["No luck.", None, "Gone.", None]


def test_a_model_that_cannot_weigh_options_fails_its_own_questions():
    class Writer(ScriptedModel):
        def option_logprobs(self, requests, *, on_result=None):
            raise ModelError("It generates text only.")

    exchange = RequestBatcher({"writer": Writer(), "m": ScriptedModel()}, {})
    found = exchange.answer([options("a", "writer"), options("a"), text("a", "writer")])
    assert [answer.error for answer in found] == ["It generates text only.", None, None]
    assert isinstance(found[0], OptionScores)
    assert isinstance(found[2], Completion)


@pytest.mark.parametrize("ask", [AskHead("claim", ()), AskEntailment("p", "s")])
def test_what_was_not_loaded_is_missed(ask):
    with pytest.raises(ModelError, match="loaded"):
        RequestBatcher({}, {}).answer([ask])


def test_the_latest_editions_of_a_collection_are_looked_up_once():
    shelf = Shelf("shelf", ("The arctic ice melts.", "d"))
    looked = []
    shelf.collections[0].documents = lambda: looked.append(1) or []
    exchange = RequestBatcher({}, {"shelf": shelf})
    for _ in range(2):
        assert exchange.answer([AskPassages(("shelf",), "ice", 1, latest_only=True)] * 2) == [(), ()]
    assert looked == [1]
