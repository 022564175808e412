import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.metrics import PromptedSupport, Relations, factual_accuracies, factual_accuracy, supports
from climassay.models.contract import OptionScores
from tiny_models import smollm2

PRINTED = (0.988, 0.982, 0.968, 0.741, 0.175, 0.980, 0.896, 0.051, 0.905)
"""All different values of appendix A.2.3."""


def test_worked_examples():
    # odds 99 to 1: 99 ** (1 / 5) = 2.5068; 2.5068 / 3.5068 = 0.7148.
    assert factual_accuracy(0.99) == pytest.approx(0.7148, abs=5e-5)
    assert factual_accuracy(0.5) == 0.5
    assert factual_accuracy(0.01) == pytest.approx(1 - factual_accuracy(0.99))
    assert factual_accuracy(0.3, temperature=1) == pytest.approx(0.3)


@pytest.mark.parametrize("printed", PRINTED)
def test_the_papers_values_are_reached_by_log_odds_that_a_judge_can_have(printed):
    log_odds = 5 * math.log(printed / (1 - printed))
    # Between the -100 of a missing token and 0 there is room for all of them: in no example was a token missing.
    assert abs(log_odds) < 22.1
    assert factual_accuracy(1 / (1 + math.exp(-log_odds))) == pytest.approx(printed, abs=5e-4)


def test_the_ends_are_finite_and_a_missing_token_is_at_the_end():
    low, high = factual_accuracy(np.array([0.0, 1.0]))
    assert (low, high) == (pytest.approx(0.0010, abs=5e-5), pytest.approx(0.9990, abs=5e-5))
    assert factual_accuracy(1 / (1 + math.exp(-100))) == pytest.approx(high)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.floats(0.1, 20))
def test_order_is_kept_and_scores_stay_within_0_and_1(probabilities, temperature):
    scores = factual_accuracy(np.array(probabilities), temperature)
    assert ((scores >= 0) & (scores <= 1)).all()
    order = np.argsort(probabilities, kind="stable")
    assert (np.diff(scores[order]) >= 0).all()


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_no_probability(wrong):
    with pytest.raises(InputError, match="probabilities"):
        factual_accuracy(wrong)


@pytest.mark.parametrize("temperature", [0, -1, math.inf])
def test_no_temperature(temperature):
    with pytest.raises(InputError, match="temperature"):
        factual_accuracy(0.5, temperature)


class Judge:
    """Gives scripted log-probabilities; fails where there are none."""

    name = "local:judge"

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def option_logprobs(self, requests, *, on_result=None):
        self.asked += requests
        found = []
        for request in requests:
            row = next((row for claim, row in self.answers.items() if claim in request.messages[-1].content), None)
            found.append(OptionScores(row) if row else OptionScores.failed("The server did not answer."))
        return found


def test_the_judge_is_asked_as_the_paper_does_and_failures_keep_their_place():
    judge = Judge({"Seas rise": (-0.1, -5.1), "Seas fall": (-100.0, 0.0)})
    scorer = PromptedSupport(judge)
    pairs = [
        ("The sea is rising.", "Seas rise."),
        ("The sea is rising.", "Lost."),
        ("The sea is rising.", "Seas fall."),
    ]
    relations = scorer.relations(pairs)
    assert relations[0].confirms == pytest.approx(1 / (1 + math.exp(-5)))
    assert relations[0].leaves_open == 0
    assert relations[1] is None
    assert scorer.score(pairs)[2] == pytest.approx(0, abs=1e-40)
    assert {request.options for request in judge.asked} == {("SUPPORTS", "REFUTES")}
    text = judge.asked[0].messages[-1].content
    assert text.index("Evidence:** The sea is rising.") < text.index("Claim:** Seas rise.")
    scores = factual_accuracies([one for one, _ in pairs], [two for _, two in pairs], scorer)
    # sigmoid(5 / 5), a failure, and the clip.
    assert scores == [pytest.approx(0.7311, abs=5e-5), None, pytest.approx(0.0010, abs=5e-5)]


def test_calibration_takes_out_what_the_judge_always_says():
    judge = Judge({"Seas rise": (math.log(0.9), math.log(0.1)), "N/A": (math.log(0.9), math.log(0.1))})
    (found,) = PromptedSupport(judge, calibrated=True).relations([("The sea is rising.", "Seas rise.")])
    assert found.confirms == pytest.approx(0.5)


def test_an_empty_answer_supports_nothing_and_asks_nobody():
    judge = Judge({})
    assert factual_accuracies(["A."], [" "], PromptedSupport(judge)) == [0.0]
    assert judge.asked == []


def test_as_many_answers_as_references():
    with pytest.raises(InputError, match="2 answers"):
        factual_accuracies(["A."], ["B.", "C."], PromptedSupport(Judge({})))


def test_open_questions_are_shared_out_between_the_two_classes():
    assert Relations(0.3, 0.1, 0.6).supports == pytest.approx(0.75)
    assert Relations(0.0, 0.0, 1.0).supports == 0.5


def test_a_scorer_without_relations_gives_its_probability():
    class Plain:
        name = "plain"

        def score(self, pairs):
            return [0.4 for _ in pairs]

    assert supports(Plain(), [("a", "b")]) == [0.4]


@pytest.mark.model
def test_the_bundled_model_as_judge():
    (found,) = factual_accuracies(["Warm water expands."], ["Water expands when heated."], PromptedSupport(smollm2()))
    assert 0 < found < 1
