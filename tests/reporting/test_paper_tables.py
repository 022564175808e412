"""Tables of papers: published figures from a file, our rows below them, and the files they are written to."""

import csv
import json
from dataclasses import replace

import pytest

from climassay.errors import InputError
from climassay.reporting.figures import Dot, DotPlot
from climassay.reporting.paper_tables import (
    PaperRow,
    PartEstimate,
    Reproduction,
    ReproductionEstimate,
    choose_tables,
    load_paper_tables,
    scale_estimate,
)
from climassay.statistics import Estimate, Interval, ResampledEstimate

PUBLISHED = """
paper = "Debates"
reference = "Nobody (2024)"

[[table]]
number = "1"
title = "accuracy"
source = "section 5"
columns = ["7 classes", "2 classes"]
decimals = [2, 1]
[[table.row]]
system = "mediator"
group = "without NEI"
n = 170
scores = [62.94, 97.06]
[[table.row]]
system = "mediator"
group = "with NEI"
scores = ["", 90]

[[table]]
number = "4.4"
title = "tags"
source = "section 6"
columns = ["Overall"]
"""


@pytest.fixture
def tables(tmp_path):
    file = tmp_path / "paper.toml"
    file.write_text(PUBLISHED)
    return load_paper_tables(file)


@pytest.fixture
def done(tables):
    """Table 1 with a row of ours in the first group."""
    share = Estimate(0.5, Interval(0.2, 0.8), 20)
    row = PaperRow(
        "ours", {"7 classes": scale_estimate(share), "2 classes": ResampledEstimate(-0.25, None, 1)}, "without NEI"
    )
    return replace(
        tables["1"], ours=(row,), differences=("Other claims.",), not_comparable={"7 classes": "another map."}
    )


def test_published_rows_and_ours_stand_in_their_groups(done):
    table = done.table()
    assert [row[0] for row in table.rows] == ["without NEI", "without NEI", "with NEI"]
    assert [row[2] for row in table.rows] == ["published", "ours", "published"]
    published, ours, partial = table.rows
    assert published[3:] == ("170", "62.94", "97.1")
    assert ours[3:] == ("1-20", "50.00 [20.00, 80.00]†", "−0.2")
    assert partial[3:] == ("", "", "90.0")
    assert table.strong == {1}
    for words in ("Nobody (2024), section 5", "Other claims.", "† 7 classes: another map."):
        assert words in table.note


def test_every_score_is_a_record_with_its_origin(done):
    records = list(done.records())
    assert len(records) == 5
    assert {record["origin"] for record in records} == {"published", "ours"}
    [ours] = [record for record in records if record["origin"] == "ours" and record["column"] == "7 classes"]
    assert (ours["value"], ours["n"], ours["low"], ours["high"]) == (50.0, 20, 20.0, 80.0)
    assert not ours["comparable"]
    assert records[0]["n"] == 170
    assert records[0]["low"] is None


def test_a_reproduction_is_written_in_every_form(done, tmp_path):
    figure = DotPlot("2 classes", (Dot("ours", "ours", 0.5, 0.2, 0.8),), "accuracy")
    result = Reproduction((done,), ("r1",), ("3 rows left out.",), (figure,))
    files = {file.name: file.read_text() for file in result.write(tmp_path / "new" / "folder")}
    assert sorted(files) == ["table-1.csv", "table-1.md", "table-1.tex", "tables.html", "tables.json"]
    assert "| without NEI | mediator | published |" in files["table-1.md"]
    assert r"\toprule" in files["table-1.tex"]
    assert [float(row["value"]) for row in csv.DictReader(files["table-1.csv"].splitlines())][:2] == [62.94, 97.06]
    assert "<svg" in files["tables.html"]
    data = json.loads(files["tables.json"])
    assert data["runs"] == ["r1"]
    assert len(data["scores"]) == 5
    assert list(result.notes()) == ["3 rows left out.", "1 run in the records: r1."]


def test_a_table_is_chosen_by_its_number(tables):
    assert list(choose_tables(tables, ())) == ["1", "4.4"]
    assert list(choose_tables(tables, ["4.4"])) == ["4.4"]
    with pytest.raises(InputError, match=r"Table 2.*1, 4\.4"):
        choose_tables(tables, ["2"])


def test_a_row_has_a_score_for_every_column(tmp_path):
    file = tmp_path / "paper.toml"
    file.write_text(PUBLISHED.replace("[62.94, 97.06]", "[62.94]"))
    with pytest.raises(InputError, match="mediator has 1 scores for 2 columns"):
        load_paper_tables(file)


def test_an_estimate_sums_its_parts_and_an_unknown_price_stays_unknown():
    parts = (PartEstimate("a", 2, 1000, 10, 0.25), PartEstimate("b", 3, 500, 20, 0.5))
    [table] = ReproductionEstimate(parts).tables()
    assert table.rows[-1] == ("total", "5", "1,500", "30", "0.75")
    [table] = ReproductionEstimate((*parts, replace(parts[0], cost=None))).tables()
    assert table.rows[-1][-1] == "unknown"
