"""One answer has the same scores here as in ``climassay evaluate``."""

import pytest

from climassay.integrations.benchmark import JUDGED, SCORES, answer_of, score_answer
from climassay.metrics import Scorer, sentence_encoder
from climassay.metrics.registry import Answered
from published_sample import sample


class SharedWords:
    """Says how many of the statement's words are in the premise, and nothing about statements in capitals."""

    name = "shared words"

    def score(self, pairs):
        return [None if statement.isupper() else self._share(premise, statement) for premise, statement in pairs]

    def _share(self, premise, statement):
        words = statement.lower().split()
        return sum(word in premise.lower() for word in words) / len(words)


@pytest.fixture
def judge(monkeypatch):
    judge = SharedWords()
    monkeypatch.setattr("climassay.integrations.benchmark._judge", lambda name: judge)
    return judge


def first(kind):
    return next(question for question in sample() if question.kind == kind)


ANSWERS = {
    "right": " {answer}",
    "and more": " {answer} The answer goes on.\n\nQuestion: what else?",
    "near": " {answer} (nearly)",
    "other": " Volcanoes did it.",
    "empty": " \n",
    "not judged": " ALL IN CAPITALS.",
}


@pytest.mark.parametrize("form", ANSWERS)
@pytest.mark.parametrize("kind", ["freeform", "cloze"])
def test_scores_are_those_of_an_experiment(kind, form, judge):
    question = first(kind)
    text = ANSWERS[form].format(answer=question.answer)
    scorer = Scorer(sentence_encoder(), "local:minilm", judge)
    taken = question.type.answer(text)
    (expected,) = scorer.score(kind, [Answered(question.question, question.answer, taken)])
    given = score_answer(question, text)
    assert given == pytest.approx(expected)
    assert answer_of(question, text) == taken
    judged = not (kind == "freeform" and form == "not judged")
    assert set(given) == set(SCORES[kind]) - (set() if judged else set(JUDGED))
