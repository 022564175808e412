"""Long answers in an experiment: asked, judged against their rubrics, kept, tabled and shown like any other task."""

import json
import math
from dataclasses import replace
from functools import partial

import pytest

import climassay
from climassay.errors import InputError
from climassay.evaluation import (
    Cell,
    EvaluationResources,
    ExamplePool,
    Outcome,
    PromptContext,
    SourceLoaders,
    TaskPrompts,
    experiment_report,
    experiment_tables,
    load_experiment,
    open_resources,
    parse_plan,
    read_benchmark,
    run_experiment,
    score_experiment,
)
from climassay.evaluation.long_answers import coloured_parts, compare_answers, judge_pairs, point_scores, side_by_side
from climassay.evaluation.results import Preference
from climassay.grounding.references import CheckedReference
from climassay.grounding.support_judge import Judgement
from climassay.grounding.text_check import CheckedSentence
from climassay.metrics import Scorer
from climassay.primer import book_path
from climassay.questions import LONG_ANSWERS, Question, read_questions
from climassay.records import Records
from climassay.workspace import Workspace
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


def run(store, tmp_path, write=lambda prompt, schema: ANSWER, judge=judging, limit=2, side_by_side=False, check=None):
    entries = {"benchmarks": [LONG_ANSWERS], "tasks": ["longform"], "limit": limit}
    entries |= {"metrics": {"side_by_side": side_by_side, "judge": "openai:judge"}}
    entries |= {"settings": ["default", "few-shot:pool"]} if side_by_side else {}
    plan = parse_plan({**entries, "model": [{"name": "local:scripted"}]}, where="x.toml", folder=tmp_path)
    model = ScriptedModel(write=write)
    judges = ScriptedModel(write=judge, name="openai:judge")
    resources = EvaluationResources(
        lambda spec, adapter: model,
        SourceLoaders(lambda _: None, lambda _: ExamplePool("pool", (Question("p", "longform", "Q?", "A."),) * 5)),
        open_scorer=lambda ask: Scorer(judge=ask(judges)),
        open_checker=lambda scorer: check,
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


QUESTIONS = {str(n): Question(str(n), "longform", f"Question {n}?", "") for n in range(20)}
CELLS = [Cell("b", name, "default", "longform") for name in ("good", "middling", "poor")]


def outcomes(cell, text=None):
    return [Outcome(cell, key, None, cell.model if text is None else text, {}) for key in QUESTIONS]


def preferring(prompt, _schema):
    """A judge that prefers the good one to all, and of the others always the answer that is shown first."""
    first, second = prompt.split("First answer:")[1].split("Second answer:")
    better = "first" if "good" in first else "second" if "good" in second else "first"
    return json.dumps({"reason": "It is.", "better": better})


def test_answers_are_compared_in_both_orders_and_position_bias_is_shown():
    judge = ScriptedModel(write=preferring)
    found = compare_answers(QUESTIONS, {cell: outcomes(cell) for cell in CELLS}, partial(judge_pairs, judge=judge))
    assert len(found) == len(judge.texts) == 3 * 2 * 20
    summed = side_by_side(found)
    assert summed.contestants[0].cell.model == "good"
    rates = {one.cell.model: one.win_rate for one in summed.contestants}
    # The good one wins all of its 40 pairs; each of the others loses 20 and ties 20.
    assert (rates["good"].value, rates["middling"].value, rates["poor"].value) == (1.0, 0.25, 0.25)
    assert rates["good"].n == 20
    assert (summed.ties, summed.consistent.value) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    # 40 of 80 comparisons with the good one have it first, and all 40 without it the first.
    assert summed.first.value == pytest.approx((40 + 40) / 120)
    good, other, third = summed.contestants
    assert good.interval.low > other.interval.high
    assert other.strength == pytest.approx(third.strength, abs=1e-3)


def test_who_gives_no_answer_loses_and_a_judge_that_fails_is_counted():
    judge = ScriptedModel(write=lambda *_: "no")
    found = compare_answers(
        QUESTIONS, {CELLS[0]: outcomes(CELLS[0]), CELLS[1]: outcomes(CELLS[1], "")}, partial(judge_pairs, judge=judge)
    )
    assert judge.texts == []
    assert side_by_side(found).contestants[0].win_rate.value == 1.0
    silent = compare_answers(QUESTIONS, {cell: outcomes(cell) for cell in CELLS[:2]}, partial(judge_pairs, judge=judge))
    assert all(one.better is None and one.error for one in silent)
    assert side_by_side(silent) is None


def test_strengths_are_those_of_davidsons_model():
    """Of 20 questions A wins 12, B 4, and 4 are ties: the log-odds of a win among decided ones is log(3)."""
    answers = ["first"] * 12 + ["second"] * 4 + ["tie"] * 4
    back = {"first": "second", "second": "first", "tie": "tie"}
    a, b = CELLS[:2]
    given = [Preference(a, b, key, said) for key, said in zip(QUESTIONS, answers, strict=True)]
    given += [Preference(b, a, key, back[said]) for key, said in zip(QUESTIONS, answers, strict=True)]
    summed = side_by_side(given)
    strong, weak = summed.contestants
    assert strong.strength - weak.strength == pytest.approx(math.log(3), abs=0.02)
    assert summed.consistent.value == 1.0
    assert summed.first.value == 0.5


def test_an_experiment_compares_its_settings_where_asked_to(store, tmp_path):
    def judge(prompt, schema):
        return preferring(prompt, schema) if "better" in schema["required"] else judging(prompt, schema)

    done, _, _ = run(store, tmp_path, judge=judge, side_by_side=True)
    assert len(done.preferences) == 2 * 2
    assert load_experiment(store, done.run) == done
    shown = {one.name: one.table for one in experiment_tables(score_experiment(done))}
    assert len(shown["side-by-side"].rows) == 2
    assert "side by side" in experiment_report(done).to_html()
    again, _, judge = run(store, tmp_path, judge=judge, side_by_side=True)
    assert (again.preferences, judge.texts) == (done.preferences, [])


REFERENCES = tuple(
    CheckedReference(text, "number", status, "Looked up.")
    for text, status in (("[1]", "exists"), ("[7]", "invented"), ("doi:x", "malformed"), ("Li 2020", "not checked"))
)
POINTS = (
    CheckedSentence(
        "The stratosphere cools.",
        0,
        "supported",
        "It stands there.",
        references=REFERENCES[:2],
        judgement=Judgement("supports", "It stands there.", "it cools", quoted=True),
    ),
    CheckedSentence("The troposphere warms.", 1, "contradicted", "The book says otherwise.", references=REFERENCES[2:]),
    CheckedSentence("I hope that helps.", 1, "no claim", "Talk."),
    CheckedSentence("Clouds thin.", 1, "unsupported", "Nothing bears it."),
)


def test_points_and_references_are_scored_by_hand():
    assert point_scores(POINTS) == {"points_supported": pytest.approx(1 / 3), "references_found": pytest.approx(1 / 3)}
    assert point_scores(POINTS[2:3]) == {}
    unread = [replace(one, status="similar", judgement=None) for one in POINTS[:1]]
    assert point_scores(unread) == {"references_found": pytest.approx(1 / 2)}
    assert point_scores(()) == {}


def test_the_answer_is_coloured_parts_by_what_bears_its_points():
    answer = "So: The stratosphere cools. The troposphere warms [7]. I hope that helps. Clouds thin."
    parts = coloured_parts(answer, (POINTS[0], POINTS[3]))
    assert "".join(part.text for part in parts) == answer
    assert [(part.text, part.tone) for part in parts if part.tone] == [
        ("The stratosphere cools.", "right"),
        ("Clouds thin.", "middle"),
    ]


def test_points_are_kept_with_the_answer_and_shown_in_the_report(store, tmp_path):
    done, _, _ = run(store, tmp_path, check=lambda text, given: POINTS[:2])
    assert all(one.points == POINTS[:2] for one in done.outcomes)
    assert {one.scores["points_supported"] for one in done.outcomes} == {0.5}
    assert load_experiment(store, done.run) == done
    page = experiment_report(done).to_html()
    assert '<span class="part right" title="supported: It stands there.">The stratosphere cools.</span>' in page
    assert "invented" in page
    headings = " ".join(
        column.label for one in experiment_tables(score_experiment(done)) for column in one.table.columns
    )
    shown = {one.name: one.table for one in experiment_tables(score_experiment(done))}
    assert shown["points"].rows == (("scripted", "default", "2", "2", "0", "0", "2", "2", "2", "2"),)
    ratings = {row[3]: row[5] for row in shown["dimensions"].rows}
    assert (len(ratings), ratings["accuracy"], ratings["tone"]) == (8, "3.00", "5.00")
    assert "points supported" in headings
    assert "references that exist" in headings


def test_sentences_are_looked_up_in_the_collections_that_the_experiment_names(tmp_path):
    workspace = Workspace(tmp_path)
    climassay.add_documents("books", ["primer:physical_climate"], workspace=workspace)
    entries = {"benchmarks": [LONG_ANSWERS], "model": [{"name": "local:x"}], "metrics": {"collections": ["books"]}}
    plan = parse_plan(entries, where="x.toml", folder=tmp_path)
    resources = open_resources(plan, workspace)
    check = resources.open_checker(Scorer())
    [point] = check(
        "Earth reflects about 29 per cent of incident sunlight [9].", PromptContext(("Earth reflects.",), ("a",))
    )
    assert point.status == "similar"
    assert [one.status for one in point.references] == ["invented"]


def test_what_an_experiment_lacks_for_long_answers_is_told_before_anything_is_asked(store, tmp_path):
    entries = {"benchmarks": [LONG_ANSWERS], "tasks": ["longform"], "model": [{"name": "local:x"}]}
    with pytest.raises(InputError, match="side_by_side needs a judge"):
        parse_plan({**entries, "metrics": {"side_by_side": True}}, where="x.toml", folder=tmp_path)
    plan = parse_plan({**entries, "metrics": {"collections": ["nowhere"]}}, where="x.toml", folder=tmp_path)
    opened = []
    resources = open_resources(plan, Workspace(tmp_path), load=lambda *_, **__: opened.append(1))
    sets = {LONG_ANSWERS: read_benchmark(plan.benchmarks[0], plan)}
    with pytest.raises(InputError, match="nowhere"):
        run_experiment(plan, sets, resources, store)
    assert opened == []


def test_a_failed_answer_counts_as_nothing_and_a_failed_judge_as_unscored(store, tmp_path):
    failed, _, judge = run(store, tmp_path, write=lambda *_: RuntimeError("No answer."))
    assert judge.texts == []
    assert all(one.assessment is None and one.error == "No answer." for one in failed.outcomes)
    silent, _, _ = run(store, tmp_path, judge=lambda *_: "I would rather not.")
    counts = score_experiment(silent).counts[0]
    assert dict(counts.unscored) == {"rubric_score": 2, "presentation": 2, "epistemics": 2}


def test_every_criterion_of_the_bundled_questions_rests_on_words_of_a_book():
    questions = read_questions(LONG_ANSWERS).questions
    books = {name: book_path(name).read_text("utf-8") for name in {one.document for one in questions}}
    assert (len(questions), len(books)) == (24, 3)
    for question in questions:
        assert f"### {question.section}\n" in books[question.document]
        assert len(question.rubric) >= 4
        assert any(one.level == "must" for one in question.rubric)
        assert any(one.level == "should" for one in question.rubric)
        assert all(any(one.source in book for book in books.values()) for one in question.rubric), question.id
