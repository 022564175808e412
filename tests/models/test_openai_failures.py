"""Limits that pass and accounts that are used up, answers that are not complete, prompts that are shortened."""

import json
from email.utils import formatdate

import pytest

from api_server import ApiServer, Reply
from climassay.errors import ModelError
from climassay.models import GenerationRequest, Message, OptionRequest, Sampling
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.pacing import Clock, RetryPolicy
from climassay.models.openai.prompt_length import is_prompt_truncated
from climassay.models.openai.replies import BadReplyError, StreamedReply, parse_error_reply, parse_reply
from climassay.records import RecordedModel, Records
from command_line import json_of

AT_ONCE = RetryPolicy(base=0.0, max_attempts=4)


def request(text, **sampling):
    return GenerationRequest((Message("user", text),), Sampling(**sampling))


class Refusing(ApiServer):
    """Answers every prompt whose number is in ``refused``, as often as told, with a status, a body and headers."""

    def __init__(self, status, body, headers=None, times=1, refused=("1",)):
        super().__init__(rule=lambda _: Reply("fine"))
        self.refused, self.times, self.response = refused, times, (status, body, headers or {})

    def error(self, asked):
        due = asked.content in self.refused and asked.attempt < self.times
        return self.response if due else None


class Waits:
    """A clock that only notes how long was slept."""

    def __init__(self):
        self.now, self.slept = 0.0, []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def clock(self):
        return Clock(lambda: self.now, lambda: 1_700_000_000.0 + self.now, self.sleep, lambda: 0.5)


def openai_error(message, **more):
    return {"error": {"message": message, "param": None, **more}}


def google_error(delay, quota="GenerateRequestsPerMinutePerProjectPerModel-FreeTier"):
    message = "You exceeded your current quota, please check your plan and billing details."
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]},
        {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": "https://example.org/billing"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    return [{"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}}]


GROQ = "Rate limit reached: Limit 6000, Used 5034. Please try again in 4.77s. Need more tokens? Visit /settings/billing"


@pytest.mark.parametrize(
    ("status", "body", "headers", "seconds"),
    [
        (429, openai_error(GROQ, type="tokens", code="rate_limit_exceeded"), {}, 4.77),
        (429, openai_error(GROQ, type="tokens", code="rate_limit_exceeded"), {"retry-after": "6"}, 6),
        (429, openai_error("Try again in 1m2.5s.", code="rate_limit_exceeded"), {}, 62.5),
        (429, openai_error("Please retry after 6 seconds.", code="429"), {}, 6),
        (429, openai_error("Slow down"), {"retry-after-ms": "2500"}, 2.5),
        (429, google_error("38s"), {}, 38),
        (429, google_error("1.5s"), {}, 1.5),
        (429, {"error": "Too many requests", "retry_after": 12}, {}, 12),
        (429, {"error": {"message": "x", "code": 429, "metadata": {"retry_after_seconds": 7}}}, {}, 7),
        (503, openai_error("Loading"), {"retry-after": formatdate(1_700_000_030, usegmt=True)}, 30),
    ],
)
def test_a_limit_is_waited_for_as_long_as_the_server_says(status, body, headers, seconds):
    time = Waits()
    with Refusing(status, body, headers) as server:
        client = OpenAIModel("m", base_url=server.url, policy=RetryPolicy(), clock=time.clock())
        (answer,) = client.generate([request("1")])
        client.close()
    assert (answer.text, answer.usage.requests) == ("fine", 2)
    assert time.slept == [pytest.approx(seconds)]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            429,
            {"status": 429, "error": "INSUFFICIENT QUOTA", "message": "You exceeded your current limit of requests."},
        ),
        (429, openai_error("You exceeded your current quota, please check your plan and billing details.")),
        (429, openai_error("insufficient_quota is what this is not", type="tokens", code="rate_limit_exceeded")),
        (429, {"message": "Requests rate limit exceeded", "type": "rate_limited", "code": "1300"}),
    ],
)
def test_words_about_quota_and_billing_decide_nothing(status, body):
    with Refusing(status, body, times=2) as server:
        client = OpenAIModel("m", base_url=server.url, policy=AT_ONCE)
        (answer,) = client.generate([request("1")])
        client.close()
    assert (answer.text, answer.usage.requests) == ("fine", 3)


def test_a_limit_that_says_when_it_ends_is_waited_for_more_often_than_a_fault_is_tried_again():
    time = Waits()
    with Refusing(429, google_error("20s"), times=30) as server:
        client = OpenAIModel("m", base_url=server.url, policy=RetryPolicy(max_attempts=3), clock=time.clock())
        (answer,) = client.generate([request("1")])
        client.close()
    assert answer.text == "fine"
    assert sum(time.slept) == 600


USED_UP = [
    (429, openai_error("x", type="insufficient_quota", code="insufficient_quota")),
    (429, openai_error("x", type="insufficient_quota", code="credit_balance_exhausted")),
    (429, openai_error("x", type="insufficient_quota", code=None)),
    (429, openai_error("x", type="billing_not_active")),
    (400, openai_error("x", type="invalid_request_error", code="billing_hard_limit_reached")),
    (400, openai_error("x", type="invalid_request_error", code="blocked_api_access")),
    (429, {"error": {"message": "x", "type": "exceeded_current_quota_error"}}),
    (402, {"error": {"message": "x", "code": 402}}),
    (402, openai_error("x", type="unknown_error", code="invalid_request_error")),
    (402, {"type": "error", "error": {"type": "billing_error", "message": "x"}}),
    (403, openai_error("x", type="new_api_error", code="insufficient_user_quota")),
    (400, {"code": "Arrearage", "message": "x"}),
    (200, {"error": {"message": "x", "code": 402}}),
    (
        200,
        {"choices": [{"finish_reason": "error", "error": {"code": 402, "message": "x"}, "message": {"content": "a"}}]},
    ),
]


def ask_all(server, store, requests):
    """Answers with records, one request after the other."""
    client = OpenAIModel("m", base_url=server.url, concurrency=1)
    try:
        with store.run("test", {}) as run:
            return RecordedModel(client, store, run).generate(requests)
    finally:
        client.close()


@pytest.mark.parametrize(("status", "body"), USED_UP)
def test_a_used_up_account_ends_the_run_at_once_and_keeps_what_was_answered(status, body, tmp_path):
    requests = [request(str(number)) for number in range(40)]
    with Records(f"sqlite:///{tmp_path}/r.sqlite") as store:
        refused = [str(number) for number in range(20, 40)]
        with Refusing(status, body, {"x-should-retry": "true"}, times=99, refused=refused) as server:
            for _ in range(2):
                with pytest.raises(ModelError) as stopped:
                    ask_all(server, store, requests)
            assert "\n" not in str(stopped.value)
            assert len(server.asked) == 22, "the first refusal ends the run, and the next run asks only what is missing"
            server.refused = ()
            answers = ask_all(server, store, requests)
            assert {answer.text for answer in answers} == {"fine"}
            assert len(server.asked) == 42


def body_of(finish, message, **choice):
    return json.dumps({"choices": [{"finish_reason": finish, "message": message, **choice}]}).encode()


@pytest.mark.parametrize("finish", ["stop", "STOP", "eos", "end_turn", "tool_calls", {"type": "stop", "matched": 2}])
def test_answers_that_are_complete(finish):
    assert parse_reply(body_of(finish, {"content": "b"})).finish_reason == "stop"


def test_a_server_that_never_says_why_an_answer_ended_is_believed():
    assert parse_reply(json.dumps({"choices": [{"message": {"content": "b"}}]}).encode()).text == "b"


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_answers_that_a_limit_has_cut(finish):
    assert parse_reply(body_of(finish, {"content": "b"})).finish_reason == "length"


@pytest.mark.parametrize("finish", ["content_filter", "content_filter: SAFETY", "sensitive", "SAFETY", "refusal"])
@pytest.mark.parametrize("message", [{"content": "half"}, {}, None])
def test_answers_that_a_filter_has_withheld_are_not_asked_again(finish, message):
    assert parse_reply(body_of(finish, message)).withholding_reason is not None


@pytest.mark.parametrize(
    "finish", ["error", "abort", "insufficient_system_resource", "network_error", "cancelled", None]
)
def test_an_answer_that_ended_for_another_reason_is_asked_again_and_its_fragment_never_kept(finish, monkeypatch):
    usual = ApiServer.completion

    def completion(self, asked):
        data = usual(self, asked)
        if asked.attempt < 2:
            data["choices"][0] |= {"finish_reason": finish, "message": {"role": "assistant", "content": "It could be"}}
        return data

    monkeypatch.setattr(ApiServer, "completion", completion)
    with ApiServer(rule=lambda _: Reply("fine")) as server:
        client = OpenAIModel("m", base_url=server.url, policy=AT_ONCE)
        shown = []
        whole, streamed = (
            client.generate([request("one")])[0],
            client.generate_stream([request("two")], on_text=lambda _, text: shown.append(text))[0],
        )
        client.close()
    assert [(one.text, one.usage.requests) for one in (whole, streamed)] == [("fine", 3)] * 2


def test_an_answer_that_always_ends_in_an_error_is_a_failure_in_the_servers_words():
    error = {"code": 502, "message": "Upstream idle timeout exceeded"}
    with pytest.raises(BadReplyError, match="Upstream idle timeout exceeded"):
        parse_reply(body_of("error", {"content": "The answer could be (a)"}, error=error))
    with pytest.raises(BadReplyError):
        parse_reply(body_of("stop", None))


@pytest.mark.parametrize("message", [{"message": {"role": "assistant"}}, {"message": {"content": None}}, {}])
def test_thoughts_that_have_used_up_the_limit_get_more_room_also_without_a_message(message, monkeypatch):
    usual = ApiServer.completion

    def completion(self, asked):
        limit = asked.body["max_tokens"]
        if limit >= 2000:
            return usual(self, asked)
        usage = {"prompt_tokens": 50, "completion_tokens": 0, "total_tokens": 50 + limit}
        return {"choices": [{"index": 0, "finish_reason": "length", **message}], "usage": usage}

    monkeypatch.setattr(ApiServer, "completion", completion)
    with ApiServer(rule=lambda _: Reply("fine")) as server:
        client = OpenAIModel("m", base_url=server.url, policy=AT_ONCE)
        (answer,) = client.generate([request("one", max_tokens=20)])
        client.close()
    assert answer.text == "fine"
    assert answer.usage.reasoning_tokens == 20
    assert client.capabilities.is_reasoning_model


ENGLISH = "The ocean takes up about a quarter of the carbon dioxide that people emit every year. " * 1000
CHINESE = "海洋每年吸收人类排放的大约四分之一的二氧化碳。" * 2000
HINDI = "महासागर हर वर्ष मानव उत्सर्जन का लगभग एक चौथाई भाग सोख लेता है। " * 400


@pytest.mark.parametrize(
    ("text", "read", "shortened"),
    [
        (ENGLISH, 50, True),
        (ENGLISH, 2_050, True),
        (ENGLISH, 4_096, True),
        (ENGLISH, 17_000, False),
        (ENGLISH, 14_500, False),
        (ENGLISH, 0, False),
        (CHINESE, 2_050, True),
        (CHINESE, 22_000, False),
        (HINDI, 1_026, True),
        (HINDI, 7_000, False),
        ("Short. " * 400, 50, False),
        ("-" * 90_000, 703, False),
        (" \n" * 45_000 + "End.", 700, False),
        ("aGVsbG8gd29ybGQ" * 6_000, 9_000, False),
    ],
)
def test_a_prompt_of_which_far_too_few_tokens_were_read_was_shortened(text, read, shortened):
    assert is_prompt_truncated([{"role": "user", "content": text}], read) is shortened


class Counting(ApiServer):
    """Reports the tokens of a prompt as ``count`` counts them, from the text and what it shares with earlier ones."""

    def __init__(self, count, rule=None):
        super().__init__(rule=rule or (lambda _: Reply("fine")))
        self.count, self.seen = count, []

    def completion(self, asked):
        data = super().completion(asked)
        shared = max((common(asked.content, earlier) for earlier in self.seen), default=0)
        self.seen.append(asked.content)
        data["usage"] = self.count(len(asked.content) // 4, shared // 4)
        return data


def common(first, second):
    return next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(map(len, (first, second)))
    )


def prompt_usage(prompt, **more):
    return {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1, **more}


def test_answers_to_shortened_prompts_are_failures_that_are_told_once(caplog):
    with Counting(lambda tokens, _: prompt_usage(min(tokens, 2050))) as server:
        client = OpenAIModel("m", base_url=server.url, policy=AT_ONCE, concurrency=1)
        answers = client.generate([request(f"{number} {ENGLISH}") for number in range(3)] + [request("short")])
        client.close()
    assert [answer.error is None for answer in answers] == [False, False, False, True]
    assert all("2,050 tokens" in answer.error for answer in answers[:3])
    assert len(server.asked) == 5, "one request more finds out that the server counts the whole of a prompt"
    assert len([record for record in caplog.records if "tokens of a prompt" in record.message]) == 1
    assert client.fallbacks["shortened prompt"] == 3


@pytest.mark.parametrize(
    "count",
    [
        lambda tokens, cached: prompt_usage(max(1, tokens - cached)),
        lambda tokens, cached: prompt_usage(tokens, prompt_tokens_details={"cached_tokens": cached}),
        lambda tokens, cached: prompt_usage(max(1, tokens - cached), cache_read_input_tokens=cached),
        lambda tokens, cached: prompt_usage(0),
        lambda tokens, cached: None,
    ],
    ids=["uncached only", "openai", "anthropic", "zero", "none"],
)
def test_prompts_that_a_cache_has_are_not_taken_for_shortened_ones(count):
    with Counting(count) as server:
        client = OpenAIModel("m", base_url=server.url, policy=AT_ONCE, concurrency=1)
        answers = client.generate([request(f"{ENGLISH} {number}") for number in range(4)])
        client.close()
    assert [answer.error for answer in answers] == [None] * 4
    assert len(server.asked) <= 5


def test_options_of_a_shortened_prompt_are_no_scores():
    with Counting(lambda tokens, _: prompt_usage(min(tokens, 2050)), rule=None) as server:
        client = OpenAIModel("m", base_url=server.url, policy=AT_ONCE)
        (scores,) = client.option_logprobs([OptionRequest((Message("user", ENGLISH),), ("a", "b"))])
        client.close()
    assert scores.error is not None


def test_errors_say_status_codes_and_waits():
    found = parse_error_reply(json.dumps(google_error("38s")).encode())
    assert (found.status, found.wait, "resource_exhausted" in found.codes) == (429, 38, True)
    assert parse_error_reply(b"try again in 1h2m3s").wait == 3723
    assert parse_error_reply(b"try again in 350ms").wait == pytest.approx(0.35)
    assert parse_error_reply(b"Wait for 2 minutes and 5 seconds, please").wait == 125
    assert parse_error_reply(b"Used 5034 s, 20m tokens a minute").wait is None


def test_a_stream_without_a_reason_for_its_end_is_not_complete():
    stream = StreamedReply()
    stream.add(b'data: {"choices": [{"delta": {"content": "half"}, "finish_reason": null}]}\n\ndata: [DONE]\n\n')
    with pytest.raises(BadReplyError):
        stream.to_reply()


def test_a_command_ends_with_one_sentence_and_goes_on_where_it_was_once_the_account_has_credit(climassay, tmp_path):
    questions = [{"question": f"Which? {n}", "options": ["w", "x", "y", "z"], "answer": "b"} for n in range(12)]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in questions), encoding="utf-8")
    with ApiServer(rule=lambda _: Reply("b")) as server:
        server.error = lambda asked: (
            None if len(server.asked) <= 5 else (429, openai_error("x", code="insufficient_quota"))
        )
        command = ["evaluate", "mcq", str(file), "--scoring", "letter", "--model", "openai:m", "--base-url", server.url]
        code, out, err = climassay(*command, "--concurrency", "1", "--workspace", tmp_path / "w")
        said = err.splitlines()[-1]
        assert (code, out) == (2, ""), err
        assert said.startswith("climassay: ")
        assert "Traceback" not in err
        assert len(server.asked) == 6
        server.error = lambda asked: None
        again = json_of(climassay(*command, "--workspace", tmp_path / "w", "--json"))
    assert (again["tally"]["hits"], again["tally"]["sent"]) == (5, 7)
    assert len(server.asked) == 13
