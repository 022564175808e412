"""The provider, the tasks and the scorers, run by Inspect itself."""

import math
from importlib.util import find_spec

import pytest

from climassay.errors import InputError
from climassay.integrations import publish_benchmark
from climassay.models import Completion, Message, Sampling
from published_sample import Listener, sample, write_sample

pytestmark = pytest.mark.skipif(find_spec("inspect_ai") is None, reason="needs the extra inspect")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a task with one of our models behind the provider."""
    import inspect_ai
    from inspect_ai.model import get_model

    def evaluate(task, model, **options):
        monkeypatch.setattr("climassay.integrations.inspect.provider.load_model", lambda *_, **__: model)
        provider = get_model("climassay/local:any", memoize=False)
        (log,) = inspect_ai.eval(task, model=provider, display="none", log_dir=str(tmp_path / "logs"), **options)
        return log

    return evaluate


def metrics(log, scorer):
    """Values of a scorer's metrics, by name of the score where there are several."""
    return {
        (score.name, name): metric.value
        for score in log.results.scores
        if score.scorer.endswith(scorer)
        for name, metric in score.metrics.items()
    }


def test_accuracy_comes_by_level(run, tmp_path):
    file = write_sample(tmp_path)
    mcq = [question for question in sample() if question.kind == "mcq"]
    log = run("climassay/mcq", Listener(" b"), task_args={"file": str(file)})
    assert log.status == "success"
    found = metrics(log, "answer_letter")
    for level in ("base", "reasoning", "hypothetical"):
        own = [question for question in mcq if question.level == level]
        assert found["answer_letter", level] == sum(one.correct == 1 for one in own) / len(own)
    assert found["answer_letter", "all"] == sum(one.correct == 1 for one in mcq) / len(mcq)
    assert 0 < found["answer_letter", "all"] < 1
    assert {sample.scores["answer_letter"].answer for sample in log.samples} == {"b"}


def test_cloze_answers_are_scored_as_we_score_them(run, tmp_path):
    file = write_sample(tmp_path)
    cloze = [question for question in sample() if question.kind == "cloze"]
    log = run("climassay/cloze", Listener(f" {cloze[0].answer.upper()}.\n\nStatement:"), task_args={"file": str(file)})
    found = {sample.id: sample.scores["cloze_scores"].value for sample in log.samples}
    assert found[cloze[0].id] == {
        "exact_match": float(cloze[0].answer.isupper()),
        "exact_match_normalised": 1.0,
        "phrase_similarity": pytest.approx(1.0),
    }
    others = [found[one.id]["phrase_similarity"] for one in cloze[1:]]
    assert all(-3 <= value < 1 for value in others)
    mean = metrics(log, "cloze_scores")["phrase_similarity", "grouped_all"]
    assert mean == pytest.approx(sum(value["phrase_similarity"] for value in found.values()) / len(cloze))


def test_waiting_requests_are_asked_together(run, tmp_path):
    listener = Listener()
    log = run("climassay/mcq", listener, task_args={"file": str(write_sample(tmp_path))}, max_connections=6)
    assert sum(listener.groups) == 6
    assert len(listener.groups) < 6
    usage = log.stats.model_usage["climassay/local:any"]
    assert (usage.input_tokens, usage.output_tokens) == (60, 12)


def test_a_failed_request_is_an_error_not_an_answer(run, tmp_path):
    class Broken(Listener):
        def generate(self, requests, *, on_result=None):
            return [Completion.failed("The server is down.") for _ in requests]

    log = run("climassay/mcq", Broken(), task_args={"file": str(write_sample(tmp_path))})
    assert log.status == "error"
    assert "The server is down." in log.error.message


def test_a_chat_becomes_a_request():
    from inspect_ai.model import GenerateConfig

    from climassay.integrations.inspect.provider import to_generation_request
    from climassay.integrations.inspect.tasks import to_chat_messages

    turns = (Message("system", "Be brief."), Message("user", "Why?"))
    config = GenerateConfig(max_tokens=5, temperature=0.5, top_p=0.9, seed=3, stop_seqs=["."])
    request = to_generation_request(to_chat_messages([*turns, Message("assistant", "Because")]), config)
    assert request.messages == turns
    assert request.assistant_prefix == "Because"
    assert request.sampling == Sampling(5, 0.5, 0.9, 3, (".",))
    bare = to_generation_request(to_chat_messages(turns), GenerateConfig())
    assert bare.assistant_prefix == ""
    assert bare.sampling == Sampling(max_tokens=None)


def test_tools_and_tool_results_are_refused():
    from inspect_ai.model import ChatMessageTool, GenerateConfig

    from climassay.integrations.inspect.provider import to_generation_request

    with pytest.raises(InputError, match="tool"):
        to_generation_request([ChatMessageTool(content="42")], GenerateConfig())


def test_what_is_no_text_is_refused():
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageUser,
        ContentAudio,
        ContentImage,
        ContentReasoning,
        ContentText,
        GenerateConfig,
    )

    from climassay.integrations.inspect.provider import to_generation_request

    question = ContentText(text="What does the figure show?")
    for media in (ContentImage(image="figure.png"), ContentAudio(audio="talk.wav", format="wav")):
        with pytest.raises(InputError, match=media.type):
            to_generation_request([ChatMessageUser(content=[question, media])], GenerateConfig())
    thought = ChatMessageAssistant(content=[ContentReasoning(reasoning="Hm."), ContentText(text="Ice.")])
    request = to_generation_request([ChatMessageUser(content=[question]), thought], GenerateConfig())
    assert [message.content for message in request.messages] == [question.text]
    assert request.assistant_prefix == "Ice."


def test_an_unknown_argument_of_the_model_is_refused():
    from inspect_ai.model import get_model

    with pytest.raises(InputError, match="takes no argument flavour"):
        get_model("climassay/local:smollm2", memoize=False, flavour="sweet")


def test_the_hub_file_runs_with_inspect_alone(run, tmp_path, monkeypatch):
    """``inspect eval hf/...`` with the published folder in place of the hub."""
    import datasets

    folder = publish_benchmark(write_sample(tmp_path), tmp_path / "out", name="sample").folder
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda filename, **_: str(folder / filename))
    from inspect_ai.dataset import hf_dataset

    def local(path, revision, **options):
        return hf_dataset(path=str(folder), **options)

    monkeypatch.setattr("inspect_ai._eval.task.hf.hf_dataset", local)
    listener = Listener()
    log = run("hf/climassay/sample/mcq", listener)
    assert log.status == "success", log.error
    packaged = Listener()
    ours = run(f"{folder / 'inspect_tasks.py'}@mcq", packaged)
    assert sorted(map(str, listener.requests)) == sorted(map(str, packaged.requests))
    scores = metrics(log, "pattern")
    assert scores["pattern", "accuracy"] == metrics(ours, "answer_letter")["answer_letter", "all"]
    for kind in ("freeform", "cloze"):
        log = run(f"hf/climassay/sample/{kind}", Listener())
        assert log.status == "success", log.error
        assert all(math.isfinite(value) for value in metrics(log, "").values())
