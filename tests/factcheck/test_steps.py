"""Debates as coroutines: results in order, whoever is faster."""

from hypothesis import given
from hypothesis import strategies as st

from climassay.factcheck.debate.scheduler import (
    AskHead,
    AskOptions,
    AskText,
    Ledger,
    ask_options,
    counted,
    gather,
)
from climassay.models.contract import Completion, GenerationRequest, Message, OptionRequest, OptionScores, Usage
from debate_parts import drive

SIZES = st.lists(st.integers(0, 3), max_size=4)


def asking(name, sizes):
    """A step that asks so many things at a time, and returns all that it was told."""
    told = []
    for turn, size in enumerate(sizes):
        asks = tuple(AskHead(name, (str(turn), str(place))) for place in range(size))
        told += yield asks
    return told


def expected(name, sizes):
    return [(name, str(turn), str(place)) for turn, size in enumerate(sizes) for place in range(size)]


def echo(ask):
    return (ask.claim, *ask.evidence)


@given(st.lists(st.lists(SIZES, max_size=3), max_size=4))
def test_steps_may_be_made_of_steps(groups):
    def group(number, plans):
        first = yield from gather([asking(f"{number}.{place}", sizes) for place, sizes in enumerate(plans)])
        second = yield from asking(f"{number}.after", [1])
        return [*first, second]

    found, _ = drive(gather([group(number, plans) for number, plans in enumerate(groups)]), echo)
    assert found == [
        [*(expected(f"{number}.{place}", sizes) for place, sizes in enumerate(plans)), expected(f"{number}.after", [1])]
        for number, plans in enumerate(groups)
    ]


def test_nothing_to_do_is_done_at_once():
    assert drive(gather([]), echo) == ([], [])
    assert drive(ask_options([]), echo) == ([], [])


PROMPT = (Message("user", "?"),)
TEXT = AskText("m", GenerationRequest(PROMPT))
OPTIONS = AskOptions("m", OptionRequest(PROMPT, ("a", "b")))
BLANK = AskOptions("m", OptionRequest(PROMPT, ("a", "b")), blank=True)


def test_usage_and_failures_add_up_over_nested_steps():
    answers = {
        TEXT: Completion("Yes.", "stop", Usage(10, 3, 1)),
        OPTIONS: OptionScores.failed("No luck.", Usage(5, 0, 1)),
        BLANK: OptionScores((-1.0, -2.0), usage=Usage(100, 0, 1)),
        AskHead("c", ()): None,
        AskHead("d", ()): (1.0,),
    }

    def asks(*them):
        return (yield them)

    def both():
        first = yield from asks(OPTIONS, BLANK)
        second = yield from gather([asks(TEXT), asks(AskHead("c", ()), AskHead("d", ())), asks(TEXT)])
        return [first, *second]

    ledger = Ledger()
    found, batches = drive(counted(both(), ledger), answers.__getitem__)
    assert (ledger.usage, ledger.failures) == (Usage(25, 6, 3), 2)
    assert found == drive(both(), answers.__getitem__)[0]
    assert len(batches) == 2


def test_a_failed_content_free_prompt_is_a_failed_call_although_its_tokens_are_nobodys():
    def asks():
        return (yield (OPTIONS, BLANK))

    ledger = Ledger()
    drive(counted(asks(), ledger), lambda _: OptionScores.failed("No luck.", Usage(5, 0, 1)))
    assert (ledger.usage, ledger.failures) == (Usage(5, 0, 1), 2)
