"""Entry point of the ``climassay`` command."""

import errno
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar

import typer
from typer.main import get_command

from climassay import __version__
from climassay.cli import (
    annotate,
    ask,
    confidence,
    confidence_compare,
    confidence_extract,
    confidence_lint,
    confidence_tag,
    confidence_topics,
    corpus,
    demo,
    doctor,
    evaluate,
    evaluate_run,
    evaluate_study,
    evaluate_table,
    factcheck,
    generate,
    judge,
    masker,
    metrics,
    metrics_entailment,
    models,
    prompts,
    quickstart,
    records,
    serve,
    tune,
    users,
    validator,
)
from climassay.cli.learning_options import renamed
from climassay.cli.option_groups import WholeHelpGroup, show_first_names
from climassay.errors import ClimassayError
from climassay.io import keep_to_oneself
from climassay.redaction import without_secrets

HEADINGS: dict[str, dict[str, typer.Typer | Callable[..., None]]] = {
    "First steps": {"quickstart": quickstart.quickstart, "demo": demo.demo, "doctor": doctor.doctor},
    "Ask documents, check claims": {
        "corpus": corpus.app,
        "ask": ask.ask,
        "check": factcheck.check,
        "factcheck": factcheck.app,
    },
    "Measure language models": {
        "evaluate": evaluate.app,
        "metrics": metrics.app,
        "judge": judge.app,
        "tune": tune.app,
    },
    "Make question benchmarks": {"generate": generate.app, "annotate": annotate.app},
    "Stated confidence of assessments": {"confidence": confidence.app},
    "Models, records and the server": {
        "models": models.app,
        "prompts": prompts.app,
        "records": records.app,
        "serve": serve.serve,
        "users": users.app,
    },
}
"""Every command under its heading, in the order of use."""


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

    def renamed(self, args: list[str]) -> tuple[str, list[str]] | None:
        """The same for ``factcheck CLAIM``, which is ``check CLAIM`` now."""
        if args[:1] == ["factcheck"] and len(args) > 1:
            known = {*self.commands["factcheck"].commands, "--help"}  # type: ignore[attr-defined]
            if args[1] == "check":
                return "check", args[2:]
            if args[1] not in known:
                return "check", args[1:]
        return super().renamed(args)


app = typer.Typer(
    name="climassay",
    cls=_HeadedGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure whether a language model can be trusted on climate.",
)
evaluate.app.command("init")(evaluate_run.init)
evaluate.app.command("run")(evaluate_run.run)
evaluate.app.command("table")(evaluate_table.table)
evaluate.app.command("report")(evaluate_table.report)
evaluate.app.command("plan")(evaluate_study.plan)
evaluate.app.command("contamination")(evaluate_study.contamination)
evaluate.app.command("compare")(evaluate_study.compare)
generate.app.add_typer(validator.app, name="validate", cls=WholeHelpGroup)
generate.app.add_typer(masker.app, name="mask", cls=WholeHelpGroup)
confidence.app.command("extract")(confidence_extract.extract)
confidence.app.command("lint")(confidence_lint.lint)
confidence.app.command("compare")(confidence_compare.compare)
confidence.app.command("topics")(confidence_topics.topics)
confidence.app.command("report")(confidence_topics.report)
confidence.app.add_typer(confidence_tag.app, name="tag")
metrics.app.add_typer(metrics_entailment.app, name="entailment", cls=WholeHelpGroup)
metrics.app.command("validate-entailment", hidden=True)(
    renamed(metrics_entailment.validate, "metrics entailment evaluate")
)
metrics.app.command("train-entailment", hidden=True)(renamed(metrics_entailment.train, "metrics entailment train"))
for _commands in HEADINGS.values():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            _own = _command.info.cls
            app.add_typer(_command, name=_name, cls=_own if isinstance(_own, type) else WholeHelpGroup)
        else:
            app.command(_name)(_command)

_INTERRUPTED = 130


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
    keep_to_oneself()
    try:
        _as_click(app)()
    except ClimassayError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read the output has seen enough
            sys.exit(1)
        _say(_system_words(error))
        sys.exit(ClimassayError.exit_code)
    except ModuleNotFoundError as error:
        from climassay.optional_dependencies import sentence_without

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
    # Names of files are bytes: one that is no UTF-8 cannot be printed as it is.
    typer.echo(f"climassay: {without_secrets(sentence)}".encode("utf-8", "backslashreplace").decode(), err=True)


def _system_words(error: OSError) -> str:
    """One sentence for what the system refuses in the middle of the work, wherever that was."""
    place = f"{error.filename} cannot be used" if error.filename else "the system refused to go on"
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    advice = "make room and run the command again" if full else "mend that and run the command again"
    return f"{place} ({error.strerror or error}): {advice}."


if __name__ == "__main__":
    main()
