"""Prompt templates, which users can override by files, and profiles: how much fits into a model's prompts and answers.

A template is a text file of Jinja2 in which a line ``[system]``, ``[user]`` or ``[assistant]`` starts a message. An
``[assistant]`` message at the end is the start of the answer, which the model continues. To change a prompt, put a file
of the same name into a folder and give that folder to the command (``--prompts``) or to :func:`load_prompt`;
``climassay prompts export FOLDER`` writes all of them out as a start.
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
from climassay.io import read_text, describe_error, write_file
from climassay.models.contract import Generator, Message, Role, unwrap_model
from climassay.questions.types import FOLDER as TYPES_FOLDER

ProfileName = Literal["small", "strong"]
STRONG_PARAMETERS = 3_000_000_000
"""Minimum number of parameters of a strong model; models of unknown size, such as models behind servers, count as
strong."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Limits of the prompts and answers of small or strong models."""

    name: ProfileName
    passages: int
    """Maximum number of passages in a prompt of an advocate."""
    excerpt_words: int
    """Maximum number of words of each passage; of longer passages, only the sentences most similar to the claim are
    used. 0 for no limit."""
    text_tokens: int
    """Maximum number of tokens of a draft, a quotation, an explanation or a reply."""
    sentence_tokens: int
    """Maximum number of tokens per sentence, for prompts that ask for a number of sentences."""
    queries: int
    """Maximum number of search queries per statement of a claim; with 0, the statement itself is the only query."""
    grade_passages: bool
    """Whether passages are graded; advocates then get only passages relevant to the claim."""

    def limit_answer_tokens(self, tokens: int) -> int:
        """Return the maximum number of tokens of a short answer.

        It is ``tokens`` for a small model, which often generates up to the limit. For a strong model, which stops by
        itself, it is at least ``text_tokens``.
        """
        return tokens if self.name == "small" else max(tokens, self.text_tokens)


SMALL = Profile("small", 4, 120, 80, 60, 0, False)
STRONG = Profile("strong", 8, 0, 400, 120, 3, True)
PROFILES = {profile.name: profile for profile in (SMALL, STRONG)}


@settings
class ProfileSettings:
    """Limits of the prompts in a configuration file; entries that are not set depend on the size of the model."""

    name: Literal["auto", "small", "strong"] = "auto"
    """Name of the profile; auto chooses strong for models behind a server and from 3 billion parameters on, else
    small."""
    text_tokens: Annotated[int | None, Field(ge=1, examples=[80])] = None
    """Maximum number of tokens of a draft, a quotation, an explanation or a reply."""
    queries: Annotated[int | None, Field(ge=0, examples=[3])] = None
    """Maximum number of search queries per statement of a claim; with 0, the statement itself is the only query."""
    grade_passages: Annotated[bool | None, Field(examples=[True])] = None
    """Whether passages are graded; advocates then get only passages relevant to the claim."""


def count_parameters(model: Generator) -> int | None:
    """Return the number of parameters of a model, which may be wrapped; None if it is unknown."""
    n_parameters: int | None = getattr(unwrap_model(model), "parameters", None)
    return n_parameters


def profile_of(model: Generator, settings: ProfileSettings | None = None) -> Profile:
    """Return the profile for a model's size, with the entries that the user's settings override."""
    settings = settings or ProfileSettings()
    n_parameters = count_parameters(model)
    is_small = n_parameters is not None and n_parameters < STRONG_PARAMETERS
    profile = PROFILES[settings.name] if settings.name != "auto" else SMALL if is_small else STRONG
    entries = {entry.name: getattr(settings, entry.name) for entry in fields(settings) if entry.name != "name"}
    return replace(profile, **{name: value for name, value in entries.items() if value is not None})


DEMONSTRATION = (
    "A very small language model made this. It demonstrates how this works and is not to be relied on: for real "
    "work, use a strong model."
)
"""Note that is shown with texts by a model with the profile ``small``."""

_FOLDER = Path(__file__).parent
_SUFFIX = ".prompt"
_ROLE_LINE = re.compile(r"^\[(system|user|assistant)\][ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """Rendered template: its messages, and the prefix with which the model's answer begins."""

    messages: tuple[Message, ...]
    assistant_prefix: str = ""


@dataclass(frozen=True)
class Prompt:
    """Template of a prompt, which has one or more messages."""

    name: str
    source: str
    """Source text of the template."""
    origin: str
    """Origin of the template: ``built in``, or the path of a user's file."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the template's source text, as hexadecimal digits."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @cached_property
    def _parts(self) -> list[tuple[Role, Any]]:
        from jinja2 import StrictUndefined, TemplateSyntaxError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        # Templates may come from other people's folders: the sandbox keeps them from running code and changing values.
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        sections = _ROLE_LINE.split(self.source)
        if len(sections) < 3 or sections[0].strip():
            raise InputError(f"The prompt {self.name} ({self.origin}) must begin with a line [system] or [user].")
        try:
            return [
                (cast(Role, role), environment.from_string(text.strip("\n")))
                for role, text in zip(sections[1::2], sections[2::2], strict=True)
            ]
        except TemplateSyntaxError as error:
            raise InputError(
                f"The prompt {self.name} ({self.origin}) is not a valid template: {error.message}."
            ) from error

    def render(self, **values: Any) -> RenderedPrompt:
        """Render the template with values.

        A value can never begin a new message, because the template is split into messages before values are inserted.

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
    """Return the names of all built-in prompts."""
    return sorted(_find_prompt_files())


@cache
def _find_prompt_files() -> dict[str, Path]:
    paths = (*_FOLDER.glob(f"*{_SUFFIX}"), *TYPES_FOLDER.glob(f"*/*{_SUFFIX}"))
    return {path.stem: path for path in paths}


def load_prompt(name: str, overrides: Path | None = None) -> Prompt:
    """Load a prompt by name: from the folder ``overrides`` if it contains the prompt, else the built-in prompt.

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
                raise InputError(f"The prompt {path} cannot be read: {describe_error(error)}.") from None
    if name not in prompt_names():
        raise InputError(f"There is no prompt {name!r}: there are {', '.join(prompt_names())}.")
    return Prompt(name, _find_prompt_files()[name].read_text(encoding="utf-8"), "built in")


def export_prompts(folder: Path) -> list[Path]:
    """Write all built-in prompts to a folder, without overwriting existing files.

    Returns:
        Paths of the written files.

    Raises:
        InputError: The folder cannot be written to.
    """
    paths = []
    for name in prompt_names():
        target = folder / (name + _SUFFIX)
        if not target.exists():
            write_file(target, _find_prompt_files()[name].read_bytes())
            paths.append(target)
    return paths
