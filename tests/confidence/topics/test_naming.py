"""Names that a model proposes are kept only where they tell their topic from the others."""

import json

import numpy as np
import pytest

from climassay.confidence.topics import judge_names, propose_names
from climassay.errors import InputError
from scripted_model import ScriptedModel
from topic_encoder import TopicEncoder

CENTRES = TopicEncoder().encode(["ocean", "glacier", "cloud aerosol", "carbon"])


def faults(*names, taken=()):
    return [one.fault for one in judge_names(names, CENTRES, TopicEncoder(), taken)]


def test_a_name_must_find_its_topic():
    assert faults("Ocean heat", "Glacier retreat", "Clouds and aerosols", "Carbon sinks") == ["", "", "", ""]


def test_a_name_that_fits_several_other_topics_better_is_refused():
    centres = TopicEncoder().encode(["ocean", "ocean glacier", "ocean glacier glacier", "carbon"])
    found = judge_names(["Glacier", "Ocean", "Ice and glacier", "Ocean depth"], centres, TopicEncoder())
    # "Glacier" is nearer to the second and the third topic than to the first; the second is next to best for "Ocean".
    assert [one.fault for one in found] == [
        "it fits 2 other topics better",
        "",
        "",
        "it fits 3 other topics better",
    ]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "no answer"),
        ("2020", "no answer"),
        ("Climate change impacts", "every topic"),
        ("Ocean heat in the deep southern sea now", "too long"),
        ("Ocean ocean", "repeats"),
    ],
    ids=["empty", "number", "general", "long", "twice"],
)
def test_poor_names_are_refused(name, fault):
    assert fault in faults(name, "Glacier", "Cloud", "Carbon")[0]


def test_no_name_is_given_twice():
    centres = np.repeat(CENTRES[:1], 2, axis=0)
    found = judge_names(["Ocean", "ocean"], centres, TopicEncoder())
    assert [one.fault for one in found] == ["", "another topic has this name"]
    assert "another topic" in faults("Ocean", "Glacier", "Cloud", "Carbon", taken=["OCEAN"])[0]


def test_a_name_must_be_borne_by_most_statements():
    encoder = TopicEncoder()
    ocean = encoder.encode(["ocean"] * 2 + ["ocean carbon"] * 6)
    members = [ocean, *(encoder.encode([one] * 8) for one in ("glacier", "cloud aerosol", "carbon"))]
    centres = np.stack([vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0)) for vectors in members])
    found = judge_names(["Ocean and carbon", "Glacier", "Cloud", "Albedo"], centres, encoder, members=members)
    assert [one.fault for one in found[:3]] == ["", "", ""]
    assert found[0].support == 0.75
    # The albedo is named by no statement of the last topic.
    assert found[3].fault
    assert found[3].support == 0
    mixed = [encoder.encode(["ocean"] * 3 + ["albedo"] * 5), *members[1:]]
    (first, *_) = judge_names(["Ocean", "Glacier", "Cloud", "Carbon"], centres, encoder, members=mixed)
    assert "only 38% of the topic's statements bear it" in first.fault


def test_a_model_sees_statements_and_words_and_answers_under_a_schema():
    model = ScriptedModel(write=lambda prompt, schema: json.dumps({"name": ' "ocean  heat." '}) if schema else "no")
    names = propose_names(
        ["Ocean heat", "Ice"], [["ocean", "heat"], ["ice"]], [["The ocean warms."], ["Ice melts."]], model
    )
    assert names == ["Ocean heat", "Ocean heat"]
    assert "The ocean warms." in model.texts[0]
    assert "Ice" in model.texts[0]
    assert "ocean, heat" in model.texts[0]


@pytest.mark.parametrize("answer", [ValueError("down"), "not JSON", "[1]"], ids=["failed", "text", "list"])
def test_answers_that_cannot_be_read_are_no_names(answer):
    assert propose_names(["A"], [["a"]], [["b"]], ScriptedModel(write=lambda *_: answer)) == [""]


def test_own_prompts_are_used(tmp_path):
    (tmp_path / "topic_name.prompt").write_text("[user]\nMy words: {{ words | join(' ') }}")
    model = ScriptedModel(write=lambda *_: '{"name": "Ice"}')
    propose_names(["Floes"], [["floe", "berg"]], [[]], model, prompts=tmp_path)
    assert "My words: floe berg" in model.texts[0]
    with pytest.raises(InputError, match="does not exist"):
        propose_names(["A"], [["a"]], [[]], model, prompts=tmp_path / "nowhere")
