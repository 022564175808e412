"""Question sets of the hub: what is asked for, what is read, and what is told when there is nothing."""

import pytest

from climassay.errors import InputError
from climassay.questions import read_questions

huggingface_hub = pytest.importorskip("huggingface_hub")
errors = pytest.importorskip("huggingface_hub.errors")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one dataset of two tables and a picture."""
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "cloze.csv").write_text("Question,Answer,Context\nThe <MASK> rises.,sea,x\n")
    (tmp_path / "gold" / "freeform.csv").write_text(
        "Question,Answer,Context,Complexity\nWhy?,So.,x,base\nHow?,,x,base\n"
    )
    (tmp_path / "picture.png").write_bytes(b"x")
    asked = []

    def snapshot_download(name, *, repo_type, allow_patterns):
        asked.append((name, repo_type, tuple(allow_patterns)))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def test_all_tables_of_a_dataset_are_one_set(hub):
    found = read_questions("hub:UCSD-GENIE/ClimaQA")
    assert [one.kind for one in found.questions] == ["cloze", "freeform"]
    assert found.name == "UCSD-GENIE/ClimaQA"
    assert found.skipped == ("freeform.csv, row 2: the field 'Answer' is empty",)
    assert hub[0][:2] == ("UCSD-GENIE/ClimaQA", "dataset")
    assert not any("py" in pattern for pattern in hub[0][2])


@pytest.mark.parametrize(
    ("name", "word"), [("hub:", "hub:OWNER/NAME"), ("hub:onlyowner", "hub:OWNER/NAME"), ("hub:a/b/none*", "no table")]
)
def test_bad_names_are_told(hub, name, word):
    with pytest.raises(InputError, match=word):
        read_questions(name)


def _client_error():
    """A lost connection as the package's HTTP client tells it, which need not be an OSError."""
    client_base = errors.HfHubHTTPError.__mro__[1]
    return type("ConnectError", (client_base,), {})("no route")


@pytest.mark.parametrize(
    "error",
    [OSError("no route"), _client_error(), errors.OfflineModeIsEnabled("offline"), ValueError("odd")],
    ids=["system", "client", "offline", "value"],
)
def test_an_unreachable_hub_is_told(monkeypatch, error):
    def unreachable(*args, **options):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(InputError, match="could not be reached"):
        read_questions("hub:a/b")
