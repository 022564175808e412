import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.metrics.entailment import NAMES, Relations, RelationScorer, pair_features, resolved
from climassay.metrics.entailment_head import (
    BUNDLED_HEAD,
    UNLABELLED,
    EntailmentHead,
    HeadEntailment,
    LabelledPair,
    PairTable,
    bundled_entailment,
    load_entailment,
    read_pairs,
    sample_statements,
    split_pairs,
    synthetic_pairs,
    train_entailment,
    unseen_pairs,
    validate_entailment,
)
from climassay.metrics.factual_accuracy import PromptedSupport
from scripted_entailment import ScriptedEntailment
from word_encoder import WordEncoder

THINGS = ("ice", "snow", "rain", "wind", "heat", "salt", "dust", "soil", "rock", "sand", "moss", "reef")


def lesson():
    pairs = []
    for place, thing in enumerate(THINGS):
        other = THINGS[place - 1]
        said = f"The {thing} increases by {place + 2} units."
        pairs += [
            LabelledPair(f"In all years the {thing} increases by {place + 2} units.", said, 0),
            LabelledPair(f"In all years the {thing} decreases by {place + 2} units.", said, 1),
            LabelledPair(f"Nobody has looked at {other} here.", said, 2),
        ]
    return PairTable("lesson.jsonl", "a" * 64, tuple(pairs), 0)


@pytest.fixture(scope="module")
def trained():
    table = lesson()
    return train_entailment(table, table.pairs, WordEncoder("local:words", width=24), folds=3)


def test_a_head_learns_what_can_be_learned_and_says_how_it_did_on_others(trained):
    scorer = HeadEntailment(trained.head, WordEncoder("local:words", width=24))
    assert isinstance(scorer, RelationScorer)
    pairs = [
        ("In all years the mist increases by 3 units.", "The mist increases by 3 units."),
        ("In all years the mist decreases by 3 units.", "The mist increases by 3 units."),
        ("Nobody has looked at lava here.", "The mist increases by 3 units."),
    ]
    relations = scorer.relations(pairs)
    assert [int(np.argmax(one)) for one in relations] == [0, 1, 2]
    assert scorer.score(pairs) == [one.confirms for one in relations]
    assert scorer.relations([]) == []
    head, source = scorer.head, trained.head.provenance
    assert head.predict(pairs) == ["confirms", "contradicts", "leaves open"]
    assert source.measured["two_class_auroc"] > 0.9
    assert source.items == 36
    assert source.groups == 12 == len(source.trained_on)
    assert trained.choices[0].merit == max(choice.merit for choice in trained.choices)
    assert source.knows(lesson().pairs[0].statement)
    figures = head.score(lesson().pairs)
    assert (figures.n, figures.groups) == (36, 12)
    assert figures.accuracy.value > 0.9 > figures.constant.value


def test_probabilities_of_relations_are_as_frequent_as_the_relations(trained):
    table = lesson()
    features = pair_features(
        [(pair.premise, pair.statement) for pair in table.pairs], WordEncoder("local:words", width=24)
    )
    assert trained.head.probabilities(features).mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.02)


def test_what_is_no_head_is_refused(trained, tmp_path):
    from safetensors.numpy import save_file

    with pytest.raises(InputError, match="no entailment head"):
        EntailmentHead.load(tmp_path / "missing.safetensors")
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"not a head")
    with pytest.raises(InputError, match="damaged"):
        EntailmentHead.load(damaged)
    other = tmp_path / "other.safetensors"
    save_file({"weights": np.zeros(3)}, other)
    with pytest.raises(InputError, match="no entailment head"):
        EntailmentHead.load(other)
    facts = {"format": "climassay-entailment-head", "version": 1, "features": ["cosine"], "relations": [], "source": {}}
    save_file(
        {"weights": np.zeros(3), "bias": np.zeros(3)}, other, {key: json.dumps(one) for key, one in facts.items()}
    )
    with pytest.raises(InputError, match="other features"):
        EntailmentHead.load(other)
    replace(trained.head, model=replace(trained.head.model, bias=np.array([np.nan, 0.0, 0.0]))).save(other)
    with pytest.raises(InputError, match="not finite"):
        EntailmentHead.load(other)
    with pytest.raises(InputError, match="cannot be written"):
        trained.head.save(Path(__file__) / "head.safetensors")


def test_another_encoder_is_refused(trained):
    stranger = WordEncoder("local:words", fingerprint="0" * 64)
    with pytest.raises(InputError, match="trained on the encoder local:words"):
        HeadEntailment(trained.head, stranger)


def test_all_relations_are_needed():
    table = lesson()
    with pytest.raises(InputError, match="all relations"):
        train_entailment(
            table, [pair for pair in table.pairs if pair.relation != 2], WordEncoder("local:words", width=24)
        )


def test_held_out_statements_are_in_no_training_pair():
    pairs = [*lesson().pairs, LabelledPair("x", "the ice increases by 2 units", 0)]
    train, test = split_pairs(pairs, 4, None)
    assert {words_id(pair.statement) for pair in train}.isdisjoint({words_id(pair.statement) for pair in test})
    assert len(train) + len(test) == len(pairs)
    assert len({pair.statement for pair in test}) == 4


def test_pairs_made_by_rule_stem_from_their_pairs():
    pairs = lesson().pairs
    made, places = synthetic_pairs(pairs)
    for new, place in zip(made, places, strict=True):
        assert new.premise == pairs[place].premise
        assert new.relation in (0, 1)
        if new.relation == 0:
            assert new.statement == new.premise
        else:
            assert new.statement not in (pairs[place].statement, new.premise)
    assert len({place for place, new in zip(places, made, strict=True) if new.statement != new.premise}) >= 12


def test_resolved_directions():
    assert resolved("It did not decrease.").words >= {"increase"}
    assert not resolved("It did not decrease.").negated
    assert resolved("It isn't here.").negated
    assert not resolved("It is not false.").negated
    assert "decrease" in resolved("No one was there when the sea began to decrease.").words


def test_features_of_a_pair():
    features = pair_features(
        [("Ice did not shrink by 3 m.", "Ice did shrink by 4 m."), ("A b.", "A b.")],
        WordEncoder("local:words", width=24),
    )
    found = dict(zip(NAMES, features.named[0], strict=True))
    assert (found["opposite direction"], found["same direction"], found["new numbers"]) == (1, 0, 1)
    assert features.vectors.shape == (2, 4 * 24)
    same = dict(zip(NAMES, features.named[1], strict=True))
    assert (same["cosine"], same["same words"], same["opposite direction"]) == (pytest.approx(1), 1, 0)
    none = pair_features([], WordEncoder("local:words", width=24))
    assert [block.shape for block in none.blocks(vectors=True)] == [(0, 4 * 24), (0, len(NAMES))]
    assert [block.shape for block in features.blocks(vectors=False, places=np.array([1]))] == [(1, len(NAMES))]


def test_the_bundled_head_is_small_and_says_where_it_comes_from():
    head = EntailmentHead.load()
    assert BUNDLED_HEAD.stat().st_size < 100_000
    source = head.provenance
    assert source.data == "climate_fever.jsonl"
    assert (source.groups, source.items, source.settings["turned"]) == (813, 4140, 2619)
    assert 0.65 < source.measured["two_class_auroc"] < 0.8
    assert source.measured["turned_auroc"] > 0.95


def test_the_bundled_head_reads_as_it_did_when_its_file_was_written():
    pairs = [("Glaciers lose ice.", "Glaciers gain ice."), (REFERENCE, "Warmer water takes up more space.")]
    before = [[0.830875723, 0.127213567, 0.04191071], [0.694956734, 0.193364383, 0.111678883]]
    assert EntailmentHead.load().predict_proba(pairs) == pytest.approx(np.array(before), abs=1e-6)


REFERENCE = "Sea level rises because warmer water takes up more space and glaciers lose ice."


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Warmer water takes up more space.", "Warmer water does not take up more space."),
        ("Sea level rises because water expands.", "Sea level falls because water contracts."),
        ("Glaciers lose ice.", "Glaciers gain ice."),
        ("Glaciers lose ice.", "Volcanoes emit sulfur."),
        (REFERENCE, "Sea level falls because warmer water takes up more space and glaciers lose ice."),
    ],
)
def test_the_bundled_scorer_prefers_what_the_reference_says(right, wrong):
    first, second = bundled_entailment().relations([(REFERENCE, right), (REFERENCE, wrong)])
    assert first.confirms > second.confirms
    assert sum(first) == pytest.approx(1)


def test_scorers_by_name():
    assert load_entailment() is load_entailment("bundled") is bundled_entailment()

    class Model:
        name = "local:model"

    assert isinstance(load_entailment("supports:local:model", model=Model()), PromptedSupport)
    assert load_entailment("prompted:local:model", model=Model()).name == "local:model, prompted"
    for wrong in ("prompted:", "something", "nli:", str(Path("no") / "file")):
        with pytest.raises(InputError, match="names no entailment scorer"):
            load_entailment(wrong)


def test_climate_fevers_form(tmp_path):
    file = tmp_path / "fever.jsonl"
    rows = [
        {"claim": "Ice  melts.", "evidences": [
            {"evidence": "It shrinks.", "article": "Ice", "evidence_label": "SUPPORTS"},
            {"evidence": "It grows.", "article": "", "evidence_label": "REFUTES"},
            {"evidence": "It is cold.", "article": "Ice", "evidence_label": None},
        ]},
        {"claim": "Seas rise.", "evidences": [{"evidence": "Fish swim.", "evidence_label": "NOT_ENOUGH_INFO"}]},
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    table = read_pairs(file)
    assert table.pairs == (
        LabelledPair("Ice: It shrinks.", "Ice melts.", 0),
        LabelledPair("It grows.", "Ice melts.", 1),
        LabelledPair("Fish swim.", "Seas rise.", 2),
    )
    assert table.skipped == 1


def test_pairs_that_nobody_has_judged(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("premise,statement\nA b.,C d.\n,E f.\n", encoding="utf-8")
    table = read_pairs(file, labelled=False)
    assert table.pairs == (LabelledPair("A b.", "C d.", UNLABELLED),)
    assert table.skipped == 1
    with pytest.raises(InputError, match="and label"):
        read_pairs(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("premise,statement,label\na,b,maybe\n", "'maybe' is not a relation"),
        ("a,b\n1,2\n", "no labelled pairs"),
        ("premise,statement,label\n,,\na,,SUPPORTS\n", "No row"),
        ("claim,evidences\na,nothing\n", "No row"),
        ("claim,evidences\na,[1]\n", "must be a text, or a list"),
    ],
    ids=["label", "columns", "empty", "text", "numbers"],
)
def test_what_is_wrong_is_said(tmp_path, text, message):
    file = tmp_path / "pairs.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_pairs(file)


PAIRS = [
    LabelledPair("a", "one", 0),
    LabelledPair("b", "one", 0),
    LabelledPair("c", "two", 1),
    LabelledPair("d", "two", 2),
    LabelledPair("e", "three", 0),
    LabelledPair("f", "three", 1),
]


def scripted(**by_premise):
    return ScriptedEntailment(lambda premise, _: by_premise[premise])


def test_figures_worked_by_hand():
    scorer = scripted(
        a=Relations(0.8, 0.1, 0.1), b=Relations(0.2, 0.3, 0.5), c=Relations(0.1, 0.7, 0.2),
        d=Relations(0.1, 0.1, 0.8), e=None, f=Relations(0.3, 0.1, 0.6),
    )  # fmt: skip
    found = validate_entailment(PAIRS, scorer, resamples=50)
    two, three = found.two_class, found.three_class
    assert (three.n, three.groups, three.failed) == (6, 3, 1)
    # Of a, b, c, e, f: a and c are right, e failed.
    assert (two.accuracy.value, two.n, two.failed) == (pytest.approx(2 / 5), 5, 1)
    assert two.constant.value == pytest.approx(3 / 5)
    # a, c and d.
    assert three.accuracy.value == pytest.approx(3 / 6)
    # P(SUPPORTS): a .889, b .4 against c .125, f .75: three of four pairs in order.
    assert two.auroc.value == pytest.approx(3 / 4)
    # P(confirms): a .8, b .2 against c .1, d .1, f .3: five of six.
    assert found.support_auroc == pytest.approx(5 / 6)
    # P(confirms) below a half: b, c, d and f, of which b supports; of all that were answered a and b do.
    assert (found.marked.value, found.marked.n) == (pytest.approx(3 / 4), 4)
    assert (found.unsupporting.value, found.unsupporting.n) == (pytest.approx(3 / 5), 5)
    assert found.marked.interval.low == 0 < found.marked.interval.high == 1
    assert two.accuracy.interval.low <= 0.4 <= two.accuracy.interval.high
    # Confidence of a .889 right, b .6 wrong, c .875 right, f .75 wrong; bins of .1: .6, .75 and the pair above .8.
    error = (0.6 + 0.75 + 2 * (1 - (0.8889 + 0.875) / 2)) / 4
    assert found.calibration.expected_calibration_error == pytest.approx(error, abs=1e-3)


def test_both_classes_are_needed():
    scorer = scripted(a=Relations(1, 0, 0), b=Relations(1, 0, 0))
    with pytest.raises(InputError, match="both SUPPORTS and REFUTES"):
        validate_entailment(PAIRS[:2], scorer)


def test_statements_are_sampled_whole():
    sample = sample_statements(PAIRS, 2, seed=1)
    assert len({pair.statement for pair in sample}) == 2
    assert list(sample) == [pair for pair in PAIRS if pair.statement in {one.statement for one in sample}]
    assert sample_statements(PAIRS, None) == tuple(PAIRS)


def test_pairs_a_head_was_trained_on_are_left_out():
    scorer = HeadEntailment(EntailmentHead.load())
    assert unseen_pairs(PAIRS, scorer) == tuple(PAIRS)

    known = replace(scorer.head.provenance, trained_on=(words_id(PAIRS[0].statement),))
    scorer.head = replace(scorer.head, provenance=known)
    assert [pair.statement for pair in unseen_pairs(PAIRS, scorer)] == ["two", "two", "three", "three"]
    with pytest.raises(InputError, match="every statement"):
        unseen_pairs(PAIRS[:2], scorer)
    assert unseen_pairs(PAIRS[:2], scripted()) == tuple(PAIRS[:2])
