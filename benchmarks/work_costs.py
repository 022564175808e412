"""What a large piece of work costs: tokens, hours of processors, money. A model of cost, with every assumption stated.

Throughputs are assumptions about the machines somebody has; counts are what the code does: the requests of a question,
the comparisons of a sort. ``docs/scale.md`` shows the table of :func:`cost_table`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Machine:
    """What a worker does in an hour, and what the hour costs."""

    name: str
    prompt_tokens: float
    """Read in a second."""
    completion_tokens: float
    """Written in a second, all requests that are under way together."""
    passages: float
    """Embedded in a second."""
    dollars: float
    """An hour."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """All that the table rests on. Change one and the table changes."""

    accelerator: Machine = field(
        default_factory=lambda: Machine("GPU of the 80 GB class, model of 8 billion weights", 12_000, 2_500, 2_000, 2.5)
    )
    """Writes and weighs; figures of the order that vLLM reaches, to be replaced by measured ones."""
    processor: Machine = field(default_factory=lambda: Machine("CPU core, bundled models", 300, 48, 35, 0.04))
    """Embeds, with the bundled encoder; near what docs/performance.md and docs/scale.md measure."""
    question_prompt: int = 900
    """Tokens of a prompt with three passages."""
    question_completion: int = 60
    passage_tokens: int = 400
    """Of a passage of 2000 characters."""
    passage_bytes: int = 2_000 + 4 * 384 + 400
    """Text, vector of the bundled encoder, places and words of the index."""
    comparison_tokens: int = 500
    """Prompt of one comparison, after what the pair shares with others was computed once."""
    comparisons_a_level: float = 1.0
    """Comparisons an item and level of a merge sort: n log2 n in all, at most."""
    orders: int = 2
    """A pair is asked in both orders."""
    labelled: int = 300
    """Items with experts' labels that a probe is trained on: all their pairs are harvested."""
    storage_dollars: float = 0.023
    """A gigabyte and month of object storage."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one piece of work takes."""

    work: str
    requests: int
    """Put to a model; for embedding, passages."""
    prompt_tokens: int
    completion_tokens: int
    hours: float
    """Of one worker; divide by the number of workers for the time it takes."""
    machine: str
    dollars: float

    def days(self, workers: int) -> float:
        """Days that so many workers take, where nothing bends."""
        return self.hours / workers / 24


def question_cost(questions: int, given: Assumptions) -> Cost:
    """Answering questions with retrieval, one setting, one answer each."""
    prompt, completion = questions * given.question_prompt, questions * given.question_completion
    return _model_cost("questions answered from passages", questions, prompt, completion, given.accelerator)


def embedding_cost(passages: int, given: Assumptions) -> Cost:
    """Embedding passages into a collection."""
    hours = passages / given.processor.passages / 3600
    tokens = passages * given.passage_tokens
    return Cost(
        "passages embedded", passages, tokens, 0, hours, given.processor.name, round(hours * given.processor.dollars, 2)
    )


def comparisons(items: int, given: Assumptions) -> int:
    """Pairs that a merge sort compares: n log2 n at most, times what a comparison is asked again."""
    return math.ceil(given.comparisons_a_level * items * math.log2(items)) if items > 1 else 0


def ranking_cost(items: int, given: Assumptions) -> Cost:
    """Ordering items by comparisons of pairs, each in both orders."""
    asked = comparisons(items, given) * given.orders
    return _model_cost("comparisons of a ranking", asked, asked * given.comparison_tokens, 0, given.accelerator)


def training_cost(given: Assumptions) -> Cost:
    """Harvesting what a probe is trained on: all pairs of the labelled items, in both orders."""
    asked = given.labelled * (given.labelled - 1) // 2 * given.orders
    return _model_cost("pairs harvested for a probe", asked, asked * given.comparison_tokens, 0, given.accelerator)


def stored_gigabytes(passages: int, given: Assumptions) -> float:
    """Size of a collection."""
    return passages * given.passage_bytes / 1e9


def large_work(given: Assumptions | None = None) -> tuple[Cost, ...]:
    """The three large pieces of work of docs/scale.md, and the training of the probe that ranks."""
    known = given or Assumptions()
    return (
        question_cost(1_000_000, known),
        embedding_cost(100_000_000, known),
        ranking_cost(100_000, known),
        training_cost(known),
    )


def cost_table(costs: Sequence[Cost], workers: Sequence[int] = (1, 16, 128)) -> list[str]:
    """The costs as lines of a Markdown table, with the days that some numbers of workers take."""
    days = " | ".join(f"days, {count} worker{'' if count == 1 else 's'}" for count in workers)
    lines = [
        f"| work | requests | prompt tokens | completion tokens | worker hours | US dollars | {days} |",
        "|---|" + "---:|" * (5 + len(workers)),
    ]
    for cost in costs:
        taken = " | ".join(_figures(cost.days(count)) for count in workers)
        lines.append(
            f"| {cost.work} ({cost.machine}) | {_thousands(cost.requests)} | {_thousands(cost.prompt_tokens)} | "
            f"{_thousands(cost.completion_tokens)} | {_figures(cost.hours)} | {_figures(cost.dollars)} | {taken} |"
        )
    return lines


def _model_cost(work: str, requests: int, prompt: int, completion: int, machine: Machine) -> Cost:
    hours = (prompt / machine.prompt_tokens + completion / machine.completion_tokens) / 3600
    return Cost(work, requests, prompt, completion, hours, machine.name, round(hours * machine.dollars, 2))


def _thousands(count: int) -> str:
    for size, name in ((10**9, " bn"), (10**6, " m")):
        if count >= size:
            return f"{count / size:.3g}{name}"
    return f"{count:,}"


def _figures(value: float) -> str:
    """Two significant figures, without an exponent."""
    if value >= 100:
        return f"{round(value, 1 - int(math.log10(value))):,.0f}"
    return f"{value:.2g}"


if __name__ == "__main__":
    print("\n".join(cost_table(large_work(Assumptions()))))
