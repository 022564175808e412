"""``climassay factcheck``: one claim from the terminal, on the bundled models."""

import json
import re

import pytest

from climassay.factcheck import Transcript, from_data
from climassay.factcheck.scales import ACCURACY
from command_line import done, json_of
from debate_workspaces import CLAIM, QUICK, make_model, make_workspace, stored


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return make_workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def climassay(workspace, monkeypatch, climassay):
    monkeypatch.setenv("CLIMASSAY_WORKSPACE", str(workspace))
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: climassay(*arguments)


def test_from_a_claim_to_a_verdict_a_page_and_a_review_and_from_the_records_the_second_time(
    climassay, workspace, model, tmp_path
):
    page, review = tmp_path / "new" / "page.html", tmp_path / "review.json"
    command = [
        "check", CLAIM, "-c", "book", *QUICK, "--model", model, "--source", "A columnist", "--date", "15 May 2023",
    ]  # fmt: skip
    told = json_of(climassay(*command, "--json", "-o", page))
    assert set(told) == {*Transcript.__dataclass_fields__, "past"}
    assert told.pop("past") == []
    transcript = from_data(told)
    assert transcript.verdict.label in (*ACCURACY.labels, ACCURACY.nei)
    assert (transcript.claim.source, transcript.claim.date) == ("A columnist", "2023-05-15")
    assert len(transcript.rounds) == 1
    assert [source.collection for source in transcript.sources] == ["book"]
    assert transcript.failures == 0

    html = page.read_text(encoding="utf-8")
    assert CLAIM in html
    assert transcript.verdict.label in html
    assert "Principles of Physical Climate" in html
    assert not re.search(r"<script|<link|src=.http", html)
    asked = stored(workspace, "answers")
    assert asked > 0
    done(climassay(*command))
    assert stored(workspace, "answers") == asked
    publish = ("--claim-review", review, "--url", "https://example.org/1", "--publisher", "The Daily")
    code, out, err = climassay(*command, *publish)
    # Only a verdict is published; without one the result is shown all the same.
    assert (code == 0) == review.exists() == (transcript.verdict.outcome == "verdict"), err
    assert stored(workspace, "answers") == asked
    past, *debate = out.splitlines()
    assert past.startswith("The same claim was checked on 20")
    assert f": {transcript.verdict.label}, a demonstration" in past
    assert "(accuracy, run r" in past
    assert f"Claim: {CLAIM}" in debate
    assert any(line.startswith(f"book, round 1: {transcript.rounds[0].opinions[0].verdict}") for line in debate)
    assert any(line.casefold().endswith(f": {transcript.verdict.label}") for line in debate)
    assert f"[1] {transcript.sources[0].citation}  (book)" in debate
    assert debate[-1].startswith("Written by a language model")


def test_what_is_no_claim_about_the_climate_is_told_so_without_asking_a_model(climassay, workspace, model):
    before = stored(workspace, "answers")
    out = done(climassay("check", "Is it going to get warmer?", "-c", "book", "--model", model, *QUICK))
    assert "Result: Nothing that can be checked" in out
    assert stored(workspace, "answers") == before


def test_the_command_follows_its_file_and_flags_go_before_it(climassay, model, tmp_path):
    file = tmp_path / "debate.toml"
    climassay("factcheck", "init", file)
    text = file.read_text(encoding="utf-8").replace('"local:smollm2"', json.dumps(model))
    text = text.replace('"ipcc"', '"book"').replace('"abstracts"]', '"book"]').replace('"accuracy"', '"binary"')
    file.write_text(text, encoding="utf-8")
    told = json_of(climassay("check", CLAIM, "--config", file, *QUICK, "--scale", "climate-fever", "--json"))
    assert [(one["name"], one["weight"]) for one in told["advocates"]] == [("IPCC", 1.0), ("abstracts", 0.4)]
    assert {one["model"] for one in told["advocates"]} == {model}
    assert told["scale"] == "climate-fever"


def test_a_failed_debate_is_one_sentence_and_no_success(climassay, tmp_path):
    from tiny_models import save_tiny

    short = tmp_path / "short"
    short.mkdir()
    save_tiny(short)
    code, out, err = climassay("check", CLAIM, "-c", "book", *QUICK, "--model", f"local:{short}")
    assert code == 1
    assert "book, round 1: no opinion (" in out
    assert err.splitlines()[-1].startswith("climassay: There is no verdict, because a model call failed: ")
    assert "Traceback" not in err


BAD = {
    "empty claim": ([" \t "], "The claim is empty"),
    "two words": (["The", "Sun"], "Put the claim in quotes"),
    "nobody": ([CLAIM], "has no advocate"),
    "no collection": ([CLAIM, "-c", "nowhere"], "There is no collection 'nowhere'"),
    "no file": ([CLAIM, "--config", "nowhere.toml"], "There is no file at nowhere.toml"),
    "no prompts": ([CLAIM, "-c", "book", "--prompts", "nowhere"], "The prompt folder nowhere does not exist"),
    "no review": ([CLAIM, "-c", "book", "--claim-review", "x.json"], "needs --url"),
    "no model": ([CLAIM, "-c", "book", "--model", "local:nowhere/at/all"], "There is no model"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(name, climassay, model, workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, sentence = BAD[name]
    chosen = [] if "--model" in arguments else ["--model", model]
    before = stored(workspace, "runs")
    code, out, err = climassay("check", *arguments, *chosen)
    assert_refused(code, out, err, sentence)
    assert stored(workspace, "runs") == before


def assert_refused(code, out, err, sentence):
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.startswith("climassay: ")
    assert err.count("\n") == 1
