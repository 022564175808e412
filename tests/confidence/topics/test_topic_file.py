"""Topics as a file."""

import json

import pytest

from climassay.confidence.topics import OUTSIDE, read_topics, write_topics
from climassay.errors import InputError
from planted_statements import planted, topics_of


@pytest.fixture
def model():
    statements = planted(2)
    return topics_of(statements, [place % 3 for place in range(len(statements))])


def test_what_is_written_is_read(tmp_path, model):
    write_topics(model, tmp_path / "sub" / "topics.json")
    assert read_topics(tmp_path / "sub" / "topics.json") == model


def test_topics_of_statements(model):
    known = model.statements[4].id
    assert model.topic_of(known) == 1
    assert model.topic_of("unknown") is None
    assert model.counts([known, "unknown", model.statements[1].id]) == {1: 2}
    assert model.name(2) == "Topic 2"
    assert model.name(OUTSIDE) == "no topic"


def test_files_that_are_no_topics_are_refused(tmp_path, model):
    file = tmp_path / "topics.json"
    with pytest.raises(InputError, match="cannot be read"):
        read_topics(file)
    file.write_text("{")
    with pytest.raises(InputError, match="not a JSON"):
        read_topics(file)
    file.write_text('{"format": "other"}')
    with pytest.raises(InputError, match="not a file of topics"):
        read_topics(file)
    write_topics(model, file)
    data = json.loads(file.read_text())
    data["statements"][0][1] = 7
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match="a topic that does not exist"):
        read_topics(file)
    del data["topics"]
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match="damaged"):
        read_topics(file)
