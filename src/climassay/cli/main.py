"""Entry point of the ``climassay`` command."""

import errno
import sys
from typing import Annotated

import typer

from climassay import __version__
from climassay.cli import (
    annotate,
    ask,
    checks,
    confidence,
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
    evidence,
    evidence_head,
    factcheck,
    factcheck_run,
    generate,
    judge,
    masker,
    metrics,
    metrics_entailment,
    models,
    prompts,
    publish,
    quickstart,
    records,
    serve,
    tune,
    users,
    validator,
    verdicts,
)
from climassay.errors import ClimassayError
from climassay.secrecy import without_secrets

app = typer.Typer(
    name="climassay",
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
app.add_typer(annotate.app, name="annotate")
app.add_typer(corpus.app, name="corpus")
app.add_typer(checks.app, name="checks")
confidence.app.command("extract")(confidence_extract.extract)
confidence.app.command("lint")(confidence_lint.lint)
confidence.app.command("topics")(confidence_topics.topics)
confidence.app.command("report")(confidence_topics.report)
confidence.app.add_typer(confidence_tag.app, name="tag")
app.add_typer(confidence.app, name="confidence")
app.add_typer(models.app, name="models")
app.add_typer(records.app, name="records")
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(generate.app, name="generate")
app.add_typer(judge.app, name="judge")
metrics.app.command("validate-entailment")(metrics_entailment.validate)
metrics.app.command("train-entailment")(metrics_entailment.train)
app.add_typer(metrics.app, name="metrics")
app.add_typer(masker.app, name="masker")
app.add_typer(prompts.app, name="prompts")
app.add_typer(tune.app, name="tune")
app.add_typer(users.app, name="users")
app.add_typer(validator.app, name="validator")
app.add_typer(verdicts.app, name="verdicts")
app.add_typer(evidence_head.app, name="factcheck-head")
app.command(name="ask")(ask.ask)
app.command(name="publish")(publish.publish)
app.command(name="factcheck")(factcheck.factcheck)
app.command(name="factcheck-run")(factcheck_run.factcheck_run)
app.command(name="factcheck-evidence")(evidence.factcheck_evidence)
app.command(name="serve")(serve.serve)
app.command(name="demo")(demo.demo)
app.command(name="doctor")(doctor.doctor)
app.command(name="quickstart")(quickstart.quickstart)


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
    try:
        app()
    except ClimassayError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read the output has seen enough
            sys.exit(1)
        _say(_system_words(error))
        sys.exit(ClimassayError.exit_code)
    except ModuleNotFoundError as error:
        from climassay.extras import sentence_without

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
