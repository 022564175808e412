from types import SimpleNamespace

import numpy as np
import pytest

from climassay.errors import InputError, NoAnswerError
from climassay.judging import Item, insert_items, probe_judge, rank_items, train_probe
from climassay.judging.opened_judge import Judge
from climassay.judging.preferences import Judgements
from planted_model import PlantedModel, extractor, items

LEVELS = ("low", "medium", "high")


class ByLabel:
    """Compares by the number at the end of the text; remembers what it was asked."""

    name = "by label"

    def __init__(self, fail=()):
        self.asked, self.fail = [], fail

    def compare(self, items, pairs, *, on_progress=None):
        self.asked += [tuple(sorted(pair)) for pair in pairs.tolist()]
        values = np.array([float(item.text.split()[-1]) for item in items])
        lost = np.array([any(items[k].id in self.fail for k in pair) for pair in pairs.tolist()])
        return Judgements(np.where(lost, 0.0, values[pairs[:, 0]] - values[pairs[:, 1]]), lost)


def numbered(values, group="g"):
    return [Item(f"{group}{n}", f"text {n} {value}", "", group) for n, value in enumerate(values)]


def test_groups_are_ranked_apart_and_nothing_is_asked_twice():
    judge = ByLabel()
    ranking = rank_items([*numbered([1, 3, 2], "a"), *numbered([5, 4], "b")], judge)
    assert [(row.group, row.rank, row.item.id) for row in ranking.ranked] == [
        ("a", 1, "a1"), ("a", 2, "a2"), ("a", 3, "a0"), ("b", 1, "b0"), ("b", 2, "b1"),
    ]  # fmt: skip
    assert len(judge.asked) == len(set(judge.asked)) == ranking.comparisons
    assert all((first < 3) == (second < 3) for first, second in judge.asked)
    assert ranking.possible == 4


def test_items_that_the_method_does_not_tell_apart_share_a_place():
    ranking = rank_items(numbered([2, 3, 2, 1]), ByLabel(), sort="strengths")
    assert [row.rank for row in ranking.ranked] == [1, 2, 2, 4]
    assert [row.rank for row in rank_items(numbered([2, 2, 2]), ByLabel()).ranked] == [1, 1, 1]


def test_a_ranking_shows_itself_as_every_result_does():
    ranking = rank_items([*numbered([1, 3], "a"), *numbered([5], "b")], ByLabel())
    assert [(row["group"], row["rank"], row["item"]) for row in ranking.rows()] == [
        ("a", 1, "a1"), ("a", 2, "a0"), ("b", 1, "b0"),
    ]  # fmt: skip
    assert ranking.to_dict()["items"] == ranking.rows()
    assert ranking.to_dict()["possible"] == 1
    [table] = ranking.tables()
    assert len(table.rows) == 3
    assert ranking.note in table.note
    assert "a1" in ranking.markdown()


@pytest.mark.parametrize("method", ["ppairs", "pointwise"])
def test_a_model_that_reads_no_text_is_named_with_the_reason(method):
    trained = train_probe(items(), extractor(), method=method)
    asked = extractor(PlantedModel(fail=("v",)))
    ranking = rank_items(items(), probe_judge(trained.probe, asked))
    assert ranking.failed == ranking.comparisons > 0
    judge = Judge(None, None, None, asked, SimpleNamespace(name="local:planted"), None)
    with pytest.raises(NoAnswerError, match=f"local:planted gave no answer to 2 comparisons: {asked.error[:10]}"):
        judge.check_answered(2, 2)
    judge.check_answered(1, 2)


def test_a_pointwise_probe_harvests_every_item_once():
    trained = train_probe(items(), extractor(), method="pointwise")
    asked = extractor()
    ranking = rank_items(items(), probe_judge(trained.probe, asked))
    assert asked.cost.computed == 32
    best = [row for row in ranking.ranked if row.rank == 1]
    assert np.mean([row.item.label == max(i.label for i in items() if i.group == row.group) for row in best]) > 0.8


def test_nothing_to_rank():
    with pytest.raises(InputError, match="nothing to rank"):
        rank_items([], ByLabel())


def anchors():
    return [
        Item(f"{level}{n}", f"anchor {n} {10 * level}", "", str(n), float(level))
        for level in range(3)
        for n in range(4)
    ]


def test_new_items_get_the_label_of_the_anchors_they_are_like():
    found = insert_items(numbered([20, 0, 10]), anchors(), LEVELS, ByLabel(), samples=2)
    assert [insertion.label for insertion in found.insertions] == ["high", "low", "medium"]
    assert found.comparisons <= 3 * 2 * 2
    assert found.scores is None


def test_known_labels_score_the_result():
    new = [Item("a", "new 20", label=2.0), Item("b", "new 0", label=1.0)]
    found = insert_items(new, anchors(), LEVELS, ByLabel())
    assert found.scores.accuracy.value == 0.5
    partly = insert_items([*new, Item("c", "new 10")], anchors(), LEVELS, ByLabel())
    assert (partly.scores.accuracy.value, partly.scores.accuracy.n) == (0.5, 2)
    assert len(partly.insertions) == 3


@pytest.mark.parametrize(
    ("new", "known", "sentence"),
    [
        ([], anchors(), "nothing to insert"),
        ([Item("x", anchors()[0].text)], anchors(), "'x' is one of the anchors"),
        (numbered([1]), anchors()[:8], "'high' has no anchors"),
        (numbered([1]), [Item("y", "text 1")], "'y' has no label"),
    ],
    ids=["none", "leak", "missing", "unlabelled"],
)
def test_what_cannot_be_inserted(new, known, sentence):
    with pytest.raises(InputError, match=sentence):
        insert_items(new, known, LEVELS, ByLabel())


class Cycle:
    """Prefers each item to the next of a circle, and all of them to what is outside of it."""

    name = "cycle"

    def __init__(self, size):
        self.size = size

    def compare(self, items, pairs, *, on_progress=None):
        first, second = (np.array([int(items[index].id) for index in column]) for column in pairs.T)
        inside = (first < self.size) & (second < self.size)
        nearer = (second - first) % self.size <= self.size // 2
        log_odds = np.where(np.where(inside, nearer, first < second), 2.0, -2.0)
        return Judgements(log_odds, np.zeros(len(pairs), dtype=bool))


@pytest.mark.parametrize("sort", ["fitted", "greedy", "exact", "strengths"])
@pytest.mark.parametrize("seed", range(4))
def test_preferences_in_a_circle_are_told_for_every_way_of_sorting(sort, seed):
    items = [Item(str(number), f"text {number}") for number in range(3)]
    ranking = rank_items(items, Cycle(3), sort=sort, seed=seed)
    assert set(ranking.undetermined) == {"0", "1", "2"}
    assert "circle" in ranking.note
    assert set(ranking.to_dict()["undetermined"]) == {"0", "1", "2"}


def test_an_order_without_a_circle_is_not_doubted_and_only_items_of_the_circle_are_named():
    items = [Item(str(number), f"text {number}") for number in range(6)]
    assert rank_items(items, Cycle(1)).undetermined == ()
    assert set(rank_items(items, Cycle(3), sort="strengths").undetermined) == {"0", "1", "2"}
