"""A recorded model asks what is missing, stores before it hands on, and counts."""

import hashlib
import json
import math
import sqlite3

import pytest

from climassay.errors import ModelError, RecordsError
from climassay.models import Completion, GenerationRequest, Message, OptionRequest, OptionScores, Sampling, Usage
from climassay.records import RecordedModel, Records, RequestCounts
from climassay.records.queries import list_runs
from climassay.records.recorded_answers import iterate_answers


class Echo:
    """A model whose every part can be chosen; it notes what it was asked. What is tested is not the model."""

    def __init__(self, fingerprint="f" * 64, name="local:echo", answer=None):
        self.name = name
        self.fingerprint = fingerprint
        self.asked = []
        self.answer = answer or (lambda text: Completion(f"echo of {text}", "stop", Usage(3, 5, 1, 0.25)))
        self.closed = False

    def render(self, messages, assistant_prefix=""):
        return "".join(f"<{m.role}>{m.content}" for m in messages) + f"<assistant>{assistant_prefix}"

    def generate(self, requests, *, on_result=None):
        answers = []
        for index, request in enumerate(requests):
            self.asked.append(request.messages[-1].content)
            answers.append(self.answer(request.messages[-1].content))
            if on_result is not None:
                on_result(index, answers[-1])
        return answers

    def close(self):
        self.closed = True


class Scorer(Echo):
    def option_logprobs(self, requests, *, on_result=None):
        answers = []
        for index, request in enumerate(requests):
            self.asked.append(request.messages[-1].content)
            digest = hashlib.sha256(repr(request).encode()).digest()
            scores = tuple(-0.1 - byte / 7 for byte in digest[: len(request.options)])
            answers.append(OptionScores(scores, "exact", Usage(2, 0, 1)))
            if on_result is not None:
                on_result(index, answers[-1])
        return answers


def ask(text, **sampling):
    return GenerationRequest((Message("user", text),), Sampling(**sampling))


def weigh(text, options=("a", "b")):
    return OptionRequest((Message("user", text),), options)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/records.sqlite"


@pytest.fixture
def store(url):
    with Records(url) as opened:
        yield opened


def answers_of(store):
    return [answer for bundle in iterate_answers(store.database) for answer in bundle]


def test_an_answer_is_asked_once_and_served_from_then_on(url):
    model = Echo()
    for _ in range(2):
        with Records(url) as store, store.run("test", {}) as run:
            recorded = RecordedModel(model, store, run)
            answers = recorded.generate([ask("one"), ask("two")])
            assert [answer.text for answer in answers] == ["echo of one", "echo of two"]
            assert answers[0].usage == Usage(3, 5, 1, 0.25), "a stored answer carries what it cost when it was asked"
    assert model.asked == ["one", "two"]
    assert recorded.tally == RequestCounts(hits=2)


class Streamer(Echo):
    """Shows two texts of each answer, in the opposite order of the requests."""

    def generate_stream(self, requests, *, on_text, on_result=None):
        for part in ("echo", "echo of"):
            for index in reversed(range(len(requests))):
                on_text(index, f"{part} {requests[index].messages[-1].content}")
        return self.generate(requests, on_result=on_result)


def test_previews_of_what_is_asked_reach_every_place_and_change_nothing(store):
    model, shown, told = Streamer(), [], []
    with store.run("test", {}) as run:
        recorded = RecordedModel(model, store, run)
        recorded.generate([ask("b")])
        answers = recorded.generate_stream(
            [ask(text) for text in "abca"],
            on_text=lambda *one: shown.append(one),
            on_result=lambda index, answer: told.append((index, answer.text)),
        )
    assert [answer.text for answer in answers] == [f"echo of {text}" for text in "abca"]
    assert model.asked == ["b", "a", "c"]
    assert sorted(told) == [(index, f"echo of {text}") for index, text in enumerate("abca")]
    parts = [(2, "echo c"), (0, "echo a"), (3, "echo a"), (2, "echo of c"), (0, "echo of a"), (3, "echo of a")]
    assert shown == parts
    assert recorded.tally == RequestCounts(hits=1, sent=3, usage=Usage(9, 15, 3, 0.75))
    assert len(answers_of(store)) == 3


def test_scores_come_back_as_they_were_to_the_last_bit(url):
    requests = [weigh(str(number), tuple("abcd")) for number in range(20)]
    with Records(url) as store, store.run("test", {}) as run:
        first = RecordedModel(Scorer(), store, run).option_logprobs(requests)
    with Records(url) as store, store.run("test", {}) as run:
        model = Scorer()
        assert RecordedModel(model, store, run).option_logprobs(requests) == first
        assert model.asked == []


def test_only_what_is_missing_is_asked_and_every_answer_is_in_its_place(store):
    model = Echo()
    with store.run("test", {}) as run:
        recorded = RecordedModel(model, store, run)
        recorded.generate([ask("b"), ask("d")])
        told = []
        answers = recorded.generate([ask(text) for text in "abcde"], on_result=lambda i, c: told.append((i, c.text)))
    assert [answer.text for answer in answers] == [f"echo of {text}" for text in "abcde"]
    assert model.asked == ["b", "d", "a", "c", "e"]
    assert sorted(told) == [(i, f"echo of {text}") for i, text in enumerate("abcde")]
    assert (recorded.tally.hits, recorded.tally.sent, recorded.tally.failed) == (2, 5, 0)
    assert recorded.tally.usage == Usage(15, 25, 5, 1.25)


def test_equal_requests_of_one_call_are_asked_once(store):
    model = Echo()
    told = []
    with store.run("test", {}) as run:
        recorded = RecordedModel(model, store, run, use_cache=False)
        answers = recorded.generate([ask("x"), ask("y"), ask("x")], on_result=lambda index, _: told.append(index))
    assert [answer.text for answer in answers] == ["echo of x", "echo of y", "echo of x"]
    assert model.asked == ["x", "y"]
    assert sorted(told) == [0, 1, 2]


def test_an_answer_is_in_the_database_when_it_is_handed_on(store, tmp_path):
    """Looked up through a connection of its own, as another process would."""
    missing = []

    def on_result(index, completion):
        with sqlite3.connect(tmp_path / "records.sqlite") as other:
            found = other.execute("SELECT count(*) FROM answers WHERE text = ?", (completion.text,)).fetchone()
        missing.extend([completion.text] * (found[0] != 1))

    with store.run("test", {}) as run:
        RecordedModel(Echo(), store, run).generate([ask(str(n)) for n in range(100)], on_result=on_result)
    assert missing == []


@pytest.mark.parametrize(
    "other",
    [
        ask("text", max_tokens=7),
        ask("text", temperature=0.5),
        ask("text", top_p=0.5),
        ask("text", seed=1),
        ask("text", stop=("\n",)),
        GenerationRequest((Message("user", "text"),), schema={"type": "string"}),
        GenerationRequest((Message("user", "text"),), assistant_prefix="So"),
        GenerationRequest((Message("system", "text"),)),
    ],
)
def test_whatever_changes_a_request_makes_it_another_one(store, other):
    model = Echo()
    with store.run("test", {}) as run:
        RecordedModel(model, store, run).generate([ask("text"), other, ask("text"), other])
    assert len(model.asked) == 2


@pytest.mark.parametrize(("changed", "asked"), [({"fingerprint": "2" * 64}, ["text"]), ({"name": "local:link"}, [])])
def test_the_fingerprint_tells_models_apart_and_the_name_does_not(store, changed, asked):
    one, other = Echo(), Echo(**changed)
    with store.run("test", {}) as run:
        RecordedModel(one, store, run).generate([ask("text")])
        RecordedModel(other, store, run).generate([ask("text")])
    assert (one.asked, other.asked) == (["text"], asked)


def test_a_failed_request_is_stored_counted_and_asked_again(url):
    answers = iter(
        [Completion.failed("It was raining.", Usage(requests=4)), Completion("sunny", "stop", Usage(1, 1, 1))]
    )
    model = Echo(answer=lambda text: next(answers))
    with Records(url) as store:
        with store.run("first", {}) as run:
            recorded = RecordedModel(model, store, run)
            assert recorded.generate([ask("weather?")])[0].error == "It was raining."
            assert (recorded.tally.sent, recorded.tally.failed) == (1, 1)
        with store.run("second", {}) as run:
            assert RecordedModel(model, store, run).generate([ask("weather?")])[0].text == "sunny"
        with store.run("third", {}) as run:
            assert RecordedModel(model, store, run).generate([ask("weather?")])[0].text == "sunny"
        kept = answers_of(store)
        runs = list_runs(store.database)
    assert [(answer.outcome, answer.error, answer.text, answer.attempts) for answer in kept] == [
        ("error", "It was raining.", None, 4),
        ("stop", None, "sunny", 1),
    ]
    assert [(run.sent, run.failed, run.served) for run in runs] == [(1, 1, 0), (1, 0, 0), (0, 0, 1)]


def test_asking_afresh_stores_a_new_answer_that_is_served_from_then_on(store):
    numbers = iter(range(10))
    model = Echo(answer=lambda text: Completion(f"answer {next(numbers)}", "stop"))
    with store.run("test", {}) as run:
        cached, fresh = RecordedModel(model, store, run), RecordedModel(model, store, run, use_cache=False)
        texts = [one.generate([ask("x")])[0].text for one in (cached, cached, fresh, cached)]
    assert texts == ["answer 0", "answer 0", "answer 1", "answer 1"]


def test_a_score_that_is_not_a_number_is_a_failure(store):
    class Broken(Scorer):
        def option_logprobs(self, requests, *, on_result=None):
            on_result(0, OptionScores((math.nan, -1.0), "exact", Usage(1, 0, 1)))
            on_result(1, OptionScores((-math.inf, -1.0), "exact", Usage(1, 0, 1)))

    with store.run("test", {}) as run:
        scores = RecordedModel(Broken(), store, run).option_logprobs([weigh("one"), weigh("two")])
    assert {score.error for score in scores} == {"The model returned a log-probability that is not a finite number."}
    assert [answer.outcome for answer in answers_of(store)] == ["error", "error"]


@pytest.mark.parametrize("text", ["a\x00b", "half of a pair \ud83d", "whole \U0001f600", "", "µ²\u2028"])
def test_texts_that_databases_cannot_hold_are_handed_on_as_they_are_stored(url, text):
    model = Echo(answer=lambda asked: Completion(text, "stop"))
    answers = []
    for _ in range(2):
        with Records(url) as store, store.run("test", {}) as run:
            answers += RecordedModel(model, store, run).generate([ask("prompt " + text)])
    assert answers[0] == answers[1]
    assert answers[0].text == text.replace("\x00", "\ufffd").replace("\ud83d", "\ufffd")
    assert len(model.asked) == 1


@pytest.mark.parametrize(("error", "status"), [(ModelError("Gone."), "failed"), (KeyboardInterrupt(), "interrupted")])
def test_a_call_that_breaks_or_is_interrupted_leaves_what_was_answered(url, error, status):
    def answer(text):
        if text == "c":
            raise error
        return Completion(text.upper(), "stop")

    with Records(url) as store, pytest.raises(type(error)), store.run("test", {}) as run:
        RecordedModel(Echo(answer=answer), store, run).generate([ask(text) for text in "abcd"])
    with Records(url) as store:
        assert [answer.text for answer in answers_of(store)] == ["A", "B"]
        assert [run.status for run in list_runs(store.database)] == [status]


def test_a_model_that_forgets_a_request_is_an_error(store):
    class Forgetful(Echo):
        def generate(self, requests, *, on_result=None):
            on_result(0, Completion("only this", "stop"))
            return []

    with store.run("test", {}) as run, pytest.raises(ModelError, match="did not answer 1 of 2 requests"):
        RecordedModel(Forgetful(), store, run).generate([ask("one"), ask("two")])


def test_a_model_without_log_probabilities_says_so(store):
    with store.run("test", {}) as run, pytest.raises(ModelError, match="cannot score options"):
        RecordedModel(Echo(), store, run).option_logprobs([weigh("x")])


def test_nothing_is_handed_on_that_could_not_be_stored(store, tmp_path):
    """The table of answers is taken away while the model answers."""
    told = []

    def answer(text):
        with sqlite3.connect(tmp_path / "records.sqlite") as other:
            other.execute("DROP TABLE IF EXISTS answers")
        return Completion("lost", "stop")

    with store.run("test", {}) as run:
        recorded = RecordedModel(Echo(answer=answer), store, run, use_cache=False)
        with pytest.raises(RecordsError, match="no such table"):
            recorded.generate([ask("x")], on_result=lambda *_: told.append(1))
    assert told == []


def test_answers_belong_to_an_open_run(store):
    with store.run("test", {}) as run:
        recorded = RecordedModel(Echo(), store, run)
    with pytest.raises(RecordsError, match="is not open"):
        recorded.generate([ask("x")])


@pytest.mark.faults
def test_thousands_of_requests_are_looked_up_and_prompts_are_kept_once(url, tmp_path):
    requests = [ask(f"a prompt that is long enough to weigh something {n}") for n in range(3000)]
    for expected in (3000, 0):
        with Records(url) as store, store.run("test", {}) as run:
            recorded = RecordedModel(Echo(), store, run)
            recorded.generate(requests)
            assert recorded.tally.sent == expected
    with Records(url) as store, store.run("test", {}) as run:
        RecordedModel(Echo(), store, run, use_cache=False).generate(requests)
    with sqlite3.connect(tmp_path / "records.sqlite") as other:
        counts = {
            table: other.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("texts", "requests", "answers", "uses")
        }
    # One text for each prompt and one for the sampling settings that all share.
    assert counts == {"texts": 3001, "requests": 3000, "answers": 6000, "uses": 3000}


def test_the_key_is_the_hash_of_what_it_says(store):
    model = Echo()
    with store.run("test", {}) as run:
        RecordedModel(model, store, run).generate([ask("text")])
    (kept,) = answers_of(store)
    settings = {
        "sampling": {"max_tokens": 256, "seed": 0, "stop": [], "temperature": 0.0, "top_p": 1.0},
        "schema": None,
    }
    settings = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    identity = ["generate", "f" * 64, "<user>text<assistant>", settings]
    assert kept.key == hashlib.sha256(json.dumps(identity, separators=(",", ":")).encode()).hexdigest()


def test_a_model_that_does_not_stream_is_asked_without(store):
    with store.run("test", {}) as run:
        [answer] = RecordedModel(Echo(), store, run).generate_stream([ask("a")], on_text=pytest.fail)
    assert answer.text == "echo of a"


def test_an_answer_that_runs_share_goes_with_the_last_of_them(store):
    ids = []
    for texts in (["shared", "of the first"], ["shared"], ["shared", "of the last"]):
        with store.run("test", {}) as run:
            RecordedModel(Echo(), store, run).generate([ask(text) for text in texts])
        ids.append(run.id)
    for run_id, remaining in zip(ids, (["of the last", "shared"], ["of the last", "shared"], []), strict=True):
        store.forget(run_id)
        assert sorted((answer.text or "").removeprefix("echo of ") for answer in answers_of(store)) == remaining
    with store.database.read() as connection:
        assert not connection.exec_driver_sql("SELECT body FROM texts").all()
        assert not connection.exec_driver_sql("SELECT run FROM uses").all()
