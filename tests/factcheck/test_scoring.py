"""Scores of verdicts: a worked example, the published table, and what must hold for any verdicts."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.factcheck import score_verdicts
from climassay.factcheck.results.scoring import NO_VERDICT, verdict_data
from climassay.factcheck.scales import CLIMATE_FEEDBACK, CLIMATE_FEVER, SCIENCE_FEEDBACK
from climassay.statistics import bootstrap_interval

SHARED = Path(__file__).parents[3] / "shared"
PAPER = SHARED / "papers" / "climinator_paper.txt"
REFERENCE = SHARED / "reference" / "climate_feedback_consolidation.json"

NO, HALF, YES, NEI = *SCIENCE_FEEDBACK.labels, SCIENCE_FEEDBACK.nei
TRUTH = [NO, NO, NO, NO, HALF, HALF, YES, YES]
PREDICTED = [NO, NO, HALF, "NEI", NO, HALF, YES, None]
FIGURES = ("accuracy", "precision", "recall", "f1")


def score(truth, predicted, scale=SCIENCE_FEEDBACK, resamples=20, **options):
    return score_verdicts(truth, predicted, scale, resamples=resamples, **options)


def values(figures, prefix=""):
    return [getattr(figures, prefix + name).value for name in FIGURES]


def appendix(name, following, heading, fields):
    """Rows of a table of the paper, which is printed one field a line."""
    lines = [line.strip() for line in PAPER.read_text(encoding="utf-8").splitlines()]
    start, end = (len(lines) - 1 - lines[::-1].index(f"Appendix {letter}") for letter in (name, following))
    cells = [line for line in lines[start:end] if line][2:]
    assert cells[:fields] == heading
    return [cells[place : place + fields] for place in range(fields, len(cells), fields)]


@pytest.mark.parametrize(("given", "ends"), [("incorrect", (0.0, 0.5615)), ("correct", (0.4385, 1.0))])
def test_claims_that_all_come_out_alike_are_not_known_exactly(given, ends):
    scores = score_verdicts(["correct"] * 3, [given] * 3, CLIMATE_FEEDBACK)
    assert scores.rows.figures.accuracy.interval == pytest.approx(ends, abs=1e-4)


def test_a_worked_example():
    scored = score(TRUTH, PREDICTED).rows
    # Eight rows, four of them right. Hits, truths and predictions: inaccurate 2, 4, 3; misleading 1, 2, 2; accurate
    # 1, 2, 1; "not enough information" 0, 0, 1. The failure is wrong, and no class.
    assert values(scored.figures) == pytest.approx(
        [4 / 8, (2 / 3 + 1 / 2 + 1 + 0) / 4, (1 / 2 + 1 / 2 + 1 / 2 + 0) / 4, (4 / 7 + 1 / 2 + 2 / 3 + 0) / 4]
    )
    assert scored.figures.constant == "inaccurate"
    assert values(scored.figures, "constant_") == pytest.approx([4 / 8, 4 / 8 / 3, 1 / 3, 2 / 3 / 3])
    assert scored.figures.averaged == (NO, HALF, YES, NEI)
    assert scored.figures.one_sided == (NEI,)
    # One row fewer; inaccurate now is 2, 3, 3.
    without = scored.without_nei
    assert values(without) == pytest.approx(
        [4 / 7, (2 / 3 + 1 / 2 + 1) / 3, (2 / 3 + 1 / 2 + 1 / 2) / 3, (2 / 3 + 1 / 2 + 2 / 3) / 3]
    )
    assert values(without, "constant_") == pytest.approx([3 / 7, 3 / 7 / 3, 1 / 3, 2 * 3 / 10 / 3])
    assert (scored.figures.n, without.n, scored.nei, scored.missing, scored.unknown) == (8, 7, 1, 1, 0)
    assert scored.confusion.truth == (NO, HALF, YES)
    assert scored.confusion.predicted == (NO, HALF, YES, NEI, NO_VERDICT)
    assert scored.confusion.counts == ((2, 1, 0, 1, 0), (1, 1, 0, 0, 0), (0, 0, 1, 0, 1))


@pytest.mark.parametrize(
    ("truth", "predicted", "averaged", "one_sided", "f1"),
    [
        ([NO, NO, YES], [NO, NO, NO], (NO, YES), (YES,), 4 / 5 / 2),
        ([NO, NO, NO], [NO, NO, YES], (NO, YES), (YES,), 4 / 5 / 2),
        ([NO, NO, NO], [NO, NO, None], (NO,), (), 4 / 5),
        ([NO, NO, NO], [NO, NO, "nei"], (NO, NEI), (NEI,), 4 / 5 / 2),
        ([NO, NO, NO], [NO, NO, NO], (NO,), (), 1.0),
    ],
    ids=["truth", "predicted", "failed", "nei", "neither"],
)
def test_a_class_that_occurs_on_one_side_only_counts_with_0(truth, predicted, averaged, one_sided, f1):
    figures = score(truth, predicted).rows.figures
    assert (figures.averaged, figures.one_sided) == (averaged, one_sided)
    assert figures.f1.value == pytest.approx(f1)


@pytest.mark.parametrize(
    ("classes", "without", "printed"),
    [(7, 34.13, 29.86), (5, 36.71, 30.59), (2, 83.69, 55.80), (5, 34.75, 28.96), (2, 66.89, 44.59), (2, 88.41, 58.94)],
    ids=["IPCC, 7", "IPCC, 5", "IPCC, 2", "AbsCC, 5", "WMO, 2", "GPT-4, 2"],
)
def test_not_enough_information_is_one_more_class_as_in_the_published_table(classes, without, printed):
    """Table 1: the advocates' precision without and with NEI. What they say on each claim is not published."""
    names = CLIMATE_FEEDBACK.classes(classes)
    scored = score([*names, *names], [*names, *names[1:], "NEI"], CLIMATE_FEEDBACK, classes=classes).rows
    ratio = scored.figures.precision.value / scored.without_nei.precision.value
    # Both printed figures are rounded.
    assert without * ratio == pytest.approx(printed, abs=0.01)


@pytest.mark.skipif(not PAPER.exists(), reason="the shared papers folder is absent")
class TestPublishedTables:
    """The 170 and 163 claims that the paper lists with both verdicts."""

    @pytest.fixture(scope="class")
    def feedback(self):
        return appendix("E", "F", ["Claim", "Source", "Date", "Climate Feedback", "Climinator"], 5)

    @pytest.mark.parametrize("classes", [7, 5, 2])
    def test_climate_feedback(self, feedback, classes):
        claims, _, _, truth, predicted = zip(*feedback, strict=True)
        scores = score(truth, predicted, CLIMATE_FEEDBACK, classes=classes, claims=claims)
        printed = json.loads(REFERENCE.read_text(encoding="utf-8"))["published_and_reproduced"][str(classes)]
        figures = scores.rows.figures
        assert figures.n == 170
        assert [round(100 * value, 2) for value in values(figures)] == [
            printed[name] for name in ("acc", "prec", "rec", "f1")
        ]
        assert scores.rows.without_nei == figures
        # The paper does not say so: ten claims are there twice, and a constant answer is better on 7 and 5 classes.
        assert (scores.duplicates, scores.rows.claims, scores.without_duplicates.figures.n) == (10, 160, 160)
        constant = {7: (67.65, 66.88), 5: (68.82, 68.12), 2: (91.76, 91.25)}[classes]
        unique = scores.without_duplicates.figures
        assert figures.constant == unique.constant == "incorrect"
        assert [round(100 * each.constant_accuracy.value, 2) for each in (figures, unique)] == pytest.approx(
            constant, abs=0.0051
        )
        assert round(100 * unique.accuracy.value, 2) == pytest.approx(
            {7: 62.5, 5: 64.38, 2: 96.88}[classes], abs=0.0051
        )

    def test_it_matters_how_a_class_on_one_side_is_treated(self, feedback):
        _, _, _, truth, predicted = zip(*feedback, strict=True)
        scored = score(truth, predicted, CLIMATE_FEEDBACK, classes=7).rows
        assert scored.figures.one_sided == ("imprecise",)
        # Were its precision left out of the mean, 42.74 would be 49.86.
        assert round(100 * scored.figures.precision.value * 7 / 6, 2) == 49.86

    def test_skeptical_science(self):
        claims, truth, predicted = zip(*appendix("F", "G", ["Claim", "Implied Verdict", "Climinator"], 3), strict=True)
        scores = score(truth, predicted, CLIMATE_FEEDBACK, classes=2, claims=claims)
        printed = json.loads(REFERENCE.read_text(encoding="utf-8"))["published_and_reproduced"]["skeptical_science_163"]
        rows = scores.rows
        assert (rows.figures.n, rows.without_nei.n, rows.nei, scores.duplicates) == (163, 162, 1, 0)
        assert round(100 * rows.figures.accuracy.value, 2) == printed["acc"]
        assert round(100 * rows.without_nei.accuracy.value, 2) == printed["acc_excl_nei"]
        assert round(100 * rows.figures.constant_accuracy.value, 2) == 96.93


def test_not_enough_information_as_a_true_class():
    truth = ["SUPPORTS", "SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO", "NOT_ENOUGH_INFO", "NOT_ENOUGH_INFO"]
    predicted = ["supports", "NEI", "SUPPORTS", "not enough info", "Not Enough Information", "REFUTES"]
    rows = score(truth, predicted, CLIMATE_FEVER).rows
    assert rows.figures.accuracy.value == pytest.approx(3 / 6)
    assert rows.figures.constant == "NOT_ENOUGH_INFO"
    assert rows.figures.averaged == ("REFUTES", "SUPPORTS", "NOT_ENOUGH_INFO")
    assert (rows.nei, rows.true_nei) == (3, 3)
    assert rows.confusion.truth == ("REFUTES", "DISPUTED", "SUPPORTS", "NOT_ENOUGH_INFO")
    assert rows.confusion.counts[-1] == (1, 0, 0, 2, 0)
    # Rows where neither side is NEI: the first and the third.
    assert (rows.without_nei.n, rows.without_nei.averaged) == (2, ("REFUTES", "SUPPORTS"))
    assert rows.without_nei.accuracy.value == 0.5


def test_predictions_that_are_not_of_the_scale():
    predicted = [NO, "follow-up", None]
    words = (
        r"Row 2 predicts 'follow-up', which is not of the scale science-feedback: it has inaccurate, .*--unknown wrong"
    )
    with pytest.raises(InputError, match=words):
        score([NO, NO, NO], predicted)
    rows = score([NO, NO, NO], predicted, unknown="wrong").rows
    assert (rows.unknown, rows.missing) == (1, 1)
    assert rows.figures.accuracy.value == pytest.approx(1 / 3)
    assert rows.confusion.counts[0] == (1, 0, 0, 0, 2)


@pytest.mark.parametrize(
    ("truth", "predicted", "options", "words"),
    [
        ([NO], [NO, YES], {}, "1 true verdicts cannot be compared with 2 predictions"),
        ([NO], [NO], {"claims": []}, "0 claims do not belong to 1 verdicts"),
        ([], [], {}, "No row has a true verdict"),
        ([None, ""], [NO, YES], {}, "No row has a true verdict"),
        (
            [NO, "false " * 30],
            [NO, NO],
            {"unknown": "wrong"},
            "Row 2 has the true verdict 'false false .* …', which is",
        ),
        ([NO], [NO], {"classes": 4}, "cannot be shown in 4 classes: it can be shown in 3, 2"),
        ([NO], [NO], {"level": 1.0}, "A confidence level must be between 0 and 1"),
        ([NO], [NO], {"resamples": 0}, "at least one bootstrap sample"),
    ],
)
def test_what_cannot_be_scored(truth, predicted, options, words):
    with pytest.raises(InputError, match=words):
        score(truth, predicted, **options)


def test_duplicates_are_told_by_the_claim_and_the_first_is_kept():
    truth = [None, NO, YES, NO, HALF, HALF]
    predicted = [NO, NO, YES, "NEI", HALF, NO]
    claims = ["Ice grows.", "“Ice grows.”", "Ice melts.", "ICE  grows.", None, ""]
    scores = score(truth, predicted, claims=claims)
    # The first row has no truth; the second and fourth are one claim; a row without a text is a claim of its own.
    assert (scores.unlabelled, scores.duplicates, scores.rows.claims) == (1, 1, 4)
    assert scores.rows.figures.n == 5
    kept = scores.without_duplicates
    assert (kept.figures.n, kept.nei, kept.figures.accuracy.value) == (4, 0, 0.75)
    assert kept.without_nei == kept.figures
    assert (scores.rows.nei, scores.rows.without_nei.n) == (1, 4)
    unknown = score(truth, predicted)
    assert (unknown.without_duplicates, unknown.duplicates, unknown.rows.claims) == (None, None, 5)
    assert unknown.rows.figures.accuracy.value == scores.rows.figures.accuracy.value


VERDICTS = st.sampled_from([*SCIENCE_FEEDBACK.labels, "NEI"])
ROWS = st.lists(st.tuples(VERDICTS, st.one_of(VERDICTS, st.none())), min_size=1, max_size=25)


@given(ROWS, st.sampled_from([None, 2]))
def test_values_are_those_of_sklearn(rows, classes):
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    read = [[SCIENCE_FEEDBACK.match(verdict or "", classes) or "-" for verdict in row] for row in rows]
    truth, predicted = zip(*read, strict=True)
    figures = score(*zip(*rows, strict=True), classes=classes).rows.figures
    occurring = sorted({*truth, *predicted} - {"-"})
    assert sorted(figures.averaged) == occurring
    wanted = precision_recall_fscore_support(truth, predicted, labels=occurring, average="macro", zero_division=0)[:3]
    assert values(figures) == pytest.approx([accuracy_score(truth, predicted), *wanted])
    always = [figures.constant] * len(rows)
    wanted = precision_recall_fscore_support(truth, always, labels=sorted(set(truth)), average="macro", zero_division=0)
    assert values(figures, "constant_") == pytest.approx([accuracy_score(truth, always), *wanted[:3]])


def macro_f1(rows):
    truth, predicted = rows[:, 0], rows[:, 1]
    scores = [
        2 * ((truth == label) & (predicted == label)).sum() / ((truth == label).sum() + (predicted == label).sum())
        for label in np.unique(rows)
    ]
    return float(np.mean(scores))


def test_intervals_are_those_of_the_plain_bootstrap():
    generator = np.random.default_rng(3)
    truth = generator.integers(0, 3, 80)
    predicted = np.where(generator.random(80) < 0.6, truth, generator.integers(0, 3, 80))
    labels = SCIENCE_FEEDBACK.labels
    figures = score([labels[i] for i in truth], [labels[i] for i in predicted], resamples=4000).rows.figures
    plain = bootstrap_interval(np.column_stack([truth, predicted]), macro_f1, resamples=4000, seed=1)
    assert figures.f1.value == pytest.approx(macro_f1(np.column_stack([truth, predicted])))
    assert figures.f1.interval == pytest.approx(plain, abs=0.015)
    from scipy.stats import binom

    right = int((truth == predicted).sum())
    exact = [binom.ppf(q, 80, right / 80) / 80 for q in (0.025, 0.975)]
    assert figures.accuracy.interval == pytest.approx(exact, abs=1 / 80 + 1e-9)
    assert (figures.accuracy.n, figures.accuracy.level) == (80, 0.95)


def test_a_repeated_claim_does_not_narrow_an_interval():
    claims = [f"claim {row}" for row in range(len(TRUTH))]
    once = score(TRUTH, PREDICTED, claims=claims, resamples=500)
    twice = score(TRUTH * 2, PREDICTED * 2, claims=claims * 2, resamples=500)
    assert twice.rows.figures.n == 2 * once.rows.figures.n
    assert twice.rows.figures.accuracy == once.rows.figures.accuracy
    assert twice.rows.figures.f1 == once.rows.figures.f1
    apart = score(TRUTH * 2, PREDICTED * 2, resamples=500).rows.figures.accuracy.interval
    together = once.rows.figures.accuracy.interval
    assert apart.high - apart.low < together.high - together.low


def test_data_for_json():
    data = verdict_data(score(TRUTH, PREDICTED, claims=list("aabcdefg")))
    assert json.loads(json.dumps(data)) == json.loads(json.dumps(data, allow_nan=False))
    once = data["without_duplicates"]
    assert (data["n"], data["without_nei"]["n"], data["duplicates"], once["n"], once["without_nei"]["n"]) == (
        8,
        7,
        1,
        7,
        6,
    )
    for place in (data, data["without_nei"], once):
        for name in ("accuracy", "precision", "recall", "f1", "constant_accuracy", "constant_f1"):
            low, high = place[name]["interval"]
            assert 0 <= low <= place[name]["value"] <= high <= 1
    assert data["confusion"]["counts"] == ((2, 1, 0, 1, 0), (1, 1, 0, 0, 0), (0, 0, 1, 0, 1))
    assert {"scale", "classes", "averaged", "one_sided", "nei", "missing", "unknown", "unlabelled"} <= set(data)
