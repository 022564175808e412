"""Climassay's models in Inspect: ``--model climassay/local:smollm2`` or ``climassay/openai:NAME``."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import anyio
from anyio.lowlevel import checkpoint
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelCall, ModelOutput, ModelUsage, modelapi
from inspect_ai.model import StopReason as InspectStop
from inspect_ai.solver._task_state import sample_state
from inspect_ai.tool import ToolChoice, ToolInfo

from climassay.errors import InputError, ModelError
from climassay.models import ModelOptions, contract, load_model
from climassay.redaction import TrustedUrl

MAX_CONNECTIONS = 64
"""Default maximum number of concurrent requests; a local model computes them in batches."""
_EPOCH_SEEDS = 1000
"""Difference between the seeds of consecutive epochs, and maximum number of repetitions of a request in an epoch."""


class _PendingRequest:
    """Request with its completion, which is None until it arrives."""

    def __init__(self, request: contract.GenerationRequest) -> None:
        self.request = request
        self.answer: contract.Completion | None = None


class _RequestQueue:
    """Batcher that sends all pending requests to a model in one call.

    The first caller to acquire the lock sends the requests of all callers; the others then find their answers.
    """

    def __init__(self, model: contract.Generator, on_answer: Callable[[int], None] = lambda _count: None) -> None:
        self._model = model
        self._on_answer = on_answer
        self._pending: list[_PendingRequest] = []
        self._lock = anyio.Lock()
        self._thread: int | None = None
        self._stopped = False

    def stop(self) -> None:
        """Cancel the running call, and refuse further requests."""
        self._stopped = True
        model, thread = contract.unwrap_model(self._model), self._thread
        if isinstance(model, contract.ConcurrentModel) and thread is not None:
            model.cancel([thread])

    async def complete(self, request: contract.GenerationRequest) -> contract.Completion:
        own_request = _PendingRequest(request)
        self._pending.append(own_request)
        await checkpoint()  # all that are ready to ask get into the first group
        async with self._lock:
            if own_request.answer is None:
                batch, self._pending = self._pending, []
                await anyio.to_thread.run_sync(self._generate_batch, batch)
        if own_request.answer is None:
            raise ModelError(f"{self._model.name} was interrupted before it answered.")
        return own_request.answer

    def _generate_batch(self, batch: list[_PendingRequest]) -> None:
        """Generate completions for a group of requests, and store each with its request.

        This runs in a thread. It returns nothing, because the task that started it may have been cancelled.
        """

        def store_answer(index: int, answer: contract.Completion) -> None:
            batch[index].answer = answer
            self._on_answer(1)
            if self._stopped:
                raise ModelError(f"{self._model.name} was interrupted.")

        self._thread = threading.get_ident()
        try:
            if not self._stopped:
                answers = self._model.generate(
                    [pending_request.request for pending_request in batch], on_result=store_answer
                )
                for pending_request, answer in zip(batch, answers, strict=True):
                    pending_request.answer = answer
        except KeyboardInterrupt as end:  # a thread's own would end the event loop in the middle of its work
            raise ModelError(f"{self._model.name} was interrupted.") from end
        finally:
            self._thread = None


_TEXT_TYPES = ("text", "reasoning")
"""Types of message content that are accepted: text, and reasoning of another model."""


class ClimassayModel(ModelAPI):
    """Model of Inspect that calls a climassay model; answers of a recorded model are recorded.

    If a chat ends with an assistant turn, the model continues that turn. The seed of a request is Inspect's seed plus
    an offset, which depends on the epoch and on how often the sample has already made the same request.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        loaded_model: contract.Generator | None = None,
        on_answer: Callable[[int], None] = lambda _count: None,
        **model_args: Any,
    ) -> None:
        """Load the model, unless a loaded one is passed as ``loaded_model``.

        Args:
            model_name: Climassay's name of the model, for example ``local:smollm2``.
            base_url: URL of the server of an ``openai:`` model.
            api_key: Not used: climassay reads the key from the environment.
            config: Inspect's own settings.
            loaded_model: Loaded model, for example a recorded one.
            on_answer: Called with 1 for every answer, in the generating thread.
            model_args: ``device``, ``dtype`` and ``adapter`` of a local model (``-M dtype=float32``).

        Raises:
            InputError: An argument of ``model_args`` is unknown.
        """
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        unknown_arguments = set(model_args) - {"device", "dtype", "adapter", "concurrency"}
        if unknown_arguments:
            raise InputError(f"A climassay model takes no argument {', '.join(sorted(unknown_arguments))}.")
        self.model = loaded_model or load_model(
            model_name, ModelOptions(base_url=base_url and TrustedUrl(base_url), **model_args)
        )
        self._queue = _RequestQueue(self.model, on_answer)
        self._n_repeats: Counter[tuple[object, contract.GenerationRequest]] = Counter()
        self.unsupported_request_error: InputError | None = None
        """Error of a request that the model does not support; None if there was none."""

    def stop(self) -> None:
        """Stop after the next answer and refuse further requests."""
        self._queue.stop()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,  # noqa: ARG002 - without tools there is no choice
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """Generate the answer to a chat.

        Raises:
            InputError: The request has tools, several choices or content other than text.
            ModelError: The model failed or was interrupted.
        """
        try:
            if tools:
                raise InputError(f"{self.model.name} uses no tools in Inspect: run a task without them.")
            if (config.num_choices or 1) > 1:
                raise InputError(f"{self.model.name} returns one choice per request: use epochs for several answers.")
            request = self._with_seed(to_generation_request(input, config))
        except InputError as error:
            self.unsupported_request_error = error
            raise
        answer = await self._queue.complete(request)
        if answer.error is not None:
            raise ModelError(answer.error)
        reason: InspectStop = "max_tokens" if answer.finish_reason == "length" else "stop"
        output = ModelOutput.from_content(self.model_name, answer.text, reason)
        usage = answer.usage
        # Without a usage Inspect would count tokens itself, with a tokenizer that it downloads.
        output.usage = ModelUsage(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            total_tokens=usage.prompt_tokens + usage.completion_tokens,
            total_cost=usage.cost,
        )
        # For Inspect's log: the prompt as the model received it.
        prompt = self.model.render(request.messages, request.assistant_prefix)
        request_log = {
            "prompt": prompt,
            "max_tokens": request.sampling.max_tokens,
            "fingerprint": self.model.fingerprint,
        }
        return output, ModelCall.create(request_log, {"text": answer.text, "finish_reason": answer.finish_reason})

    def _with_seed(self, request: contract.GenerationRequest) -> contract.GenerationRequest:
        """Return the request with a seed that depends on the epoch and on the number of earlier identical requests."""
        state = sample_state()
        if state is None:
            return request
        n_repeats = self._n_repeats[state.uuid, request]
        self._n_repeats[state.uuid, request] += 1
        seed = request.sampling.seed + _EPOCH_SEEDS * (state.epoch - 1) + n_repeats
        return replace(request, sampling=replace(request.sampling, seed=seed))

    def max_connections(self) -> int:
        """Return the maximum number of concurrent requests."""
        return MAX_CONNECTIONS

    def connection_key(self) -> str:
        """Return the model's fingerprint, by which Inspect gives each model a separate limit of concurrent requests."""
        return self.model.fingerprint

    def close(self) -> None:
        """Close the model."""
        self.model.close()


def to_generation_request(chat_messages: list[ChatMessage], config: GenerateConfig) -> contract.GenerationRequest:
    """Convert a chat to a generation request; a final assistant turn becomes the beginning of the answer.

    Raises:
        InputError: A turn is a tool's result, or has images, audio, video, documents or other data.
    """
    messages = []
    for turn in chat_messages:
        if turn.role == "tool":
            raise InputError("A climassay model reads no tool results in Inspect: run a task without tools.")
        media = (
            []
            if isinstance(turn.content, str)
            else [part.type for part in turn.content if part.type not in _TEXT_TYPES]
        )
        if media:
            raise InputError(f"A climassay model reads no {media[0]} content in Inspect: run a task of texts.")
        messages.append(contract.Message(turn.role, turn.text))
    prefix = messages.pop().content if messages and messages[-1].role == "assistant" else ""
    sampling = contract.Sampling(
        max_tokens=config.max_tokens,
        temperature=config.temperature or 0.0,
        top_p=1.0 if config.top_p is None else config.top_p,
        seed=config.seed or 0,
        stop=tuple(config.stop_seqs or ()),
    )
    return contract.GenerationRequest(tuple(messages), sampling, assistant_prefix=prefix)


@modelapi(name="climassay")
def provider() -> type[ModelAPI]:
    """Return the class with which Inspect loads models named ``climassay/NAME``."""
    return ClimassayModel


def inspect_model(
    loaded_model: contract.Generator, *, on_answer: Callable[[int], None] = lambda _count: None
) -> ClimassayModel:
    """Wrap a loaded model as an Inspect provider; the caller closes the model.

    Args:
        loaded_model: Loaded model; the answers of a recorded model are stored before Inspect receives them.
        on_answer: Called with 1 for every answer, in the generating thread.
    """
    create_model = cast(Callable[..., ClimassayModel], provider)  # the decorator takes it for a class
    return create_model(loaded_model.name, loaded_model=loaded_model, on_answer=on_answer)
