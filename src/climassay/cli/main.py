"""Entry point of the ``climassay`` command: its commands by heading, and the exit codes of errors.

A command's module is imported when the command is used, so that ``climassay --help`` answers at once. Heavier packages
are imported inside the commands.
"""

import errno
import sys
import warnings

from cyclopts import App, ArgumentCollection, CoercionError, CycloptsError, Group, Parameter, convert

from climassay import __version__
from climassay.cli.help import AlignedFormatter
from climassay.errors import ClimassayError
from climassay.redaction import without_secrets
from climassay.terminal import visible
from climassay.workspace import restrict_to_user

INTERRUPTED_EXIT_CODE = 130
"""Exit code after an interruption by Ctrl-C."""

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "First steps": {
        "demo": ("first_steps:demo", "Show what climassay does, on the bundled model and books."),
        "doctor": ("first_steps:doctor", "Report what is missing or broken here, and how to fix it."),
    },
    "Ask documents, check claims": {
        "corpus": ("corpus:app", "Build collections of documents, search and measure the search."),
        "ask": ("corpus:ask", "Answer a question from your collections, with citations."),
        "check": ("factcheck:check", "Check a claim in a debate of advocates, with a cited verdict."),
        "check-text": ("corpus:check_text", "Check a text, sentence by sentence, against your collections."),
        "factcheck": ("factcheck:app", "Check the claims of a file in debates, and score verdicts."),
    },
    "Measure language models": {
        "evaluate": ("evaluate:app", "Measure a model on a benchmark."),
        "metrics": ("evaluate:metrics", "Score answers against references, and check the metrics."),
        "reproduce": ("reproduce:app", "Run the tables of a paper with your models, beside the published rows."),
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
        "serve": ("serve:serve", "Serve the web pages: annotate, check claims, see results."),
        "users": ("serve:users", "Manage who may use the web pages."),
        "mcp": ("serve:mcp", "Serve search, answers and checks to assistants (MCP)."),
    },
}
"""Commands by heading and name: ``module:attribute`` of the command, and its description in the list of commands."""


def _refuse_none(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Raise an error for --flag=none, which cyclopts reads as None, as if the option were not given."""
    for argument in arguments:
        for token in argument.tokens:
            if token.implicit_value is None:
                raise CoercionError(argument=argument, token=token.evolve(value="none"), target_type=bool)


def create_app() -> App:
    """Create the command-line application; the modules of its commands are imported only when used."""
    app = App(
        name="climassay",
        help="Measure whether a language model can be trusted on climate.",
        version=f"climassay {__version__}",
        version_flags=["--version"],
        # With a converter, cyclopts does not read "none" as None, which means that an option was not given.
        default_parameter=Parameter(negative=(), allow_repeating=True, converter=convert),
        help_format="plaintext",
        help_formatter=AlignedFormatter(),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
        config=_refuse_none,
    )
    for heading, commands in COMMANDS.items():
        group = Group.create_ordered(heading)
        for position, (name, (attribute, sentence)) in enumerate(commands.items()):
            app.command(f"climassay.cli.{attribute}", name=name, help=sentence, group=group, sort_key=position)
    app.register_install_completion_command(help="Install completion for the current shell.")
    options_group = Group.create_ordered("Options")
    for flag in ("--help", "--version", "--install-completion"):
        app[flag].group = (options_group,)
    return app


app = create_app()


def main() -> None:
    """Run the command in ``sys.argv``.

    Invalid arguments, errors of climassay or of the operating system, and missing optional packages are printed as one
    sentence on stderr, and the process exits with a code other than 0. Python warnings are also printed on stderr.
    """
    restrict_to_user()
    warnings.showwarning = _show_warning
    try:
        app(sys.argv[1:])
    except CycloptsError as error:
        path = " ".join(("climassay", *(error.command_chain or ())))
        _exit_with(f"{' '.join(str(error).split())} See {path} --help.")
    except ClimassayError as error:
        _exit_with(str(error), error.exit_code)
    except OSError as error:
        if error.errno == errno.EPIPE:  # the program that reads our output has closed the pipe
            sys.exit(1)
        subject = f"{error.filename} cannot be used" if error.filename else "the system refused to go on"
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        advice = "free some space and run the command again" if is_full else "mend that and run the command again"
        _exit_with(f"{subject} ({error.strerror or error}): {advice}.")
    except ModuleNotFoundError as error:
        from climassay.registry import missing_extra_message

        sentence = missing_extra_message(error)
        if sentence is None:
            raise
        _exit_with(sentence)
    except KeyboardInterrupt:
        _exit_with("interrupted; run the same command again to go on where it stopped.", INTERRUPTED_EXIT_CODE)


def _show_warning(message: Warning | str, *_source: object, **_options: object) -> None:
    """Print a Python warning on stderr as one line, without its category and source line."""
    _print_message(" ".join(str(message).split()))


def _exit_with(sentence: str, code: int = ClimassayError.exit_code) -> None:
    """Print a sentence on stderr and exit with a code."""
    _print_message(sentence)
    sys.exit(code)


def _print_message(sentence: str) -> None:
    """Print a sentence on stderr, preceded by ``climassay:`` and with secrets masked."""
    print(visible(f"climassay: {without_secrets(sentence)}"), file=sys.stderr)


if __name__ == "__main__":
    main()
