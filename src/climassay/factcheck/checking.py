"""Fact-checks from settings and claims to recorded transcripts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from climassay.corpus.documents import expand_report_name
from climassay.errors import InputError
from climassay.factcheck.configuration import AdvocateSettings, DebateSettings
from climassay.factcheck.debate.batcher import RequestBatcher
from climassay.factcheck.debate.context import load_templates
from climassay.factcheck.debate.requests import RequestGenerator, gather
from climassay.factcheck.debate.rounds import debate
from climassay.factcheck.debate.scheduler import DebateScheduler, OnRequests
from climassay.factcheck.debate.setup import Advocate, DebateSetup, Mediator
from climassay.factcheck.scales import load_scale
from climassay.factcheck.transcript import AdvocateProfile, Claim, Event, Stability, Transcript, as_data, reader_view
from climassay.models.contract import Encoder, Generator, number_format, stated_window
from climassay.models.encoders import CachedEncoder
from climassay.prompts import profile_of
from climassay.records import RecordedModel, Records, RequestCounts, Run

if TYPE_CHECKING:
    from climassay.grounding import CollectionGroup
    from climassay.models.servers import Price


CONCURRENCY = 16
"""Default number of concurrent debates: enough to fill the batches of a local model."""
SAMPLE_TEMPERATURE = 0.7
"""Sampling temperature of all debates about a claim except the first."""
OnEvent = Callable[[Claim, Event], None]
"""Callback that receives a claim and an event of its debate."""


@dataclass(frozen=True, slots=True)
class DebateResources:
    """Loaded models and collections for debates."""

    models: Mapping[str, Generator]
    """Models by the names used in the settings."""
    collections: "Mapping[str, CollectionGroup]"
    """Collections by name, each as a group of one collection."""
    prices: "Mapping[str, Price]" = field(default_factory=dict)
    """Known prices by model name, for cost estimates."""
    encoder: Encoder | None = None
    """Encoder that attributes sentences to passages and screens claims; by default the first collection's encoder."""


def list_models(settings: DebateSettings) -> tuple[str, ...]:
    """Return the distinct names of the models that a debate needs."""
    names = [advocate.model or settings.model for advocate in settings.advocates]
    return tuple(dict.fromkeys([settings.model, settings.mediator.model or settings.model, *names]))


def list_collections(settings: DebateSettings) -> tuple[str, ...]:
    """Return the distinct names of the collections that a debate needs."""
    return tuple(dict.fromkeys(name for advocate in settings.advocates for name in advocate.collections))


# ------------------------------------------------------------------------------------------------------------ setup


def set_up_debate(settings: DebateSettings, resources: DebateResources, prompts: Path | None = None) -> DebateSetup:
    """Combine settings and resources into a setup for any number of debates.

    Args:
        settings: Participants and rules.
        resources: Loaded models and collections.
        prompts: Folder of templates that replace the bundled ones.

    Raises:
        InputError: ``settings`` names no advocate, or a scale of verdicts that does not exist.
    """
    if not settings.advocates:
        raise InputError("A debate needs an advocate: name a collection (--collection NAME), or --plain.")
    profile = profile_of(resources.models[settings.model], settings.profile)
    advocates = []
    for advocate in settings.advocates:
        passages = profile.passages if advocate.passages is None else advocate.passages
        excerpt_words = profile.excerpt_words if advocate.excerpt_words is None else advocate.excerpt_words
        advocate_settings = replace(advocate, passages=passages, excerpt_words=excerpt_words)
        advocates.append(Advocate(advocate_settings, advocate.model or settings.model, settings.latest_only))
    style = settings.mediator.style
    if style == "auto":
        style = "neutral" if any(item.kind == "adversarial" for item in settings.advocates) else "expert"
    first_group = next(iter(resources.collections.values()), None)
    encoder = resources.encoder or (first_group.encoder if first_group else None)
    return DebateSetup(
        settings,
        load_scale(settings.scale),
        tuple(advocates),
        {advocate.name: _describe_advocate(advocate, resources) for advocate in advocates},
        Mediator(settings.mediator.model or settings.model, style),
        load_templates(prompts),
        CachedEncoder.wrap(encoder) if encoder else None,
        profile,
        lambda name: stated_window(resources.models[name]),
    )


def _describe_advocate(advocate: Advocate, resources: DebateResources) -> AdvocateProfile:
    settings, model = advocate.settings, resources.models[advocate.model]
    return AdvocateProfile(
        settings.name,
        settings.kind,
        settings.collections,
        advocate.model,
        model.fingerprint,
        settings.authority,
        _describe_source(settings, resources),
        number_format(model),
    )


_MAX_TITLES = 3
"""Maximum number of document titles in the description of a source."""
_MAX_TITLE_LENGTH = 80
"""Maximum number of characters of a title."""


def _describe_source(advocate: AdvocateSettings, resources: DebateResources) -> str:
    """Return an advocate's description of its source; by default, the titles of its longest documents."""
    if advocate.about or advocate.kind == "plain":
        return " ".join(advocate.about.split()) or "the model's own knowledge, without documents"
    n_passages: Counter[str] = Counter()
    for name in advocate.collections:
        for document in resources.collections[name].collections[0].documents():
            title = expand_report_name(" ".join((document.report or document.title).split()), document.source)
            n_passages[shorten(title, _MAX_TITLE_LENGTH, placeholder=" ...")] += document.passages
    titles = [title for title, _ in n_passages.most_common()]
    listed_titles = "; ".join(titles[:_MAX_TITLES])
    return f"{listed_titles} and {len(titles) - _MAX_TITLES} more" if len(titles) > _MAX_TITLES else listed_titles


# ---------------------------------------------------------------------------------------------------------- checker


class Checker:
    """Checks claims with one setup; created by :func:`open_checker`.

    Attributes:
        setup: Participants and settings.
        run_id: Id of the run in the records.
    """

    def __init__(
        self, setup: DebateSetup, batcher: RequestBatcher, models: Mapping[str, RecordedModel], run: Run
    ) -> None:
        self.setup = setup
        self.run_id = run.id
        self._batcher = batcher
        self._models = models
        self._run = run
        self._is_demonstration = any(profile_of(model).name == "small" for model in models.values())

    @property
    def tallies(self) -> Mapping[str, RequestCounts]:
        """Counts of cached, sent and failed requests, with their token usage, by model name."""
        return {name: model.tally for name, model in self._models.items()}

    def check(
        self,
        claims: Sequence[Claim],
        *,
        samples: int = 1,
        concurrency: int = CONCURRENCY,
        force: bool = False,
        on_event: OnEvent = lambda *_: None,
        on_done: Callable[[Transcript], None] | None = None,
        on_requests: OnRequests | None = None,
    ) -> list[Transcript]:
        """Debate claims concurrently.

        Args:
            claims: Claims to check; equal claims reuse each other's recorded answers.
            samples: Number of debates per claim. In all but the first, texts are sampled, each time with another seed.
                The transcript of the first is returned, with the verdicts of all debates in ``stability``.
            concurrency: Maximum number of concurrent debates.
            force: Whether to debate claims that appear not to be checkable or not to be about climate.
            on_event: Callback that receives a claim and an event, for each event of the claim's first debate.
            on_done: Callback that receives each transcript when its debate ends.
            on_requests: Callback that receives requests before they are sent; its exceptions end the debates.

        Returns:
            Transcripts in the order of the claims.

        Raises:
            InputError: ``samples`` or ``concurrency`` is below 1.
        """
        if samples < 1 or concurrency < 1:
            raise InputError("The number of samples and of concurrent debates must be at least 1.")
        setup, refusals = self.setup, self._find_refusals(claims) if not force else [None] * len(claims)
        if force:
            setup = replace(setup, settings=replace(setup.settings, check_claims=False))
        debates = [
            self._debate_samples(setup, claim, samples, on_event, transcript)
            for claim, transcript in zip(claims, refusals, strict=True)
        ]
        return DebateScheduler(debates, self._batcher, concurrency, on_done, on_requests).run()

    def save_transcripts(self, transcripts: Sequence[Transcript], published: Mapping[str, str] | None = None) -> None:
        """Store transcripts, and published verdicts by claim id, as results of the run."""
        self._run.save_results("transcript", [as_data(transcript) for transcript in transcripts])
        if published:
            rows = [{"claim": claim, "verdict": verdict} for claim, verdict in published.items()]
            self._run.save_results("published", rows)

    def _debate_samples(
        self, setup: DebateSetup, claim: Claim, samples: int, on_event: OnEvent, refusal: Transcript | None
    ) -> "RequestGenerator[Transcript]":
        from climassay.factcheck.fallacies import add_fallacy

        if refusal is not None:
            return refusal
        debates = [debate(claim, setup, lambda event: on_event(claim, event))]
        for number in range(1, samples):
            settings = replace(setup.settings, temperature=SAMPLE_TEMPERATURE, seed=setup.settings.seed + number)
            debates.append(debate(claim, replace(setup, settings=settings)))
        results = yield from gather(debates)
        transcripts = [reader_view(transcript, setup.scale) for transcript in results]
        first = replace(transcripts[0], demonstration=self._is_demonstration)
        first = add_fallacy(first, setup.scale, setup.encoder)
        if samples == 1:
            return first
        labels = tuple(transcript.verdict.label for transcript in transcripts)
        share = Counter(labels).most_common(1)[0][1] / samples
        return replace(first, stability=Stability(samples, labels, share))

    def _find_refusals(self, claims: Sequence[Claim]) -> list[Transcript | None]:
        """Return the final transcript of each claim that cannot be checked; None for each claim to debate."""
        from climassay.factcheck.claims import Checkability, assess_claims, find_refusal

        setup, encoder = self.setup, self.setup.encoder
        if not setup.settings.check_claims or (encoder is None and not setup.reads_claims):
            return [None] * len(claims)
        texts = [claim.text for claim in claims]
        # A model that reads the claims decides what the rules leave open, when it splits them.
        results: Sequence[Checkability | None]
        if setup.reads_claims or encoder is None:
            results = [find_refusal(text) for text in texts]
        else:
            results = assess_claims(texts, encoder)
        return [
            None
            if result is None or result.kind == "checkable"
            else setup.refused_transcript(claim, result.kind, result.reason)
            for claim, result in zip(claims, results, strict=True)
        ]


@contextmanager
def open_checker(
    settings: DebateSettings,
    resources: DebateResources,
    store: Records,
    *,
    command: str = "check",
    config: Mapping[str, object] | None = None,
    prompts: Path | None = None,
    use_cache: bool = True,
) -> Iterator[Checker]:
    """Open a checker that records its requests as one run.

    Args:
        settings: Participants and rules.
        resources: Loaded models and collections.
        store: Records of requests and transcripts.
        command: Command name under which the run is recorded.
        config: Further settings to record, for example the file of claims.
        prompts: Folder of templates that replace the bundled ones.
        use_cache: Whether to use cached answers.

    Raises:
        InputError: ``settings`` names no advocate, or a scale of verdicts that does not exist.
    """
    setup = set_up_debate(settings, resources, prompts)
    recorded_config = {
        **asdict(settings),
        "prompts": {name: template.sha256 for name, template in setup.templates.items()},
        **(config or {}),
    }
    with store.run(command=command, config=recorded_config, seeds={"sampling": settings.seed}) as run:
        models = {name: RecordedModel(model, store, run, use_cache) for name, model in resources.models.items()}
        entailment = None
        if settings.entailment:
            from climassay.metrics import PromptedEntailment

            entailment = PromptedEntailment(models[setup.mediator.model], encoder=setup.encoder).score
        yield Checker(setup, RequestBatcher(models, resources.collections, entailment), models, run)
