"""Climassay's models in lm-evaluation-harness, and the published YAML files run by it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from api_server import ApiServer, Reply
from climassay.errors import InputError, ModelError
from climassay.integrations import publish_benchmark
from climassay.records import Records
from climassay.records.queries import list_runs
from climassay.workspace import Workspace
from climate_tasks import PLACES, TASKS, TEXT, write_tasks
from killed_process import kill_when
from published_sample import write_sample
from tiny_models import save_tiny

pytest.importorskip("lm_eval")


CHAT = (
    "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<s>{% endif %}"
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny"), chat_template=CHAT, context=96)


@pytest.fixture(scope="module")
def theirs(weights):
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=str(weights), dtype="float32", device="cpu", batch_size=1)


@pytest.fixture
def ours(weights, tmp_path):
    from climassay.integrations.lm_eval_model import ClimassayLM

    model = ClimassayLM(f"local:{weights}", workspace=str(tmp_path / "w"), dtype="float32", max_gen_toks=16)
    yield model
    model.close()


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Tasks in the forms of ClimateEval."""
    return write_tasks(tmp_path_factory.mktemp("tasks"))


def requests_of(kind, *arguments):
    from lm_eval.api.instance import Instance

    return [Instance(request_type=kind, doc={}, arguments=one, idx=0) for one in arguments]


def asked(workspace):
    """How many requests each run asked, the first one first."""
    with Records(Workspace.open(workspace).records_url) as records:
        return [run.sent for run in list_runs(records.database)]


CONTEXTS = ("The sea rises because ", "The sea rises", "", "<s>user: Hi\n<s>", "x  \n", TEXT)
CONTINUATIONS = (" it warms.", "because", "a", "\n")


def test_continuations_are_scored_as_by_the_harness(ours, theirs):
    pairs = requests_of("loglikelihood", *((one, other) for one in CONTEXTS for other in CONTINUATIONS))
    expected, found = theirs.loglikelihood(pairs, disable_tqdm=True), ours.loglikelihood(pairs, disable_tqdm=True)
    assert [one[0] for one in found] == pytest.approx([one[0] for one in expected], abs=1e-4, rel=1e-5)
    assert [one[1] for one in found] == [one[1] for one in expected]


def test_whole_texts_are_scored_in_the_harness_s_windows(ours, theirs):
    texts = requests_of("loglikelihood_rolling", (TEXT,), ("Ice melts.",), (TEXT[:96],))
    expected = theirs.loglikelihood_rolling(texts, disable_tqdm=True)
    assert ours.loglikelihood_rolling(texts, True) == pytest.approx(expected, abs=1e-4, rel=1e-5)


def test_chats_are_the_harness_s_text(ours, theirs):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Does it warm?"}]
    assert ours.apply_chat_template(chat) == theirs.apply_chat_template(chat)
    assert ours.chat_template(True) == theirs.chat_template(True) == CHAT


@pytest.mark.model
def test_tasks_in_the_forms_of_climate_eval_have_the_same_metrics(ours, theirs, tasks, tmp_path, monkeypatch):
    import datasets
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    manager = TaskManager(include_path=str(tasks), include_defaults=False)

    def results(model, **options):
        done = simple_evaluate(model, tasks=list(TASKS), task_manager=manager, bootstrap_iters=0, **options)
        return {task: {name: value for name, value in done["results"][task].items() if "," in name} for task in TASKS}

    for options in ({}, {"apply_chat_template": True}, {"num_fewshot": 2, "fewshot_random_seed": 1}):
        expected = results(theirs, **options)
        before = ours.tally
        found = results(ours, **options)
        assert found.keys() == expected.keys()
        for task in TASKS:
            assert found[task] == pytest.approx(expected[task]), (task, options)
        assert ours.tally.sent > before.sent
        again = ours.tally.sent
        assert results(ours, **options) == found
        assert ours.tally.sent == again, "everything is in the records"


@pytest.mark.process
def test_a_task_that_was_killed_asks_only_what_is_missing(weights, tasks, tmp_path):
    command = [sys.executable, "-m", "climassay.integrations.lm_eval_model", "run", "--model", "climassay"]
    command += ["--model_args", f"model=local:{weights},workspace={tmp_path / 'w'},dtype=float32,concurrency=1"]
    command += ["--include_path", str(tasks), "--tasks", ",".join(TASKS), "--output_path", str(tmp_path / "out")]
    records = tmp_path / "w" / "records.sqlite"

    def answers():
        return records.exists() and sum(asked(tmp_path / "w"))

    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    kill_when(answers, process)
    first = asked(tmp_path / "w")[0]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    total = 3 * 9 + 9 + len(PLACES)
    assert asked(tmp_path / "w") == [first, total - first]
    [results] = Path(tmp_path / "out").rglob("results_*.json")
    assert json.loads(results.read_text())["results"].keys() == set(TASKS)


def test_a_server_s_model_writes_and_is_recorded(tmp_path, monkeypatch):
    from climassay.integrations.lm_eval_model import ClimassayLM

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ApiServer() as api:
        ask_a_server(ClimassayLM("openai:test", workspace=str(tmp_path / "w"), base_url=api.url))


def ask_a_server(model):
    chat = model.apply_chat_template([{"role": "user", "content": "Does it warm?"}])
    requests = requests_of("generate_until", (chat, {"until": ["\n"]}), ("Does it warm?", {"until": ["\n"]}))
    texts = model.generate_until(requests, True)
    assert texts[0] == texts[1] != ""
    assert model.tally.sent == 1
    with pytest.raises(ModelError, match="gives no log-probabilities of texts"):
        model.loglikelihood(requests_of("loglikelihood", ("a", "b")), True)
    model.close()


def test_repeated_requests_are_samples_with_seeds_of_their_own(tmp_path, monkeypatch):
    from climassay.integrations.lm_eval_model import ClimassayLM

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    drawn = {"until": ["\n"], "do_sample": True, "temperature": 0.7, "seed": 5}
    greedy = {"until": ["\n"]}
    with ApiServer(rule=lambda request: Reply(f"sample {request.body['seed']}")) as api:
        model = ClimassayLM("openai:test", workspace=str(tmp_path / "w"), base_url=api.url)
        [one] = requests_of("generate_until", ("Does it warm?", drawn))
        [sure] = requests_of("generate_until", ("Does it cool?", greedy))
        texts = model.generate_until([one, one, sure, one, sure], True)
        assert texts == ["sample 5", "sample 6", "sample 0", "sample 7", "sample 0"]
        assert model.generate_until([one, one, one], True) == ["sample 5", "sample 6", "sample 7"]
        assert model.tally.sent == 4
        model.close()


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"num_beams": 4}, InputError, "asks for num_beams, which"),
        ({"max_gen_toks": 96}, InputError, "leave no room in a window of 96"),
    ],
)
def test_what_cannot_be_generated_is_told(ours, options, error, sentence):
    with pytest.raises(error, match=sentence):
        ours.generate_until(requests_of("generate_until", ("Ice", {"until": []} | options)), True)


def test_a_failure_is_told_and_no_number(ours):
    with pytest.raises(ModelError, match=r"^1 request failed, the first one: The continuation adds nothing"):
        ours.loglikelihood(requests_of("loglikelihood", ("Ice", " melts"), ("Ice", "")), True)


pytest.importorskip("lm_eval")


@pytest.fixture
def manager(tmp_path, monkeypatch):
    import datasets
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    published = publish_benchmark(write_sample(tmp_path), tmp_path / "first", name="sample").folder
    moved = published.rename(tmp_path / "moved")
    return TaskManager(include_path=str(moved / "lm_eval"), include_defaults=False)


def test_the_group_runs_from_any_folder(manager, monkeypatch, tmp_path):
    """With the harness's own random model; freeform is left out, for its judge is not what is tested here."""
    from lm_eval.evaluator import simple_evaluate

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert manager.all_groups == ["sample"]
    monkeypatch.setattr("climassay.integrations.lm_eval.score_answer", scores_without_models)
    found = simple_evaluate(
        model="dummy", tasks=["sample"], task_manager=manager, bootstrap_iters=0, log_samples=True, num_fewshot=3
    )
    counts = {name: told["original"] for name, told in found["n-samples"].items()}
    assert counts["sample_mcq_base"] == counts["sample_mcq_letter_hypothetical"] == 2
    assert counts["sample_freeform_reasoning"] == 1
    assert counts["sample_cloze_base"] == 3
    assert set(found["n-shot"].values()) == {0}
    assert {found["versions"][name] for name in counts} == {1}
    means = found["groups"]["sample::sample_mcq_mean"]
    parts = [found["results"][f"sample_mcq_{level}"]["acc,none"] for level in ("base", "reasoning", "hypothetical")]
    assert means["acc,none"] == pytest.approx(sum(parts) / 3)
    letters = found["results"]["sample_mcq_letter_base"]["accuracy,none"]
    assert letters == 0.0, "the random model writes no letter"


def scores_without_models(question, text):
    from climassay.integrations.benchmark import SCORES, score_answer

    if question.kind == "mcq":
        return score_answer(question, text)
    return dict.fromkeys(SCORES[question.kind], 0.5)
