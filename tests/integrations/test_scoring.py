"""The same answer has the same scores here, in ``climassay evaluate`` and in lm-evaluation-harness."""

import random

import pytest

from climassay.evaluation import PromptContext, Setting, TaskPrompts, ask_mcq
from climassay.integrations.benchmark import ENTAILMENT_SCORES, SCORES, extract_answer, score_answer
from climassay.metrics import AnswerItem, Scorer, sentence_encoder
from climassay.models.local.model import LocalModel
from climassay.questions import Question
from published_sample import sample
from tiny_models import save_tiny


class SharedWords:
    """Says how many of the statement's words are in the premise, and nothing about statements in capitals."""

    name = "shared words"

    def score(self, pairs):
        return [None if statement.isupper() else self._share(premise, statement) for premise, statement in pairs]

    def _share(self, premise, statement):
        words = statement.lower().split()
        return sum(word in premise.lower() for word in words) / len(words)


@pytest.fixture
def judge(monkeypatch):
    judge = SharedWords()
    monkeypatch.setattr("climassay.integrations.benchmark._load_cached_entailment", lambda name: judge)
    return judge


def first(kind):
    return next(question for question in sample() if question.kind == kind)


ANSWERS = {
    "right": " {answer}",
    "and more": " {answer} The answer goes on.\n\nQuestion: what else?",
    "near": " {answer} (nearly)",
    "other": " Volcanoes did it.",
    "empty": " \n",
    "not judged": " ALL IN CAPITALS.",
}


@pytest.mark.parametrize("form", ANSWERS)
@pytest.mark.parametrize("kind", ["freeform", "cloze"])
def test_scores_are_those_of_an_experiment(kind, form, judge):
    question = first(kind)
    text = ANSWERS[form].format(answer=question.answer)
    scorer = Scorer(sentence_encoder(), "local:minilm", judge)
    taken = question.type.parse_answer(text)
    (expected,) = scorer.score(kind, [AnswerItem(question.question, question.answer, taken)])
    given = score_answer(question, text, entailment="shared words")
    assert given == pytest.approx(expected)
    assert extract_answer(question, text) == taken
    judged = kind == "freeform" and form != "not judged"
    assert set(given) == set(SCORES[kind]) | (set(ENTAILMENT_SCORES[kind]) if judged else set())


@pytest.mark.parametrize("kind", ["mcq", "freeform", "cloze"])
def test_reasoning_is_not_part_of_the_answer(kind):
    question = first(kind)
    answer = question.type.expected_answer(question)
    assert extract_answer(question, f"<think>\nIt may be (b), or rather (c).\n</think>\n\n{answer}") == answer


def test_without_a_judge_its_scores_are_left_out():
    question = first("freeform")
    assert set(score_answer(question, f" {question.answer}")) == set(SCORES["freeform"])
    assert set(ENTAILMENT_SCORES["freeform"]) == {"factual_accuracy", "supported"}


pytest.importorskip("lm_eval")

SAME = {"text-sum": "acc", "text": "acc_norm", "text-per-byte": "acc_bytes"}


def questions(count: int) -> list[Question]:
    chance = random.Random(3)

    def words(most: int) -> str:
        return "".join(chance.choices("abcdefgh \N{GREEK SMALL LETTER DELTA}", k=chance.randint(2, most))).strip() + "a"

    found = []
    for number in range(count):
        options = tuple(words(12) for _ in range(4))
        correct = chance.randrange(4)
        found.append(
            Question(
                id=f"q{number}",
                kind="mcq",
                question=words(30),
                answer=options[correct],
                options=options,
                correct=correct,
            )
        )
    return found


def test_the_harness_chooses_the_same_texts_on_the_same_prompts(tmp_path):
    from datasets import Dataset
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.evaluator import evaluate
    from lm_eval.models.huggingface import HFLM

    model = LocalModel(f"local:{save_tiny(tmp_path)}")
    asked, prompts = questions(40), TaskPrompts.load()
    setting = Setting("default", lambda those, _: [PromptContext() for _ in those])
    predictions = ask_mcq(asked, model, [setting], prompts, scorings=list(SAME))
    rows = []
    for question in asked:
        shown = prompts.mcq_text.render(question=question.question, options=[], passages=[], examples=[])
        text = model.render(shown.messages, shown.assistant_prefix)
        rows.append({"text": text, "choices": list(question.options), "gold": question.correct})
    task = ConfigurableTask(
        config={
            "task": "texts",
            "custom_dataset": lambda **_: {"test": Dataset.from_list(rows)},
            "test_split": "test",
            "output_type": "multiple_choice",
            "doc_to_text": "{{text}}",
            "doc_to_choice": "choices",
            "doc_to_target": "gold",
            "target_delimiter": " ",
            "metric_list": [{"metric": metric} for metric in SAME.values()],
        }
    )
    harness = HFLM(pretrained=model.network.model, tokenizer=model.prompts.tokenizer, batch_size=1, device="cpu")
    found = evaluate(harness, {"texts": task}, bootstrap_iters=0, log_samples=True)
    samples = sorted(found["samples"]["texts"], key=lambda sample: sample["doc_id"])
    assert [sample["doc"]["text"] for sample in samples] == [row["text"] for row in rows]
    for scoring, metric in SAME.items():
        ours = [one.correct for one in predictions if one.scoring == scoring]
        assert [bool(sample[metric]) for sample in samples] == ours
    assert len({tuple(sample[metric] for sample in samples) for metric in SAME.values()}) == len(SAME)
