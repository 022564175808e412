import json

import pytest

from climassay.errors import InputError
from climassay.metrics.entailment_head import UNLABELLED, LabelledPair, read_pairs


def test_climate_fevers_form(tmp_path):
    file = tmp_path / "fever.jsonl"
    rows = [
        {"claim": "Ice  melts.", "evidences": [
            {"evidence": "It shrinks.", "article": "Ice", "evidence_label": "SUPPORTS"},
            {"evidence": "It grows.", "article": "", "evidence_label": "REFUTES"},
            {"evidence": "It is cold.", "article": "Ice", "evidence_label": None},
        ]},
        {"claim": "Seas rise.", "evidences": [{"evidence": "Fish swim.", "evidence_label": "NOT_ENOUGH_INFO"}]},
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    table = read_pairs(file)
    assert table.pairs == (
        LabelledPair("Ice: It shrinks.", "Ice melts.", 0),
        LabelledPair("It grows.", "Ice melts.", 1),
        LabelledPair("Fish swim.", "Seas rise.", 2),
    )
    assert table.skipped == 1


def test_pairs_as_rows(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("premise,statement,label\nA b.,C d.,Entailment\nA b.,E f.,neutral\n", encoding="utf-8")
    assert [pair.relation for pair in read_pairs(file).pairs] == [0, 2]


def test_pairs_that_nobody_has_judged(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("premise,statement\nA b.,C d.\n,E f.\n", encoding="utf-8")
    table = read_pairs(file, labelled=False)
    assert table.pairs == (LabelledPair("A b.", "C d.", UNLABELLED),)
    assert table.skipped == 1
    with pytest.raises(InputError, match="and label"):
        read_pairs(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("premise,statement,label\na,b,maybe\n", "'maybe' is no relation"),
        ("a,b\n1,2\n", "no labelled pairs"),
        ("premise,statement,label\n,,\na,,SUPPORTS\n", "No row"),
        ("claim,evidences\na,nothing\n", "no list"),
        ("claim,evidences\na,[1]\n", "no list"),
    ],
    ids=["label", "columns", "empty", "text", "numbers"],
)
def test_what_is_wrong_is_said(tmp_path, text, message):
    file = tmp_path / "pairs.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_pairs(file)
