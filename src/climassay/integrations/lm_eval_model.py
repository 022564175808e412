"""Climassay's models in lm-evaluation-harness: every task of it is recorded, and goes on where it was interrupted.

The harness's own command with this model in it is::

    python -m climassay.integrations.lm_eval_model run --model climassay --model_args model=local:smollm2 --tasks TASK
"""

import atexit
import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import normalize_gen_kwargs, postprocess_generated_text
from tqdm import tqdm

from climassay.errors import InputError, ModelError
from climassay.models import load_model
from climassay.models.contract import Completion, GenerationRequest, Generator, Message, OptionRequest, Sampling
from climassay.models.servers import is_served
from climassay.records import RecordedModel, Records, Tally
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

_CHAT = "\x1echat "
"""Begins a context that is a chat for a server, as JSON; a local model's chats are text."""
_SAMPLING = {"until", "max_gen_toks", "do_sample", "temperature", "top_p", "seed"}


@register_model("climassay")
class ClimassayLM(TemplateLM):  # type: ignore[misc]
    """A model of climassay as one of lm-evaluation-harness.

    Args:
        model: Name of a local model or of one behind a server; a server's only generates.
        workspace: Folder in which requests and answers are kept; by default that of the command line.
        base_url: Server of an ``openai:`` model.
        dtype: Number format of a local model.
        device: Where a local model computes.
        concurrency: Sequences generated side by side, or requests to a server at a time.
        max_gen_toks: Most tokens of an answer where a task says nothing.
        batch_size: Ignored: climassay finds out what is computed together.
        max_batch_size: Ignored likewise.

    Raises:
        InputError: The model's name is not understood.
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
        super().__init__()
        place = Workspace.open(None if workspace is None else Path(workspace))
        self._max_gen_toks = int(max_gen_toks)
        self._name = model
        self._served = is_served(model)
        if self._served:
            loaded: Generator = load_model(model, base_url=base_url, concurrency=concurrency, folder=place.root)
        else:
            import torch

            from climassay.models.local.text_model import TextModel

            if device and device.startswith("cuda") and not torch.cuda.is_available():
                device = None  # the harness's command says cuda where nothing was said
            name = model if model.startswith("local:") else f"local:{model}"
            loaded = TextModel(name, device=device, dtype=dtype, concurrency=concurrency)
            self.tokenizer = loaded.prompts.tokenizer
        self._closing = ExitStack()
        records = self._closing.enter_context(Records(place.records_url))
        config = {"model": model, "fingerprint": loaded.fingerprint, "max_gen_toks": self._max_gen_toks}
        run = self._closing.enter_context(records.run(command="lm-eval", config=config, seeds={}))
        self._closing.callback(loaded.close)
        self._model = RecordedModel(loaded, records, run)
        atexit.register(self._closing.close)

    def close(self) -> None:
        """End the run in the records and give back the model's memory."""
        atexit.unregister(self._closing.close)
        self._closing.close()

    @property
    def tally(self) -> Tally:
        """Hits, requests asked, failures and usage so far."""
        return self._model.tally

    @property
    def eot_token_id(self) -> int:
        """The token that ends a text."""
        return int(self.tokenizer.eos_token_id)

    @property
    def tokenizer_name(self) -> str:
        """Names the chat template in the harness's own caches."""
        return f"climassay__{self._name}".replace("/", "__")

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The template's text; a server has its own."""
        return "" if self._served else super().chat_template(chat_template)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """A chat as the text that the model goes on from."""
        if self._served:
            return _CHAT + json.dumps(chat_history)
        from jinja2.exceptions import TemplateError

        options = {"add_generation_prompt": add_generation_prompt, "continue_final_message": not add_generation_prompt}
        try:
            return str(self.tokenizer.apply_chat_template(chat_history, tokenize=False, **options))
        except TemplateError:
            rest = [turn for turn in chat_history if turn["role"] != "system"]
            return str(self.tokenizer.apply_chat_template(rest, tokenize=False, **options))

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_ignored: Any) -> list[int]:
        """Token ids of a text."""
        options = {} if add_special_tokens is None else {"add_special_tokens": add_special_tokens}
        return list(self.tokenizer.encode(string, **options))

    def loglikelihood(self, requests: "Sequence[Instance]", disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Log-probability of each continuation, and whether the model would write it.

        Raises:
            ModelError: The model is behind a server, or one of the requests failed.
        """
        pairs = [one.args for one in requests]
        asked = [OptionRequest((Message("user", context),), (continuation,)) for context, continuation in pairs]
        return self._scored(asked, disable_tqdm)

    def loglikelihood_rolling(self, requests: "Sequence[Instance]", disable_tqdm: bool = False) -> list[float]:
        """Log-probability of each whole text.

        Raises:
            ModelError: The model is behind a server, or one of the requests failed.
        """
        asked = [OptionRequest((), (one.args[0],)) for one in requests]
        return [logprob for logprob, _ in self._scored(asked, disable_tqdm)]

    def _loglikelihood_tokens(self, requests: Any, **_ignored: Any) -> list[tuple[float, bool]]:
        raise NotImplementedError("texts are scored, not tokens")

    def _scored(self, requests: list[OptionRequest], quiet: bool) -> list[tuple[float, bool]]:
        if self._served:
            raise ModelError(
                f"{self._name} gives no log-probabilities of texts: take tasks of the harness that generate, or a "
                "local: model."
            )
        with tqdm(total=len(requests), disable=quiet, desc="Scoring texts") as bar:
            scores = self._model.option_logprobs(requests, on_result=lambda *_: bar.update())
        _refuse_failures([one.error for one in scores])
        return [(one.logprobs[0], one.method == "greedy") for one in scores]

    def generate_until(self, requests: "Sequence[Instance]", disable_tqdm: bool = False) -> list[str]:
        """What the model writes after each context.

        Raises:
            InputError: A task asks for a way of sampling that climassay does not have.
            ModelError: One of the requests failed.
        """
        asked = []
        for context, options in (one.args for one in requests):
            settings = normalize_gen_kwargs(options, self._max_gen_toks)
            if unknown := sorted(set(settings) - _SAMPLING):
                raise InputError(f"The task asks for {', '.join(unknown)}, which climassay's models do not know.")
            asked.append(self._generation(context, settings))
        with tqdm(total=len(asked), disable=disable_tqdm, desc="Generating") as bar:
            answers: list[Completion] = self._model.generate(asked, on_result=lambda *_: bar.update())
        _refuse_failures([one.error for one in answers])
        # A server stops at four texts at most, and leaves some out.
        return [
            postprocess_generated_text(answer.text, list(one.sampling.stop), None)
            for one, answer in zip(asked, answers, strict=True)
        ]

    def _generation(self, context: str, settings: dict[str, Any]) -> GenerationRequest:
        longest = int(settings["max_gen_toks"])
        sampling = Sampling(
            max_tokens=longest,
            temperature=float(settings.get("temperature", 1.0 if settings.get("do_sample") else 0.0)),
            top_p=float(settings.get("top_p", 1.0)),
            seed=int(settings.get("seed", 0)),
            stop=tuple(stop for stop in settings["until"] if stop),
        )
        if self._served:
            turns = json.loads(context.removeprefix(_CHAT)) if context.startswith(_CHAT) else None
            chat = turns or [{"role": "user", "content": context}]
            return GenerationRequest(tuple(Message(one["role"], one["content"]) for one in chat), sampling)
        return GenerationRequest((Message("user", self._cut(context, longest)),), sampling)

    def _cut(self, context: str, longest: int) -> str:
        """The end of a context, so that the answer has room in the window."""
        model: Any = self._model.wrapped
        if (room := model.window - longest) < 1:
            raise InputError(f"Answers of {longest} tokens leave no room in a window of {model.window}.")
        tokens = model.prompts.encode(context)
        return context if len(tokens) <= room else str(self.tokenizer.decode(tokens[-room:]))


def _refuse_failures(errors: Iterable[str | None]) -> None:
    """The harness has no place for a failure in a list: what was answered is kept, and a rerun asks the others."""
    failed = [error for error in errors if error is not None]
    if failed:
        raise ModelError(f"{len(failed)} requests failed, the first one: {failed[0]} Run the same command again.")


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
