"""Verdict heads: the rule, training on planted states, files, and what they refuse."""

import dataclasses
import functools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError, ModelError
from climassay.factcheck.verdict_head import (
    VERDICT_LABELS,
    balanced,
    load_head,
    rule_probabilities,
    save_head,
)
from climassay.factcheck.verdict_head_fitting import fit_evidence, log_loss, rule_verdict
from climassay.factcheck.verdict_head_training import default_readings, train_head
from climassay.factcheck.verdict_reading import EVIDENCE_LABELS, Reading, word_features
from climassay.learning import ActivationStore
from climassay.learning.splits import group_folds, hold_out, near_duplicate_groups
from planted_evidence import TELLING_LAYER, EvidenceModel, WordEncoder, evidence_claims

PROBABILITIES = st.lists(
    st.tuples(*[st.floats(0.01, 1)] * 3).map(lambda row: tuple(value / sum(row) for value in row)), max_size=8
)
READINGS = tuple(Reading(use, (layer,), "none") for use in ("contrast", "mean") for layer in (1, TELLING_LAYER, 3))


@functools.cache
def trained():
    table = evidence_claims()
    return train_head(table, table.rows, EvidenceModel(), readings=READINGS, regularisations=(0.3, 3.0))


# ------------------------------------------------------------------------------------------------------- the rule


def test_rule_on_two_uncertain_passages_by_hand():
    # One supports or says nothing, one refutes or says nothing, each at even odds: four outcomes of equal probability.
    assert rule_probabilities([(0, 0.5, 0.5), (0.5, 0, 0.5)]) == pytest.approx([0.25, 0.25, 0.25, 0.25])


def test_rule_without_passages_is_not_enough_information():
    assert rule_probabilities([]).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [
        (["SUPPORTS", "NOT_ENOUGH_INFO"], "SUPPORTS"),
        (["NOT_ENOUGH_INFO", "REFUTES", "REFUTES"], "REFUTES"),
        (["REFUTES", "NOT_ENOUGH_INFO", "SUPPORTS"], "DISPUTED"),
        (["NOT_ENOUGH_INFO"] * 5, "NOT_ENOUGH_INFO"),
    ],
)
def test_rule_on_certain_passages_is_that_of_climate_fever(labels, verdict):
    places = np.array([EVIDENCE_LABELS.index(label) for label in labels])
    assert VERDICT_LABELS[rule_verdict(places)] == verdict


@given(PROBABILITIES, st.randoms(use_true_random=False))
def test_rule_gives_probabilities_whatever_the_order(rows, random):
    found = rule_probabilities(rows)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    shuffled = random.sample(rows, len(rows))
    assert rule_probabilities(shuffled) == pytest.approx(found)


@given(PROBABILITIES, st.floats(0.01, 0.99))
def test_further_passage_never_makes_information_scarcer(rows, lack):
    more = [*rows, (1 - lack, 0.0, lack)]
    assert rule_probabilities(more)[3] <= rule_probabilities(rows)[3] + 1e-12


def test_balance_divides_by_the_class_shares():
    plain, shares = np.array([0.6, 0.1, 0.2, 0.1]), np.array([0.6, 0.1, 0.1, 0.2])
    assert balanced(plain, shares, 0.0) == pytest.approx(plain)
    # Quotients 1, 1, 2 and 1/2.
    assert balanced(plain, shares, 1.0) == pytest.approx(np.array([1, 1, 2, 0.5]) / 4.5)


# ---------------------------------------------------------------------------------------------------------- words


def test_word_features_by_hand():
    claim, passage = "Sea level did not rise by 20 cm since 1900.", "Global mean sea level rose 20 cm."
    # A negation in the claim only; 20 shared, 1900 not; of level, rise, since, 1900 the passage has one.
    assert word_features(claim, passage) == (1, 0, 1, 1, 1, 0.25)


# ------------------------------------------------------------------------------------------------------- training


def test_planted_direction_is_found_in_its_layer():
    found = trained()
    best = found.choices[0]
    assert best.reading.layers == (TELLING_LAYER,)
    assert best.reading.states == "contrast"
    assert best.accuracy > 0.95
    assert found.head.provenance.held_out["macro_f1"] > 0.9
    other = min(choice.log_loss for choice in found.choices if choice.reading.layers != (TELLING_LAYER,))
    assert other > 3 * best.log_loss


def test_labels_that_no_state_knows_are_not_learned():
    table = evidence_claims(scrambled=True)
    found = train_head(table, table.rows, EvidenceModel(), readings=READINGS[:3], regularisations=(0.1, 1.0))
    assert found.choices[0].log_loss > np.log(3) - 0.05
    assert found.head.provenance.held_out["macro_f1"] < 0.45


def test_head_judges_new_claims_with_any_number_of_passages():
    model, head = EvidenceModel(), trained().head
    says = {word: f"Buoy 77 says it {word}" for word in ("refutes", "supports", "neither")}
    claims = [
        ("New claim.", []),
        ("New claim.", [says["supports"]]),
        ("New claim.", [says["neither"], says["refutes"]]),
        ("New claim.", [says["supports"], says["refutes"], *[says["neither"]] * 6]),
        ("New claim.", [says["neither"]] * 3),
    ]
    found = head.predict(model, claims)
    verdicts = [head.labels[int(np.argmax(row))] for row in found]
    assert verdicts == ["NOT_ENOUGH_INFO", "SUPPORTS", "REFUTES", "DISPUTED", "NOT_ENOUGH_INFO"]
    assert all(sum(row) == pytest.approx(1) for row in found)
    assert [len(rows) for rows in head.predict_evidence(model, claims)] == [0, 1, 2, 8, 3]


def test_passages_judged_one_by_one():
    model, head = EvidenceModel(), trained().head
    [rows] = head.predict_evidence(model, [("New claim.", ["It refutes", "It supports", "It is neither"])])
    assert [EVIDENCE_LABELS[int(np.argmax(row))] for row in rows] == list(EVIDENCE_LABELS)


def test_passage_that_cannot_be_read_fails_its_claim_alone():
    claims = [("A.", ["It supports"]), ("B.", ["It supports", "unreadable"]), ("C.", ["It refutes"])]
    found = trained().head.predict(EvidenceModel(), claims)
    assert [row is None for row in found] == [False, True, False]
    assert [int(np.argmax(row)) for row in (found[0], found[2])] == [2, 0]


def test_training_claims_that_cannot_be_used_are_left_out_and_counted():
    table = evidence_claims(30)
    first, second, third, *rest = table.rows
    spoiled = dataclasses.replace(first.evidence[0], text="unreadable supports")
    rows = (
        dataclasses.replace(first, evidence=(spoiled, *first.evidence[1:])),
        dataclasses.replace(second, evidence=(dataclasses.replace(second.evidence[0], label=None),)),
        dataclasses.replace(third, evidence=()),
        *rest,
    )
    found = train_head(table, rows, EvidenceModel(), readings=READINGS[1:2], regularisations=(0.3,))
    assert found.left_out == 3
    assert found.head.provenance.claims == 27
    assert not found.head.knows(first.text)
    assert found.head.knows(rest[0].text)


def test_states_are_read_once(tmp_path):
    table, model, store = evidence_claims(12), EvidenceModel(), ActivationStore(tmp_path)
    for _ in range(2):
        train_head(table, table.rows, model, readings=READINGS[1:2], regularisations=(0.3,), store=store)
    assert len(model.read) == len({(row.text, passage) for row in table.rows for passage in row.passages})


def test_head_without_a_model_reads_words_and_vectors():
    table, encoder = evidence_claims(30), WordEncoder()
    found = train_head(table, table.rows, None, encoder=encoder, regularisations=(1.0,))
    assert found.head.provenance.model == ""
    assert found.head.provenance.encoder == encoder.name
    [row] = found.head.predict(None, [("A claim.", ["It supports"])], encoder=encoder)
    assert sum(row) == pytest.approx(1)


def test_what_cannot_be_trained_on_is_refused():
    table = evidence_claims(10)
    unlabelled = [dataclasses.replace(row, evidence=()) for row in table.rows]
    with pytest.raises(InputError, match="0 of 10"):
        train_head(table, unlabelled, EvidenceModel(), readings=READINGS)
    with pytest.raises(InputError, match="needs a model"):
        train_head(table, table.rows, None, readings=READINGS)
    with pytest.raises(InputError, match="encoder"):
        train_head(table, table.rows, EvidenceModel(), readings=[Reading("mean", (1,), "cosine")])
    wrong = [dataclasses.replace(row, label="mostly correct") for row in table.rows]
    with pytest.raises(InputError, match="mostly correct"):
        train_head(table, wrong, EvidenceModel(), readings=READINGS)
    with pytest.raises(InputError):
        Reading("contrast", ())


def test_all_claims_unreadable_is_a_model_error():
    table = evidence_claims(4)
    rows = [
        dataclasses.replace(
            row, evidence=tuple(dataclasses.replace(one, text="unreadable supports") for one in row.evidence)
        )
        for row in table.rows
    ]
    with pytest.raises(ModelError, match="too long"):
        train_head(table, rows, EvidenceModel(), readings=READINGS[:1])


def test_default_readings_lie_about_the_middle():
    assert {reading.layers for reading in default_readings(30, True)} == {(15,), (18,), (21,)}
    assert default_readings(None, True) == (Reading("none", (), "vectors"),)
    assert {reading.encoder for reading in default_readings(2, False)} == {"none"}


@given(st.floats(1e-3, 1e3), st.floats(-100, 100))
def test_units_of_a_feature_do_not_matter(scale, shift):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    states, words = rng.normal(size=(60, 5)) + labels[:, None], rng.normal(size=(60, 2))
    plain = fit_evidence([states, words], labels, 1.0).probabilities(np.hstack([states, words]))
    changed = words * scale + shift
    other = fit_evidence([states, changed], labels, 1.0).probabilities(np.hstack([states, changed]))
    assert other == pytest.approx(plain, abs=1e-6)


def test_label_that_training_lacks_stays_improbable_and_finite():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 3))
    for labels in (np.ones(20, dtype=int), rng.integers(0, 2, 20)):
        fitted = fit_evidence([features], labels, 1.0)
        assert np.isfinite([*fitted.weights.ravel(), *fitted.bias]).all()
        assert fitted.probabilities(features)[:, 2].max() < 1e-6
        assert log_loss(fitted.probabilities(features), labels) < 1


# --------------------------------------------------------------------------------------------------- like claims


def test_like_claims_are_one_group_even_through_a_third():
    groups = near_duplicate_groups(
        ["a b c d", "Ice melts.", "ice melts", "c d e f", "b c d e"], WordEncoder(), similar=0.74
    )
    assert groups[1] == groups[2]
    assert groups[0] == groups[3] == groups[4]
    assert len(set(groups.tolist())) == 2


@given(st.lists(st.integers(0, 12), min_size=3, max_size=40), st.integers(0, 1000))
def test_split_and_folds_never_cut_a_group(labels, seed):
    groups = np.unique(labels, return_inverse=True)[1]
    wanted = len(groups) // 3
    train, test = hold_out(groups, wanted, seed=seed)
    assert sorted([*train, *test]) == list(range(len(groups)))
    assert len(test) <= wanted
    assert not set(groups[train]) & set(groups[test])
    if len(set(labels)) > 1:
        folds = group_folds(groups, 5, seed=seed)
        assert all(len(set(folds[groups == group])) == 1 for group in set(groups))
        assert len(set(folds)) == min(5, len(set(labels)))


def test_split_that_leaves_nothing_is_refused():
    with pytest.raises(InputError):
        hold_out(np.arange(3), 3)
    with pytest.raises(InputError):
        group_folds(np.zeros(4, dtype=int), 5)


# ---------------------------------------------------------------------------------------------------------- files


def test_saved_head_is_the_same(tmp_path):
    head, file = trained().head, tmp_path / "head.safetensors"
    save_head(head, file)
    again = load_head(file)
    assert again.provenance == head.provenance
    assert again.reading == head.reading
    claims = [("New claim.", ["It supports", "It is neither"])]
    assert again.predict(EvidenceModel(), claims) == head.predict(EvidenceModel(), claims)
    assert [path.name for path in tmp_path.iterdir()] == ["head.safetensors"]


def rewritten(file, **facts):
    """The file with other header entries."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    with safe_open(file, framework="numpy") as opened:
        header, arrays = opened.metadata(), {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    save_file(arrays, file, header | {key: json.dumps(value) for key, value in facts.items()})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"version": 2}, "newer"),
        ({"format": "climassay-probe"}, "no verdict head"),
        ({"labels": ["YES", "NO"]}, "damaged"),
        ({"balance": 7}, "damaged"),
        ({"reading": {"states": "contrast", "layers": [1], "eyes": 2}}, "damaged"),
    ],
    ids=["version", "format", "labels", "balance", "reading"],
)
def test_files_that_are_not_heads_are_refused(tmp_path, facts, message):
    file = tmp_path / "head.safetensors"
    save_head(trained().head, file)
    rewritten(file, **facts)
    with pytest.raises(InputError, match=message):
        load_head(file)


def test_missing_cut_and_unwritable_files(tmp_path):
    file = tmp_path / "head.safetensors"
    with pytest.raises(InputError, match="no verdict head"):
        load_head(file)
    save_head(trained().head, file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match="damaged"):
        load_head(file)
    with pytest.raises(InputError, match="cannot be written"):
        save_head(trained().head, Path(__file__) / "head.safetensors")


def test_another_model_is_refused():
    claims = [("A.", ["It supports"])]
    with pytest.raises(InputError, match="trained on the model local:evidence"):
        trained().head.predict(EvidenceModel(fingerprint="99" * 32), claims)
    with pytest.raises(InputError, match="needs the model"):
        trained().head.predict(None, claims)


def test_model_whose_states_are_hidden_is_refused():
    class Closed:
        name, fingerprint = "openai:closed", EvidenceModel().fingerprint

    with pytest.raises(InputError, match="hidden states"):
        trained().head.predict(Closed(), [("A.", ["It supports"])])


def test_another_encoder_is_refused():
    table = evidence_claims(12)
    readings = [Reading("contrast", (TELLING_LAYER,), "cosine")]
    found = train_head(
        table, table.rows, EvidenceModel(), encoder=WordEncoder(), readings=readings, regularisations=(0.3,)
    )
    other = WordEncoder()
    other.fingerprint = "00" * 32
    with pytest.raises(InputError, match="trained on the encoder"):
        found.head.predict(EvidenceModel(), [("A.", ["It supports"])], encoder=other)


def test_another_template_is_refused():
    head = trained().head
    changed = dataclasses.replace(head, provenance=dataclasses.replace(head.provenance, template_sha256="0" * 64))
    with pytest.raises(InputError, match="another text of the prompt"):
        changed.predict(EvidenceModel(), [("A.", ["It supports"])])
