"""Options weighed by a server: where the model goes on with its answer, and only where the options hold the mass."""

import json
import math

import pytest

from api_server import ApiServer, Behaviour, Reply, schema_of
from climassay.evaluation import PromptContext, Setting, TaskPrompts, ask_mcq, mcq_tables, score_mcq
from climassay.models import Message, OptionRequest, OptionScores
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.pacing import RetryPolicy
from climassay.questions import Question

ABCD = (" a", " b", " c", " d")
FLAGS = {"continue_final_message", "add_generation_prompt"}
LETTERS = [(" b", math.log(0.8)), (" a", math.log(0.1)), (" c", math.log(0.05)), (" D", math.log(0.04))]
PROSE = [("Answer", math.log(0.68)), ("A", math.log(0.2)), ("B", math.log(0.05)), ("c", math.log(0.04))]


class Talkative(ApiServer):
    """A model that writes "Answer: b" where it begins and " b" where it goes on from "Answer:".

    Args:
        continues: ``always``, as llama.cpp, ``flagged``, as vLLM, or ``never``.
        strict: Refuse unknown parameters, as OpenAI does.
        echoes: Send the beginning of the answer back with the rest, as llama.cpp does.
        behaviour: Of the server else.
    """

    def __init__(self, continues, *, strict=False, echoes=False, behaviour=None, begins=PROSE):
        super().__init__(behaviour)
        self.continues, self.strict, self.echoes, self.begins = continues, strict, echoes, begins
        self.rule = self.reply

    def refusal(self, asked):
        unknown = sorted(FLAGS & asked.body.keys()) if self.strict else []
        return f"Unrecognized request argument supplied: {unknown[0]}" if unknown else super().refusal(asked)

    def reply(self, asked):
        last = asked.body["messages"][-1]
        flagged = asked.body.get("continue_final_message") and asked.body.get("add_generation_prompt") is False
        if last["role"] == "assistant" and (self.continues == "always" or (self.continues == "flagged" and flagged)):
            text, positions = (" six, seven", []) if "five," in last["content"] else (" b", [LETTERS])
            return Reply(last["content"] + text if self.echoes else text, positions)
        if schema_of(asked.body):
            return Reply(json.dumps({"answer": "b"}))
        if "numbers from one" in asked.content:
            return Reply("one, two, three")
        return Reply("Answer: b", [self.begins])

    def probes(self):
        return [asked for asked in self.asked if "five," in asked.content]


def request(text="Which?", **more):
    return OptionRequest((Message("user", text),), ABCD, "Answer:", **more)


def weigh(server, count=5, **settings):
    client = OpenAIModel("m", base_url=server.url, policy=RetryPolicy(base=0.0, max_attempts=3), **settings)
    try:
        return client.option_logprobs([request(f"Which? {number}") for number in range(count)]), client.capabilities
    finally:
        client.close()


@pytest.mark.parametrize(
    ("continues", "strict", "echoes"),
    [("always", False, False), ("always", False, True), ("always", True, False), ("flagged", False, False)],
)
def test_options_are_weighed_after_the_beginning_of_the_answer_where_the_server_goes_on_with_it(
    continues, strict, echoes, tmp_path
):
    with Talkative(continues, strict=strict, echoes=echoes) as server:
        for _ in range(2):
            scores, known = weigh(server, folder=tmp_path)
            assert {(one.method, one.best) for one in scores} == {("top_logprobs", 1)}
            assert math.exp(scores[0].logprobs[1]) == pytest.approx(0.8)
        assert known.continues
        assert len(server.probes()) == (2 if strict else 1), "found out once, and kept"
        assert bool(FLAGS & set(known.dropped)) is strict
        assert not any("already begins" in asked.content for asked in server.asked)


@pytest.mark.parametrize("strict", [True, False])
def test_without_mass_the_letter_alone_is_asked_for_under_an_enumeration(strict):
    with Talkative("never", strict=strict) as server:
        scores, known = weigh(server)
        enumerated = [schema_of(asked.body) for asked in server.asked if schema_of(asked.body)]
    assert {(one.method, one.best) for one in scores} == {("constrained", 1)}
    assert known.continues is False
    assert len(enumerated) == 5
    assert all(schema["properties"]["answer"]["enum"] == ["a", "b", "c", "d"] for schema in enumerated)


@pytest.mark.parametrize("schema", ["ignore", "refuse"])
def test_without_mass_and_schemas_the_answer_is_read(schema):
    with Talkative("never", behaviour=Behaviour(schema=schema)) as server:
        if schema == "ignore":
            server.completion = lambda asked: ignoring(server, asked)
        scores, known = weigh(server)
    assert {(one.method, one.best) for one in scores} == {("generated", 1)}
    assert known.schema_support != "strict"


def ignoring(server, asked):
    """The completion of a server that does not look at schemas."""
    body = {name: value for name, value in asked.body.items() if name != "response_format"}
    return ApiServer.completion(server, type(asked)(body, asked.headers, asked.prompt, asked.content, asked.attempt))


def test_an_article_is_never_taken_for_a_letter():
    begins = [("The", math.log(0.95)), ("A", math.log(0.02)), ("It", math.log(0.01))]
    with Talkative("never", begins=begins) as server:
        scores, _ = weigh(server)
    assert {one.best for one in scores} == {1}
    assert "top_logprobs" not in {one.method for one in scores}


@pytest.mark.parametrize(("mass", "method"), [(0.45, "constrained"), (0.55, "top_logprobs")])
def test_half_of_the_mass_decides(mass, method):
    begins = [("c", math.log(mass - 0.1)), ("a", math.log(0.1)), ("It", math.log(0.9 - mass))]
    with Talkative("never", begins=begins) as server:
        scores, _ = weigh(server)
    assert {one.method for one in scores} == {method}


def test_a_server_without_log_probabilities_is_not_tried_for_going_on():
    with Talkative("always", behaviour=Behaviour(logprobs="refuse")) as server:
        scores, known = weigh(server)
        assert server.probes() == []
    assert {one.method for one in scores} == {"constrained"}
    assert known.continues is None


def test_a_server_that_goes_on_no_more_is_asked_as_the_others_are():
    def refuse(asked):
        return "Cannot continue." if asked.body["messages"][-1]["role"] == "assistant" else None

    with Talkative("always", begins=[("c", -0.1)]) as server:
        client = OpenAIModel("m", base_url=server.url, policy=RetryPolicy(base=0.0), concurrency=1)
        (first,) = client.option_logprobs([request("one")])
        server.refusal = refuse
        later = client.option_logprobs([request(f"{number}") for number in range(5)])
        client.close()
    assert first.best == 1
    assert {(one.method, one.best) for one in later} == {("top_logprobs", 2)}
    assert client.capabilities.continues is False


def test_mass_is_known_of_weighed_options_only():
    assert OptionScores((math.log(0.3), math.log(0.1)), "exact").mass == pytest.approx(0.4)
    assert OptionScores((0.0, -100.0), "constrained").mass is None
    assert OptionScores.failed("No.").mass is None


DEFAULT = Setting("default", lambda questions, _: [PromptContext() for _ in questions])
QUESTIONS = [
    Question(
        id=f"q{number}", kind="mcq", question=f"Which? {number}", options=("w", "x", "y", "z"), correct=1, answer="x"
    )
    for number in range(6)
]


@pytest.mark.parametrize(("continues", "reading"), [("always", "probability"), ("never", "enumeration")])
def test_results_say_how_each_choice_was_read(continues, reading):
    with Talkative(continues) as server:
        client = OpenAIModel("m", base_url=server.url, policy=RetryPolicy(base=0.0))
        predictions = ask_mcq(QUESTIONS, client, [DEFAULT], TaskPrompts.load(), scorings=("likelihood", "letter"))
        client.close()
    assert {(one.scoring, one.reading, one.correct) for one in predictions} == {
        ("likelihood", reading, True),
        ("letter", "text", True),
    }
    scores = score_mcq(predictions)
    assert scores.accuracy[0].readings == ((reading, 6),)
    shown = "\n".join(" ".join(row) for row in mcq_tables(scores)[0].rows)
    assert ("enumeration 6" in shown) is (reading == "enumeration")
