"""How a model is asked: a profile for strong models, which is the usual one, and one for very small ones.

What helps a model of 135 million parameters (short prompts, cut passages, correction by content-free prompts) harms a
model that can read and reason. Which profile a model gets is decided once, here, by its size; a configuration file may
set each entry otherwise (``[profile]``).
"""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal

from pydantic import Field

from climassay.models.contract import Generator, unwrapped

ProfileName = Literal["small", "strong"]
STRONG_PARAMETERS = 3_000_000_000
"""Parameters from which a model is strong; models that do not tell, such as those behind a server, are as well."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How a model is asked: what :class:`ProfileSettings` describes, with every entry decided."""

    name: ProfileName
    brief: bool
    scored: bool
    calibrated: bool
    side_check: bool
    excerpt_words: int
    text_tokens: int
    sentence_tokens: int
    queries: int
    grade_passages: bool
    passages: int

    def room(self, tokens: int) -> int:
        """Limit of a short answer: ``tokens`` for a small model, which would go on without end.

        A strong one stops by itself, and its limit is a safeguard.
        """
        return tokens if self.name == "small" else max(tokens, self.text_tokens)


SMALL = Profile("small", True, True, True, True, 120, 80, 60, 0, False, 4)
STRONG = Profile("strong", False, False, False, False, 0, 400, 120, 3, True, 8)
PROFILES = {profile.name: profile for profile in (SMALL, STRONG)}


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """A profile as a configuration file sets it: by name, or entry by entry; what is not set follows the model."""

    name: Annotated[
        Literal["auto", "small", "strong"],
        Field(description="auto goes by size: strong from 3 billion parameters and behind a server, else small."),
    ] = "auto"
    brief: Annotated[
        bool | None,
        Field(description="Short prompts, which leave out the rules that code can serve.", examples=[True]),
    ] = None
    scored: Annotated[
        bool | None,
        Field(
            description="Verdicts and levels by the options' probabilities, not by one JSON answer.", examples=[True]
        ),
    ] = None
    calibrated: Annotated[
        bool | None,
        Field(description="Correct these probabilities by a prompt without content.", examples=[True]),
    ] = None
    side_check: Annotated[
        bool | None,
        Field(
            description="Ask which side an explanation takes: a check on models that contradict themselves.",
            examples=[True],
        ),
    ] = None
    excerpt_words: Annotated[
        int | None,
        Field(
            description="Words of each passage, in the sentences nearest to the question; 0: the whole passage.",
            examples=[120],
        ),
    ] = None
    text_tokens: Annotated[
        int | None, Field(description="Maximum number of tokens of a draft, an explanation or a reply.", examples=[80])
    ] = None
    sentence_tokens: Annotated[
        int | None,
        Field(
            description="Maximum number of tokens per sentence, where a number of sentences is asked for.",
            examples=[60],
        ),
    ] = None
    queries: Annotated[
        int | None,
        Field(
            description="Maximum number of search queries per statement of a claim; 0: the statement alone.",
            examples=[3],
        ),
    ] = None
    grade_passages: Annotated[
        bool | None,
        Field(
            description="Grade passages, and put only those that bear on the claim before the advocates.",
            examples=[True],
        ),
    ] = None
    passages: Annotated[
        int | None,
        Field(description="Passages put before an advocate at a time.", examples=[8]),
    ] = None


def parameters_of(model: Generator) -> int | None:
    """How many parameters a model, looked through where it is wrapped, tells; None behind a server."""
    found: int | None = getattr(unwrapped(model), "parameters", None)
    return found


def profile_of(model: Generator, settings: ProfileSettings | None = None) -> Profile:
    """How a model is asked: as a small one where it tells that it has fewer than :data:`STRONG_PARAMETERS` parameters.

    What the user has set goes before.
    """
    given = settings or ProfileSettings()
    parameters = parameters_of(model)
    small = parameters is not None and parameters < STRONG_PARAMETERS
    profile = PROFILES[given.name] if given.name != "auto" else SMALL if small else STRONG
    entries = {entry.name: getattr(given, entry.name) for entry in fields(given) if entry.name != "name"}
    return replace(profile, **{name: value for name, value in entries.items() if value is not None})
