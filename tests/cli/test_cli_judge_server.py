"""``climassay judge`` with a model behind an API: what needs log-probabilities works, what needs weights says so."""

import json
import math
import re

import pytest

from api_server import ApiServer, Reply
from climassay.judging.preferences import CERTAIN_LOG_ODDS
from command_line import done, refused

GROUPS, ITEMS = 4, 3
COLUMNS = ("--group", "group", "--quality", "has a high number", "--label", "score")


def preferring_high_numbers(asked):
    """A rates 8 to 0 against B where its number is higher, and has a liking for A that both orders must take out."""
    numbers = [int(number) for number in re.findall(r"number (\d)", asked.content)]
    if not numbers:  # it is asked how it goes on with an answer that has begun
        return Reply("As you like.")
    if "unanswerable" in asked.content:
        return Reply("I would rather not.", [[("I", -0.01)]])
    if len(numbers) == 1:
        rating = str(numbers[0] + 1)
        return Reply(rating, [[(rating, math.log(0.9)), ("5", math.log(0.05))]])
    first = 1 / (1 + math.exp(-(4 * (numbers[0] - numbers[1]) + 1)))
    likely = sorted([("A", math.log(first)), ("B", math.log1p(-first))], key=lambda pair: -pair[1])
    return Reply(likely[0][0], [likely])


@pytest.fixture
def table(tmp_path):
    lines = [
        json.dumps({"group": f"g{group}", "text": f"In {group}: number {(item + group) % ITEMS}.",
                    "score": (item + group) % ITEMS})
        for group in range(GROUPS)
        for item in range(ITEMS)
    ]  # fmt: skip
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@pytest.fixture
def server():
    with ApiServer(rule=preferring_high_numbers) as server:
        yield server


@pytest.fixture
def judge(server, tmp_path, monkeypatch, climassay):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "")

    def run(*arguments):
        where = ("--model", "openai:test", "--base-url", server.url, "--workspace", tmp_path / "workspace", "--json")
        return climassay("judge", *arguments, *where)

    return run


def benchmark(judge, table, *more):
    out = done(judge("benchmark", table, *COLUMNS, "--train-items", 6, *more))
    return json.loads(out)


def test_a_server_judges_by_pairs_and_directly(judge, table, server):
    found = benchmark(judge, table, "--method", "pairs", "--method", "direct")
    pairs, direct = found["results"]
    for result, requests in ((pairs, GROUPS * ITEMS * (ITEMS - 1)), (direct, GROUPS * ITEMS)):
        for name in ("accuracy_differing", "accuracy_three_way", "spearman", "kendall"):
            assert result[name]["value"] == pytest.approx(1.0), (result["method"], name)
        assert result["failed"] == 0
        assert (result["computed"], result["stored"]) == (requests, 0)
    # The liking for A cancels: log-odds of 4 a step. A liking left in would be off by 1.
    expected = [1 / (1 + math.exp(-4 * gap)) for gap in (1, 1, 2)]
    assert pairs["calibration"]["brier"] == pytest.approx(sum((1 - p) ** 2 for p in expected) / 3, rel=0.02)
    asked = len(server.asked)
    assert asked == found["computed"] + 1  # once, how it goes on with an answer that has begun
    again = benchmark(judge, table, "--method", "all")
    assert [result["method"] for result in again["results"]] == ["direct", "direct-expected", "pairs"]
    assert (len(server.asked), again["computed"]) == (asked, 0)


@pytest.mark.parametrize("method", ["zero-shot", "ppairs", "pointwise"])
def test_what_needs_weights_says_so(judge, table, method):
    err = refused(judge("benchmark", table, *COLUMNS, "--method", method))
    assert f"The method {method} reads hidden states: use a local: model, not openai:test." in err
    assert "--method pairs, direct or direct-expected" in err


@pytest.mark.parametrize("method", ["pairs", "direct", "direct-expected"])
def test_a_server_ranks_compares_and_inserts(judge, table, method):
    out = done(judge("rank", table, *COLUMNS, "--method", method))
    assert all(row["label"] == ITEMS - row["rank"] for row in json.loads(out)["items"])
    quality = ("--quality", "has a high number", "--method", method)
    out = done(judge("compare", "number 1", "number 2", *quality))
    assert json.loads(out)["better"] == "B"
    new = table.with_name("new.csv")
    new.write_text("text\nnew number 2\nnew number 0\nnew number 1\n", encoding="utf-8")
    for levels in (("--levels", "0,1,2"), ()):
        out = done(judge("insert", new, "--anchors", table, *quality, "--label", "score", *levels, "--samples", 3))
        assert [row["label"] for row in json.loads(out)["items"]] == ["2", "0", "1"]


def test_a_generated_answer_is_read_after_its_reasons_and_counts_as_certain(server, judge, table):
    def reasoned(asked):
        assert "Source text:" not in asked.content
        numbers = re.findall(r"number (\d)", asked.content)
        if len(numbers) == 1:
            return Reply(f"The text was read.\n\n**Score: {int(numbers[0]) + 1}**")
        return Reply(f"Both texts were read.\n\n**Choice: {'A' if numbers[0] > numbers[1] else 'B'}**")

    server.rule = reasoned
    for method in ("pairs", "direct"):
        out = done(
            judge("rank", table, "--group", "group", "--aspect", "coherence", "--label", "score", "--method", method)
        )
        rows = json.loads(out)["items"]
        assert [row["label"] for row in rows] == [2, 1, 0] * GROUPS
        assert 0 < max(row["strength"] for row in rows) <= CERTAIN_LOG_ODDS


def test_an_answer_that_was_cut_off_says_so(server, judge):
    server.rule = lambda _: Reply("Both texts were read, and", finish_reason="length")
    code, _, err = judge("compare", "number 1", "number 2", "--quality", "has a high number", "--method", "pairs")
    assert code == 1
    assert "cut off before it named an option" in err


def test_labels_that_are_words_need_their_order(judge, table):
    words = table.with_name("words.csv")
    words.write_text("text,score\nnumber 1,low\nnumber 2,high\n", encoding="utf-8")
    err = refused(judge("insert", table, "--anchors", words, *COLUMNS[2:], "--method", "pairs"))
    assert "'low' is not a number" in err
    assert "--levels" in err
