"""Every command that asks a model, against servers with the manners of those that people use.

No call fails, no answer is lost, what a server does not take is learnt once, and where the answers are the same, so is
the result.
"""

import json
from collections import Counter

import pytest

from climassay.models import GenerationRequest, Message, Sampling
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.pacing import RetryPolicy
from providers.knowing_model import FACTS
from providers.manners import FILTERED, MANNERS, Azure, ProviderServer
from providers.touring import COMMANDS, Tour

REFERENCE = "openai"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_result_is_the_same_as_with_any_other_server(tour, tours, command):
    assert tour.result(command) == tours(REFERENCE).result(command)


def test_what_the_model_knows_comes_through(tour):
    """What is the same with all servers is also right."""
    text, enough, removed = tour.result("ask")
    assert (enough, removed) == (True, 0)
    assert text.startswith(FACTS[0].answer.removesuffix("."))
    for command in ("letters by likelihood", "letters generated"):
        chosen, _ = tour.result(command)
        assert all(option == int(question.removeprefix("mcq")) for question, _, option in chosen), command
    scores = {(one["cell"]["task"], one["metric"]): one["estimate"]["value"] for one in tour.result("experiment")}
    assert scores["mcq", "accuracy"] == scores["cloze", "exact_match"] == 1
    streams, _ = tour.result("generation")
    assert all((stream["accepted"], stream["drafts"]) == (2, 2) for stream in streams)
    assert tour.result("one statement")[:2] == ("verdict", "accurate")
    outcome, label, *_, statements, said = tour.result("three statements")
    assert (outcome, len(statements)) == ("verdict", 3)
    assert label not in ("accurate", "inaccurate")
    parts = {(advocate, part): verdict for advocate, part, verdict, _ in said if part is not None}
    assert [parts["book", part] for part in (1, 2, 3)] == ["accurate", "accurate", "inaccurate"]
    mean, _ = tour.result("metrics")
    assert (mean["value"], mean["n"]) == (1, len(FACTS))
    best_first = [f"This is number {number}." for number in (4, 3, 2, 1)]
    assert tour.result("pairs") == tour.result("ratings") == best_first


def test_no_call_has_failed_and_no_answer_was_cut(tour):
    assert all(stop.code == 0 for stop in tour.all())
    runs = tour.run("records", "runs", model=False).data
    assert len(runs) >= len(COMMANDS)
    assert {(run["status"], run["failed"]) for run in runs if run["sent"]} == {("done", 0)}
    assert tour.server.cut == []


def test_what_the_server_does_not_take_is_learnt_once(tour):
    tour.all()
    # Requests that were in flight together may be refused for the same reason before any of them tells it.
    refused = Counter(json.dumps(error)[:80] for _, error in tour.server.refused)
    assert len(refused) <= tour.manner.lessons, refused
    # One answer without content tells that a model thinks.
    assert len(tour.server.emptied) <= 1
    for name in ("ask", "letters by likelihood", "one statement"):
        again = tour.run(*COMMANDS[name].arguments, "--no-cache")
        assert (again.code, again.refused) == (0, 0), name
        assert again.asked > 0


@pytest.mark.parametrize("name", MANNERS)
def test_a_streamed_answer_is_the_same_and_counted_the_same(name):
    asked = GenerationRequest(
        (Message("user", f"{FACTS[0].question} Answer in one sentence."),), Sampling(max_tokens=400)
    )
    with ProviderServer(MANNERS[name]()) as server:
        model = OpenAIModel("model", base_url=server.url, policy=RetryPolicy(base=0.0))
        model.generate([asked])  # what thoughts and limits take is learnt here
        shown = []
        streamed = model.generate_stream([asked], on_text=lambda _, text: shown.append(text))
        [whole] = model.generate([asked])
        again = model.generate_stream([asked], on_text=lambda _, text: shown.append(text))
        model.close()
    assert whole.error is None
    assert [one.text for one in (*streamed, *again)] == [whole.text] * 2
    assert again[0].usage == whole.usage
    assert bool(shown) == ("stream" not in model.capabilities.dropped)


def test_a_prompt_that_the_content_filter_stops_is_one_failure_with_its_reason(book, given, tmp_path):
    tour = Tour(Azure(), tmp_path, given)
    rows = [json.loads(line) for line in (given / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[0]["question"] = f"How does a {FILTERED} warm the ocean?"
    (tmp_path / "filtered.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    try:
        for scoring in ("likelihood", "letter"):
            file = tmp_path / f"{scoring}.jsonl"
            arguments = ("evaluate", "mcq", "{place}/filtered.jsonl", "--scoring", scoring, "--predictions", str(file))
            assert tour.run(*arguments).data["tally"]["failed"] == 1
            predictions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            [reason] = [one["error"] for one in predictions if one["error"] is not None]
            assert "content management policy" in reason
            assert [one["correct"] for one in predictions] == [False, True, True, True]
    finally:
        tour.close()
