import csv
import json

import pytest

from api_server import ApiServer, Reply
from climaqa_cases import CASES
from command_line import done, json_of, refused


@pytest.fixture(autouse=True)
def wide_screen(monkeypatch):
    """Whole words in tables, whatever else has said about the screen."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def answers(tmp_path):
    file = tmp_path / "answers.jsonl"
    rows = [{"id": case.model, "reference": case.reference, "answer": case.answer} for case in CASES[5:]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_score_prints_means_and_writes_every_answer(climassay, tmp_path, answers):
    means, each = tmp_path / "means.json", tmp_path / "each.csv"
    out = done(climassay("metrics score", answers, "-m", "bleu_char", "--output", means, "--output", each))
    assert "BLEU (characters)" in out
    mean = json.loads(means.read_text())["means"]["bleu_char"]
    assert mean["value"] == pytest.approx(sum(case.bleu for case in CASES[5:]) / 5, abs=0.001)
    assert mean["n"] == 5
    assert [float(one["bleu_char"]) for one in csv.DictReader(each.open(newline=""))] == pytest.approx(
        [case.bleu for case in CASES[5:]], abs=0.0005
    )


def test_score_of_cloze_answers(climassay, tmp_path):
    file = tmp_path / "cloze.csv"
    file.write_text("reference,answer,statement\nice,Ices,The <blank> melts.\nice,snow,no gap\n")
    code, out, err = climassay("metrics score", file)
    assert code == 0
    assert "phrase similarity" in out
    assert "local:minilm, window 4" in out
    assert "1 row left out" in err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["score", "missing.csv"], "no file"),
        (["score", "ANSWERS", "-m", "rouge"], "not a metric"),
        (["score", "ANSWERS", "-m", "bert_score", "--encoder", "minilm"], "names no encoder"),
    ],
    ids=["file", "metric", "encoder"],
)
def test_wrong_input_is_one_sentence_and_code_two(climassay, answers, arguments, word):
    given = [str(answers) if part == "ANSWERS" else part for part in arguments]
    assert word in refused(climassay("metrics", *given))


VERDICTS = {"Yes, ice melts.": "correct", "The sea is salty.": "beside the point"}


def marking(asked):
    """Marks the answers it knows, and breaks the schema on any other."""
    answer = next((answer for answer in VERDICTS if answer in asked.content), None)
    if answer is None:
        return Reply("no JSON")
    return Reply(json.dumps({"reason": f"It says: {answer}", "verdict": VERDICTS[answer]}))


def test_a_judge_behind_a_server_marks_answers_and_gives_its_reasons(monkeypatch, climassay, tmp_path):
    file, each = tmp_path / "answers.jsonl", tmp_path / "each.csv"
    row = {"question": "Does ice melt in the warmth?", "reference": "It does."}
    answers = [*VERDICTS, "", "Something else."]
    file.write_text("".join(json.dumps({**row, "id": n, "answer": text}) + "\n" for n, text in enumerate(answers)))
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with ApiServer(rule=marking) as server:
        judge = ("--judge", "openai:test", "--base-url", server.url, "--workspace", tmp_path / "workspace")
        arguments = ("metrics", "score", file, "-m", "judged_accuracy", *judge)
        data = json_of(climassay(*arguments, "--output", each, "--json"))
        requests = len(server.asked)
        table = done(climassay(*arguments))
        # What is in the records is not asked for again; a failure is.
        assert all("Something else." in one.content for one in server.asked[requests:])
    assert (data["means"]["judged_accuracy"]["value"], data["means"]["judged_accuracy"]["n"]) == (
        pytest.approx(1 / 3),
        3,
    )
    assert data["judge_failures"] == 1
    assert [one["judged_accuracy"] for one in data["answers"]] == [1.0, 0.0, 0.0, None]
    assert [one["reason"] for one in data["answers"]] == [*(f"It says: {answer}" for answer in VERDICTS), "", ""]
    written = list(csv.DictReader(each.open(newline="")))
    assert [one["verdict"] for one in written] == ["correct", "beside the point", "beside the point", ""]
    assert written[3]["judge_error"]
    assert "1 judgements failed" in table
