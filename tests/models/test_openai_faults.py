"""The client against a real server that delays, refuses, drops, cuts off and lies."""

import asyncio
import signal
import socket
import threading
from email.utils import formatdate

import pytest

from api_server import ApiServer, Behaviour
from climassay.errors import ModelError
from climassay.models import Completion, GenerationRequest, Message, Sampling, Usage
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.pacing import Clock, RetryPolicy
from climassay.models.servers import Price
from climassay.redaction import TrustedUrl
from patience import reached, until

AT_ONCE = RetryPolicy(base=0.0, max_attempts=4)


def request(text, **sampling):
    return GenerationRequest((Message("user", text),), Sampling(**sampling))


@pytest.fixture(scope="module")
def server():
    with ApiServer() as running:
        yield running


@pytest.fixture
def model(server):
    client = OpenAIModel("test", base_url=server.url, policy=AT_ONCE)
    yield client
    client.close()


class Time:
    """A clock on which sleeping takes no time but counts."""

    def __init__(self, wall=1_700_000_000.0):
        self.seconds = 0.0
        self.slept = []
        self.wall = wall

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)

    def clock(self):
        return Clock(lambda: self.seconds, lambda: self.wall + self.seconds, self.sleep, lambda: 0.5)


def ask_on(time, server, text, policy=None):
    client = OpenAIModel("test", base_url=server.url, policy=policy or RetryPolicy(), clock=time.clock())
    try:
        return client.generate([request(text)])[0]
    finally:
        client.close()


def test_answers_come_in_the_order_of_the_requests_and_each_is_told_once(model):
    told = []
    texts = [f"[[say answer {number}]]" for number in range(200)]
    completions = model.generate([request(text) for text in texts], on_result=lambda i, c: told.append((i, c)))
    assert [completion.text for completion in completions] == [f"answer {number}" for number in range(200)]
    assert dict(told) == dict(enumerate(completions))
    assert len(told) == 200


def test_what_is_sent(server, model):
    messages = (Message("system", "Be brief."), Message("user", "What is sent?"))
    model.generate(
        [GenerationRequest(messages, Sampling(max_tokens=7, temperature=0.5, top_p=0.9, seed=3, stop=("\n",)))]
    )
    body = next(asked.body for asked in server.asked if "What is sent?" in asked.content)
    assert body == {
        "model": "test",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is sent?"}],
        "max_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["\n"],
    }


@pytest.mark.parametrize(
    "fault",
    [
        "500", "502", "503", "529", "408", "409", "429", "drop", "drop-in-body", "truncate", "malformed",
        "empty-choices", "wrong-shape",
    ],
)  # fmt: skip
def test_a_passing_fault_is_survived(model, fault):
    completion = model.generate([request(f"[[say fine]] after two of [[{fault} x2]]")])[0]
    assert (completion.text, completion.error) == ("fine", None)
    assert completion.usage.requests == 3


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("500 Overheated.", "The server answered 500: Overheated."),
        ("truncate", "The server's answer is not JSON (cut off or malformed)."),
        ("wrong-shape", "The server's answer is JSON, but not a chat completion."),
        (
            "other-type",
            'The server\'s answer is a web page ("Gateway"): check the base URL, which usually ends in /v1.',
        ),
    ],
)
def test_a_lasting_fault_is_a_value_that_says_why(model, fault, sentence):
    failed, fine = model.generate([request(f"for good [[{fault}]]"), request("[[say beside it]]")])
    assert failed == Completion.failed(f"No answer after 4 attempts; the last one: {sentence}", Usage(requests=4))
    assert fine.text == "beside it"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_the_server_refuses_for_good_fails_at_once_in_its_words(model, status):
    message = "This model's maximum context length is 4096 tokens"
    failed = model.generate([request(f"[[{status} {message}]]")])[0]
    assert failed.error == f"The server answered {status}: {message}."
    assert failed.usage.requests == 1


def test_a_server_that_never_answers_is_asked_again_and_then_given_up(server):
    patient, impatient = (RetryPolicy(base=0.0, attempt_timeout=0.1, max_attempts=most) for most in (1000, 2))
    client = OpenAIModel("test", base_url=server.url, policy=patient)
    once = client.generate([request("[[hang x1]] [[say late]]")])[0]
    client.close()
    assert once.text == "late"
    assert once.usage.requests >= 2  # More where the machine is so busy that an honest answer is late as well.
    client = OpenAIModel("test", base_url=server.url, policy=impatient)
    always = client.generate([request("[[hang]]")])[0]
    client.close()
    assert always.error == "No answer after 2 attempts; the last one: The server did not answer within 0.1 s."


def test_a_request_ends_at_its_deadline(server):
    time = Time()
    failed = ask_on(time, server, "[[500]]", RetryPolicy(deadline=20.0, base=4.0, cap=8.0, max_attempts=100))
    # Half of 4, 8, 8, 8 ... seconds: after six attempts 2 + 4 + 4 + 4 + 4 + 4 = 22 s have passed.
    assert time.slept == [2.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    assert failed.error == "No answer within 20 s and 6 attempts; the last one: The server answered 500: status 500."


def test_retry_after_as_a_date_is_honoured(server):
    time = Time()
    date = formatdate(time.wall + 40, usegmt=True)
    assert ask_on(time, server, f"[[503 after={date} x1]] [[say back]]").text == "back"
    assert time.slept == [40.0]


def test_a_retry_after_beyond_the_deadline_ends_all_requests_without_sending_them(server):
    time = Time()
    client = OpenAIModel("test", base_url=server.url, concurrency=1, clock=time.clock())
    before = len(server.asked)
    first, second = client.generate([request("[[429 after=3600]]"), request("not sent")])
    client.close()
    waits = "The server asks to wait 3600 s, longer than the deadline of a request allows. "
    assert first.error == f"{waits}The server answered 429: status 429."
    assert second.error == f"{waits}This request was not sent."
    assert (first.usage.requests, second.usage.requests) == (1, 0)
    assert len(server.asked) == before + 1
    assert time.slept == []


def test_no_more_than_the_concurrency_is_under_way():
    with ApiServer(Behaviour()) as patient:
        client = OpenAIModel("test", base_url=patient.url, concurrency=7)
        client.generate([request("the first one goes alone")])
        patient.behaviour, patient.gathered = Behaviour(gather=7), asyncio.Event()
        client.generate([request(f"number {number}") for number in range(60)])
        client.close()
        assert patient.most_in_flight == 7
        assert patient.connections <= 7, "connections are reused"


def test_it_settles_where_the_server_can_follow():
    with ApiServer(Behaviour(latency=0.005, capacity=6)) as small:
        policy = RetryPolicy(base=0.002, max_attempts=1000)
        client = OpenAIModel("test", base_url=small.url, concurrency=64, policy=policy)
        completions = client.generate([request(f"number {number}") for number in range(300)])
        client.close()
    assert all(completion.error is None for completion in completions)
    refused = sum(completion.usage.requests for completion in completions) - len(completions)
    # The first 32 at once are refused together; later on only the probing steps are.
    assert refused < len(completions)


def test_tokens_add_up_and_a_price_gives_a_cost(server):
    client = OpenAIModel("test", base_url=server.url, price=Price(2.0, 10.0))
    completion = client.generate([request("[[say one two three]]")])[0]
    client.close()
    assert completion.usage == Usage(4, 3, 1, pytest.approx((4 * 2.0 + 3 * 10.0) / 1e6))


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [
        (401, "no entry", "Check the API key: the one given in the call"),
        (403, "no entry", "Check the API key: the one given in the call"),
        (404, "no entry", "Check the .*base URL"),
        (404, "The model `test` does not exist", "Check the model's name"),
        (403, "Project has no access to model_not_found", "Check the model's name"),
    ],
)
def test_a_model_that_cannot_answer_at_all_is_one_error_instead_of_many_failures(status, message, advice):
    with ApiServer() as strict:
        client = OpenAIModel("test", base_url=TrustedUrl(strict.url), api_key="k", policy=AT_ONCE)
        with pytest.raises(ModelError, match=f"answered {status}: {message}. {advice}"):
            client.generate([request(f"[[{status} {message}]] {number}") for number in range(50)])
        client.close()
        assert len(strict.asked) <= 64


def test_an_address_where_nothing_listens_is_one_error():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    client = OpenAIModel("test", base_url=url, policy=AT_ONCE)
    with pytest.raises(ModelError, match=rf"The connection to {url} failed: .*\. Start the server"):
        client.generate([request(str(number)) for number in range(10)])
    client.close()


def test_an_error_of_the_listener_ends_the_call(model):
    def listener(index, completion):
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        model.generate([request(str(number)) for number in range(10)], on_result=listener)
    assert model.generate([request("[[say still there]]")])[0].text == "still there"


@pytest.fixture
def heeds_ctrl_c():
    """A shell starts what it runs in the background with Ctrl-C switched off, and Python then leaves it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_cancels_what_is_under_way_and_leaves_the_client_usable(server, model):
    told = []
    first_told = threading.Event()

    def tell(index, _completion):
        told.append(index)
        first_told.set()

    def interrupt():
        reached(first_told)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        model.generate([request("[[hang]]"), request("answered"), request("[[hang]] too")], on_result=tell)
    interrupter.join()
    assert told == [1]
    assert model.generate([request("[[say still there]]")])[0].text == "still there"
    until(lambda: server.in_flight == 0)  # The hanging requests were given up.


def test_the_call_of_one_thread_is_cancelled_and_that_of_another_goes_on(server, model):
    ended, told = [], threading.Event()

    def ask():
        try:
            model.generate([request("answered"), request("[[hang]]")], on_result=lambda *_: told.set())
        except KeyboardInterrupt:
            ended.append("cancelled")

    thread = threading.Thread(target=ask)
    thread.start()
    reached(told)
    model.cancel([threading.get_ident()])
    assert model.generate([request("[[say still there]]")])[0].text == "still there"
    until(lambda: server.in_flight == 1)  # Counted down after the answer was sent.
    model.cancel([thread.ident])
    thread.join()
    assert ended == ["cancelled"]
    until(lambda: server.in_flight == 0)


@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": None, "refusal": "I cannot."}, "stop", (None, "The model refused: I cannot.")),
        ({"content": "half"}, "content_filter", (None, "The server's content filter withheld the answer.")),
        ({"content": [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]}, "stop", ("in parts", None)),
        ({"content": None}, "length", ("", None)),
        ({"content": "cut"}, "length", ("cut", None)),
    ],
)
def test_unusual_messages(monkeypatch, message, finish, expected):
    usual = ApiServer.completion

    def completion(self, asked):
        data = usual(self, asked)
        data["choices"][0] |= {"message": message, "finish_reason": finish}
        return data

    monkeypatch.setattr(ApiServer, "completion", completion)
    with ApiServer() as server:
        client = OpenAIModel("test", base_url=server.url, policy=AT_ONCE)
        answer = client.generate([request("unusual")])[0]
        client.close()
    assert (None if answer.error else answer.text, answer.error) == expected
    assert answer.finish_reason == ("error" if answer.error else finish)
