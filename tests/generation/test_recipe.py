import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation import CountSpec, Recipe, WriterSpec
from climassay.generation.opening import _writer_examples
from climassay.generation.recipe import COMMENTED, Stream, parse_recipe

LEAST = {"collections": ["books"], "writer": {"model": "local:smollm2"}, "counts": {"mcq": 3}}


def parsed(**changes) -> Recipe:
    return parse_recipe({**LEAST, **changes}, source="my.toml", folder=Path())


def test_the_written_recipe_is_one():
    recipe = parse_recipe(tomllib.loads(COMMENTED), source="recipe.toml", folder=Path())
    assert recipe.name == "silver"
    assert recipe.requested() == {
        Stream("mcq", "base"): 15,
        Stream("mcq", "reasoning"): 8,
        Stream("mcq", "hypothetical"): 7,
        Stream("freeform", "base"): 15,
        Stream("freeform", "reasoning"): 8,
        Stream("freeform", "hypothetical"): 7,
        Stream("cloze", "base"): 30,
    }


@given(st.integers(0, 500), st.tuples(*[st.floats(0, 10)] * 3).filter(lambda shares: sum(shares) > 1e-3))
def test_levels_share_out_exactly_what_is_wanted(number, shares):
    counts = CountSpec(mcq=number, base=shares[0], reasoning=shares[1], hypothetical=shares[2])
    wanted = Recipe("r", ("c",), WriterSpec("m"), counts).requested()
    assert sum(wanted.values()) == number
    total = sum(shares)
    for stream, part in wanted.items():
        assert abs(part - number * getattr(counts, stream.level) / total) < 1 + 1e-9


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"collections": []}, "at least one collection"), ({"collections": "books"}, "a list of texts"),
        ({"writer": {}}, "needs an entry 'model'"), ({"writer": 3}, r"\[writer\]"),
        ({"counts": {}}, "at least one question"), ({"counts": {"mcq": -1}}, "cannot be negative"),
        ({"counts": {"mcq": 1, "base": 0}}, "at least one level"), ({"counts": {"mcq": "many"}}, "whole number"),
        ({"screening": {"jaccard": 0}}, "jaccard"), ({"screening": {"cosine": 1.5}}, "cosine"),
        ({"stop": {"min_yield": 2}}, "min_yield"), ({"batch": 0}, "batch"),
        ({"contexts": {"mode": "best"}}, "one of"), ({"cooks": 3}, "no entry 'cooks'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)  # fmt: skip
def test_what_does_not_fit_is_named_with_the_file(changes, said):
    with pytest.raises(InputError, match=f"my.toml.*{said}"):
        parsed(**changes)


def test_counts_and_stops_may_change_but_not_what_decides_the_questions():
    first = parsed()
    assert parsed(counts={"mcq": 30}, stop={"cost": 1.0}, batch=4).identity() == first.identity()
    assert parsed(writer={"model": "local:smollm2", "concurrency": 3, "max_tokens": 9}).identity() == first.identity()
    assert parsed(writer={"model": "local:other"}).identity() != first.identity()
    assert parsed(seed=1).identity() != first.identity()


ROW = {"kind": "freeform", "question": "Why?", "answer": "Because.", "context": "So it is."}


def shown_examples(examples: str, shown: int = 2, folder: Path | None = None) -> Recipe:
    return Recipe(
        "r", ("c",), WriterSpec("m", examples=examples, n_examples=shown), CountSpec(mcq=1), folder=folder or Path()
    )


def test_a_file_beside_the_recipe_is_read_and_no_level_counts_as_base(tmp_path):
    levels = [None, "base", "reasoning", None, "reasoning", "reasoning"]
    rows = [ROW | {"id": f"q{place}", "level": level} for place, level in enumerate(levels)]
    rows.insert(0, {**ROW, "id": "bare", "context": None})
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = _writer_examples(shown_examples("own.jsonl", folder=tmp_path))
    assert [question.id for question in found["freeform"]] == ["q0", "q1", "q2", "q4"]
    assert found["mcq"] == found["cloze"] == []


def test_questions_without_their_passages_are_refused(tmp_path):
    (tmp_path / "own.jsonl").write_text(json.dumps({**ROW, "id": "q", "context": None}) + "\n")
    with pytest.raises(InputError, match=r"No question of own\.jsonl has the passage"):
        _writer_examples(shown_examples("own.jsonl", folder=tmp_path))
