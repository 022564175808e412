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


def _named(*groups: tuple[str, str]) -> frozenset[str]:
    """Commands by their groups, for example ``("corpus", "list show")``."""
    return frozenset(f"{group} {name}".strip() for group, names in groups for name in names.split())


READS: Mapping[str, tuple[Arguments, ...]] = {
    "generate publish": ((BAD, "--output", "{out}"),),
    "check": (("claim", "--config", BAD), ("claim", "--scale", "{folder}/bad.toml")),
    "factcheck fallacies find": ((BAD, "--text", "text"),),
    "factcheck fallacies train": ((BAD, "--output", "{out}"),),
    "factcheck fallacies evaluate": (("fallacies", BAD), (BAD, "{claims}")),
    "factcheck fallacies apply": (("fallacies", BAD), (BAD, "{claims}")),
    "factcheck run": ((BAD, "--plain", *SERVER), ("{claims}", "--config", BAD)),
    "factcheck evidence": ((BAD, *SERVER),),
    "factcheck train": ((BAD, "--output", "{out}", *SERVER),),
    "factcheck evaluate": ((BAD, "{claims}", *SERVER),),
    "factcheck apply": ((BAD, "{claims}", *SERVER),),
    "annotate import": (("silver", BAD, "--format", "jsonl"), ("silver", BAD, "--format", "label-studio")),
    "annotate rubrics": ((BAD, "--dataset", "rubrics"),),
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
    "evaluate judge-check": ((BAD, *SERVER),),
    "evaluate lm-eval": (("task", "--include-path", BAD),),
    "evaluate inspect": ((f"{BAD}@task", *SERVER),),
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

WITHOUT_FILES = _named(
    ("", "ask serve demo doctor quickstart"), ("annotate", "open status agreement export retrain"),
    ("corpus", "list search show compact remove rename"), ("factcheck", "init"), ("factcheck kept", "list show export"),
    ("models", "list check install"), ("records", "runs show usage export merge"),
    ("evaluate", "init table report plan compare blind"), ("generate", "checks init stats list export"),
    ("prompts", "list show export"), ("tune", "list show presets"), ("users", "add reset remove list"),
)  # fmt: skip
"""Commands that read no file of the user's: nothing, a name, or what lies in the workspace."""

WITHOUT_JSON = {"models install", "confidence lint", "annotate retrain", "serve"}
"""Commands whose ``--json`` is something else, or that have none."""

_HERE = "tests/faults/test_killed_commands.py::test_a_killed_"
_ANY_MOMENT = "tests/faults/test_random_kills.py::test_a_command_killed_at_any_moment_ends_as_if_it_had_not_been"
KILLED: Mapping[str, str] = {
    "corpus add": "tests/corpus/test_collection_killed.py::test_adding_goes_on_where_it_was_killed",
    "evaluate mcq": "tests/records/test_kill.py::test_an_evaluation_killed_at_random_moments_asks_only_what_is_missing",
    "evaluate run": _HERE + "command_ends_as_if_it_had_never_been_killed",
    "evaluate judge-check": _ANY_MOMENT,
    "evaluate lm-eval": "tests/integrations/test_harness_tasks.py::test_a_killed_command_asks_only_what_is_missing",
    "evaluate inspect": (
        "tests/integrations/test_inspect_experiments.py::test_an_ended_command_asks_only_what_is_missing"
    ),
    "generate run": "tests/generation/test_pipeline.py::test_a_killed_pipeline_goes_on_as_if_it_had_never_stopped",
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

SHORT = _named(
    ("", "ask check-text demo doctor quickstart"), ("models", "install list check"),
    ("corpus", "list search show compact remove rename evaluate"), ("factcheck", "init evaluate apply score"),
    ("factcheck kept", "list show export"), ("factcheck fallacies", "find evaluate apply"), ("confidence", "lint"),
    ("confidence tag", "apply"), ("records", "runs show usage export import merge"),
    ("evaluate", "init table report plan contamination compare blind"), ("generate", "checks init stats list export"),
    ("judge", "compare"), ("metrics", "score calibrate-window faithfulness"),
    ("metrics entailment", "evaluate apply"), ("prompts", "list show export"), ("tune", "list show presets"),
    ("users", "add reset remove list"), ("generate validate", "evaluate show"), ("generate mask", "evaluate"),
    ("annotate", "open status agreement export import rubrics"),
)  # fmt: skip
"""Commands that keep nothing of what is half done, or do it in one transaction: they are simply run again."""
