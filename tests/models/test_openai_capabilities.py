"""Who a server is and what it can do: address, fingerprint, and abilities learnt from its answers and kept."""

import json
import threading

import pytest

from api_server import ApiServer, Behaviour, Reply, by_hash
from climassay.errors import ModelError
from climassay.models import GenerationRequest, Message, OptionRequest, Sampling
from climassay.models.openai.capabilities import FILE_NAME, MIN_CONTRADICTIONS, CapabilityTracker, rejected_parameters
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.pacing import RetryPolicy
from climassay.models.openai.replies import parse_error_reply, parse_window
from climassay.records import RecordedModel, Records

AT_ONCE = RetryPolicy(base=0.0, max_attempts=3)
SENT = {
    "model": "m", "messages": [], "max_tokens": 7, "temperature": 0.0, "seed": 0, "stop": ["\n"], "logprobs": True,
    "top_logprobs": 20, "response_format": {},
}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["yes", "no"]}}, "required": ["a"]}


def request(text, schema=None, **sampling):
    return GenerationRequest((Message("user", text),), Sampling(**sampling), schema)


def options(text):
    return OptionRequest((Message("user", text),), ("a", "b", "c", "d"))


def model(server, **settings):
    return OpenAIModel(
        "test", base_url=server.url, policy=AT_ONCE, concurrency=settings.pop("concurrency", 1), **settings
    )


def fault(message, **more):
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        (fault("You are not allowed to request logprobs from this model"), {"logprobs"}),
        (fault("No.", param="max_tokens", code="unsupported_parameter"), {"max_tokens"}),
        (fault("Invalid schema.", param="response_format.json_schema.schema"), {"response_format"}),
        ([{"error": {"code": 400, "message": 'Unknown name "seed": Cannot find field.', "status": "X"}}], {"seed"}),
        ({"detail": [{"type": "extra_forbidden", "loc": ["body", "logprobs"], "msg": "no"}]}, {"logprobs"}),
        ({"message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "no"}]}}, {"seed"}),
        ({"type": "error", "error": {"message": "stop_sequences: each must contain non-whitespace"}}, {"stop"}),
        ({"error": {"code": "BadRequest", "message": "logprobs is not enabled for this model"}}, {"logprobs"}),
        (fault("Incorrect API key provided", code="invalid_api_key"), set()),
        (fault("This model's maximum context length is 4096 tokens.", param="messages"), set()),
        (fault("The model `m` does not exist", code="model_not_found"), set()),
        (fault("Your organisation must be verified to use this model."), set()),
    ],
)
def test_a_refusal_is_understood_in_every_providers_form(body, parameters):
    assert rejected_parameters(SENT, parse_error_reply(json.dumps(body).encode())) == parameters


class Thinking(ApiServer):
    """A server with the manners of a reasoning model: much is refused, thoughts are counted and not shown."""

    def __init__(self, text, thoughts=300, told=True):
        super().__init__(rule=lambda _: Reply(text))
        self.thoughts, self.told = thoughts, told

    def error(self, request):
        body = request.body
        if body.get("logprobs"):
            return 403, fault("You are not allowed to request logprobs from this model")
        if "max_tokens" in body:
            return 400, fault("Use 'max_completion_tokens' instead.", param="max_tokens", code="unsupported_parameter")
        if body.get("temperature", 1) != 1 or "stop" in body:
            name = "stop" if "stop" in body else "temperature"
            return 400, fault(f"Unsupported: '{name}'.", param=name, code="unsupported_value")
        return None

    def completion(self, request):
        data = super().completion(request)
        choice, limit = data["choices"][0], request.body.get("max_completion_tokens", 10**6)
        words = choice["message"]["content"].split()
        kept = words[: max(0, limit - self.thoughts)]
        if len(kept) < len(words):
            choice["finish_reason"] = "length"
        choice["message"]["content"] = " ".join(kept)
        data["usage"]["completion_tokens"] = min(limit, len(kept) + self.thoughts)
        if self.told:
            data["usage"]["completion_tokens_details"] = {"reasoning_tokens": min(limit, self.thoughts)}
        return data


@pytest.mark.parametrize("told", [True, False])
def test_a_reasoning_model_answers_and_its_thoughts_are_counted(told):
    with Thinking("Yes it is. And more.", told=told) as server:
        client = model(server)
        first, second = client.generate([request("one", max_tokens=20, stop=(" And",)), request("two", max_tokens=20)])
        (scores,) = client.option_logprobs([OptionRequest((Message("user", "?"),), ("yes it is", "no"))])
        client.close()
    assert (first.text, first.finish_reason) == ("Yes it is.", "stop"), "what the server does not stop is cut here"
    assert second.text == "Yes it is. And more."
    assert second.usage.requests == 1, "what is refused is found out once"
    assert second.usage.reasoning_tokens == pytest.approx(300, abs=5)
    assert second.usage.completion_tokens == 305
    assert (scores.method, scores.best) == ("generated", 0)
    assert (client.capabilities.logprobs, client.capabilities.logprobs_status) == ("refused", 403)
    assert client.capabilities.is_reasoning_model


class Padding(ApiServer):
    """Counts spaces and line breaks between the parts of JSON that its answers no longer have, as llama.cpp does."""

    def completion(self, request):
        data = super().completion(request)
        data["usage"]["completion_tokens"] = 80
        return data


@pytest.mark.parametrize(("text", "thinks"), [('{"verdict": "true"}', False), ("true", True)])
def test_tokens_that_are_missing_in_json_are_no_thoughts(text, thinks):
    """Qwen2.5-Coder 0.5B passed for a model that thinks: its options were named, not scored, and its room grew."""
    with Padding(rule=lambda asked: Reply(text)) as server:
        client = model(server)
        (answer,) = client.generate([request("one", max_tokens=50)])
        client.close()
    assert bool(answer.usage.reasoning_tokens) == thinks
    assert client.capabilities.is_reasoning_model == thinks


def test_more_thoughts_than_room_are_given_more_and_that_is_remembered(tmp_path):
    with Thinking("Yes it is.", thoughts=20_000) as server:
        for asked, requests in (("one", None), ("two", 1)):
            client = model(server, folder=tmp_path)
            (answer,) = client.generate([request(asked, max_tokens=20)])
            client.close()
            assert answer.text == "Yes it is."
            assert requests is None or answer.usage.requests == requests
            assert answer.usage.reasoning_tokens >= 20_000, "all that was thought is counted"


def test_an_answer_that_is_too_long_by_itself_is_not_asked_again():
    with Thinking("word " * 20_000, thoughts=10) as server:
        client = model(server)
        client.generate([request("first", max_tokens=5)])
        before = len(server.asked)
        (answer,) = client.generate([request("[[say on]]", max_tokens=5)])
        client.close()
        assert len(server.asked) == before + 1
    assert answer.finish_reason == "length"


def test_what_is_known_is_kept_and_forgotten_on_demand(tmp_path):
    with ApiServer(Behaviour(logprobs="refuse", schema="ignore", refused=("seed",)), rule=answering) as server:
        client = model(server, folder=tmp_path)
        client.generate([request("one", SCHEMA)])
        client.option_logprobs([options("two")])
        client.close()
        known = client.capabilities
        assert (known.logprobs, known.logprobs_status, known.schema_support, known.dropped) == (
            "refused", 400, "ignored", ("seed",),
        )  # fmt: skip
        again = model(server, folder=tmp_path)
        assert again.capabilities == known
        before = len(server.asked)
        again.generate([request("three", SCHEMA)])
        again.option_logprobs([options("four")])
        assert len(server.asked) == before + 2, "nothing is found out twice"
        again.forget_capabilities()
        again.close()
        assert model(server, folder=tmp_path).capabilities == type(known)()


def answering(asked):
    return Reply('{"a": "yes"}' if "JSON schema" in asked.content else "b")


def test_what_is_known_is_learnt_anew_when_contradicted(tmp_path):
    with ApiServer() as server:
        client = model(server, folder=tmp_path)
        client.generate([request("one", SCHEMA)])
        client.option_logprobs([options("two")])
        client.close()
        assert (client.capabilities.logprobs, client.capabilities.schema_support) == ("given", "strict")
        server.behaviour = Behaviour(logprobs="refuse", schema="refuse")
        server.rule = answering
        changed = model(server, folder=tmp_path)
        answers = changed.generate([request(f"three {number}", SCHEMA) for number in range(MIN_CONTRADICTIONS)])
        scores = changed.option_logprobs([options(f"four {number}") for number in range(MIN_CONTRADICTIONS)])
        changed.close()
    assert {answer.text for answer in answers} == {'{"a": "yes"}'}
    assert {score.method for score in scores} == {"generated"}
    assert (changed.capabilities.logprobs, changed.capabilities.schema_support) == ("refused", "refused")


def once_odd(asked):
    """No log-probabilities and prose where the prompt is odd; JSON all the same where the schema stands in it."""
    if "JSON schema" in asked.content:
        return Reply('{"a": "yes"}')
    return Reply("b") if "odd" in asked.content else by_hash(asked)


@pytest.mark.parametrize("odd", ["[[404 x1]]", "[[404 x2]]", "odd"])
def test_one_odd_answer_does_not_undo_what_earlier_ones_have_shown(odd, tmp_path):
    with ApiServer(rule=once_odd) as server:
        client = model(server, folder=tmp_path)
        client.generate([request("first", SCHEMA)])
        for number in range(2 * MIN_CONTRADICTIONS):
            (before,) = client.option_logprobs([options(f"{number}")])
            (strange,) = client.option_logprobs([options(f"{odd} {number}")])
            (answer,) = client.generate([request(f"{number}", SCHEMA)])
            (other,) = client.generate([request(f"{odd} {number}", SCHEMA)])
            assert before.method == "top_logprobs"
            assert strange.method == {"[[404 x1]]": "top_logprobs", "[[404 x2]]": "constrained"}.get(odd, "generated")
            assert not answer.error
            assert not other.error
            assert (client.capabilities.logprobs, client.capabilities.schema_support) == ("given", "strict")
            assert not client.capabilities.refused_schemas
        client.close()
    assert client.fallbacks["logprobs asked again"] == 2 * MIN_CONTRADICTIONS


def test_several_writers_keep_what_each_has_learnt(tmp_path):
    known = [CapabilityTracker("http://host/v1", f"model {number}", tmp_path) for number in range(8)]
    other = CapabilityTracker("http://host/v1", "model 0", tmp_path)
    jobs = [threading.Thread(target=one.note_window, args=(number + 1000,)) for number, one in enumerate(known)]
    jobs.append(threading.Thread(target=other.note_logprobs, args=("given",)))
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    read = [CapabilityTracker("http://host/v1", f"model {number}", tmp_path).capabilities for number in range(8)]
    assert [one.window for one in read] == [1000 + number for number in range(8)]
    assert read[0].logprobs == "given"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"http://host/v1": {"m": {"schema_support": "of another version"}}}', '{"http://host/v1": 3}'],
)
def test_a_file_that_does_not_fit_is_nothing_known(tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)
    knowledge = CapabilityTracker("http://host/v1", "m", tmp_path)
    assert knowledge.capabilities.schema_support is None
    knowledge.note_schema_support("strict", SCHEMA)
    assert CapabilityTracker("http://host/v1", "m", tmp_path).capabilities.schema_support == "strict"


def test_a_window_that_the_answer_does_not_fit_into_is_learnt_and_kept_to(monkeypatch):
    def refuse(self, asked):
        limit = asked.body.get("max_tokens", 0)
        return (
            f"This model's maximum context length is 1000 tokens. However, you requested {limit + 30} tokens "
            f"(30 in the messages, {limit} in the completion)."
            if limit + 30 > 1000
            else None
        )

    monkeypatch.setattr(ApiServer, "refusal", refuse)
    with ApiServer(rule=lambda asked: Reply("fine")) as server:
        client = model(server)
        first, second = client.generate([request("one", max_tokens=4000), request("two", max_tokens=4000)])
        client.close()
    assert (first.text, second.text) == ("fine", "fine")
    assert (first.usage.requests, second.usage.requests) == (2, 1)
    assert client.window == 1000


@pytest.mark.parametrize("text", ["<think>a or b?</think>\n\nb", "a or b?</think>b"])
def test_thoughts_aloud_are_no_part_of_the_answer(text):
    with ApiServer(rule=lambda asked: Reply(text)) as server:
        client = model(server)
        (answer,) = client.generate([request("one", stop=("\n\n",))])
        client.close()
    assert answer.text == "b"
    assert answer.usage.reasoning_tokens > 0


def test_reasoning_effort_is_sent_and_left_out_where_it_is_refused():
    with ApiServer() as server:
        client = model(server, reasoning_effort="low")
        client.generate([request("one")])
        client.close()
        assert server.asked[0].body["reasoning_effort"] == "low"
    with ApiServer(Behaviour(refused=("reasoning_effort",))) as server:
        client = model(server, reasoning_effort="low")
        (answer,) = client.generate([request("one")])
        client.close()
    assert answer.error is None
    assert client.capabilities.dropped == ("reasoning_effort",)


@pytest.mark.parametrize(
    "message",
    [
        "System role not supported",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    ],
)
def test_a_model_without_a_system_role_gets_its_instructions_from_the_user(message, tmp_path):
    messages = (Message("system", "Answer with one word."), Message("user", "Which gas?"))
    with ApiServer(Behaviour(system_refusal=message), by_hash) as server:
        for _ in range(2):
            client = model(server, folder=tmp_path)
            assert client.generate([GenerationRequest(messages, Sampling(max_tokens=7))])[0].error is None
            client.close()
        sent = [one.body["messages"] for one in server.asked]
    assert [len(one) for one in sent] == [2, 1, 1]
    assert sent[1] == sent[2] == [{"role": "user", "content": "Answer with one word.\n\nWhich gas?"}]


def test_what_changes_answers_is_part_of_the_fingerprint():
    def fingerprint(**settings):
        return OpenAIModel("m", base_url="http://localhost/v1", **settings).fingerprint

    settings = [{}, {"reasoning_effort": "low"}, {"reasoning_effort": "high"}, {"max_output_tokens": 9}]
    assert len({fingerprint(**one) for one in settings}) == len(settings)


def test_a_limit_of_all_answers_stands_in_place_of_the_requests_own():
    with ApiServer() as server:
        client = model(server, max_output_tokens=9)
        client.generate([request("one", max_tokens=5000), request("two", SCHEMA, max_tokens=None)])
        client.close()
        assert {asked.body["max_tokens"] for asked in server.asked} == {9}


@pytest.mark.parametrize(
    ("body", "window"),
    [
        ({"data": [{"id": "m", "max_model_len": 32768}, {"id": "n", "max_model_len": 1}]}, 32768),
        ({"data": [{"id": "gguf", "meta": {"n_ctx_train": 4096}}]}, 4096),
        ({"data": [{"id": "m", "context_length": 200_000}]}, 200_000),
        ({"models": [{"name": "m", "model": "m", "context_length": 8192}]}, 8192),
        ({"data": [{"id": "other", "max_model_len": 32768}]}, None),
        ({"data": [{"id": "m"}]}, None),
        ([], None),
        ("x", None),
    ],
)
def test_the_window_is_read_where_servers_tell_it(body, window):
    assert parse_window(json.dumps(body).encode(), "m") == window


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
    assert [(tally.sent, tally.hits) for tally in tallies] == [(1, 0), (0, 1)]


def tally_of(provider, folder):
    """What asking the question in a workspace comes to."""
    with Records(f"sqlite:///{folder}/records.sqlite") as store, store.run("test", {}) as run:
        model = RecordedModel(OpenAIModel("m", provider=provider, folder=folder), store, run)
        (answer,) = model.generate([QUESTION])
        model.close()
    assert answer.error is None
    return model.tally
