"""``import climassay``: its names, that they cost nothing until they are used, and the examples in their docstrings."""

import ast
import doctest
import inspect
import re
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path

import pytest

import climassay
from api_server import ApiServer
from climassay.api import benchmarks
from climassay.api.judges import side_by_side_judge
from climassay.errors import InputError
from climassay.evaluation import BenchmarkSpec, ExperimentPlan, ModelSpec, parse_spec
from climassay.generation import CountSpec, Recipe, WriterSpec
from climassay.generation.recipe import StopSpec
from climassay.primer import gold_questions
from climassay.questions import QuestionSet
from climassay.records import Records
from climassay.records.queries import list_runs
from climassay.session import Session
from climassay.workspace import Workspace
from counting_model import CountingModel
from debate_tables import Script
from faults.commands import walk
from scripted_model import ScriptedModel
from tiny_models import smollm2

CALLS = ("add_documents", "ask", "check_claim", "evaluate", "generate", "rank", "train_judge")
FAST = ("add_documents", "ask", "rank")
"""The others take the bundled model minutes on a busy core: they run with ``make release-check``."""


@pytest.fixture
def books(tmp_path):
    file = tmp_path / "heat.md"
    file.write_text(
        "# A Book of Heat\n\nThe ocean has taken up about ninety per cent of the excess heat since 1970. Because water "
        "expands as it warms, this uptake raises the sea level.\n",
        encoding="utf-8",
    )
    place = Workspace.open(tmp_path / "work")
    climassay.add_documents("heat", file, workspace=place)
    return place


def commands(place):
    with Records(place.records_url) as store:
        return [(run.command, run.status) for run in list_runs(store.database)]


def test_several_texts_are_named_their_fallacies_as_one_is():
    texts = ["CO2 is plant food, so more is better.", "It snowed, so it does not warm."]
    single = [climassay.name_fallacies(text).rows()[0]["name"] for text in texts]
    assert [row["name"] for row in climassay.name_fallacies(texts).rows()] == single
    with pytest.raises(InputError, match="no text"):
        climassay.name_fallacies([])


def test_a_string_stands_for_a_path(books, tmp_path):
    (tmp_path / "old.md").write_text("The sea rises (high confidence).\n", encoding="utf-8")
    (tmp_path / "new.md").write_text("The sea rises (very high confidence).\n", encoding="utf-8")
    for name in ("old", "new"):
        climassay.extract_confidence(str(tmp_path / f"{name}.md"), workspace=str(books.root)).save(
            tmp_path / f"{name}.jsonl"
        )
    result = climassay.diff_confidence(str(tmp_path / "old.jsonl"), str(tmp_path / "new.jsonl"))
    assert [one["status"] for one in result.rows()] == ["level changed"]


@pytest.mark.parametrize("name", [name for name in climassay.__all__ if inspect.isroutine(getattr(climassay, name))])
def test_every_parameter_that_takes_a_path_takes_a_string(name):
    for parameter in inspect.signature(getattr(climassay, name), eval_str=False).parameters.values():
        annotation = inspect.formatannotation(parameter.annotation)
        assert "Path" not in annotation or re.search(r"\bstr\b", annotation), parameter


def test_every_public_name_is_there_and_is_completed():
    assert set(climassay.__all__) <= set(dir(climassay))
    for name in climassay.__all__:
        value = getattr(climassay, name)
        assert isinstance(value, str) or value.__doc__, name
    with pytest.raises(AttributeError, match="nothing"):
        _ = climassay.nothing


def test_the_example_of_types_uses_every_name():
    """``make lint`` runs mypy over it."""
    tree = ast.parse(Path(__file__).with_name("typed_use.py").read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "climassay"
    }
    assert used == {*climassay.__all__, "__version__"}
    assert resources.files("climassay").joinpath("py.typed").is_file()


def test_every_command_has_its_function():
    """A command made from a function has its name; the others call the functions listed here."""
    others = {
        "confidence tag evaluate": "evaluate_tagger",
        "judge benchmark": "benchmark_judges", "judge evaluate": "evaluate_judge",
        "judge train": "train_judge",
        "check": "check_claim", "corpus remove": "remove_documents", "confidence lint": "lint_confidence",
        "evaluate mcq": "evaluate", "evaluate table": "experiment_tables", "factcheck run": "check_claims",
        "generate run": "generate",
    }  # fmt: skip
    machine = {"demo", "doctor", "models install", "mcp", "serve"}
    for name, command in walk():
        if name not in machine and name.split()[0] != "users" and name.split()[-1] != "init":
            assert others.get(name, command.default_command.__name__) in climassay.__all__, name


def run_examples(name, **given):
    """Run the example in a docstring; how many of its lines ran."""
    function = getattr(climassay, name)
    example = doctest.DocTestParser().get_doctest(function.__doc__, given, name, None, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(example, out=said.append, clear_globs=False)
    assert runner.failures == 0, "".join(said)
    return runner.tries


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The workspace that all examples share, as a reader's would be."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.model
@pytest.mark.parametrize("name", FAST)
def test_the_examples_in_docstrings_run(name, folder):
    given = {"add_documents": climassay.add_documents}
    given |= {one: partial(getattr(climassay, one), model=smollm2()) for one in ("ask", "rank")}
    assert run_examples(name, folder=folder, **given) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_all_examples_in_docstrings_run_as_they_stand(name, folder):
    assert run_examples(name, folder=folder, **{one: getattr(climassay, one) for one in CALLS}) >= 2


def test_files_that_cannot_be_read_are_named_and_do_not_stop_the_others(books, tmp_path):
    good = tmp_path / "more.txt"
    good.write_text("Carbon dioxide absorbs infrared radiation.", encoding="utf-8")
    report = climassay.add_documents("heat", [good, tmp_path / "gone.pdf"], workspace=books)
    assert [one.title for one in report.added] == ["more"]
    assert "gone.pdf" in report.skipped[0].reason
    with pytest.raises(InputError, match=r"no document to add to new.*gone\.pdf") as refusal:
        climassay.add_documents("new", tmp_path / "gone.pdf", workspace=books)
    assert str(refusal.value).count("gone.pdf") == 1
    assert not (books.collections / "new.lance").exists()


def test_a_loaded_model_stays_open_and_its_answers_are_kept(books):
    closed = []
    model = ScriptedModel(write=lambda _, schema: "The ocean took up the heat. [1]")
    model.close = lambda: closed.append(True)
    first = climassay.ask("Where does the excess heat go?", "heat", model=model, workspace=books)
    again = climassay.ask("Where does the excess heat go?", "heat", model=model, workspace=books)
    assert first.text == again.text
    assert first.sentences[0].citations == (1,)
    assert len(model.texts) == 1
    assert closed == []
    assert commands(books) == [("ask", "done"), ("ask", "done")]


def test_a_claim_is_debated_by_the_collections_that_are_named(books):
    model = Script(dict.fromkeys(("heat", "model", "mediator"), ("true",))).model
    model.parameters = 135_000_000
    transcript = climassay.check_claim("The ocean warms.", "heat", plain=True, model=model, workspace=books, force=True)
    assert [profile.name for profile in transcript.advocates] == ["heat", "model"]
    assert transcript.verdict.label
    assert commands(books) == [("check", "done")]
    with pytest.raises(InputError, match="advocate"):
        climassay.check_claim("The ocean warms.", model=model, workspace=books)


def test_questions_are_asked_in_every_setting(books):
    closed = []
    model = ScriptedModel()
    model.close = lambda: closed.append(True)
    result = climassay.evaluate("primer", models=model, settings=["default", "rag:heat"], limit=1, workspace=books)
    assert {(one.cell.setting, one.cell.task) for one in result.experiment.outcomes} == {
        (setting, task) for setting in ("default", "rag:heat") for task in ("mcq", "freeform", "cloze")
    }
    assert result.tables()
    assert "rag:heat" in result.page()
    assert closed == []


def test_models_and_metrics_are_compared_in_one_call(books):
    knows, guesses = ScriptedModel(name="local:knows"), ScriptedModel(name="local:guesses")
    gold = gold_questions()
    knows.choose = lambda prompt, options: max(options)
    result = climassay.evaluate(gold, models=[knows, guesses], metrics=["accuracy", "exact_match"], workspace=books)
    overall = [row for row in result.rows() if row["level"] == "overall"]
    assert [(row["model"], row["metric"]) for row in overall] == [
        (model, metric) for model in ("knows", "guesses") for metric in ("accuracy", "exact_match")
    ]
    assert all(row["low"] <= row["value"] <= row["high"] for row in overall)
    assert {(one.family, one.first, one.second, one.metric) for one in result.scores.tests} == {
        ("models", "knows", "guesses", "accuracy"), ("models", "knows", "guesses", "exact_match")
    }  # fmt: skip
    [table] = [one for one in result.tables() if one.title.startswith("Models compared")]
    assert len(table.rows) == 2
    assert {one.cell.task for one in result.experiment.outcomes} == {"mcq", "cloze"}
    with pytest.raises(InputError, match="no metric 'beauty'"):
        climassay.evaluate(gold, models=knows, metrics=["beauty"], workspace=books)
    with pytest.raises(InputError, match="two entries are called model 'knows'"):
        climassay.evaluate(gold, models=[knows, knows], workspace=books)
    with pytest.raises(InputError, match="needs a judge"):
        climassay.evaluate(gold, models=knows, metrics=["judged_accuracy"], workspace=books)


def test_a_plan_says_the_same_as_the_arguments(books):
    model = ScriptedModel()
    primer = climassay.evaluate("primer", models=model, limit=1, workspace=books, seed=3)
    plan = ExperimentPlan(
        "p", (BenchmarkSpec("primer", ("primer",)),), (ModelSpec("local:scripted"),), (parse_spec("default"),),
        limit=1, seed=3,
    )  # fmt: skip
    asked = len(model.options) + len(model.texts)
    planned = benchmarks.run_plan(plan, loaded={"scripted": model}, workspace=books)
    assert len(model.options) + len(model.texts) == asked
    scores = [(one.question, one.scores) for one in primer.experiment.outcomes]
    assert sorted(scores, key=str) == sorted(((o.question, o.scores) for o in planned.experiment.outcomes), key=str)


def test_no_question_of_a_kind_that_is_not_there_is_asked(books):
    gold = gold_questions()
    cloze = QuestionSet("cloze", gold.of_kind("cloze")[:2], (), gold.sha256)
    model = ScriptedModel(write=lambda _, schema: "heat")
    result = climassay.evaluate(cloze, models=model, workspace=books)
    assert [one.cell.task for one in result.experiment.outcomes] == ["cloze", "cloze"]
    assert model.options == []


def test_a_dataset_needs_something_wanted(books):
    with pytest.raises(InputError, match=r"at least one question in \[counts\]"):
        climassay.generate("empty", "heat", workspace=books)
    with pytest.raises(InputError, match="at least one collection"):
        climassay.generate("empty", cloze=1, workspace=books)
    assert not books.has_records


def test_a_recipe_takes_the_name_that_is_given(books, monkeypatch):
    with ApiServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        writer = WriterSpec("openai:test", base_url=server.url)
        recipe = Recipe("other", ("heat",), writer, CountSpec(cloze=1), stop=StopSpec(drafts=2))
        assert climassay.generate("mine", recipe=recipe, workspace=books).drafts == ()
        assert server.asked
    assert commands(books) == [("generate run", "done")]


def test_a_setting_that_cannot_be_used_is_reported_before_a_model_is_loaded(books):
    for evaluate in (climassay.evaluate, benchmarks.evaluate_choices):
        with pytest.raises(InputError, match="nothing"):
            evaluate("primer", models="local:no-such-model", settings=["rag:nothing"], workspace=books)
    assert commands(books) == []


def test_a_judge_is_checked_on_a_file_or_on_a_dataset(tmp_path):
    for arguments in ({}, {"file": "rated.csv", "dataset": "rated"}):
        with pytest.raises(InputError, match="either a file"):
            climassay.check_judge(**arguments, workspace=tmp_path)
    with pytest.raises(InputError, match=r"rated\.csv"):
        climassay.check_judge(str(tmp_path / "rated.csv"), workspace=tmp_path)


def test_ranking_needs_a_quality_or_a_probe(tmp_path):
    with pytest.raises(InputError, match="Name the quality"):
        climassay.rank(["a", "b"], workspace=tmp_path)
    with pytest.raises(InputError, match="needs a sentence"):
        climassay.rank(["a", "b"], "  ", workspace=tmp_path)


def test_a_judge_is_trained_saved_and_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    items = [climassay.Item(str(number), f"text {number}", label=float(number % 4)) for number in range(16)]
    file, model = tmp_path / "probe.safetensors", CountingModel()
    trained = climassay.train_judge(items, "claims", model=model, output=file, workspace=tmp_path / "trained")
    assert (trained.n_items, trained.n_pairs) == (16, 120)
    assert trained.probe.provenance.layers
    rankings = [
        climassay.rank(items, probe=probe, model=model, workspace=tmp_path / "work") for probe in (trained.probe, file)
    ]
    assert rankings[0].run != rankings[1].run
    assert replace(rankings[0], run=rankings[1].run) == rankings[1]
    assert sorted(row.rank for row in rankings[0].ranked) == list(range(1, 17))
    assert commands(Workspace(tmp_path / "work")) == [("judge rank", "done")] * 2
    with pytest.raises(InputError, match="trained on"):
        climassay.rank(items, probe=file, model=CountingModel("8" * 64), workspace=tmp_path)


def test_a_trained_judge_compares_long_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    model, file = CountingModel(), tmp_path / "probe.safetensors"
    monkeypatch.setattr("climassay.session.Session.model", lambda *_, **__: model)
    items = [climassay.Item(str(number), f"text {number}", label=float(number % 4)) for number in range(16)]
    climassay.train_judge(items, "claims", model=model, output=file, workspace=tmp_path / "trained")
    answers = [f"text {number}" for number in range(4)]
    pairs = [("Why?", "", one, other) for one in answers for other in answers]
    with Session.opened(tmp_path / "work") as session:
        compare = side_by_side_judge(session, file)
        said = {(one, other): better for (*_, one, other), (better, _) in zip(pairs, compare(pairs), strict=True)}
        ranking = climassay.rank(answers, probe=file, model=model, workspace=session)
    turned = {"first": "second", "second": "first", "tie": "tie"}
    assert all(said[one, other] == turned[said[other, one]] for one, other in said)
    assert said[answers[0], answers[0]] == "tie"
    best, *_, worst = (row.item.text for row in ranking.ranked)
    assert said[best, worst] == "first"
    with pytest.raises(InputError, match="none"):
        side_by_side_judge(session, tmp_path / "none.safetensors")


def test_a_model_without_hidden_states_ranks_by_prompts(tmp_path):
    def choose(prompt, options):
        better = prompt.find("warmer") < prompt.find("colder")
        return options[0] if better else options[1]

    ranking = climassay.rank(
        ["It gets colder.", "It gets warmer."], "names warmth", model=ScriptedModel(choose), workspace=tmp_path
    )
    assert [row.item.text for row in ranking.ranked] == ["It gets warmer.", "It gets colder."]
    one = climassay.Item("1", "a", label=1.0)
    with pytest.raises(InputError, match="hidden states"):
        climassay.train_judge([one], "claims", model=ScriptedModel(), workspace=tmp_path)
