"""``climassay confidence extract`` as a user meets it."""

import json

import pytest

from climassay.confidence.statement import read_statements
from command_line import done, refused

REPORT = """# Seas

Seas will rise (high confidence), but ice on land may stay (low confidence). Nobody has seen how fast it goes.

GHGs warm the sea (medium to high confidence; Doe et al., 2013).
"""


@pytest.fixture
def command(tmp_path, monkeypatch, climassay):
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "report.md").write_text(REPORT, encoding="utf-8")

    return lambda *arguments: climassay("confidence extract", *arguments)


def test_statements_go_to_a_file_that_is_read_back(command, tmp_path):
    code, out, err = command(tmp_path / "report.md", "-o", tmp_path / "s.jsonl", "--report", "AR5 WG2")
    assert code == 0
    assert "3 statements" in out
    assert "AR5 WG2" in out
    assert "s.jsonl" in err
    found = read_statements(tmp_path / "s.jsonl")
    assert [(one.tag, one.text) for one in found] == [
        ("high", "Seas will rise."),
        ("low", "Ice on land may stay."),
        ("high", "Greenhouse gases warm the sea."),
    ]
    assert {(one.cycle, one.working_group) for one in found} == {("AR5", "WG2")}


def test_nothing_found_is_said_in_a_sentence(command, tmp_path):
    german = "Der Meeresspiegel wird weiter steigen (hohes Vertrauen). Das ist eine Folge der Erwärmung."
    (tmp_path / "de.txt").write_text(german, encoding="utf-8")
    code, _, err = command(tmp_path / "de.txt", "-o", tmp_path / "s.jsonl")
    assert code == 0
    assert "No level of confidence was found. Levels are read in English, French and Spanish." in err


def test_files_of_earlier_versions_are_read(command, tmp_path):
    command(tmp_path / "report.md", "-o", tmp_path / "s.jsonl")
    one = json.loads((tmp_path / "s.jsonl").read_text(encoding="utf-8").splitlines()[0])
    new = ("sentence", "start", "end", "sure", "whole_paragraph", "label", "references")
    old = {name: value for name, value in one.items() if name not in new}
    lines = [{**old, "original": "Seas will rise (high confidence),"}, old]
    (tmp_path / "old.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with_words, with_text = read_statements(tmp_path / "old.jsonl")
    assert with_words.original == with_words.sentence == "Seas will rise (high confidence),"
    assert with_text.original == with_text.text == "Seas will rise."


def test_other_terms_are_rows_of_their_own(command, tmp_path):
    text = "Seas will very likely rise by 1 m (0.5 to 2 m, very likely range) (robust evidence, high agreement).\n"
    (tmp_path / "t.md").write_text(text, encoding="utf-8")
    out = done(command(tmp_path / "t.md", "--terms", tmp_path / "t.jsonl", "--json"))
    rows = json.loads(out)["terms"]
    assert [(one["kind"], one["term"], one["names_range"]) for one in rows] == [
        ("likelihood", "very likely", False),
        ("likelihood", "very likely", True),
        ("agreement", "high", False),
        ("evidence", "robust", False),
    ]
    assert [text[one["start"] : one["end"]] for one in rows[:2]] == ["very likely"] * 2
    written = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()]
    assert written == rows
    assert "very likely" in command(tmp_path / "t.md")[1]


def test_review_page(command, tmp_path):
    code, _, err = command(tmp_path / "report.md", "--html", tmp_path / "pages" / "review.html")
    assert (code, "review.html" in err) == (0, True)
    assert "Ice on land may stay." in (tmp_path / "pages" / "review.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Nothing to read"),
        (("missing.pdf",), "missing.pdf"),
        (("report.md", "--context", "99"), "context"),
        (("report.md", "--column", "nonsense"), "nonsense"),
        (("--collection", "nowhere"), "nowhere"),
    ],
    ids=["nothing", "missing", "context", "column", "collection"],
)
def test_what_cannot_be_done_is_said_in_a_sentence(command, tmp_path, monkeypatch, arguments, words):
    monkeypatch.setenv("CLIMASSAY_WORKSPACE", str(tmp_path / "w"))
    monkeypatch.chdir(tmp_path)
    assert words in refused(command(*arguments), alone=False)
