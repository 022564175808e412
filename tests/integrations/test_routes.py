"""One prompt, one letter, one likelihood: on our own route, in Inspect, and in lm-evaluation-harness."""

import pytest

from climassay.evaluation import PromptContext, Setting, TaskPrompts, ask_mcq
from climassay.evaluation.tasks import ask_written
from climassay.generation.publishing import to_json_lines
from climassay.integrations import publish_benchmark
from climassay.models.bundled import bundled_path
from climassay.primer import gold_questions
from climassay.questions import question_row
from published_sample import Listener, sample, write_sample
from tiny_models import smollm2

pytestmark = pytest.mark.model

pytest.importorskip("inspect_ai")
pytest.importorskip("lm_eval")

KINDS = ("mcq", "freeform", "cloze")
COMPUTED = slice(0, None, 2)
"""Of the multiple-choice questions those that the bundled model really answers on every route: one a level."""
DEFAULT = Setting("default", lambda questions, _: [PromptContext() for _ in questions])


def of_kind(kind):
    return [question for question in sample() if question.kind == kind]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The sample, published for both frameworks."""
    place = tmp_path_factory.mktemp("routes")
    return publish_benchmark(write_sample(place), place / "published", name="sample").folder


@pytest.fixture(scope="module")
def harness_model():
    """The harness's own model class on the bundled weights."""
    import torch
    from lm_eval.models.huggingface import HFLM

    torch.set_num_threads(1)
    return HFLM(pretrained=str(bundled_path("smollm2")), dtype="float32", batch_size=1, device="cpu")


@pytest.fixture
def harness(folder, tmp_path, monkeypatch):
    """The published tasks by name, as the harness loads them."""
    import datasets
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    manager = TaskManager(include_path=str(folder / "lm_eval"), include_defaults=False)
    return manager.load("sample")["tasks"]


def harness_requests(tasks, form, model):
    """Requests of all levels of a form, by question id, in the harness's order."""
    requests = {}
    for name, task in tasks.items():
        if not name.startswith(f"sample_{form}_") or ("letter" in name) != ("letter" in form):
            continue
        task.build_all_requests(
            limit=None,
            apply_chat_template=True,
            chat_template=model.apply_chat_template,
            tokenizer_name=model.tokenizer_name,
        )
        for instance in task.instances:
            requests.setdefault(instance.doc["id"], []).append(instance)
    return requests


def run_inspect(task, model, monkeypatch, tmp_path, **options):
    """The log of an Inspect run with one of our models behind the provider."""
    import inspect_ai

    monkeypatch.setattr("climassay.integrations.inspect.provider.load_model", lambda *_, **__: model)
    from inspect_ai.model import get_model

    provider = get_model("climassay/local:smollm2", memoize=False)
    (log,) = inspect_ai.eval(task, model=provider, display="none", log_dir=str(tmp_path / "logs"), **options)
    assert log.status == "success", log.error
    return log


def asked_by_us(kind):
    """Rendered prompt and token limit of every question on our own route."""
    listener = Listener()
    if kind == "mcq":
        ask_mcq(of_kind(kind), listener, [DEFAULT], TaskPrompts.load(), scorings=("letter",))
    else:
        ask_written(of_kind(kind), listener, DEFAULT, TaskPrompts.load())
    ids = [question.id for question in of_kind(kind)]
    return dict(zip(ids, map(as_received, listener.requests), strict=True))


def as_received(request):
    return smollm2().render(request.messages, request.assistant_prefix), request.sampling.max_tokens


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_are_the_same_on_all_routes(kind, folder, harness, harness_model, monkeypatch, tmp_path):
    ours = asked_by_us(kind)
    assert len(ours) == len(of_kind(kind))
    assert all(prompt.startswith("<|im_start|>system\nYou are an expert") for prompt, _ in ours.values())
    begun = TaskPrompts.load().render(of_kind(kind)[0]).assistant_prefix
    assert begun
    assert all(prompt.endswith(f"<|im_start|>assistant\n{begun}") for prompt, _ in ours.values())

    task = f"{folder / 'inspect_tasks.py'}@{kind}"
    listener = Listener()
    run_inspect(task, listener, monkeypatch, tmp_path, score=False)
    assert sorted(map(as_received, listener.requests)) == sorted(ours.values())

    requests = harness_requests(harness, "mcq_letter" if kind == "mcq" else kind, harness_model)
    assert {one: (given[0].args[0], given[0].args[1]["max_gen_toks"]) for one, given in requests.items()} == ours
    for prompt, _ in ours.values():
        tokens, _mask = harness_model.tok_batch_encode([prompt], left_truncate_len=harness_model.max_length)
        assert tokens[0].tolist() == smollm2().prompts.encode(prompt)


def test_likelihoods_are_asked_after_the_same_prompts(harness, harness_model):
    ours = asked_by_us("mcq")
    requests = harness_requests(harness, "mcq", harness_model)
    assert set(requests) == set(ours)
    for one, instances in requests.items():
        assert {instance.args[0] for instance in instances} == {ours[one][0]}
        assert [instance.args[1] for instance in instances] == [" a", " b", " c", " d"]


def test_packaged_tasks_ask_the_same_as_the_published_ones(monkeypatch, tmp_path):
    from climassay.integrations.inspect.tasks import mcq

    file = write_sample(tmp_path)
    listener = Listener()
    run_inspect(mcq(file=str(file)), listener, monkeypatch, tmp_path)
    assert sorted(map(as_received, listener.requests)) == sorted(asked_by_us("mcq").values())


def test_generated_letters_score_the_same_on_all_routes(folder, harness, harness_model, monkeypatch, tmp_path):
    predictions = ask_mcq(of_kind("mcq")[COMPUTED], smollm2(), [DEFAULT], TaskPrompts.load(), scorings=("letter",))
    ours = {one.question: (one.text, one.correct) for one in predictions}
    assert len({text for text, _ in ours.values()}) == len(ours) == 3
    assert {right for _, right in ours.values()} == {True, False}

    log = run_inspect(f"{folder / 'inspect_tasks.py'}@mcq", smollm2(), monkeypatch, tmp_path, sample_id=list(ours))
    inspected = {one.id: (one.output.completion, one.scores["answer_letter"].value == "C") for one in log.samples}
    assert inspected == ours

    requests = harness_requests(harness, "mcq_letter", harness_model)
    asked = [requests[one][0] for one in ours]
    texts = harness_model.generate_until(asked, disable_tqdm=True)
    task = harness["sample_mcq_letter_base"]
    scored = {
        instance.doc["id"]: (text, bool(task.process_results(instance.doc, [text])["accuracy"]))
        for instance, text in zip(asked, texts, strict=True)
    }
    assert scored == ours


def test_likelihood_scores_are_the_same_as_in_the_harness(harness, harness_model):
    predictions = ask_mcq(of_kind("mcq")[COMPUTED], smollm2(), [DEFAULT], TaskPrompts.load())
    requests = harness_requests(harness, "mcq", harness_model)
    asked = [instance for one in predictions for instance in requests[one.question]]
    answers = iter(harness_model.loglikelihood(asked, disable_tqdm=True))
    for ours in predictions:
        theirs = [next(answers) for _ in ours.logprobs]
        assert [logprob for logprob, _ in theirs] == pytest.approx(ours.logprobs, abs=1e-3)
        assert max(range(len(theirs)), key=lambda place: theirs[place][0]) == ours.position
        doc = requests[ours.question][0].doc
        assert harness["sample_mcq_base"].process_results(doc, theirs) == {"acc": float(ours.correct)}


def test_worked_examples_are_the_same_on_all_routes(tmp_path, monkeypatch, harness_model):
    from climassay.evaluation import SourceLoaders, make_setting, open_pool, parse_spec

    pool = tmp_path / "pool.jsonl"
    outside = [question for question in gold_questions().of_kind("mcq") if question not in sample()]
    pool.write_text(to_json_lines(map(question_row, outside)), encoding="utf-8")
    few = make_setting(
        parse_spec(f"few-shot:{pool}", examples=2, seed=3), SourceLoaders(open_retriever=None, open_pool=open_pool)
    )
    listener = Listener()
    ask_mcq(of_kind("mcq"), listener, [few], TaskPrompts.load(), scorings=("letter",))
    ours = sorted(map(as_received, listener.requests))
    assert all(prompt.count("\nQuestion:") == 3 for prompt, _ in ours)

    file = write_sample(tmp_path)
    published = publish_benchmark(
        file, tmp_path / "published", name="sample", kinds=("mcq",), examples=2, pool=str(pool), seed=3
    )
    listener = Listener()
    run_inspect(f"{published.folder / 'inspect_tasks.py'}@mcq", listener, monkeypatch, tmp_path)
    assert sorted(map(as_received, listener.requests)) == ours

    import datasets
    from lm_eval.tasks import TaskManager

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    manager = TaskManager(include_path=str(published.folder / "lm_eval"), include_defaults=False)
    requests = harness_requests(manager.load("sample")["tasks"], "mcq_letter", harness_model)
    assert sorted((given[0].args[0], 8) for given in requests.values()) == ours
