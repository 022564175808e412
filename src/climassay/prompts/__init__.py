"""Prompt templates, which users can override by files, and profiles of prompting by model size.

A template is a text file of Jinja2 in which a line ``[system]``, ``[user]`` or ``[assistant]`` starts a message. An
``[assistant]`` message at the end is the start of the answer, which the model continues. To change a prompt, put a file
of the same name into a folder and give that folder to the command (``--prompts``) or to :func:`load_prompt`;
``climassay prompts export FOLDER`` writes all of them out as a start.

Settings that help a model of 135 million parameters (short prompts, truncated passages, calibration by content-free
prompts) harm large models. :func:`profile_of` chooses the profile by the model's size; a configuration file can change
each entry (``[profile]``).
"""

import hashlib
import re
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from climassay.settings import settings
from climassay.errors import InputError
from climassay.io import read_text, reason, write_file
from climassay.models.contract import Generator, Message, Role, unwrap_model
from climassay.questions.types import FOLDER as TYPES_FOLDER

ProfileName = Literal["small", "strong"]
STRONG_PARAMETERS = 3_000_000_000
"""Minimum number of parameters of a strong model; models of unknown size, such as servers' models, are strong too."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Settings of the prompts for one size of model; :class:`ProfileSettings` describes the fields."""

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
        """Return the token limit of a short answer: ``tokens`` for a small model, at least ``text_tokens`` for others.

        Small models often generate up to the limit; strong models stop by themselves.
        """
        return tokens if self.name == "small" else max(tokens, self.text_tokens)


SMALL = Profile("small", True, True, True, True, 120, 80, 60, 0, False, 4)
STRONG = Profile("strong", False, False, False, False, 0, 400, 120, 3, True, 8)
PROFILES = {profile.name: profile for profile in (SMALL, STRONG)}


@settings
class ProfileSettings:
    """Settings of the prompts in a configuration file; unset entries depend on the model's size."""

    name: Literal["auto", "small", "strong"] = "auto"
    """auto goes by size: strong from 3 billion parameters and behind a server, else small."""
    brief: Annotated[bool | None, Field(examples=[True])] = None
    """Short prompts, which leave out the rules that code can serve."""
    scored: Annotated[bool | None, Field(examples=[True])] = None
    """Verdicts and levels by the options' probabilities, not by one JSON answer."""
    calibrated: Annotated[bool | None, Field(examples=[True])] = None
    """Correct these probabilities by a prompt without content."""
    side_check: Annotated[bool | None, Field(examples=[True])] = None
    """Ask which side an explanation takes: a check on models that contradict themselves."""
    excerpt_words: Annotated[int | None, Field(examples=[120])] = None
    """Words of each passage, in the sentences nearest to the question; 0: the whole passage."""
    text_tokens: Annotated[int | None, Field(examples=[80])] = None
    """Maximum number of tokens of a draft, an explanation or a reply."""
    sentence_tokens: Annotated[int | None, Field(examples=[60])] = None
    """Maximum number of tokens per sentence, if a prompt asks for a number of sentences."""
    queries: Annotated[int | None, Field(examples=[3])] = None
    """Maximum number of search queries per statement of a claim; 0: the statement alone."""
    grade_passages: Annotated[bool | None, Field(examples=[True])] = None
    """Grade passages, and put only those that bear on the claim before the advocates."""
    passages: Annotated[int | None, Field(examples=[8])] = None
    """Passages put before an advocate at a time."""


def parameters_of(model: Generator) -> int | None:
    """Return the number of parameters of a model, which may be wrapped; None if unknown."""
    n_parameters: int | None = getattr(unwrap_model(model), "parameters", None)
    return n_parameters


def profile_of(model: Generator, settings: ProfileSettings | None = None) -> Profile:
    """Return the profile for a model's number of parameters, with the user's settings applied."""
    settings = settings or ProfileSettings()
    n_parameters = parameters_of(model)
    is_small = n_parameters is not None and n_parameters < STRONG_PARAMETERS
    profile = PROFILES[settings.name] if settings.name != "auto" else SMALL if is_small else STRONG
    entries = {entry.name: getattr(settings, entry.name) for entry in fields(settings) if entry.name != "name"}
    return replace(profile, **{name: value for name, value in entries.items() if value is not None})


DEMONSTRATION = (
    "A very small language model made this. It demonstrates how this works and is not to be relied on: for real "
    "work, use a strong model."
)
"""Note on what a model with the profile ``small`` wrote."""

_FOLDER = Path(__file__).parent
_SUFFIX = ".prompt"
_ROLE_LINE = re.compile(r"^\[(system|user|assistant)\][ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """Messages of a filled-in template, and the start of the model's answer."""

    messages: tuple[Message, ...]
    assistant_prefix: str = ""


@dataclass(frozen=True)
class Prompt:
    """Template of one or more messages."""

    name: str
    source: str
    """Text of the template."""
    origin: str
    """Origin of the template: ``built in``, or the path of the user's file."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the template's text."""
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
        """Fill in the template with values.

        Values can never start a message, since messages are split before values are inserted.

        Raises:
            InputError: The template is invalid or uses a missing value.
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
        return RenderedPrompt(tuple(message for message in messages if message.content.strip()))


def prompt_names() -> list[str]:
    """Return the names of the built-in prompts."""
    return sorted(_paths_by_name())


@cache
def _paths_by_name() -> dict[str, Path]:
    paths = (*_FOLDER.glob(f"*{_SUFFIX}"), *TYPES_FOLDER.glob(f"*/*{_SUFFIX}"))
    return {path.stem: path for path in paths}


def load_prompt(name: str, overrides: Path | None = None) -> Prompt:
    """Load a prompt, from the folder ``overrides`` if it has a file of that name.

    Raises:
        InputError: The prompt or the folder does not exist, or the file cannot be read.
    """
    file_name = name + _SUFFIX
    if overrides is not None:
        if not overrides.is_dir():
            raise InputError(f"The prompt folder {overrides} does not exist.")
        path = overrides / file_name
        if path.is_file():
            try:
                return Prompt(name, read_text(path), str(path))
            except UnicodeDecodeError as error:
                raise InputError(
                    f"The prompt {path} is not UTF-8 text (byte {error.start}): save it as UTF-8."
                ) from None
            except OSError as error:
                raise InputError(f"The prompt {path} cannot be read: {reason(error)}.") from None
    if name not in prompt_names():
        raise InputError(f"There is no prompt {name!r}: there are {', '.join(prompt_names())}.")
    return Prompt(name, _paths_by_name()[name].read_text(encoding="utf-8"), "built in")


def export_prompts(folder: Path) -> list[Path]:
    """Write every built-in prompt to a folder, without changing existing files.

    Returns:
        Paths of the written files.

    Raises:
        InputError: The folder cannot be written to.
    """
    written = []
    for name in prompt_names():
        target = folder / (name + _SUFFIX)
        if not target.exists():
            write_file(target, _paths_by_name()[name].read_bytes())
            written.append(target)
    return written
