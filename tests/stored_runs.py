"""Runs as commands leave them in the records, for tests of what is shown of them."""

from dataclasses import replace

from climassay.claim_identity import claim_id
from climassay.evaluation import Cell, CellRecord, Experiment, Outcome, Prediction
from climassay.evaluation.results import COMMANDS, choice_outcomes, save_experiment
from climassay.factcheck import as_data
from climassay.grounding.references import CheckedReference
from climassay.grounding.text_check import CheckedSentence
from climassay.metrics.long_answers import CriterionJudgement, LongAnswerAssessment
from climassay.models import Completion, GenerationRequest, Message, Usage
from climassay.questions import Criterion, Question
from climassay.records import RecordedModel
from experiments import LEVELS, experiment, question
from factcheck_transcripts import checked, full_transcript


class Costly:
    """Answers everything with ten and two tokens for a cent; what says ``broken`` fails, ``free`` has no price."""

    def __init__(self, name="openai:costly"):
        self.name, self.fingerprint = name, name.ljust(64, "0")

    def render(self, messages, assistant_prefix=""):
        return messages[-1].content + assistant_prefix

    def generate(self, requests, *, on_result=None):
        for index, request in enumerate(requests):
            text = request.messages[-1].content
            if "broken" in text:
                on_result(index, Completion.failed("No luck.", Usage(requests=3)))
            else:
                on_result(index, Completion("a) this one", "stop", Usage(10, 2, 1, None if "free" in text else 0.01)))

    def option_logprobs(self, requests, *, on_result=None):
        raise NotImplementedError

    def close(self):
        """Nothing to give back."""


def ask(records, run, *texts, model=None):
    requests = [GenerationRequest((Message("user", text),)) for text in texts]
    RecordedModel(model or Costly(), records, run).generate(requests)


def store_experiment(records, given=None, *, name="test", asked=()):
    """A run of ``climassay evaluate run``."""
    config = {"name": name, "models": [{"name": "local:small"}], "prompts": {"mcq": "a" * 64}, "seed": 7}
    with records.run("evaluate run", config, {"plan": 7}) as run:
        if asked:
            ask(records, run, *asked)
        save_experiment(run, replace(given or experiment(), run=run.id, name=name))
    return run.id


def store_mcq(records, right=(0, 1, 2, 3), *, model="local:small", questions=12):
    """A run of ``climassay evaluate mcq`` in which the questions of these numbers were answered rightly."""
    asked = [question("mcq", number, LEVELS[number % 3]) for number in range(questions)]
    predictions = [
        Prediction(
            question=one.id,
            level=one.level,
            setting="default",
            scoring="letter",
            permutation=0,
            order=(0, 1, 2, 3),
            chosen=one.correct if number in right else (one.correct + 1) % 4,
            position=one.correct if number in right else (one.correct + 1) % 4,
            correct=number in right,
            correct_position=one.correct,
            text="A",
        )
        for number, one in enumerate(asked)
    ]
    cell = Cell("primer", model, "default", "mcq", "letter")
    record = CellRecord(cell, model, "f" * 64, {"name": "default"}, "mcq", "a" * 64, questions, 0)
    answers = tuple(choice_outcomes(cell, asked, predictions))
    with records.run("evaluate mcq", {"name": "primer", "model": model}, {"orders": 0}) as run:
        done = Experiment(run.id, "primer", {}, (record,), answers, {"primer": tuple(asked)})
        save_experiment(run, replace(done, predictions={cell: tuple(predictions)}))
    return run.id


def store_factchecks(records, *, published=True):
    """A run of ``climassay factcheck run``: five claims, the first two with a verdict other than the published one."""
    done = [
        full_transcript(),
        checked("It cools.", ({"IPCC": "correct"}, "correct")),
        checked("It warms.", ({"IPCC": "correct"}, "correct")),
        checked("Ice melts.", ({"IPCC": "correct"}, "correct")),
        checked("Unknown <script>alert(1)</script> thing.", ({"IPCC": "not enough information"},
                "not enough information")),
    ]  # fmt: skip
    truths = {done[0].claim.text: "correct", "It cools.": "incorrect", "It warms.": "correct", "Ice melts.": "correct"}
    config = {"scale": "climate-feedback", "file": "claims.csv", "prompts": {"verdict": "b" * 64}}
    with records.run("factcheck run", config, {"sampling": 0}) as run:
        run.save_results("transcript", [as_data(one) for one in done])
        if published:
            run.save_results("published", [{"claim": claim_id(key), "verdict": label} for key, label in truths.items()])
    return run.id


def store_long_answer(records, *ratings) -> str:
    """A run with a long answer: its rubric, a judgement, ratings, and a point whose reference was made up."""
    cell = Cell("b", "small", "default", "longform")
    rubric = (Criterion("Says <b>why</b>", 2, "should", "p. 3"),)
    asked = Question("q", "longform", "Why?", "", audience="a pupil", rubric=rubric)
    judged = CriterionJudgement("contradicted", "It says otherwise.", "CO2 cools")
    reference = CheckedReference("[1]", "number", "invented", "There is no such passage.")
    point = CheckedSentence("CO2 cools.", 0, "contradicted", "The book says that it warms.", references=(reference,))
    assessment = LongAnswerAssessment((judged,), ratings)
    scores = {"rubric_score": 0.0, "rubric_uncontradicted": 0.0}
    answer = Outcome(cell, "q", None, "CO2 cools.", scores, assessment=assessment, points=(point,))
    record = CellRecord(cell, "local:small", "", {}, "longform", "", 1, 0)
    with records.run(COMMANDS[0], {}) as run:
        save_experiment(run, Experiment(run.id, "n", {}, (record,), (answer,), {"b": (asked,)}))
    return run.id
