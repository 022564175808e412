"""Settings: what fits is told in one sentence, and a commented file says every entry and can be read again."""

import re
import tomllib
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from climassay.errors import InputError
from climassay.settings import commented_table, parse_table, validate_settings


@dataclass(frozen=True, slots=True)
class Oven:
    name: Annotated[str, Field(description="What it is called.")]
    heat: Annotated[float, Field(ge=0, allow_inf_nan=False, description="Degrees.")] = 180.0
    racks: Annotated[int, Field(ge=1, le=4, description="Racks in it, " + "one above the other, " * 8)] = 2
    share: Annotated[float | None, Field(gt=0, lt=1, description="Share of time.", examples=[0.5])] = None
    mode: Annotated[Literal["fan", "grill"], Field(description="fan or grill.")] = "fan"
    trays: tuple[str, ...] = ()


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
    assert type(made.heat) is type(heat)  # a whole number stays one: hashes of stored settings depend on it


def test_what_is_made_by_a_program_is_held_to_the_same():
    validate_settings(Oven("a"))
    with pytest.raises(InputError, match="racks must be between 1 and 4, not 9"):
        validate_settings(Oven("a", racks=9))
    with pytest.raises(InputError, match="racks = 'two', but it must be a whole number"):
        validate_settings(Oven("a", racks="two"))


def test_a_commented_file_shows_every_entry_and_reads_as_the_defaults():
    text = commented_table(Oven, "[oven]", values={"name": "big"})
    assert set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE)) == set(Oven.__dataclass_fields__)
    assert max(map(len, text.splitlines())) <= 120
    assert parse_table(Oven, tomllib.loads(text)["oven"], "", "") == Oven("big")
    shown = re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE)
    assert parse_table(Oven, tomllib.loads(shown)["oven"], "", "") == Oven("big", share=0.5)
    assert not tomllib.loads(commented_table(Oven, "[oven]", disabled=True))
