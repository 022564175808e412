"""What the messages of failed work mean, for people who know nothing of servers and models."""

import pytest

from climassay.models.openai.connection import HOPELESS_STATUS
from climassay.web.failures import explained, plainly


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (f"The server answered 401: Incorrect API key provided. {HOPELESS_STATUS[401]}", "did not accept the key"),
        ("OpenAI's server needs an API key: set OPENAI_API_KEY, or give another --base-url.", "did not accept the key"),
        (f"The server answered 403: Forbidden. {HOPELESS_STATUS[403]}", "not allowed to use the model"),
        (
            "The server answered 429: You exceeded your current quota, please check your plan and billing details.",
            "has reached its limit",
        ),
        ("The server answered 429: Rate limit reached.", "too busy"),
        (
            "The server answered 404: No such model. Check the model's name: the server does not offer 'x' to you.",
            "not available",
        ),
        ("There is no model in models/gone: it has no config.json.", "not available"),
        ("The connection to http://localhost:8000/v1 failed: Connect call failed.", "cannot be reached"),
        ("The server did not answer within 120 s.", "took too long"),
        ("The server answered 503: Service Unavailable.", "a fault of its own"),
        ("The prompt has 9000 tokens, the model takes 1 to 2047.", "longer than the model can read"),
        ("There is no collection 'ipcc': see climassay corpus list.", "no longer in the library"),
        ("The memory of cuda is not enough for the model and 900 tokens: choose a lower", "more memory"),
        ("The server's answer is not JSON (cut off or malformed).", "cannot be read"),
    ],
)
def test_a_known_error_is_told_in_plain_words_with_what_to_do(error, words):
    known = explained(error)
    assert words in known.what
    assert known.what == plainly(error)
    assert known.advice.endswith(".")


def test_an_error_that_is_not_known_stays_as_it_is():
    assert explained("Something unforeseen went wrong (KeyError).") is explained(None) is None
    assert plainly("The verdict head could not be applied.") == "The verdict head could not be applied."
