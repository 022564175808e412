"""Retrieval scores against hand-worked ranks, and the recognition of gold passages."""

import gzip
import json

import numpy as np
import pytest

from climassay import load_encoder
from climassay.corpus import (
    Collection,
    Hit,
    LabelledQuestion,
    Passage,
    QuestionColumns,
    evaluate_retrieval,
    read,
    read_gold_questions,
)
from climassay.corpus.gold_texts import GoldText, find_relevant_passages, locate_gold_texts, split_words
from climassay.corpus.retrieval_evaluation import ndcg
from climassay.corpus.search import SEARCH_MODES
from climassay.errors import InputError
from climassay.primer import book_path, question_paths
from climassay.statistics import wilson_interval
from command_line import done, refused

TEN = "one two three four five six seven eight nine ten"


def hit(rank: int, text: str, document: str = "d", position: int = 0) -> Hit:
    return Hit(Passage(f"{document}-{position}", text, document, "T", "t.txt", position), rank, 1.0)


def test_words_know_no_case_punctuation_or_typography():
    expected = ("co2", "rises", "by", "2", "5", "w", "m", "2")
    assert split_words("CO₂ rises—by 2.5\u00a0W m⁻²!") == expected
    assert split_words("co2 RISES, by 2.5 W m-2") == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one two three four five six seven eight", True),  # 8 of 10
        ("one two three four five six seven", False),
        ("one two three four X five six seven eight nine ten", True),  # two runs
        ("ten nine eight seven six five four three two one", False),  # not in order
        ("one X two X three X four X five X six X seven X eight X nine X ten", False),  # no run of three
        ("five six seven eight nine ten one two three four", False),  # 6 in order
    ],
)
def test_most_words_in_order_are_needed(text, found):
    assert (GoldText.from_text(TEN).find_rank([hit(1, text)]) == 1) is found


def test_a_gold_text_that_was_cut_needs_both_halves():
    first, second = hit(1, "x x one two three four five", position=3), hit(2, "six seven eight nine ten y", position=4)
    assert GoldText.from_text(TEN).find_rank([first]) is None
    assert GoldText.from_text(TEN).find_rank([first, second]) == 2
    assert (
        GoldText.from_text(TEN).find_rank(
            [hit(1, second.passage.text, position=4), hit(2, first.passage.text, position=3)]
        )
        == 2
    )
    apart = hit(2, second.passage.text, position=5)
    assert GoldText.from_text(TEN).find_rank([first, apart]) is None
    elsewhere = hit(2, second.passage.text, document="other", position=4)
    assert GoldText.from_text(TEN).find_rank([first, elsewhere]) is None


def test_locating():
    golds = [
        GoldText.from_text(f"{TEN} eleven twelve"),
        GoldText.from_text("one two"),
        GoldText.from_text("alpha beta gamma"),
    ]
    assert locate_gold_texts(golds, [["nothing"], [f"so {TEN} on", "alpha beta"]]) == [True, True, False]
    assert locate_gold_texts([GoldText.from_text("ice melts")], [["nice melts", "ice"]]) == [False]


class Ranked:
    """A collection whose hits are given: query ``i`` finds the gold text of question ``i`` at a stated rank."""

    def __init__(self, ranks, golds):
        self._lists = {
            f"question {number}": [
                hit(rank, gold if rank == wanted else f"filler {rank}", f"d{number}", 3 * rank) for rank in range(1, 21)
            ]
            for number, (wanted, gold) in enumerate(zip(ranks, golds, strict=True))
        }
        self._golds = golds
        self.name = "ranked"
        self.settings = type("Settings", (), {"encoder": "none"})

    def __len__(self):
        return 20

    def texts(self):
        return [self._golds]

    def iterate_passages(self):
        return [found.passage for hits in self._lists.values() for found in hits]

    def search_many(self, queries, *, k, mode, report=None):
        return [self._lists[query][:k] for query in queries]


def test_recall_and_reciprocal_rank_by_hand():
    ranks = [1, 2, 2, 5, None, 12]
    golds = [" ".join(f"{letter}{number}" for letter in "abcdefg") for number in range(6)]
    questions = [LabelledQuestion(f"question {number}", gold, f"q{number}") for number, gold in enumerate(golds)]
    report = evaluate_retrieval(Ranked(ranks, golds), questions, ks=(10, 1, 2, 1), modes=["dense"])
    (scores,) = report.modes
    assert scores.ranks == (1, 2, 2, 5, None, None)
    assert [(r.k, r.found, r.recall) for r in scores.recall] == [(1, 1, 1 / 6), (2, 3, 0.5), (10, 4, 4 / 6)]
    assert scores.recall[1].interval == wilson_interval(3, 6)
    assert scores.mrr.value == pytest.approx((1 + 0.5 + 0.5 + 0.2) / 6)
    discounted = 1 + 2 / np.log2(3) + 1 / np.log2(6)
    assert scores.ndcg.value == pytest.approx(discounted / 6)
    assert scores.mrr.interval.low < scores.mrr.value < scores.mrr.interval.high
    assert (report.n, report.depth, report.not_in_collection) == (6, 10, ())
    (one,) = evaluate_retrieval(Ranked(ranks[:1], golds[:1]), questions[:1], ks=(10,), modes=["dense"]).modes
    assert one.mrr.interval == one.ndcg.interval == wilson_interval(1, 1)
    deeper = evaluate_retrieval(Ranked(ranks, golds), questions, ks=(20,), modes=["dense"])
    assert deeper.modes[0].recall[0].found == 5


@pytest.mark.parametrize("number", [1, 4])
def test_a_mode_that_is_worse_by_as_much_on_every_question_is_compared(number):
    class OneFinds(Ranked):
        def search_many(self, queries, *, k, mode, report=None):
            return [hits if mode == "dense" else [] for hits in super().search_many(queries, k=k, mode=mode)]

    golds = [" ".join(f"{letter}{place}" for letter in "abcdefg") for place in range(number)]
    questions = [LabelledQuestion(f"question {place}", gold, f"q{place}") for place, gold in enumerate(golds)]
    report = evaluate_retrieval(OneFinds([1] * number, golds), questions, ks=(10,), modes=["dense", "bm25"])
    assert report.best == "dense"
    (other,) = report.differences
    assert (other.ndcg.value, other.recall.value, other.ndcg.n) == (-1, -1, number)
    # So few questions cannot show any difference.
    assert other.ndcg.interval == (-1, 0)
    assert other.ndcg_p >= 2 / 2**4 - 0.01


def test_ndcg_by_hand():
    # (3/1 + 0 + 2/2) / (3/1 + 2/log2(3) + 1/2), with log2(4) = 2.
    assert ndcg([3, 0, 2], [1, 2, 3], 3) == pytest.approx(4 / (3.5 + 2 / 1.5849625))
    assert ndcg([3, 2, 1], [1, 2, 3], 3) == pytest.approx(1)
    assert ndcg([0, 1], [1], 1) == 0
    assert ndcg([0, 1], [1], 2) == pytest.approx(1 / 1.5849625)
    assert ndcg([2], [2, 2], 2) == pytest.approx(1 / (1 + 1 / 1.5849625))
    assert ndcg([0, 0], [], 2) == 0


def test_passages_are_judged_by_what_they_hold_and_by_what_holds_them():
    golds = [GoldText.from_text(TEN), GoldText.from_text("ice melts in the sun")]
    texts = [
        *(f"so {TEN} on", "one two three four five six", "six seven eight nine ten too"),
        *("and ice melts in the shade", f"{TEN} ice melts in the sun", "four five six seven of many other words here"),
        "one two three",
    ]
    judged = find_relevant_passages(
        golds, [3, 1], [hit(1, text, str(number)).passage for number, text in enumerate(texts)]
    )
    assert judged == [{"0-0": 3, "1-0": 3, "2-0": 3, "4-0": 3}, {"3-0": 1, "4-0": 1}]


def graded_set(tmp_path):
    """Two reports, a question to both, with grades; in words that BM25 alone ranks by their number."""
    reports = {
        "first.pdf": [("Glaciers lose mass glaciers melt glaciers", "3"), ("Rivers of glaciers swell in spring", "1"),
                      ("Soil dries where no rain falls", "0"), ("Ports prepare for storms and surges", "")],
        "other.pdf": [("Our offices buy wind power", "2"), ("Glaciers glaciers glaciers of the neighbours", "None")],
    }  # fmt: skip
    file = tmp_path / "graded.jsonl"
    rows = [
        {"report": report, "asked": "What of glaciers and power?", "text": text, "grade": grade}
        for report, some in reports.items()
        for text, grade in some
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def test_grades_and_reports_through_the_command(climassay, tmp_path):
    file = graded_set(tmp_path)
    added = ("--column", "document=report", "--column", "document=text", "--column", "report=report")
    place = ("--workspace", tmp_path / "workspace")
    done(climassay("corpus add graded", file, *added, *place))
    asked = ["corpus evaluate graded", file, "--column", "question=asked", "--column", "passage=text", *place]
    asked += ["--column", "relevance=grade", "--column", "group=report", "-m", "bm25", "-m", "dense", "-k", 1, "-k", 10]
    found = json.loads(done(climassay(*asked, "--within-group", "--json")))
    assert (found["n"], found["golds"], found["groups"], found["n_omitted_rows"], found["passages"]) == (2, 3, 2, 3, 6)
    bm25 = found["modes"][0]
    assert bm25["ranks"][:2] == [1, 2]
    assert bm25["ranks"][2] in (1, 2)  # of two passages of the other report
    recalls = [recall["recall"] for recall in bm25["recall"]]
    assert recalls == [pytest.approx((0.5 + (bm25["ranks"][2] == 1)) / 2), 1]
    gain = 1 if bm25["ranks"][2] == 1 else 1 / np.log2(3)
    assert bm25["ndcg"]["value"] == pytest.approx((1 + gain) / 2)
    assert len(found["differences"]) == 1
    shown = " ".join(done(climassay(*asked, "--within-group")).split())
    assert "nDCG@10" in shown
    assert "bootstrap over 2 groups" in shown
    assert "no column 'nothing'" in refused(climassay(*asked[:6], *place, "--column", "relevance=nothing"))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"relevance": "none"}, "has no column 'none'"),
        ({"relevance": "asked"}, "which is not a number"),
        ({"group": "grade"}, "row 4 is empty in column 'grade'"),
        ({"passage": "grade"}, "fewer than 5 words"),
    ],
)
def test_columns_that_cannot_be_used(tmp_path, columns, words):
    named = QuestionColumns(**{"question": "asked", "passage": "text", **columns})
    with pytest.raises(InputError, match=words):
        read_gold_questions(graded_set(tmp_path), named)


def test_a_group_alone_and_a_missing_group_are_told(collection, gold_set):
    alone = [LabelledQuestion(one.question, one.passage, group="only") for one in gold_set[:3]]
    with pytest.raises(InputError, match="All questions belong to one group, 'only'"):
        evaluate_retrieval(collection, alone)
    with pytest.raises(InputError, match="needs a group for every question"):
        evaluate_retrieval(collection, gold_set[:3], within_group=True)


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    made = Collection.create(tmp_path_factory.mktemp("c"), "primer", load_encoder())
    for path in question_paths():
        made.add(read(book_path(path.stem)).documents)
    return made


@pytest.fixture(scope="module")
def gold_set():
    return [question for path in question_paths() for question in read_gold_questions(path)[0]]


@pytest.mark.model
def test_the_primer_is_found_in_its_books(collection, gold_set):
    report = evaluate_retrieval(collection, gold_set)
    assert report.n == len(gold_set) == 120
    assert report.not_in_collection == ()
    assert [scores.mode for scores in report.modes] == list(SEARCH_MODES)
    by_mode = {scores.mode: scores for scores in report.modes}
    for scores in report.modes:
        recalls = [recall.recall for recall in scores.recall]
        assert recalls == sorted(recalls)
        assert recalls[-1] > 0.9
    assert by_mode["hybrid"].mrr.value > by_mode["dense"].mrr.value
    reciprocal = [0 if rank is None else 1 / rank for rank in by_mode["hybrid"].ranks]
    assert by_mode["hybrid"].mrr.value == pytest.approx(np.mean(reciprocal))


def test_what_is_not_in_the_collection_is_told_and_counts_as_not_found(tmp_path, gold_set):
    made = Collection.create(tmp_path, "half", load_encoder())
    made.add(read(book_path(question_paths()[0].stem)).documents)
    report = evaluate_retrieval(made, gold_set, modes=["bm25"])
    assert report.n == 120
    assert len(report.not_in_collection) == 60
    missing = set(report.not_in_collection)
    assert all(
        rank is None for question, rank in zip(gold_set, report.modes[0].ranks, strict=True) if question.id in missing
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"questions": []}, "no questions"),
        ({"ks": ()}, "at least one k"),
        ({"ks": (0, 1)}, "at least one k"),
        ({"ks": (5000,)}, "at least one k"),
        ({"modes": []}, "at least one search mode"),
        ({"modes": ["fuzzy"]}, "no search mode 'fuzzy'"),
        ({"share": 0}, "is above 0"),
        ({"share": 1.2}, "is above 0"),
        (
            {"questions": [LabelledQuestion("q", "words that stand in no book at all here")]},
            "none of the 1 gold passages",
        ),
    ],
)
def test_nonsense_is_told(collection, gold_set, arguments, words):
    with pytest.raises(InputError, match=words):
        evaluate_retrieval(collection, **{"questions": gold_set[:2], **arguments})


ROW = {"id": "a", "question": "What melts?", "passage": "The ice melts in the sun.", "document": "ice"}
EXPECTED = LabelledQuestion("What melts?", "The ice melts in the sun.", "a", "ice")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", json.dumps(ROW).encode() + b"\n\n"),
        ("a.jsonl.gz", gzip.compress(json.dumps(ROW).encode(), mtime=0)),
        ("a.json", json.dumps([ROW]).encode()),
        ("a.csv", b"id,Question,Context,document\r\na,What melts?,The ice melts in the sun.,ice\r\n"),
        ("bom.jsonl", b"\xef\xbb\xbf" + json.dumps(ROW).encode()),
    ],
)
def test_reading_labelled_questions(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert read_gold_questions(tmp_path / name)[0] == [EXPECTED]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no rows"),
        (b"[]", "no rows"),
        (b'{"question": "x"}', "row 1 has no passage"),
        (b'{"passage": "the ice melts in the sun"}', "row 1 has no question"),
        (b'{"question": "x", "passage": "too short"}', "fewer than 5 words"),
        (b'{"question": ', "line 1 is not valid JSON"),
        (b'{"question": "x", "passage": "the ice melts in the sun"}\n3', "entry 2 is not an object"),
        (b"\xff\xfe\x00", "save it as UTF-8"),
        (b"\x1f\x8bxx", "cannot be read"),
    ],
)
def test_question_files_that_cannot_be_used(tmp_path, content, words):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_gold_questions(tmp_path / "bad")[0]


def test_columns_are_found_whatever_their_case(tmp_path):
    file = tmp_path / "questions.csv"
    file.write_text("QUERY,Gold Text,Grade\nHow fast does the sea rise?,The sea rises by four millimetres a year.,2\n")
    [question], n_omitted = read_gold_questions(file, QuestionColumns(passage="gold_text", relevance="grade"))
    assert (question.question, question.relevance, n_omitted) == ("How fast does the sea rise?", 2.0, 0)
