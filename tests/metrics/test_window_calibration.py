import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.metrics import LabelledAnswer, calibrate_window, exact_match_normalised, primer_answers
from climassay.metrics.window_calibration import (
    WINDOWS,
    read_labelled_answers,
    window_verdict,
)
from climassay.primer import gold_questions


class Scripted:
    """The cosine of an answer to its reference is written in the answer: ``a70`` has 0.70, whatever the window."""

    name, fingerprint, width = "test:scripted", "0" * 64, 2

    def encode(self, texts, *, role="passage", on_progress=None):
        cosines = np.array([self._cosine(text) for text in texts])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1).astype(np.float32)

    def _cosine(self, text):
        found = [int(word[1:]) / 100 for word in text.split() if word[0] == "a" and word[1:].isdigit()]
        return found[0] if found else 1.0


class Narrow(Scripted):
    """Tells answers apart in phrases of up to three words only, and finds all phrases of one word far apart."""

    def _cosine(self, text):
        if "ref" in text.split():
            return 1.0
        words = len(text.split())
        return super()._cosine(text) - 0.5 * (words == 1) if words <= 3 else 0.9


def answers(*cosines_and_labels):
    return [
        LabelledAnswer(f"q{n // 2}", "one two <MASK> three four", "ref", f"a{100 * cosine:.0f}", correct)
        for n, (cosine, correct) in enumerate(cosines_and_labels)
    ]


PLAIN = answers((0.9, True), (0.5, False), (0.8, True), (0.6, False), (0.7, True), (0.8, False))


def test_means_gap_and_auroc_worked_by_hand():
    found = calibrate_window(PLAIN, Scripted(), windows=[4])
    (point,) = found.points
    assert (point.right, point.wrong) == (pytest.approx(0.8), pytest.approx(19 / 30))
    assert point.gap == pytest.approx(0.8 - 19 / 30)
    # Of nine pairs, 0.9 is above all three, 0.8 above two and equal to one, 0.7 above two.
    assert point.auroc == pytest.approx((3 + 2.5 + 2) / 9)
    # The third statement's right answer is below its wrong one.
    assert point.within == pytest.approx(2 / 3)
    assert (found.n_right, found.n_wrong, found.n_questions, found.n_within) == (3, 3, 3, 3)
    apart = calibrate_window([replace(one, question=str(n)) for n, one in enumerate(PLAIN)], Scripted(), windows=[4])
    assert apart.points[0].within is None
    assert point.gap_interval.low <= point.gap <= point.gap_interval.high
    assert (found.encoder, found.chosen, point.chosen_share) == ("test:scripted", 4, 1.0)


def test_the_largest_gap_is_chosen_among_windows_that_keep_right_answers_high():
    found = calibrate_window(PLAIN, Narrow(), windows=[0, 1, 2, None], floor=0.75)
    # One word each: the gap is as large as with one word on each side, but right answers are low.
    assert [round(point.gap, 3) for point in found.points] == [0.167, 0.167, 0.0, 0.0]
    assert found.points[0].right == pytest.approx(0.3)
    assert (found.chosen, found.floor_kept) == (1, True)


def test_where_no_window_keeps_the_floor_the_largest_gap_decides():
    found = calibrate_window(PLAIN, Narrow(), windows=[0, 1, 2], floor=0.95)
    assert (found.chosen, found.floor_kept) == (0, False)
    assert "no window keeps" in window_verdict(found)


def test_intervals_are_those_of_statements_and_repeat_with_the_seed():
    first, again = (calibrate_window(PLAIN, Scripted(), windows=[4], resamples=200) for _ in range(2))
    assert first.points == again.points
    other = calibrate_window(PLAIN, Scripted(), windows=[4], resamples=200, seed=1)
    assert other.points[0].right_interval != first.points[0].right_interval or other.points != first.points
    # The same answers twice, under the same statements, are no more information.
    twice = calibrate_window([*PLAIN, *PLAIN], Scripted(), windows=[4], resamples=200)
    assert twice.points[0].gap_interval == pytest.approx(first.points[0].gap_interval)


def test_the_primers_answers_are_twenty_and_twenty_and_marked_as_ours():
    rows = primer_answers()
    assert Counter(one.correct for one in rows) == {True: 20, False: 20}
    assert {one.labelled_by for one in rows} == {"climassay authors"}
    assert all(one.reason for one in rows)
    questions = {question.id: question for question in gold_questions().of_kind("cloze")}
    assert all((one.statement, one.reference) == (questions[one.question].question, questions[one.question].answer)
               for one in rows)  # fmt: skip
    assert len({(one.question, one.answer) for one in rows}) == 40
    assert not any(exact_match_normalised([one.reference for one in rows], [one.answer for one in rows]))


@pytest.mark.model
def test_the_bundled_encoder_on_the_primers_answers():
    found = calibrate_window(primer_answers())
    assert [point.window for point in found.points] == list(WINDOWS)
    assert found.chosen == 5
    assert found.best.gap == pytest.approx(0.034, abs=0.005)
    assert found.points[3].gap == pytest.approx(0.020, abs=0.005)
    # What docs/metrics.md says: near misses are not told apart from synonyms by any window.
    assert all(point.gap_interval.low < 0 for point in found.points)
    assert all(0.4 < point.auroc < 0.65 for point in found.points)
    assert sum(point.chosen_share for point in found.points) == pytest.approx(1.0)
    # More of the same words around the gap, more similarity.
    assert found.points[0].wrong < found.points[4].wrong < found.points[-1].wrong
    assert "includes 0" in window_verdict(found)


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ({"reference": "ice", "answer": "snow", "correct": True}, "row 1 has no statement"),
        ({"statement": "The <MASK>.", "reference": "ice", "correct": True}, "row 1 has no answer"),
        ({"statement": "The <MASK>.", "reference": "ice", "answer": "snow", "correct": "maybe"}, "neither true nor"),
        ({"question": "phys-cloze-01", "answer": "snow", "correct": True}, "no statement"),
    ],
    ids=["statement", "answer", "label", "unknown-question"],
)
def test_what_a_row_lacks_is_told_with_its_number(tmp_path, row, word):
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(InputError, match=word):
        read_labelled_answers(file)


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([one for one in PLAIN if one.correct], "wrong answers to at least two"),
        (PLAIN[:3], "wrong answers to at least two"),
        ([*PLAIN, LabelledAnswer("q9", "the <MASK>", "ref", "ref", True)], "is identical to its reference"),
    ],
    ids=["one-kind", "too-few", "equal"],
)
def test_answers_that_say_nothing_are_refused(rows, word):
    with pytest.raises(InputError, match=word):
        calibrate_window(rows, Scripted())
