"""A server that lies, met by whole commands: failures are counted, the command ends, and only they are asked again."""

import csv
import json

import pytest

from api_server import ApiServer
from climassay.models.openai.pacing import RetryPolicy
from command_line import done

LIES = (
    "500", "503", "404 gone", "400 no", "drop", "drop-in-body", "truncate", "malformed", "empty-choices", "wrong-shape",
    "hang", "error-200", "null", "number", "list", "no-content", "nan", "bad-token", "half-character", "deep",
    "other-type",
)  # fmt: skip
"""Each is the answer to one question, again and again."""
HONEST = 6


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Two attempts without waiting: what is tested is what comes of a failure, not how long it takes.

    Silence is waited for long enough that an honest answer on a busy machine is none.
    """
    policy = RetryPolicy(base=0.0, max_attempts=2, attempt_timeout=4.0)
    monkeypatch.setattr("climassay.models.openai.client.RetryPolicy", lambda: policy)


def write_questions(path, orders):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Question", "Options", "Answer", "Context", "Complexity", "Validation"])
        for number, order in enumerate(orders):
            options = "\n".join(f"{letter}) Reason {number}{letter}" for letter in "abcd")
            writer.writerow([f"Which reason explains number {number}? {order}", options, "b", "", "BASE", "VALID"])


@pytest.fixture
def questions(tmp_path):
    """Honest questions first, so that the server has proven itself when it begins to lie."""
    file = tmp_path / "questions.csv"
    # What the server refuses for good, and an answer without a word, is asked once a run, all else twice.
    orders = [f"[[{lie} x{1 if lie[:3] in ('400', '404') or lie == 'no-content' else 2}]]" for lie in LIES]
    write_questions(file, [""] * HONEST + orders)
    return file


@pytest.mark.parametrize("scoring", ["letter", "likelihood"])
def test_lies_are_failures_that_are_counted_and_asked_again(scoring, questions, tmp_path, climassay):
    def run():
        command = ("evaluate", "mcq", questions, "--model", "openai:test", "--base-url", server.url)
        options = ("--scoring", scoring, "--concurrency", "2", "-w", tmp_path, "--json")
        out = done(climassay(*command, *options))
        return json.loads(out)["tally"]

    with ApiServer() as server:
        first = run()
        asked = len(server.asked)
        assert first["failed"] > 0
        # no-content is an empty answer to a question for a letter, and that is an answer. A refusal of what was given
        # before, log-probabilities, is doubted, and the request sent again.
        spared = 2 if scoring == "letter" else 4
        assert len(LIES) - spared <= first["failed"] <= len(LIES)
        assert first["sent"] == HONEST + len(LIES)
        second = run()
        again = {request.prompt for request in server.asked[asked:]}
        assert second["sent"] == len(again) == first["failed"]
        assert second["failed"] == 0, "now the server says the truth"
        third = run()
        assert third["sent"] == 0


def test_a_megabyte_for_a_letter_is_an_answer_like_any_other(tmp_path, climassay):
    questions = tmp_path / "questions.csv"
    write_questions(questions, ["", "", "[[long-answer]]"])
    with ApiServer() as server:
        command = ("evaluate", "mcq", questions, "--model", "openai:test", "--base-url", server.url)
        options = ("--scoring", "letter", "-w", tmp_path, "--json", "--predictions", tmp_path / "p.jsonl")
        code, out, err = climassay(*command, *options)
    assert code == 0, err
    predictions = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [one["error"] for one in predictions] == [None] * 3
    # The question which option it chose, to which the server gives the same megabyte, is the call that failed.
    assert json.loads(out)["tally"]["failed"] == 1


@pytest.mark.parametrize("lie", ["error-200", "malformed", "404 there is no such model", "other-type"])
def test_a_server_that_never_answers_rightly_ends_every_command_in_words(lie, tmp_path, climassay):
    """The first answer is a lie and so are all others: no traceback, no table made of nothing."""
    claims = tmp_path / "claims.jsonl"
    row = {"claim": f"The sun drives all warming. [[{lie}]]", "evidence": ["Solar forcing is small."]}
    claims.write_text(json.dumps(row) + "\n", encoding="utf-8")
    questions = tmp_path / "questions.csv"
    write_questions(questions, [f"[[{lie}]]"] * 3)
    with ApiServer() as server:
        model = ("--model", "openai:test", "--base-url", server.url, "-w", tmp_path, "--json")
        for command in (
            ("evaluate", "mcq", questions, "--scoring", "letter"),
            ("factcheck", "evidence", claims),
            ("judge", "compare", f"A clear text. [[{lie}]]", "B unclear."),
        ):
            code, out, err = climassay(*command, *model)
            assert "Traceback" not in err
            assert code in (0, 1, 2), err
            if code == 0:
                assert "failed" in out, "what failed is told"
            else:
                assert [line for line in err.splitlines() if line.startswith("climassay: ")], err
