"""The published YAML files, loaded and evaluated by lm-evaluation-harness itself."""

import pytest

from climassay.integrations import publish_benchmark
from published_sample import write_sample

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
