import json
from dataclasses import replace

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.generation import Decision, Wording, write_drafts
from climassay.generation.masking import (
    FEATURES,
    ExpertChoice,
    MaskerFeatures,
    StatisticsMasker,
    TrainedMasker,
    accuracies,
    candidates,
    choices_of,
    count_words,
    leave_one_out,
    measure,
    open_masker,
    read_choices,
    train_masker,
)
from climassay.generation.masking.maskers import bundled_reader, context_features, fit
from climassay.metrics.overlap import TokenVectors
from climassay.primer import gold_questions
from command_line import done, refused
from generated_drafts import draft, rejected

PLAIN = MaskerFeatures(impact=False, vectors=False)


@pytest.fixture(scope="module")
def primer():
    return choices_of(gold_questions())


def test_the_statistics_masker_is_well_above_longest_word_and_chance(primer):
    own = measure(StatisticsMasker(), primer)
    longest = measure(StatisticsMasker(weights={"length": 1.0}), primer)
    chance = np.mean([1 / len(candidates(choice.statement)) for choice in primer])
    assert own.first.interval.low > longest.first.value > chance
    assert own.among_three.value >= 0.85


def test_the_fit_is_the_maximum_of_its_objective():
    # Two statements of two words and one feature x: loss = 2 log(1 + exp(-w d)) + w**2 / 2, d the standardised gap.
    rows = np.zeros((4, len(FEATURES)))
    rows[:, 0] = 0, 1, 3, 4
    weight = fit([rows], np.array([0, 0, 1, 1]), np.array([False, True] * 2), 1.0)[0]
    scale = 1 / np.std([0, 1, 3, 4]) / np.sqrt(len(FEATURES))
    standard = weight / scale
    slope = standard - 2 * scale / (1 + np.exp(standard * scale))
    assert weight > 0
    assert slope == pytest.approx(0, abs=1e-4)


def test_it_learns_what_the_experts_want():
    # These experts mask the shortest candidate, which no rule of ours would.
    statements = [choice.statement for choice in choices_of(gold_questions())]
    wanted = [ExpertChoice(one, min((word.term for word in candidates(one)), key=len)) for one in statements]
    found = accuracies("trained", wanted, leave_one_out(wanted, reading=PLAIN))
    assert found.first.value > 2 * measure(StatisticsMasker(), wanted).first.value
    assert found.first.value > 0.4


def test_leaving_one_out_does_not_see_it(primer):
    few = primer[:6]
    left = leave_one_out(few, reading=PLAIN)
    by_hand = train_masker(few[1:], reading=PLAIN, measured=False).choose([few[0].statement])[0]
    assert dict(left[0].ranked) == pytest.approx(dict(by_hand.ranked))


class Letters:
    """An encoder whose tokens are letters, and whose vectors tell which letter it is and nothing else."""

    name = "letters"

    def encode(self, texts):
        return [self._encode([ord(letter) for letter in text]) for text in texts]

    def _encode(self, ids):
        vectors = np.eye(8, dtype=np.float32)[[one % 8 for one in ids] or [0]]
        return TokenVectors(tuple(ids) or (0,), np.array([not ids] * (len(ids) or 1)), vectors)


def test_context_features_worked_by_hand():
    # Of "aaa bbb" the vectors are a: 1 (three times), space: 0, b: 2 (three times): mean 3/7, 1/7, 3/7.
    statement = "aaa bbb"
    impact, vectors = context_features([statement], [candidates(statement)], Letters())[0]
    mean = np.array([1, 3, 3]) / 7
    assert vectors[:, :3] == pytest.approx(np.array([[0, 1, 0], [0, 0, 1]]) - mean)
    without = 3 / np.linalg.norm([1, 3, 3])
    assert impact[:, 0] == pytest.approx([1 - without, 1 - without])


def test_a_words_vector_is_taken_where_the_word_stands():
    statement = "Seasons of the sea."
    found = [word for word in candidates(statement) if word.term == "sea"]
    _, vectors = context_features([statement.lower()], [found], PlacedLetters())[0]
    assert vectors[0, 0] == pytest.approx(np.mean([15, 16, 17]) - np.mean(range(19)))


class PlacedLetters(Letters):
    """Vectors tell the place of the letter in the text."""

    def _encode(self, ids):
        return TokenVectors(tuple(ids), np.zeros(len(ids), dtype=bool), np.arange(len(ids), dtype=np.float32)[:, None])


@pytest.mark.model
def test_the_bundled_encoder_sees_a_word_in_its_statement():
    statement = "The albedo of fresh snow is high."
    impact, vectors = context_features([statement], [candidates(statement)], bundled_reader())[0]
    assert vectors.shape == (len(candidates(statement)), 384)
    assert impact.min() > 0
    assert [word.term for word in candidates(statement)][int(impact.argmax())] in ("albedo", "snow")


def test_a_saved_masker_is_the_same(tmp_path, primer):
    masker = train_masker(primer[:8], data="primer", statistics=count_words(["a b b"], ["b"]), reader=Letters())
    masker.save(tmp_path / "deep/masker.safetensors")
    again = replace(TrainedMasker.load(tmp_path / "deep/masker.safetensors"), reader=Letters())
    assert np.array_equal(again.weights, masker.weights)
    assert (again.reading, again.statistics, again.provenance) == (masker.reading, masker.statistics, masker.provenance)
    assert (again.provenance.encoder, again.provenance.items) == ("letters", 8)
    statements = [choice.statement for choice in primer[8:12]]
    assert again.choose([*statements, "It is."]) == masker.choose([*statements, "It is."])
    assert again.predict([*statements[:1], "It is."]) == [again.choose(statements)[0].term, None]
    assert [len(one) for one in again.predict_proba([statements[0], "It is."])] == [len(candidates(statements[0])), 0]
    assert again.score(primer[8:12]) == measure(masker, primer[8:12])


EARLIER = {
    "format": "climassay-masker", "version": 1, "features": list(FEATURES),
    "reading": {"impact": False, "vectors": False}, "weights": [1.5] + 12 * [0.0], "glossary": ["albedo"],
    "counts": {"ice": 3},
    "provenance": {
        "data": "primer", "statements": 30, "regularisation": 10.0, "encoder": "",
        "held_out": {"accuracy@1": 0.7, "accuracy@3": 0.9},
    },
}  # fmt: skip
"""What climassay wrote before maskers became safetensors files."""


def test_a_masker_of_an_earlier_climassay_is_read(tmp_path):
    file = tmp_path / "masker.json"
    file.write_text(json.dumps(EARLIER) + "\n", encoding="utf-8")
    masker = TrainedMasker.load(file)
    source = masker.provenance
    assert (source.items, source.regularisation, source.measured["accuracy@3"]) == (30, 10.0, 0.9)
    assert masker.statistics.counts == {"ice": 3}
    # Its one weight is on rarity.
    assert masker.choose(["The albedo of ice is high."])[0].term == "albedo"
    assert open_masker(str(file)).choose(["The albedo of ice is high."])[0].term == "albedo"


@pytest.mark.parametrize("fault", ["missing", "text", "other", "features", "weights", "nan"])
def test_a_file_that_is_no_masker_is_refused(tmp_path, fault):
    file = tmp_path / "masker.json"
    change = {"features": {"features": ["x"]}, "weights": {"weights": [1.0]}, "nan": {"weights": 13 * [float("nan")]}}
    texts = {"text": "not JSON", "other": "{}"}
    if fault != "missing":
        file.write_text(texts.get(fault) or json.dumps(EARLIER | change[fault]), encoding="utf-8")
    with pytest.raises(InputError, match=r"masker .*damaged|There is no masker"):
        TrainedMasker.load(file)


def test_too_few_or_impossible_choices_are_refused(primer):
    with pytest.raises(InputError, match="at least 5"):
        train_masker(primer[:4], reading=PLAIN)
    with pytest.raises(InputError, match="not a word to be masked"):
        train_masker([*primer[:5], ExpertChoice("The albedo is high.", "is")], reading=PLAIN)


def test_choices_are_read_from_what_experts_did(tmp_path):
    chosen = draft(1, "cloze").decided(Decision("expert", "ada", accepted=True, replaced=Wording("x")))
    by_machine = draft(2, "cloze").decided(Decision("mask", "statistics", accepted=True))
    write_drafts(tmp_path / "drafts.jsonl", [chosen, by_machine, rejected(chosen, step="expert"), draft(4)])
    assert read_choices(tmp_path / "drafts.jsonl") == [ExpertChoice(chosen.wording.question, "albedo")]
    write_drafts(tmp_path / "none.jsonl", [by_machine])
    with pytest.raises(InputError, match="no cloze statement"):
        read_choices(tmp_path / "none.jsonl")
    table = tmp_path / "table.csv"
    table.write_text("Question,Answer\nThe <MASK> is high.,albedo\nThe <MASK> is low.,lapse rate\nWhy?,So.\n")
    assert read_choices(table) == [ExpertChoice("The albedo is high.", "albedo")]


def test_commands(climassay, tmp_path, primer):
    labels = tmp_path / "labels.jsonl"
    rows = [{"question": one.statement.replace(one.term, "<MASK>", 1), "answer": one.term} for one in primer[:8]]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = tmp_path / "masker.json"
    text = done(climassay("generate mask train", labels, "-o", file, "--no-vectors", "--json"))
    assert set(json.loads(text)["held_out"]) == {"accuracy@1", "accuracy@3"}
    text = done(climassay("generate mask evaluate", f"statistics,{file}", "primer", "--json"))
    found = json.loads(text)["maskers"]
    assert [one["name"] for one in found] == ["longest word", "statistics", "trained"]
    drafts, masked = tmp_path / "drafts.jsonl", tmp_path / "masked.jsonl"
    bare = Wording("The albedo of ice is high.")
    write_drafts(drafts, [draft(1), draft(2, "cloze", wording=bare), draft(3, "cloze", wording=Wording("It is."))])
    told = json.loads(done(climassay("generate mask apply statistics", drafts, "-o", masked, "--json")))
    assert (told["masked"], told["no_term"], told["failed"]) == (1, 1, 0)
    refused(climassay("generate mask evaluate statistics", tmp_path / "none.csv"))
