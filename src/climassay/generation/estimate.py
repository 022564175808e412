"""What a recipe would take: requests, tokens and money, from the very prompts it would send."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.generation.build_pipeline import open_writer
from climassay.generation.dataset_store import DatasetStore
from climassay.generation.pipeline import PipelineCounts
from climassay.generation.recipe import Recipe
from climassay.generation.writing import Assignment
from climassay.models.contract import Completion, CompletionCallback, GenerationRequest, Generator, token_count
from climassay.models.profiles import profile_of
from climassay.models.registry import load_as_set
from climassay.models.servers import model_price
from climassay.questions import KINDS, TYPES, Kind
from climassay.records import Records
from climassay.reporting import Table
from climassay.workspace import Workspace

SAMPLE = 6
"""Prompts of a stream whose tokens are counted."""
ASSUMED_YIELD = 0.5
"""Accepted share of drafts where nothing was measured; the paper's was about 0.6 for multiple choice."""
MEASURED_FROM = 20
"""Drafts of a stream from which its own yield is used."""
ANSWER_TOKENS: dict[Kind, int] = dict.fromkeys(KINDS, 90) | {"mcq": 130, "cloze": 50}
"""Tokens of a written answer, as JSON."""
QUESTION_TOKENS = 150
"""Tokens of a multiple-choice question with its options and instructions, beside its passages."""
VERIFYING_TOKENS = 550
"""Tokens of a question with the instructions for verifying it, beside its passages."""
VERDICT_TOKENS = 120
"""Tokens of the verdict."""


@dataclass(frozen=True, slots=True)
class StreamEstimate:
    """What the questions still wanted of one kind and level would take."""

    stream: str
    wanted: int
    accepted: int
    """There already."""
    share: float
    """Yield that is reckoned with."""
    measured: bool
    """Whether the yield was measured on this dataset."""
    drafts: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """US dollars; None where no price is known."""


class _Listening:
    """A model that notes what it is asked and answers nothing; for all else it is the model itself."""

    def __init__(self, model: Generator) -> None:
        self._model = model
        self.heard: list[GenerationRequest] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Note the requests."""
        self.heard += requests
        answers = [Completion.failed("Only listening.") for _ in requests]
        for index, answer in enumerate(answers):
            if on_result is not None:
                on_result(index, answer)
        return answers


def estimate_run(recipe: Recipe, workspace: Workspace, *, prompts: Path | None = None) -> list[StreamEstimate]:
    """What a recipe would still take, one entry per stream.

    Prompts are those that the recipe would send for its first passages, counted by the model's own tokenizer where it
    has one. What validators and maskers compute is not in it.

    Raises:
        InputError: A collection or a prompt does not exist.
        ModelError: The model cannot be loaded.
    """
    with Records(workspace.records_url) as records:
        counts = PipelineCounts()
        store = DatasetStore(records)
        if recipe.name in store:
            for placed in store.placed(recipe.name):
                counts.add(placed)
    with closing(load_as_set(recipe.writer.model, recipe.writer, workspace.root)) as model:
        listening = _Listening(model)
        setup = open_writer(recipe, workspace, listening, prompts=prompts)
        spec, books = recipe.writer, setup.sampler.books
        price = model_price(spec.model, spec.price_in, spec.price_out, workspace.root)
        scored = profile_of(model, recipe.profile).scored
        found = []
        for stream, wanted in recipe.wanted().items():
            listening.heard.clear()
            numbers = range(SAMPLE if books else 0)
            seeds = [setup.sampler.passage(stream.name, books[number % len(books)], number) for number in numbers]
            passages = setup.finder.find([seed for seed in seeds if seed is not None])
            setup.writer.write(
                [Assignment(str(n), stream.kind, stream.level, shown, n) for n, shown in enumerate(passages)]
            )
            asked = [model.render(one.messages, one.assistant_prefix) for one in listening.heard]
            texts = ["\n\n".join(one.text for one in shown) for shown in passages]
            prompt, text = (
                sum(token_count(model, one) for one in own) / len(own) if own else 0.0 for own in (asked, texts)
            )
            one, answer = counts[stream], ANSWER_TOKENS[stream.kind]
            measured = one.asked >= MEASURED_FROM
            share = max(one.accepted, 0.5) / one.asked if measured else ASSUMED_YIELD
            drafts = round(max(0, wanted - one.accepted) / share)
            requests, prompt_tokens, completion_tokens = 1.0, prompt, float(answer)
            if stream.level != "base":
                requests, prompt_tokens, completion_tokens = 2.0, 2 * prompt + answer, 2.0 * answer
            if recipe.screening.consistency == "writer" and not scored:
                requests += 1
                prompt_tokens += text + VERIFYING_TOKENS
                completion_tokens += VERDICT_TOKENS
            elif TYPES[stream.kind].options and recipe.screening.consistency == "writer":
                orders = 1 if TYPES[stream.kind].fixed else recipe.screening.orders
                requests += orders
                prompt_tokens += orders * (text + QUESTION_TOKENS)
                completion_tokens += orders
            tokens = round(drafts * prompt_tokens), round(drafts * completion_tokens)
            cost = None if price is None else price.cost(*tokens)
            found.append(
                StreamEstimate(
                    stream.name, wanted, one.accepted, share, measured, drafts, round(drafts * requests), *tokens, cost
                )
            )
        return found


def estimate_table(estimates: Sequence[StreamEstimate]) -> Table:
    """The estimates and their sum."""

    def row(name: str, share: str, those: Sequence[StreamEstimate]) -> tuple[str, ...]:
        wanted, accepted = sum(one.wanted for one in those), sum(one.accepted for one in those)
        names = ("drafts", "requests", "prompt_tokens", "completion_tokens")
        numbers = (sum(getattr(one, name) for one in those) for name in names)
        costs = [one.cost for one in those if one.cost is not None]
        cost = f"{sum(costs):.2f}" if costs else "-"
        return (name, str(wanted), str(accepted), share, *(f"{number:,}" for number in numbers), cost)

    kinds = dict.fromkeys(one.stream.partition("/")[0] for one in estimates)
    rows = [
        row(one.stream, f"{100 * one.share:.0f}%" + ("" if one.measured else " (assumed)"), [one]) for one in estimates
    ]
    return Table.of(
        "What it would take",
        ("stream", "wanted", "there", "yield", "drafts", "requests", "prompt tokens", "answer tokens", "US dollars"),
        [*rows, row("all", "", estimates)],
        strong=(len(rows),),
        note=f"Prompt tokens are counted on {SAMPLE} prompts of each stream; answers are reckoned at "
        + ", ".join(f"{ANSWER_TOKENS[kind]} tokens ({kind})" for kind in kinds)
        + ". Validators and maskers are not in it.",
    )
