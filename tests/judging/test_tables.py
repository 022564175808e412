"""Comparisons that fail in one call and succeed in another stand side by side in one table."""

import numpy as np
import pytest

from climassay.judging.tables import ContrastTable
from planted_model import WIDTH, PlantedModel, harvester, items

GOOD, BAD = [[0, 1], [1, 2]], [[3, 4], [4, 5]]


@pytest.mark.parametrize("blocks", [[GOOD, BAD], [BAD, GOOD]], ids=["then bad", "then good"])
def test_a_call_in_which_everything_failed(blocks):
    table = ContrastTable(harvester(PlantedModel(fail=(" 1-0",)), layers=(1, 2)), items())
    for block in blocks:
        table.prepare(np.array(block))
    found = table.take(np.array(GOOD + BAD), [2])
    assert found.failed.tolist() == [False, False, True, True]
    assert found.states.plus.shape == found.states.minus.shape == (4, WIDTH)
    assert np.abs(found.states.plus[:2]).sum(axis=1).min() > 0
    assert not found.states.plus[2:].any()
