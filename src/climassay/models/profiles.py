"""How a model is asked: a profile for strong models, which is the usual one, and one for very small ones.

What helps a model of 135 million parameters (short prompts, cut passages, correction by content-free prompts) harms a
model that can read and reason. Which profile a model gets is decided once, here, by its size; a configuration file may
set each entry otherwise (``[profile]``).
"""

from dataclasses import dataclass, fields, replace
from typing import Literal

from climassay.models.contract import Generator, unwrapped

ProfileName = Literal["small", "strong"]
STRONG_PARAMETERS = 3_000_000_000
"""Parameters from which a model is strong; models that do not tell, such as those behind a server, are as well."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How a model is asked."""

    name: ProfileName
    brief: bool
    """Whether it gets short prompts, which leave out the rules that code can serve."""
    scored: bool
    """Whether verdicts and levels are read off option probabilities instead of one JSON answer."""
    calibrated: bool
    """Whether option probabilities are corrected by a content-free prompt. Generated answers never are."""
    side_check: bool
    """Whether it is asked which side an explanation takes: a check on models that contradict themselves."""
    excerpt_words: int
    """Words of each passage put before it, the sentences nearest to the question; 0 gives passages whole."""
    text_tokens: int
    """Room for a draft, an explanation or a reply."""
    sentence_tokens: int
    """Room for each sentence of an answer that is asked for a number of sentences."""
    queries: int
    """Maximum number of search queries it writes per statement of a claim; 0: only the statement is searched for."""
    grade_passages: bool
    """Whether it grades the passages found for a claim before they are put before the advocates."""
    passages: int
    """Passages put before an advocate at a time; the figures are in docs/results/claim_retrieval.md."""

    def room(self, tokens: int) -> int:
        """Limit of a short answer.

        Args:
            tokens: For a small model, which would go on without end; a strong one stops by itself, and its limit is a
                safeguard.
        """
        return tokens if self.name == "small" else max(tokens, self.text_tokens)


SMALL = Profile("small", True, True, True, True, 120, 80, 60, 0, False, 4)
STRONG = Profile("strong", False, False, False, False, 0, 400, 120, 3, True, 8)
PROFILES = {profile.name: profile for profile in (SMALL, STRONG)}


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """A profile as a configuration file sets it: by name, or entry by entry; what is not set follows the model."""

    name: Literal["auto", "small", "strong"] = "auto"
    """``auto`` goes by the size of the model."""
    brief: bool | None = None
    scored: bool | None = None
    calibrated: bool | None = None
    side_check: bool | None = None
    excerpt_words: int | None = None
    text_tokens: int | None = None
    sentence_tokens: int | None = None
    queries: int | None = None
    grade_passages: bool | None = None
    passages: int | None = None


def parameters_of(model: Generator) -> int | None:
    """How many parameters a model, looked through where it is wrapped, tells; None behind a server."""
    found: int | None = getattr(unwrapped(model), "parameters", None)
    return found


def profile_of(model: Generator, settings: ProfileSettings | None = None) -> Profile:
    """How a model is asked.

    Args:
        model: ``small`` where it tells that it has fewer than :data:`STRONG_PARAMETERS` parameters.
        settings: What the user has set; nothing by default.
    """
    given = settings or ProfileSettings()
    parameters = parameters_of(model)
    small = parameters is not None and parameters < STRONG_PARAMETERS
    profile = PROFILES[given.name] if given.name != "auto" else SMALL if small else STRONG
    entries = {entry.name: getattr(given, entry.name) for entry in fields(given) if entry.name != "name"}
    return replace(profile, **{name: value for name, value in entries.items() if value is not None})
