import numpy as np
import pytest

from climassay.metrics.entailment import (
    change_number,
    cut_tail,
    negate,
    reverse_direction,
)


@pytest.fixture
def generator():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("change", "sentence", "changed"),
    [
        (reverse_direction, "Sea level rises in warm years.", None),
        (reverse_direction, "Rising seas threaten coasts.", "Falling seas threaten coasts."),
        (reverse_direction, "The coast is sandy.", None), (negate, "Ice is melting.", "Ice is not melting."),
        (negate, "Ice isn't melting.", "Ice is melting."), (negate, "Ice cannot melt here.", "Ice can melt here."),
        (negate, "Ice did not melt.", "Ice did melt."), (negate, "Ice melts.", None),
        (change_number, "Ice melts.", None), (change_number, "CO2 rises.", None),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_changes(change, sentence, changed, generator):
    found = change(sentence, generator)
    if sentence.startswith("Sea level"):
        assert found in ("Sea level falls in warm years.", "Sea level rises in cool years.") or "falls" in found
    else:
        assert found == changed


def test_numbers_change_and_nothing_else(generator):
    found = change_number("It rose by 3.2 mm.", generator)
    number = found.removeprefix("It rose by ").removesuffix(" mm.")
    assert float(number) != 3.2
    assert abs(int(change_number("Since 1990 it rose.", generator).split()[1]) - 1990) in (20, 50)


def test_what_is_cut_off_leaves_a_sentence_that_the_whole_says():
    assert cut_tail("The sea takes up much heat, which warms it.") == "The sea takes up much heat."
    assert cut_tail("It rose, which matters.") is None
    assert cut_tail("The sea takes up much heat.") is None
