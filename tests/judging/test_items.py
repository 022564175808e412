"""Items and the tables they come in, and the qualities they are judged by."""

import json
from dataclasses import replace

import pytest

from climassay.errors import InputError
from climassay.judging import ItemColumns, parse_levels, published_columns, quality, read_items
from climassay.judging.item_tables import clean_text

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
        ({"group": None}, "has the item 'S0' twice, with different texts"),
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


ARTICLE = "<p>Chelsea &amp; Tokyo</p>"
NEWSROOM = [
    {
        "ArticleID": 7, "System": system, "ArticleText": ARTICLE, "SystemSummary": f"A summary by {system}.",
        "ArticleTitle": "T", "CoherenceRating": rating, "FluencyRating": 3, "InformativenessRating": 2,
        "RelevanceRating": 5 - rating,
    }
    for system in ("lede3", "pointer") for rating in (1, 2, 5 if system == "lede3" else 1)
]  # fmt: skip
SUMMEVAL = [
    {
        "id": "dm-test-8764", "decoded": f"paul merson restarted his row . {model}", "model_id": model,
        "expert_annotations": [
            {"coherence": 2, "consistency": 5, "fluency": 5, "relevance": 2},
            {"coherence": 2, "consistency": 5, "fluency": 5, "relevance": 4},
            {"coherence": 3, "consistency": 5, "fluency": 5, "relevance": 2},
        ],
        "turker_annotations": [{"coherence": 5, "consistency": 4, "fluency": 4, "relevance": 4}] * 5,
        "references": ["Andros Townsend an 83rd minute sub."], "text": "Paul Merson ...", "filepath": "x.story",
    }
    for model in ("M8", "M11")
]  # fmt: skip


@pytest.mark.parametrize("name", ["newsroom-human-eval.csv", "newsroom.jsonl"])
def test_several_raters_of_newsroom_are_averaged(tmp_path, name) -> None:
    path = write(tmp_path, name, NEWSROOM)
    table = read_items(path, published_columns(path, "coherence"))
    assert [(item.id, item.group, item.label) for item in table.items] == [
        ("7/lede3", "7", pytest.approx(8 / 3)),
        ("7/pointer", "7", pytest.approx(4 / 3)),
    ]
    assert table.items[0].context == "Chelsea & Tokyo"
    assert table.raters == (3, 3)
    assert "means of 3 ratings" in table.notes[0]
    relevance = read_items(path, published_columns(path, "relevance")).items
    assert relevance[0].label == pytest.approx(5 - 8 / 3)


def test_the_experts_of_summeval_are_averaged_and_its_crowd_is_not(tmp_path) -> None:
    path = write(tmp_path, "model_annotations.aligned.paired.jsonl", SUMMEVAL)
    table = read_items(path, published_columns(path, "coherence"))
    assert [item.id for item in table.items] == ["dm-test-8764/M8", "dm-test-8764/M11"]
    assert table.items[0].label == pytest.approx(7 / 3)
    assert table.items[0].context == "Paul Merson ..."
    crowd = read_items(path, replace(published_columns(path, None), label="turker_annotations.coherence"))
    assert crowd.items[0].label == 5
    assert crowd.raters == (5, 5)


def test_summeval_without_its_articles_is_refused_unless_columns_are_named(tmp_path) -> None:
    rows = [{name: value for name, value in row.items() if name != "text"} for row in SUMMEVAL]
    path = write(tmp_path, "model_annotations.aligned.jsonl", rows)
    with pytest.raises(InputError, match="without its articles"):
        published_columns(path, "coherence")
    columns = ItemColumns("decoded", "model_id", None, "id", "expert_annotations.fluency")
    assert [item.label for item in read_items(path, columns).items] == [5, 5]


def test_a_rater_without_a_rating_is_not_in_the_mean(tmp_path) -> None:
    one, other = json.loads(json.dumps(SUMMEVAL))
    one["expert_annotations"][0]["coherence"] = None
    other["expert_annotations"] = []
    path = write(tmp_path, "ratings.jsonl", [one, other, SUMMEVAL[1] | {"model_id": "M12"}])
    table = read_items(path, published_columns(path, "coherence"))
    assert [item.label for item in table.items] == [2.5, pytest.approx(7 / 3)]
    assert table.skipped == ("row 2: the column 'expert_annotations.coherence' is empty",)
    assert "means of 2 to 3 ratings" in table.notes[-1]


def test_words_of_several_raters_have_no_mean(tmp_path) -> None:
    rows = [{"id": "a", "text": "Ice melts.", "verdict": verdict} for verdict in ("wrong", "right")]
    columns = ItemColumns("text", "id", label="verdict", levels=parse_levels("wrong,right"))
    with pytest.raises(InputError, match="words have no mean"):
        read_items(write(tmp_path, "labels.jsonl", rows), columns)
    same = read_items(write(tmp_path, "same.jsonl", [rows[0], rows[0]]), columns)
    assert [item.label for item in same.items] == [0]
    unlabelled = read_items(write(tmp_path, "none.jsonl", [rows[0], rows[0]]), ItemColumns("text", "id"))
    assert unlabelled.skipped == ("row 2: the item 'a' is in the table already",)


def test_an_article_s_row_lists_its_summaries_with_their_ratings(tmp_path) -> None:
    ratings = {"relevance": [3.0, 4.3333333333], "fluency": [5.0, None]}
    summaries = {"machine_summaries": ["ice melts .", "ice grows ."], "human_summaries": ["Ice."]}
    rows = [{**summaries, **ratings, "text": f"Story {article}.", "id": f"dm-{article}"} for article in range(2)]
    path = write(tmp_path, "test.jsonl", rows)
    items = read_items(path, published_columns(path, "relevance")).items
    assert [(item.id, item.group, item.label) for item in items[:2]] == [
        ("dm-0/0", "dm-0", 3.0),
        ("dm-0/1", "dm-0", pytest.approx(13 / 3)),
    ]
    assert items[3].context == "Story 1."
    fluent = read_items(path, published_columns(path, "fluency"))
    assert len(fluent.items) == 2
    assert fluent.skipped == ("row 1: the column 'fluency' is empty", "row 2: the column 'fluency' is empty")
    short = write(tmp_path, "short.jsonl", [rows[0] | {"relevance": [3.0]}])
    with pytest.raises(InputError, match="row 1, lists 2 texts and 1 ratings"):
        read_items(short, published_columns(short, "relevance"))
