"""What a recipe would take: requests, tokens and money, from the very prompts it would send."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.generation.dataset_store import DatasetStore
from climassay.generation.line_counts import LineCounts
from climassay.generation.line_parts import load_writer_model, open_desk
from climassay.generation.recipe import Recipe, Stream
from climassay.generation.writing import Assignment
from climassay.models.contract import Completion, CompletionCallback, GenerationRequest, Generator, token_count
from climassay.models.profiles import profile_of
from climassay.models.servers import Price, model_price
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
"""Of a written answer, as JSON."""
QUESTION_TOKENS = 150
"""Of a multiple-choice question with its options and instructions, beside its passages."""
VERIFYING_TOKENS = 550
"""Of a question with the instructions for verifying it, beside its passages."""
VERDICT_TOKENS = 120
"""Of the answer."""


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
    """What a recipe would still take, one entry a stream.

    Prompts are those that the recipe would send for its first passages, counted by the model's own tokenizer where it
    has one. What validators and maskers compute is not in it.

    Args:
        recipe: What is wanted.
        workspace: Where its collections are.
        prompts: Folder of the user's own prompts.

    Raises:
        InputError: A collection or a prompt does not exist.
        ModelError: The model cannot be loaded.
    """
    with Records(workspace.records_url) as records:
        counts = LineCounts()
        store = DatasetStore(records)
        if recipe.name in store:
            for placed in store.placed(recipe.name):
                counts.add(placed)
    with closing(load_writer_model(recipe.writer, workspace)) as model:
        listening = _Listening(model)
        desk = open_desk(recipe, workspace, listening, prompts=prompts)
        spec = recipe.writer
        price = model_price(spec.model, spec.price_in, spec.price_out, workspace.root)
        found = []
        for stream, wanted in recipe.wanted().items():
            listening.heard.clear()
            books = desk.sampler.books
            seeds = (
                [desk.sampler.passage(stream.name, books[n % len(books)], n) for n in range(SAMPLE)] if books else []
            )
            passages = desk.finder.find([seed for seed in seeds if seed is not None])
            desk.writer.write(
                [Assignment(str(n), stream.kind, stream.level, shown, n) for n, shown in enumerate(passages)]
            )
            prompt_tokens = [_tokens(model, request) for request in listening.heard]
            text_tokens = [token_count(model, "\n\n".join(one.text for one in shown)) for shown in passages]
            means = _mean(prompt_tokens), _mean(text_tokens)
            scored = profile_of(model, recipe.profile).scored
            found.append(_estimate(recipe, stream, wanted, counts, *means, price, scored))
        return found


def _estimate(
    recipe: Recipe,
    stream: Stream,
    wanted: int,
    counts: LineCounts,
    prompt: float,
    passages: float,
    price: Price | None,
    scored: bool,
) -> StreamEstimate:
    one = counts[stream]
    measured = one.asked >= MEASURED_FROM
    share = max(one.accepted, 0.5) / one.asked if measured else ASSUMED_YIELD
    drafts = round(max(0, wanted - one.accepted) / share)
    answer = ANSWER_TOKENS[stream.kind]
    requests, prompt_tokens, completion_tokens = 1.0, prompt, float(answer)
    if stream.level != "base":
        requests, prompt_tokens, completion_tokens = 2.0, 2 * prompt + answer, 2.0 * answer
    if recipe.screening.consistency == "writer" and not scored:
        requests += 1
        prompt_tokens += passages + VERIFYING_TOKENS
        completion_tokens += VERDICT_TOKENS
    elif TYPES[stream.kind].options and recipe.screening.consistency == "writer":
        orders = 1 if TYPES[stream.kind].fixed else recipe.screening.orders
        requests += orders
        prompt_tokens += orders * (passages + QUESTION_TOKENS)
        completion_tokens += orders
    tokens = round(drafts * prompt_tokens), round(drafts * completion_tokens)
    return StreamEstimate(
        stream=stream.name,
        wanted=wanted,
        accepted=one.accepted,
        share=share,
        measured=measured,
        drafts=drafts,
        requests=round(drafts * requests),
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
        cost=None if price is None else price.cost(*tokens),
    )


def estimate_table(estimates: Sequence[StreamEstimate]) -> Table:
    """The estimates and their sum."""
    rows = [
        (
            one.stream,
            str(one.wanted),
            str(one.accepted),
            f"{100 * one.share:.0f}%" + ("" if one.measured else " (assumed)"),
            *_cells(one.drafts, one.requests, one.prompt_tokens, one.completion_tokens, one.cost),
        )
        for one in estimates
    ]
    drafts, requests, prompt, answer = (sum(getattr(one, name) for one in estimates) for name in _SUMMED)
    costs = [one.cost for one in estimates if one.cost is not None]
    wanted, accepted = sum(one.wanted for one in estimates), sum(one.accepted for one in estimates)
    cost = sum(costs) if costs else None
    rows.append(("all", str(wanted), str(accepted), "", *_cells(drafts, requests, prompt, answer, cost)))
    return Table.of(
        "What it would take",
        ("stream", "wanted", "there", "yield", "drafts", "requests", "prompt tokens", "answer tokens", "US dollars"),
        rows,
        strong=(len(rows) - 1,),
        note=f"Prompt tokens are counted on {SAMPLE} prompts of each stream; answers are reckoned at "
        + ", ".join(f"{tokens} tokens ({kind})" for kind, tokens in ANSWER_TOKENS.items())
        + ". Validators and maskers are not in it.",
    )


_SUMMED = ("drafts", "requests", "prompt_tokens", "completion_tokens")


def _cells(drafts: int, requests: int, prompt: int, completion: int, cost: float | None) -> tuple[str, ...]:
    return (
        *(f"{number:,}" for number in (drafts, requests, prompt, completion)),
        "-" if cost is None else f"{cost:.2f}",
    )


def _tokens(model: Generator, request: GenerationRequest) -> int:
    return token_count(model, model.render(request.messages, request.assistant_prefix))


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0
