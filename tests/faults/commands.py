"""Every command of climassay: which file each reads, and which are long work. A new command must be entered here."""

from collections.abc import Iterator, Mapping
from typing import Any

SERVER = ("--model", "openai:nobody", "--base-url", "http://127.0.0.1:9/v1")
"""A model whose server does not exist: whoever asks it before the input is read waits for nothing."""
BAD = "{bad}"
"""Stands for the input that is missing, a folder, a pipe, binary or huge."""

Arguments = tuple[str, ...]


def walk() -> Iterator[tuple[str, Any]]:
    """Every command by its name, for example ``corpus add``, with what typer made of it."""
    import typer.main

    from climassay.cli.main import app

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        if hasattr(command, "commands"):
            for name, part in command.commands.items():
                yield from below(part, (*path, name))
        elif not command.hidden:
            yield " ".join(path), command

    yield from below(typer.main.get_command(app), ())


READS: Mapping[str, tuple[Arguments, ...]] = {
    "generate publish": ((BAD, "--output", "{out}"),),
    "check": (
        ("claim", "--config", BAD),
        ("claim", "--scale", "{folder}/bad.toml"),
    ),
    "factcheck fallacies find": ((BAD, "--text", "text"),),
    "factcheck fallacies train": ((BAD, "--output", "{out}"),),
    "factcheck fallacies evaluate": (("fallacies", BAD), (BAD, "{claims}")),
    "factcheck fallacies apply": (("fallacies", BAD), (BAD, "{claims}")),
    "factcheck run": ((BAD, "--plain", *SERVER), ("{claims}", "--config", BAD)),
    "factcheck evidence": ((BAD, *SERVER), ("{claims}", "--head", BAD, *SERVER)),
    "factcheck train": ((BAD, "--output", "{out}", *SERVER),),
    "factcheck evaluate": ((BAD, "{claims}", *SERVER),),
    "factcheck apply": ((BAD, "{claims}", *SERVER),),
    "annotate import": (("silver", BAD, "--format", "jsonl"), ("silver", BAD, "--format", "label-studio")),
    "corpus add": (("books", BAD),),
    "corpus evaluate": (("books", BAD),),
    "confidence extract": ((BAD, "--output", "{out}"),),
    "confidence compare": ((BAD, "{document}"), ("{document}", BAD)),
    "confidence lint": ((BAD,), ("{document}", "--tagger", BAD), ("{document}", "-o", "out.docx")),
    "confidence topics": ((BAD, "--words-only"),),
    "confidence report": ((BAD, BAD, "--html", "{out}"), ("{statements}", BAD, "--html", "{out}")),
    "confidence tag train": ((BAD, "--output", "{out}"),),
    "confidence tag evaluate": ((BAD,), ("bundled", BAD)),
    "confidence tag apply": ((BAD, "Seas rise."),),
    "confidence tag insert": (("Seas rise.", "--labelled", BAD),),
    "evaluate mcq": (
        (BAD, *SERVER),
        ("{questions}", "--setting", f"few-shot:{BAD}", *SERVER),
        ("{questions}", "--prompts", BAD, *SERVER),
    ),
    "evaluate run": ((BAD,),),
    "evaluate contamination": ((BAD, "--against", "{document}"), ("{questions}", "--against", BAD)),
    "generate screen": ((BAD,),),
    "generate run": ((BAD,),),
    "judge benchmark": ((BAD, "--group", "group", "--label", "score", *SERVER),),
    "judge train": ((BAD, "--label", "score", "--output", "{out}", *SERVER),),
    "judge evaluate": (
        (BAD, "{items}", "--label", "score", *SERVER),
        ("pairs", BAD, "--label", "score", "--kind", "claims", *SERVER),
    ),
    "judge apply": ((BAD, "{items}", *SERVER), ("pairs", BAD, "--kind", "claims", *SERVER)),
    "judge compare": (("a", "b", "--probe", BAD, *SERVER),),
    "judge rank": ((BAD, *SERVER), ("{items}", "--probe", BAD, *SERVER)),
    "judge insert": ((BAD, "--anchors", "{items}", *SERVER), ("{items}", "--anchors", BAD, *SERVER)),
    "judge ablate": ((BAD, "{items}", *SERVER),),
    "metrics score": ((BAD, "--metric", "bleu"),),
    "metrics calibrate-window": ((BAD,),),
    "metrics entailment train": ((BAD, "--output", "{out}"),),
    "metrics entailment evaluate": (("bundled", BAD), (BAD, "{claims}")),
    "metrics entailment apply": (("bundled", BAD), (BAD, "{claims}")),
    "metrics faithfulness": ((BAD, "--truth", "faithful"),),
    "generate mask train": ((BAD, "--output", "{out}"), ("{cloze}", "--glossary", BAD, "--output", "{out}")),
    "generate mask evaluate": (("statistics", BAD), (BAD, "{cloze}")),
    "generate mask apply": (("statistics", BAD, "--output", "{out}"), (BAD, "{drafts}", "--output", "{out}")),
    "records import": ((BAD,),),
    "tune pretrain": (("books", "--questions", BAD, "--output", "{out}"),),
    "tune finetune": ((BAD, "--output", "{out}"),),
    "generate validate train": ((BAD, "--output", "{out}"),),
    "generate validate evaluate": ((BAD, "{drafts}"), (f"prompted:{SERVER[1]}", BAD)),
    "generate validate apply": ((BAD, "{drafts}"), (f"prompted:{SERVER[1]}", BAD)),
    "generate validate simulate": ((BAD,), ("{drafts}", "--store", BAD)),
    "generate validate show": ((BAD,),),
    "check-text": ((BAD, "-c", "book"),),
    "factcheck score": ((BAD, "--truth", "a", "--predicted", "b"),),
}
"""By command: arguments with an input that can be bad."""

WITHOUT_FILES: Mapping[str, str] = {
    "ask": "a question",
    "serve": "a workspace",
    "demo": "nothing",
    "annotate open": "a dataset",
    "annotate status": "a dataset",
    "annotate agreement": "a dataset",
    "annotate export": "a dataset",
    "annotate retrain": "a dataset",
    "corpus list": "a workspace",
    "corpus search": "a collection",
    "corpus show": "a collection",
    "corpus compact": "a collection",
    "corpus remove": "a collection",
    "factcheck init": "nothing",
    "factcheck kept list": "a workspace",
    "factcheck kept show": "a check",
    "factcheck kept export": "a workspace",
    "models list": "nothing",
    "models check": "a model",
    "models install": "nothing",
    "records runs": "a workspace",
    "records show": "a run",
    "records usage": "a workspace",
    "records export": "a workspace",
    "records merge": "a workspace",
    "evaluate init": "nothing",
    "evaluate table": "a run",
    "evaluate report": "a run",
    "evaluate plan": "numbers",
    "evaluate compare": "runs",
    "generate checks": "nothing",
    "generate init": "nothing",
    "generate stats": "a dataset",
    "generate list": "a workspace",
    "generate export": "a dataset",
    "prompts list": "nothing",
    "prompts show": "a name",
    "prompts export": "nothing",
    "tune list": "a workspace",
    "tune show": "an adapter",
    "tune presets": "nothing",
    "users add": "a name",
    "users reset": "a name",
    "users remove": "a name",
    "users list": "a workspace",
    "doctor": "a workspace",
    "quickstart": "a workspace",
}
"""Commands that read no file of the user's, and what they read."""

WITHOUT_JSON = {"models install", "confidence lint", "annotate retrain", "serve"}
"""Commands whose ``--json`` is something else, or that have none."""

_HERE = "tests/faults/test_killed_commands.py::test_a_killed_"
_ANY_MOMENT = "tests/faults/test_random_kills.py::test_a_command_killed_at_any_moment_ends_as_if_it_had_not_been"
KILLED: Mapping[str, str] = {
    "corpus add": "tests/corpus/test_collection_killed.py::test_adding_goes_on_where_it_was_killed",
    "evaluate mcq": "tests/records/test_kill.py::test_an_evaluation_killed_at_random_moments_asks_only_what_is_missing",
    "evaluate run": _HERE + "command_ends_as_if_it_had_never_been_killed",
    "generate run": "tests/generation/test_line.py::test_a_killed_line_goes_on_as_if_it_had_never_stopped",
    "generate screen": _HERE + "command_ends_as_if_it_had_never_been_killed",
    "judge benchmark": "tests/cli/test_cli_judge_kill.py::test_a_killed_benchmark_goes_on_where_it_stopped",
    "judge train": "tests/learning/test_harvest_kill.py",
    "judge evaluate": "tests/learning/test_harvest_kill.py",
    "judge apply": "tests/learning/test_harvest_kill.py",
    "judge rank": _HERE + "command_ends_as_if_it_had_never_been_killed",
    "judge insert": "tests/learning/test_harvest_kill.py",
    "judge ablate": "tests/learning/test_harvest_kill.py",
    "check": "tests/cli/test_factcheck_run.py::test_a_killed_run_goes_on_where_it_stopped",
    "factcheck run": "tests/cli/test_factcheck_run.py::test_a_killed_run_goes_on_where_it_stopped",
    "factcheck evidence": _HERE + "command_ends_as_if_it_had_never_been_killed",
    "factcheck fallacies train": _HERE + "writer_leaves_no_half_file",
    "factcheck train": "tests/learning/test_harvest_kill.py",
    "tune finetune": "tests/tuning/test_killed.py::test_sigkill_in_the_middle_changes_nothing",
    "tune pretrain": _ANY_MOMENT,
    "generate validate train": _HERE + "writer_leaves_no_half_file",
    "generate validate apply": _HERE + "writer_leaves_no_half_file",
    "generate validate simulate": "tests/generation/validation/test_active_learning.py"
    "::test_a_killed_simulation_goes_on_and_gives_the_same",
    "confidence extract": _HERE + "writer_leaves_no_half_file",
    "confidence compare": _HERE + "writer_leaves_no_half_file",
    "confidence topics": _ANY_MOMENT,
    "confidence report": _ANY_MOMENT,
    "confidence tag train": _HERE + "writer_leaves_no_half_file",
    "confidence tag evaluate": _HERE + "writer_leaves_no_half_file",
    "confidence tag insert": _ANY_MOMENT,
    "generate mask train": _HERE + "writer_leaves_no_half_file",
    "generate mask apply": _HERE + "writer_leaves_no_half_file",
    "metrics entailment train": _HERE + "writer_leaves_no_half_file",
    "generate publish": _HERE + "publication_is_finished_by_the_next",
    "annotate retrain": _HERE + "writer_leaves_no_half_file",
    "serve": "tests/faults/test_killed_server.py::test_a_killed_server_ends_all_of_its_work_when_it_is_started_again",
}
"""Long commands, and a test that kills them or what they write with. All but serve: test_random_kills.py as well."""

SHORT = (
    "ask",
    "check-text",
    "demo",
    "models install",
    "models list",
    "models check",
    "corpus list",
    "corpus search",
    "corpus show",
    "corpus compact",
    "corpus remove",
    "corpus evaluate",
    "factcheck init",
    "factcheck kept list",
    "factcheck kept show",
    "factcheck kept export",
    "factcheck fallacies find",
    "factcheck fallacies evaluate",
    "factcheck fallacies apply",
    "confidence lint",
    "confidence tag apply",
    "records runs",
    "records show",
    "records usage",
    "records export",
    "records import",
    "records merge",
    "evaluate init",
    "evaluate table",
    "evaluate report",
    "evaluate plan",
    "evaluate contamination",
    "evaluate compare",
    "generate checks",
    "generate init",
    "generate stats",
    "generate list",
    "generate export",
    "judge compare",
    "metrics score",
    "metrics calibrate-window",
    "metrics entailment evaluate",
    "metrics entailment apply",
    "factcheck evaluate",
    "factcheck apply",
    "metrics faithfulness",
    "prompts list",
    "prompts show",
    "prompts export",
    "tune list",
    "tune show",
    "tune presets",
    "users add",
    "users reset",
    "users remove",
    "users list",
    "generate validate evaluate",
    "generate validate show",
    "generate mask evaluate",
    "factcheck score",
    "annotate open",
    "annotate status",
    "annotate agreement",
    "annotate export",
    "annotate import",
    "doctor",
    "quickstart",
)
"""Commands that keep nothing of what is half done, or do it in one transaction: they are simply run again."""
