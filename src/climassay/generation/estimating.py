"""Estimates of the drafts, requests, tokens and cost that a recipe still needs."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.generation.dataset_store import DatasetStore
from climassay.generation.opening import WriterSetup, open_writer
from climassay.generation.pipeline import PipelineCounts
from climassay.generation.recipe import Recipe, Stream
from climassay.generation.writing import Assignment
from climassay.models.contract import Completion, CompletionCallback, GenerationRequest, Generator, token_count
from climassay.models.provider import is_served, load_model, model_price
from climassay.questions import TYPES
from climassay.records import Records
from climassay.reporting import Table
from climassay.workspace import Workspace

N_SAMPLED_PROMPTS = 6
"""Number of prompts per kind and level whose tokens are counted."""
ASSUMED_YIELD = 0.5
"""Assumed proportion of accepted drafts until it can be measured; in ClimaQA about 0.6 for multiple choice."""
MIN_DRAFTS_FOR_YIELD = 20
"""Minimum number of drafts of a kind and level for its measured yield to replace :data:`ASSUMED_YIELD`."""
VERIFYING_TOKENS = 550
"""Assumed number of tokens in a prompt for verifying a question, without the passages."""
VERDICT_TOKENS = 120
"""Assumed number of tokens in the verdict of a verification."""


@dataclass(frozen=True, slots=True)
class StreamEstimate:
    """Estimate for the remaining questions of one kind and level."""

    stream: str
    requested: int
    accepted: int
    """Number of questions that the dataset has already accepted."""
    share: float
    """Assumed yield: the proportion of drafts that are accepted."""
    measured: bool
    """Whether the proportion of accepted drafts was measured on this dataset rather than assumed."""
    drafts: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """Cost in US dollars; None if no price is known."""


class _RequestCollector:
    """Wrapper of a model that records generation requests instead of answering them."""

    def __init__(self, model: Generator) -> None:
        self._model = model
        self.requests: list[GenerationRequest] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Record the requests and return a failed completion for each."""
        self.requests += requests
        answers = [Completion.failed("The request was only collected.") for _ in requests]
        for index, answer in enumerate(answers):
            if on_result is not None:
                on_result(index, answer)
        return answers


def estimate_run(recipe: Recipe, workspace: Workspace, *, prompts: Path | None = None) -> list[StreamEstimate]:
    """Estimate the drafts, requests, tokens and cost that each kind and level of a recipe still needs.

    Prompts are rendered for a few passages and counted by the model's own tokenizer if there is one. Validators and
    maskers are not included.

    Raises:
        InputError: A collection or a prompt does not exist.
        ModelError: The model cannot be loaded.
    """
    with Records(workspace.records_url) as records:
        counts = PipelineCounts()
        store = DatasetStore(records)
        if recipe.name in store:
            for stored_draft in store.stored_drafts(recipe.name):
                counts.add(stored_draft)
    with closing(load_model(recipe.writer.model, recipe.writer.options(), folder=workspace.root)) as model:
        collector = _RequestCollector(model)
        setup = open_writer(recipe, workspace, collector, prompts=prompts)
        spec = recipe.writer
        price = model_price(spec.model, spec, workspace.root)
        results = []
        for stream, n_requested in recipe.requested().items():
            mean_prompt_tokens, mean_context_tokens = _mean_tokens(stream, setup, collector, model)
            n_requests, prompt_tokens, completion_tokens = _tokens_per_draft(
                recipe, stream, mean_prompt_tokens, mean_context_tokens
            )
            stream_counts = counts[stream]
            is_measured = stream_counts.drafts >= MIN_DRAFTS_FOR_YIELD
            expected_yield = max(stream_counts.accepted, 0.5) / stream_counts.drafts if is_measured else ASSUMED_YIELD
            n_drafts = round(max(0, n_requested - stream_counts.accepted) / expected_yield)
            tokens = round(n_drafts * prompt_tokens), round(n_drafts * completion_tokens)
            results.append(
                StreamEstimate(
                    stream.name,
                    n_requested,
                    stream_counts.accepted,
                    expected_yield,
                    is_measured,
                    n_drafts,
                    round(n_drafts * n_requests),
                    *tokens,
                    price.cost(*tokens) if price is not None else None if is_served(spec.model) else 0.0,
                )
            )
        return results


def _mean_tokens(
    stream: Stream, setup: WriterSetup, collector: _RequestCollector, model: Generator
) -> tuple[float, float]:
    """Return the mean token counts of prompts and of their passages for the first prompts of a kind and level."""
    books = setup.sampler.books
    seeds = [
        setup.sampler.passage(stream.name, books[passage_index % len(books)], passage_index)
        for passage_index in range(N_SAMPLED_PROMPTS if books else 0)
    ]
    contexts = setup.finder.find([seed for seed in seeds if seed is not None])
    collector.requests.clear()
    setup.writer.write(
        [
            Assignment(str(passage_index), stream.kind, stream.level, passages, passage_index)
            for passage_index, passages in enumerate(contexts)
        ]
    )
    prompts = [model.render(request.messages, request.assistant_prefix) for request in collector.requests]
    texts = ["\n\n".join(passage.text for passage in passages) for passages in contexts]
    mean_prompt_tokens, mean_context_tokens = (
        sum(token_count(model, text) for text in group) / len(group) if group else 0.0 for group in (prompts, texts)
    )
    return mean_prompt_tokens, mean_context_tokens


def _tokens_per_draft(
    recipe: Recipe, stream: Stream, mean_prompt_tokens: float, mean_context_tokens: float
) -> tuple[float, float, float]:
    """Return the expected numbers of requests, prompt tokens and completion tokens per draft.

    They include the requests to evolve the draft and to verify it.
    """
    draft_tokens = TYPES[stream.kind].draft_tokens
    n_requests, prompt_tokens, completion_tokens = 1.0, mean_prompt_tokens, float(draft_tokens)
    if stream.level != "base":
        n_requests, prompt_tokens, completion_tokens = 2.0, 2 * mean_prompt_tokens + draft_tokens, 2.0 * draft_tokens
    if recipe.screening.consistency == "writer":
        n_requests += 1
        prompt_tokens += mean_context_tokens + VERIFYING_TOKENS
        completion_tokens += VERDICT_TOKENS
    return n_requests, prompt_tokens, completion_tokens


def estimate_table(estimates: Sequence[StreamEstimate]) -> Table:
    """Return a table of the estimates, with their sum in the last row."""

    def format_row(name: str, yield_cell: str, group: Sequence[StreamEstimate]) -> tuple[str, ...]:
        n_requested, n_accepted = (
            sum(getattr(estimate, field) for estimate in group) for field in ("requested", "accepted")
        )
        fields = ("drafts", "requests", "prompt_tokens", "completion_tokens")
        sums = (sum(getattr(estimate, field) for estimate in group) for field in fields)
        costs = [estimate.cost for estimate in group if estimate.cost is not None]
        cost = f"{sum(costs):.2f}" if costs else "-"
        return (name, str(n_requested), str(n_accepted), yield_cell, *(f"{total:,}" for total in sums), cost)

    kinds = dict.fromkeys(estimate.stream.partition("/")[0] for estimate in estimates)
    rows = []
    for estimate in estimates:
        suffix = "" if estimate.measured else " (assumed)"
        rows.append(format_row(estimate.stream, f"{100 * estimate.share:.0f}%{suffix}", [estimate]))
    has_cost = any(estimate.cost is not None for estimate in estimates)
    return Table.of(
        "Estimated effort",
        (
            "stream", "requested", "accepted", "yield", "drafts", "requests", "prompt tokens", "answer tokens",
            "US dollars",
        ),
        [*rows, format_row("all", "", estimates)],
        strong=(len(rows),),
        note=f"Prompt tokens are counted on {N_SAMPLED_PROMPTS} prompts of each stream; answers are assumed to have "
        + ", ".join(f"{TYPES[kind].draft_tokens} tokens ({kind})" for kind in kinds)
        + ". Validators and maskers are not included."
        + ("" if has_cost else " No cost: no price in the recipe or prices.toml."),
    )  # fmt: skip
