"""Two sets of planted problems and correct uses, written by people who had not seen the rules or the prompt."""

import csv
import json
from pathlib import Path

import pytest

from climassay.confidence.linting import check, draft_of, select_rules
from climassay.confidence.linting.checking import RECALL_NOTE
from climassay.confidence.linting.model_rule import ModelReader
from climassay.statistics import wilson_interval
from scripted_model import ScriptedModel

SETS = ("planted_sixth.tsv", "planted_seventh.tsv")
"""Their column ``reader`` holds the words that a reader named who was given the prompt of a language model."""
LEAST_RECALL = 0.9


def items(verdict, name):
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
        return [row for row in rows if row["verdict"] == verdict]


def text_of(row):
    return row["text"].replace("[[", "").replace("]]", "")


def is_at_problem(row, findings):
    start, end = row["text"].index("[["), row["text"].index("]]") - 2
    return any(one.start < end and start < one.end for one in findings)


def read(row):
    """Findings of the rules and of a model that names what the reader named."""
    problems = [{"words": words, "problem": "It is wrong.", "suggestion": ""} for words in row["reader"].split(" || ")]
    reply = json.dumps({"reasoning": "", "problems": problems if row["reader"] else []})
    draft = draft_of(text_of(row), "text")
    return check(draft, (*select_rules(), ModelReader(ScriptedModel(write=lambda *_: reply)).rule)).findings


@pytest.mark.parametrize("name", SETS)
def test_no_correct_use_has_a_finding(name):
    rows = items("correct", name)
    assert len(rows) == 60
    assert not {row["text"]: found for row in rows if (found := read(row))}


@pytest.mark.parametrize("name", SETS)
def test_what_a_strong_reader_names_is_told_at_its_words(name):
    rows = items("problem", name)
    missed = [row["text"] for row in rows if not is_at_problem(row, read(row))]
    assert len(rows) == 60
    assert 1 - len(missed) / len(rows) >= LEAST_RECALL, missed


def test_the_recall_that_every_result_states_is_that_of_the_rules():
    rows = [row for name in SETS for row in items("problem", name)]
    found = sum(is_at_problem(row, check(draft_of(text_of(row), "text")).findings) for row in rows)
    low, high = wilson_interval(found, len(rows))
    interval = f"{100 * low:.0f} to {100 * high:.0f}"
    stated = f"{found} of {len(rows)} planted problems ({100 * found / len(rows):.0f}%, 95% interval {interval})"
    assert stated in RECALL_NOTE
