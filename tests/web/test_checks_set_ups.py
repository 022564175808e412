"""Who debates on a server, and who may ask there."""

from dataclasses import replace

import pytest

from check_parts import add_collection, ask, ended, furnish, scripted, write_settings
from climassay.errors import InputError
from climassay.web.checks.store import set_ups
from html_pages import Page
from web_parts import application_over


@pytest.fixture
def place_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    return {"debates": (write_settings(tmp_path),), "publisher": "Example Observatory"}


@pytest.fixture
def script(place):
    made = scripted()
    furnish(place, made)
    return made


def small_model(**script):
    """A script whose model is asked by scores, as no file sets a profile."""
    made = scripted(**script)
    made.model.parameters = 1
    return made


class TestEveryCollection:
    """Without files every collection is an advocate."""

    @pytest.fixture
    def place_settings(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
        return {"model": "local:scripted"}

    def test_a_collection_that_was_added_later_takes_part_in_the_next_check(self, client_of, place):
        furnish(place, small_model(plans={}), texts={})
        client = client_of("annotator")
        assert "the model alone" in client.get("/check").text
        add_collection(place, "mediator", "Solar forcing of the climate is small.")
        first = ended(place, ask(client))
        assert [one.name for one in first.settings.advocates] == ["mediator_"]
        add_collection(place, "physical", "Carbon dioxide caused the warming of the climate.")
        second = ended(place, ask(client, anyway="true"))
        assert [one.name for one in second.settings.advocates] == ["mediator_", "physical"]
        assert {one.collection for one in second.transcript.sources} == {"mediator", "physical"}

    def test_without_a_publisher_nothing_is_published(self, client_of, place):
        furnish(place, small_model(plans={}))
        client = client_of("annotator")
        check = ask(client)
        ended(place, check)
        assert client.get(f"/checks/{check}/claimreview.json").status_code == 404
        assert "ld+json" not in client.get(f"/checks/{check}").text


def files_in(folder, *names, text=None):
    for name in names:
        write_settings(folder).rename(folder / name)
        if text is not None:
            (folder / name).write_text(text)
    return (folder,)


def test_a_folder_of_files_gives_a_choice(place, tmp_path):
    folder = tmp_path / "debates"
    folder.mkdir()
    place.settings = replace(place.settings, debates=files_in(folder, "b.toml", "a.toml"))
    furnish(place, scripted())
    with application_over(place) as client_of:
        client = client_of("annotator")
        options = Page(client.get("/check").text).every("option")
        assert [one["value"] for one in options] == ["a", "b"]
        assert ended(place, ask(client, set_up="b")).about.set_up == "b"


@pytest.mark.parametrize(
    ("names", "text", "sentence"),
    [
        ((), None, "has no .toml files that set up debates"),
        (("a.toml",), 'model = "local:x"', "has no \\[\\[advocate\\]\\]"),
        (("a.toml",), 'scale = "love"', "love"),
    ],
    ids=["empty", "nobody", "scale"],
)
def test_set_ups_that_cannot_be_used_are_told_when_the_server_starts(place, tmp_path, names, text, sentence):
    folder = tmp_path / "debates"
    folder.mkdir()
    place.settings = replace(place.settings, debates=files_in(folder, *names, text=text))
    with pytest.raises(InputError, match=sentence):
        set_ups(place)
