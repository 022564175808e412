"""Contrast of text and ground in pages and reports, after WCAG 2.2 (success criterion 1.4.3: at least 4.5)."""

import re
from importlib.resources import files

import pytest

STYLE, COLOURS, PAGE = (
    files("climassay.reporting").joinpath(f"templates/{name}.css.j2").read_text(encoding="utf-8")
    for name in ("style", "colours", "factcheck")
)


def colours(css, dark):
    """Colours by name; in the dark those that are not set anew stay."""
    screen = css.split("@media print")[0]
    found = {}
    for place in re.finditer(r"(@media \(prefers-color-scheme: dark\) \{ )?:root \{(.*?)\}", screen, re.DOTALL):
        if dark or not place[1]:
            found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", place[2]))
    return found


THEMES = {
    name: colours(COLOURS + STYLE, dark) | colours(PAGE, dark) for name, dark in (("light", False), ("dark", True))
}


def channels(colour):
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def luminance(rgb):
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def test_black_on_white_has_the_highest_contrast():
    assert contrast(channels("#000000"), channels("#ffffff")) == pytest.approx(21)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *[(text, ground) for text in ("ink", "soft", "g0", "warn") for ground in ("paper", "card")],
        ("ink", "mark"),
        *[("on-tone", tone) for tone in ("wrong", "middle", "right", "outside")],
    ],
    ids=lambda name: name,
)
def test_text_can_be_read_on_its_ground(theme, text, ground):
    known = THEMES[theme]
    assert contrast(channels(known[text]), channels(known[ground])) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_numbers_can_be_read_in_the_darkest_cell_of_a_heat_map(theme):
    known = THEMES[theme]
    tone, card = channels(known["g0"]), channels(known["card"])
    cell = [0.45 * over + 0.55 * under for over, under in zip(tone, card, strict=True)]
    assert contrast(channels(known["ink"]), cell) >= 4.5
