"""The parts of a line: which examples the writer and the evolver get."""

import json
from pathlib import Path

import pytest

from climassay.errors import InputError
from climassay.generation.pipeline import _examples
from climassay.generation.recipe import CountSpec, Recipe, WriterSpec

ROW = {"kind": "freeform", "question": "Why?", "answer": "Because.", "context": "So it is."}


def recipe(examples: str, shown: int = 2, folder: Path | None = None) -> Recipe:
    return Recipe(
        "r", ("c",), WriterSpec("m", examples=examples, shown=shown), CountSpec(mcq=1), folder=folder or Path()
    )


def test_a_file_beside_the_recipe_is_read_and_no_level_counts_as_base(tmp_path):
    levels = [None, "base", "reasoning", None, "reasoning", "reasoning"]
    rows = [ROW | {"id": f"q{place}", "level": level} for place, level in enumerate(levels)]
    rows.insert(0, {**ROW, "id": "bare", "context": None})
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = _examples(recipe("own.jsonl", folder=tmp_path))
    assert [question.id for question in found["freeform"]] == ["q0", "q1", "q2", "q4"]
    assert found["mcq"] == found["cloze"] == []


def test_questions_without_their_passages_are_refused(tmp_path):
    (tmp_path / "own.jsonl").write_text(json.dumps({**ROW, "id": "q", "context": None}) + "\n")
    with pytest.raises(InputError, match=r"No question of own\.jsonl has the passage"):
        _examples(recipe("own.jsonl", folder=tmp_path))
