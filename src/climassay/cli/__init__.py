"""The command line: one file for a group of commands, which parse, call ``api`` and show the result.

A module here is imported when one of its commands is used (:class:`LazyCommands`), so that ``climassay --help`` answers
at once; what is heavier than its settings is imported inside the commands. Dataclasses of options are one argument of a
command (:func:`grouped`).
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, ParameterInfo, TyperInfo

from climassay.errors import InputError
from climassay.io import write_file
from climassay.settings import entries

T = TypeVar("T")


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
            result = getattr(import_module(f"{__name__}.{module}"), attribute)
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
            show_first_names(made)
            self[name] = made
        return made

    def get(self, name: str, default: Any = None) -> Any:
        """The command, or another value where there is none of this name."""
        return self[name] if name in self else default  # noqa: SIM401

    def values(self) -> Any:
        """Every command."""
        return [self[name] for name in self]

    def items(self) -> Any:
        """Every command with its name."""
        return [(name, self[name]) for name in self]


class CommandGroup(typer.Typer):
    """A group whose commands may take dataclasses of options, see :func:`grouped`."""

    def command(self, *arguments: Any, **named: Any) -> Callable[[Any], Any]:
        """Register a command as typer does."""
        register = super().command(*arguments, **named)
        return lambda command: register(grouped(command))

    def add_verb(self, name: str, function: Callable[..., Any], /, **how: Any) -> None:
        """Add a command that :func:`climassay.cli.options.verb_command` makes of a verb.

        Args:
            name: Name of the command.
            function: The verb.
            **how: Further arguments of ``verb_command``.
        """
        from climassay.cli.options import verb_command

        self.command(name)(verb_command(function, **how))

    def add_init(self, name: str, what: str, module: str, command: str) -> None:
        """Add the command ``init``, which writes a configuration with every entry explained.

        Args:
            name: Name of the file where the user gives none.
            what: What is written, in words.
            module: Where ``COMMENTED``, the text, is, within this package.
            command: What runs the file, between ``climassay`` and its name.
        """
        from climassay.cli.options import JsonOption, done

        @self.command(help=f"Write {what} with every entry explained.")
        def init(
            file: Annotated[Path, typer.Argument(help="File to write.")] = Path(name), as_json: JsonOption = False
        ) -> None:
            if file.exists():
                raise InputError(f"{file} is there already: name another file.")
            write_file(file, import_module(f"climassay.{module}").COMMENTED)
            done({"file": file}, f"Wrote {file}; run it with: climassay {command} {file}", as_json=as_json)


class WholeHelpGroup(TyperGroup):
    """A group of commands whose help shows the first sentence of each, whole, under headings where there are some."""

    headings: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Names of commands by heading; without any, all appear under "Commands" in the order of their definition."""
    old_names: ClassVar[dict[str, str]] = {}
    """Names that commands had before, with those they have now: they answer for one version, with a hint."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name that a command has now in the place of its old one, and say so."""
        new = self.renamed(args)
        if new is not None:
            if not ctx.resilient_parsing:
                name = f"{ctx.command_path} {new[0]}"
                typer.echo(f"`{ctx.command_path} {args[0]}` is called `{name}` now: please use that.", err=True)
            args = [*new[0].split(), *new[1]]
        return super().parse_args(ctx, args)

    def renamed(self, args: list[str]) -> tuple[str, list[str]] | None:
        """The name that a command has now, and the arguments after it; None where its name is no old one."""
        if not args or args[0] not in self.old_names:
            return None
        return self.old_names[args[0]], args[1:]

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
        if args and args[0] not in {*self.commands, *self.old_names, *ctx.help_option_names}:
            args = [self.default, *self.first, *args]
        return super().parse_args(ctx, args)


def show_first_names(command: Any) -> None:
    """Show only the first long and the first short name of every option in help: the others are old names.

    Args:
        command: A command or a group, as click runs it.
    """
    parts = getattr(command, "commands", {})
    for part in () if isinstance(parts, LazyCommands) else parts.values():
        show_first_names(part)
    for option in command.params:
        long = [name for name in option.opts if name.startswith("--")]
        if len(long) > 1 and not option.hidden:
            option.get_help_record = partial(_first_names, option, option.get_help_record, long[1:])


def _first_names(option: Any, record: Callable[[Any], Any], old: list[str], ctx: Any) -> Any:
    names = option.opts
    option.opts = [name for name in names if name not in old]
    try:
        return record(ctx)
    finally:
        option.opts = names


def with_flags(*kinds: type, defaults: bool = True, only: Collection[str] = ()) -> Callable[[type[T]], type[T]]:
    """Give a dataclass of options, before it is made one, an option for each entry of settings that is a flag.

    A field of such an option is None where the user does not give it.

    Args:
        kinds: Settings (:mod:`climassay.settings`), whose entries with a ``Flag`` are taken.
        defaults: Whether the help tells the entries' defaults.
        only: Names of the entries that are taken; all by default.
    """

    def add(group: type[T]) -> type[T]:
        for entry in (entry for kind in kinds for entry in entries(kind)):
            flag = entry.flag
            if flag is None or (only and entry.name not in only):
                continue
            wanted = entry.kind
            if get_origin(wanted) in (Union, UnionType):
                wanted = next(part for part in get_args(wanted) if part is not type(None))
            elif get_origin(wanted) is tuple:
                wanted = GenericAlias(list, get_args(wanted)[:1])
            words = entry.description
            if defaults and entry.default != "" and type(entry.default) in (str, int, float):
                words += f"  [default: {entry.default}]"
            option = typer.Option(*flag.names, help=words, envvar=flag.envvar)
            option.min = flag.min if entry.low is None else entry.low
            name = flag.field or entry.name
            group.__annotations__[name] = Annotated[wanted | None, option]
            setattr(group, name, None)
        return group

    return add


def given(options: object, kind: type) -> dict[str, Any]:
    """What the user says, with options made by :func:`with_flags`, of the entries of a table of settings."""
    named = {one.name: getattr(options, one.flag.field or one.name) for one in entries(kind) if one.flag}
    return {name: value for name, value in named.items() if value is not None}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options.

    Each parameter whose annotation is a dataclass is replaced, for typer, by the dataclass's fields, whose annotations
    are those of typer options; the command gets the filled dataclass. What a dataclass inherits stands after its own.

    Args:
        command: A typer command, before it is registered.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {}
    shown: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        annotation = hints[parameter.name]
        if not (isinstance(annotation, type) and is_dataclass(annotation)):
            shown.append(parameter.replace(annotation=annotation, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = annotation
        kinds = get_type_hints(annotation, include_extras=True)
        own = inspect.get_annotations(annotation)
        entries = [
            entry
            for entry in fields(annotation)
            if any(isinstance(part, ParameterInfo) for part in getattr(kinds[entry.name], "__metadata__", ()))
        ]
        for entry in sorted(entries, key=lambda entry: entry.name not in own):
            default = inspect.Parameter.empty if entry.default is MISSING else entry.default
            shown.append(
                inspect.Parameter(
                    entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[entry.name]
                )
            )

    @wraps(command)
    def run(**given: Any) -> None:
        filled = {
            name: group(**{entry.name: given.pop(entry.name) for entry in fields(group) if entry.name in given})
            for name, group in groups.items()
        }
        command(**given, **filled)

    # typer reads both.
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    del run.__wrapped__
    return run
