import pytest

from climassay.errors import ModelError
from climassay.metrics import load_entailment
from climassay.metrics.entailment_head import label_places
from climassay.models.bundled import bundled_path

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier of two layers with random weights, saved as such models are."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    place = tmp_path_factory.mktemp("classifier")
    tokenizer = AutoTokenizer.from_pretrained(bundled_path("minilm"), local_files_only=True)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        id2label={0: "contradiction", 1: "neutral", 2: "entailment"},
        label2id={"contradiction": 0, "neutral": 1, "entailment": 2},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


def test_labels_are_told_by_their_names_and_batches_change_nothing(folder):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    scorer = load_entailment(f"nli:{folder}")
    pairs = [("The sea rises.", "Seas rise."), ("Ice melts in a warm summer.", "It is cold."), ("A.", "B c d e f.")]
    found = scorer.relations(pairs)
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for pair, one in zip(pairs, found, strict=True):
        with torch.inference_mode():
            contradicts, neutral, confirms = network(**tokenizer(*pair, return_tensors="pt")).logits[0].softmax(0)
        assert one == pytest.approx((float(confirms), float(contradicts), float(neutral)), abs=1e-5)
    assert scorer.score(pairs) == [one.confirms for one in found]
    assert scorer.relations([]) == []


def test_names_of_labels():
    assert label_places("m", {0: "ENTAILMENT", 1: "not_entailment"}) == {0: 0, 1: 2}
    assert label_places("m", {0: "SUPPORTS", 1: "REFUTES", 2: "NOT_ENOUGH_INFO"}) == {0: 0, 1: 1, 2: 2}
    with pytest.raises(ModelError, match="LABEL_0"):
        label_places("m", {0: "LABEL_0", 1: "LABEL_1"})
    with pytest.raises(ModelError, match="no label for entailment"):
        label_places("m", {0: "neutral"})


def test_a_folder_without_a_classifier_is_one_sentence(tmp_path):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError):
        load_entailment(f"nli:{tmp_path}").relations([("a", "b")])
