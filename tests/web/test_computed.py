"""What is computed for a page is computed once, for all who ask at the same time, and not kept for ever."""

import threading

import pytest

from climassay.web.app_state import ResultCache
from patience import reached


def test_who_asks_while_it_is_computed_waits_for_it():
    computed, begun, go_on, found = ResultCache(), threading.Event(), threading.Event(), []

    def make():
        begun.set()
        reached(go_on)
        return 7

    first = threading.Thread(target=lambda: found.append(computed.get("key", make)))
    first.start()
    reached(begun)
    second = threading.Thread(target=lambda: found.append(computed.get("key", pytest.fail)))
    second.start()
    go_on.set()
    first.join()
    second.join()
    assert found == [7, 7]
    assert computed.get("other", lambda: 8) == 8


def test_an_error_is_told_and_not_kept():
    computed = ResultCache()
    with pytest.raises(ZeroDivisionError):
        computed.get("key", lambda: 1 // 0)
    assert computed.get("key", lambda: 1) == 1


def test_what_was_not_asked_for_the_longest_time_goes_first():
    computed, made = ResultCache(max_results=2), []
    for key in ("a", "b", "a", "c", "a", "b"):
        computed.get(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "c", "b"]
