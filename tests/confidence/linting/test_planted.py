"""Planted problems are found and correct uses let be: sets written before rules were changed, and wordings after."""

import csv
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from climassay.confidence.linting import check, chosen_rules, draft_of
from climassay.confidence.linting.model_rule import ModelReader
from scripted_model import ScriptedModel

FILES = {
    "planted.tsv": 30,
    "planted_again.tsv": 20,
    "planted_third.tsv": 30,
    "planted_fourth.tsv": 30,
    "planted_fifth.tsv": 30,
}
"""With the number of items of each kind in each half."""
READ = ("planted_sixth.tsv", "planted_seventh.tsv")
"""With what a reader named who was shown the prompt of a language model."""
WORDINGS = "wordings.tsv"
HALVES = [*itertools.product(FILES, ("tuning", "unseen")), (WORDINGS, "tuning")]
LEAST_RECALL = 0.9
MOST_NOTES = 0.05


def items(verdict, name):
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t")
        return [row for row in rows if row["verdict"] == verdict]


def findings(text):
    return check(draft_of(text, "text")).findings


def overlaps(text):
    """Findings that touch the planted words."""
    start, end = text.index("[["), text.index("]]") - 2
    found = findings(text.replace("[[", "").replace("]]", ""))
    return [
        one for one in found if one.start_offset < end and start < one.end_offset and one.rule != "untagged-finding"
    ]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("verdict", ["problem", "correct"])
def test_a_set_is_whole(name, verdict):
    assert Counter(row["half"] for row in items(verdict, name)) == dict.fromkeys(("tuning", "unseen"), FILES[name])


@pytest.mark.parametrize(("name", "half"), HALVES)
def test_planted_problems_are_found_where_they_are(name, half):
    rows = [row for row in items("problem", name) if row["half"] == half]
    missed = [row["text"] for row in rows if not overlaps(row["text"])]
    assert 1 - len(missed) / len(rows) >= LEAST_RECALL, missed


@pytest.mark.parametrize("name", [*FILES, *READ, WORDINGS])
def test_no_correct_use_has_a_warning_or_an_error(name):
    wrong = {
        row["text"]: [one.rule for one in findings(row["text"]) if one.severity != "note"]
        for row in items("correct", name)
    }
    assert not {text: rules for text, rules in wrong.items() if rules}


@pytest.mark.parametrize("name", [*FILES, *READ, WORDINGS])
def test_few_correct_uses_have_a_note(name):
    rows = items("correct", name)
    noted = [row["text"] for row in rows if findings(row["text"])]
    assert len(noted) <= MOST_NOTES * len(rows), noted


def read(row):
    """Findings of the rules and of a model that names what the reader named."""
    problems = [{"words": words, "problem": "It is wrong.", "suggestion": ""} for words in row["reader"].split(" || ")]
    said = json.dumps({"reasoning": "", "problems": problems if row["reader"] else []})
    draft = draft_of(row["text"].replace("[[", "").replace("]]", ""), "text")
    return check(draft, (*chosen_rules(), ModelReader(ScriptedModel(write=lambda *_: said)).rule)).findings


@pytest.mark.parametrize("name", READ)
def test_what_a_strong_reader_names_is_told_where_it_is(name):
    problems, correct = items("problem", name), items("correct", name)
    assert len(problems) == len(correct) == 60
    missed = []
    for row in problems:
        start, end = row["text"].index("[["), row["text"].index("]]") - 2
        if not any(one.start_offset < end and start < one.end_offset for one in read(row)):
            missed.append(row["text"])
    assert 1 - len(missed) / len(problems) >= LEAST_RECALL, missed
    assert not [row["text"] for row in correct if read(row)]


SEEN_MISSED = [
    ("It is exceptionally likely that rain increases.", "likelihood-vocabulary", "exceptionally likely"),
    ("High confidence means a probability of about 80%.", "level-as-probability", "High confidence"),
    ("Rain may very likely increase.", "hedged-likelihood", "may very likely"),
    ("Yields fall (high confidence) (medium evidence).", "incomplete-pair", "medium evidence"),
    ("It is very likely (80%) that rain increases.", "likelihood-range", "very likely (80%)"),
    ("It is virtually certain, with low confidence, that rain increases.", "likelihood-low-confidence", "virtually"),
    ("There is high certainty that rain increases.", "confidence-vocabulary", "high certainty"),
    ("Rain increases with high certainty.", "confidence-vocabulary", "high certainty"),
    ("Rain increases (hgh confidence).", "misspelt-term", "hgh confidence"),
    ("The very likely range (17th to 83rd percentile) is wide.", "likelihood-range", "very likely range"),
    ("The likely range is 2.1°C to 3.5°C, the very likely range 2.3°C to 3.2°C.", "likelihood-range", "likely range"),
    ("Rain increases (XX confidence, to be filled in).", "malformed-tag", "XX confidence"),
    ("In our model we assume a rate of 3% (high confidence).", "term-without-finding", "(high confidence)"),
    ("Overshoot denotes a temporary excess (high confidence).", "term-without-finding", "(high confidence)"),
]


@pytest.mark.parametrize(("text", "rule", "words"), SEEN_MISSED, ids=[words for _, _, words in SEEN_MISSED])
def test_what_users_saw_missed_is_found_once(text, rule, words):
    (found,) = findings(text)
    assert found.rule == rule
    assert found.words.startswith(words)


CORRECT = [
    "'I am confident that the rains will come,' one farmer said.",
    "'Medium confidence' does not mean a chance of one in two.",
    "The likely range (17th to 83rd percentile) is wide, the very likely range (5th to 95th percentile) wider.",
]


@pytest.mark.parametrize("text", CORRECT)
def test_what_users_saw_complained_of_is_let_be(text):
    assert findings(text) == ()
