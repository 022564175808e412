"""Schemas: decoded by the server where it can, else prompted, checked and asked again."""

import json

import pytest

from api_server import ApiServer, Behaviour, Reply
from climassay.models.contract import GenerationRequest, Message, Sampling
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.connection import RetryPolicy
from climassay.models.openai.schema import satisfying_json

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["true", "false"]}, "reason": {"type": "string", "maxLength": 20}},
    "required": ["verdict", "reason"],
    "additionalProperties": False,
}
GOOD = json.dumps({"verdict": "true", "reason": "it warms"})


def request(text, schema=SCHEMA, max_tokens=None):
    return GenerationRequest((Message("user", text),), Sampling(max_tokens=max_tokens), schema)


def complete(server, *requests):
    client = OpenAIModel("test", base_url=server.url, policy=RetryPolicy(base=0.0, max_attempts=3), concurrency=1)
    try:
        return client.generate(list(requests)), dict(client.fallbacks)
    finally:
        client.close()


def test_the_server_gets_the_schema_and_the_answer_satisfies_it():
    with ApiServer() as server:
        (completion,), fallbacks = complete(server, request("is it?"))
        body = server.asked[0].body
    assert set(json.loads(completion.text)) == {"verdict", "reason"}
    sent = body["response_format"]["json_schema"]
    assert (sent["strict"], sent["schema"]["required"]) == (True, ["verdict", "reason"])
    assert sent["schema"]["properties"]["verdict"] == {"type": "string", "enum": ["true", "false"]}
    assert "20 characters" in sent["schema"]["properties"]["reason"]["description"], "a bound is said in words"
    assert (completion.usage.requests, fallbacks) == (1, {})


def prompted(asked):
    """A server without schemas whose model follows instructions, in its chatty way."""
    if asked.body.get("response_format"):
        return Reply("should have been refused")
    return Reply(f"Here you are:\n```json\n{GOOD}\n```\nAnything else?")


def test_a_server_that_refuses_schemas_is_prompted_and_not_offered_the_same_one_again():
    with ApiServer(Behaviour(schema="refuse"), rule=prompted) as server:
        completions, fallbacks = complete(server, request("one"), request("two"), request("three"))
        offered = [bool(asked.body.get("response_format")) for asked in server.asked]
        last = server.asked[-1].content
    assert [completion.text for completion in completions] == [GOOD] * 3
    assert offered == [True, False, False, False]
    assert '"enum": ["true", "false"]' in last
    assert "20 characters" in last, "a limit stands in the prompt"
    assert fallbacks == {"json_schema": 3}
    assert [completion.usage.requests for completion in completions] == [2, 1, 1]


@pytest.mark.parametrize(
    ("refusal", "offers"),
    [
        ("response_format of type json_schema is not supported by this model.", 1),
        ("Invalid schema for response_format 'answer': too many states.", 3),
        ("Something about your request is odd.", 3),
    ],
)
def test_where_schemas_as_such_are_refused_no_other_is_offered(monkeypatch, refusal, offers):
    schemas = [{"type": "object", "properties": {name: {"type": "boolean"}}, "required": [name]} for name in "abcde"]

    def rule(asked):
        return Reply(json.dumps(dict.fromkeys("abcde", True)))

    def refuse(self, asked):
        return refusal if asked.body.get("response_format") else None

    monkeypatch.setattr(ApiServer, "refusal", refuse)
    with ApiServer(rule=rule) as server:
        completions, _ = complete(server, *(request("?", schema) for schema in schemas))
        offered = sum(bool(asked.body.get("response_format")) for asked in server.asked)
    assert all(completion.error is None for completion in completions)
    assert offered == offers


def test_an_answer_that_does_not_satisfy_the_schema_is_asked_again_with_what_was_wrong():
    answers = iter(["no json", json.dumps({"verdict": "maybe", "reason": "x"}), GOOD])

    with ApiServer(Behaviour(schema="refuse"), rule=lambda asked: Reply(next(answers))) as server:
        (completion,), _ = complete(server, request("is it?"))
        contents = [asked.content for asked in server.asked[1:]]
    assert completion.text == GOOD
    assert completion.usage.requests == 4
    assert "could not be used" not in contents[0]
    assert "It is not complete JSON." in contents[1]
    assert 'The field "verdict" is "maybe", but must be one of "true", "false".' in contents[2]


def test_json_cut_by_the_token_limit_is_asked_again_with_more_room_and_not_blamed_on_the_server():
    answers = iter([Reply(GOOD[:12], finish_reason="length"), Reply(GOOD)])
    with ApiServer(rule=lambda asked: next(answers)) as server:
        (completion,), fallbacks = complete(server, request("is it?", max_tokens=30))
        first, second = server.asked
    assert completion.text == GOOD
    assert second.body["max_tokens"] > first.body["max_tokens"]
    assert "limit" in second.content
    assert first.body["response_format"] == second.body["response_format"]
    assert fallbacks == {}


@pytest.mark.parametrize("server_does", ["yes", "ignore", "refuse"])
def test_a_text_longer_than_the_schema_allows_is_kept(server_does):
    long = json.dumps({"verdict": "true", "reason": "it warms " * 100, "source": "not asked for"})
    with ApiServer(Behaviour(schema=server_does), rule=lambda asked: Reply(long)) as server:
        (completion,), _ = complete(server, request("is it?"))
    assert completion.text == long


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        (' \n{"a": 1}\n', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('Sure: {"a": 1}. Done', '{"a": 1}'),
        ('<think>{"b": 2}</think>{"a": 1}', '{"a": 1}'),
        ('{"a": 1}\n\nI hope {this} helps.', '{"a": 1}'),
        ('[1] Quotation: "x" {as asked} {"a": [2]} [2]', '{"a": [2]}'),
    ],
)
def test_json_is_found_inside_of_what_models_write(text, found):
    assert satisfying_json(text, {"type": "object", "required": ["a"]}) == found


@pytest.mark.parametrize("text", ["", "none", '{"a": 1', '{"a": "b"}', "[" * 100_000, '{"a": NaN}'])
def test_what_is_no_satisfying_json_is_refused(text):
    with pytest.raises(ValueError, match=r"^(It is not|The answer lacks|The field \"a\")"):
        satisfying_json(text, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


def test_an_answer_that_never_satisfies_the_schema_is_a_failure():
    with ApiServer(Behaviour(schema="refuse"), rule=lambda asked: Reply("{}")) as server:
        (completion,), _ = complete(server, request("is it?"))
    assert completion.error.startswith("No answer in 3 satisfied the schema")
    assert '"verdict", "reason"' in completion.error, "all that is missing, by name"
    assert completion.usage.requests == 4


def test_a_prompt_that_is_too_long_fails_in_the_servers_words_with_a_schema_too():
    with ApiServer() as server:
        (failed, fine), _ = complete(server, request("[[400 too long for this model]]"), request("short"))
        assert server.asked[-1].body.get("response_format"), "the schema is still offered"
    assert failed.error == "The server answered 400: too long for this model."
    assert fine.error is None
