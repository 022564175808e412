"""Waits that servers ask for, our own backoff, and the adaptive limit, step by step on a clock of our own."""

import asyncio
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.models.openai.pacing import INITIAL_LIMIT, AdaptiveLimit, Clock, RetryPolicy, parse_retry_after
from patience import PATIENCE

NOW = 1_700_000_000.0
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.parametrize(
    ("seconds", "milliseconds", "expected"),
    [
        ("7", None, 7.0),
        ("0", None, 0.0),
        ("1.5", None, 1.5),
        ("7", "250", 0.25),
        (None, "1500", 1.5),
        ("7", "soon", 7.0),
        (formatdate(NOW + 30, usegmt=True), None, 30.0),
        (formatdate(NOW - 30, usegmt=True), None, 0.0),
        ("-5", None, None),
        ("nan", None, None),
        ("inf", None, None),
        ("", None, None),
        ("after lunch", None, None),
        (None, None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(seconds, milliseconds, expected):
    assert parse_retry_after(seconds, milliseconds, NOW) == expected


@given(attempts=st.integers(1, 10_000), drawn=st.floats(0, 1, exclude_max=True))
def test_backoff_stays_between_zero_and_a_bound_that_doubles_up_to_the_cap(attempts, drawn):
    policy = RetryPolicy(base=0.5, cap=30.0)
    wait = policy.backoff(attempts, Clock(draw=lambda: drawn))
    bound = 0.5 * 2 ** (attempts - 1) if attempts < 8 else 30.0
    assert 0 <= wait <= min(30.0, bound)
    assert wait == pytest.approx(drawn * min(30.0, bound))


class Time:
    """Seconds that pass only while somebody sleeps."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def clock(self):
        return Clock(
            now=lambda: self.now, wall_time=lambda: 1_700_000_000.0 + self.now, sleep=self.sleep, draw=lambda: 1.0
        )


def limit_of(ceiling):
    return AdaptiveLimit(ceiling, Time().clock())


async def taken(limit, count):
    return [await limit.acquire() for _ in range(count)]


def succeed(limit, slots):
    for slot in slots:
        limit.release(slot, has_succeeded=True, is_overloaded=False)


async def test_it_starts_low_and_doubles_each_round_trip_up_to_the_ceiling():
    limit = limit_of(100)
    assert limit.limit == INITIAL_LIMIT
    succeed(limit, await taken(limit, INITIAL_LIMIT))
    assert limit.limit == 2 * INITIAL_LIMIT
    succeed(limit, await taken(limit, 2 * INITIAL_LIMIT))
    assert limit.limit == 100


async def test_one_overload_halves_it_once_however_many_requests_were_under_way():
    limit = limit_of(32)
    slots = await taken(limit, 32)
    for slot in slots:
        limit.release(slot, has_succeeded=False, is_overloaded=True)
    assert limit.limit == 16
    later = await limit.acquire()
    limit.release(later, has_succeeded=False, is_overloaded=True)
    assert limit.limit == 8


async def test_after_an_overload_it_grows_by_one_each_round_trip():
    limit = limit_of(32)
    limit.release(await limit.acquire(), has_succeeded=False, is_overloaded=True)
    assert limit.limit == 16
    succeed(limit, await taken(limit, 16))
    assert 16.9 < limit.limit <= 17


async def test_no_more_than_the_limit_are_under_way_and_waiters_follow_in_order():
    async with asyncio.timeout(PATIENCE):
        limit = limit_of(2)
        first, second = await taken(limit, 2)
        served = []

        async def wait(name):
            await limit.acquire()
            served.append(name)

        waiters = [asyncio.create_task(wait(name)) for name in "abc"]
        await asyncio.sleep(0)
        assert served == []
        succeed(limit, [first])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert served == ["a"]
        assert limit.in_flight == 2
        waiters[1].cancel()
        succeed(limit, [second])
        await asyncio.gather(*waiters, return_exceptions=True)
        assert served == ["a", "c"]
        assert limit.in_flight == 2


async def test_a_place_given_to_a_cancelled_waiter_goes_to_the_next_one():
    limit = limit_of(1)
    slot = await limit.acquire()
    first, second = (asyncio.create_task(limit.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    succeed(limit, [slot])
    first.cancel()
    await asyncio.wait_for(second, PATIENCE)
    assert limit.in_flight == 1


async def test_a_pause_holds_every_sender_until_it_is_over():
    time = Time()
    limit = AdaptiveLimit(8, time.clock())
    limit.pause(30)
    limit.pause(5)
    await limit.acquire()
    assert time.slept == [30]
    await limit.acquire()
    assert time.slept == [30]
