"""Verdict scales: the built-in ones, their coarser forms, reading labels from files, and scales of a user's own."""

import json
import tomllib
from pathlib import Path

import pytest

from climassay.errors import InputError
from climassay.factcheck import SCALES, load_scale
from climassay.factcheck.scales import (
    ACCURACY,
    BINARY,
    CLIMATE_FEEDBACK,
    CLIMATE_FEVER,
    NOT_ENOUGH,
    SCIENCE_FEEDBACK,
    parse_scale,
)

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "climate_feedback_consolidation.json"

OWN = """
name = "traffic light"
labels = ["red", "dark amber", "light amber", "green"]
correct = ["green"]
not_enough_information = "off"
lack_of_information = ["dark amber"]

[definitions]
red = "is wrong"

[classes.3]
red = ["red"]
amber = ["dark amber", "light amber"]
green = ["green"]

[classes.2]
stop = ["red", "dark amber"]
go = ["light amber", "green"]
"""


def own_scale(text=OWN):
    return parse_scale(tomllib.loads(text), "own", where="own.toml")


@pytest.mark.skipif(not REFERENCE.exists(), reason="the shared reference folder is absent")
@pytest.mark.parametrize("count", [7, 5, 2])
def test_climate_feedback_collapses_as_published(count):
    groups = json.loads(REFERENCE.read_text(encoding="utf-8"))[str(count)]
    assert set(CLIMATE_FEEDBACK.classes(count)) == set(groups)
    for name, labels in groups.items():
        assert {CLIMATE_FEEDBACK.collapse(label, count) for label in labels} == {name}
    assert sorted(label for labels in groups.values() for label in labels) == sorted(CLIMATE_FEEDBACK.labels)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_a_built_in_scale_is_whole(scale):
    assert set(scale.definitions) == set(scale.labels)
    assert scale.correct < set(scale.labels)
    assert scale.lack_labels <= set(scale.labels)
    assert scale.nei not in scale.labels
    for count in scale.class_counts:
        assert len(scale.classes(count)) == count
        assert scale.collapse(scale.nei, count) == scale.nei
        # A file that holds the coarser classes already reads as itself, and so does one that holds labels.
        assert [scale.match(name, count) for name in scale.classes(count)] == list(scale.classes(count))
        assert [scale.match(label, count) for label in scale.labels] == [
            scale.collapse(label, count) for label in scale.labels
        ]
    if 2 in scale.class_counts:
        right = {scale.collapse(label, 2) for label in scale.correct}
        wrong = {scale.collapse(label, 2) for label in scale.labels if not scale.is_correct(label)}
        assert not right & wrong


def test_scales_understand_each_others_verdicts_by_their_side_and_no_finer():
    for ours, theirs in ((ACCURACY, CLIMATE_FEEDBACK), (CLIMATE_FEEDBACK, ACCURACY), (BINARY, CLIMATE_FEEDBACK)):
        for label in theirs.labels:
            side = "correct" if theirs.is_correct(label) else "incorrect"
            assert ours.match(label, 2) == side
            assert ours.comparable_counts([label])[-1] == 2
    assert ACCURACY.match("inaccurate") is None
    assert ACCURACY.comparable_counts(["inaccurate", "NEI"]) == (2,)
    assert ACCURACY.comparable_counts(["True", "mostly_false"]) == (5, 2)
    assert CLIMATE_FEEDBACK.comparable_counts(()) == (12, 7, 5, 2)
    # On which side "disputed" lies nobody has said.
    with pytest.raises(InputError, match="'DISPUTED' is not of the scale accuracy"):
        ACCURACY.comparable_counts(["true", "DISPUTED"])


def test_labels_and_levels_that_a_scale_does_not_have():
    with pytest.raises(InputError, match="'nonsense' is not a verdict of the scale binary: it has incorrect, correct"):
        BINARY.collapse("nonsense")
    with pytest.raises(InputError, match="cannot be shown in 6 classes: it can be shown in 12, 7, 5, 2"):
        CLIMATE_FEEDBACK.classes(6)
    with pytest.raises(InputError, match="not enough information' is not a verdict"):
        BINARY.is_correct(NOT_ENOUGH)


@pytest.mark.parametrize(
    "text",
    ["NEI", "nei", "Not enough information", "not enough info", "NOT_ENOUGH_INFO", "Insufficient evidence"],
)
def test_spellings_of_not_enough_information(text):
    assert CLIMATE_FEEDBACK.match(text, 7) == NOT_ENOUGH
    assert CLIMATE_FEVER.match(text) == "NOT_ENOUGH_INFO"


def test_strict_spelling_goes_before_loose():
    scale = parse_scale({"labels": ["-1", "1", "True", "TRUE"], "correct": ["1"]}, "odd", where="here")
    assert [scale.match(text) for text in ("-1", " 1 ", "True", "TRUE")] == ["-1", "1", "True", "TRUE"]
    # Either could be meant.
    assert scale.match("true") is scale.match("- 1") is None


def test_a_label_that_sounds_like_nei_stays_a_label():
    scale = parse_scale({"labels": ["no", "insufficient evidence", "yes"], "correct": ["yes"]}, "own", where="here")
    assert scale.match("Insufficient_Evidence") == "insufficient evidence"
    assert scale.match("NEI") == NOT_ENOUGH


def test_a_scale_of_ones_own(tmp_path):
    file = tmp_path / "light.toml"
    file.write_text(OWN, encoding="utf-8")
    scale = load_scale(str(file))
    assert scale == own_scale()
    assert (scale.name, scale.nei, scale.lack_labels) == ("traffic light", "off", {"dark amber"})
    assert scale.class_counts == (4, 3, 2)
    assert scale.classes(3) == ("red", "amber", "green")
    assert [scale.collapse(label, 2) for label in scale.labels] == ["stop", "stop", "go", "go"]
    assert scale.definitions == {
        "red": "is wrong",
        "dark amber": "is dark amber",
        "light amber": "is light amber",
        "green": "is green",
    }
    assert [scale.match(text, 3) for text in ("Dark_Amber", "AMBER", "off", "NEI")] == ["amber", "amber", "off", "off"]


def test_the_example_in_the_docs_is_a_scale():
    page = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    (example,) = (block.partition("```")[0] for block in page.split("```toml\n")[1:])
    scale = own_scale(example)
    assert scale.class_counts == (5, 3, 2)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('name = "traffic light"', 'colour = "red"', "a scale has no entry 'colour'"),
        ('name = "traffic light"', "name = 3", "name must be a word or phrase in quotes"),
        ('labels = ["red", "dark amber", "light amber", "green"]', "", "labels must be a list of verdicts in quotes"),
        ('"red", "dark amber"', '"red", 2', "labels must be a list of verdicts in quotes"),
        ('"red", "dark amber"', '"red", " "', "labels must be a list of verdicts in quotes"),
        ('["red", "dark amber", "light amber", "green"]', '["red"]', "at least two different verdicts"),
        ('"red", "dark amber"', '"red", "red"', "at least two different verdicts"),
        ('correct = ["green"]', "", "correct must be a list"),
        ('correct = ["green"]', 'correct = ["blue"]', "'blue' is not among the labels"),
        ('correct = ["green"]', "correct = []", "correct must name some of the labels, and not all"),
        (
            'correct = ["green"]',
            'correct = ["green", "red", "dark amber", "light amber"]',
            "correct must name some of the labels, and not all",
        ),
        ('lack_of_information = ["dark amber"]', 'lack_of_information = ["blue"]', "'blue' is not among the labels"),
        ('lack_of_information = ["dark amber"]', 'lack_of_information = "red"', "lack_of_information must be a list"),
        ('"off"', '"red"', "must not be one of the labels, as 'red' is"),
        ('"off"', '" "', "not_enough_information must be a word"),
        ('"off"', "7", "not_enough_information must be a word"),
        ('red = "is wrong"', 'blue = "is wrong"', "definitions must be a table from labels to clauses"),
        ('red = "is wrong"', "red = 1", "definitions.red must be a word or phrase"),
        ('amber = ["dark amber", "light amber"]', 'amber = ["dark amber"]', "classes.3 must name every label once"),
        ('red = ["red"]\n', 'red = ["red", "green"]\n', "classes.3 must name every label once"),
        ('red = ["red"]\n', 'red = ["red", "red"]\n', "classes.3 must name every label once"),
        ('red = ["red"]\n', 'red = "red"\n', "classes.3.red must be a list of verdicts"),
        ('red = ["red"]\n', 'red = ["red"]\nblue = []\n', "classes.3 has 3 classes with labels"),
        (
            '"light amber"]\ngreen = ["green"]',
            '"light amber", "green"]\ngreen = []',
            "classes.3 has 2 classes with labels",
        ),
        ('amber = ["dark amber", "light amber"]', 'a = ["dark amber"]\nb = ["light amber"]', "classes.3 has 4 classes"),
        ('amber = ["dark', 'off = ["dark', "classes.3 cannot have a class 'off'"),
        ("[classes.3]", "[classes.4]", "classes.4 must be a number of classes from 2 to one less than the labels"),
        ("[classes.3]", "[classes.three]", "classes.three must be a number"),
        ("[classes.3]", '[classes."³"]', "must be a number of classes"),
        ("[classes.3]", "[classes.1]", "classes.1 must be a number of classes from 2"),
    ],
)
def test_what_is_wrong_with_a_scale_is_said(before, after, words):
    assert before in OWN
    with pytest.raises(InputError) as told:
        own_scale(OWN.replace(before, after, 1))
    assert str(told.value).startswith("own.toml: ")
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"definitions": "none"}, "definitions must be a table"),
        ({"classes": ["a"]}, "classes must be tables"),
        ({"classes": {"2": "a"}}, "classes.2 must be a table from class to its labels"),
    ],
    ids=["definitions", "classes", "one-level"],
)
def test_tables_that_are_none(table, words):
    with pytest.raises(InputError, match=words):
        parse_scale({"labels": ["a", "b", "c"], "correct": ["c"], **table}, "own", where="own.toml")


def test_files_that_are_no_scale(tmp_path):
    with pytest.raises(
        InputError, match="There is no scale 'fever': there are accuracy, climate-feedback, climate-fever"
    ):
        load_scale("fever")
    with pytest.raises(InputError, match="There is no file at"):
        load_scale(str(tmp_path / "none.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("labels = [", encoding="utf-8")
    with pytest.raises(InputError, match="is not valid TOML"):
        load_scale(str(broken))
    broken.write_bytes(b'labels = ["caf\xe9"]')
    with pytest.raises(InputError, match="cannot be read"):
        load_scale(str(broken))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        load_scale(str(tmp_path / "folder.toml"))


def test_the_twelve_verdicts_of_science_feedback_belong_to_its_three_classes():
    classes = {}
    for verdict in CLIMATE_FEEDBACK.labels:
        classes.setdefault(SCIENCE_FEEDBACK.match(verdict), set()).add(verdict)
    assert classes == {
        "inaccurate": {"incorrect", "inaccurate", "flawed reasoning", "unsupported"},
        "misleading": {"misleading", "lacks context", "imprecise"},
        "accurate": {"correct but", "mostly correct", "mostly accurate", "accurate", "correct"},
    }
    assert SCIENCE_FEEDBACK.match("Lacks-Context") == "misleading"
    assert SCIENCE_FEEDBACK.match("Mostly Accurate", 2) == CLIMATE_FEEDBACK.match("mostly accurate", 2) == "correct"
    assert SCIENCE_FEEDBACK.comparable_counts(["unsupported", "accurate"]) == (3, 2)
    assert SCIENCE_FEEDBACK.match("half true") is None
