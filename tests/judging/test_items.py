"""Items and the tables they come in, and the qualities they are judged by."""

import json

import pytest

from climassay.errors import InputError
from climassay.judging.preferences import ItemColumns, clean_text, parse_levels, quality, read_items

ROWS = [
    {"article": "<p>Ice &amp; snow</p><p>melt.</p>", "n": "S0", "group": "A1", "text": "Ice  melts.", "score": 2.5},
    {"article": "<p>Ice &amp; snow</p><p>melt.</p>", "n": "S1", "group": "A1", "text": "Snow.", "score": 4},
    {"article": "Warm seas rise fast.", "n": "S0", "group": "A2", "text": "Seas rise.", "score": 1},
]
COLUMNS = ItemColumns("text", "n", "article", "group", "score")


def as_csv(rows) -> str:
    lines = [",".join(rows[0])]
    lines += [",".join(f'"{value}"' for value in row.values()) for row in rows]
    return "\n".join(lines) + "\n"


def write(folder, name, rows):
    path = folder / name
    if name.endswith("parquet"):
        import pyarrow as pa
        import pyarrow.parquet

        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif name.endswith("csv"):
        path.write_text(as_csv(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["items.csv", "items.jsonl", "items.parquet"])
def test_the_same_items_from_every_format(tmp_path, name) -> None:
    rows = [row | {"score": float(row["score"])} for row in ROWS]
    items = read_items(write(tmp_path, name, rows), COLUMNS, context_words=3).items
    assert [item.id for item in items] == ["A1/S0", "A1/S1", "A2/S0"]
    assert [item.label for item in items] == [2.5, 4.0, 1.0]
    assert items[0].text == "Ice melts."
    assert items[0].context == "Ice & snow"
    assert items[2].context == "Warm seas rise"
    assert items[0].group == items[1].group == "A1"


def test_levels_order_words_and_leave_other_rows_out(tmp_path) -> None:
    rows = [{"claim": f"claim {place}", "verdict": word} for place, word in enumerate(["poor", "good", "odd", "bad"])]
    columns = ItemColumns("claim", label="verdict", levels=parse_levels("bad|poor, good"))
    table = read_items(write(tmp_path, "claims.jsonl", rows), columns)
    assert [(item.id, item.label) for item in table.items] == [("1", 0.0), ("2", 1.0), ("4", 0.0)]
    assert table.levels == ("bad", "good")
    assert table.skipped == ("row 3: the label 'odd' is not one of the levels",)


def test_levels_are_known_in_any_case_unless_case_tells_them_apart(tmp_path) -> None:
    rows = [{"claim": f"claim {place}", "verdict": word} for place, word in enumerate(["Right", "WRONG", "right", "x"])]
    columns = ItemColumns("claim", label="verdict", levels=parse_levels("wrong,right"))
    table = read_items(write(tmp_path, "claims.jsonl", rows), columns)
    assert [item.label for item in table.items] == [1.0, 0.0, 1.0]
    units = ItemColumns("claim", label="verdict", levels=parse_levels("mW,MW"))
    rows = [{"claim": f"claim {place}", "verdict": word} for place, word in enumerate(["MW", "mW", "Mw"])]
    table = read_items(write(tmp_path, "units.jsonl", rows), units)
    assert [item.label for item in table.items] == [1.0, 0.0]
    assert len(table.skipped) == 1


@pytest.mark.parametrize(
    ("cells", "labels", "skipped"),
    [
        (["4/5", "3 / 5", "2.5/5"], [4.0, 3.0, 2.5], 0),
        (["4,5", "3,25", "2"], [4.5, 3.25, 2.0], 0),
        (["80%", "75 %"], [80.0, 75.0], 0),
        (["\u22121", "\u22120,5", "+2"], [-1.0, -0.5, 2.0], 0),
        (["4/5", "7/10", "3"], [4.0], 2),
        (["1,000", "2"], [2.0], 1),
        (["good", "2", "1.2.3"], [2.0], 2),
    ],
)
def test_ratings_are_numbers_as_people_write_them(tmp_path, cells, labels, skipped) -> None:
    rows = [{"text": f"text {place}", "rating": cell} for place, cell in enumerate(cells)]
    table = read_items(write(tmp_path, "ratings.jsonl", rows), ItemColumns("text", label="rating"))
    assert [item.label for item in table.items] == labels
    assert len(table.skipped) == skipped


@pytest.mark.parametrize("text", ["one", "a,,b", "a,b|a"])
def test_levels_that_are_no_scale(text) -> None:
    with pytest.raises(InputError):
        parse_levels(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "summary"}, "no column 'summary': it has article, n, group, text, score"),
        ({"group": None}, "has the item 'S0' twice"),
        ({"label": "article"}, "holds no usable item: row 1: the label"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path, change, message) -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match=message):
        read_items(write(tmp_path, "items.jsonl", ROWS), replace(COLUMNS, **change))


def test_empty_texts_and_odd_labels_are_left_out_and_named(tmp_path) -> None:
    rows = [*ROWS, ROWS[0] | {"n": "S7", "text": " "}, ROWS[0] | {"n": "S8", "score": "nan"}]
    table = read_items(write(tmp_path, "items.jsonl", rows), COLUMNS)
    assert len(table.items) == 3
    assert table.skipped == (
        "row 4: the column 'text' is empty",
        "row 5: the label 'nan' is not a finite number",
    )


def test_an_item_without_its_group_is_left_out(tmp_path) -> None:
    rows = [*ROWS, ROWS[0] | {"n": "S8", "group": ""}, ROWS[0] | {"n": "S9", "group": None}]
    table = read_items(write(tmp_path, "items.jsonl", rows), COLUMNS)
    assert {item.group for item in table.items} == {"A1", "A2"}
    assert table.skipped == ("row 4: the column 'group' is empty", "row 5: the column 'group' is empty")


def test_only_markup_is_cleaned() -> None:
    assert clean_text("a <b>bold</b> claim: 3 < 4 and 5 > 2 &gt; 1") == "a bold claim: 3 < 4 and 5 > 2 > 1"


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("summary", "summaries"), ("essay", "essays"), ("abstract", "abstracts"), ("speech", "speeches")],
)
def test_nouns_have_their_plural(noun, plural):
    assert quality("text", "fluency", noun=noun).noun_plural == plural
