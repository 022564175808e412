"""Words marked in a text: by stem, as whole words, with nothing of the text lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.reporting.highlighting import marked


def shown(text: str, *words: str) -> str:
    """The text with brackets around what is marked."""
    return "".join(f"[{piece}]" if is_marked else piece for piece, is_marked in marked(text, words))


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Glaciers melt; the GLACIER melted.", ("glacier",), "[Glaciers] melt; the [GLACIER] melted."),
        ("The warmed ocean keeps warming.", ("warm",), "The [warmed] ocean keeps [warming]."),
        ("Cloud feedback is positive.", ("feedbacks of clouds",), "[Cloud feedback] is positive."),
        ("Ice-albedo feedback", ("albedo", "ice"), "[Ice-albedo] feedback"),
        ("La Niña and El Nino", ("nino", "niña"), "La [Niña] and El [Nino]"),
        ("It is 1.5 °C, not 15 or 1.2.", ("1.5 °C",), "It is [1.5] °[C], not 15 or 1.2."),
        ("The sea and the ice of the sea.", ("the of and",), "The sea and the ice of the sea."),
        ("CO2 rises.", ("co2",), "[CO2] rises."),
        ("catastrophe", ("cat",), "catastrophe"),
        ("<b>ocean</b>", ("ocean",), "<b>[ocean]</b>"),
    ],
    ids=["plural", "forms", "phrase", "hyphen", "accents", "numbers", "stop-words", "formula", "whole-word", "markup"],
)
def test_words_are_found_in_all_their_forms(text: str, words: tuple[str, ...], expected: str) -> None:
    assert shown(text, *words) == expected


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=4))
def test_the_pieces_are_the_text_in_turns(text: str, words: list[str]) -> None:
    pieces = marked(text, words)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece for piece, _ in pieces)
    assert all(left[1] != right[1] for left, right in pairwise(pieces))
