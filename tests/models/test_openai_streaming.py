"""Answers that a server streams: shown as they are written, and in the end the same as without."""

import json
import threading
from dataclasses import asdict
from itertools import pairwise

import pytest

from api_server import ApiServer, Behaviour
from climassay.models import GenerationRequest, Message, Sampling, StreamingGenerator
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.pacing import RetryPolicy
from climassay.models.openai.replies import BadReplyError, StreamedReply, parse_reply
from climassay.models.servers import Price
from climassay.records import RecordedModel, Records
from climassay.records.recorded_answers import iterate_answers
from climassay.redaction import TrustedUrl
from patience import until

AT_ONCE = RetryPolicy(base=0.0, max_attempts=4)
SAID = "The sea has risen by 0.20 m [1]. It goes on rising [2]."


def request(text=f"[[say {SAID}]]", **sampling):
    return GenerationRequest((Message("user", text),), Sampling(**sampling))


def opened(server, **options):
    return OpenAIModel("test", base_url=server.url, policy=AT_ONCE, **options)


def streamed(model, *requests):
    """Completions, and for each request the texts that were shown."""
    shown = [[] for _ in requests]
    completions = model.generate_stream(requests, on_text=lambda index, text: shown[index].append(text))
    return completions, shown


@pytest.fixture
def serving():
    """Servers of some behaviour, one after the other in a test."""
    servers = []

    def serve(**behaviour):
        servers.append(ApiServer(Behaviour(**behaviour)).__enter__())
        return servers[-1]

    yield serve
    for server in servers:
        server.__exit__()


def test_a_text_grows_in_the_calling_thread_while_the_server_writes(serving):
    go_on = threading.Event()
    server = serving(hold=("It", go_on))
    model, shown, threads = opened(server), [], set()
    assert isinstance(model, StreamingGenerator)

    def show(index, text):
        threads.add(threading.get_ident())
        shown.append((index, text))
        if "[1]." in text:
            go_on.set()

    try:
        [completion] = model.generate_stream([request()], on_text=show)
    finally:
        go_on.set()
        model.close()
    assert completion.text == SAID
    assert threads == {threading.get_ident()}
    assert {index for index, _ in shown} == {0}
    assert "It" not in next(text for _, text in shown if "[1]." in text)
    assert all(later.startswith(earlier) for (_, earlier), (_, later) in pairwise(shown))


def test_a_streamed_answer_is_recorded_like_any_other(tmp_path, serving):
    server = serving()

    def kept(name, ask):
        """What is stored of one request, and how often its text was shown until then and when it was asked again."""
        shown = []
        with Records(f"sqlite:///{tmp_path}/{name}.sqlite") as store, store.run("test", {}) as run:
            model = RecordedModel(opened(server, price=Price(1.0, 2.0)), store, run)
            [completion] = ask(model, shown)
            before = len(shown)
            streamed_again = model.generate_stream([request(max_tokens=40)], on_text=lambda *one: shown.append(one))
            assert streamed_again == model.generate([request(max_tokens=40)]) == [completion]
            [[stored]] = iterate_answers(store.database)
            model.close()
        assert len(shown) == before, "what the records have is given at once"
        return {**asdict(stored), "run": "", "answered_at": ""}, before

    streaming, times = kept(
        "streamed",
        lambda model, shown: model.generate_stream([request(max_tokens=40)], on_text=lambda *one: shown.append(one)),
    )
    whole, never = kept("whole", lambda model, _shown: model.generate([request(max_tokens=40)]))
    assert times > never == 0
    assert streaming == whole
    assert streaming["cost"] > 0
    assert [one.body.get("stream") for one in server.asked] == [True, None]


@pytest.mark.parametrize("fault", ["break", "end-early", "error-in-stream"])
def test_a_stream_that_breaks_is_discarded_and_asked_again_whole(serving, fault):
    server = serving()
    model = opened(server)
    [completion], [shown] = streamed(model, request(f"[[{fault} x1]] [[say {SAID}]]"))
    assert (completion.text, completion.error, completion.usage.requests) == (SAID, None, 2)
    assert shown[-1] == ""
    assert [body.body.get("stream") for body in server.asked] == [True, None]
    [after], [shown] = streamed(model, request("[[say and the next one streams]]"))
    assert after.text == "and the next one streams"
    assert shown
    model.close()


@pytest.mark.parametrize(
    ("behaviour", "asked"),
    [
        ({"refused": ("stream",)}, [(True, True), (False, False), (False, False)]),
        ({"refused": ("stream_options",), "streams": "counted"}, [(True, True), (True, False), (True, False)]),
        ({"streams": "refuse"}, [(True, True), (False, False), (False, False)]),
    ],
    ids=["streams", "usage in streams", "streams, in words about nothing"],
)
def test_what_a_server_refuses_of_a_stream_is_learnt(tmp_path, serving, behaviour, asked):
    server = serving(**behaviour)
    for text in ("first", "second"):
        model = opened(server, folder=tmp_path)
        [completion], _ = streamed(model, request(f"[[say the {text} answer]]"))
        assert completion.text == f"the {text} answer"
        model.close()
    sent = [("stream" in one.body, "stream_options" in one.body) for one in server.asked]
    assert sent[: len(asked)] == asked


def test_a_server_that_does_not_count_streams_is_not_asked_for_them_again(serving):
    server = serving(streams="uncounted")
    model = opened(server)
    [first], _ = streamed(model, request())
    [second], shown = streamed(model, request("[[say counted again]]"))
    assert first.text == SAID
    assert first.usage.completion_tokens == 0
    assert second.usage.completion_tokens == 2
    assert shown == [[]]
    assert model.fallbacks["stream"] == 1
    model.close()


def test_an_answer_that_is_streamed_unasked_is_read(serving):
    model = opened(serving(streams="always"))
    assert model.generate([request()])[0].text == SAID
    model.close()


def test_a_server_that_ignores_the_wish_answers_whole(serving):
    model = opened(serving(streams="ignore"))
    [completion], shown = streamed(model, request())
    assert completion.text == SAID
    assert completion.usage.completion_tokens > 0
    assert shown == [[]]
    model.close()


def test_stops_and_the_start_of_the_answer_are_no_part_of_the_preview(serving):
    model = opened(serving())
    one = GenerationRequest(
        (Message("user", "[[say Answer: it has risen. END and more]]"),),
        Sampling(stop=("END",)),
        assistant_prefix="Answer:",
    )
    [completion], [shown] = streamed(model, one)
    assert model.generate([one]) == [completion]
    assert completion.text == "it has risen. "
    assert shown[-1] == completion.text
    assert not any("END" in text for text in shown)
    model.close()


def test_an_error_of_who_looks_ends_the_call_and_the_connection_goes_on(serving):
    server = serving()
    model = opened(server)

    def look_away(_index, text):
        if "risen" in text:
            raise LookupError(text)

    with pytest.raises(LookupError):
        model.generate_stream([request()], on_text=look_away)
    until(lambda: server.in_flight == 0)
    assert model.generate([request("[[say still there]]")])[0].text == "still there"
    model.close()


def test_the_key_is_never_shown_whole_or_begun(monkeypatch, serving):
    key = "sk-6d3f0c27b1a94e55"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    go_on = threading.Event()
    server = serving(echo_authorization=True, hold=("f0c27b", go_on))
    model, shown = OpenAIModel("test", base_url=TrustedUrl(server.url), policy=AT_ONCE), []

    def show(_index, text):
        shown.append(text)
        if text.startswith("The header is Bearer"):
            go_on.set()

    [completion] = model.generate_stream([request("[[say The header is ]]")], on_text=show)
    assert go_on.is_set()
    assert "repeats the API key" in completion.error
    assert not any("sk" in text for text in shown)
    assert shown[-1] == ""
    model.close()


def events(*choices, usage=None):
    """A stream as bytes."""
    bodies = [{"choices": [choice]} for choice in choices]
    if usage is not None:
        bodies.append({"choices": [], "usage": usage})
    return b"".join(b"data: %s\r\n\r\n" % json.dumps(body, ensure_ascii=False).encode() for body in bodies)


def read(stream, size):
    reply = StreamedReply()
    for start in range(0, len(stream), size):
        reply.add(stream[start : start + size])
    return reply.to_reply()


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_stream_reads_as_the_whole_answer_does_wherever_it_is_cut(size):
    usage = {"prompt_tokens": 7, "completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 20}}
    thought, text = "Let me see.", "Warming by 1.5\u2009°C\u2028has \x85 risks."
    parts = [{"delta": {"role": "assistant", "reasoning_content": thought}}]
    parts += [{"delta": {"content": letter}} for letter in text]
    stream = b": ping\n\nevent: x\n" + events(*parts, {"delta": {}, "finish_reason": "length"}, usage=usage)
    message = {"content": text, "reasoning_content": thought}
    whole = {"choices": [{"message": message, "finish_reason": "length"}], "usage": usage}
    assert read(stream + b"data: [DONE]\n\n", size) == parse_reply(json.dumps(whole).encode())


def test_halves_of_a_character_in_two_pieces_are_joined():
    parts = [{"delta": {"content": half}} for half in ("Ice \ud83e", "\uddca melts")]
    reply, shown = StreamedReply(), []
    for part in parts:
        reply.add(f"data: {json.dumps({'choices': [part]})}\n\n".encode())
        shown.append(reply.text)
    assert shown == ["Ice ", "Ice 🧊 melts"]
    reply.add(events({"delta": {}, "finish_reason": "stop"}))
    assert reply.to_reply().text == "Ice 🧊 melts"


def test_half_a_character_alone_is_kept_as_a_replacement_and_told():
    body = rb'{"choices": [{"message": {"content": "Ice \ud83e melts", "reasoning_content": "\udc00 is odd"}}]}'
    with pytest.warns(UserWarning, match="half a character"):
        reply = parse_reply(body)
    assert (reply.text, reply.reasoning) == ("Ice \ufffd melts", "\ufffd is odd")


@pytest.mark.filterwarnings("ignore:A server sent half a character")
@pytest.mark.parametrize("key", ["", "sk-6d3f0c27b1a94"])
def test_an_answer_with_half_a_character_is_kept_with_and_without_a_key(key, monkeypatch, tmp_path, serving):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    model, asked = opened(serving()), [request("[[say Ice \ud83e melts]]"), request("[[say It \ud83e\uddca melts]]")]
    with Records(f"sqlite:///{tmp_path / 'r.sqlite'}") as store, store.run("ask", {}) as run:
        whole = RecordedModel(model, store, run).generate(asked)
        again = streamed(RecordedModel(model, store, run, use_cache=False), *asked)[0]
    model.close()
    assert [(one.text, one.error) for one in whole] == [("Ice \ufffd melts", None), ("It 🧊 melts", None)]
    assert [one.text for one in again] == [one.text for one in whole]


@pytest.mark.parametrize(
    "stream",
    [
        b"data: {not json\n\n",
        b"data: [1]\n\n",
        b'data: {"choices": [{"delta": 7}]}\n\n',
        b'data: {"choices": {}, "error": {"message": "gone"}}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"",
        events({"delta": {"content": "It rose"}}),
    ],
)
def test_what_is_no_stream_is_a_bad_reply(stream):
    with pytest.raises(BadReplyError):
        read(stream, 1000)
