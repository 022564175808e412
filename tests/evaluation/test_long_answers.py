"""Long answers in an experiment: asked, judged against their rubrics, kept, tabled and shown like any other task."""

import json

import pytest

from climassay.evaluation import EvaluationResources, Sources, TaskPrompts, parse_plan, run_experiment, score_experiment
from climassay.evaluation.report import experiment_report
from climassay.evaluation.results import load_experiment
from climassay.evaluation.runner import read_benchmark
from climassay.evaluation.tables import experiment_tables
from climassay.metrics import Scorer
from climassay.primer import LONG_ANSWERS, book_path, named_questions
from climassay.records import Records
from scripted_model import ScriptedModel

ANSWER = "The stratosphere cools.\n\nThe troposphere warms [1]."


def judging(prompt, schema):
    """A judge that finds every second criterion met, and rates all but accuracy with 5."""
    data = {}
    for number, name in enumerate(schema["required"]):
        data[name] = {"quotation": "The stratosphere cools.", "reason": f"Because of {name}."}
        if name.startswith("criterion_"):
            data[name]["verdict"] = "not met" if number % 2 else "met"
        else:
            data[name] |= {"issues": [], "rating": "3" if name == "accuracy" else "5"}
    return json.dumps(data)


@pytest.fixture
def store(tmp_path):
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as opened:
        yield opened


def run(store, tmp_path, write=lambda prompt, schema: ANSWER, judge=judging, limit=2):
    entries = {"benchmarks": [LONG_ANSWERS], "tasks": ["longform"], "limit": limit}
    plan = parse_plan({**entries, "model": [{"name": "local:scripted"}]}, where="x.toml", folder=tmp_path)
    model = ScriptedModel(write=write)
    judges = ScriptedModel(write=judge, name="openai:judge")
    resources = EvaluationResources(
        lambda spec, adapter: model,
        Sources(lambda _: None, lambda _: None),
        scorer=lambda ask: Scorer(judge=ask(judges)),
    )
    sets = {LONG_ANSWERS: read_benchmark(plan.benchmarks[0], plan)}
    return run_experiment(plan, sets, resources, store, prompts=TaskPrompts.load()), model, judges


def test_long_answers_are_asked_judged_and_kept(store, tmp_path):
    done, model, judge = run(store, tmp_path)
    assert len(done.outcomes) == 2
    assert all(one.answer == ANSWER and one.assessment is not None for one in done.outcomes)
    assert all(
        question.audience in prompt for question, prompt in zip(done.questions[LONG_ANSWERS], model.texts, strict=True)
    )
    for one, question in zip(done.outcomes, done.questions[LONG_ANSWERS], strict=True):
        met = [criterion.weight for criterion in question.rubric[::2]]
        total = sum(criterion.weight for criterion in question.rubric)
        assert one.scores["rubric_score"] == pytest.approx(sum(met) / total)
        assert (one.scores["presentation"], one.scores["epistemics"]) == (1.0, pytest.approx((18 / 4 - 1) / 4))
    assert load_experiment(store, done.run) == done
    assert len(judge.texts) == 4
    again, model, judge = run(store, tmp_path)
    assert (again.outcomes, model.texts, judge.texts) == (done.outcomes, [], [])


def test_they_have_a_table_and_every_finding_is_in_the_report(store, tmp_path):
    done, _, _ = run(store, tmp_path)
    scores = score_experiment(done)
    shown = {one.name: one.table for one in experiment_tables(scores)}
    headings = [column.label for column in shown["longform"].columns]
    assert ["rubric score" in one for one in headings].count(True) == 1
    assert any("epistemics" in one for one in headings)
    page = experiment_report(done).to_html()
    question = done.questions[LONG_ANSWERS][0]
    assert all(criterion.text in page for criterion in question.rubric[:1])
    assert "Because of criterion_1." in page
    assert "<q>The stratosphere cools.</q>" in page


def test_a_failed_answer_counts_as_nothing_and_a_failed_judge_as_unscored(store, tmp_path):
    failed, _, judge = run(store, tmp_path, write=lambda *_: RuntimeError("No answer."))
    assert judge.texts == []
    assert all(one.assessment is None and one.error == "No answer." for one in failed.outcomes)
    silent, _, _ = run(store, tmp_path, judge=lambda *_: "I would rather not.")
    counts = score_experiment(silent).counts[0]
    assert dict(counts.unscored) == {"rubric_score": 2, "presentation": 2, "epistemics": 2}


def test_every_criterion_of_the_bundled_questions_rests_on_words_of_a_book():
    questions = named_questions(LONG_ANSWERS).questions
    books = {name: book_path(name).read_text("utf-8") for name in {one.document for one in questions}}
    assert (len(questions), len(books)) == (24, 3)
    for question in questions:
        assert f"### {question.section}\n" in books[question.document]
        assert len(question.rubric) >= 4
        assert any(one.level == "must" for one in question.rubric)
        assert any(one.level == "should" for one in question.rubric)
        assert all(any(one.source in book for book in books.values()) for one in question.rubric), question.id
