"""Inspect's tasks inside climassay's experiments: Inspect's figures, with intervals, constants and paired tests."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("inspect_ai")

from api_server import ApiServer, Reply
from climassay.api import benchmarks
from climassay.errors import InputError
from climassay.evaluation import Cell, experiment_tables, load_experiment, load_plan, score_experiment
from climassay.models import ModelOptions
from climassay.records import Records
from climassay.records.queries import list_runs
from climassay.session import Session
from climassay.workspace import Workspace
from command_line import json_of, refused
from killed_process import kill_when
from patience import until
from tiny_models import save_tiny

FILE = Path(__file__).parents[1] / "inspect_tasks.py"
SAMPLES = {"choices": 9, "words": 9, "several_values": 5, "repeated": 6}


def named(*tasks):
    return [f"{FILE}@{one}" for one in tasks]


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [save_tiny(folder / name, context=1024, seed=seed) for seed, name in enumerate(("one", "two"))]


@pytest.fixture(scope="module")
def run(weights, tmp_path_factory):
    folder = tmp_path_factory.mktemp("w")
    with Session.opened(folder, ModelOptions(dtype="float32")) as session:
        models = [f"local:{one}" for one in weights]
        result = benchmarks.evaluate_inspect(named(*SAMPLES), models=models, workspace=session)
    with Records(Workspace.open(folder).records_url) as records:
        return result, load_experiment(records, result.to_dict()["run"])


@pytest.mark.core
@pytest.mark.model
def test_every_figure_is_inspect_s(run, weights, tmp_path):
    import inspect_ai

    scores, compared = score_experiment(run[1]), 0
    for path in weights:
        logs = inspect_ai.eval(
            named(*SAMPLES),
            model=f"climassay/local:{path}",
            model_args={"dtype": "float32"},
            log_dir=str(tmp_path),
            display="none",
        )
        for log in logs:
            kind = "mcq" if log.eval.task == "choices" else "freeform"
            for score in log.results.scores:
                own = score.scorer if score.name == score.scorer else f"{score.scorer}.{score.name}"
                own += "" if score.reducer in (None, "mean") else f".{score.reducer}"
                for name, metric in score.metrics.items():
                    if name == "stderr":
                        continue
                    found = scores.get(Cell(log.eval.task, str(path), "default", kind), f"{name},{own}")
                    assert found is not None, (log.eval.task, name, own)
                    assert found.estimate.value == pytest.approx(metric.value, abs=1e-9), (log.eval.task, name)
                    assert found.estimate.n == SAMPLES[log.eval.task]
                    compared += 1
    assert compared == 2 * (1 + 2 + 3 + 2)


@pytest.mark.model
def test_constants_and_paired_tests_stand_beside_the_scores(run):
    scores = score_experiment(run[1])
    constants = {(one.benchmark, one.metric): one.value for one in scores.constants}
    assert constants["choices", "accuracy,choice"] == pytest.approx(1 / 3)
    assert constants["words", "accuracy,includes"] == pytest.approx(1 / 3)
    assert constants["several_values", "mean,marks.length"] == len("none")
    tests = {(one.benchmark, one.metric): one for one in scores.tests}
    assert tests["words", "accuracy,includes"].difference.n == 9
    assert tests["words", "accuracy,includes"].test == "McNemar, exact"
    assert "choices" in {one.benchmark for one in scores.tests}


@pytest.mark.model
def test_a_figure_that_is_no_mean_has_its_parts(run):
    found = [one for one in run[1].outcomes if one.cell.benchmark == "several_values"]
    by_model = {}
    for one in found:
        by_model.setdefault(one.cell.model, []).append(one)
    for outcomes in by_model.values():
        lengths = np.array([one.scores["mean,marks.length"] + 1 for one in outcomes])
        parts = [one.scores["share_of_long,marks"] for one in outcomes]
        assert np.mean(parts) == pytest.approx(max(lengths) / sum(lengths))
    assert any("jackknife" in note for record in run[1].cells for note in record.notes)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def rule(request):
        text = request.content
        if "GRADE" in text:
            return Reply("GRADE: C" if "number 1" in text or "number 2" in text else "GRADE: I")
        return Reply("I think so.\n\nANSWER: B" if "number 4" in text else "ANSWER: A")

    with ApiServer(rule=rule) as running:
        yield running


def test_choices_failures_and_grades_of_a_server(server, tmp_path):
    with Session.opened(tmp_path, ModelOptions(base_url=server.url)) as session:
        done = benchmarks.evaluate_inspect(
            named("failing", "graded"), models="openai:test", grader="openai:other", workspace=session
        )
        experiment = load_experiment(session.records, done.to_dict()["run"])
        asked = [one.sent for one in list_runs(session.records.database)]
    counts = {one.cell.benchmark: one for one in score_experiment(experiment).counts}
    assert (counts["failing"].n, counts["failing"].unparsed, counts["failing"].failed) == (9, 0, 1)
    rights = [one.scores["accuracy,choice"] for one in experiment.outcomes if one.cell.benchmark == "failing"]
    assert rights == [1, 0, 0, 0, 1, 0, 1, 0, 0]  # the fourth failed
    graded = {one.question: one.scores for one in experiment.outcomes if one.cell.benchmark == "graded"}
    assert [graded[f"graded-{n}"]["accuracy,model_graded_qa"] for n in range(4)] == [0, 1, 1, 0]
    assert asked == [9 + 4 + 4]  # each answer, and each grade
    assert {one.benchmark for one in score_experiment(experiment).constants} == {"failing"}


def test_every_epoch_is_asked_anew_and_served_again(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with (
        ApiServer(rule=lambda request: Reply("adaptation" if request.body["seed"] else "yes")) as server,
        Session.opened(tmp_path, ModelOptions(base_url=server.url, concurrency=1)) as session,
    ):
        scores = []
        for _ in range(2):
            done = benchmarks.evaluate_inspect(named("repeated"), models="openai:test", limit=2, workspace=session)
            scores.append([one.scores["accuracy,includes"] for one in done.experiment.outcomes])
        assert [one.sent for one in list_runs(session.records.database)] in ([0, 6], [6, 0])
    assert scores[0] == scores[1] == [pytest.approx(2 / 3)] * 2  # the epochs of a sample were not one answer


def test_own_questions_and_tasks_stand_in_one_experiment(server, tmp_path):
    (tmp_path / "tasks.py").write_text(FILE.read_text())
    (tmp_path / "experiment.toml").write_text(
        'benchmarks = ["primer"]\ntasks = ["mcq"]\nscoring = "letter"\nlimit = 2\n\n'
        f'[[model]]\nname = "openai:test"\nbase_url = "{server.url}"\n\n'
        '[inspect]\ntasks = ["tasks.py@words", "climassay/mcq"]\nlog_dir = "logs"\n'
    )
    plan = load_plan(tmp_path / "experiment.toml")
    done = benchmarks.run_plan(plan, workspace=tmp_path / "w").experiment
    assert {name: len(ones) for name, ones in done.questions.items()} == {"primer": 2, "words": 2, "climassay/mcq": 2}
    assert len(list((tmp_path / "logs").iterdir())) == 2
    [overview] = [one.table for one in experiment_tables(score_experiment(done)) if one.name == "overview"]
    assert {row[0] for row in overview.rows} == {"primer", "words", "climassay/mcq"}


@pytest.mark.parametrize(
    ("task", "more", "sentence"),
    [
        ("nothing.py@words", {}, "Inspect cannot run nothing.py@words"),
        (f"{FILE}@no_such_task", {}, "no_such_task"),
        ("no_such_package/task", {}, "Inspect cannot run no_such_package/task"),
        (f"{FILE}@words", {"task_args": {"flavour": 1}}, "flavour"),
        (f"{FILE}@with_tools", {}, "uses no tools"),
    ],
)
def test_what_cannot_be_run_is_told(task, more, sentence, server, tmp_path):
    with (
        Session.opened(tmp_path, ModelOptions(base_url=server.url)) as session,
        pytest.raises(InputError, match=sentence),
    ):
        benchmarks.evaluate_inspect(task, models="openai:test", workspace=session, **more)


def test_a_task_s_own_failure_counts_as_a_failed_sample(server, tmp_path):
    with Session.opened(tmp_path, ModelOptions(base_url=server.url)) as session:
        done = benchmarks.evaluate_inspect(named("breaking"), models="openai:test", workspace=session)
    errors = {one.question: one.error for one in done.experiment.outcomes}
    assert "This cannot be scored." in errors["breaking-text-1"]
    assert [one.scores["accuracy,broken"] for one in done.experiment.outcomes] == [1, 0, 1, 1]


def test_the_command_gives_every_score(server, tmp_path, climassay):
    asked = ("--model", "openai:test", "--base-url", server.url, "-w", tmp_path)
    told = json_of(climassay("evaluate inspect", *named("words"), "-T", "shown=3", "--json", *asked))
    assert {one["cell"]["benchmark"] for one in told["scores"]} == {"words"}
    assert {one["estimate"]["n"] for one in told["scores"]} == {3}
    told = climassay("evaluate inspect", "nothing_like_it.py@words", *asked)
    assert "Inspect cannot run" in refused(told, alone=False)
    assert "NAME=VALUE" in refused(climassay("evaluate inspect", *named("words"), "-T", "shown", *asked), alone=False)


def command(weights, folder):
    words = [sys.executable, "-m", "climassay.cli.main", "evaluate", "inspect", *named("choices", "words"), "--json"]
    return [*words, "--model", f"local:{weights[0]}", "--dtype", "float32", "--concurrency", "1", "-w", str(folder)]


def asked_in(folder):
    if not (folder / "records.sqlite").exists():
        return []
    with Records(Workspace.open(folder).records_url) as opened:
        return [one.sent for one in list_runs(opened.database)]


@pytest.mark.process
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_command_asks_only_what_is_missing(sign, weights, tmp_path):
    running = subprocess.Popen(command(weights, tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if sign == signal.SIGKILL:
        kill_when(lambda: sum(asked_in(tmp_path)), running)
    else:
        until(lambda: sum(asked_in(tmp_path)))
        os.kill(running.pid, sign)
        told = running.communicate()[1]
        assert running.returncode == 130, told
        assert "interrupted" in told
        assert "Traceback" not in told
    first = asked_in(tmp_path)[0]
    again = subprocess.run(command(weights, tmp_path), capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert {one["cell"]["benchmark"] for one in json.loads(again.stdout)["scores"]} == {"choices", "words"}
    assert sorted(asked_in(tmp_path)) == sorted([first, 18 - first])


def test_a_limit_draws_samples_of_every_task_by_the_seed(server, tmp_path):
    drawn = []
    for seed in (0, 0, 1):
        with Session.opened(tmp_path / "w", ModelOptions(base_url=server.url)) as session:
            done = benchmarks.evaluate_inspect(
                named("failing", "graded"), models="openai:test", grader="openai:other", limit=3, seed=seed,
                workspace=session,
            )  # fmt: skip
        drawn.append([(one.cell.benchmark, one.question) for one in done.experiment.outcomes])
    assert drawn[0] == drawn[1]
    assert {name: sum(task == name for task, _ in drawn[0]) for name in ("failing", "graded")} == {
        "failing": 3,
        "graded": 3,
    }
    assert set(drawn[0]) != set(drawn[2]), "another seed draws other samples"
