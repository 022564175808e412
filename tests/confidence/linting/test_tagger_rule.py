"""The rule on tags that a tagger would not give."""

import pytest

from climassay.confidence.linting import MeasuredAccuracy, check, draft_of, tagger_rule
from climassay.confidence.linting.checking import open_tagger
from climassay.errors import InputError

ACCURACY = MeasuredAccuracy(0.47, 0.42, 0.52, 300, "held-out statements")


class SayingTagger:
    """Gives the probabilities that it was told to give, and remembers what it was asked."""

    levels = ("low", "medium", "high", "very high")

    def __init__(self, *row):
        self.row = row
        self.asked = []

    def predict_proba(self, items):
        self.asked += items
        return [self.row for _ in items]


def messages(text, *row, certainty=0.7, accuracy=ACCURACY):
    return [
        one.message for one in check(draft_of(text), [tagger_rule(SayingTagger(*row), accuracy, certainty)]).findings
    ]


def test_a_certain_difference_is_told_with_the_measured_accuracy():
    (said,) = messages("Ice melts (low confidence).", 0.05, 0.1, 0.8, 0.05)
    assert "high confidence a probability of 80% and low confidence 5%" in said
    assert "47% [42% to 52%] of 300 statements (held-out statements)" in said


def test_what_was_not_measured_is_said_to_be_so():
    (said,) = messages("Ice melts (low confidence).", 0.05, 0.1, 0.8, 0.05, accuracy=None)
    assert "not measured" in said


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("Ice melts (low confidence).", (0.2, 0.1, 0.69, 0.01)),
        ("Ice melts (high confidence).", (0.05, 0.1, 0.8, 0.05)),
        ("Ice melts (very low confidence).", (0.05, 0.1, 0.8, 0.05)),
        ("Ice melts (low to medium confidence).", (0.05, 0.1, 0.8, 0.05)),
        ("Ice melts (low confidence) and snow falls (medium confidence).", (0.05, 0.1, 0.8, 0.05)),
        ("# Ice melts (low confidence)", (0.05, 0.1, 0.8, 0.05)),
        ("Low-confidence processes melt ice.", (0.05, 0.1, 0.8, 0.05)),
        ("(low confidence)", (0.05, 0.1, 0.8, 0.05)),
    ],
    ids=[
        "uncertain", "the same", "a level it does not know", "a range", "two tags", "a heading", "before a noun",
        "no words",
    ],
)  # fmt: skip
def test_no_finding(text, row):
    assert messages(text, *row) == []


def test_the_tagger_sees_the_sentences_of_the_paragraph():
    tagger = SayingTagger(1, 0, 0, 0)
    check(draft_of("Ice melts (low confidence). It is warm.\n\nElsewhere."), [tagger_rule(tagger, None)])
    assert tagger.asked == [("Ice melts (low confidence).", "Ice melts (low confidence). It is warm.")]


def test_a_comment_silences_it():
    text = "Ice melts (low confidence). <!-- climassay: ignore tagger-differs -->"
    checked = check(draft_of(text), [tagger_rule(SayingTagger(0, 0, 1, 0), None)])
    assert checked.findings == ()
    assert checked.silenced == 1


@pytest.mark.parametrize("certainty", [0.5, 1, float("nan"), -1])
def test_a_certainty_is_a_probability(certainty):
    with pytest.raises(InputError, match="certainty"):
        tagger_rule(SayingTagger(1, 0, 0, 0), None, certainty)


def test_a_file_that_is_no_tagger(tmp_path):
    path = tmp_path / "tagger.safetensors"
    with pytest.raises(InputError, match="no confidence tagger"):
        open_tagger(path)
    path.write_text("nothing")
    with pytest.raises(InputError):
        open_tagger(path)
