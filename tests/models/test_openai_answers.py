"""What a server answers: replies read, options weighed by log-probabilities, schemas kept."""

import json
import math
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_server import ApiServer, Behaviour, Reply
from climassay.models import GenerationRequest, Message, OptionRequest, Sampling
from climassay.models.contract import object_schema
from climassay.models.json_answers import extract_valid_json
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.option_scores import named_option, score_options
from climassay.models.openai.pacing import RetryPolicy
from climassay.models.openai.replies import BadReplyError, Position, TopLogprob, parse_error_reply, parse_reply

WORDS = st.sampled_from(
    [
        "choices", "message", "content", "logprobs", "top_logprobs", "token", "logprob", "usage", "prompt_tokens",
        "error", "finish_reason", "refusal",
    ]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=12
)


def check(body):
    try:
        reply = parse_reply(body)
    except BadReplyError as problem:
        sentence = str(problem)
    else:
        check_reply(reply)
        return
    assert sentence.startswith("The server's answer ")
    assert "\n" not in sentence


def check_reply(reply):
    assert isinstance(reply.text, str)
    assert reply.prompt_tokens >= 0
    assert all(-100 <= likely.logprob <= 0 for position in reply.positions for likely in position.top_logprobs)


@given(VALUES, VALUES, VALUES, VALUES)
def test_a_completion_with_anything_in_its_parts_is_a_reply_or_a_sentence(content, logprobs, usage, top):
    entry = {"token": "a", "logprob": -1.0, "top_logprobs": top}
    for given_logprobs in (logprobs, {"content": [entry]}, {"content": logprobs}):
        choice = {"message": {"content": content}, "logprobs": given_logprobs}
        check(json.dumps({"choices": [choice], "usage": usage}).encode())
    check(json.dumps({"choices": [{"message": content}]}).encode())
    check(json.dumps({"choices": [content]}).encode())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "No more tokens"}}', "No more tokens"),
        (b'{"error": "No more tokens"}', "No more tokens"),
        (b'{"detail": "No more\\n tokens"}', "No more tokens"),
        (b'{"message": "No more tokens", "type": "x"}', "No more tokens"),
        (b"No more tokens\n", "No more tokens"),
        (b"", ""),
        (b"<html>\n<head><title>502 Bad Gateway</title></head><body>nginx</body></html>", "502 Bad Gateway"),
        (b"<!DOCTYPE html><body><h1>Not\n found</h1></body>", "Not found"),
        (b'{"code": 3}', '{"code": 3}'),
    ],
)
def test_error_bodies_of_all_kinds(body, message):
    assert parse_error_reply(body).message == message


def test_nonsense_counts_of_tokens_are_unknown():
    usage = {"prompt_tokens": 10**30, "completion_tokens": "many"}
    reply = parse_reply(json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}).encode())
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


ABCD = ("a", "b", "c", "d")


def position(chosen=None, **listed):
    """A position with probabilities by token; the first one is the generated token unless said otherwise."""
    likely = tuple(TopLogprob(token, log(p)) for token, p in listed.items())
    return Position(next((one for one in likely if one.token == chosen), likely[0]), likely)


def probabilities(options, *positions):
    scores = score_options(options, positions)
    return None if scores is None else [pytest.approx(exp(score), abs=1e-9) for score in scores]


EVERY_WAY = {"a": 0.1, " a": 0.1, "A": 0.1, "a)": 0.1, "(a": 0.1, "**A": 0.1, "\u2581a": 0.1, "and": 0.2}


@pytest.mark.parametrize(
    ("options", "listed", "option", "expected"),
    [
        pytest.param(
            "abc", {"b": 0.5, " b": 0.2, "a": 0.2, "The": 0.05}, slice(None), [0.2, 0.7, 0.05], id="docstring"
        ),
        pytest.param(ABCD, EVERY_WAY, slice(1), [0.7], id="all ways to write a letter"),
        pytest.param("ab", {"a": 0.9, "x": 0.06}, slice(1, None), [0.04], id="the floor is what is left"),
        pytest.param("ab", {"a": 0.5, "x": 0.01}, slice(1, None), [0.01], id="or the least likely token"),
        pytest.param(
            ("an increase", "a decrease"), {" a": 0.6, " an": 0.3}, slice(None), [0.3, 0.6], id="whole words win"
        ),
    ],
)
def test_listed_tokens_are_shared_out(options, listed, option, expected):
    assert probabilities(tuple(options), position(**listed))[option] == expected


def test_options_that_begin_alike_are_followed_until_they_part():
    options = ("very likely", "very unlikely", "unlikely")
    first = position(very=0.8, un=0.15)
    second = position(**{" unlikely": 0.75, " likely": 0.2})
    assert probabilities(options, first, second) == [0.8 * 0.2, 0.8 * 0.75, 0.15]


def test_a_bracket_before_the_answer_is_stepped_over():
    assert probabilities(("a", "b"), position(**{"(": 0.9}), position(b=0.7, a=0.2)) == [0.9 * 0.2, 0.9 * 0.7]


def test_lists_that_do_not_decide_give_none():
    assert score_options(ABCD, [position(The=0.9)]) is None, "no option listed"
    options = ("very likely", "very unlikely", "unlikely")
    assert score_options(options, [position(very=0.8)]) is None, "the generated text ends before they part"
    assert score_options(options, [position(un=0.6, very=0.3)]) is None, "they would part off the generated text"
    assert score_options(options, [position(un=0.95, very=0.005)]) is not None, "too little to matter"
    assert score_options(ABCD, []) is None


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", " a", "B", "(c", "The", "d"]), st.floats(0.001, 0.12), min_size=3)
)
def test_no_option_gets_more_than_the_list_can_give(listed):
    scores = score_options(ABCD, [position(**listed)])
    listed_options = sum(p for token, p in listed.items() if token != "The")
    if scores is None:
        assert listed_options < 0.5 + 1e-9
        return
    assert listed_options > 0.5 - 1e-9
    assert all(score <= 0 for score in scores)
    unlisted = [o for o in ABCD if not any(o == t.strip(" (").lower() for t in listed)]
    given_to_listed = sum(exp(s) for o, s in zip(ABCD, scores, strict=True) if o not in unlisted)
    assert given_to_listed == pytest.approx(listed_options)
    floor = min(min(listed.values()), 1 - sum(listed.values()))
    assert all(exp(scores[ABCD.index(o)]) == pytest.approx(floor) for o in unlisted)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Very likely", 1),
        ("I think it is likely.", 0),
        ("It is very likely that it warms.", 1),
        ("It may be likely or unlikely.", None),
        ("no idea", None),
    ],
)
def test_the_words_that_a_generated_answer_names(text, expected):
    assert named_option(text, ("likely", "very likely", "unlikely")) == expected


def request(text, options=ABCD, prefix=""):
    return OptionRequest((Message("user", text),), options, prefix)


def weigh(server, *requests, **settings):
    client = OpenAIModel("test", base_url=server.url, policy=RetryPolicy(base=0.0, max_attempts=3), **settings)
    try:
        return client.option_logprobs(list(requests)), dict(client.fallbacks)
    finally:
        client.close()


def letters(asked):
    return Reply("b", [[("b", math.log(0.6)), (" a", math.log(0.2)), ("A", math.log(0.1)), ("The", math.log(0.04))]])


def test_listed_tokens_become_scores():
    with ApiServer(rule=letters) as server:
        (scores,), fallbacks = weigh(server, request("which?"))
        body = server.asked[0].body
    assert scores.method == "top_logprobs"
    assert [math.exp(logprob) for logprob in scores.logprobs] == pytest.approx([0.3, 0.6, 0.04, 0.04])
    assert scores.best == 1
    assert scores.usage.requests == 1
    assert {name: body[name] for name in ("logprobs", "top_logprobs", "max_tokens", "temperature")} == {
        "logprobs": True,
        "top_logprobs": 20,
        "max_tokens": 1,
        "temperature": 0.0,
    }
    assert fallbacks == {}


@pytest.mark.parametrize("ability", ["ignore", "refuse"])
def test_without_log_probabilities_the_generated_option_is_taken_and_the_probe_is_made_once(ability):
    with ApiServer(Behaviour(logprobs=ability)) as server:
        texts = [f"[[say {letter}) of course]] {number}" for number, letter in enumerate("abcd" * 5)]
        scores, fallbacks = weigh(server, *map(request, texts))
        probes = [asked for asked in server.asked if asked.body.get("logprobs")]
    assert [score.best for score in scores] == [0, 1, 2, 3] * 5
    assert {score.method for score in scores} == {"generated"}
    assert set(scores[0].logprobs) == {0.0, -100.0}
    assert len(probes) == 1
    assert fallbacks == {"logprobs": 20}


def test_a_server_that_lists_fewer_tokens_is_asked_for_fewer():
    with ApiServer(Behaviour(max_top_logprobs=5)) as server:
        scores, _ = weigh(server, request("one"), request("two"))
        asked = [asked.body["top_logprobs"] for asked in server.asked]
    assert {score.method for score in scores} == {"top_logprobs"}
    assert asked == [20, 5, 5]


def test_an_answer_that_names_no_option_is_a_failure_with_the_answer_in_it():
    with ApiServer(Behaviour(logprobs="ignore")) as server:
        (scores,), _ = weigh(server, request("[[say It depends.]]"))
    assert scores.error == "The generated answer names none of the options, or several: 'It depends.'."
    assert scores.best is None
    assert scores.usage.requests == 2


def test_unreadable_log_probabilities_are_retried_and_then_a_failure():
    def broken(asked):
        return Reply("a", [[("a", "very likely")]])

    with ApiServer(rule=broken) as server:
        (scores,), _ = weigh(server, request("which?"))
    assert scores.error.endswith("The server's answer has log-probabilities that cannot be read.")
    assert scores.usage.requests == 3


def test_a_request_without_options_is_a_failure():
    with ApiServer() as server:
        (scores,), _ = weigh(server, request("which?", ()))
        assert scores.error == "The request has no options."
        assert server.asked == []


def test_the_generated_token_counts_when_the_list_leaves_it_out():
    seen = Position(TopLogprob("b", log(0.3)), (TopLogprob("a", log(0.6)),))
    assert probabilities(("a", "b"), seen) == [0.6, 0.3]


SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["true", "false"]}, "reason": {"type": "string", "maxLength": 20}},
    "required": ["verdict", "reason"],
    "additionalProperties": False,
}
GOOD = json.dumps({"verdict": "true", "reason": "it warms"})


def schema_request(text, schema=SCHEMA, max_tokens=None):
    return GenerationRequest((Message("user", text),), Sampling(max_tokens=max_tokens), schema)


def complete(server, *requests):
    client = OpenAIModel("test", base_url=server.url, policy=RetryPolicy(base=0.0, max_attempts=3), concurrency=1)
    try:
        return client.generate(list(requests)), dict(client.fallbacks)
    finally:
        client.close()


def test_the_server_gets_the_schema_and_the_answer_satisfies_it():
    with ApiServer() as server:
        (completion,), fallbacks = complete(server, schema_request("is it?"))
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
        completions, fallbacks = complete(server, schema_request("one"), schema_request("two"), schema_request("three"))
        offered = [bool(asked.body.get("response_format")) for asked in server.asked]
        last = server.asked[-1].content
    assert [completion.text for completion in completions] == [GOOD] * 3
    assert offered == [True, False, False, False]
    assert '"enum": ["true", "false"]' in last
    assert '"maxLength": 20' in last, "a limit stands in the prompt, in no sentence that a small model copies"
    assert fallbacks == {"json_schema": 3}
    assert [completion.usage.requests for completion in completions] == [2, 1, 1]


@pytest.mark.parametrize(
    ("refusal", "offers"),
    [
        ("response_format of type json_schema is not supported by this model.", 1),
        ("Invalid schema for response_format 'answer': too many states.", 3),
        ("Something about your schema_request is odd.", 3),
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
        completions, _ = complete(server, *(schema_request("?", schema) for schema in schemas))
        offered = sum(bool(asked.body.get("response_format")) for asked in server.asked)
    assert all(completion.error is None for completion in completions)
    assert offered == offers


def test_an_answer_that_does_not_satisfy_the_schema_is_asked_again_with_what_was_wrong():
    answers = iter(["no json", json.dumps({"verdict": "maybe", "reason": "x"}), GOOD])

    with ApiServer(Behaviour(schema="refuse"), rule=lambda asked: Reply(next(answers))) as server:
        (completion,), _ = complete(server, schema_request("is it?"))
        contents = [asked.content for asked in server.asked[1:]]
    assert completion.text == GOOD
    assert completion.usage.requests == 4
    assert "could not be used" not in contents[0]
    assert "It is not complete JSON." in contents[1]
    assert 'The field "verdict" is "maybe", but must be one of "true", "false".' in contents[2]


def test_json_cut_by_the_token_limit_is_asked_again_with_more_room_and_not_blamed_on_the_server():
    answers = iter([Reply(GOOD[:12], finish_reason="length"), Reply(GOOD)])
    with ApiServer(rule=lambda asked: next(answers)) as server:
        (completion,), fallbacks = complete(server, schema_request("is it?", max_tokens=30))
        first, second = server.asked
    assert completion.text == GOOD
    assert second.body["max_tokens"] > first.body["max_tokens"]
    assert "limit" in second.content
    assert first.body["response_format"] == second.body["response_format"]
    assert fallbacks == {}


ITEMS = object_schema({"items": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 99}}})
LOOP = '{"items": [' + ", ".join(
    f'"Passage {number} says that the sea level rises by 3 mm a year."' for number in range(40)
)
FEW = '{"items": ["The sea level rises."]}'


class KnowsNoLimits(ApiServer):
    """Refuses schemas with limits of lists, as some providers' strict modes do."""

    def refusal(self, request):
        return "'maxItems' is not permitted." if '"maxItems"' in json.dumps(request.body["response_format"]) else None


@pytest.mark.parametrize(
    ("second", "text", "error"),
    [
        (Reply(FEW), FEW, None),
        (Reply(LOOP, finish_reason="length"), None, "repeats itself"),
        (None, None, "repeats itself"),
    ],
    ids=["ends", "loops again", "the server knows no limits"],
)
def test_json_that_repeats_itself_is_asked_again_once_with_limited_lists_and_less_room(second, text, error):
    """Qwen2.5-Coder 0.5B filled a list with the same quotation until the token limit, three times as long each time."""
    answers = iter([Reply(LOOP, finish_reason="length"), second])
    asked_for = GenerationRequest((Message("user", "Quote."),), Sampling(max_tokens=None), schema=ITEMS)
    with (ApiServer if second else KnowsNoLimits)(rule=lambda asked: next(answers)) as server:
        (completion,), _ = complete(server, asked_for)
        requests = server.asked
    assert len(requests) == 2
    assert completion.error is None if error is None else error in completion.error
    assert text is None or completion.text == text
    assert requests[0].body["max_tokens"] > requests[1].body["max_tokens"] >= 1000
    sent = [asked.body["response_format"]["json_schema"]["schema"]["properties"]["items"] for asked in requests]
    assert [part.get("maxItems") for part in sent] == [None, 3]
    assert "repeated itself" in requests[1].content


def test_after_a_list_without_end_later_requests_have_less_room_and_limited_lists_while_the_server_accepts_them():
    answers = iter([Reply(LOOP, finish_reason="length"), Reply(FEW), Reply(FEW), Reply(FEW)])
    server = KnowsNoLimits(rule=lambda asked: next(answers))
    server.refusal = lambda request: None
    limits = lambda asked: "maxItems" in json.dumps(asked.body["response_format"])  # noqa: E731
    with server:
        client = OpenAIModel("m", base_url=server.url, policy=RetryPolicy(base=0.0))
        try:
            for number in range(2):
                asked_for = GenerationRequest((Message("user", f"Quote {number}."),), Sampling(None), schema=ITEMS)
                client.generate([asked_for])
            assert [limits(asked) for asked in server.asked] == [False, True, True]
            rooms = [asked.body["max_tokens"] for asked in server.asked]
            assert rooms[0] > rooms[1] == rooms[2]
            assert client.capabilities.limits_items
            del server.refusal  # From here on, the server refuses limits.
            [completion] = client.generate([GenerationRequest((Message("user", "Quote."),), Sampling(), schema=ITEMS)])
        finally:
            client.close()
    assert completion.text == FEW
    assert [limits(asked) for asked in server.asked[3:]] == [True, False]
    assert not client.capabilities.limits_items


@pytest.mark.parametrize("server_does", ["yes", "ignore", "refuse"])
def test_a_text_longer_than_the_schema_allows_is_kept(server_does):
    long = json.dumps({"verdict": "true", "reason": "it warms " * 100, "source": "not asked for"})
    with ApiServer(Behaviour(schema=server_does), rule=lambda asked: Reply(long)) as server:
        (completion,), _ = complete(server, schema_request("is it?"))
    assert completion.text == long


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        (' \n{"a": 1}\n', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('Sure: {"a": 1}. Done', '{"a": 1}'),
        ('{"a": 1}\n\nI hope {this} helps.', '{"a": 1}'),
        ('[1] Quotation: "x" {as asked} {"a": [2]} [2]', '{"a": [2]}'),
    ],
)
def test_json_is_found_inside_of_what_models_write(text, found):
    assert extract_valid_json(text, {"type": "object", "required": ["a"]}) == found


LATEX = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\\tau is \\alpha", r"\\tau is \\alpha"),
        (r"\tau, \theta, \times, \text{CO}_2", r"\\tau, \\theta, \\times, \\text{CO}_2"),
        (r"\rho, \rightarrow and \frac{1}{2}", r"\\rho, \\rightarrow and \\frac{1}{2}"),
        (r"\beta, \bar{T}, \boldsymbol{x}", r"\\beta, \\bar{T}, \\boldsymbol{x}"),
        (r"\nu \nabla T \neq 0", r"\\nu \\nabla T \\neq 0"),
        (r"\alpha, \sigma T^4, \(x\), \upsilon", r"\\alpha, \\sigma T^4, \\(x\\), \\upsilon"),
        (r"\tan(x) but\tan example", r"\\tan(x) but\tan example"),
        (r"first\nthen\nnot this\n\nand\tb", r"first\nthen\nnot this\n\nand\tb"),
        (r"a \u03b1 \"b\" c\/d \\frac", r"a \u03b1 \"b\" c\/d \\frac"),
    ],
)
def test_backslashes_of_latex_are_repaired_and_those_of_json_are_kept(written, read):
    text = extract_valid_json('{"a": "' + written + '"}', LATEX)
    assert json.loads(text)["a"] == json.loads('"' + read + '"')


@pytest.mark.parametrize("written", [r"a \b c", r"\u0007", r"x\f"])
def test_control_characters_that_mean_nothing_are_asked_again(written):
    with pytest.raises(ValueError, match="control character"):
        extract_valid_json('{"a": "' + written + '"}', LATEX)


VERDICT = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "verdict": {"enum": ["correct", "partly correct", "wrong"]}},
    "required": ["reason", "verdict"],
}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('Draft: {"reason": "d", "verdict": "wrong"}\nFinal: {"reason": "r", "verdict": "correct"}', "correct"),
        ('{"reason": "r", "verdict": "correct"}\nThe schema was {"type": "object"}', "correct"),
        ('{"reason": "r", "verdict": "Correct"}', "correct"),
        ('{"reason": "r", "verdict": "PARTLY_CORRECT."}', "partly correct"),
        ('{"reason": "r", "verdict": "wrong",}', "wrong"),
        ('{"reason": "a, b,", "verdict": "wrong",\n}', "wrong"),
        ('{"reason": "a\nline", "verdict": "wrong"}', "wrong"),
    ],
)
def test_the_last_object_that_satisfies_the_schema_counts(text, verdict):
    assert json.loads(extract_valid_json(text, VERDICT))["verdict"] == verdict


@pytest.mark.parametrize("verdict", ["incorrect", "right", "correct or wrong", 1])
def test_values_that_an_enumeration_lacks_are_refused(verdict):
    with pytest.raises(ValueError, match="verdict"):
        extract_valid_json(json.dumps({"reason": "r", "verdict": verdict}), VERDICT)


@pytest.mark.parametrize("text", ["", "none", '{"a": 1', '{"a": "b"}', "[" * 100_000, '{"a": NaN}'])
def test_text_without_valid_json_is_refused(text):
    with pytest.raises(ValueError, match=r"^(It is not|The answer lacks|The field \"a\")"):
        extract_valid_json(text, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


def test_an_answer_that_never_satisfies_the_schema_is_a_failure():
    with ApiServer(Behaviour(schema="refuse"), rule=lambda asked: Reply("{}")) as server:
        (completion,), _ = complete(server, schema_request("is it?"))
    assert completion.error.startswith("No answer in 3 satisfied the schema")
    assert '"verdict", "reason"' in completion.error, "all that is missing, by name"
    assert completion.usage.requests == 4


def test_a_prompt_that_is_too_long_fails_in_the_servers_words_with_a_schema_too():
    with ApiServer() as server:
        (failed, fine), _ = complete(server, schema_request("[[400 too long for this model]]"), schema_request("short"))
        assert server.asked[-1].body.get("response_format"), "the schema is still offered"
    assert failed.error == "The server answered 400: too long for this model."
    assert fine.error is None
