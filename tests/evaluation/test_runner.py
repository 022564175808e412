"""A whole experiment: what is asked of whom, what is kept, and what a second run asks."""

import json
import tomllib
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from climassay import Evaluation
from climassay.errors import InputError, ModelError
from climassay.evaluation import (
    BenchmarkSpec,
    EvaluationResources,
    ExamplePool,
    SourceLoaders,
    count_answers,
    experiment_report,
    load_experiment,
    parse_plan,
    read_benchmark,
    run_experiment,
    score_experiment,
)
from climassay.evaluation.runner import Adapter
from climassay.metrics import Scorer
from climassay.questions import Question, QuestionSet
from climassay.records import Records
from scripted_model import ScriptedModel

QUESTIONS = (
    Question("m1", "mcq", "Which gas warms?", "CO2", "base", ("N2", "CO2"), 1),
    Question("m2", "mcq", "Which gas is most of the air?", "N2", "reasoning", ("N2", "CO2"), 0),
    Question("f1", "freeform", "Why does the sea rise?", "Because ice melts.", "base"),
    Question("c1", "cloze", "Ice reflects <MASK> well.", "sunlight"),
)
PLAN = """
name = "small"
benchmarks = ["gold"]
settings = ["default"]
{more}
[[setting]]
use = "few-shot:pool"
examples = 1
[[model]]
name = "local:one"
[[model]]
name = "local:two"
label = "second"
[metrics]
facts = false
"""
POOL = ExamplePool(
    "pool",
    (
        Question("p1", "mcq", "Is it 1?", "yes", None, ("yes", "no"), 0),
        Question("p2", "freeform", "What is it?", "It is."),
        Question("p3", "cloze", "A <MASK>.", "word"),
    ),
)


class Letters:
    """Vectors of letter counts: enough to compare texts."""

    name, fingerprint, width = "test:letters", "1" * 64, 26

    def encode(self, texts, *, role="passage", on_progress=None):
        counts = np.array([[1 + text.lower().count(chr(97 + k)) for k in range(26)] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


class Same:
    """Entailment of equal texts."""

    name = "test:same"

    def score(self, pairs):
        return [None if "unclear" in statement else float(premise == statement) for premise, statement in pairs]


class Lab:
    """Opens scripted models and remembers what was opened."""

    def __init__(self, write=None, choose=None, adapter=None, judge=None):
        self.opened = []
        self.models = []
        self.closed = 0
        self.write = write or (
            lambda prompt, schema: " sunlight" if prompt.endswith("Missing word:") else " Because ice melts."
        )
        self.choose = choose or (lambda prompt, options: options[0])
        self.adapter = adapter
        self.judge = judge

    def open_model(self, spec, adapter):
        model = ScriptedModel(write=self.write, choose=self.choose, name=spec.name)
        model.fingerprint = (spec.name + str(adapter)).ljust(64, "0")[:64]
        close = model.close
        model.close = lambda: (setattr(self, "closed", self.closed + 1), close())
        self.opened.append((spec.name, adapter))
        self.models.append(model)
        return model

    def bench(self):
        scorer = Scorer(Letters(), "local:minilm", Same(), judge=self.judge)
        return EvaluationResources(
            self.open_model,
            SourceLoaders(lambda names: None, lambda name: POOL),
            lambda model, spec: self.adapter(model, spec) if self.adapter else None,
            lambda ask: scorer,
        )

    @property
    def asked(self):
        return sum(len(model.texts) + len(model.options) for model in self.models)


@pytest.fixture(autouse=True)
def no_bert(monkeypatch):
    """BERTScore has tests of its own; here every answer has the same."""

    class Scores:
        def __init__(self, count):
            self.f1 = (0.5,) * count

    module = import_module("climassay.metrics.overlap")
    monkeypatch.setattr(module, "bert_score", lambda references, answers, encoder: Scores(len(answers)))


def plan(more=""):
    return parse_plan(tomllib.loads(PLAN.format(more=more)), where="x.toml", folder=Path())


SETS = {"gold": QuestionSet("gold", QUESTIONS, (), "0" * 64)}


def run(lab, store, the_plan=None, sets=SETS):
    return run_experiment(the_plan or plan(), sets, lab.bench(), store)


@pytest.fixture
def store(tmp_path):
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as opened:
        yield opened


def test_every_model_is_asked_everything_in_every_setting(store):
    lab = Lab()
    done = run(lab, store)
    assert len(done.cells) == 2 * 2 * 3
    assert len(done.outcomes) == count_answers(plan(), SETS) == 2 * 2 * 4
    assert {(one.cell.model, one.cell.setting) for one in done.outcomes} == {
        ("one", "default"),
        ("one", "few-shot:pool"),
        ("second", "default"),
        ("second", "few-shot:pool"),
    }
    assert lab.opened == [("local:one", None), ("local:two", None)]
    assert lab.closed == 2


def test_answers_are_scored_by_their_task(store):
    outcomes = {one.question: one for one in run(Lab(), store).outcomes if one.cell.setting == "default"}
    assert outcomes["m1"].scores == {"accuracy": 0.0}
    assert (outcomes["m1"].answer, outcomes["m1"].chosen) == ("N2", 0)
    assert outcomes["m1"].probability == pytest.approx(1 / (1 + np.exp(-3.9)))
    assert outcomes["m2"].scores == {"accuracy": 1.0}
    freeform = outcomes["f1"].scores
    assert freeform["bleu_char"] == pytest.approx(1.0)
    assert freeform["supported"] == 1.0
    assert set(freeform) == {"bleu_char", "bleu", "bert_score", "factual_accuracy", "supported"}
    assert outcomes["c1"].scores == {
        "exact_match": 1.0,
        "exact_match_normalised": 1.0,
        "phrase_similarity": pytest.approx(1.0),
    }


def test_what_was_asked_once_is_not_asked_again(store):
    first = run(Lab(), store)
    again = Lab()
    second = run(again, store)
    assert again.asked == 0
    assert [record.n_requested for record in second.cells] == [0] * 12
    assert second.outcomes == first.outcomes


def test_a_run_that_breaks_off_goes_on_where_it_was(store):
    def write(prompt, schema):
        if prompt.endswith("Missing word:"):
            raise KeyboardInterrupt
        return " Because ice melts."

    broken = Lab(write)
    with pytest.raises(KeyboardInterrupt):
        run(broken, store)
    assert broken.asked == 4  # two choices, one text, and the one that broke off
    after = Lab()
    run(after, store)
    assert after.asked == 16 - 3


def test_failed_answers_score_nothing_and_are_counted(store):
    lab = Lab(write=lambda prompt, schema: ModelError("No answer."), choose=lambda p, o: ModelError("No scores."))
    done = run(lab, store)
    assert all(value == 0 for one in done.outcomes for value in one.scores.values())
    assert {one.error for one in done.outcomes} == {"No answer.", "No scores."}
    assert [record.failed for record in done.cells] == [2, 1, 1] * 4


def test_a_metric_that_fails_is_missing_and_others_stay(store):
    done = run(Lab(write=lambda prompt, schema: " unclear"), store)
    scores = next(one for one in done.outcomes if one.question == "f1").scores
    assert set(scores) == {"bleu_char", "bleu", "bert_score"}


def judging(prompt, _schema):
    assert "Why does the sea rise?" in prompt
    assert prompt.count("Because ice melts.") == 2  # reference and answer
    return json.dumps({"reason": "Melting is what the reference says.", "verdict": "partly correct"})


def test_a_judge_marks_freeform_answers_and_its_reasons_are_kept_and_shown(store):
    judge = ScriptedModel(write=judging, name="local:judge")
    done = run(Lab(judge=judge), store, plan('tasks = ["freeform", "cloze"]'))
    silent = ScriptedModel(write=lambda *_: "I would rather not.", name="local:silent")
    silent.fingerprint = "6" * 64
    other = run(Lab(judge=silent), store, plan('tasks = ["freeform"]'))
    judged = [one for one in done.outcomes if one.cell.task == "freeform"]
    assert [one.scores["judged_accuracy"] for one in judged] == [0.5] * 4
    assert {one.judgement.reason for one in judged} == {"Melting is what the reference says."}
    assert all(one.judgement is None for one in done.outcomes if one.cell.task == "cloze")
    assert done.metric_sources["judged_accuracy"] == "local:judge"
    assert load_experiment(store, done.run) == done
    assert "judged partly correct: Melting is what the reference says." in experiment_report(done).to_html()
    score = score_experiment(done).get(judged[0].cell, "judged_accuracy")
    assert (score.estimate.value, score.estimate.n, score.unscored) == (0.5, 1, 0)
    # Where the judge fails, answers have no score, and are counted.
    assert all("judged_accuracy" not in one.scores and one.judgement.error for one in other.outcomes)
    assert all(count.unscored == (("judged_accuracy", 1),) for count in score_experiment(other).counts)
    assert "not judged: " in experiment_report(other).to_html()


def test_letters_are_read_where_a_model_asks_for_it(store):
    more = 'scoring = "letter"\ntasks = ["mcq"]'
    lab = Lab(write=lambda prompt, schema: " b" if "Which gas warms" in prompt else " neither")
    done = run(lab, store, plan(more))
    first, second = done.outcomes[:2]
    assert (first.chosen, first.scores) == (1, {"accuracy": 1.0})
    assert (second.chosen, second.answer, second.violations) == (None, " neither", ("no option letter",))
    assert first.probability is None


def test_tuned_settings_open_the_model_again_with_their_adapter(store):
    text = PLAN.format(more="") + '[[setting]]\nuse = "fine-tuned"\nlabel = "ft"\nadapter = "a-{model}"\n'
    the_plan = parse_plan(tomllib.loads(text), where="x.toml", folder=Path())
    lab = Lab(
        adapter=lambda model, spec: Adapter(Path(spec.adapter.format(model=model.display_name)), ("trained on x",))
    )
    done = run(lab, store, the_plan)
    assert lab.opened == [
        ("local:one", None),
        ("local:one", Path("a-one")),
        ("local:two", None),
        ("local:two", Path("a-second")),
    ]
    tuned = [record for record in done.cells if record.cell.setting == "ft"]
    assert {record.notes for record in tuned} == {("trained on x",)}
    assert len({record.fingerprint for record in done.cells}) == 4


def test_a_tuned_setting_without_adapter_is_refused(store):
    text = PLAN.format(more="") + '[[setting]]\nuse = "fine-tuned"\n'
    with pytest.raises(InputError, match="needs an adapter, or a training"):
        run(Lab(), store, parse_plan(tomllib.loads(text), where="x.toml", folder=Path()))


def test_a_limit_draws_the_same_questions_of_each_task():
    limited = plan("limit = 10")
    spec = BenchmarkSpec("gold", ("primer",))
    drawn = read_benchmark(spec, limited)
    assert {kind: len(drawn.of_kind(kind)) for kind in ("mcq", "freeform", "cloze")} == dict.fromkeys(
        ("mcq", "freeform", "cloze"), 10
    )
    assert read_benchmark(spec, limited) == drawn
    whole = [one.id for one in read_benchmark(spec, plan()).questions]
    assert [one for one in whole if one in {two.id for two in drawn.questions}] == [one.id for one in drawn.questions]


def test_files_of_one_benchmark_may_number_their_questions_alike(tmp_path):
    (tmp_path / "a.csv").write_text("question,answer\nWhy?,So.\n")
    (tmp_path / "b.csv").write_text("question,answer\nThe <MASK>.,sea\n")
    spec = BenchmarkSpec("both", (str(tmp_path / "a.csv"), str(tmp_path / "b.csv")))
    assert [one.id for one in read_benchmark(spec, plan()).questions] == ["freeform-q00001", "cloze-q00001"]
    twice = BenchmarkSpec("both", (str(tmp_path / "a.csv"),) * 2)
    assert [one.id for one in read_benchmark(twice, plan()).questions] == ["freeform-q00001", "freeform-q00001-2"]


def test_a_model_without_log_probabilities_is_told_before_anything_is_asked(store):
    class Talker:
        name, fingerprint = "openai:talker", "2" * 64

        def render(self, messages, assistant_prefix=""):
            return "x"

        def generate(self, requests, *, on_result=None):
            raise AssertionError("not asked")

        def close(self):
            pass

    lab = Lab()
    bench = lab.bench()
    with pytest.raises(ModelError, match='scoring = "letter"'), nullcontext():
        run_experiment(
            plan(),
            SETS,
            EvaluationResources(lambda spec, adapter: Talker(), bench.loaders, bench.find_adapter, bench.open_scorer),
            store,
        )


def test_a_cell_says_what_its_questions_share_with_what_the_model_had(store):
    run_of_words = "melting ice lets the sea rise all along the coasts"
    questions = (*QUESTIONS, Question("f2", "freeform", "What does ice do?", f"We say {run_of_words}.", "base"))
    lab = Lab(adapter=lambda model, spec: Adapter(Path("one"), (), ("Other words.", run_of_words)))
    tuned = plan('[[setting]]\nuse = "few-shot:pool"\nlabel = "tuned"\nexamples = 1\nadapter = "one"')
    done = run(lab, store, tuned, {"gold": QuestionSet("gold", questions, (), "0" * 64)})
    cells = {(one.cell.setting, one.cell.task): one for one in done.cells if one.cell.model == "one"}
    assert {(one.texts, one.contaminated) for name, one in cells.items() if name[0] == "default"} == {("", None)}
    assert (cells["few-shot:pool", "mcq"].texts, cells["few-shot:pool", "mcq"].contaminated) == ("1 example", 0)
    found = cells["tuned", "freeform"]
    assert (found.texts, found.contaminated) == ("1 example, 2 training texts", 1)
    assert found.notes[-1].startswith("1 question shares 8")
    assert cells["tuned", "mcq"].contaminated == 0
    assert load_experiment(store, done.run).cells == done.cells


def test_a_task_without_questions_is_named(store):
    sets = {"gold": replace(SETS["gold"], questions=QUESTIONS[:3])}
    done = run(Lab(), store, plan('tasks = ["mcq", "cloze", "true_false"]'), sets)
    assert done.empty_tasks() == load_experiment(store, done.run).empty_tasks()
    [sentence] = done.empty_tasks()
    assert all(word in sentence for word in ("gold", "no cloze", "no true_false"))
    assert sentence in Evaluation(done, score_experiment(done)).notes()
    assert sentence in experiment_report(done).to_html()
    assert run(Lab(), store, plan(), sets).empty_tasks() == [], "no task was named"


@pytest.mark.parametrize(
    ("metrics", "labels"),
    [
        ("", ("factual accuracy", "supported")),
        ("facts = true", ("factual accuracy", "supported", "fact precision", "fact recall", "fact F1")),
        ('entailment = "supports:openai:m"', ()),
        ('names = ["accuracy", "bleu", "exact_match"]', ()),
    ],
    ids=["judged", "facts", "scorer", "named"],
)
def test_metrics_that_need_a_scorer_are_named_if_the_file_names_none(store, metrics, labels):
    own = PLAN.replace("facts = false", metrics if "facts" in metrics else f"facts = false\n{metrics}")
    more = 'tasks = ["mcq", "freeform", "cloze"]'
    done = run(Lab(), store, parse_plan(tomllib.loads(own.format(more=more)), where="x.toml", folder=Path()))
    sentences = done.omitted_metrics()
    assert sentences == load_experiment(store, done.run).omitted_metrics()
    assert len(sentences) == bool(labels)
    for sentence in sentences:
        assert all(label in sentence for label in labels)
        assert ("fact F1" in sentence) == ("fact F1" in labels)
        assert sentence in Evaluation(done, score_experiment(done)).notes()
        assert sentence in experiment_report(done).to_html()


def test_without_freeform_questions_no_metric_is_left_out(store):
    sets = {"gold": replace(SETS["gold"], questions=QUESTIONS[:1])}
    assert run(Lab(), store, plan(), sets).omitted_metrics() == []
