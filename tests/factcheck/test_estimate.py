"""What a run will take: the rehearsal asks what one round of real debates asks."""

import json
import re
from dataclasses import replace

import pytest

from climassay.factcheck import AdvocateSettings, DebateSettings, make_claim
from climassay.factcheck.checking import set_up_debate
from climassay.factcheck.estimate import MAX_REHEARSED_CLAIMS, estimate_debate
from climassay.models.servers import Price
from climassay.prompts import ProfileSettings
from debate_parts import Shelf, company_of, debates
from debate_tables import UNGRADED
from scripted_model import ScriptedModel

IPCC = AdvocateSettings("IPCC", collections=("ar6",), min_cosine=0.0, passages=1)
WMO = AdvocateSettings("WMO", collections=("wmo",), min_cosine=0.05, weight=0.5)
PLAIN = AdvocateSettings("model", "plain")
CLAIMS = [
    make_claim(text) for text in ("The Sun did all of it.", "The ice melts; polar bears do not care.", "Cows did it.")
]


def debating(*advocates, **changes):
    known = {"model": "local:scripted", "split": "rules", "check_claims": False, "rounds": 1, "profile": UNGRADED}
    return DebateSettings(advocates or (IPCC, WMO, PLAIN), **{**known, **changes})


def shelves():
    return Shelf("ar6", "The Arctic ice melts. The Sun is steady."), Shelf("wmo", "Ice is thin. Polar bears swim.")


def legal(prompt, schema):
    """The first of all choices, no parts of a claim, and a citation of a passage where there is one."""
    passage = re.search(r"\[\d+\]", prompt.rpartition("<user>")[2])
    words = "It bears on it." if passage is None else f"It bears on it {passage[0]}."
    return words if schema is None else json.dumps(filled_in(schema, words))


def filled_in(part, words):
    if "enum" in part:
        return part["enum"][0]
    if part["type"] == "object":
        return {name: filled_in(inner, words) for name, inner in part["properties"].items()}
    return [] if part["type"] == "array" else words


def estimated(rules, claims=CLAIMS, **others):
    company = company_of(one := ScriptedModel(write=legal, parameters=1), *shelves(), **others)
    return estimate_debate(set_up_debate(rules, company), company, claims), one


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"profile": ProfileSettings("strong")}, {"split": "model"}, {"split": "whole"}, {"context_prefix": True},
        {"leave_one_out": True}, {"rounds": 3},
    ],
    ids=lambda changes: " ".join(changes) or "default",
)  # fmt: skip
def test_requests_are_those_of_one_round_of_real_debates(changes):
    rules = debating(**changes)
    found, _ = estimated(rules)
    company = company_of(ScriptedModel(write=legal), *shelves())
    held = debates(set_up_debate(replace(rules, rounds=1), company), company, CLAIMS)
    assert all(len(transcript.rounds) == 1 and transcript.failures == 0 for transcript in held)
    assert found.claims == len(CLAIMS)
    assert found.requests == sum(transcript.usage.requests for transcript in held)


def test_calls_in_sequence_are_those_a_claim_waits_for():
    by_schema = {"profile": ProfileSettings("strong"), "split": "whole"}
    one, _ = estimated(debating(IPCC, **by_schema), CLAIMS[:1])
    three, _ = estimated(
        debating(IPCC, replace(IPCC, name="Second"), replace(IPCC, name="Third"), **by_schema), CLAIMS[:1]
    )
    # Advocates are asked side by side: more of them make more calls, and nobody waits longer.
    assert three.requests > one.requests
    assert three.sequential_calls == one.sequential_calls <= 4
    more, _ = estimated(debating(IPCC, rounds=3, **by_schema), CLAIMS[:1])
    assert (one.further_rounds, more.further_rounds) == (0, 2)
    assert "2 more calls one after the other" in " ".join(more.lines())


def test_a_model_behind_a_server_is_as_fast_as_it_was():
    company = company_of(ScriptedModel(name="openai:m", write=legal), *shelves())
    table = set_up_debate(debating(model="openai:m"), company)
    found = estimate_debate(table, company, CLAIMS, seconds_per_answer={"openai:m": 2.5}.get)
    assert found.seconds == pytest.approx(2.5 * found.requests)


def test_more_claims_than_are_rehearsed_are_scaled_up():
    claims = [make_claim(f"The Sun did it in {year}.") for year in range(1900, 2000)]
    few, _ = estimated(debating(), claims[:MAX_REHEARSED_CLAIMS])
    many, _ = estimated(debating(), claims)
    assert many.requests == few.requests * len(claims) / MAX_REHEARSED_CLAIMS
    assert many.completion_tokens == few.completion_tokens * len(claims) / MAX_REHEARSED_CLAIMS
    assert many.prompt_tokens == pytest.approx(few.prompt_tokens * len(claims) / MAX_REHEARSED_CLAIMS, rel=0.01)


@pytest.mark.parametrize("count", [1, MAX_REHEARSED_CLAIMS, 15, 40])
def test_the_rehearsed_claims_are_spread_over_the_file(count):
    """Long claims at the end count: of each file the later half has twice the statements."""
    one, two = "The ice melts in winter.", "The ice melts in summer; polar bears do not care."
    claims = [make_claim(f"{one if place < count / 2 else two} Case {place}.") for place in range(count)]
    found, _ = estimated(debating(IPCC), claims)
    first, _ = estimated(debating(IPCC), claims[:1])
    last, _ = estimated(debating(IPCC), claims[-1:])
    assert found.requests / count == pytest.approx((first.requests + last.requests) / 2, rel=0.1)


def test_nothing_is_asked_of_a_model_behind_an_api_and_its_price_is_counted():
    remote = ScriptedModel(name="openai:m", write=legal)
    company = company_of(remote, *shelves())
    table = set_up_debate(debating(model="openai:m"), company)
    assert (estimate_debate(table, company, CLAIMS).cost, estimate_debate(table, company, CLAIMS).seconds) == (
        None,
        None,
    )
    priced = replace(company, prices={"openai:m": Price(1.0, 10.0)})
    found = estimate_debate(table, priced, CLAIMS)
    assert remote.texts == []
    dear = estimate_debate(table, replace(company, prices={"openai:m": Price(2.0, 20.0)}), CLAIMS)
    assert 0 < found.cost == pytest.approx(dear.cost / 2)
