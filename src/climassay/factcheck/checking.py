"""Checking claims: from settings to a debate, from claims to recorded transcripts; and what that will take."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeVar

from climassay.corpus.documents import report_name
from climassay.errors import InputError
from climassay.factcheck.configuration import AdvocateSettings, DebateSettings
from climassay.factcheck.debate.advocate import Advocate
from climassay.factcheck.debate.assessment import Elicitation, ElicitationConfig
from climassay.factcheck.debate.context import load_templates
from climassay.factcheck.debate.mediator import Mediator
from climassay.factcheck.debate.rounds import DebateSetup, debate
from climassay.factcheck.debate.scheduler import (
    Ask,
    AskOptions,
    AskPassages,
    AskText,
    EntailmentScorer,
    RequestBatcher,
    Scheduler,
    Steps,
    Watch,
    gather,
)
from climassay.factcheck.scales import load_scale
from climassay.factcheck.transcript import AdvocateProfile, Claim, Event, Stability, Transcript, as_data, reader_view
from climassay.models.contract import (
    Completion,
    Encoder,
    GenerationRequest,
    Generator,
    OptionRequest,
    OptionScorer,
    OptionScores,
    number_format,
)
from climassay.models.encoders import CachedEncoder
from climassay.models.provider import is_served
from climassay.prompts import parameters_of, profile_of
from climassay.records import RecordedModel, Records, RequestCounts, Run
from climassay.reporting import counted
from climassay.reporting.results import Result

if TYPE_CHECKING:
    from climassay.factcheck.claims import Checkability
    from climassay.grounding import CollectionGroup
    from climassay.models.servers import Price


CONCURRENCY = 16
"""Debates held side by side: enough to fill the batches of a local model, and not many texts to lose from sight."""
SAMPLE_TEMPERATURE = 0.7
"""Temperature at which the second and further samples of a claim are written."""
OnEvent = Callable[[Claim, Event], None]


@dataclass(frozen=True, slots=True)
class DebateResources:
    """Models and collections of debates, loaded by whoever calls."""

    models: Mapping[str, Generator]
    """By the names that the settings use."""
    collections: "Mapping[str, CollectionGroup]"
    """Each a group of one, by name."""
    prices: "Mapping[str, Price]" = field(default_factory=dict)
    """Prices of the models that have one, for estimates."""
    encoder: Encoder | None = None
    """Attributes sentences and tells what is about climate; by default that of the first collection."""


def models_of(settings: DebateSettings) -> tuple[str, ...]:
    """Names of the models that a debate needs, each once."""
    own = [advocate.model or settings.model for advocate in settings.advocates]
    return tuple(dict.fromkeys([settings.model, settings.mediator.model or settings.model, *own]))


def collections_of(settings: DebateSettings) -> tuple[str, ...]:
    """Names of the collections that a debate needs, each once."""
    return tuple(dict.fromkeys(name for advocate in settings.advocates for name in advocate.collections))


def set_up_debate(settings: DebateSettings, resources: DebateResources, prompts: Path | None = None) -> DebateSetup:
    """Everything that a debate needs; ``prompts`` is a folder of the user's own templates.

    Raises:
        InputError: There is no advocate, or the rules do not go together.
    """
    if not settings.advocates:
        raise InputError("A debate needs an advocate: name a collection (--collection NAME), or --plain.")
    # Everybody is asked as a strong model is, where one of them is strong.
    results = [profile_of(resources.models[name], settings.asked_as) for name in models_of(settings)]
    profile = next((profile for profile in results if profile.name == "strong"), results[0])
    elicitation: Elicitation = "scored" if profile.scored else "schema"
    if settings.mediator.decide == "pool" and elicitation == "schema":
        raise InputError(
            'decide = "pool" needs the probabilities of scored verdicts: use elicitation = "scored" with it.'
        )
    advocates = tuple(
        Advocate(
            replace(
                advocate,
                passages=profile.passages if advocate.passages is None else advocate.passages,
                excerpt_words=profile.excerpt_words if advocate.excerpt_words is None else advocate.excerpt_words,
            ),
            advocate.model or settings.model,
            settings.latest_only,
        )
        for advocate in settings.advocates
    )
    profiles = tuple(
        AdvocateProfile(
            one.name,
            one.settings.kind,
            one.settings.collections,
            one.model,
            resources.models[one.model].fingerprint,
            one.settings.authority,
            _about(one.settings, resources),
            number_format(resources.models[one.model]),
        )
        for one in advocates
    )
    style = settings.mediator.style
    if style == "auto":
        style = "neutral" if any(one.settings.kind == "adversarial" for one in advocates) else "expert"
    config = ElicitationConfig(
        elicitation,
        settings.verdict_first,
        profile.calibrated,
        profile.brief and profile.scored,
        profile.side_check and profile.scored,
        profile.text_tokens,
        settings.temperature,
        settings.seed,
        0 if profile.brief else profile.queries,
    )
    first = next(iter(resources.collections.values()), None)
    encoder = resources.encoder or (first.encoder if first else None)
    return DebateSetup(
        settings,
        load_scale(settings.scale),
        advocates,
        profiles,
        Mediator(
            settings.mediator,
            settings.mediator.model or settings.model,
            style,
            {one.name: one.weight for one in profiles},
            {one.name: one for one in profiles},
        ),
        load_templates(prompts),
        CachedEncoder.of(encoder) if encoder else None,
        config,
        profile_of(resources.models[settings.model], settings.asked_as),
    )


_TITLES = 3
"""Titles of documents that tell what a source is, where nothing else does: those with the most passages."""
_LONGEST_TITLE = 80
"""Characters of each."""


def _about(advocate: AdvocateSettings, resources: DebateResources) -> str:
    """What an advocate's source is, in one line."""
    if advocate.about or advocate.kind == "plain":
        return " ".join(advocate.about.split()) or "the model's own knowledge, without documents"
    kept = [one for name in advocate.collections for one in resources.collections[name].collections[0].documents()]
    passages: Counter[str] = Counter()
    for one in kept:
        title = report_name(" ".join((one.report or one.title).split()), one.source)
        passages[shorten(title, _LONGEST_TITLE, placeholder=" ...")] += one.passages
    titles = [title for title, _ in passages.most_common()]
    shown = "; ".join(titles[:_TITLES])
    return f"{shown} and {len(titles) - _TITLES} more" if len(titles) > _TITLES else shown


class Checker:
    """Checks claims with one set-up; made by :func:`open_checker`.

    Attributes:
        table: Who debates, and how.
        run: Id of the run in the records.
    """

    def __init__(
        self, setup: DebateSetup, exchange: RequestBatcher, models: Mapping[str, RecordedModel], run: Run
    ) -> None:
        self.table = setup
        self.run = run.id
        self._exchange = exchange
        self._models = models
        self._run = run
        self._demonstration = any(profile_of(model).name == "small" for model in models.values())

    @property
    def tallies(self) -> Mapping[str, RequestCounts]:
        """By model: answers from the records, asked, failed, and their usage."""
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
        watch: Watch | None = None,
    ) -> list[Transcript]:
        """Debate claims, several side by side.

        Args:
            claims: Each is debated once; equal claims share their answers through the records.
            samples: Debates a claim; from the second on texts are drawn with another seed, and the transcript, that of
                the first, says how often its verdict came out.
            concurrency: Number of claims debated concurrently.
            force: Debate claims, too, that look as if they could not be checked or were not about climate.
            on_event: Called with the claim and each event of its debate; not for further samples.
            on_done: Called with each transcript as it is finished.
            watch: Called before anything is asked, with what will be; an exception of its own ends the debates there.

        Returns:
            Transcripts in order of the claims.

        Raises:
            InputError: A number is below 1.
        """
        if samples < 1 or concurrency < 1:
            raise InputError("The number of samples and of concurrent debates must be at least 1.")
        refused = [None] * len(claims) if force else self._refused(claims)
        setup = self.table
        if force:
            setup = replace(setup, settings=replace(setup.settings, check_claims=False))
        steps = [
            self._sampled(setup, claim, samples, on_event, given) for claim, given in zip(claims, refused, strict=True)
        ]
        return Scheduler(steps, self._exchange, concurrency, on_done, watch).run()

    def keep(self, transcripts: Sequence[Transcript], published: Mapping[str, str] | None = None) -> None:
        """Store transcripts as results of the run, with the verdicts that people came to, by the claim's id."""
        self._run.save_results("transcript", [as_data(transcript) for transcript in transcripts])
        if published:
            rows = [{"claim": claim, "verdict": verdict} for claim, verdict in published.items()]
            self._run.save_results("published", rows)

    def _sampled(
        self, setup: DebateSetup, claim: Claim, samples: int, on_event: OnEvent, refused: Transcript | None
    ) -> "Steps[Transcript]":
        from climassay.factcheck.fallacies import with_fallacy

        if refused is not None:
            return refused

        tables = [setup]
        for number in range(1, samples):
            seed = setup.config.seed + number
            config = replace(setup.config, temperature=SAMPLE_TEMPERATURE, seed=seed)
            tables.append(replace(setup, config=config))
        debates = [
            debate(claim, tables[0], lambda event: on_event(claim, event)),
            *(debate(claim, t) for t in tables[1:]),
        ]
        transcripts = yield from gather(debates)
        shown = [reader_view(transcript, self.table.scale) for transcript in transcripts]
        first = replace(shown[0], demonstration=self._demonstration)
        first = with_fallacy(first, self.table.scale, self.table.encoder)
        if samples == 1:
            return first
        labels = tuple(transcript.verdict.label for transcript in shown)
        share = Counter(labels).most_common(1)[0][1] / samples
        return replace(first, stability=Stability(samples, labels, share))

    def _refused(self, claims: Sequence[Claim]) -> list[Transcript | None]:
        """Transcripts of the claims that are not to be debated, None for the others; in order."""
        encoder = self.table.encoder
        if not self.table.settings.check_claims or (encoder is None and not self.table.reads_claims):
            return [None] * len(claims)
        from climassay.factcheck.claims import assess_claims, refused_by_rule

        texts = [claim.text for claim in claims]
        # A model that reads the claims decides, when it splits them, what no rule is certain of.
        if self.table.reads_claims or encoder is None:
            result: Sequence[Checkability | None] = [refused_by_rule(text) for text in texts]
        else:
            result = assess_claims(texts, encoder)
        return [
            None if one is None or one.kind == "checkable" else self.table.unchecked(claim, one.kind, one.reason)
            for claim, one in zip(claims, result, strict=True)
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
    """A checker whose answers are recorded as one run.

    Args:
        settings: Who debates, and by which rules.
        resources: Models and collections, loaded.
        store: Where answers and transcripts are kept.
        command: As the user knows it.
        config: What else decides the outcome, for example the file of claims.
        prompts: Folder of the user's own templates.
        use_cache: False asks everything afresh.

    Raises:
        InputError: The settings do not go together.
    """
    setup = set_up_debate(settings, resources, prompts)
    kept = {
        **asdict(settings),
        "prompts": {name: template.sha256 for name, template in setup.templates.items()},
        **(config or {}),
    }
    with store.run(command=command, config=kept, seeds={"sampling": settings.seed}) as run:
        models = {name: RecordedModel(model, store, run, use_cache) for name, model in resources.models.items()}
        exchange = RequestBatcher(
            models,
            resources.collections,
            _entailment_scorer(settings, models, setup),
        )
        yield Checker(setup, exchange, models, run)


def _entailment_scorer(
    settings: DebateSettings, models: Mapping[str, RecordedModel], setup: DebateSetup
) -> EntailmentScorer | None:
    """Return the scorer of P(passage supports sentence), which asks the mediator's model; None if it is off."""
    if not settings.entailment:
        return None
    from climassay.metrics import PromptedEntailment

    return PromptedEntailment(models[setup.mediator.model], encoder=setup.encoder).score


T = TypeVar("T")
SAMPLE = 8
"""Claims that are rehearsed."""
FURTHER_SEQUENCE = 2
"""Calls in a further round by JSON: the advocates, side by side, and the mediator."""
_TIMED = 6
"""Requests of each kind that are timed."""
_CHARACTERS_A_TOKEN = 4.0
_PASSAGE = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Estimate(Result):
    """What one round of debate on every claim takes.

    On top come follow-up rounds, likelihoods of what is held with high confidence, and the measuring of entailment.
    """

    claims: int
    requests: int
    sequence: int
    """Calls that a claim has to wait for one after the other, at most; the others go side by side."""
    further_rounds: int
    """Rounds that may follow the first one."""
    further_sequence: int | None
    """Calls that a claim has to wait for in each of them, at most; None where verdicts are weighed by scores, as then
    it depends on the questions."""
    prompt_tokens: int
    completion_tokens: int
    """At most: texts may end earlier."""
    seconds: float | None = None
    """Measured on a few requests of local models, by earlier answers of others; None where there are none."""
    cost: float | None = None
    """In US dollars; None where no price is known."""

    def lines(self) -> Iterator[str]:
        """What it takes, in words."""
        wait = "time unknown, as the records have no answer of this model"
        if self.seconds is not None:
            minutes, hours = self.seconds / 60, self.seconds / 3600
            wait = f"about {minutes:.0f} minutes" if minutes < 90 else f"about {hours:.1f} hours"
            wait = f"about {self.seconds:.0f} seconds" if self.seconds < 90 else wait
        money = "cost unknown, as no price is given" if self.cost is None else f"at most about ${self.cost:.2f}"
        money = "no cost (local model)" if self.cost == 0 else money
        further = f", and at most {self.further_rounds} more" if self.further_rounds else ""
        if self.further_rounds and self.further_sequence is not None:
            further += f" with at most {counted(self.further_sequence, 'more call')} one after the other in each"
        yield (
            f"{counted(self.claims, 'claim')}, one round{further}. "
            f"The first round: {counted(self.requests, 'call')}, for each claim at most "
            f"{self.sequence} one after the other; {self.prompt_tokens:,} prompt and up to {self.completion_tokens:,} "
            f"completion tokens; {money}; {wait}. Answers that the records have are not asked again."
        )


class _DryRunBatcher(RequestBatcher):
    """Searches for real; every model answers something legal at once and is only counted."""

    def __init__(self, resources: DebateResources, text_tokens: int) -> None:
        super().__init__({}, resources.collections)
        self.options: list[AskOptions] = []
        self.texts: list[AskText] = []
        # No two sentences are the same: repeated ones would be taken out before others read them.
        self._words = " ".join(f"Point x{number} bears on the claim." for number in range(max(1, text_tokens // 8)))

    def answer(self, asks: Sequence[Ask]) -> list[Any]:
        self.options += [ask for ask in asks if isinstance(ask, AskOptions) and not ask.blank]
        self.texts += [ask for ask in asks if isinstance(ask, AskText)]
        result = iter(super().answer([ask for ask in asks if isinstance(ask, AskPassages)]))
        answers: list[Any] = []
        for ask in asks:
            if isinstance(ask, AskPassages):
                answers.append(next(result))
            elif isinstance(ask, AskOptions):
                answers.append(OptionScores(tuple(-float(place) for place in range(len(ask.request.options)))))
            elif isinstance(ask, AskText):
                schema, words = ask.request.schema, self._words
                # What nothing bears is withheld, and nobody would read it: the first passage is cited.
                passage = _PASSAGE.search(ask.request.messages[-1].content)
                words = words if passage is None else f"The passage bears on the claim {passage[0]}. {words}"
                answers.append(Completion(json.dumps(_legal(schema, words)) if schema else words, "stop"))
            else:
                answers.append(0.5)
        return answers


def _waits(steps: Steps[T], waits: list[int]) -> Steps[T]:
    """The same steps; how often they wait for a model is added to the list when they end."""
    answers: list[Any] | None = None
    count = 0
    try:
        while True:
            asks = next(steps) if answers is None else steps.send(answers)
            count += any(isinstance(ask, AskOptions | AskText) for ask in asks)
            answers = yield asks
    except StopIteration as end:
        waits.append(count)
        result: T = end.value
        return result


def _legal(schema: Mapping[str, Any], words: str) -> Any:
    """Something that satisfies a schema of ours."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "integer":
        return schema.get("minimum", 1)
    if schema["type"] == "object":
        return {name: _legal(part, words) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [_legal(schema["items"], words) for _ in range(schema.get("minItems", 0))]
    return words[: schema.get("maxLength")]


def estimate_debate(
    setup: DebateSetup,
    resources: DebateResources,
    claims: Sequence[Claim],
    samples: int = 1,
    pace: Callable[[str], float | None] = lambda _: None,
) -> Estimate:
    """Count one round on a spread of the claims, and scale it to all; local models are timed on a few requests.

    ``pace`` gives the seconds per answer of another model, by its name; None where that is not known.
    """
    sample = _spread(claims, SAMPLE)
    short = replace(setup, settings=replace(setup.settings, rounds=1, entailment=False))
    rehearsal = _DryRunBatcher(resources, setup.config.text_tokens)
    waits: list[int] = []
    steps = gather([_waits(debate(claim, short), waits) for claim in sample])
    answers: list[Any] | None = None
    try:
        while True:
            asks = next(steps) if answers is None else steps.send(answers)
            answers = rehearsal.answer(asks)
    except StopIteration:
        pass
    scale = samples * len(claims) / len(sample)
    prompts: list[OptionRequest | GenerationRequest] = [ask.request for ask in rehearsal.options]
    prompts += [ask.request for ask in rehearsal.texts]
    prompt_tokens = sum(_tokens(request) for request in prompts)
    completion_tokens = sum(_most(ask.request, setup) for ask in rehearsal.texts)
    seconds: float | None = 0.0
    for name, model in resources.models.items():
        options = [ask.request for ask in rehearsal.options if ask.model == name]
        texts = [ask.request for ask in rehearsal.texts if ask.model == name]
        if parameters_of(model) is not None and isinstance(model, OptionScorer):
            # Local models are asked a few of the requests.
            took: float | None = _timed(options, model.option_logprobs) + _timed(texts, model.generate)
        elif (each := pace(name)) is not None:
            took = each * (len(options) + len(texts))
        else:
            took = None
        seconds = None if seconds is None or took is None else seconds + took
    cost, prices = None, resources.prices
    if all(name in prices or not is_served(name) for name in resources.models):
        paid = [(ask, 1) for ask in rehearsal.options] + [(ask, _most(ask.request, setup)) for ask in rehearsal.texts]
        cost = sum(prices[ask.model].cost(_tokens(ask.request), most) for ask, most in paid if ask.model in prices)
    return Estimate(
        len(claims),
        round(scale * len(prompts)),
        max(waits),
        setup.settings.rounds - 1,
        FURTHER_SEQUENCE if setup.config.elicitation == "schema" else None,
        round(scale * prompt_tokens),
        round(scale * completion_tokens),
        None if seconds is None else scale * seconds,
        None if cost is None else scale * cost,
    )


def _spread(things: Sequence[T], most: int) -> list[T]:
    """At most so many, at even distances."""
    count = min(most, len(things))
    return [things[place * len(things) // count] for place in range(count)]


def _tokens(request: OptionRequest | GenerationRequest) -> int:
    characters = sum(len(message.content) for message in request.messages) + len(request.assistant_prefix)
    return round(characters / _CHARACTERS_A_TOKEN)


def _most(request: GenerationRequest, setup: DebateSetup) -> int:
    return request.sampling.max_tokens or 3 * setup.config.text_tokens


def _timed(requests: Sequence[T], ask: Callable[[Sequence[T]], object]) -> float:
    """Seconds that all requests would take, from a spread of them; the first one only warms up."""
    if not requests:
        return 0.0
    timed = _spread(requests, _TIMED)
    ask(timed[:1])
    before = time.perf_counter()
    ask(timed)
    return (time.perf_counter() - before) * len(requests) / len(timed)
