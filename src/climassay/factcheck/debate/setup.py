"""Participants and settings of debates, the same for any number of claims."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from climassay.factcheck.configuration import AdvocateSettings, DebateSettings
from climassay.factcheck.debate.requests import SearchRequest
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import AdvocateProfile, Claim, Outcome, Transcript, Verdict
from climassay.models.contract import Encoder, Sampling
from climassay.prompts import STRONG, Profile, Prompt


@dataclass(frozen=True, slots=True)
class Advocate:
    """Advocate of a debate: its settings and its model."""

    settings: AdvocateSettings
    model: str
    """Name of the model."""
    latest_only: bool = False
    """Whether the advocate searches only the latest edition of each document."""

    @property
    def name(self) -> str:
        """Name used by the other participants."""
        return self.settings.name

    @property
    def is_plain(self) -> bool:
        """Whether the advocate has no collections and uses the model's own knowledge."""
        return self.settings.kind == "plain"

    @property
    def passages(self) -> int:
        """Maximum number of passages in a prompt."""
        return self.settings.passages or STRONG.passages

    def search(self, query: str) -> SearchRequest:
        """Return a request to search the advocate's collections."""
        settings = self.settings
        return SearchRequest(
            settings.collections,
            query,
            self.passages,
            settings.excerpt_words or 0,
            settings.rerank,
            self.latest_only,
            settings.min_cosine,
        )


@dataclass(frozen=True, slots=True)
class Mediator:
    """Mediator of a debate."""

    model: str
    """Name of the model."""
    style: str
    """``expert`` or ``neutral``."""


@dataclass(frozen=True, slots=True)
class DebateSetup:
    """Participants and settings of debates about any number of claims."""

    settings: DebateSettings
    scale: Scale
    advocates: tuple[Advocate, ...]
    profiles: Mapping[str, AdvocateProfile]
    """Profiles of the advocates by name, in the order of the advocates."""
    mediator: Mediator
    templates: Mapping[str, Prompt]
    """Templates of the prompts by role."""
    encoder: Encoder | None
    """Encoder that attributes sentences to passages and screens claims; None disables both."""
    profile: Profile = STRONG
    """Limits of the prompts, which depend on the size of the debate's model."""
    read_window: Callable[[str], int | None] = lambda _: None
    """Function that takes a model's name and returns its context length in tokens; None if it is not known yet."""

    @property
    def reads_claims(self) -> bool:
        """Whether the model that splits a claim also decides if it can be checked; a small model does not."""
        return self.settings.split == "model" and self.profile.name == "strong"

    @property
    def sampling(self) -> Sampling:
        """Sampling of the participants' answers, whose length the schema limits."""
        return Sampling(None, self.settings.temperature, seed=self.settings.seed)

    @property
    def n_calls_of_one_round(self) -> int:
        """Maximum number of model calls in a debate of one round."""
        return (self.settings.split == "model") + self.profile.grade_passages + len(self.advocates) + 1

    def make_transcript(self, claim: Claim, verdict: Verdict) -> Transcript:
        """Return a transcript that has a verdict but no rounds of debate."""
        mediator = f"{self.mediator.style}, {self.mediator.model}"
        return Transcript(claim, self.scale.name, tuple(self.profiles.values()), mediator, (), (), verdict, ())

    def refused_transcript(self, claim: Claim, outcome: Outcome, reason: str) -> Transcript:
        """Return the transcript of a claim that is refused as not checkable or not about climate."""
        return self.make_transcript(claim, Verdict(outcome, None, claim.text, caveats=(reason,)))
