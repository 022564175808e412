"""From a TOML file to an experiment, and clear sentences where an entry does not fit."""

import re
import tomllib
from pathlib import Path

import pytest

from climassay.errors import InputError
from climassay.evaluation import ModelSpec, parse_plan
from climassay.evaluation.experiment_file import COMMENTED
from climassay.questions import KINDS

SMALL = """
benchmarks = ["primer"]
settings = ["default", "rag:books"]
[[model]]
name = "local:smollm2"
"""


def parse(text, folder=Path()):
    return parse_plan(tomllib.loads(text), where="x.toml", folder=folder)


def test_a_small_file_is_an_experiment_with_defaults():
    plan = parse(SMALL)
    assert plan.name == "x"
    assert [one.display_name for one in plan.models] == ["smollm2"]
    assert [one.label for one in plan.settings] == ["default", "rag:books"]
    assert plan.tasks == KINDS
    assert plan.metrics.entailment == ""


def test_the_commented_file_is_one_and_so_are_its_comments():
    assert parse(COMMENTED).models[0].name == "local:smollm2"
    assert not re.search(r"\S# ", COMMENTED)
    # Every commented-out entry must fit as well: take the marks away and read it again.
    lines = [line.removeprefix("# ") if line.startswith("# ") and ("=" in line or "[[" in line) else line
             for line in COMMENTED.splitlines()]  # fmt: skip
    known = [line for line in lines if not line.startswith("climassay")]
    plan = parse("\n".join(known))
    assert len(plan.settings) == 6
    by_label = {one.label: one for one in plan.settings}
    assert by_label["rag-source"].min_cosine == 0.3
    assert by_label["ft-silver"].training.questions == "silver.jsonl"
    assert by_label["cp-held-out"].training.collections == ("other-books",)
    assert plan.benchmarks[1].files == ("mcq.csv", "freeform.csv", "cloze.csv")
    assert plan.metrics.judge.name == "openai:NAME"


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        ('judge = "near"', ModelSpec("openai:one", "near", base_url="http://localhost:1/v1")),
        ('judge = "openai:one"', ModelSpec("openai:one", "near", base_url="http://localhost:1/v1")),
        ('judge = "openai:two"', ModelSpec("openai:two")),
        ('[metrics.judge]\nname = "openai:two"\ntimeout = 60', ModelSpec("openai:two", timeout=60)),
    ],
)
def test_a_judge_is_a_model_of_the_file_or_another_one(judge, expected):
    model = '[[model]]\nname = "openai:one"\nlabel = "near"\nbase_url = "http://localhost:1/v1"\n'
    assert parse(f"{SMALL}{model}[metrics]\n{judge}\n").metrics.judge == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (SMALL.replace('["primer"]', "[]"), "at least one question file"),
        (SMALL.replace("[[model]]\nname", "unknown"), "no entry 'unknown'"),
        ('benchmarks = ["primer"]', "at least one model"),
        (SMALL + "label = 3\n", "label = 3, but it must be a text"),
        (SMALL + "concurrency = 0\n", "concurrency must be at least 1"),
        (SMALL + "price_in = -1\n", "price_in cannot be negative"),
        (SMALL + '[[model]]\nname = "local:smollm2"\n', "two entries are called model 'smollm2'"),
        (SMALL.replace('"default", ', '"default", "default", '), "two entries are called setting 'default'"),
        (SMALL.replace("settings", 'tasks = ["quiz"]\nsettings'), "must be a list"),
        (SMALL.replace('"rag:books"', '"rag:"'), "needs the name of a collection"),
        (SMALL + '[[setting]]\nlabel = "x"\n', "needs an entry use"),
        (SMALL + '[[setting]]\nuse = "fine-tuned"\ntraining = 3\n', "training is a table"),
        (SMALL + '[[setting]]\nuse = "default"\nlabel = "d"\nwindows = 3\n', "no entry 'windows'"),
        ("limit = 0\n" + SMALL, "limit must be at least 1"),
        ("benchmarks = 3\n" + SMALL.replace('benchmarks = ["primer"]', ""), "list of texts"),
        (SMALL + "[metrics]\nwindow = 1.5\n", "whole number"),
        ('tasks = ["freeform"]\n' + SMALL + '[metrics]\nnames = ["factual_accuracy"]\n', "needs a scorer"),
        ('tasks = ["freeform"]\n' + SMALL + '[metrics]\nnames = ["fact_f1"]\n', "needs a scorer"),
        ("metrics = 3\n" + SMALL, "begins with"),
        (SMALL + "[metrics]\njudge = 3\n", "the judge is a model"),
        (SMALL + "[metrics]\njudge = { name = 3 }\n", r"\[metrics.judge\] has name"),
        ("model = 3\n" + SMALL.split("[[")[0], "tables that begin"),
    ],
)
def test_entries_that_do_not_fit_are_told(text, word):
    with pytest.raises(InputError, match=word):
        parse(text)
