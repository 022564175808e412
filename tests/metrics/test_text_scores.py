"""Scores of answers by their words: exact match, BLEU, BERTScore, and all of them together."""

import math
import warnings

import numpy as np
import pytest

from climaqa_cases import CASES, EMISSION_GEMMA, EMISSION_REFERENCE
from climassay.errors import InputError, ModelError
from climassay.metrics import (
    ReferencedAnswer,
    bert_score,
    bleu,
    bleu_each,
    character_bleu,
    character_bleu_each,
    exact_match,
    exact_match_normalised,
    read_answers,
    score_answers,
)
from climassay.metrics.cloze import normalised_words
from climassay.metrics.overlap import TokenEncoder, TokenVectors
from climassay.metrics.registry import AnswerItem, Batch, Metric, Scorer
from climassay.models.bundled import bundled_path
from stated_quantities import all_statements

EQUAL = [
    ("entrainment", "Entrainment."), ("sea ice", "sea-ice"), ("SO<sub>2</sub>", "SO2"), ("CO2", "CO₂"),
    ("Clausius-Clapeyron", "clausius–clapeyron"), ("aerosol", "aerosols"), ("gas", "gases"), ("phase", "phases"),
    ("feedback", '"feedbacks"'), ("stomata", "stoma"), ("nucleus", "nuclei"), ("vortex", "vortices"),
    ("matrix", "matrices"), ("stratum", "strata"), ("phenomenon", "phenomena"), ("hypothesis", "hypotheses"),
    ("larva", "larvae"), ("gravity", "gravities"), ("CFC", "CFCs"), ("-3.2", "−3.2"), ("10,000", "10000"),
    ("50%", "(50 %)"), (">= 3 K", "≥3 K"), ("10<sup>6</sup>", "10⁶"), ("3 °C", "3 C"), ("5 - 3", "5–3"),
    ("km²", "km2"), ("CO2", "$CO_2$"), ("CO2", "$\\mathrm{CO}_{2}$"), ("CH4", "\\(\\text{CH}_4\\)"),
    ("$5 or $6", "($5 or $6)"), ("10^-3", "$10^{-3}$"), ("solar", "so\u00adlar"),
]  # fmt: skip
DIFFERENT = [
    ("entrainment", "detrainment"), ("3.5", "35"), ("-5", "5"), ("50%", "50"), ("50 %", "50"),
    ("+0.5 percent", "-0.5 percent"), ("- 0.5 K", "0.5 K"), ("±0.5", "0.5"), ("> 3 K", "< 3 K"), ("≥ 3 K", "> 3 K"),
    ("10²", "102"), ("10<sup>6</sup>", "106"), ("$5", "€5"), ("5 MW", "5 mW"), ("1½", "11/2"), ("1990s", "1990"),
    ("0.5", "5"), ("cirrus", "cirru"), ("mass", "mas"), ("gas", "ga"), ("sea ice", "seaice"), ("sea ice", "ice"),
    ("sulfate", "sulphate"), ("hydroxyl", "OH"), ("CFC-11", "CFC-12"), ("1-2", "12"), ("ice", ""), ("...", "!"),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "candidate"), EQUAL, ids=[f"{a}~{b}" for a, b in EQUAL])
def test_case_punctuation_and_number_do_not_matter_when_normalised(reference, candidate):
    assert exact_match_normalised([reference, candidate], [candidate, reference]) == [True, True]
    assert exact_match([reference], [candidate]) == [False]


@pytest.mark.parametrize(("reference", "candidate"), DIFFERENT, ids=[f"{a}~{b}" for a, b in DIFFERENT])
def test_what_means_something_else_stays_different(reference, candidate):
    assert exact_match_normalised([reference], [candidate]) == [False]


def test_raw_match_is_letter_by_letter():
    references = ["albedo"] * 4
    assert exact_match(references, ["albedo", "Albedo", "albedo ", "albedo."]) == [True, False, False, False]


def test_one_of_several_references_is_enough():
    assert exact_match([["Kelvin", "curvature"], "ash"], ["curvature", "dust"]) == [True, False]
    assert exact_match_normalised([["Kelvin", "curvature"]], ["CURVATURES"]) == [True]


def test_no_two_statements_of_different_quantities_match():
    assert len({tuple(normalised_words(text)) for text in all_statements()}) == len(all_statements())


AGREEING = [case for case in CASES if (case.topic, case.model) != ("emission", "gemma-27b")]


@pytest.mark.parametrize("case", AGREEING, ids=lambda case: f"{case.topic}-{case.model}")
def test_nine_of_the_ten_printed_answers_give_the_printed_bleu(case):
    assert f"{character_bleu([case.reference], [case.answer]):.3f}" == f"{case.bleu:.3f}"


def test_the_tenth_printed_answer_needs_one_white_space_more_than_is_printed():
    as_printed = character_bleu([EMISSION_REFERENCE], [EMISSION_GEMMA])
    assert f"{as_printed:.3f}" == "0.363"
    for spaced in (f" {EMISSION_GEMMA}", f"{EMISSION_GEMMA}\n"):
        assert f"{character_bleu([EMISSION_REFERENCE], [spaced]):.3f}" == "0.364"


def test_character_bleu_worked_by_hand():
    # abcd against abce: 3 of 4 characters, 2 of 3 pairs, 1 of 2 triples, no run of four (0.1 of 1).
    assert character_bleu(["abce"], ["abcd"]) == pytest.approx((3 / 4 * 2 / 3 * 1 / 2 * 0.1 / 1) ** 0.25)
    # All runs of abcd are in abcdef: what is left is the penalty for 4 characters instead of 6.
    assert character_bleu(["abcdef"], ["abcd"]) == pytest.approx(math.exp(1 - 6 / 4))


def test_all_items_together_add_up_their_counts():
    references, candidates = ["abcd", "wxyz"], ["abcd", "abcd"]
    # 4 of 8 characters, 3 of 6 pairs, 2 of 4 triples, 1 of 2 runs of four.
    assert character_bleu(references, candidates) == pytest.approx(0.5)
    assert character_bleu_each(references, candidates) == pytest.approx([1.0, 0.0])


def test_word_bleu_worked_by_hand():
    # 4 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 runs of four.
    expected = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert bleu(["the sea rises with heat"], ["the sea rises with ice"]) == pytest.approx(expected)
    assert bleu_each(["the sea rises with heat"], ["the sea rises with ice"]) == pytest.approx([expected])


@pytest.mark.parametrize("metric", [character_bleu, character_bleu_each, bleu, bleu_each])
@pytest.mark.parametrize(
    ("references", "candidates", "word"),
    [
        (["a", "b"], ["a"], "2 references"),
        ([], [], "at least one"),
        (["a", " "], ["a", "b"], "Item 2"),
        ([[]], ["a"], "Item 1"),
    ],
    ids=["numbers", "none", "blank", "no-reference"],
)
def test_what_cannot_be_compared_is_refused(metric, references, candidates, word):
    with pytest.raises(InputError, match=word):
        metric(references, candidates)


REFERENCES = [case.reference for case in CASES]
ANSWERS = [case.answer for case in CASES]


class Planted:
    """Each word is a token with a planted unit vector; a start and an end token stand around them."""

    name, layer = "test:planted", 1

    def __init__(self):
        self.places = {"ice": (1.0, 0.0), "snow": (0.6, 0.8), "sea": (0.0, 1.0), "heat": (-1.0, 0.0)}

    def encode(self, texts):
        return [self._encode(text.split()) for text in texts]

    def _encode(self, words):
        vectors = [(0.0, -1.0), *(self.places[word] for word in words), (0.0, -1.0)]
        ids = [0, *(2 + list(self.places).index(word) for word in words), 1]
        special = np.array([True, *(False for _ in words), True])
        return TokenVectors(tuple(ids), special, np.array(vectors, dtype=np.float32))


def score(references, candidates, **options):
    found = bert_score(references, candidates, Planted(), **options)
    return found.precision, found.recall, found.f1


def test_greedy_matching_worked_by_hand():
    # snow finds ice (0.6) or sea (0.8): 0.8. ice finds snow (0.6), sea finds snow (0.8).
    precision, recall, f1 = score(["ice sea"], ["snow"])
    assert precision == pytest.approx([0.8])
    assert recall == pytest.approx([0.7])
    assert f1 == pytest.approx([2 * 0.8 * 0.7 / 1.5])


def test_start_and_end_tokens_can_be_matched_but_have_no_weight():
    # heat is opposed to ice, and at a right angle to the end token.
    assert score(["ice"], ["heat"])[0] == pytest.approx([0.0])
    assert score(["ice"], ["heat"], match_special_tokens=False)[0] == pytest.approx([-1.0])


def test_of_several_references_the_best_counts():
    assert score([["heat", "ice"], "sea"], ["ice", "snow"])[2] == pytest.approx([1.0, 0.8])


@pytest.mark.parametrize("candidate", ["", " \n"], ids=["empty", "blank"])
def test_an_empty_candidate_scores_nothing_and_is_a_number(candidate):
    found = bert_score(["Seas rise.", "Ice melts."], [candidate, "Ice melts."])
    assert (found.precision[0], found.recall[0], found.f1[0]) == (0.0, 0.0, 0.0)
    assert found.f1[1] == pytest.approx(1.0)


def test_the_same_as_torchmetrics_item_by_item():
    bert = pytest.importorskip("torchmetrics.functional.text.bert")
    ours = bert_score(REFERENCES[3:7], ANSWERS[3:7], match_special_tokens=False)
    folder = str(bundled_path("minilm"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = [
            bert.bert_score([answer], [reference], model_name_or_path=folder, num_layers=6, max_length=256)
            for reference, answer in zip(REFERENCES[3:7], ANSWERS[3:7], strict=True)
        ]
    for name in ("precision", "recall", "f1"):
        assert getattr(ours, name) == pytest.approx([float(one[name]) for one in theirs], abs=1e-5)


def test_items_do_not_depend_on_their_batch():
    together = bert_score(REFERENCES, ANSWERS, TokenEncoder("local:minilm", batch_tokens=200))
    alone = [bert_score([reference], [answer]).f1[0] for reference, answer in zip(REFERENCES, ANSWERS, strict=True)]
    assert together.f1 == pytest.approx(alone, abs=1e-5)
    assert (together.encoder, together.layer) == ("local:minilm", 6)


def test_a_folder_and_a_layer_can_be_chosen():
    folder = f"local:{bundled_path('minilm')}"
    assert bert_score("Seas rise.", "The sea rises.", folder, layer=3).layer == 3
    assert bert_score("Seas rise.", "The sea rises.", folder).f1 == bert_score("Seas rise.", "The sea rises.").f1
    with pytest.raises(InputError, match="layers 1 to 6, not 7"):
        bert_score("a", "b", folder, layer=7)


@pytest.fixture(scope="module")
def tiny_roberta(tmp_path_factory):
    """A random RoBERTa whose vocabulary comes from the case study; the second word of a text begins with a space."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer

    folder = tmp_path_factory.mktemp("roberta")
    pieces = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces.train_from_iterator([*REFERENCES, *ANSWERS], vocab_size=600, special_tokens=special)
    pieces.save_model(str(folder))
    RobertaTokenizer.from_pretrained(str(folder), model_max_length=512).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    positions = {"max_position_embeddings": 66, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    RobertaModel(RobertaConfig(vocab_size=600, **shape, **positions)).save_pretrained(folder)
    return f"local:{folder}"


def test_a_roberta_reads_the_first_word_like_any_other(tiny_roberta):
    (one,) = TokenEncoder(tiny_roberta).encode(["pressure"])
    (two,) = TokenEncoder(tiny_roberta).encode(["surface pressure"])
    words = [token for token, special in zip(one.ids, one.is_special, strict=True) if not special]
    assert list(two.ids)[-1 - len(words) : -1] == words


@pytest.mark.parametrize(
    ("name", "error"),
    [("minilm", InputError), ("local:", InputError), ("local:/no/such/folder", ModelError)],
    ids=["bare", "empty", "missing"],
)
def test_an_encoder_that_is_not_there_is_told(name, error):
    with pytest.raises(error, match="local:"):
        bert_score("a", "b", name)


FREEFORM = [ReferencedAnswer(case.model, case.reference, case.answer) for case in CASES[:5]]
CLOZE = [
    ReferencedAnswer("1", "ice", "Ice.", "The <MASK> melts."),
    ReferencedAnswer("2", "sea", "sea", "The <MASK> rises."),
    ReferencedAnswer("3", "air", "", "The <MASK> warms."),
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


def test_an_answer_for_which_a_metric_gives_nan_is_not_scored():
    undefined = Metric("undefined", "undefined", score=lambda batch: np.array([0.5, math.nan]))
    batch = Batch([AnswerItem("", "ice", "ice"), AnswerItem("", "ice", "snow")], Scorer())
    assert batch.scores(undefined) == [0.5, None]


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
