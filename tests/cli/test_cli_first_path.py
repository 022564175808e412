"""The first whole path through the command line, on the bundled models and books."""

import csv
import json

import pytest

from command_line import done, json_of


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture
def climassay(workspace, climassay):
    return lambda *arguments: climassay(*arguments, "--workspace", str(workspace))


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    file = tmp_path_factory.mktemp("books") / "heat.md"
    file.write_text(
        "---\ntitle: A Book of Heat\n---\n# A Book of Heat\n\n## Ocean heat\n\n"
        "The ocean has taken up about ninety per cent of the excess heat since 1970. Because water expands as it "
        "warms, this uptake raises the sea level, and it will go on doing so for centuries.\n\n## Stratosphere\n\n"
        "When carbon dioxide increases, the stratosphere cools, because it radiates more infrared energy to space than "
        "before while its heating by ozone stays the same.\n",
        encoding="utf-8",
    )
    return file


@pytest.mark.model
def test_from_a_book_to_an_answer_and_a_score(climassay, book, tmp_path):
    done(climassay("corpus", "add", "heat", str(book), "--json"))

    answer = json_of(climassay("ask", "Why does the stratosphere cool?", "--collection", "heat", "--json"))
    assert answer["enough_information"]
    numbers = {source["number"] for source in answer["sources"]}
    assert numbers
    assert all(set(sentence["citations"]) <= numbers for sentence in answer["sentences"])
    assert all(sentence["citations"] or sentence["in_house"] for sentence in answer["sentences"])
    assert "A Book of Heat" in answer["sources"][0]["citation"]

    files = {name: tmp_path / f"out.{name}" for name in ("csv", "md", "html", "jsonl")}
    arguments = ["evaluate", "mcq", "primer", "--limit", "4", "-s", "default", "-s", "rag:heat", "-k", "1"]
    result = json_of(climassay(
        *arguments, "--permutations", "2", "--scoring", "likelihood", "--scoring", "letter",
        "-o", str(files["csv"]), "-o", str(files["md"]), "-o", str(files["html"]),
        "--predictions", str(files["jsonl"]), "--json",
    ))  # fmt: skip
    assert result["n"] == 4
    assert result["n_predictions"] == 4 * 2 * 2 * 2
    assert result["tally"]["failed"] == 0
    assert {row["setting"] for row in result["scores"]["accuracy"]} == {"default", "rag:heat"}
    assert len(result["scores"]["paired"]) == 2
    rows = list(csv.DictReader(files["csv"].open(encoding="utf-8")))
    assert len(rows) == len(result["scores"]["accuracy"])
    predictions = [json.loads(line) for line in files["jsonl"].read_text(encoding="utf-8").splitlines()]
    assert all(row["passages"] for row in predictions if row["setting"] == "rag:heat")
    assert "Accuracy by level" in files["md"].read_text(encoding="utf-8")
    assert files["html"].read_text(encoding="utf-8").startswith("<!doctype html>")

    again = done(
        climassay(*arguments, "--permutations", "2", "--scoring", "likelihood", "--scoring", "letter", "--json")
    )
    repeated = json.loads(again)
    assert repeated["tally"]["sent"] == 0
    assert repeated["scores"] == result["scores"]

    out = done(climassay("records", "runs", "--json"))
    assert "evaluate mcq" in out


def test_off_topic_question_is_not_answered(climassay, book):
    climassay("corpus", "add", "heat", str(book), "--json")
    out = done(climassay("ask", "How do I bake sourdough bread?", "--collection", "heat"))
    assert out.startswith("Not enough information.")
