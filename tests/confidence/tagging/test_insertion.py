from dataclasses import replace

import numpy as np
import pytest

from climassay.confidence.tagging import TAGGER_LEVELS, LabelledItem, TaggingItem
from climassay.confidence.tagging.insertion import sample_balanced, sample_latest_anchors, train_insertion
from climassay.errors import InputError
from planted_model import PlantedModel

WORDS = ("ice", "snow", "rain", "wind", "heat", "frost", "cloud", "sea")


def labelled(count=48, start=0) -> list[LabelledItem]:
    """Statements that bear their level as v0 to v3, which the model's states hold."""
    generator = np.random.default_rng(start)
    return [
        LabelledItem(
            TaggingItem(f"The {' '.join(generator.choice(WORDS, 3))} of case{start + number} is v{number % 4} now."),
            TAGGER_LEVELS[number % 4], "AR6", "d", f"s{number}",
        )
        for number in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("method", ["ppairs", "pointwise"])
def test_new_statements_find_their_level(method) -> None:
    tagger = train_insertion(labelled(), PlantedModel(noise=0.02), method=method)
    new = labelled(20, start=500)
    found = tagger.predict_proba([one.item for one in new])
    assert found.sum(axis=1).tolist() == [1] * 20
    right = sum(tag == one.tag for tag, one in zip(tagger.predict([one.item for one in new]), new, strict=True))
    assert right >= 16
    assert tagger.trained.accuracy.value > 0.9


def test_an_anchor_is_not_tagged_by_itself() -> None:
    known = labelled()
    tagger = train_insertion(known, PlantedModel(), method="pointwise")
    with pytest.raises(InputError, match="one of the anchors"):
        tagger.predict([known[0].item])
    assert tagger.predict([]) == []


def test_levels_that_do_not_occur_are_not_given() -> None:
    two = [one for one in labelled() if one.tag in ("low", "high")]
    tagger = train_insertion(two, PlantedModel(), method="pointwise")
    assert tagger.levels == ("low", "high")
    with pytest.raises(InputError, match="two levels"):
        train_insertion([one for one in two if one.tag == "low"], PlantedModel())


def test_a_balanced_sample_has_as_many_of_each_level() -> None:
    sample = sample_balanced(labelled(200), 40, seed=1)
    assert [sum(one.tag == level for one in sample) for level in TAGGER_LEVELS] == [10] * 4
    assert sample == sample_balanced(labelled(200), 40, seed=1)
    assert sample != sample_balanced(labelled(200), 40, seed=2)


def test_training_statements_come_evenly_from_cycles_and_anchors_from_the_latest_one() -> None:
    known = [replace(one, cycle=f"AR{3 + number // 60}") for number, one in enumerate(labelled(240))]
    training = sample_balanced(known, 40, by="cycle", seed=1)
    assert [sum(one.cycle == f"AR{cycle}" for one in training) for cycle in range(3, 7)] == [10] * 4
    anchors = sample_latest_anchors(known, training, 100, seed=1)
    assert {one.cycle for one in anchors} == {"AR6"}
    assert len(anchors) == 60 - 10
    assert not {one.item.text for one in anchors} & {one.item.text for one in training}
    new = labelled(20, start=900)
    tags = {}
    for mode in ("three-way", "printed"):
        tagger = train_insertion(training, PlantedModel(noise=0.02), method="pointwise", anchors=anchors, mode=mode)
        tags[mode] = tagger.predict([one.item for one in new])
    # As printed, the search of four levels starts at the second and returns it only at a mean of exactly one half.
    assert "medium" not in tags["printed"]
    assert "medium" in tags["three-way"]
    assert sum(tag == one.tag for tag, one in zip(tags["three-way"], new, strict=True)) >= 15
    with pytest.raises(InputError, match="No labelled statement names"):
        sample_balanced(labelled(), by="cycle")
