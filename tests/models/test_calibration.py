"""Calibration by a content-free prompt."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError, ModelError
from climassay.models.calibration import calibrate, content_free_correction, mean_log_probabilities
from climassay.models.contract import Message, OptionRequest, OptionScores

LOGS = st.floats(-80, 0)


def logs(*probabilities):
    return tuple(map(math.log, probabilities))


def test_paper_example_of_a_biased_model():
    # Zhao et al. (2021), section 5: a content-free input that is 61.8% positive; after the correction it is even.
    assert calibrate(logs(0.618, 0.382), logs(0.618, 0.382)) == pytest.approx((0.5, 0.5))


def test_mean_is_taken_of_normalised_probabilities():
    # (0.2, 0.2) is (0.5, 0.5) and (0.09, 0.01) is (0.9, 0.1): their mean is (0.7, 0.3), however likely the words are.
    assert mean_log_probabilities([logs(0.2, 0.2), logs(0.09, 0.01)]) == pytest.approx(logs(0.7, 0.3))


@given(st.lists(st.tuples(LOGS, LOGS), min_size=1, max_size=6), st.floats(-5, 5))
def test_probabilities_sum_to_one_and_ignore_a_common_shift(pairs, shift):
    scores, base = zip(*pairs, strict=True)
    probabilities = calibrate(scores, base)
    assert sum(probabilities) == pytest.approx(1)
    assert calibrate([score + shift for score in scores], base) == pytest.approx(probabilities, abs=1e-9)


@pytest.mark.parametrize(
    ("scores", "correction"),
    [((), None), ((0.0, math.nan), None), ((0.0, -math.inf), None), ((0.0, 0.0), (0.0,)), ((0.0,), (-math.inf,))],
    ids=["none", "nan", "infinite", "length", "correction"],
)
def test_scores_that_cannot_be_used_are_refused(scores, correction):
    with pytest.raises(InputError):
        calibrate(scores, correction)


class Scripted:
    """Answers by what the prompt contains."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    def option_logprobs(self, requests, *, on_result=None):
        self.asked += [request.messages[0].content for request in requests]
        return [self.answers[request.messages[0].content] for request in requests]


def build(text):
    return OptionRequest((Message("user", f"Claim: {text}"),), ("true", "false"))


def test_correction_asks_every_placeholder_and_leaves_failures_out():
    model = Scripted(
        {
            "Claim: N/A": OptionScores(logs(0.4, 0.4)),
            "Claim: -": OptionScores.failed("timeout"),
            "Claim: ?": OptionScores(logs(0.9, 0.1)),
        }
    )
    correction = content_free_correction(model, build, ("N/A", "-", "?"))
    assert model.asked == ["Claim: N/A", "Claim: -", "Claim: ?"]
    assert correction == pytest.approx(logs(0.7, 0.3))


def test_no_answer_at_all_is_an_error_and_not_a_correction():
    with pytest.raises(ModelError, match="server gone"):
        content_free_correction(Scripted({"Claim: x": OptionScores.failed("server gone")}), build, ("x",))
    with pytest.raises(InputError):
        content_free_correction(Scripted({}), build, ())
