"""Heads that judge drafts, and how they are evaluated."""

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.generation import Subject
from climassay.generation.validation import (
    StateReader,
    TextReader,
    TrainedValidator,
    load_validator,
    train_validator,
    validate,
    validation_prompt,
)
from climassay.generation.validation.labels import LabelledDraft, choose_threshold, precision_at, score_validator
from climassay.generation.validation.readers import TEXT_FEATURES, validation_request
from climassay.generation.validation.training import cross_validate
from climassay.learning import find_threshold
from climassay.questions import KINDS
from word_encoder import WordEncoder


def test_random_labels_cannot_be_learned_across_passages():
    """Features that name the passage, and labels that go by passage: only folds that share none tell the truth."""
    generator = np.random.default_rng(3)
    groups = np.repeat(np.arange(30), 4)
    valid = generator.integers(0, 2, 30)[groups]
    features = np.eye(30)[groups] + 0.01 * generator.normal(size=(120, 30))
    honest, folds = cross_validate([features], valid, groups)
    leaking, _ = cross_validate([features], valid, np.arange(120))
    assert np.mean((honest > 0.5) == valid) < 0.7
    assert np.mean((leaking > 0.5) == valid) > 0.9
    assert all(len(set(folds[groups == one].tolist())) == 1 for one in range(30))


def test_features_of_a_draft_are_those_that_are_named(make_draft, encoder):
    drafts = [
        make_draft(1, answer="the ocean warms"),
        make_draft(2, kind="mcq", answer="up", options=("up", "very far down indeed", "down"), question="Which way?"),
    ]
    read = TextReader(encoder).read(drafts)
    named, vectors = read.blocks
    assert named.shape == (2, len(TEXT_FEATURES))
    assert vectors.shape == (2, 4 * encoder.width)
    value = dict(zip(TEXT_FEATURES, named[0].tolist(), strict=True))
    assert value["answer in context"] == 1
    assert value["words of answer"] == pytest.approx(np.log(4))
    mcq = dict(zip(TEXT_FEATURES, named[1].tolist(), strict=True))
    assert mcq["options"] == 3
    assert mcq["multiple choice"] == 1
    # One word against a mean of (4 + 1) / 2.
    assert mcq["answer longer than options"] == pytest.approx(np.log(2 / 3.5))
    question, answer = encoder.encode([drafts[0].wording.question, drafts[0].wording.answer]).astype(float)
    width = encoder.width
    assert np.allclose(vectors[0, :width], question)
    assert np.allclose(vectors[0, width : 2 * width], answer)
    assert np.allclose(vectors[0, 2 * width : 3 * width], np.abs(question - answer))


def test_a_learnable_fault_is_learned_saved_and_loaded(labels, encoder, tmp_path, make_draft):
    trained = train_validator(labels, TextReader(encoder), precision=0.95)
    assert trained.scores.evaluation.auroc.value > 0.95
    assert trained.scores.evaluation.groups == 30
    threshold = trained.validator.threshold
    assert threshold.precision.value >= 0.95
    assert threshold == find_threshold(0.95, [one.valid for one in labels.drafts], trained.probabilities)
    file = tmp_path / "validator"
    trained.validator.save(file)
    loaded = load_validator(str(file), encoder=encoder)
    assert loaded.record == trained.record
    fresh = [make_draft(100), make_draft(101, answer="It cools."), make_draft(102, kind="mcq", options=("a", "b"))]
    given = loaded.judge(fresh)
    assert given == trained.validator.judge(fresh)
    assert given[0] > 0.8 > 0.3 > given[1]
    # It was trained on freeform questions only.
    assert given[2] is None
    assert np.isnan(loaded.predict_proba(fresh)[2]).all()
    assert loaded.predict_proba(fresh)[:2].sum(axis=1) == pytest.approx([1, 1])
    scores = loaded.score(
        [LabelledDraft(fresh[0], True), LabelledDraft(fresh[1], False), LabelledDraft(fresh[2], True)]
    )
    assert (scores.evaluation.auroc.value, scores.evaluation.failed) == (1, 1)


def test_a_precision_out_of_reach_leaves_a_head_without_threshold(labels, encoder):
    spoiled = tuple(LabelledDraft(one.draft, number % 2 == 0) for number, one in enumerate(labels.drafts))
    trained = train_validator(labels._replace(drafts=spoiled), TextReader(encoder), precision=0.99)
    assert trained.validator.threshold is None
    assert "cannot be reached" in trained.no_threshold_reason


def test_a_probe_reads_states_and_leaves_out_what_failed(labels, verdicts, tmp_path, make_draft):
    broken = LabelledDraft(make_draft(77, question="Does it fail?"), True)
    more = labels._replace(drafts=(*labels.drafts, broken))
    trained = train_validator(more, StateReader(verdicts, layers=(1, 2)))
    assert trained.n_excluded == 1
    assert len(trained.probabilities) == 60
    assert trained.scores.evaluation.auroc.value > 0.9
    assert trained.record.provenance.layers == (1, 2)
    file = tmp_path / "probe.safetensors"
    trained.validator.save(file)
    loaded = load_validator(str(file), load=lambda *_: verdicts)
    given = loaded.judge([make_draft(200), broken.draft, make_draft(201, answer="It cools.")])
    assert given[1] is None
    assert given[0] > given[2]
    read = StateReader(verdicts, layers=(0,)).read([make_draft(1)])
    assert [block.shape for block in read.blocks] == [(1, 6), (1, 6)]
    # Somewhat above the middle of four layers.
    assert StateReader(verdicts).layers == (2,)


def test_other_encoders_and_damaged_files_are_refused(labels, encoder, tmp_path):
    validator = train_validator(labels, TextReader(encoder)).validator
    other = WordEncoder("local:words", width=32, fingerprint="b" * 64)
    with pytest.raises(InputError, match="cannot read local:words"):
        validator.with_reader(TextReader(other))
    file = tmp_path / "head"
    validator.save(file)
    with pytest.raises(InputError, match="without its encoder"):
        TrainedValidator.load(file).judge([labels.drafts[0].draft])
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(InputError, match="damaged"):
        TrainedValidator.load(file)
    with pytest.raises(InputError, match="There is no validator"):
        TrainedValidator.load(tmp_path / "missing")
    with pytest.raises(InputError, match="names no validator"):
        load_validator(str(tmp_path / "missing"))


def test_deciding_leaves_alone_what_was_rejected_before(labels, encoder, make_draft, expert):
    validator = train_validator(labels, TextReader(encoder)).validator
    rejected = make_draft(300, decisions=[expert(False, "wrong answer")])
    given = [make_draft(301), rejected, make_draft(302, answer="It cools."), make_draft(303, kind="cloze")]
    decided = validate(given, validator, 0.5)
    assert decided[1] is rejected
    last = [draft.decisions[-1] for draft in decided]
    assert [one.accepted for one in last] == [True, False, False, None]
    assert (last[2].reason, last[2].by, last[2].step) == ("invalid by the validator", "validator", "validate")
    assert last[0].score == pytest.approx(validator.judge([given[0]])[0], abs=1e-6)  # other batches, other last digits
    assert last[0].reason == ""
    assert [draft.id for draft in decided] == [draft.id for draft in given]
    with pytest.raises(InputError, match="give a probability"):
        validate(given, validator, 1.5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_of_any_type_can_be_put_before_a_model(kind, make_draft):
    asked = validation_request(make_draft(1, kind=kind, question="Does it warm?"), validation_prompt(), Subject())
    assert "Does it warm?" in asked.messages[-1].content


def test_precision_at_a_share():
    valid, given = np.array([1, 0, 1, 0, 1]), np.array([0.9, 0.8, 0.7, 0.2, 0.1])
    assert precision_at(0.6, valid, given).precision.value == pytest.approx(2 / 3)
    assert precision_at(0.01, valid, given).precision.value == 1


def test_a_validator_that_keeps_nothing_has_no_precision():
    scores = score_validator([1, 0, 1], [0.1, 0.2, 0.3], [0, 1, 2])
    assert [one.share for one in scores.precisions] == [1.0, 0.5, 0.8]
    assert scores.precisions[0].precision.value == pytest.approx(2 / 3)


def test_one_kind_of_label_cannot_be_scored():
    with pytest.raises(InputError, match="all valid or all invalid"):
        score_validator([1, 1], [0.5, 0.6], [0, 1])


def test_what_could_not_be_judged_is_neither_kept_nor_right():
    scores = score_validator([1, 0, 1, 1], [0.5, 0.2, np.nan, 0.9], [0, 1, 2, 3])
    assert (scores.evaluation.n, scores.evaluation.failed) == (4, 1)
    assert scores.evaluation.accuracy.value == pytest.approx(3 / 4)
    # One half itself is kept.
    assert scores.precisions[1].share == pytest.approx(2 / 3)
    assert scores.precisions[1].precision.value == 1
    assert scores.calibration.n == 3


def test_a_precision_out_of_reach_is_told_and_one_that_is_none_refused():
    valid, given = np.arange(40) % 2, np.linspace(0, 1, 40)
    assert choose_threshold(None, valid, given) == (None, None)
    threshold, refusal = choose_threshold(0.99, valid, given)
    assert threshold is None
    assert "cannot be reached" in refusal
    with pytest.raises(InputError, match="give a share"):
        choose_threshold(1.5, valid, given)
