"""Types of questions: what a folder declares, and a true-or-false type that is asked like any other."""

import json

import pytest

from climassay.errors import InputError
from climassay.questions import TYPES, read_questions
from climassay.questions.types import FOLDER

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
