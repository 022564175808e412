import numpy as np
import pytest

from climassay.errors import InputError
from climassay.generation.validation import (
    load_validator,
    save_head,
    threshold_for,
    train_features,
    train_probe,
    validate,
)
from climassay.generation.validation.head import load_head
from climassay.generation.validation.head_fitting import Scaling, cross_validated, fit_blocks, fit_logistic
from climassay.generation.validation.labels import LabelledDraft
from climassay.generation.validation.prompting import validation_prompt
from climassay.generation.validation.reading import TEXT_FEATURES, StateReader, TextReader
from climassay.generation.validation.validators import FeatureValidator, ProbeValidator


def test_fitting_in_the_span_of_the_items_is_exact():
    generator = np.random.default_rng(0)
    blocks = [generator.normal(size=(30, 5)) * 100 + 7, generator.normal(size=(30, 80))]
    valid = generator.integers(0, 2, 30)
    (found,) = fit_blocks(blocks, valid, [3.0])
    features = np.concatenate(blocks, axis=1)
    scaling = Scaling.of(blocks)
    plain = fit_logistic(scaling.apply(features), valid, 3.0)
    assert np.allclose(found.scores(features), plain.scores(scaling.apply(features)), atol=1e-2)


def test_scaled_blocks_have_equal_say_and_constants_none():
    generator = np.random.default_rng(0)
    wide, narrow = generator.normal(size=(50, 200)) * 9, np.column_stack([generator.normal(size=50), np.full(50, 3.3)])
    rows = Scaling.of([wide, narrow]).apply(np.concatenate([wide, narrow], axis=1))
    assert (rows[:, :200] ** 2).sum(axis=1).mean() == pytest.approx(0.5)
    assert (rows[:, 200:] ** 2).sum(axis=1).mean() == pytest.approx(0.5)
    assert not rows[:, 201].any()


def test_random_labels_cannot_be_learned_across_passages():
    """Features that name the passage, and labels that go by passage: only folds that share none tell the truth."""
    generator = np.random.default_rng(3)
    groups = np.repeat(np.arange(30), 4)
    valid = generator.integers(0, 2, 30)[groups]
    features = np.eye(30)[groups] + 0.01 * generator.normal(size=(120, 30))
    honest, folds = cross_validated([features], valid, groups)
    leaking, _ = cross_validated([features], valid, np.arange(120))
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
    trained = train_features(labels, encoder, precision=0.95)
    assert trained.scores.auroc > 0.95
    assert trained.scores.passages == 30
    assert trained.head.threshold.precision.value >= 0.95
    assert trained.head.threshold == threshold_for(0.95, [one.valid for one in labels.drafts], trained.probabilities)
    file = tmp_path / "validator"
    save_head(trained.head, file)
    loaded = load_validator(str(file), encoder=encoder)
    assert isinstance(loaded, FeatureValidator)
    assert loaded.threshold == trained.head.threshold
    fresh = [make_draft(100), make_draft(101, answer="It cools."), make_draft(102, kind="mcq", options=("a", "b"))]
    given = loaded.judge(fresh)
    assert given == FeatureValidator(trained.head, encoder).judge(fresh)
    assert given[0] > 0.8 > 0.3 > given[1]
    # It was trained on freeform questions only.
    assert given[2] is None
    assert load_head(file).source == trained.head.source


def test_labels_without_a_pattern_are_no_better_than_a_constant(labels, encoder):
    generator = np.random.default_rng(0)
    shuffled = [
        LabelledDraft(one.draft, bool(valid))
        for one, valid in zip(labels.drafts, generator.random(60) < 0.7, strict=True)
    ]
    scores = train_features(labels._replace(drafts=tuple(shuffled)), encoder).scores
    assert scores.auroc_interval.low < 0.5 < scores.auroc_interval.high
    assert scores.calibration.brier > scores.calibration.brier_constant - 0.03


def test_a_precision_out_of_reach_leaves_a_head_without_threshold(labels, encoder):
    spoiled = tuple(LabelledDraft(one.draft, number % 2 == 0) for number, one in enumerate(labels.drafts))
    trained = train_features(labels._replace(drafts=spoiled), encoder, precision=0.99)
    assert trained.head.threshold is None
    assert "cannot be reached" in trained.refusal


def test_a_probe_reads_states_and_leaves_out_what_failed(labels, verdicts, tmp_path, make_draft):
    broken = LabelledDraft(make_draft(77, question="Does it fail?"), True)
    more = labels._replace(drafts=(*labels.drafts, broken))
    trained = train_probe(more, verdicts, layers=(1, 2))
    assert trained.left_out == 1
    assert len(trained.probabilities) == 60
    assert trained.scores.auroc > 0.9
    assert (trained.head.source.kind, trained.head.source.layers) == ("probe", (1, 2))
    file = tmp_path / "probe.safetensors"
    save_head(trained.head, file)
    loaded = load_validator(str(file), load=lambda name, dtype: verdicts)
    assert isinstance(loaded, ProbeValidator)
    given = loaded.judge([make_draft(200), broken.draft, make_draft(201, answer="It cools.")])
    assert given[1] is None
    assert given[0] > given[2]
    read = StateReader(verdicts, validation_prompt(), (0,)).read([make_draft(1)])
    assert [block.shape for block in read.blocks] == [(1, 6), (1, 6)]


def test_heads_refuse_other_encoders_models_and_damaged_files(labels, encoder, verdicts, tmp_path):
    head = train_features(labels, encoder).head
    other = type(encoder)()
    other.fingerprint = "b" * 64
    with pytest.raises(InputError, match="cannot read local:words"):
        FeatureValidator(head, other)
    file = tmp_path / "head"
    save_head(head, file)
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(InputError, match="damaged"):
        load_head(file)
    with pytest.raises(InputError, match="There is no validator"):
        load_head(tmp_path / "missing")
    with pytest.raises(InputError, match="names no validator"):
        load_validator(str(tmp_path / "missing"))


def test_deciding_leaves_alone_what_was_rejected_before(labels, encoder, make_draft, expert):
    validator = FeatureValidator(train_features(labels, encoder).head, encoder)
    rejected = make_draft(300, decisions=[expert(False, "wrong answer")])
    given = [make_draft(301), rejected, make_draft(302, answer="It cools."), make_draft(303, kind="cloze")]
    decided = validate(given, validator, 0.5)
    assert decided[1] is rejected
    last = [draft.decisions[-1] for draft in decided]
    assert [one.accepted for one in last] == [True, False, False, None]
    assert (last[2].reason, last[2].by, last[2].step) == ("invalid by the validator", "features", "validate")
    assert last[0].score == validator.judge([given[0]])[0]
    assert last[0].reason == ""
    assert [draft.id for draft in decided] == [draft.id for draft in given]
    with pytest.raises(InputError, match="give a probability"):
        validate(given, validator, 1.5)


def test_the_threshold_itself_is_kept(labels, encoder, make_draft):
    validator = FeatureValidator(train_features(labels, encoder).head, encoder)
    (probability,) = validator.judge([make_draft(1)])
    assert validate([make_draft(1)], validator, probability)[0].decisions[-1].accepted
    assert not validate([make_draft(1)], validator, probability + 1e-9)[0].decisions[-1].accepted
