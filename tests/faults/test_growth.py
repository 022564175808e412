"""The time that text of strangers takes grows in proportion to its length, whatever it repeats."""

import gc
import os
import re
import signal
import time
from collections.abc import Callable, Sequence

import pytest

from climassay.errors import ClimassayError
from faults.outside_text import ENGLISH, FUNCTIONS, NESTED, READERS, TOKENS, reader, repeated

SHORT, FACTOR = 4_000, 25 if os.environ.get("CLIMASSAY_FAULTS") == "full" else 8
"""Characters of the short text, and how many times as long the long one is: 100,000 in full."""
MARGIN = 2.5
"""What is proportional to the length takes FACTOR times as long, what grows with its square FACTOR times that."""
MIN_SECONDS = 0.005
"""Shorter times are those of the clock and of what happens once."""


class TooLong(BaseException):
    """A function did not end in its time."""


@pytest.fixture(autouse=True)
def ended_by_alarm():
    """Expressions that run for minutes are ended by a signal."""

    def end(*_):
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, end)
    yield
    signal.signal(signal.SIGVTALRM, before)


def seconds(function: Callable[[str], object], text: str, limit: float) -> float:
    """Return the processor time that a function takes for a text, at most the limit."""
    gc.disable()  # An exception that the alarm raises in a callback of the collector is lost.
    start = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        function(text)
    except ClimassayError:
        pass
    except TooLong:
        return limit
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()
    return time.process_time() - start


def growing_tokens(
    function: Callable[[str], object], tokens: Sequence[str | tuple[str, str]] = (*TOKENS, *NESTED)
) -> list[str | tuple[str, str]]:
    """Return the tokens, or pairs of them, of which a longer text takes far more time than its length explains."""
    seconds(function, ENGLISH, 60)  # What is loaded once is loaded.
    results = []
    for token in tokens:
        short, long = repeated(token, SHORT), repeated(token, FACTOR * SHORT)
        base = seconds(function, short, 60)
        if base < MIN_SECONDS:
            continue
        allowed = MARGIN * FACTOR * base
        if seconds(function, long, allowed) < allowed:
            continue
        # A processor that does something else for a moment is not growth.
        base = max(seconds(function, f"{short}{number}", 60) for number in range(3))
        allowed = MARGIN * FACTOR * base
        if min(seconds(function, f"{long}{number}", allowed) for number in range(3)) >= allowed:
            results.append(token)
    return results


@pytest.mark.parametrize("name", FUNCTIONS)
def test_time_grows_with_the_length_of_a_text(name):
    assert growing_tokens(FUNCTIONS[name]) == []


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_length_of_a_file(name, tmp_path):
    assert growing_tokens(reader(name, tmp_path)) == []


def test_growth_with_the_square_is_noticed():
    pattern = re.compile(r"\s*x")
    assert growing_tokens(pattern.search, [" ", "ab"]) == [" "]
