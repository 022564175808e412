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
    EVIDENCE_LABELS,
    VERDICT_LABELS,
    Reading,
    VerdictHead,
    default_readings,
    rule_probabilities,
    rule_verdict,
    train_head,
    word_features,
)
from planted_evidence import TELLING_LAYER, EvidenceModel, evidence_claims
from word_encoder import WordEncoder

PROBABILITIES = st.lists(
    st.tuples(*[st.floats(0.01, 1)] * 3).map(lambda row: tuple(value / sum(row) for value in row)), max_size=8
)
READINGS = tuple(Reading(use, (layer,), "none") for use in ("contrast", "mean") for layer in (1, TELLING_LAYER, 3))


@functools.cache
def trained():
    table = evidence_claims()
    return train_head(table, table.rows, EvidenceModel(), readings=READINGS, regularisations=(0.3, 3.0))


def test_rule_on_two_uncertain_passages_by_hand():
    # One supports or says nothing, one refutes or says nothing, each at even odds: four outcomes of equal probability.
    assert rule_probabilities([(0, 0.5, 0.5), (0.5, 0, 0.5)]) == pytest.approx([0.25, 0.25, 0.25, 0.25])


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


@given(PROBABILITIES, st.floats(0.01, 0.99))
def test_further_passage_never_makes_information_scarcer(rows, lack):
    more = [*rows, (1 - lack, 0.0, lack)]
    assert rule_probabilities(more)[3] <= rule_probabilities(rows)[3] + 1e-12


def test_word_features_by_hand():
    claim, passage = "Sea level did not rise by 20 cm since 1900.", "Global mean sea level rose 20 cm."
    # A negation in the claim only; 20 shared, 1900 not; of level, rise, since, 1900 the passage has one.
    assert word_features(claim, passage) == (1, 0, 1, 1, 1, 0.25)


def test_planted_direction_is_found_in_its_layer():
    found = trained()
    best = found.choices[0]
    assert best.reading.layers == (TELLING_LAYER,)
    assert best.reading.states == "contrast"
    assert best.accuracy > 0.95
    assert found.head.provenance.measured["macro_f1"] > 0.9
    other = min(choice.log_loss for choice in found.choices if choice.reading.layers != (TELLING_LAYER,))
    assert other > 3 * best.log_loss


def test_labels_that_no_state_knows_are_not_learned():
    table = evidence_claims(scrambled=True)
    found = train_head(table, table.rows, EvidenceModel(), readings=READINGS[:3], regularisations=(0.1, 1.0))
    assert found.choices[0].log_loss > np.log(3) - 0.05
    assert found.head.provenance.measured["macro_f1"] < 0.45


def test_head_judges_new_claims_with_any_number_of_passages():
    head = trained().head
    says = {word: f"Buoy 75 says it {word}" for word in ("refutes", "supports", "neither")}
    claims = [
        ("New claim.", []),
        ("New claim.", [says["supports"]]),
        ("New claim.", [says["neither"], says["refutes"]]),
        ("New claim.", [says["supports"], says["refutes"], *[says["neither"]] * 6]),
        ("New claim.", [says["neither"]] * 3),
    ]
    found = head.predict_proba(claims)
    verdicts = head.predict(claims)
    assert verdicts == ["NOT_ENOUGH_INFO", "SUPPORTS", "REFUTES", "DISPUTED", "NOT_ENOUGH_INFO"]
    assert all(sum(row) == pytest.approx(1) for row in found)
    assert [len(rows) for rows in head.predict_evidence(claims)] == [0, 1, 2, 8, 3]


def test_a_head_is_scored_on_claims_with_a_verdict():
    rows = evidence_claims(20, seed=5).rows
    figures = trained().head.score([*rows, dataclasses.replace(rows[0], label=None)])
    assert (figures.n, figures.groups, figures.failed) == (20, 20, 0)
    assert figures.accuracy.value > 0.9 > figures.constant.value


def test_passage_that_cannot_be_read_fails_its_claim_alone():
    claims = [("A.", ["It supports"]), ("B.", ["It supports", "unreadable"]), ("C.", ["It refutes"])]
    found = trained().head.predict_proba(claims)
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
    assert found.head.provenance.groups == 27
    assert not found.head.provenance.knows(first.text)
    assert found.head.provenance.knows(rest[0].text)


def test_head_without_a_model_reads_words_and_vectors():
    table, encoder = evidence_claims(30), WordEncoder()
    found = train_head(table, table.rows, None, encoder=encoder, regularisations=(1.0,))
    assert found.head.provenance.model == ""
    assert found.head.provenance.encoder == encoder.name
    [row] = found.head.predict_proba([("A claim.", ["It supports"])])
    assert sum(row) == pytest.approx(1)
    with pytest.raises(InputError, match="trained on the encoder"):
        found.head.with_models(WordEncoder(fingerprint="0" * 64))


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


def test_saved_head_is_the_same(tmp_path):
    head, file = trained().head, tmp_path / "head.safetensors"
    head.save(file)
    again = VerdictHead.load(file)
    assert again.provenance == head.provenance
    assert again.reading == head.reading
    claims = [("New claim.", ["It supports", "It is neither"])]
    assert again.with_models(model=EvidenceModel()).predict_proba(claims) == head.predict_proba(claims)
    assert [path.name for path in tmp_path.iterdir()] == ["head.safetensors"]


def test_a_file_of_the_first_version_reads_as_it_did():
    head = VerdictHead.load(Path(__file__).parents[1] / "data" / "verdict_head_v1.safetensors")
    source = head.provenance
    assert (source.groups, source.items, source.data, source.regularisation) == (24, 72, "planted", 0.3)
    assert source.measured["macro_f1"] == pytest.approx(0.6286549707602339)
    assert source.knows(evidence_claims(24, each=3).rows[0].text)
    claims = [
        ("Sea level did not rise by 20 cm.", ["Sea level rose by 20 cm.", "It never rains."]),
        ("Ice melts.", ["Warm ice melts."]),
    ]
    before = [
        (0.5417674961730182, 0.027778910786274855, 0.40193689075080385, 0.028516702289903165),
        (0.26284696680539177, 7.018219363216323e-07, 0.22385895988367596, 0.513293371488996),
    ]
    assert np.array(head.predict_proba(claims)) == pytest.approx(np.array(before), abs=1e-12)


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
        ({"version": 3}, "newer"),
        ({"format": "climassay-probe"}, "no verdict head"),
        ({"labels": ["YES", "NO"]}, "damaged"),
        ({"balance": 7}, "damaged"),
        ({"reading": {"states": "contrast", "layers": [1], "eyes": 2}}, "damaged"),
    ],
    ids=["version", "format", "labels", "balance", "reading"],
)
def test_files_that_are_not_heads_are_refused(tmp_path, facts, message):
    file = tmp_path / "head.safetensors"
    trained().head.save(file)
    rewritten(file, **facts)
    with pytest.raises(InputError, match=message):
        VerdictHead.load(file)


def test_another_model_is_refused():
    claims = [("A.", ["It supports"])]
    with pytest.raises(InputError, match="trained on the model local:evidence"):
        trained().head.with_models(model=EvidenceModel(fingerprint="99" * 32))
    with pytest.raises(InputError, match="Hidden states"):
        trained().head.with_models().predict(claims)


def test_another_template_is_refused():
    head = trained().head
    changed = dataclasses.replace(head, provenance=dataclasses.replace(head.provenance, template_sha256="0" * 64))
    with pytest.raises(InputError, match="another text of the prompt"):
        changed.predict([("A.", ["It supports"])])
