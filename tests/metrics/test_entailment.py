"""Entailment: scores from relations, prompted and by classifiers."""

import math

import pytest

from climassay.errors import InputError, ModelError
from climassay.metrics import Entailment, PromptedEntailment, PromptedSupport, load_entailment
from climassay.metrics.entailment import OPTIONS, nearest_parts, relations_by_label
from scripted_model import ScriptedModel
from tiny_models import save_classifier, smollm2


def nearest_part(premise, statement, **options):
    return nearest_parts([(premise, statement)], **options)[0]


def weighing(answers):
    """Gives scripted probabilities by the premise in the prompt; fails where there are none."""

    def choose(prompt, _options):
        found = answers.get(prompt.split("Passage: ")[1].split("\n")[0])
        return [math.log(p) for p in found] if found else RuntimeError("The server did not answer.")

    return ScriptedModel(choose, name="local:weighing", parameters=1000)


PAIRS = [("Seas rise.", "The sea rises."), ("Seas fall.", "The sea rises."), ("Lost.", "The sea rises.")]
ANSWERS = {"Seas rise.": (0.3, 0.1, 0.1), "Seas fall.": (0.1, 0.2, 0.1)}


def test_probabilities_of_the_options_and_none_where_the_call_failed():
    model = weighing(ANSWERS)
    scores = PromptedEntailment(model).score(PAIRS)
    assert scores == [pytest.approx(0.6), pytest.approx(0.25), None]
    assert [options for _, options in model.options] == [OPTIONS] * 3
    assert "Statement: The sea rises." in model.options[0][0]


def test_no_pairs_ask_nothing():
    model = weighing(ANSWERS)
    assert PromptedEntailment(model).score([]) == []
    assert model.options == []


@pytest.mark.model
def test_the_bundled_model_gives_probabilities():
    model = smollm2()
    scorer: Entailment = PromptedEntailment(model)
    premise = "The ocean takes up most of the excess heat. Warm water expands, and so the sea level rises."
    first, second = scorer.score([(premise, "Sea level rises because warm water expands."), (premise, "Seas fall.")])
    assert 0 < first < 1
    assert 0 < second < 1
    assert first != second
    assert scorer.name == "local:smollm2, prompted"


FILLER = "Nothing of interest is said in this sentence, which only takes up room. "


def test_the_nearest_sentences_of_a_long_premise_go_in_in_its_order():
    premise = FILLER * 12 + "Ice melts in Greenland. " + FILLER * 12 + "The ice of Greenland shrinks. " + FILLER * 3
    assert (
        nearest_part(premise, "Greenland loses ice.", words=9)
        == "Ice melts in Greenland. ... The ice of Greenland shrinks."
    )
    assert nearest_part(premise, "Greenland loses ice.", words=6) == "Ice melts in Greenland."
    part = nearest_part(premise, "Greenland loses ice.")
    assert "Ice melts in Greenland." in part
    assert len(part.split()) <= 120


def test_rare_words_count_more_than_common_ones():
    premise = "The ice is on the sea. " * 3 + "Krill is eaten. " + "The ice is on the sea."
    assert nearest_part(premise, "The krill", words=4) == "Krill is eaten."


class ByLength:
    """An encoder for which long texts are near to each other."""

    name, fingerprint, width = "length", "l", 2

    def encode(self, texts, *, role="passage", on_progress=None):
        import numpy as np

        angles = np.array([min(len(text), 100) / 100 * math.pi / 2 for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_an_encoder_decides_what_is_near():
    premise = (
        "Ice. " * 10 + "This is the one and only long sentence of the premise, without the word asked for. " + "Ice."
    )
    statement = "ice " * 20
    assert nearest_part(premise, statement, words=16, encoder=ByLength()).startswith("This is the one")
    assert nearest_part(premise, statement, words=3) == "Ice. Ice. Ice."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_classifier(tmp_path_factory.mktemp("classifier"))


@pytest.mark.model
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


@pytest.mark.model
def test_names_of_labels():
    assert relations_by_label("m", {0: "ENTAILMENT", 1: "not_entailment"}) == {0: 0, 1: 2}
    assert relations_by_label("m", {0: "SUPPORTS", 1: "REFUTES", 2: "NOT_ENOUGH_INFO"}) == {0: 0, 1: 1, 2: 2}
    with pytest.raises(ModelError, match="LABEL_0"):
        relations_by_label("m", {0: "LABEL_0", 1: "LABEL_1"})
    with pytest.raises(ModelError, match="no label for entailment"):
        relations_by_label("m", {0: "neutral"})


@pytest.mark.model
def test_a_folder_without_a_classifier_is_one_sentence(tmp_path):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError):
        load_entailment(f"nli:{tmp_path}").relations([("a", "b")])


def test_scorers_by_name():
    def load(name):
        return ScriptedModel(name=name)

    assert isinstance(load_entailment("supports:local:model", load=load), PromptedSupport)
    assert load_entailment("prompted:local:model", load=load).name == "local:model, prompted"


def test_a_model_that_only_writes_is_no_scorer_even_if_its_answers_are_recorded():
    class Recorded(ScriptedModel):
        """A wrapper that passes requests for probabilities on."""

        wrapped = object()

    with pytest.raises(InputError, match="gives no probabilities"):
        load_entailment("prompted:local:model", load=lambda _: Recorded())


@pytest.mark.parametrize("name", ["", "bundled", "prompted:", "nli:", "openai:model", "head.safetensors"])
def test_a_scorer_is_never_guessed(name):
    with pytest.raises(InputError, match="names no entailment scorer"):
        load_entailment(name)
