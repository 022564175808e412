"""What a client is before it asks anything: its address, name and fingerprint."""

from types import SimpleNamespace

import pytest

from api_server import ApiServer
from climassay.errors import ModelError
from climassay.models.contract import GenerationRequest, Message
from climassay.models.openai.capabilities import LearnedCapabilities
from climassay.models.openai.client import OpenAIModel
from climassay.records import RecordedModel, Records


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://Localhost:80/v1/", "http://localhost/v1", True),
        ("http://localhost:8000/v1", "http://localhost:8001/v1", False),
        ("https://user:secret@host/v1?key=1", "https://host/v1", True),
    ],
)
def test_the_fingerprint_covers_the_normalised_base_url(one, other, same):
    first, second = (OpenAIModel("m", base_url=url) for url in (one, other))
    assert (first.fingerprint == second.fingerprint) is same


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http://", "http://[::1", ""])
def test_a_base_url_that_is_none_is_refused(url, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    with pytest.raises(ModelError, match="not an http or https address"):
        OpenAIModel("m", base_url=url)


def test_openai_itself_needs_a_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "CLIMASSAY_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="set OPENAI_API_KEY"):
        OpenAIModel("gpt-4o-mini")


@pytest.fixture
def moving(tmp_path, monkeypatch):
    """Sets the address of the provider ``cluster`` in the user's configuration."""
    path = tmp_path / "config.toml"
    path.write_text("")
    monkeypatch.setenv("CLIMASSAY_CONFIG", str(path))
    return lambda url: path.write_text(f'[providers.cluster]\nbase_url = "{url}"\n')


def test_a_server_that_the_user_names_keeps_its_fingerprint_wherever_it_is(moving):
    found = set()
    for url in ("http://localhost:8000/v1", "https://elsewhere.example/api"):
        moving(url)
        found.add(OpenAIModel("m", provider="cluster").fingerprint)
        found.add(OpenAIModel("m", base_url=url).fingerprint)
    assert len(found) == 3  # one for the name, and one for each address that has none
    assert OpenAIModel("n", provider="cluster").fingerprint not in found
    assert OpenAIModel("m", provider="cluster", reasoning_effort="low").fingerprint not in found


QUESTION = GenerationRequest((Message("user", "Does ice float?"),))


def test_a_server_that_moved_is_asked_nothing_again(moving, tmp_path):
    with ApiServer() as first, ApiServer() as second:
        tallies = []
        for server in (first, second):
            moving(server.url)
            tallies.append(tally_of("cluster", tmp_path))
        assert (len(first.asked), len(second.asked)) == (1, 0)
    assert [(tally.asked, tally.hits) for tally in tallies] == [(1, 0), (0, 1)]


@pytest.mark.parametrize(
    ("stored_as", "moved", "found"),
    [("cluster:m", False, True), ("cluster:m", True, True), ("openai:m", False, True), ("openai:m", True, False)],
)
def test_answers_stored_with_the_address_in_their_identity_are_found(stored_as, moved, found, moving, tmp_path):
    """Those of the address now, and those of another one that were asked by the server's name."""
    with ApiServer() as server, ApiServer() as other:
        earlier = OpenAIModel("m", base_url=server.url, folder=tmp_path)
        LearnedCapabilities(server.url, "m", tmp_path).note_window(4096)
        stored = SimpleNamespace(
            name=stored_as, fingerprint=earlier.fingerprint, render=earlier.render, generate=earlier.generate
        )
        with Records(f"sqlite:///{tmp_path}/records.sqlite") as store, store.run("before", {}) as run:
            RecordedModel(stored, store, run).generate([QUESTION])
        earlier.close()
        moving(other.url if moved else server.url)
        assert tally_of("cluster", tmp_path).hits == int(found)
        assert len(server.asked) + len(other.asked) == 1 + (not found)


def tally_of(provider, folder):
    """What asking the question in a workspace comes to."""
    with Records(f"sqlite:///{folder}/records.sqlite") as store, store.run("test", {}) as run:
        model = RecordedModel(OpenAIModel("m", provider=provider, folder=folder), store, run)
        (answer,) = model.generate([QUESTION])
        model.close()
    assert answer.error is None
    return model.tally
