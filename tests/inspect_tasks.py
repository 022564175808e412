"""Tasks of Inspect: choices, words looked for, several scorers, a model's grade, a figure that is no mean."""

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import (
    SampleScore,
    Score,
    accuracy,
    choice,
    includes,
    match,
    mean,
    metric,
    model_graded_qa,
    scorer,
    stderr,
)
from inspect_ai.solver import generate, multiple_choice, use_tools
from inspect_ai.tool import tool

TOPICS = ("adaptation", "mitigation", "impacts")
SHORT = GenerateConfig(max_tokens=6)


def _samples(count=9):
    return [
        Sample(
            id=f"text-{number}",
            input=f"Text number {number} is about which topic?",
            choices=list(TOPICS),
            target="ABC"[number % 3] if number else "A",
        )
        for number in range(count)
    ]


@task
def choices():
    return Task(dataset=_samples(), solver=multiple_choice(), scorer=choice(), config=SHORT)


@task
def failing():
    """Choices, one of which the tests' server fails to answer."""
    samples = _samples()
    samples[3].input += " [[400 refused]]"
    return Task(dataset=samples, solver=multiple_choice(), scorer=choice(), config=SHORT)


@task
def words(shown: int = 9):
    """A label that is to be written, looked for in two ways."""
    samples = [
        Sample(id=number, input=one.input, target=TOPICS[number % 3]) for number, one in enumerate(_samples(shown))
    ]
    return Task(dataset=samples, solver=generate(), scorer=[match(location="any"), includes()], config=SHORT)


@metric
def share_of_long():
    """Share of the longest text in all texts: no mean over samples."""

    def figure(scores: list[SampleScore]) -> float:
        lengths = [len(one.score.answer or "") + 1 for one in scores]
        return max(lengths) / sum(lengths)

    return figure


@scorer(metrics=[{"length": [mean(), stderr()], "vowels": [mean()]}, share_of_long()])
def marks():
    async def score(state, target):
        text = state.output.completion
        return Score(value={"length": len(text), "vowels": sum(map(text.count, "aeiou"))}, answer=text)

    return score


@task
def several_values():
    samples = [Sample(id=number, input=one.input, target="none") for number, one in enumerate(_samples(5))]
    return Task(dataset=samples, solver=generate(), scorer=marks(), config=SHORT)


@task
def graded():
    samples = [Sample(id=number, input=one.input, target=TOPICS[number % 3]) for number, one in enumerate(_samples(4))]
    return Task(dataset=samples, solver=generate(), scorer=model_graded_qa(), config=SHORT)


@task
def repeated():
    """Asked three times, at a temperature."""
    samples = [Sample(id=number, input=one.input, target="a") for number, one in enumerate(_samples(6))]
    epochs = Epochs(3, ["mean", "at_least_2"])
    config = GenerateConfig(max_tokens=6, temperature=1.0)
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes(), epochs=epochs, config=config)


@task
def with_tools():
    @tool
    def thermometer():
        async def execute():
            """Read the temperature."""
            return "15"

        return execute

    return Task(dataset=_samples(2), solver=[use_tools(thermometer()), generate()], scorer=includes())


@scorer(metrics=[accuracy()])
def broken():
    async def score(state, target):
        if "number 1" in state.input_text:
            raise ValueError("This cannot be scored.")
        return Score(value="C")

    return score


@task
def breaking():
    return Task(dataset=_samples(4), solver=generate(), scorer=broken(), config=SHORT)
