"""Adapters of tuned settings: found, trained once, and refused where they would leak."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document
from climassay.errors import InputError
from climassay.evaluation import collection_documents, parse_plan, split_questions
from climassay.evaluation.tuned import choose_config, find_adapter
from climassay.models import Message, ModelOptions, load_model
from climassay.questions import Question
from climassay.workspace import Workspace
from tiny_models import save_tiny

FAST = {"rank": 2, "alpha": 4.0, "epochs": 1, "learning_rate": 0.01, "max_length": 200, "evaluations": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return f"local:{save_tiny(tmp_path_factory.mktemp('model'))}"


@pytest.fixture
def workspace(tmp_path):
    return Workspace.open(tmp_path / "workspace")


def plan_of(setting, model, folder):
    text = f'benchmarks = ["primer"]\n[[model]]\nname = "{model}"\nlabel = "tiny"\n[[setting]]\n{setting}'
    plan = parse_plan(tomllib.loads(text), where="x.toml", folder=folder)
    return plan, plan.models[0], plan.settings[-1]


def write_questions(file, count=12):
    rows = [
        {"kind": "freeform", "question": f"What is {n}?", "answer": f"It is {n}.", "passage": f"Text {n // 2}."}
        for n in range(count)
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows))


def fast():
    return "{ " + ", ".join(f"{name} = {value}" for name, value in FAST.items()) + " }"


def test_questions_are_learned_once(workspace, model, tmp_path):
    write_questions(tmp_path / "silver.jsonl")
    setting = (
        f'use = "fine-tuned"\nlabel = "ft silver"\ntraining = {{ questions = "silver.jsonl", settings = {fast()} }}'
    )
    plan, spec, tuned = plan_of(setting, model, tmp_path)
    told = []
    adapter = find_adapter(spec, tuned, plan, workspace, on_progress=lambda *values: told.append(values))
    name = f"ft-silver-{Path(model).name}"
    assert adapter.folder == workspace.adapters / name
    assert told[-1][0] == name
    assert told[-1][1] == told[-1][2] > 0
    assert "examples of silver.jsonl" in adapter.notes[0]
    assert 9 <= len(adapter.training_texts) < 12
    assert all(text.startswith("What is ") and "It is " in text for text in adapter.training_texts)
    again = []
    assert find_adapter(spec, tuned, plan, workspace, on_progress=lambda *values: again.append(values)) == adapter
    other = replace(spec, label="the same model, asked in another way")
    assert find_adapter(other, tuned, plan, workspace, on_progress=lambda *values: again.append(values)) == adapter
    assert again == []
    plain, changed = load_model(model), load_model(model, ModelOptions(adapter=str(adapter.folder)))
    assert plain.fingerprint != changed.fingerprint
    chat = [Message("user", "What is 1?")]
    assert plain.render(chat) == changed.render(chat)


def test_an_adapter_is_found_by_name_or_folder(workspace, model, tmp_path):
    for folder in (workspace.adapters / "ft-tiny", tmp_path / "mine"):
        folder.mkdir(parents=True)
        (folder / "adapter_config.json").write_text("{}")
    plan, spec, tuned = plan_of('use = "rag:books"\nlabel = "x"\nadapter = "ft-{model}"', model, tmp_path)
    assert find_adapter(spec, tuned, plan, workspace).folder == workspace.adapters / "ft-tiny"
    plan, spec, tuned = plan_of('use = "fine-tuned:mine"', model, tmp_path)
    assert find_adapter(spec, tuned, plan, workspace).folder == tmp_path / "mine"
    plan, spec, tuned = plan_of('use = "fine-tuned:none"', model, tmp_path)
    with pytest.raises(InputError, match="no adapter 'none'"):
        find_adapter(spec, tuned, plan, workspace)


def test_a_setting_without_adapter_adds_nothing(workspace, model, tmp_path):
    plan, spec, plain = plan_of('use = "default"', model, tmp_path)
    assert find_adapter(spec, plain, plan, workspace) is None


def test_only_local_models_are_tuned(workspace, tmp_path):
    setting = 'use = "fine-tuned"\ntraining = { questions = "primer" }'
    plan, spec, tuned = plan_of(setting, "openai:gpt", tmp_path)
    with pytest.raises(InputError, match="only local: models"):
        find_adapter(spec, tuned, plan, workspace)


def fill(workspace, name, *titles):
    collection = Collection.create(workspace, name, load_encoder("local:minilm"))
    collection.add(
        [
            Document(
                title,
                title,
                f"{title}.txt",
                tuple(Block(f"{title} says that it is warm in place {n}." * 4) for n in range(2)),
            )
            for title in titles
        ]
    )


def test_books_are_read_apart_from_those_of_the_questions(workspace, model, tmp_path):
    fill(workspace, "others", "alpha", "beta")
    fill(workspace, "third", "gamma")
    fill(workspace, "source", "delta")
    fill(workspace, "mixed", "alpha", "delta")
    wanted = 'use = "continued-pretraining"\nlabel = "cp"\ntraining = {{ collections = ["{}"], {}, settings = {} }}'
    setting = wanted.format("others", 'validation = ["third"], source = ["source"]', fast())
    plan, spec, tuned = plan_of(setting, model, tmp_path)
    adapter = find_adapter(spec, tuned, plan, workspace)
    assert "2 documents of others" in adapter.notes[0]
    assert [text.partition(" ")[0] for text in adapter.training_texts] == ["alpha", "beta"]
    assert not any("Leakage" in note for note in adapter.notes)
    leaking = wanted.replace('"cp"', '"cp source"').format(
        "others", 'source = ["source"], validate_on = "source"', fast()
    )
    plan, spec, tuned = plan_of(leaking, model, tmp_path)
    assert "Leakage" in find_adapter(spec, tuned, plan, workspace).notes[1]
    plan, spec, tuned = plan_of(wanted.format("mixed", 'source = ["source"]', fast()), model, tmp_path)
    with pytest.raises(InputError, match="the documents that the questions come from"):
        find_adapter(spec, tuned, plan, workspace)


def test_presets_are_found_by_model_and_can_be_changed():
    name, config = choose_config("local:smollm2", "finetune", "", {"rank": 3})
    assert name == "smollm2-cpu-finetune"
    assert config.rank == 3
    assert choose_config("local:unknown", "finetune", "", {})[0] is None
    assert choose_config("local:unknown", "finetune", "llama3.1-8b-finetune", {})[1].epochs == 3
    with pytest.raises(InputError, match="no tuning preset"):
        choose_config("local:unknown", "finetune", "none", {})


def test_questions_of_one_text_stay_on_one_side():
    questions = [Question(f"q{n}", "freeform", f"{n}?", "x", context=f"text {n // 4}") for n in range(40)]
    kept, held_out = split_questions(questions, 0.3, seed=0)
    assert not {one.context for one in kept} & {one.context for one in held_out}
    assert len(kept) + len(held_out) == 40
    assert 8 <= len(held_out) <= 16
    assert split_questions(questions, 0.3, seed=0) == (kept, held_out)


def test_a_document_of_two_collections_is_read_once(workspace):
    fill(workspace, "first", "alpha", "beta")
    fill(workspace, "second", "beta", "gamma")
    found = collection_documents(workspace, ["first", "second", "first"])
    assert [one.text.title for one in found] == ["alpha", "beta", "gamma"]
    assert [one.stored.source for one in found] == ["alpha.txt", "beta.txt", "gamma.txt"]
    assert [f"{one.text.title} says that it is warm in place 1." in one.text.text for one in found] == [True] * 3
