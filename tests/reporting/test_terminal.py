"""Tables on screens of every width: nothing that a cell says is lost."""

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from climassay.reporting import Table, as_rich

WORD = st.text("abcdefgh0123456789.%", min_size=1, max_size=24)
CELL = st.lists(WORD, min_size=1, max_size=6).map(" ".join)


def printed(table, width):
    out = io.StringIO()
    Console(file=out, width=width).print(as_rich(table))
    return out.getvalue()


@st.composite
def tables(draw):
    columns = draw(st.integers(1, 7))
    headings = draw(st.lists(CELL, min_size=columns, max_size=columns))
    rows = draw(st.lists(st.lists(CELL, min_size=columns, max_size=columns), min_size=1, max_size=4))
    left = draw(st.integers(0, columns))
    return Table.of("Title", headings, rows, left=left, grouped=draw(st.integers(0, max(0, columns - 1))))


@given(tables(), st.integers(30, 200))
def test_every_word_of_every_cell_is_there_and_no_line_is_too_long(table, width):
    out = printed(table, width)
    assert all(len(line) <= width for line in out.splitlines())
    words = set(out.replace(":", " ").replace(",", " ").split())
    assert {word for row in table.rows for cell in row for word in cell.split()} <= words
    assert {word for column in table.columns[table.grouped :] for word in column.label.split()} <= words


NUMBERS = Table.of(
    "Counts", ["who", "settled since the last training", "share"], [("ann", "14", "0.64 (0.39 to 0.84)")]
)


def test_a_table_that_fits_stands_as_a_grid():
    lines = printed(NUMBERS, 100).splitlines()
    assert any(line.split() == ["who", "settled", "since", "the", "last", "training", "share"] for line in lines)
    assert any(line.split() == ["ann", "14", "0.64", "(0.39", "to", "0.84)"] for line in lines)


def test_a_narrow_screen_shows_row_by_row():
    lines = printed(NUMBERS, 30).splitlines()
    assert lines[:2] == ["Counts", ""]
    assert "who: ann" in lines
    assert "share: 0.64 (0.39 to 0.84)" in lines


def test_groups_stand_above_their_rows():
    table = Table.of(
        "T", ["set", "model", "n"], [("gold", "a", "1"), ("gold", "b", "2"), ("silver", "a", "3")], grouped=1
    )
    for width in (80, 12):
        words = printed(table, width).replace(":", " ").split()
        assert words.count("gold") == 1
        assert words.index("gold") < words.index("1") < words.index("2") < words.index("silver") < words.index("3")
