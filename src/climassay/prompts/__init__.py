"""How a model is asked: every prompt template, as files that a user can override, and the profile of its size.

A template is a text file of Jinja2 in which a line ``[system]``, ``[user]`` or ``[assistant]`` starts a message. An
``[assistant]`` message at the end is the start of the answer that the model continues. To change a prompt, put a file
of the same name into a folder and give that folder to the command (``--prompts``) or to :func:`load_prompt`;
``climassay prompts export FOLDER`` writes all of them out as a start.

What helps a model of 135 million parameters (short prompts, cut passages, correction by content-free prompts) harms a
model that can read and reason. Which profile a model gets is decided once, in :func:`profile_of`, by its size; a
configuration file may set each entry otherwise (``[profile]``).
"""

import hashlib
import re
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from climassay.errors import InputError
from climassay.io import read_text, reason, write_file
from climassay.models.contract import Generator, Message, Role, unwrapped
from climassay.questions.types import FOLDER as TYPES_FOLDER

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
    result: int | None = getattr(unwrapped(model), "parameters", None)
    return result


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


_FOLDER = Path(__file__).parent
_SUFFIX = ".prompt"
_ROLE_LINE = re.compile(r"^\[(system|user|assistant)\][ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """Messages ready for a model."""

    messages: tuple[Message, ...]
    assistant_prefix: str = ""


@dataclass(frozen=True)
class Prompt:
    """A template of one or more messages."""

    name: str
    source: str
    """Text of the template."""
    origin: str
    """``built in`` or the file it was read from."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the template's text; kept with every run."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @cached_property
    def _parts(self) -> list[tuple[Role, Any]]:
        from jinja2 import StrictUndefined, TemplateSyntaxError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        # Templates may come from other people's folders: the sandbox keeps them from running code and changing values.
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        pieces = _ROLE_LINE.split(self.source)
        if len(pieces) < 3 or pieces[0].strip():
            raise InputError(f"The prompt {self.name} ({self.origin}) must begin with a line [system] or [user].")
        try:
            return [
                (cast(Role, role), environment.from_string(text.strip("\n")))
                for role, text in zip(pieces[1::2], pieces[2::2], strict=True)
            ]
        except TemplateSyntaxError as error:
            raise InputError(
                f"The prompt {self.name} ({self.origin}) is not a valid template: {error.message}."
            ) from error

    def render(self, **values: Any) -> RenderedPrompt:
        """Fill the template in.

        What is filled in can never start a message of its own: roles are split before values are inserted.

        Raises:
            InputError: The template is not valid or names a value that is not given.
        """
        from jinja2 import TemplateError

        messages = []
        try:
            for role, template in self._parts:
                messages.append(Message(role, template.render(**values)))
        except TemplateError as error:
            raise InputError(f"The prompt {self.name} ({self.origin}) cannot be filled in: {error}.") from error
        if messages[-1].role == "assistant":
            return RenderedPrompt(tuple(messages[:-1]), messages[-1].content)
        kept = tuple(message for message in messages if message.content.strip())
        return RenderedPrompt(kept)


def prompt_names() -> list[str]:
    """Names of the built-in prompts."""
    return sorted(_files())


@cache
def _files() -> dict[str, Path]:
    results = (*_FOLDER.glob(f"*{_SUFFIX}"), *TYPES_FOLDER.glob(f"*/*{_SUFFIX}"))
    return {path.stem: path for path in results}


def load_prompt(name: str, overrides: Path | None = None) -> Prompt:
    """Load a prompt, the user's own where the folder ``overrides`` has one of that name.

    Raises:
        InputError: There is no such prompt, or the folder does not exist.
    """
    file = name + _SUFFIX
    if overrides is not None:
        if not overrides.is_dir():
            raise InputError(f"The prompt folder {overrides} does not exist.")
        own = overrides / file
        if own.is_file():
            try:
                return Prompt(name, read_text(own), str(own))
            except UnicodeDecodeError as error:
                raise InputError(
                    f"The prompt {own} is not UTF-8 text (byte {error.start}): save it as UTF-8."
                ) from None
            except OSError as error:
                raise InputError(f"The prompt {own} cannot be read: {reason(error)}.") from None
    if name not in prompt_names():
        raise InputError(f"There is no prompt {name!r}: there are {', '.join(prompt_names())}.")
    return Prompt(name, _files()[name].read_text(encoding="utf-8"), "built in")


def export_prompts(folder: Path) -> list[Path]:
    """Write every built-in prompt into a folder, leaving files that are already there alone.

    Returns:
        The files written.

    Raises:
        InputError: The folder cannot be written to.
    """
    written = []
    for name in prompt_names():
        target = folder / (name + _SUFFIX)
        if not target.exists():
            write_file(target, _files()[name].read_bytes())
            written.append(target)
    return written
