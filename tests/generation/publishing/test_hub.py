import pytest

from climassay.errors import InputError
from climassay.generation.publishing import publish_dataset, push_dataset
from generated_drafts import draft

HfApi = pytest.importorskip("huggingface_hub").HfApi
errors = pytest.importorskip("huggingface_hub.errors")
client = pytest.importorskip("httpx2")


@pytest.fixture
def folder(tmp_path):
    publish_dataset([draft(number) for number in range(3)], tmp_path / "out", name="x")
    return tmp_path / "out"


def refusing(error):
    def refuse(*args, **kwargs):
        raise error

    return refuse


def http_error(status):
    request = client.Request("POST", "https://hub.test/api/repos/create")
    return errors.HfHubHTTPError("no", response=client.Response(status, request=request))


def test_the_folder_goes_to_a_repository_that_is_made_first(monkeypatch, folder):
    calls = []
    monkeypatch.setattr(HfApi, "create_repo", lambda self, name, **rest: calls.append((name, rest)) or "https://hub/x")
    monkeypatch.setattr(HfApi, "upload_folder", lambda self, **rest: calls.append(rest))
    assert push_dataset(folder, "me/climate", private=True) == "https://hub/x"
    assert calls[0] == ("me/climate", {"repo_type": "dataset", "private": True, "exist_ok": True})
    assert calls[1]["repo_id"] == "me/climate"
    assert calls[1]["repo_type"] == "dataset"
    assert calls[1]["folder_path"] == str(folder)
    assert not any("token" in call for call in (calls[0][1], calls[1]))


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (http_error(403), "HF_TOKEN"),
        (http_error(500), "refused the dataset me/climate: 500"),
        (errors.LocalTokenNotFoundError("no"), "wants a token"),
        (errors.OfflineModeIsEnabled("no"), "could not be reached"),
        (client.ConnectError("no"), "could not be reached"),
    ],
    ids=["forbidden", "server", "token", "offline", "network"],
)
def test_what_goes_wrong_is_one_sentence(monkeypatch, folder, error, word):
    monkeypatch.setattr(HfApi, "create_repo", refusing(error))
    with pytest.raises(InputError, match=word):
        push_dataset(folder, "me/climate")


@pytest.mark.parametrize("name", ["climate", "me/", "me/a b", "/x", "a/b/c"])
def test_a_name_that_is_none_is_refused_before_anything_is_sent(monkeypatch, folder, name):
    monkeypatch.setattr(HfApi, "create_repo", refusing(AssertionError("sent")))
    with pytest.raises(InputError, match="OWNER/NAME"):
        push_dataset(folder, name)


def test_only_a_published_dataset_is_sent(monkeypatch, tmp_path):
    monkeypatch.setattr(HfApi, "create_repo", refusing(AssertionError("sent")))
    with pytest.raises(InputError, match="not a dataset"):
        push_dataset(tmp_path, "me/climate")
