"""Settings: what fits is told in one sentence, and a commented file says every entry and can be read again."""

import re
import tomllib
from dataclasses import replace
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from climassay.errors import InputError
from climassay.settings import (
    commented_table,
    field_bounds,
    parse_table,
    setting_fields,
    settings,
    summary,
    with_changes,
)


@settings(subject="The oven")
class Oven:
    name: str
    """What it is called."""
    heat: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 180.0
    """Degrees."""
    racks: Annotated[int, Field(ge=1, le=4)] = 2
    """Racks in it, one above the other, which may be taken out, washed, and put in again where they were before.

    This is not shown.
    """
    share: Annotated[float | None, Field(gt=0, lt=1, examples=[0.5])] = None
    """Share of time."""
    mode: Literal["fan", "grill"] = "fan"
    """fan or grill."""
    trays: tuple[str, ...] = ()


@settings
class Kiln(Oven):
    fuel: str = "gas"
    """What it burns."""


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({}, "[oven] needs an entry 'name'."),
        ({"name": 3}, "[oven] has name = 3, but it must be a text in quotes."),
        ({"name": "a", "heats": 1}, "[oven] has no entry 'heats'; there are name, heat, racks, share, mode, trays."),
        ({"name": "a", "heat": True}, "[oven] has heat = True, but it must be a number."),
        ({"name": "a", "heat": -1}, "[oven] heat cannot be negative, but is -1."),
        ({"name": "a", "heat": float("nan")}, "heat"),
        ({"name": "a", "racks": 2.0}, "[oven] has racks = 2.0, but it must be a whole number."),
        ({"name": "a", "racks": 5}, "[oven] racks must be between 1 and 4, not 5."),
        ({"name": "a", "share": 1}, "[oven] share must be above 0 and below 1, not 1."),
        ({"name": "a", "mode": "steam"}, '[oven] has mode = \'steam\', but it must be one of "fan", "grill".'),
        ({"name": "a", "trays": "x"}, "[oven] has trays = 'x', but it must be a list of texts."),
    ],
)
def test_what_does_not_fit_is_one_sentence_with_file_table_and_entry(entries, said):
    with pytest.raises(InputError) as raised:
        parse_table(Oven, entries, "my.toml", "[oven]")
    assert str(raised.value).startswith("my.toml: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@given(st.text(), st.integers(0, 300) | st.floats(0, 300), st.integers(1, 4), st.lists(st.text(max_size=3)))
def test_what_fits_is_kept_as_it_is(name, heat, racks, trays):
    made = parse_table(Oven, {"name": name, "heat": heat, "racks": racks, "trays": trays}, "", "")
    assert made == Oven(name, heat, racks, trays=tuple(trays))
    assert type(made.heat) is float  # 180 and 180.0 are one setting, so that both have the same hash


def test_what_is_made_by_a_program_is_held_to_the_same():
    with pytest.raises(InputError, match="The oven: racks must be between 1 and 4, not 9"):
        Oven("a", racks=9)
    with pytest.raises(InputError, match="The oven: racks = 'two', but it must be a whole number"):
        replace(Oven("a"), racks="two")
    with pytest.raises(InputError, match="The oven: name is missing"):
        Oven()
    with pytest.raises(InputError, match="The oven: there is no setting 'rack'; there are name, heat, racks"):
        Oven("a", rack=1)
    assert with_changes(Oven("a"), racks=3, heat=None) == Oven("a", racks=3)


def test_an_inherited_field_keeps_its_description_and_bounds():
    assert next(iter(setting_fields(Kiln))) == "fuel"
    assert summary(setting_fields(Kiln)["share"]) == "Share of time."
    assert field_bounds(setting_fields(Kiln)["racks"]) == {"ge": 1, "le": 4}
    with pytest.raises(InputError, match="racks must be between 1 and 4, not 0"):
        Kiln("a", racks=0)


def test_a_commented_file_shows_every_entry_and_reads_as_the_defaults():
    text = commented_table(Oven, "[oven]", values={"name": "big"})
    assert set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE)) == set(Oven.__dataclass_fields__)
    assert max(map(len, text.splitlines())) <= 120
    assert "not shown" not in text
    assert parse_table(Oven, tomllib.loads(text)["oven"], "", "") == Oven("big")
    shown = re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE)
    assert parse_table(Oven, tomllib.loads(shown)["oven"], "", "") == Oven("big", share=0.5)
    assert not tomllib.loads(commented_table(Oven, "[oven]", disabled=True))
