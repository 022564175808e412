"""One evaluation: against scikit-learn, with failures counted, on other mixes, with intervals over groups."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, roc_auc_score

from climassay.errors import InputError
from climassay.learning import auroc, auroc_estimate, evaluate, softmax
from climassay.statistics import wilson_interval

CLASSES = ("low", "middle", "high")


@pytest.fixture
def held_out():
    generator = np.random.default_rng(1)
    truth = generator.choice(3, 200, p=[0.6, 0.3, 0.1])
    logits = generator.normal(size=(200, 3)) + 1.5 * np.eye(3)[truth]
    return truth, softmax(logits)


def test_figures_are_those_of_scikit_learn(held_out):
    truth, given = held_out
    found, said = evaluate(truth, given, CLASSES), given.argmax(axis=1)
    assert found.accuracy.value == pytest.approx((said == truth).mean())
    assert found.macro_f1.value == pytest.approx(f1_score(truth, said, average="macro"))
    assert found.balanced_accuracy.value == pytest.approx(balanced_accuracy_score(truth, said))
    assert found.log_loss.value == pytest.approx(log_loss(truth, given))
    assert [one.f1.value for one in found.per_class] == pytest.approx(f1_score(truth, said, average=None))
    assert found.brier.value == pytest.approx(((given - np.eye(3)[truth]) ** 2).sum(axis=1).mean() / 2)
    assert found.ordinal_error.value == pytest.approx(np.abs(said - truth).mean())
    assert sum(map(sum, found.confusion)) == 200


def test_the_constant_stands_beside_it(held_out):
    truth, given = held_out
    found = evaluate(truth, given, CLASSES)
    assert found.constant.value == pytest.approx((truth == 0).mean())
    assert found.constant_macro_f1 == pytest.approx(f1_score(truth, np.zeros(200), average="macro", zero_division=0))
    assert found.accuracy.interval.low < found.accuracy.value < found.accuracy.interval.high


def test_a_failed_item_is_wrong_and_counted(held_out):
    truth, given = held_out
    broken = given.copy()
    broken[:20] = np.nan
    found = evaluate(truth, broken, CLASSES)
    right = (given.argmax(axis=1) == truth)[20:].sum()
    assert found.failed == 20
    assert found.accuracy.value == pytest.approx(right / 200)
    assert found.log_loss.value == pytest.approx(log_loss(truth[20:], given[20:], labels=[0, 1, 2]))


def test_on_a_mix_each_class_counts_its_share(held_out):
    truth, given = held_out
    found = evaluate(truth, given, CLASSES, mix=(1, 1, 1))
    assert found.accuracy.value == pytest.approx(found.balanced_accuracy.value)
    assert found.constant.value == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="without held-out items"):
        evaluate(truth[truth > 0], given[truth > 0], CLASSES, mix=(1, 1, 1))


def test_answers_that_are_all_right_are_not_known_to_be_so_for_sure():
    truth, groups = np.array([0, 1] * 6), np.repeat(np.arange(4), 3)
    found = evaluate(truth, np.eye(2)[truth], ["a", "b"], groups=groups)
    for one in (found.accuracy, found.macro_f1, found.auroc, found.per_class[0].f1):
        assert one.value == 1
        assert one.interval == wilson_interval(4, 4)


def test_a_class_that_the_mix_leaves_out_is_not_in_the_constants_mean():
    truth = np.array([0, 0, 1, 1, 2])
    found = evaluate(truth, np.eye(3)[truth], ["a", "b", "c"], mix=[0.5, 0.5, 0.0], resamples=10)
    # Always "a": F1 2/3 and 0.
    assert found.constant_macro_f1 == pytest.approx(1 / 3)


def test_items_drawn_together_widen_the_interval(held_out):
    truth, given = held_out
    # Every item ten times over is no more evidence than the item once.
    copies = np.repeat(np.arange(200), 10)
    alone = evaluate(truth, given, CLASSES).accuracy.interval
    grouped = evaluate(truth[copies], given[copies], CLASSES, groups=copies).accuracy.interval
    apart = evaluate(truth[copies], given[copies], CLASSES).accuracy.interval
    width = lambda one: one.high - one.low  # noqa: E731
    assert width(grouped) == pytest.approx(width(alone), rel=0.15)
    assert width(apart) < width(grouped) / 2


def test_auroc_is_scikit_learns_with_ties_and_one_half_where_one_kind_is_missing():
    generator = np.random.default_rng(2)
    labels, scores = generator.integers(0, 2, 80), generator.integers(0, 6, 80)
    found = auroc_estimate(labels, scores)
    assert found.value == pytest.approx(roc_auc_score(labels, scores)) == pytest.approx(auroc(scores, labels))
    assert found.interval.low < found.value < found.interval.high
    assert auroc([1.0, 2.0], [1, 1]) == 0.5


def test_auroc_compares_within_folds_only():
    # Within each fold the order is perfect; across folds it is the other way round.
    labels, scores, folds = [1, 0, 1, 0], [2.0, 1.0, 12.0, 11.0], [0, 0, 1, 1]
    assert auroc_estimate(labels, scores, folds=folds).value == 1.0
    assert auroc_estimate(labels, scores).value == 0.75


def test_two_classes_have_an_auroc_and_tables_show_it():
    truth, given = np.array([0, 1, 1, 0]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    found = evaluate(truth, given, ("no", "yes"))
    assert found.auroc is not None
    assert found.auroc.value == 1.0
    overall, each = found.tables()
    assert "AUROC" in [row[0] for row in overall.rows]
    assert [row[0] for row in each.rows] == ["no", "yes"]


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="probabilities of 3 classes"):
        evaluate([0, 1], np.zeros((2, 2)), CLASSES)
