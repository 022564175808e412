"""Waits: what servers ask for, and our own exponential backoff."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.models.openai.pacing import Clock, RetryPolicy, parse_retry_after

NOW = 1_700_000_000.0


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
