"""How commands are shown and take their options: help without cut lines, dataclasses of options in one argument."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, ClassVar, get_type_hints

from typer.core import TyperGroup


class WholeHelpGroup(TyperGroup):
    """A group of commands whose help shows the first sentence of each, whole, under headings where there are some."""

    headings: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Names of commands by heading; without any, all stand under "Commands" in the order of their definition."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write a list of commands for each heading, with the same indentation."""
        shown = [name for name, command in self.commands.items() if not command.hidden]
        sections = self.headings or {"Commands": tuple(shown)}
        widest = max(map(len, shown))
        for heading, names in sections.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(widest), self.commands[name].get_short_help_str(10_000)) for name in names]
                )


class DefaultCommandGroup(WholeHelpGroup):
    """A group that hands arguments which begin with none of its commands' names to one of them."""

    default: ClassVar[str]
    """Its name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that name none."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


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
        for entry in sorted(fields(annotation), key=lambda entry: entry.name not in own):
            default = inspect.Parameter.empty if entry.default is MISSING else entry.default
            shown.append(
                inspect.Parameter(
                    entry.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[entry.name]
                )
            )

    @wraps(command)
    def run(**given: Any) -> None:
        filled = {
            name: group(**{entry.name: given.pop(entry.name) for entry in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **filled)

    # typer reads both.
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    del run.__wrapped__
    return run
