import json
import math
from dataclasses import replace

import pytest

from api_server import ApiServer, Reply
from climassay.api import benchmarks
from climassay.errors import InputError, ModelError
from climassay.evaluation import (
    PromptContext,
    Setting,
    TaskPrompts,
    ask_mcq,
    draw_indices,
    mcq_report_sections,
    mcq_tables,
    option_orders,
    score_mcq,
)
from climassay.models import ModelOptions
from climassay.questions import Question, read_questions
from climassay.reporting import DotPlot
from climassay.session import Session
from scripted_model import ScriptedModel

DEFAULT = Setting("default", lambda questions, _: [PromptContext() for _ in questions])


def question(number: int, correct: int = 0, level: str | None = "base", k: int = 4) -> Question:
    options = tuple(f"option {number}.{index}" for index in range(k))
    return Question(
        id=f"q{number}",
        kind="mcq",
        question=f"Question {number}?",
        answer=options[correct],
        level=level,
        options=options,
        correct=correct,
    )


def oracle(questions, known, failing=(), bias=lambda scores: scores):
    """Knows the right option of the questions in ``known(prompt)``; elsewhere it takes the first position."""

    def position(prompt):
        asked = next(q for q in questions if q.question in prompt)
        if asked.id not in known(prompt):
            return None if asked.id in failing else 0
        return ord(next(line[0] for line in prompt.splitlines() if line.endswith(f") {asked.answer}"))) - ord("a")

    def choose(prompt, options):
        place = position(prompt)
        if place is None:
            return RuntimeError("down")
        assert options[place] == f" {chr(97 + place)}"
        return bias([-0.1 if n == place else -3.0 for n in range(len(options))])

    def write(prompt, _schema):
        place = position(prompt)
        return RuntimeError("down") if place is None else f" {chr(97 + place)})"

    return ScriptedModel(choose, write)


def knowing(*ids):
    return lambda _prompt: ids


def test_rotations_put_every_option_everywhere_once():
    orders = option_orders(5, 5, seed=0)
    assert orders[0] == (0, 1, 2, 3, 4)
    for position in range(5):
        assert {order[position] for order in orders} == set(range(5))
    more = option_orders(4, 9, seed=3)
    assert len(set(more)) == 9
    assert more == option_orders(4, 9, seed=3)
    assert len(option_orders(3, 99, seed=0)) == math.factorial(3)
    with pytest.raises(InputError):
        option_orders(4, 0, seed=0)


@pytest.mark.parametrize("scoring", ["likelihood", "letter"])
def test_choices_are_mapped_back_from_permuted_options(scoring):
    questions = [question(n, correct=n % 4) for n in range(6)]
    model = oracle(questions, knowing(*(q.id for q in questions)))
    predictions = ask_mcq(questions, model, [DEFAULT], TaskPrompts.load(), scorings=[scoring], orders=4)
    assert len(predictions) == 24
    assert all(p.correct and p.chosen == questions[int(p.question[1:])].correct for p in predictions)


def test_failures_and_unparsed_are_counted_and_wrong():
    questions = [question(n, correct=1) for n in range(10)]
    model = oracle(questions, knowing("q0", "q1", "q2"), failing={"q9"})
    scores = score_mcq(
        ask_mcq(questions, model, [DEFAULT], TaskPrompts.load(), scorings=["likelihood", "letter"]),
    )
    overall = [row for row in scores.accuracy if row.level == "overall"]
    assert [row.scoring for row in overall] == ["likelihood", "letter"]
    for row in overall:
        assert row.accuracy.n == 10
        assert row.accuracy.value == pytest.approx(0.3)
        assert row.failed == 1
        assert row.baseline == 1.0
        assert row.chance == 0.25


def test_levels_and_paired_test():
    questions = [question(n, correct=1, level="base" if n < 8 else "reasoning") for n in range(12)]
    every = [q.id for q in questions]
    strong = Setting("context", lambda asked, _: [PromptContext(("a passage",)) for _ in asked])
    model = oracle(questions, lambda prompt: every if "a passage" in prompt else ["q0"])
    scores = score_mcq(ask_mcq(questions, model, [DEFAULT, strong], TaskPrompts.load()))
    by_key = {(row.setting, row.level): row for row in scores.accuracy}
    assert by_key["default", "base"].accuracy.n == 8
    assert by_key["default", "reasoning"].accuracy.n == 4
    assert ("default", "hypothetical") not in by_key
    assert by_key["context", "overall"].accuracy.value == 1.0
    (paired,) = scores.paired
    assert (paired.first, paired.second) == ("default", "context")
    assert (paired.first_only, paired.second_only) == (0, 11)
    assert paired.p_value == pytest.approx(2 / 2**11)
    assert paired.test.startswith("McNemar")


def test_position_bias_is_seen():
    questions = [question(n, correct=n % 4) for n in range(8)]
    biased = oracle(questions, knowing())
    scores = score_mcq(ask_mcq(questions, biased, [DEFAULT], TaskPrompts.load(), orders=4))
    (row,) = scores.position
    assert row.picked == (1.0, 0.0, 0.0, 0.0)
    assert row.right == (1.0, 0.0, 0.0, 0.0)
    assert row.consistent == 0.0
    assert row.p_value < 0.001
    assert row.recall_spread == pytest.approx(math.sqrt(3) / 4)
    fair = oracle(questions, knowing(*(q.id for q in questions)))
    (row,) = score_mcq(ask_mcq(questions, fair, [DEFAULT], TaskPrompts.load(), orders=4)).position
    assert row.consistent == 1.0
    assert row.averaged.value == 1.0
    assert row.recall_spread == 0.0
    assert row.p_value == pytest.approx(1.0)


def test_averaging_over_orders_takes_a_constant_position_bias_out():
    questions = [question(n, correct=n % 4) for n in range(8)]

    def bias(scores):
        """The answer is known faintly, and the second position loved."""
        return [0.1 * value + (place == 1) for place, value in enumerate(scores)]

    model = oracle(questions, knowing(*(q.id for q in questions)), bias=bias)
    scores = score_mcq(ask_mcq(questions, model, [DEFAULT], TaskPrompts.load(), orders=4))
    (row,) = scores.position
    assert row.picked[1] == 1.0
    assert row.averaged.value == 1.0
    assert row.averaged.n == 8


def test_interval_speaks_of_questions_not_of_permutations():
    questions = [question(n, correct=n % 4) for n in range(20)]
    model = oracle(questions, knowing(*(f"q{n}" for n in range(10))))
    (row,) = [
        row
        for row in score_mcq(ask_mcq(questions, model, [DEFAULT], TaskPrompts.load(), orders=4)).accuracy
        if row.level == "overall"
    ]
    assert row.accuracy.n == 20
    assert row.accuracy.interval.high - row.accuracy.interval.low > 0.25


def test_likelihood_needs_log_probabilities():
    class Talker:
        name, fingerprint = "talker", "1"
        generate, render, close = ScriptedModel.generate, ScriptedModel.render, ScriptedModel.close

    with pytest.raises(ModelError, match="letter"):
        ask_mcq([question(1)], Talker(), [DEFAULT], TaskPrompts.load())


@pytest.mark.parametrize("parameters", [None, 135_000_000], ids=["of unknown size", "small"])
@pytest.mark.parametrize(
    ("option", "chosen", "method", "unparsed"),
    [("c", 2, "asked again", 0), ("none", None, "", 1)],
)
def test_a_model_is_asked_once_which_option_an_unread_answer_chose(option, chosen, method, unparsed, parameters):
    asked = []

    def write(prompt, schema):
        asked.append(schema)
        return json.dumps({"option": option}) if schema else "The third of them, on reflection"

    model = ScriptedModel(lambda _prompt, options: [0.0 for _ in options], write)
    model.parameters = parameters
    (prediction,) = ask_mcq([question(1, correct=2)], model, [DEFAULT], TaskPrompts.load(), scorings=["letter"])
    assert (prediction.chosen, prediction.method) == (chosen, method)
    assert [schema is None for schema in asked] == [True, False]
    scores = score_mcq([prediction])
    assert [(row.unparsed, row.asked_again) for row in scores.accuracy] == [(unparsed, 1 - unparsed)] * 2


def texts(given, alone):
    """Gives each option log-probabilities from a table, with a question and without one."""
    return ScriptedModel(
        lambda prompt, options: [(given if "Why?" in prompt else alone)[one.strip()] for one in options]
    )


def test_texts_are_scored_as_they_are_by_length_and_against_the_domain_premise():
    #                        chars bytes tokens  sum   /char   /byte  /token   less alone
    # ice                        3     3      1  -3.0  -1.000  -1.000  -3.00    -1.0
    # a warmer deep sea         17    17      4  -8.0  -0.471  -0.471  -2.00    -2.0
    # CO\N{SUBSCRIPT TWO} ...    15    19      4  -7.0  -0.467  -0.368  -1.75    -3.0
    options = (
        "ice",
        "a warmer deep sea",
        "\N{GREEK SMALL LETTER DELTA}\N{GREEK SMALL LETTER DELTA} of the CO\N{SUBSCRIPT TWO}2s",
    )
    given = dict(zip(options, (-3.0, -8.0, -7.0), strict=True))
    alone = dict(zip(options, (-2.0, -6.0, -4.0), strict=True))
    asked = Question(id="q", kind="mcq", question="Why?", answer="ice", options=options, correct=0)
    model = texts(given, alone)
    model.window, model.count_tokens = 100, lambda texts: [len(text.split()) for text in texts]
    scorings = ["text", "text-sum", "text-per-token", "text-per-byte", "text-pmi"]
    predictions = ask_mcq([asked], model, [DEFAULT], TaskPrompts.load(), scorings=scorings, orders=4)
    assert [one.scoring for one in predictions] == scorings
    assert len(model.options) == 2  # what is read with the question serves all, and the premise is asked once
    lengths = {"text": len, "text-sum": lambda _: 1, "text-per-token": lambda text: len(text.split())}
    lengths["text-per-byte"] = lambda text: len(text.encode())
    for one in predictions[:4]:
        expected = [given[option] / lengths[one.scoring](option) for option in options]
        assert one.scores == pytest.approx(expected)
        assert one.chosen == expected.index(max(expected))
    assert predictions[4].scores == pytest.approx((-1.0, -2.0, -3.0))
    assert [one.chosen for one in predictions] == [2, 0, 2, 2, 0]
    assert all(one.logprobs == (-3.0, -8.0, -7.0) for one in predictions)


def test_a_chat_server_is_not_scored_by_texts_that_it_gives_no_log_probabilities_of():
    """A server was asked ten questions without their options, and no free answer named an option."""
    model = texts({}, {})
    model.cancel = lambda threads: None
    with pytest.raises(ModelError, match="--scoring likelihood or letter"):
        ask_mcq([question(1)], model, [DEFAULT], TaskPrompts.load(), scorings=["letter", "text-pmi"])
    assert not model.texts
    assert not model.options


def test_a_model_that_counts_no_tokens_is_not_scored_by_them():
    with pytest.raises(ModelError, match="text-per-byte"):
        ask_mcq([question(1)], texts({}, {}), [DEFAULT], TaskPrompts.load(), scorings=["text-per-token"])


def test_a_premise_that_fails_is_a_failure_of_the_question():
    asked = replace(question(1), question="Why?")
    model = ScriptedModel(lambda prompt, _: [-1.0] * 4 if "Why?" in prompt else RuntimeError("down"))
    (one,) = ask_mcq([asked], model, [DEFAULT], TaskPrompts.load(), scorings=["text-pmi"])
    assert one.error == "down"
    assert one.chosen is None
    assert not one.correct


def test_a_setting_whose_calls_all_failed_has_no_accuracy():
    questions = [question(number) for number in range(3)]
    answered = ask_mcq(questions, oracle(questions, knowing("q0")), [DEFAULT], TaskPrompts.load(), orders=2)
    failed = [replace(one, model="other", error="down", chosen=None, correct=False) for one in answered]
    scores = score_mcq([*answered, *failed])
    assert [row.accuracy is None for row in scores.accuracy] == [False, False, True, True]
    assert [row.failed for row in scores.accuracy] == [0, 0, 6, 6]
    assert (scores.paired, len(scores.position)) == ((), 1)
    row = mcq_tables(scores)[0].rows[-1]
    assert (row[0], row[4:7], row[-1]) == ("other", ("-", "-", "-"), "6")
    [section] = mcq_report_sections(scores, "Choices")
    assert [len(block.dots) for block in section.blocks if isinstance(block, DotPlot)] == [1, 1]


def test_a_limit_draws_by_the_seed_as_experiments_do(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    given = read_questions("primer").of_kind("mcq")
    drawn = {}
    with ApiServer(rule=lambda request: Reply("a")) as server:
        for seed in (0, 1):
            with Session.opened(tmp_path / str(seed), ModelOptions(base_url=server.url)) as session:
                benchmarks.evaluate_choices(
                    "primer", models="openai:test", scorings=["letter"], limit=5, seed=seed, workspace=session
                )
            contents = [request.content for request in server.asked]
            server.asked.clear()
            drawn[seed] = [number for number, one in enumerate(given) if any(one.question in text for text in contents)]
    assert {seed: draw_indices(len(given), 5, seed) for seed in drawn} == drawn
    assert drawn[0] != drawn[1]
