import math
import warnings

import numpy as np
import pytest

from climaqa_cases import CASES
from climassay.errors import InputError, ModelError
from climassay.metrics import bert_score
from climassay.metrics.overlap import TokenEncoder, TokenVectors
from climassay.models.bundled import bundled_path

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


def test_rare_tokens_count_more_with_idf():
    references = ["ice sea", "ice", "ice"]
    # ice is in 3 of 3 references: log(4 / 4) = 0; sea in one: log(4 / 2); snow in none: log 4.
    precision, recall, _ = score(references, ["snow ice", "ice", "snow"], idf=True)
    assert precision[0] == pytest.approx(0.8)
    assert recall[0] == pytest.approx(0.8)
    assert recall[1] == pytest.approx(1.0), "where no token has any weight, all count alike"
    both = score(["sea", "ice"], ["sea snow", "ice"], idf=True)[0][0]
    sea, snow = math.log(3 / 2), math.log(3)
    assert both == pytest.approx((sea * 1.0 + snow * 0.8) / (sea + snow))


def test_a_baseline_is_rescaled_to_nothing():
    plain = score(["ice sea"], ["snow"])
    scaled = score(["ice sea"], ["snow"], baseline=(0.8, 0.5, 0.5))
    assert scaled[0] == pytest.approx([0.0], abs=1e-6)
    assert scaled[1] == pytest.approx([(plain[1][0] - 0.5) / 0.5])
    with pytest.raises(InputError, match="below 1"):
        score(["ice"], ["ice"], baseline=(1.0, 0.5, 0.5))


def test_of_several_references_the_best_counts():
    assert score([["heat", "ice"], "sea"], ["ice", "snow"])[2] == pytest.approx([1.0, 0.8])


@pytest.mark.parametrize("candidate", ["", " \n"], ids=["empty", "blank"])
def test_an_empty_candidate_scores_nothing_and_is_a_number(candidate):
    found = bert_score(["Seas rise.", "Ice melts."], [candidate, "Ice melts."])
    assert (found.precision[0], found.recall[0], found.f1[0]) == (0.0, 0.0, 0.0)
    assert found.f1[1] == pytest.approx(1.0)
    assert found.mean_f1 == pytest.approx(0.5)


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
    words = [token for token, special in zip(one.ids, one.special, strict=True) if not special]
    assert list(two.ids)[-1 - len(words) : -1] == words


@pytest.mark.parametrize(
    ("name", "error"),
    [("minilm", InputError), ("local:", InputError), ("local:/no/such/folder", ModelError)],
    ids=["bare", "empty", "missing"],
)
def test_an_encoder_that_is_not_there_is_told(name, error):
    with pytest.raises(error, match="local:"):
        bert_score("a", "b", name)
