import pytest

from climassay.judging.judges import layer_choices, layers_of
from planted_model import PlantedModel
from tiny_models import smollm2

pytestmark = pytest.mark.model


def test_layers_to_choose_among_lie_in_the_upper_half_and_end_with_the_last() -> None:
    assert layer_choices(smollm2(), ()) == ((16,), (20,), (24,), (-1,))
    assert layer_choices(PlantedModel(), ()) == ((2,), (3,), (-1,))
    assert layer_choices(smollm2(), ((3, -1),)) == ((3, -1),)
    assert layer_choices(object(), ()) == ((-1,),)


@pytest.mark.parametrize(("sets", "expected"), [([(-1,), (16, 3)], (3, 16, -1)), ([(2,), (2, -2)], (2, -2))])
def test_each_layer_is_harvested_once(sets, expected) -> None:
    assert layers_of(sets) == expected
