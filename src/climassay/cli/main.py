"""Entry point of the ``climassay`` command."""

import errno
import sys
from functools import cache
from typing import Annotated, Any, ClassVar

import typer
from typer.main import get_command

from climassay import __version__
from climassay.cli import LazyCommands, WholeHelpGroup, show_first_names
from climassay.errors import ClimassayError
from climassay.redaction import without_secrets
from climassay.workspace import restrict_to_user

HEADINGS: dict[str, dict[str, tuple[str, str]]] = {
    "First steps": {
        "quickstart": (
            "quickstart:quickstart",
            "Get started in six steps: add a document, ask, check a claim, make questions, annotate, evaluate.",
        ),
        "demo": (
            "quickstart:demo",
            "Show what climassay does, on the bundled model and books: find, ask, evaluate, judge, check, report.",
        ),
        "doctor": (
            "quickstart:doctor",
            "Report what is missing or broken on this machine and in this workspace, and how to fix it.",
        ),
    },
    "Ask documents, check claims": {
        "corpus": ("corpus:app", "Build collections of documents, search them, and measure the search."),
        "ask": (
            "corpus:ask",
            "Answer a question from your collections, with numbered citations, or say that they do not hold it.",
        ),
        "check": (
            "factcheck:check",
            "Check a claim in a debate: advocates, each with its own collection, a mediator, and a cited verdict.",
        ),
        "check-text": (
            "corpus:check_text",
            "Check a text sentence by sentence against your collections: what bears it, and what contradicts it.",
        ),
        "factcheck": ("factcheck:app", "Check the claims of a file in debates, and score verdicts."),
    },
    "Measure language models": {
        "evaluate": ("evaluate:app", "Measure a model on a benchmark."),
        "metrics": ("metrics:app", "Score answers against references, and check the metrics themselves."),
        "judge": ("judge:app", "Compare and rank texts by a quality, and measure judges against experts."),
        "tune": ("tune:app", "Train local models on documents or questions (LoRA)."),
    },
    "Make question benchmarks": {
        "generate": ("generate:app", "Generate, screen, validate and publish question benchmarks."),
        "annotate": ("annotate:app", "Collect experts' labels on generated questions."),
    },
    "Stated confidence of assessments": {
        "confidence": ("confidence:app", "Extract, group, track and tag the confidence statements of IPCC reports."),
    },
    "Models, records and the server": {
        "models": ("models:app", "List, check and install language models."),
        "prompts": ("models:prompts", "Show and change the prompts."),
        "records": ("records:app", "Show what models were asked, what they answered, and what it cost."),
        "serve": (
            "serve:serve",
            "Serve the web pages: experts annotate, anyone checks a claim, everyone sees results.",
        ),
        "users": ("serve:users", "Manage who may use the web pages."),
    },
}
"""Every command under its heading, in the order of use: where it is defined, and its sentence in the list."""
_INTERRUPTED = 130


class _HeadedGroup(WholeHelpGroup):
    headings: ClassVar = {heading: tuple(commands) for heading, commands in HEADINGS.items()}
    old_names: ClassVar = {
        "factcheck-run": "factcheck run",
        "factcheck-evidence": "factcheck evidence",
        "factcheck-head": "factcheck",
        "verdicts": "factcheck",
        "checks": "factcheck kept",
        "publish": "generate publish",
        "validator": "generate validate",
        "masker": "generate mask",
    }

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        places = {name: entry for commands in HEADINGS.values() for name, entry in commands.items()}
        self.commands = LazyCommands(places)

    def renamed(self, args: list[str]) -> tuple[str, list[str]] | None:
        """The same for ``factcheck CLAIM``, which is ``check CLAIM`` now."""
        if args[:1] == ["factcheck"] and len(args) > 1:
            known = {*self.commands["factcheck"].commands, "--help"}  # type: ignore[attr-defined]
            if args[1] == "check":
                return "check", args[2:]
            if args[1] not in known:
                return "check", args[1:]
        return super().renamed(args)

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
        advice = "make room and run the command again" if full else "mend that and run the command again"
        _say(f"{place} ({error.strerror or error}): {advice}.")
        sys.exit(ClimassayError.exit_code)
    except ModuleNotFoundError as error:
        from climassay.registry import sentence_without

        sentence = sentence_without(error)
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
    show_first_names(made)
    return made


def _say(sentence: str) -> None:
    # Names of files are bytes: one that is not UTF-8 cannot be printed as it is.
    typer.echo(f"climassay: {without_secrets(sentence)}".encode("utf-8", "backslashreplace").decode(), err=True)


if __name__ == "__main__":
    main()
