"""A judge opened in a session: its method of comparing texts, with the run that records the model's answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from climassay.errors import InputError, NoAnswerError
from climassay.judging.item_tables import ItemTable, clean_text
from climassay.judging.judges import JUDGES, Cost, StateExtractor, open_weights, probe_judge
from climassay.judging.preferences import Item, Method, Quality, QualityRequests, aspect_names, quality
from climassay.judging.probe import Probe, load_probe
from climassay.judging.training import load_quality
from climassay.models import DEFAULT_MODEL, Generator, ModelOptions, OpenWeights
from climassay.records import RecordedModel, Run
from climassay.reporting import counted
from climassay.session import Place, Session


@dataclass(frozen=True)
class Judge:
    """Opened judge: a method of comparing texts, with the run that records the model's answers."""

    run: Run
    method: Method
    quality: Quality
    extractor: StateExtractor | None
    recorded: RecordedModel
    on_progress: Callable[[int], None]
    """Function called with the number of answered requests."""
    tie_band: float = 0.0
    """Half-width of the probe's tie band; 0 without a probe."""
    notes: tuple[str, ...] = ()

    def check_answered(self, failed: int, n_asked: int) -> None:
        """Check that hidden states were obtained for at least one comparison.

        Raises:
            NoAnswerError: There were comparisons, and none was answered; the message gives the reason.
        """
        if failed == n_asked > 0 and self.extractor is not None and self.extractor.error:
            reason = f"{self.extractor.error.rstrip('.')}. Shorter texts or --context-words may help."
            raise NoAnswerError(f"{self.recorded.name} gave no answer to {counted(n_asked, 'comparison')}: {reason}")

    @property
    def cost(self) -> Cost:
        """Cost of all comparisons so far."""
        if self.extractor is not None and self.extractor.cost != Cost():
            return self.extractor.cost
        tally = self.recorded.tally
        tokens = tally.usage.prompt_tokens
        return Cost(tally.sent, tokens, tokens, tally.sent, tally.hits)


@dataclass(frozen=True)
class JudgeSpec:
    """Specification of a judge: its quality, probe or method, and model."""

    quality: Quality | str | None = None
    """Quality to compare by, or its name; None for the quality that the probe was trained for."""
    probe: Probe | Path | str | None = None
    """Trained probe, or its file; None to compare with ``method``."""
    method: str | None = None
    """Name of a method without a probe; by default zero-shot, or pairs if the model's weights cannot be read."""
    model: Generator | str = DEFAULT_MODEL
    token_budget: int | None = None
    """Maximum number of tokens in one forward pass."""

    @cached_property
    def loaded_probe(self) -> Probe | None:
        """Trained probe, loaded from its file if necessary; None without a probe."""
        return load_probe(Path(self.probe)) if isinstance(self.probe, (str, Path)) else self.probe

    @cached_property
    def resolved_quality(self) -> Quality:
        """Quality to compare by; by default the quality of the probe.

        Raises:
            InputError: The arguments name neither a quality nor a probe, or both a probe and a method.
        """
        if self.probe is not None and self.method is not None:
            raise InputError("Give either a probe or a method.")
        if self.quality is None:
            if self.loaded_probe is None:
                raise InputError(
                    f"Name the quality to compare by: an aspect ({', '.join(aspect_names())}), claims, "
                    "confidence, one of your own in a sentence, or a probe that was trained for one."
                )
            return load_quality(self.loaded_probe.provenance)
        return find_quality(self.quality)

    @property
    def model_name(self) -> str:
        """Name of the model, for records and reports."""
        return self.model if isinstance(self.model, str) else self.model.name

    @contextmanager
    def opened(
        self, workspace: Place, command: str, config: Mapping[str, Any], seeds: Mapping[str, int] | None = None
    ) -> Iterator[Judge]:
        """Start a run that records ``config`` and the judge's settings, load the model, and yield the opened judge.

        Raises:
            InputError: No quality is named, or the judge needs another model.
        """
        probe = self.loaded_probe
        probe_source = str(self.probe) if isinstance(self.probe, (str, Path)) else probe is not None
        judge_config = {
            "quality": self.resolved_quality.name,
            "model": self.model_name,
            "probe": probe_source,
            "method": self.method,
        }
        with ExitStack() as stack:
            session = stack.enter_context(Session.opened(workspace))
            prompts = QualityRequests(self.resolved_quality, session.options.prompts)
            dtype = None if probe is None else probe.provenance.dtype or None
            generator = session.model(self.model, session.options.with_defaults(ModelOptions(dtype=dtype)))
            run = stack.enter_context(session.run(command, {**config, **judge_config}, seeds))
            recorded_model, extractor, tie_band = session.recorded(generator, run), None, 0.0
            notes: tuple[str, ...] = ()
            if probe is None:
                if isinstance(generator, OpenWeights):
                    extractor = StateExtractor(generator, prompts, (-1,), session.activations, self.token_budget)
                name = self.method or ("pairs" if extractor is None else "zero-shot")
                method = JUDGES.find(name)(recorded_model, prompts, extractor)
            else:
                prompt = prompts.prompt("contrast" if probe.kind == "pair" else "point")
                if probe.provenance.template_sha256 not in ("", prompt.sha256):
                    notes = (
                        f"The probe was trained with another template than {prompt.name} ({prompt.origin}): check the "
                        "transfer on labelled items.",
                    )
                weights, layers = open_weights(generator, "A probe"), probe.provenance.layers or (-1,)
                extractor = StateExtractor(weights, prompts, layers, session.activations, self.token_budget)
                method, tie_band = probe_judge(probe, extractor), probe.tie_band
            task = stack.enter_context(session.progress.task(f"Comparing with {self.model_name}"))
            yield Judge(run, method, self.resolved_quality, extractor, recorded_model, task.advance, tie_band, notes)


def find_quality(name: Quality | str) -> Quality:
    """Return the quality with a name: an aspect, ``claims`` or ``confidence``; other names describe a quality."""
    if isinstance(name, Quality):
        return name
    if name == "claims" or name == "confidence":
        return quality(name)  # type: ignore[arg-type]
    return quality("text", name) if name in aspect_names() else quality("own", sentence=name)


def as_item_table(texts: Sequence[str | Item] | ItemTable) -> ItemTable:
    """Return texts and items as a table; texts are numbered from 1."""
    if isinstance(texts, ItemTable):
        return texts
    numbered_texts = enumerate(texts, start=1)
    return ItemTable(
        tuple(Item(str(n), clean_text(text)) if isinstance(text, str) else text for n, text in numbered_texts),
        (),
    )
