"""Which drafts to have labelled next, and simulations of it on labels that are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation.validation import STRATEGIES, choose_next


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=25),
    st.integers(0, 30),
    st.sampled_from(STRATEGIES),
    st.integers(0, 3),
)
def test_as_many_different_ones_as_there_are(probabilities, n, strategy, seed):
    vectors = np.random.default_rng(0).normal(size=(len(probabilities), 3))
    given_ = np.array(probabilities)
    chosen = choose_next(given_, given_, vectors, n, strategy, seed)
    assert len(chosen) == len(set(chosen)) == min(n, len(probabilities))
    assert chosen == choose_next(given_, given_, vectors, n, strategy, seed)


def test_margin_takes_the_least_confident_first(make_draft):
    drafts = [make_draft(number) for number in range(5)]
    assert choose_next(drafts, [0.99, 0.45, 0.8, None, 0.1], None, 3, "margin") == [3, 1, 2]


def test_the_paper_drops_half_of_the_confident_ones():
    """Of 1000 drafts at 0.9 and 1000 at 0.6, 1500 stay on average; the first 1000 of them are 2/3 unsure ones."""
    probabilities = np.repeat([0.9, 0.6], 1000)
    chosen = choose_next(probabilities, probabilities, None, 1000, "paper", 0)
    unsure = float(np.mean(np.array(chosen) >= 1000))
    assert unsure == pytest.approx(2 / 3, abs=0.05)
    # Confident that it is invalid is confident too; 0.85 itself is not above 0.85.
    edge = np.repeat([0.1, 0.85], 1000)
    edge = choose_next(edge, edge, None, 1000, "paper", 1)
    assert float(np.mean(np.array(edge) >= 1000)) == pytest.approx(2 / 3, abs=0.05)


def test_diverse_takes_one_of_each_cluster():
    generator = np.random.default_rng(0)
    centres = np.eye(4)[np.repeat(np.arange(4), 10)]
    vectors = centres + 0.01 * generator.normal(size=(40, 4))
    # One cluster holds all the least confident ones: margin alone would take only these.
    probabilities = np.where(np.arange(40) < 10, 0.5, 0.9) + np.linspace(0, 0.05, 40)
    chosen = choose_next(probabilities, probabilities, vectors, 4, "diverse", 0)
    assert sorted(place // 10 for place in chosen) == [0, 1, 2, 3]
    # Of each the least confident.
    assert set(chosen) == {0, 10, 20, 30}
    assert chosen[0] == 0
    assert {place // 10 for place in choose_next(probabilities, probabilities, vectors, 4, "margin", 0)} == {0}


def test_what_does_not_fit_is_refused(make_draft):
    with pytest.raises(InputError, match="one for each"):
        choose_next([make_draft(1)], [0.5, 0.5], None, 1)
    with pytest.raises(InputError, match="no strategy"):
        choose_next([make_draft(1)], [0.5], None, 1, "best")
    with pytest.raises(InputError, match="one vector"):
        choose_next([make_draft(1)], [0.5], None, 1, "diverse")
