"""Debates at their own pace: results in order, full batches for local models, no waiting for the call of another."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.factcheck.debate.batcher import RequestBatcher
from climassay.factcheck.debate.requests import (
    EntailmentRequest,
    SearchRequest,
    TextRequest,
    UsageTotals,
    count_usage,
    gather,
)
from climassay.factcheck.debate.scheduler import DebateScheduler
from climassay.models import Completion, GenerationRequest, Message, Usage
from debate_parts import Shelf, drive
from patience import reached
from scripted_model import ScriptedModel

PLANS = st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=8)


def ask(words, model="m"):
    return TextRequest(model, GenerationRequest((Message("user", words),)))


def asking(name, sizes, under_way=None, model="m"):
    """A debate that asks so many things at a time, and returns all that it was told."""
    if under_way is not None:
        under_way.append(under_way[-1] + 1)
    told = []
    for turn, size in enumerate(sizes):
        answers = yield tuple(ask(f"{name} {turn} {place}", model) for place in range(size))
        told += [answer.text for answer in answers]
    if under_way is not None:
        under_way.append(under_way[-1] - 1)
    return told


def expected(name, sizes):
    return [f"{name} {turn} {place}" for turn, size in enumerate(sizes) for place in range(size)]


class Local(ScriptedModel):
    """A model of this machine, which answers with the prompt; notes what each call brings."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def generate(self, requests, *, on_result=None):
        prompts = [request.messages[-1].content for request in requests]
        self.calls.append(prompts)
        return [Completion(prompt, "stop") for prompt in prompts]


class Served(Local):
    """A model behind a server; a call with a held prompt returns once it is released or cancelled."""

    def __init__(self, *held):
        super().__init__()
        self.held = {prompt: threading.Event() for prompt in held}
        self.waiting = {prompt: threading.Event() for prompt in held}
        self.cancelled = set()

    def generate(self, requests, *, on_result=None):
        found = super().generate(requests, on_result=on_result)
        for request in requests:
            prompt = request.messages[-1].content
            if prompt in self.held:
                self.waiting[prompt].set()
                reached(self.held[prompt])
        return found

    def cancel(self, threads):
        self.cancelled |= set(threads)
        for event in self.held.values():
            event.set()


def run(steps, model, at_once=16, **options):
    return DebateScheduler(steps, RequestBatcher({"m": model}, {}), at_once, **options).run()


@pytest.mark.parametrize("kind", [Local, Served])
@given(PLANS, st.integers(1, 4))
def test_every_debate_gets_its_own_answers_and_results_stand_in_order(kind, plans, at_once):
    under_way = [0]
    found = run([asking(str(place), sizes, under_way) for place, sizes in enumerate(plans)], kind(), at_once)
    assert found == [expected(str(place), sizes) for place, sizes in enumerate(plans)]
    assert max(under_way) <= at_once


@given(st.lists(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=3), max_size=4))
def test_steps_may_be_made_of_steps(groups):
    def group(number, plans):
        first = yield from gather([asking(f"{number}.{place}", sizes) for place, sizes in enumerate(plans)])
        return [*first, (yield from asking(f"{number}.after", [1]))]

    [found] = run([gather([group(number, plans) for number, plans in enumerate(groups)])], Local())
    assert found == [
        [*(expected(f"{number}.{place}", sizes) for place, sizes in enumerate(plans)), expected(f"{number}.after", [1])]
        for number, plans in enumerate(groups)
    ]


def test_usage_and_failures_add_up_over_nested_steps():
    some, failing = ask("?"), ask("!")
    measured = EntailmentRequest("p", "c"), EntailmentRequest("p", "d")
    answers = {
        some: Completion("Yes.", "stop", Usage(10, 3, 1)),
        failing: Completion.failed("No luck.", Usage(5, 0, 1)),
        measured[0]: None,
        measured[1]: 1.0,
    }

    def asks(*them):
        return (yield them)

    def both():
        first = yield from asks(failing)
        return [first, *(yield from gather([asks(some), asks(*measured), asks(some)]))]

    totals = UsageTotals()
    found, batches = drive(count_usage(both(), totals), answers.__getitem__)
    assert (totals.usage, totals.failures) == (Usage(25, 6, 3), 2)
    assert found == drive(both(), answers.__getitem__)[0]
    assert len(batches) == 2


@given(st.lists(st.integers(1, 5), min_size=1, max_size=10), st.integers(1, 4))
def test_a_model_of_this_machine_gets_all_that_waits_in_one_call(lengths, at_once):
    model = Local()
    run([asking(str(place), [1] * length) for place, length in enumerate(lengths)], model, at_once)
    begun = set()
    for call in model.calls:
        begun |= {prompt.split()[0] for prompt in call}
        assert len(call) == at_once or len(begun) == len(lengths)
    assert sum(map(len, model.calls)) == sum(lengths)


def test_no_debate_waits_for_the_call_of_another():
    model, ended = Served("slow 0 0"), []

    def on_result(told):
        ended.append(told)
        if len(ended) == 4:
            assert model.waiting["slow 0 0"].is_set()
            model.held["slow 0 0"].set()

    plans = {"slow": [1, 1], "one": [1, 1, 1], "two": [2, 1], "three": [1], "four": [1, 1]}
    found = run([asking(name, sizes) for name, sizes in plans.items()], model, 3, on_result=on_result)
    assert found == [expected(name, sizes) for name, sizes in plans.items()]
    assert ended[-1] == expected("slow", plans["slow"])


def test_a_search_does_not_wait_for_a_call_and_a_call_not_for_a_search():
    model = Served("slow 0 0")

    class Slow(Shelf):
        def search_many(self, queries, *, k, min_cosine=None):
            # Only while the other debate's request is under way, which it would never be if it waited for this.
            reached(model.waiting["slow 0 0"])
            model.held["slow 0 0"].set()
            return super().search_many(queries, k=k, min_cosine=min_cosine)

    def searching():
        [found] = yield (SearchRequest(("shelf",), "ice", 1),)
        return found[0].excerpt

    exchange = RequestBatcher({"m": model}, {"shelf": Slow("shelf", "The ice melts.")})
    assert DebateScheduler([searching(), asking("slow", [1])], exchange, 2).run() == ["The ice melts.", ["slow 0 0"]]


def test_equal_requests_under_way_are_asked_once():
    model = Served("claim 0 0")

    def other():
        yield from asking("other", [1])
        model.held["claim 0 0"].set()

    found = run([asking("claim", [1]), asking("claim", [1]), other()], model)
    assert found == [["claim 0 0"], ["claim 0 0"], None]
    assert sorted(prompt for call in model.calls for prompt in call) == ["claim 0 0", "other 0 0"]


class Gone(Exception):
    """An error of a call."""


@pytest.mark.parametrize("error", [Gone, KeyboardInterrupt])
def test_what_ends_a_run_early_cancels_the_calls_under_way(error):
    model = Served("slow 0 0")

    def broken():
        yield (ask("hello"),)
        raise error

    with pytest.raises(error):
        run([asking("slow", [1]), broken()], model)
    assert model.held["slow 0 0"].is_set()
    assert model.cancelled


def test_an_error_of_a_call_is_raised_where_the_debates_are_held():
    class Broken(Served):
        def generate(self, requests, *, on_result=None):
            raise Gone

    with pytest.raises(Gone):
        run([asking("a", [1])], Broken())


def test_who_watches_hears_of_everything_before_it_is_asked():
    model, heard = Served(), []

    def watch(asks):
        assert all(ask.model_request.messages[-1].content not in str(model.calls) for ask in asks)
        heard.extend(ask.model_request.messages[-1].content for ask in asks)

    run([asking("a", [2, 1]), asking("b", [1])], model, on_requests=watch)
    assert sorted(heard) == ["a 0 0", "a 0 1", "a 1 0", "b 0 0"]


def test_a_failed_request_is_an_answer():
    class Failing(Served):
        def generate(self, requests, *, on_result=None):
            return [Completion.failed("No luck.") for _ in requests]

    def one():
        [answer] = yield (ask("a"),)
        return answer.error

    assert run([one()], Failing()) == ["No luck."]


class Counting(ScriptedModel):
    """Also notes how many requests each call brings."""

    def __init__(self, **script):
        super().__init__(**script)
        self.calls = []

    def generate(self, requests, *, on_result=None):
        self.calls.append(("texts", len(requests)))
        return super().generate(requests, on_result=on_result)


def echoing():
    return Counting(write=lambda prompt, schema: prompt)


KINDS = st.sampled_from(
    [
        ask("a"), ask("bb"), ask("a", "other"),
        SearchRequest(("shelf",), "arctic ice", 1), SearchRequest(("shelf",), "cows", 1),
        EntailmentRequest("p", "s"),
    ]
)  # fmt: skip


@given(st.lists(KINDS, max_size=14))
def test_answers_stand_in_the_order_of_the_asks_whatever_is_mixed(asks):
    shelf = Shelf("shelf", "The arctic ice melts.", "All cows graze.")
    models = {"m": echoing(), "other": echoing()}
    exchange = RequestBatcher(
        models, {"shelf": shelf},
        lambda pairs: [float(len(premise + statement)) for premise, statement in pairs],
    )  # fmt: skip
    answers = exchange.answer(asks)
    assert len(answers) == len(asks)
    for ask, answer in zip(asks, answers, strict=True):
        match ask:
            case TextRequest(model_request=request):
                assert answer.text == models["m"].render(request.messages)
            case SearchRequest(query=query):
                assert [found.passage.id for found in answer] == ["shelf-0" if "ice" in query else "shelf-1"]
            case EntailmentRequest():
                assert answer == 2.0
    for name, model in models.items():
        count = sum(isinstance(ask, TextRequest) and ask.model == name for ask in asks)
        assert model.calls == ([("texts", count)] if count else [])


def test_the_latest_editions_of_a_collection_are_looked_up_once():
    shelf = Shelf("shelf", ("The arctic ice melts.", "d"))
    lookups = []
    shelf.collections[0].documents = lambda: lookups.append("documents") or []
    batcher = RequestBatcher({}, {"shelf": shelf})
    for _ in range(2):
        batcher.answer([SearchRequest(("shelf",), query, 1, latest_only=True) for query in ("ice", "cows")])
    assert lookups == ["documents"]
