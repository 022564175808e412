"""Entry point of the ``climassay`` command, and the groups that commands stand in.

A module of commands is imported when one of them is used (:class:`LazyCommands`), so that ``climassay --help`` answers
at once; what is heavier than its settings is imported inside the commands.
"""

import errno
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from climassay import __version__
from climassay.errors import ClimassayError
from climassay.redaction import without_secrets
from climassay.workspace import restrict_to_user


class LazyCommands(dict[str, Any]):
    """The commands of a group by name, each imported when it is first asked for.

    Args:
        places: By name, ``module:attribute`` within this package, and the sentence that says what the command is for.
    """

    def __init__(self, places: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(dict.fromkeys(places))
        self._places = places

    def __getitem__(self, name: str) -> Any:
        """The command, as click runs it."""
        made = super().__getitem__(name)
        if made is None:
            place, words = self._places[name]
            module, _, attribute = place.partition(":")
            result = getattr(import_module(f"climassay.cli.{module}"), attribute)
            if isinstance(result, typer.Typer):
                own = result.info.cls
                cls = own if isinstance(own, type) else WholeHelpGroup
                info = TyperInfo(result, name=name, cls=cls, help=words)
                made = get_group_from_info(
                    info, pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None
                )
            else:
                made = get_command_from_info(
                    CommandInfo(name, callback=result), pretty_exceptions_short=True, rich_markup_mode=None
                )
            tidy_help(made)
            self[name] = made
        return made

    def get(self, name: str, default: Any = None) -> Any:
        """The command, or another value where none has this name."""
        return self[name] if name in self else default  # noqa: SIM401

    def values(self) -> Any:
        """Every command."""
        return [self[name] for name in self]

    def items(self) -> Any:
        """Every command with its name."""
        return [(name, self[name]) for name in self]


class WholeHelpGroup(TyperGroup):
    """A group of commands whose help shows the first sentence of each, whole, under headings where there are some."""

    headings: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Names of commands by heading; without any, all appear under "Commands" in the order of their definition."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write a list of commands for each heading, with the same indentation."""
        helps = self.short_helps()
        widest = max(map(len, helps))
        for heading, names in (self.headings or {"Commands": tuple(helps)}).items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), helps[name]) for name in names])

    def short_helps(self) -> dict[str, str]:
        """The first sentence about each command that is not hidden."""
        return {
            name: command.get_short_help_str(10_000) for name, command in self.commands.items() if not command.hidden
        }


class DefaultCommandGroup(WholeHelpGroup):
    """A group that hands arguments which begin with none of its commands' names to one of them."""

    default: ClassVar[str]
    """Its name."""
    first: ClassVar[tuple[str, ...]] = ()
    """Arguments that go before those given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that name none."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [self.default, *self.first, *args]
        return super().parse_args(ctx, args)


def tidy_help(command: Any) -> None:
    """Write arguments in capitals in help.

    Args:
        command: A command or a group, as click runs it.
    """
    parts = getattr(command, "commands", {})
    for part in () if isinstance(parts, LazyCommands) else parts.values():
        tidy_help(part)
    for option in command.params:
        if option.param_type_name == "argument":
            option.metavar = option.metavar or option.name.upper()


HEADINGS: dict[str, dict[str, tuple[str, str]]] = {
    "First steps": {
        "demo": (
            "first_steps:demo",
            "Show what climassay does, on the bundled model and books.",
        ),
        "doctor": (
            "first_steps:doctor",
            "Report what is missing or broken here, and how to fix it.",
        ),
    },
    "Ask documents, check claims": {
        "corpus": ("corpus:app", "Build collections of documents, search and measure the search."),
        "ask": (
            "corpus:ask",
            "Answer a question from your collections, with citations.",
        ),
        "check": (
            "factcheck:check",
            "Check a claim in a debate of advocates, with a cited verdict.",
        ),
        "check-text": (
            "corpus:check_text",
            "Check a text, sentence by sentence, against your collections.",
        ),
        "factcheck": ("factcheck:app", "Check the claims of a file in debates, and score verdicts."),
    },
    "Measure language models": {
        "evaluate": ("evaluate:app", "Measure a model on a benchmark."),
        "metrics": ("evaluate:metrics", "Score answers against references, and check the metrics."),
        "judge": ("judge:app", "Rank texts by a quality, and measure judges against experts."),
        "tune": ("tune:app", "Train local models on documents or questions (LoRA)."),
    },
    "Make question benchmarks": {
        "generate": ("generate:app", "Generate, screen, validate and publish question benchmarks."),
        "annotate": ("generate:annotate", "Collect experts' labels on generated questions."),
    },
    "Stated confidence of assessments": {
        "confidence": ("confidence:app", "Extract, track and check the confidence that reports state."),
    },
    "Models, records and the server": {
        "models": ("models:app", "List, check and install language models."),
        "prompts": ("models:prompts", "Show and change the prompts."),
        "records": ("models:records", "Show what models were asked and answered, and what it cost."),
        "serve": (
            "serve:serve",
            "Serve the web pages: annotate, check claims, see results.",
        ),
        "users": ("serve:users", "Manage who may use the web pages."),
    },
}
"""Every command under its heading, in the order of use: where it is defined, and its sentence in the list."""
_INTERRUPTED = 130


class _HeadedGroup(WholeHelpGroup):
    headings: ClassVar = {heading: tuple(commands) for heading, commands in HEADINGS.items()}

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        places = {name: entry for commands in HEADINGS.values() for name, entry in commands.items()}
        self.commands = LazyCommands(places)

    def short_helps(self) -> dict[str, str]:
        """Sentences of the list, which are there without loading a command."""
        return {name: words for commands in HEADINGS.values() for name, (_, words) in commands.items()}


app = typer.Typer(
    name="climassay",
    cls=_HeadedGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure whether a language model can be trusted on climate.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"climassay {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure whether a language model can be trusted on climate."""


def main() -> None:
    """Run the command line; a :class:`ClimassayError` becomes one sentence on stderr and its exit code.

    So does a package that is not installed, where an extra brings it.
    """
    restrict_to_user()
    try:
        _as_click(app)()
    except ClimassayError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read the output has seen enough
            sys.exit(1)
        place = f"{error.filename} cannot be used" if error.filename else "the system refused to go on"
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "free some space and run the command again" if full else "mend that and run the command again"
        _say(f"{place} ({error.strerror or error}): {advice}.")
        sys.exit(ClimassayError.exit_code)
    except ModuleNotFoundError as error:
        from climassay.registry import missing_extra_message

        sentence = missing_extra_message(error)
        if sentence is None:
            raise
        _say(sentence)
        sys.exit(ClimassayError.exit_code)
    except (KeyboardInterrupt, SystemExit) as end:
        # typer makes an exit of an interrupt, without a word.
        if isinstance(end, SystemExit) and end.code != _INTERRUPTED:
            raise
        typer.echo("climassay: interrupted; run the same command again to go on where it stopped.", err=True)
        sys.exit(_INTERRUPTED)


@cache
def _as_click(app: typer.Typer) -> Any:
    """All commands as click runs them; typer would make them anew at every call."""
    made = get_command(app)
    tidy_help(made)
    return made


def _say(sentence: str) -> None:
    # Names of files are bytes: one that is not UTF-8 cannot be printed as it is.
    typer.echo(f"climassay: {without_secrets(sentence)}".encode("utf-8", "backslashreplace").decode(), err=True)


if __name__ == "__main__":
    main()
