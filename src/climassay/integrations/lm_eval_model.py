"""Climassay's models in lm-evaluation-harness: answers are recorded, so that interrupted evaluations can be continued.

To run the harness's own command with these models::

    python -m climassay.integrations.lm_eval_model run --model climassay --model_args model=local:smollm2 --tasks TASK
"""

import atexit
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import normalize_gen_kwargs, postprocess_generated_text
from tqdm import tqdm

from climassay.errors import InputError, ModelError
from climassay.evaluation import ExperimentCallbacks
from climassay.models import ModelOptions, contract, load_model
from climassay.models.provider import is_served
from climassay.prompts import profile_of
from climassay.records import RecordedModel, Records, RequestCounts
from climassay.reporting import counted
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

_CHAT_PREFIX = "\x1echat "
"""Prefix of a context that contains a chat for a server as JSON; chats for local models are rendered as text."""
SampleKey = tuple[str, int]
"""Name of a harness task and index of a sample in it."""
UNKNOWN_LOGPROB = -1000.0
"""Log-probability used if the request for a text failed, or if the answer names no choice."""
_SAMPLING_OPTIONS = {"until", "max_gen_toks", "do_sample", "temperature", "top_p", "seed"}


@register_model("climassay")
class ClimassayLM(TemplateLM):  # type: ignore[misc]
    """Climassay model for lm-evaluation-harness.

    Args:
        model: Name of a model. One behind a server generates text, but returns no log-likelihoods.
        workspace: Folder in which requests and answers are recorded; by default the workspace of the command line.
        base_url: Server of an ``openai:`` model.
        dtype: Number format of a local model.
        device: Device of a local model.
        concurrency: Number of sequences generated together, or of concurrent requests to a server.
        max_gen_toks: Maximum number of tokens of an answer, unless the task sets another.
        batch_size: Ignored: climassay chooses batches itself.
        max_batch_size: Ignored.

    Raises:
        InputError: The model's name is invalid.
        ModelError: The model cannot be loaded.
    """

    def __init__(
        self,
        model: str = "local:smollm2",
        workspace: str | None = None,
        base_url: str | None = None,
        dtype: str | None = None,
        device: str | None = None,
        concurrency: int | None = None,
        max_gen_toks: int = 256,
        batch_size: int | str | None = None,  # noqa: ARG002
        max_batch_size: int | None = None,  # noqa: ARG002
    ) -> None:
        opened_workspace = Workspace.open(None if workspace is None else Path(workspace))
        options = ModelOptions(base_url=base_url, dtype=dtype, device=device, concurrency=concurrency)
        loaded_model = load_text_model(model, options.fitting(model), folder=opened_workspace.root)
        exit_stack = ExitStack()
        records = exit_stack.enter_context(Records(opened_workspace.records_url))
        config = {"model": model, "fingerprint": loaded_model.fingerprint, "max_gen_toks": int(max_gen_toks)}
        run = exit_stack.enter_context(records.run(command="lm-eval", config=config, seeds={}))
        exit_stack.callback(loaded_model.close)
        self._initialise(RecordedModel(loaded_model, records, run), int(max_gen_toks))
        self._exit_stack = exit_stack
        atexit.register(exit_stack.close)

    def _initialise(self, model: RecordedModel, max_gen_toks: int) -> None:
        super().__init__()
        self._model, self._max_gen_toks, self._name = model, max_gen_toks, model.name
        self._is_served = not hasattr(contract.unwrap_model(model), "prompts")
        if not self._is_served:
            self.tokenizer = contract.unwrap_model(model).prompts.tokenizer
        self._exit_stack = ExitStack()
        self._progress: ExperimentCallbacks | None = None
        self.collects_failures = False
        self.failures: dict[SampleKey, str] = {}
        self.unparsed: set[SampleKey] = set()

    @classmethod
    def of_model(cls, model: RecordedModel, *, max_gen_toks: int, progress: ExperimentCallbacks) -> "ClimassayLM":
        """Wrap a recorded model from :func:`load_text_model`; the caller closes that model.

        Failed requests do not end the evaluation; :attr:`failures` contains their errors by task and sample. A model
        behind a server answers multiple-choice questions by generating one of the choices; :attr:`unparsed` contains
        the samples whose answer names none.

        Args:
            model: Recorded model.
            max_gen_toks: Maximum number of tokens of an answer, unless the task sets another.
            progress: Callbacks for requests and answers.
        """
        instance = cls.__new__(cls)
        instance._initialise(model, max_gen_toks)
        instance._progress, instance.collects_failures = progress, True
        return instance

    @property
    def generates_choices(self) -> bool:
        """Whether the model answers multiple-choice questions by generating one of the choices."""
        return self._is_served and self.collects_failures

    def close(self) -> None:
        """End the recorded run and close the model."""
        atexit.unregister(self._exit_stack.close)
        self._exit_stack.close()

    @property
    def tally(self) -> RequestCounts:
        """Counts of cached answers, sent requests, failures and usage so far."""
        return self._model.tally

    @property
    def eot_token_id(self) -> int:
        """Id of the token that ends a text."""
        return int(self.tokenizer.eos_token_id)

    @property
    def tokenizer_name(self) -> str:
        """Name of the chat template for the harness's caches."""
        return f"climassay__{self._name}".replace("/", "__")

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """Return the chat template's text; empty for a model behind a server, which applies its own."""
        return "" if self._is_served else super().chat_template(chat_template)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Render a chat as a prompt, or encode it as JSON for a server.

        System messages are omitted if the template rejects them.
        """
        if self._is_served:
            return _CHAT_PREFIX + json.dumps(chat_history)
        from jinja2.exceptions import TemplateError

        options = {"add_generation_prompt": add_generation_prompt, "continue_final_message": not add_generation_prompt}
        try:
            return str(self.tokenizer.apply_chat_template(chat_history, tokenize=False, **options))
        except TemplateError:
            turns_without_system = [turn for turn in chat_history if turn["role"] != "system"]
            return str(self.tokenizer.apply_chat_template(turns_without_system, tokenize=False, **options))

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_ignored: Any) -> list[int]:
        """Return the token ids of a text."""
        options = {} if add_special_tokens is None else {"add_special_tokens": add_special_tokens}
        return list(self.tokenizer.encode(string, **options))

    def loglikelihood(self, requests: "Sequence[Instance]", disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Return the log-probability of each continuation, and whether greedy decoding would generate it.

        Raises:
            ModelError: The model is behind a server, or one of the requests failed.
        """
        if self.generates_choices:
            return self._generate_choices(requests)
        pairs = [instance.args for instance in requests]
        model_requests = [
            contract.OptionRequest((contract.Message("user", context),), (continuation,))
            for context, continuation in pairs
        ]
        return self._score(model_requests, requests, disable_tqdm)

    def loglikelihood_rolling(self, requests: "Sequence[Instance]", disable_tqdm: bool = False) -> list[float]:
        """Return the log-probability of each text.

        Raises:
            ModelError: The model is behind a server, or one of the requests failed.
        """
        model_requests = [contract.OptionRequest((), (instance.args[0],)) for instance in requests]
        return [logprob for logprob, _ in self._score(model_requests, requests, disable_tqdm)]

    def _loglikelihood_tokens(self, requests: Any, **_ignored: Any) -> list[tuple[float, bool]]:
        raise NotImplementedError("texts are scored, not tokens")

    def _score(
        self, option_requests: list[contract.OptionRequest], requests: "Sequence[Instance]", is_quiet: bool
    ) -> list[tuple[float, bool]]:
        if self._is_served:
            raise ModelError(
                f"{self._name} gives no log-probabilities of texts: use tasks of the harness that generate, or a "
                "local: model."
            )
        with self._track_progress(len(option_requests), "Scoring texts", is_quiet) as count:
            scores = self._model.option_logprobs(option_requests, on_result=count)
        self._record_failures(requests, [score.error for score in scores])
        return [
            (UNKNOWN_LOGPROB, False) if score.error else (score.logprobs[0], score.method == "greedy")
            for score in scores
        ]

    def _generate_choices(self, requests: "Sequence[Instance]") -> list[tuple[float, bool]]:
        """Send one request per sample; return 0 for the choice in the answer, ``UNKNOWN_LOGPROB`` for all others."""
        samples: dict[SampleKey, list[int]] = {}
        for number, request in enumerate(requests):
            samples.setdefault(sample_key(request), []).append(number)
        chat_requests, choices = [], []
        for key, numbers in samples.items():
            contexts = {requests[number].args[0] for number in numbers}
            if len(contexts) > 1 or len(numbers) < 2:
                raise ModelError(
                    f"{key[0]} needs log-probabilities of texts, which {self._name} does not give: use "
                    "tasks that generate or have choices, or a local: model."
                )
            choices.append([str(requests[number].args[1]).strip() for number in numbers])
            lines = "\n".join(f"- {choice}" for choice in choices[-1])
            text = f"Answer with one of these and nothing else:\n{lines}"
            [context] = contexts
            chat = self._parse_chat(context)
            last_message = replace(chat[-1], content=f"{chat[-1].content}\n\n{text}")
            sampling = contract.Sampling(max_tokens=profile_of(self._model).limit_answer_tokens(self._max_gen_toks))
            chat_requests.append(contract.GenerationRequest((*chat[:-1], last_message), sampling))
        with self._track_progress(len(chat_requests), "Generating", True) as count:
            answers = self._model.generate(chat_requests, on_result=count)
        result = [(UNKNOWN_LOGPROB, False)] * len(requests)
        for (key, numbers), sample_choices, answer in zip(samples.items(), choices, answers, strict=True):
            if answer.error is not None:
                self.failures[key] = answer.error
            elif (choice_index := find_named_choice(answer.text, sample_choices)) is None:
                self.unparsed.add(key)
            else:
                result[numbers[choice_index]] = (0.0, True)
        return result

    @contextmanager
    def _track_progress(self, total: int, noun: str, is_quiet: bool) -> Iterator[Callable[..., None]]:
        """Yield a callback that counts answers, either in the progress callbacks or in a progress bar."""
        progress = self._progress
        if progress is not None:
            progress.on_answers_added(total)
            yield lambda *_: progress.on_answer(1)
            return
        with tqdm(total=total, disable=is_quiet, desc=noun) as bar:
            yield lambda *_: bar.update()

    def _record_failures(self, requests: "Sequence[Instance]", errors: Sequence[str | None]) -> None:
        """Store the errors of failed requests if the model collects them; otherwise raise ModelError for the first.

        Answers are recorded, so that a rerun sends only the failed requests.
        """
        errors_by_sample = {
            sample_key(instance): error for instance, error in zip(requests, errors, strict=True) if error is not None
        }
        if errors_by_sample and not self.collects_failures:
            first_error, count = next(iter(errors_by_sample.values())), sum(error is not None for error in errors)
            raise ModelError(
                f"{counted(count, 'request')} failed, the first one: {first_error} Run the same command again."
            )
        self.failures |= errors_by_sample

    def generate_until(self, requests: "Sequence[Instance]", disable_tqdm: bool = False) -> list[str]:
        """Generate the continuation of each context.

        Raises:
            InputError: A task has a sampling option that climassay does not support.
            ModelError: One of the requests failed.
        """
        model_requests = []
        samples: Counter[tuple[SampleKey, str]] = Counter()
        for instance in requests:
            context, options = instance.args
            settings = normalize_gen_kwargs(options, self._max_gen_toks)
            if unknown_options := sorted(set(settings) - _SAMPLING_OPTIONS):
                raise InputError(
                    f"The task asks for {', '.join(unknown_options)}, which climassay's models do not know."
                )
            request = self._to_request(context, settings)
            # The harness repeats a request for each sample (``repeats``); each is drawn with a seed of its own.
            n_repeats = samples[sample_key(instance), repr(request)]
            samples[sample_key(instance), repr(request)] += 1
            if request.sampling.temperature > 0:
                sampling = replace(request.sampling, seed=request.sampling.seed + n_repeats)
                request = replace(request, sampling=sampling)
            model_requests.append(request)
        with self._track_progress(len(model_requests), "Generating", disable_tqdm) as count:
            answers: list[contract.Completion] = self._model.generate(model_requests, on_result=count)
        self._record_failures(requests, [answer.error for answer in answers])
        # Servers take at most four stop texts, so that the others are applied here.
        return [
            postprocess_generated_text(answer.text, list(request.sampling.stop), None)
            for request, answer in zip(model_requests, answers, strict=True)
        ]

    def _to_request(self, context: str, settings: dict[str, Any]) -> contract.GenerationRequest:
        max_tokens = int(settings["max_gen_toks"])
        sampling = contract.Sampling(
            max_tokens=max_tokens,
            temperature=float(settings.get("temperature", 1.0 if settings.get("do_sample") else 0.0)),
            top_p=float(settings.get("top_p", 1.0)),
            seed=int(settings.get("seed", 0)),
            stop=tuple(stop for stop in settings["until"] if stop),
        )
        if self._is_served:
            return contract.GenerationRequest(self._parse_chat(context), sampling)
        return contract.GenerationRequest((contract.Message("user", self._truncate(context, max_tokens)),), sampling)

    @staticmethod
    def _parse_chat(context: str) -> tuple[contract.Message, ...]:
        turns = json.loads(context.removeprefix(_CHAT_PREFIX)) if context.startswith(_CHAT_PREFIX) else None
        chat = turns or [{"role": "user", "content": context}]
        return tuple(contract.Message(message["role"], message["content"]) for message in chat)

    def _truncate(self, context: str, max_tokens: int) -> str:
        """Truncate a context at its beginning, so that it and an answer of ``max_tokens`` tokens fit the window."""
        model: Any = self._model.wrapped
        if (max_context_tokens := model.window - max_tokens) < 1:
            raise InputError(f"Answers of {max_tokens} tokens leave no room in a window of {model.window}.")
        tokens = model.prompts.encode(context)
        return (
            context if len(tokens) <= max_context_tokens else str(self.tokenizer.decode(tokens[-max_context_tokens:]))
        )


def sample_key(request: "Instance") -> SampleKey:
    """Return the name of a request's task and the number of its sample."""
    return str(request.task_name), int(request.doc_id or 0)


def find_named_choice(answer: str, choices: Sequence[str]) -> int | None:
    """Return the index of the choice that an answer names, or None if it names none or several.

    An answer names a choice if it consists of the choice or contains its words in the first line. Choices that are part
    of another named choice are ignored.
    """
    reply = answer.strip().strip("\"'`*.-").casefold()
    names = [choice.casefold() for choice in choices]
    if reply in names:
        return names.index(reply)
    line = reply.partition("\n")[0]
    named_choices = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line)]
    named_choices = [
        name
        for name in named_choices
        if not any(name != other_name and name in other_name for other_name in named_choices)
    ]
    return names.index(named_choices[0]) if len(set(named_choices)) == 1 else None


def load_text_model(name: str, options: ModelOptions, *, folder: Path) -> contract.Generator:
    """Load a model for the harness: a local model completes plain text, a model behind a server answers chats.

    Args:
        name: Name of the model; ``local:`` may be omitted.
        options: Options for loading the model or reaching its server.
        folder: Workspace in which capabilities of a server's model are stored.

    Raises:
        InputError: The name is invalid.
        ModelError: The model cannot be loaded.
    """
    if is_served(name):
        return load_model(name, options, folder=folder)
    import torch

    from climassay.models.local.model import TextModel

    device = options.device
    if (device or "").startswith("cuda") and not torch.cuda.is_available():
        device = None  # the harness's default, even on machines without a GPU
    full_name = name if name.startswith("local:") else f"local:{name}"
    return TextModel(full_name, device=device, dtype=options.dtype, concurrency=options.concurrency)


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
