import json
import math
from dataclasses import replace

import pytest

from api_server import ApiServer
from climassay.errors import InputError, ModelError
from climassay.generation import Subject
from climassay.generation.validation import (
    PromptedValidator,
    ValidatorsByKind,
    load_validator,
    read_training_record,
    validate,
    validation_prompt,
)
from climassay.generation.validation.loading import write_training_record
from climassay.generation.validation.readers import validation_request
from climassay.generation.validation.training import calibrate_prompted, split_labels


def test_the_prompt_has_all_that_the_paper_shows(make_draft):
    mcq = make_draft(1, kind="mcq", question="Which way?", answer="up", options=("up", "down"))
    request = validation_request(mcq, validation_prompt(), Subject(field="botany"))
    text = "\n".join(message.content for message in request.messages)
    for part in ("botany", "multiple-choice", "Question: Which way?", "a) up", "b) down", "Answer: up", mcq.context):
        assert part in text
    assert request.options == (" VALID", " INVALID")


def test_probabilities_are_those_of_the_two_verdicts(verdicts, make_draft):
    drafts = [make_draft(1), make_draft(2, answer="It cools."), make_draft(3, question="Does it fail?")]
    # The log-odds of the two answers are 1 and -1.
    valid, invalid, failed = PromptedValidator(verdicts).judge(drafts)
    assert valid == pytest.approx(1 / (1 + math.exp(-1)))
    assert invalid == pytest.approx(1 / (1 + math.exp(1)))
    assert failed is None


def test_a_model_that_cannot_work_decides_nothing(make_draft, verdicts):
    def broken(requests, on_result=None):
        raise ModelError("Nothing listens there.")

    verdicts.option_logprobs = broken
    (decided,) = validate([make_draft(1)], PromptedValidator(verdicts))
    assert decided.decisions[-1].accepted is None
    assert decided.usable


def test_each_kind_has_its_own_validator(make_draft, verdicts):
    found = load_validator("mcq=prompted:local:a,freeform=prompted:local:b", load=lambda *_, **__: verdicts)
    assert isinstance(found, ValidatorsByKind)
    assert set(found.validators) == {"mcq", "freeform"}
    decided = validate([make_draft(1), make_draft(2, kind="cloze")], found, 0.5)
    assert decided[0].decisions[-1].accepted
    assert not decided[1].decisions


@pytest.mark.parametrize("name", ["prompted:", "nothing-here", "mcq=", "adapter:nowhere", "api:nowhere.json"])
def test_names_that_name_nothing(name):
    with pytest.raises(InputError):
        load_validator(name)


def test_labels_are_held_out_by_passage_with_both_kinds(labels):
    learned, held = split_labels(labels, 0.25)
    assert len(learned) + len(held) == 60
    assert 10 <= len(held) <= 20
    passages = [{one.draft.main.text for one in part} for part in (learned, held)]
    assert not passages[0] & passages[1]
    assert {one.valid for one in held} == {True, False}
    assert split_labels(labels, 15) == (learned, held)
    with pytest.raises(InputError, match="cannot be held out"):
        split_labels(labels, 60)


def test_a_fine_tuned_model_keeps_its_calibration_and_threshold(labels, verdicts, tmp_path):
    asked = PromptedValidator(verdicts, name="adapter:test")
    found = calibrate_prompted(asked, labels, labels.drafts[:20], labels.drafts[20:], precision=0.9)
    assert found.scores.evaluation.auroc.value == 1
    assert found.record.kinds == ("freeform",)
    assert found.validator.threshold.precision.value >= 0.9
    write_training_record(found.record, tmp_path)
    record = read_training_record(tmp_path)
    assert record == found.record
    again = PromptedValidator.fine_tuned(verdicts, validation_prompt(), record, "adapter:test")
    drafts = [one.draft for one in labels.drafts]
    assert again.judge(drafts) == found.validator.judge(drafts)
    own = tmp_path / "validate.prompt"
    own.write_text("[user]\n{{ question }}\n[assistant]\nVerdict:", encoding="utf-8")
    with pytest.raises(InputError, match="another text of the prompt"):
        PromptedValidator.fine_tuned(verdicts, validation_prompt(tmp_path), record, "x")


def test_a_fine_tuning_job_becomes_a_validator(labels, verdicts, tmp_path, monkeypatch, make_draft):
    from climassay.generation.validation import training as fine_tuning
    from climassay.models.openai.finetuning import FineTuningState, read_state, write_state

    state, sent = tmp_path / "state.json", []

    def finished(model, training, path, **options):
        sent.append(training)
        done = FineTuningState("http://localhost:1/v1", "small", "0" * 64, job_id="j", status="succeeded", model="ft:x")
        write_state(done, path)
        return done

    monkeypatch.setattr(fine_tuning, "fine_tune", finished)
    asked = []
    trained = fine_tuning.train_api(labels, "openai:small", state, lambda name: asked.append(name) or verdicts)
    assert asked == ["openai:ft:x"]
    # Nothing that is measured on was sent.
    source = trained.record.provenance
    assert len(sent[0].splitlines()) == source.items == len(source.trained_on) < 60
    loaded = load_validator(f"api:{state}", load=lambda *_, **__: verdicts)
    assert loaded.name == "api:ft:x"
    drafts = [make_draft(1), make_draft(2, answer="It cools.")]
    assert loaded.judge(drafts) == trained.validator.judge(drafts)
    assert load_validator(str(state), load=lambda *_, **__: verdicts).judge(drafts) == loaded.judge(drafts)
    # The file may be somebody else's: the server that it names is asked without a key.
    monkeypatch.setenv("OPENAI_API_KEY", "sk-4f9aB7c1D0e2")
    with ApiServer() as server:
        write_state(replace(read_state(state), base_url=server.url), state)
        load_validator(f"api:{state}").judge(drafts)
    assert len(server.asked) > 1
    assert all("authorization" not in request.headers for request in server.asked)


def test_a_job_without_a_validator_is_not_loaded(tmp_path, verdicts):
    from climassay.models.openai.finetuning import FineTuningState, write_state

    state = tmp_path / "state.json"
    write_state(FineTuningState("http://localhost:1/v1", "small", "0" * 64, status="running"), state)
    with pytest.raises(InputError, match="was not finished"):
        load_validator(f"api:{state}", load=lambda *_, **__: verdicts)


def test_a_record_without_kinds_is_damaged(labels, verdicts, tmp_path):
    prompted = PromptedValidator(verdicts, name="adapter:test")
    trained = calibrate_prompted(prompted, labels, labels.drafts[:20], labels.drafts[20:])
    write_training_record(trained.record, tmp_path)
    file = tmp_path / "climassay-validator.json"
    facts = json.loads(file.read_text(encoding="utf-8"))
    del facts["provenance"]["settings"]["kinds"]
    file.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        read_training_record(tmp_path)
