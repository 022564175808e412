import json

import pytest

from climassay.factcheck import CheckStore, DebateSettings, advocates_from_names, from_data, make_claim
from climassay.records import Records
from climassay.workspace import Workspace
from command_line import done, json_of, refused
from factcheck_transcripts import full_transcript


@pytest.fixture
def climassay(climassay, tmp_path):
    return lambda *arguments: climassay("factcheck checks", *arguments, "--workspace", tmp_path / "here")


@pytest.fixture
def kept(tmp_path):
    """A finished check that two people reviewed, and one that broke."""
    settings = DebateSettings(advocates_from_names(["ar6"]), scale="climate-feedback")
    with Records(Workspace.open(tmp_path / "here").records_url) as records:
        checks = CheckStore(records)
        done = checks.begin(full_transcript().claim, settings, setup="two", by="ann")
        checks.finish(done, full_transcript(), run="r1")
        checks.review(done, "ann", "disagree", "[bold]Too harsh.")
        checks.review(done, "bob", "agree")
        checks.review(done, "ann", "agree", "Fine.")
        broken = checks.begin(make_claim("[red]Glaciers grow."), settings, setup="two")
        checks.fail(broken, "The model is away.")
    return done, broken


def test_the_list_shows_the_newest_first_with_verdicts_and_agreement(climassay, kept):
    out = done(climassay("list"))
    lines = out.splitlines()
    assert [kept[1] in lines[3], kept[0] in lines[4]] == [True, True]
    assert "[red]Glaciers grow." in lines[3]
    assert "incorrect" in lines[4]
    assert "People agree with 100% of 1 reviewed (21% to 100%)." in out


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (("--reviewer", "ann"), [0]), (("--reviewer", "carl"), []), (("--collection", "ar6"), [0, 1]),
        (("--collection", "books"), []), (("--since", "2020-01-01", "--verdict", "incorrect"), [0]),
        (("--until", "2020-01-01"), []), (("--source", "no such paper"), []), (("--topic", "9.9"), []),
    ],
)  # fmt: skip
def test_lists_and_exports_take_the_filters_of_the_page(filters, found, climassay, kept, tmp_path):
    wanted = {kept[number] for number in found}
    listed = json_of(climassay("list", *filters, "--json"))
    assert {one["id"] for one in listed["checks"]} == wanted
    file = tmp_path / "some.jsonl"
    done(climassay("export", file, *filters))
    assert {json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines()} == wanted


def test_a_check_is_shown_with_verdict_and_reviews(climassay, kept):
    out = done(climassay("show", kept[0]))
    for words in ("Verdict: incorrect", "ann disagrees (changed since)", "[bold]Too harsh.", "bob agrees"):
        assert words in out
    data = json_of(climassay("show", kept[0], "--json"))
    assert from_data(data["transcript"]) == full_transcript()
    assert "No result; the check is failed: The model is away." in climassay("show", kept[1])[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("show", "c0"), "There is no check 'c0'."),
        (("list", "--since", "May"), "'May' is not a date"),
        (("export", "checks.csv"), "checks.csv must end in .jsonl"),
    ],
    ids=["unknown", "day", "kind"],
)
def test_what_does_not_fit_is_told_in_one_sentence(climassay, arguments, sentence):
    assert sentence in refused(climassay(*arguments))


def test_an_opinion_that_reviewers_cannot_hold_is_refused(climassay):
    code, out, err = climassay("list", "--review", "liked")
    assert (code, out) == (2, "")
    assert 'Choose from: "agreed"' in err
