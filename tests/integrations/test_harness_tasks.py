"""Tasks of lm-evaluation-harness inside climassay's experiments: the harness's figures, with intervals and tests."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("lm_eval")

from api_server import ApiServer, Reply
from climassay.api import benchmarks
from climassay.errors import InputError
from climassay.evaluation import (
    Cell,
    experiment_report,
    experiment_tables,
    load_experiment,
    load_plan,
    score_experiment,
)
from climassay.integrations.lm_eval_model import ClimassayLM, find_named_choice
from climassay.integrations.task_outcomes import SampleScores
from climassay.models import ModelOptions
from climassay.records import Records
from climassay.session import Session
from climassay.workspace import Workspace
from climate_tasks import PLACES, TASKS, write_tasks
from command_line import json_of, refused
from killed_process import kill_when
from tiny_models import save_tiny


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [save_tiny(folder / name, context=512, seed=seed) for seed, name in enumerate(("one", "two"))]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("tasks"), group=True)


@pytest.fixture(scope="module")
def run(weights, tasks, tmp_path_factory):
    """Two models, without and with examples, on a group, a tag and a task."""
    folder = tmp_path_factory.mktemp("w")
    with Session.opened(folder, ModelOptions(dtype="float32")) as session:
        result = benchmarks.evaluate_lm_eval(
            ["ClimateEval", "climate", "climate_places"],
            models=[f"local:{one}" for one in weights],
            include_path=tasks,
            num_fewshot=[0, 2],
            workspace=session,
        )
    with Records(Workspace.open(folder).records_url) as records:
        return result, load_experiment(records, result.to_dict()["run"])


@pytest.fixture(scope="module")
def theirs(weights, tasks, tmp_path_factory):
    """The harness's own results, by model and number of examples."""
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.tasks import TaskManager

    found = {}
    for path in weights:
        workspace = str(tmp_path_factory.mktemp("theirs"))
        model = ClimassayLM(f"local:{path}", workspace=workspace, dtype="float32")
        for shots in (0, 2):
            manager = TaskManager(include_path=str(tasks), include_defaults=False)
            found[path.name, shots] = simple_evaluate(
                model,
                tasks=["climate", "climate_stance", "climate_places"],
                task_manager=manager,
                num_fewshot=shots,
                fewshot_random_seed=0,
                bootstrap_iters=0,
            )
        model.close()
    return found


def numbers(results):
    """Figures of a task or group by the names that climassay gives them; those of several numbers one by one."""
    for key, value in results.items():
        metric, comma, chosen = key.partition(",")
        if comma and "_stderr" not in metric:
            several = value.items() if isinstance(value, dict) else [("", value)]
            yield from ((f"{metric}{'.' if name else ''}{name},{chosen}", one) for name, one in several)


def test_every_figure_is_the_harness_s(run, theirs, weights):
    scores = score_experiment(run[1])
    compared = 0
    for path in weights:
        for shots in (0, 2):
            for task in (*TASKS, "climate_more", "climate"):
                results = theirs[path.name, shots]["groups" if task == "climate" else "results"][task]
                for metric, value in numbers(results):
                    kind = "freeform" if task in ("climate_stance", "climate_places") else "mcq"
                    found = scores.get(Cell(task, str(path), f"{shots}-shot", kind), metric)
                    assert found is not None, (task, metric)
                    assert found.estimate.value == pytest.approx(value, abs=1e-9), (task, metric)
                    assert found.estimate.interval.low <= value <= found.estimate.interval.high
                    compared += 1
    assert compared == 4 * (4 + 1 + 1 + 2 + 2)


def test_everything_shows_the_tasks(run):
    result, experiment = run
    [overview] = [one.table for one in experiment_tables(score_experiment(experiment)) if one.name == "overview"]
    assert {row[0] for row in overview.rows} == {*TASKS, "climate_more", "climate"}
    page = experiment_report(experiment).to_html()
    assert all(name in page for name in (*TASKS, "exact_match (first)", "jackknife"))
    assert result.to_dict()["scores"]
    assert len(result.tables()) > 10
    [question] = [one for one in experiment.questions["climate_topics"] if one.id.endswith("-4")]
    assert question.options[question.correct] == question.answer == "mitigation"


def test_parts_in_a_macro_f1_have_its_mean_and_its_spread():
    from sklearn.metrics import f1_score

    def macro(items):
        gold, found = zip(*items, strict=True)
        return f1_score(gold, found, average="macro")

    draw = np.random.default_rng(3)
    gold = draw.integers(0, 4, 300)
    found = np.where(draw.random(300) < 0.6, gold, draw.integers(0, 4, 300))
    items = list(zip(gold.tolist(), found.tolist(), strict=True))
    scores = SampleScores(range(300), ())
    scores.add_aggregate("f1,none", macro(items), {one: macro(items[:one] + items[one + 1 :]) for one in range(300)})
    parts = np.array([one["f1,none"] for one in scores.by_sample.values()])
    assert parts.mean() == pytest.approx(macro(items), abs=1e-12)
    places = [draw.integers(0, 300, 300) for _ in range(400)]
    bootstrap = np.std([macro([items[place] for place in one]) for one in places])
    assert parts.std(ddof=1) / 300**0.5 == pytest.approx(bootstrap, rel=0.12)


def test_own_questions_and_tasks_stand_in_one_experiment(weights, tasks, tmp_path):
    (tmp_path / "experiment.toml").write_text(
        f'benchmarks = ["primer"]\ntasks = ["mcq"]\nscoring = "text"\nlimit = 2\n\n'
        f'[[model]]\nname = "local:{weights[0]}"\ndtype = "float32"\n\n'
        f'[lm_eval]\ntasks = ["climate_topics"]\ninclude_path = ["{tasks}"]\n'
    )
    plan = load_plan(tmp_path / "experiment.toml")
    done = benchmarks.run_plan(plan, workspace=tmp_path / "w").experiment
    assert {name: len(ones) for name, ones in done.questions.items()} == {"primer": 2, "climate_topics": 2}
    [overview] = [one.table for one in experiment_tables(score_experiment(done)) if one.name == "overview"]
    assert overview.rows[0][0] == "primer"
    assert overview.columns[3].heading == f"{weights[0]}\ndefault".replace("local:", "")


def test_a_server_writes_its_choice_and_failures_count_as_wrong(tasks, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def rule(request):
        text = request.content
        return Reply("Impacts." if "number 5" in text else "I cannot tell." if "number 4" in text else "adaptation")

    with ApiServer(rule=rule) as server, Session.opened(tmp_path, ModelOptions(base_url=server.url)) as session:
        file = str(tasks / "climate_topics.yaml")
        done = benchmarks.evaluate_lm_eval(file, models="openai:test", workspace=session)
        experiment = load_experiment(session.records, done.to_dict()["run"])
    [counts] = score_experiment(experiment).counts
    assert (counts.n, counts.unparsed, counts.failed) == (9, 1, 0)
    rights = {one.question: one.scores["acc,none"] for one in experiment.outcomes}
    assert [rights[f"climate_topics-{n}"] for n in range(9)] == [1, 0, 0, 1, 0, 1, 1, 0, 0]
    assert "wrote its choice" in experiment.cells[0].notes[0]


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("B", 1), ("**b**.", 1), ("The answer is B", 1), ("A or B", None), ("not enough info", 3), ("", None),
        ("info", 2),
    ],
)  # fmt: skip
def test_the_choice_is_read_from_what_is_written(answer, chosen):
    assert find_named_choice(answer, ["A", "B", "info", "not enough info"]) == chosen


@pytest.mark.parametrize(
    ("names", "folder", "sentence"),
    [
        (["climate_topics"], "missing", "is not a folder with tasks"),
        (["climate_nothing_like_it"], None, "has no task, group or tag 'climate_nothing_like_it'"),
        (["broken"], None, "The tasks broken cannot be loaded"),
    ],
)
def test_what_cannot_be_run_is_told(names, folder, sentence, tasks, tmp_path):
    write_tasks(tmp_path)
    (tmp_path / "broken.yaml").write_text(
        (tmp_path / "climate_topics.yaml")
        .read_text()
        .replace("climate_topics", "broken")
        .replace("topics.jsonl", "none.jsonl")
    )
    with pytest.raises(InputError, match=sentence):
        benchmarks.evaluate_lm_eval(names, include_path=folder or tmp_path, workspace=tmp_path / "w")


def test_the_command_gives_every_score(weights, tasks, tmp_path, climassay):
    asked = ("climate_topics", "--include-path", tasks, "--model", f"local:{weights[0]}", "--dtype", "float32")
    told = json_of(climassay("evaluate lm-eval", *asked, "--limit", 3, "--json", "-w", tmp_path))
    assert {one["cell"]["benchmark"] for one in told["scores"]} == {"climate_topics"}
    assert {one["estimate"]["n"] for one in told["scores"]} == {3}
    told = climassay("evaluate lm-eval", "nothing_like_it", *asked[1:], "-w", tmp_path)
    assert "no task" in refused(told, alone=False)


@pytest.mark.process
def test_a_killed_command_asks_only_what_is_missing(weights, tasks, tmp_path):
    command = [
        sys.executable,
        "-m",
        "climassay.cli.main",
        "evaluate",
        "lm-eval",
        *TASKS,
        "--include-path",
        str(tasks),
        "--json",
    ]
    command += ["--model", f"local:{weights[0]}", "--dtype", "float32", "--concurrency", "1", "-w", str(tmp_path)]
    records = tmp_path / "records.sqlite"

    def asked():
        from climassay.records.queries import list_runs

        if not records.exists():
            return []
        with Records(Workspace.open(tmp_path).records_url) as opened:
            return [one.sent for one in list_runs(opened.database)]

    kill_when(
        lambda: sum(asked()), subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    )
    first = asked()[0]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {one["cell"]["benchmark"] for one in json.loads(done.stdout)["scores"]} == set(TASKS)
    assert asked() == [first, 3 * 9 + 9 + len(PLACES) - first]


def test_a_limit_draws_samples_by_the_seed_and_keeps_what_became_of_each(tasks, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def rule(request):
        text = request.content
        return Reply("Impacts." if "number 5" in text else "I cannot tell." if "number 4" in text else "adaptation")

    drawn = {}
    with ApiServer(rule=rule) as server:
        for seed in (0, 1, 2):
            with Session.opened(tmp_path, ModelOptions(base_url=server.url)) as session:
                file = str(tasks / "climate_topics.yaml")
                done = benchmarks.evaluate_lm_eval(
                    file, models="openai:test", limit=4, seed=seed, workspace=session
                )  # fmt: skip
            drawn[seed] = {one.question: one for one in done.experiment.outcomes}
    rights = [1, 0, 0, 1, 0, 1, 1, 0, 0]
    for outcomes in drawn.values():
        assert len(outcomes) == 4
        for question, outcome in outcomes.items():
            number = int(question.rpartition("-")[2])
            assert outcome.scores["acc,none"] == rights[number]
            assert bool(outcome.violations) == (number == 4), "only the answer that names no choice is unparsed"
    assert len({frozenset(outcomes) for outcomes in drawn.values()}) > 1
