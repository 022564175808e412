"""Types of questions: what a folder declares, and a true-or-false type that is asked like any other."""

import json

import pytest

from climassay.errors import InputError
from climassay.evaluation import EvaluationResources, Sources, TaskPrompts, parse_plan, run_experiment, score_experiment
from climassay.evaluation.tables import experiment_tables
from climassay.prompts import prompt_names
from climassay.questions import KINDS, TYPES, read_questions
from climassay.questions.types import FOLDER
from climassay.records import Records
from scripted_model import ScriptedModel

STATEMENTS = [
    {"id": "a", "kind": "true_false", "question": "Warm air holds more vapour than cold air.", "answer": "SUPPORTS"},
    {"id": "b", "kind": "true_false", "question": "Sea ice that melts raises the sea level most.", "answer": "REFUTES"},
    {"id": "c", "kind": "true_false", "question": "Methane lives longer in the air than CO2.", "answer": "false"},
    {"id": "d", "kind": "true_false", "question": "Volcanic sulfate cools the surface.", "answer": "True"},
]  # fmt: skip


@pytest.fixture
def statements(tmp_path):
    file = tmp_path / "statements.jsonl"
    file.write_text("\n".join(map(json.dumps, STATEMENTS)), encoding="utf-8")
    return read_questions(file)


def test_every_type_brings_the_prompts_that_ask_and_write_its_questions():
    assert KINDS[:3] == ("mcq", "freeform", "cloze")
    for kind in KINDS:
        assert {kind, f"generate_{kind}", f"generate_{kind}_brief"} <= set(prompt_names())
        assert TYPES[kind].name == kind
        assert TYPES[kind].title


def test_no_file_outside_of_its_folder_knows_the_type():
    source = FOLDER.parents[1]
    files = [*source.rglob("*.py"), *source.rglob("*.j2")]
    knowing = {
        file.relative_to(source).as_posix() for file in files if "true_false" in file.read_text(encoding="utf-8")
    }
    # The commented recipe tells people that there is such a type.
    assert {name for name in knowing if "types/true_false/" not in name} == {"generation/recipe.py"}


def test_statements_are_read_with_the_words_that_files_have_for_true_and_false(statements):
    assert [one.correct for one in statements.questions] == [0, 1, 1, 0]
    assert {one.options for one in statements.questions} == {("True", "False")}
    assert statements.questions[1].answer == "False"
    with pytest.raises(InputError, match="neither true nor false"):
        TYPES["true_false"].read("It rains.", "NOT ENOUGH INFO", ())


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        (" True.", 0), ("**False**", 1), ("The statement is false.", 1), ("True, although some call it false", 0),
        ("It is either true or false.", None), ("not true", None), ("It depends.", None), ("", None),
    ],
)  # fmt: skip
def test_what_a_model_writes_is_read_as_one_of_the_two_or_as_neither(text, choice):
    assert TYPES["true_false"].choice(text, 2) == choice


@pytest.mark.parametrize("scoring", ["likelihood", "letter", "text"])
def test_statements_are_evaluated_beside_the_constant_answer(statements, scoring, tmp_path):
    knows = {one.question: one.answer for one in statements.questions if one.id != "c"}

    def said(prompt):
        return next((answer for text, answer in knows.items() if text in prompt), "True")

    def weighed(prompt, options):
        assert options == (" True", " False")
        return f" {said(prompt)}"

    model = ScriptedModel(choose=weighed, write=lambda prompt, schema: f" {said(prompt)}.")
    entries = {"benchmarks": ["s"], "tasks": ["true_false"], "scoring": scoring, "permutations": 4}
    plan = parse_plan({**entries, "model": [{"name": "local:scripted"}]}, where="x.toml", folder=tmp_path)
    resources = EvaluationResources.of_model(model, Sources(lambda _: None, lambda _: None))
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as store:
        done = run_experiment(plan, {"s": statements}, resources, store, prompts=TaskPrompts.load())
    scores = score_experiment(done)
    (overall,) = [one.estimate for one in scores.scores if one.level == "overall"]
    assert (overall.value, overall.n) == (0.75, 4)  # once each: the two options have no order
    assert [(one.answer, one.value) for one in scores.constants] in ([("True", 0.5)], [("False", 0.5)])
    shown = {one.name: one.table for one in experiment_tables(scores)}
    assert shown["true_false"].rows[0][2].startswith("75.0")
    assert "mcq-cloze" not in shown
    asked = model.texts or [prompt for prompt, _ in model.options]
    assert all(prompt.endswith("True or false:") for prompt in asked)
