import pytest

from climaqa_cases import CASES
from climassay.errors import InputError
from climassay.metrics import AnswerRow, character_bleu, read_answers, score_answers

FREEFORM = [AnswerRow(case.model, case.reference, case.answer) for case in CASES[:5]]
CLOZE = [
    AnswerRow("1", "ice", "Ice.", "The <MASK> melts."),
    AnswerRow("2", "sea", "sea", "The <MASK> rises."),
    AnswerRow("3", "air", "", "The <MASK> warms."),
]


def test_means_are_over_answers_and_bleu_has_all_together_too():
    scored = score_answers(FREEFORM)
    assert list(scored.scores) == ["bleu_char", "bleu", "bert_score"]
    printed = [case.bleu for case in CASES[:5]]
    assert scored.scores["bleu_char"] == pytest.approx(printed, abs=0.0015)
    mean = scored.means["bleu_char"]
    assert (mean.value, mean.n) == (pytest.approx(sum(printed) / 5, abs=0.001), 5)
    assert mean.interval.low < mean.value < mean.interval.high
    together = character_bleu([row.reference for row in FREEFORM], [row.answer for row in FREEFORM])
    assert scored.pooled["bleu_char"] == together != mean.value
    assert scored.sources["bert_score"] == "local:minilm"
    assert "sacreBLEU" in scored.sources["bleu"]


def test_each_kind_of_answer_has_its_own_metrics():
    scored = score_answers([*CLOZE, FREEFORM[0]])
    assert scored.scores["exact_match"] == (0.0, 1.0, 0.0, None)
    assert scored.scores["exact_match_normalised"] == (1.0, 1.0, 0.0, None)
    assert scored.scores["phrase_similarity"] == (1.0, 1.0, 0.0, None)
    assert scored.scores["bleu_char"][:3] == (None, None, None)
    assert scored.scores["bleu_char"][3] == pytest.approx(0.485, abs=0.0005)
    assert (scored.means["exact_match"].value, scored.means["exact_match"].n) == (pytest.approx(1 / 3), 3)
    # Wilson's interval of 1 in 3.
    assert scored.means["exact_match"].interval == pytest.approx((0.0615, 0.7923), abs=1e-3)


def test_metrics_asked_for_are_computed_for_every_row():
    scored = score_answers([*CLOZE, FREEFORM[0]], ["exact_match", "phrase_similarity"], window=None)
    assert scored.scores["exact_match"] == (0.0, 1.0, 0.0, 0.0)
    assert scored.scores["phrase_similarity"][3] is None
    assert scored.sources["phrase_similarity"].endswith("whole statement")


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(InputError, match="'rouge' is not a metric"):
        score_answers(FREEFORM, ["rouge"])
    with pytest.raises(InputError, match="needs cloze statements"):
        score_answers(FREEFORM, ["phrase_similarity"])
    with pytest.raises(InputError, match="no answers"):
        score_answers([])


def test_rows_that_cannot_be_used_are_listed(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text(
        "id,reference,answer,statement,question\n"
        "a,ice,Ice,The <MASK> melts.,\n"
        "b,,Ice,,\n"
        "c,ice,snow,no gap,\n"
        "d,ice,snow,,The <blank> melts.\n"
        ",ice,snow,,What melts?\n"
    )
    table = read_answers(file)
    assert [(row.id, row.statement) for row in table.rows] == [
        ("a", "The <MASK> melts."),
        ("d", "The <blank> melts."),
        ("5", ""),
    ]
    assert [reason.split(":")[0] for reason in table.skipped] == ["row 2", "row 3"]


@pytest.mark.parametrize(
    ("content", "word"),
    [("", "no rows"), ("question,answer\na,b\n", "no column 'reference'"), ("reference,answer\n,b\n", "no usable row")],
    ids=["empty", "column", "row"],
)
def test_a_file_without_answers_is_told(tmp_path, content, word):
    file = tmp_path / "answers.csv"
    file.write_text(content)
    with pytest.raises(InputError, match=word):
        read_answers(file)
