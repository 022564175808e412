"""What a client is before it asks anything: its address, name and fingerprint."""

import pytest

from climassay.errors import ModelError
from climassay.models.openai_api import OpenAIModel


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


def test_the_fingerprint_covers_the_name_and_the_prefix_of_the_provider_may_be_given():
    url = "http://localhost/v1"
    assert OpenAIModel("m", base_url=url).fingerprint != OpenAIModel("n", base_url=url).fingerprint
    assert OpenAIModel("openai:m", base_url=url).fingerprint == OpenAIModel("m", base_url=url).fingerprint
    assert OpenAIModel("openai:m", base_url=url).name == "openai:m" == OpenAIModel("m", base_url=url).name


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
