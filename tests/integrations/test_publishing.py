import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation.publishing import to_json_lines
from climassay.integrations import open_benchmark, publish_benchmark
from climassay.integrations.benchmark import read_prompt_rows
from climassay.integrations.publishing import letter_pattern
from climassay.questions import TYPES, question_row, read_questions
from published_sample import sample, write_sample


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_both_data_formats_give_the_questions_back(tmp_path):
    folder = publish_benchmark(write_sample(tmp_path), tmp_path / "out").folder
    assert read_questions(folder / "data/questions.jsonl").questions == tuple(sample())
    for kind in ("mcq", "freeform", "cloze"):
        table = read_questions(folder / f"data/climaqa_{kind}.jsonl").questions
        own = [question for question in sample() if question.kind == kind]
        assert [(one.kind, one.question, one.answer, one.options, one.correct, one.context) for one in table] == [
            (one.kind, one.question, one.answer, one.options, one.correct, one.context) for one in own
        ]
        assert [one.level for one in table] == [None if kind == "cloze" else one.level for one in own]


def test_prompt_rows_give_the_prompts_back(tmp_path):
    benchmark = open_benchmark(write_sample(tmp_path))
    folder = publish_benchmark(tmp_path / "sample.jsonl", tmp_path / "out").folder
    for kind in benchmark.kinds:
        for level in benchmark.levels(kind):
            rows = read_prompt_rows(folder / f"prompts/{kind}_{level}.jsonl")
            posed = [row for row in benchmark.render(kind) if row.question.level == level]
            assert [(row.question.id, row.messages, row.prefix, row.target, row.choices) for row in rows] == [
                (row.question.id, row.messages, row.prefix, row.target, row.choices) for row in posed
            ]


def test_publishing_again_changes_nothing(tmp_path):
    file = write_sample(tmp_path)
    first = publish_benchmark(file, tmp_path / "out")
    before = contents(first.folder)
    second = publish_benchmark(file, tmp_path / "out")
    assert set(first.written) == set(second.unchanged) == set(before)
    assert not second.written
    assert not second.removed
    assert contents(second.folder) == before


def test_another_benchmark_is_replaced_only_by_force(tmp_path):
    file = write_sample(tmp_path)
    folder = publish_benchmark(file, tmp_path / "out").folder
    (folder / "notes.txt").write_text("mine")
    before = contents(folder)
    for other in ({"name": "other"}, {"kinds": ("mcq",)}, {"examples": 1}):
        with pytest.raises(InputError, match="another benchmark"):
            publish_benchmark(file, folder, **other)
    assert contents(folder) == before
    replaced = publish_benchmark(file, folder, kinds=("cloze",), force=True)
    assert "prompts/mcq_base.jsonl" in replaced.removed
    assert {name for name in contents(folder) if name != "notes.txt"} == set(replaced.written + replaced.unchanged)
    assert (folder / "notes.txt").read_text() == "mine"
    assert not [name for name in contents(folder) if "mcq" in name]


@pytest.mark.parametrize("manifest", [None, "[]", "not JSON", '{"name": "x"}'], ids=["none", "list", "text", "other"])
def test_a_folder_with_other_things_is_left_alone(tmp_path, manifest):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    if manifest is not None:
        (folder / "benchmark.json").write_text(manifest)
    with pytest.raises(InputError, match="other files"):
        publish_benchmark(write_sample(tmp_path), folder)
    assert "README.md" not in contents(folder)


def test_a_manifest_cannot_remove_what_lies_outside(tmp_path):
    file = write_sample(tmp_path)
    folder = publish_benchmark(file, tmp_path / "out").folder
    outside = tmp_path / "precious.txt"
    outside.write_text("mine")
    told = json.loads((folder / "benchmark.json").read_text())
    told["files"] += ["../precious.txt", str(outside)]
    (folder / "benchmark.json").write_text(json.dumps(told))
    publish_benchmark(file, folder, name="other", force=True)
    assert outside.read_text() == "mine"


def test_the_fingerprint_follows_questions_and_prompts(tmp_path):
    file = write_sample(tmp_path)
    own = tmp_path / "prompts"
    own.mkdir()
    same = open_benchmark(file).content_sha256
    assert open_benchmark(file, name="renamed").content_sha256 == same
    (own / "cloze.prompt").write_text("[user]\nFill {{ gap }}: {{ question }}\n")
    seen = {
        same,
        open_benchmark(file, prompts=own).content_sha256,
        open_benchmark(file, examples=1).content_sha256,
        open_benchmark(file, kinds=("mcq", "cloze")).content_sha256,
    }
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"name": "Mit Leerzeichen"}, "lower-case"),
        ({"kinds": ("mcq",)}, "no question of the kind mcq"),
        ({"examples": -1}, "0 or more"),
        ({"examples": 500}, "500 examples are needed"),
    ],
    ids=["name", "kind", "negative", "pool"],
)
def test_what_cannot_be_published_is_said(tmp_path, options, word):
    file = tmp_path / "one.jsonl"
    cloze = [question for question in sample() if question.kind == "cloze"]
    file.write_text(to_json_lines(map(question_row, cloze)), encoding="utf-8")
    with pytest.raises(InputError, match=word):
        publish_benchmark(file, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_templates_that_the_harness_cannot_take_are_refused(tmp_path):
    own = tmp_path / "prompts"
    own.mkdir()
    (own / "cloze.prompt").write_text("[user]\nReady?\n[assistant]\nYes.\n[user]\n{{ question }}\n")
    with pytest.raises(InputError, match="one system and one user message"):
        publish_benchmark(write_sample(tmp_path), tmp_path / "out", prompts=own)


PIECES = ["answer", "Option", " is", "The", "(d)", *"abCe:*`' \n).[("]


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
@example("The answer is (d)")
@example("b) answer")
def test_the_pattern_for_the_hub_finds_no_letter_that_we_do_not_find(text):
    found = re.search(letter_pattern(4), text, re.IGNORECASE)
    letters = [group for group in found.groups() if group] if found else []
    if letters:
        assert TYPES["mcq"].parse_choice(text, 4) == "abcd".index(letters[0].lower())


@pytest.mark.parametrize(
    ("text", "letter"),
    [("c", "c"), ("(C)", "C"), ("**c**", "c"), ("c) Ice melts", "c"), ("The answer is (c).", "c"), ("Answer: c", "c"),
     ("a warmer ocean", None), ("b or c", None), ("b) or c)", None), ("The answer is not c", None)],
)  # fmt: skip
def test_the_pattern_for_the_hub_reads_plain_answers(text, letter):
    found = re.search(letter_pattern(4), text, re.IGNORECASE)
    assert next((group for group in found.groups() if group), None) == letter if found else letter is None
