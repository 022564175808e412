"""Every command: what it reads, whether it is long work, what it writes. A new command must be entered here."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = ("--model", "openai:nobody", "--base-url", "http://127.0.0.1:9/v1")
"""A model whose server does not exist: whoever asks it before the input is read waits for nothing."""
BAD = "{bad}"
"""Stands for the input that is missing, a folder, a pipe, binary or huge."""

Arguments = tuple[str, ...]


def walk() -> Iterator[tuple[str, Any]]:
    """Every command by its name, for example ``corpus add``, with its cyclopts application."""
    from climassay.cli.main import app

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, part in command.resolved_commands().items():
            if not name.startswith("-"):
                yield from below(part, (*path, name))
        if command.default_command is not None:
            yield " ".join(path), command

    yield from below(app, ())


def arguments(app: Any) -> list[Any]:
    """Arguments and options of a command, without those that are hidden."""
    return [argument for argument in app.assemble_argument_collection(parse_docstring=True) if argument.show]


def _named(*groups: tuple[str, str]) -> frozenset[str]:
    """Commands by their groups, for example ``("corpus", "list show")``."""
    return frozenset(f"{group} {name}".strip() for group, names in groups for name in names.split())


READS: Mapping[str, tuple[Arguments, ...]] = {
    "generate publish": ((BAD, "--output", "{out}"),),
    "check": (("claim", "--config", BAD), ("claim", "--scale", "{folder}/bad.toml")),
    "factcheck fallacies": ((BAD, "--text", "text"),),
    "confidence tag": ((BAD, "--text", "text"),),
    "factcheck fallacies train": ((BAD, "--output", "{out}"),),
    "factcheck fallacies evaluate": (("fallacies", BAD), (BAD, "{claims}")),
    "factcheck fallacies apply": (("fallacies", BAD), (BAD, "{claims}")),
    "factcheck run": ((BAD, "--plain", *SERVER), ("{claims}", "--config", BAD)),
    "factcheck evidence": ((BAD, *SERVER),),
    "annotate import": (("silver", BAD, "--format", "jsonl"), ("silver", BAD, "--format", "label-studio")),
    "annotate rubrics": ((BAD, "--dataset", "rubrics"),),
    "annotate questions": ((BAD, "--dataset", "mine"),),
    "corpus add": (("books", BAD),),
    "corpus evaluate": (("books", BAD),),
    "confidence extract": ((BAD, "--output", "{out}"),),
    "confidence diff": ((BAD, "{statements}"), ("{statements}", BAD)),
    "confidence lint": ((BAD,), ("{document}", "-o", "out.docx")),
    "confidence topics": ((BAD,),),
    "confidence report": ((BAD, BAD, "-o", "{out}"), ("{statements}", BAD, "-o", "{out}")),
    "confidence tag train": ((BAD, "--output", "{out}"),),
    "confidence tag evaluate": ((BAD,), ("bundled", BAD)),
    "confidence tag apply": ((BAD, "Seas rise."),),
    "confidence tag insert": (("Seas rise.", "--anchors", BAD),),
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
    "judge compare": (("a", "b", "--probe", BAD, *SERVER),),
    "judge rank": ((BAD, *SERVER), ("{items}", "--probe", BAD, *SERVER)),
    "judge insert": ((BAD, "--anchors", "{items}", *SERVER), ("{items}", "--anchors", BAD, *SERVER)),
    "metrics score": ((BAD, "--metric", "bleu"),),
    "metrics entailment evaluate": ((f"supports:{SERVER[1]}", BAD), (BAD, "{claims}")),
    "generate mask": (("statistics", BAD, "--output", "{out}"), (BAD, "{drafts}", "--output", "{out}")),
    "records import": ((BAD,),),
    "tune pretrain": (("books", "--questions", BAD, "--output", "{out}"),),
    "tune finetune": ((BAD, "--output", "{out}"),),
    "generate validate train": ((BAD, "--output", "{out}"),),
    "generate validate evaluate": ((BAD, "{drafts}"), (f"prompted:{SERVER[1]}", BAD)),
    "generate validate apply": ((BAD, "{drafts}"), (f"prompted:{SERVER[1]}", BAD)),
    "generate validate show": ((BAD,),),
    "check-text": ((BAD, "-c", "book"),),
    "factcheck score": ((BAD, "--truth", "a", "--predicted", "b"),),
    "factcheck claims": ((BAD, *SERVER),),
    "records restore": ((BAD,),),
    "reproduce climaqa": (("--gold", BAD, *SERVER), ("--silver", BAD, *SERVER)),
    "reproduce climinator": (("--claims", BAD, "--ipcc", "book", *SERVER),),
    "reproduce ppairs": (("--climate", BAD),),
}
"""By command: arguments with an input that can be bad."""

WITHOUT_FILES = _named(
    ("", "ask serve mcp demo doctor"), ("annotate", "open answers status agreement export retrain"),
    ("corpus", "list search show compact remove edit"), ("factcheck", "init"), ("factcheck checks", "list show export"),
    ("models", "list check install"), ("records", "runs show usage export backup"),
    ("evaluate", "init table report plan compare blind"), ("generate", "checks init stats list export"),
    ("prompts", "list show export"), ("tune", "list show presets"), ("users", "add reset remove list"),
)  # fmt: skip
"""Commands that read no file of the user's: nothing, a name, or what lies in the workspace."""

WITHOUT_JSON = {"models install", "confidence lint", "annotate retrain", "serve", "mcp"}
"""Commands whose ``--json`` is something else, or that have none."""

ASKING = "--model openai:test --base-url {url} --concurrency 1"
"""Options of a command that asks the API server."""
NAMED = "--model openai:test --base-url {url}"
"""Likewise, of a command that has no ``--concurrency``."""
JUDGED = "--group group --quality 'is long' --label score"
DEBATE = "-c book --plain --samples 3 -k 1 --excerpt-words 30 --text-tokens 8 --rounds 1 --split whole"
CLAIM = "'The Sun, and not carbon dioxide, has caused the warming since 1950.'"


@dataclass(frozen=True)
class LongCommand:
    """A command that is killed.

    Its arguments are written as in a shell, with ``{given}`` for the folder of inputs, ``{out}`` for the folder it
    writes to, ``{w}`` for its workspace, ``{model}`` for a small local model and ``{url}`` for the API server.
    """

    arguments: str
    before: str = ""
    """A command that makes what this one reads; not killed."""

    @property
    def asks(self) -> bool:
        """Whether it asks the API server."""
        return "{url}" in self.arguments or "experiment.toml" in self.arguments or "recipe.toml" in self.arguments

    def filled(self, **places: object) -> list[str]:
        """The arguments with places and addresses."""
        return [part.format(**places) for part in shlex.split(self.arguments)]

    def filled_before(self, **places: object) -> list[str]:
        """The arguments of the command before it."""
        return [part.format(**places) for part in shlex.split(self.before)]


_TRAIN_PROBE = f"judge train {{given}}/items.jsonl -o {{given}}/probe.safetensors {JUDGED} --layer 1 --model {{model}}"
_TRAIN_VALIDATOR = "generate validate train {given}/labels.jsonl -o {given}/validator"

COMMANDS = {
    "corpus add": LongCommand("corpus add books primer:aerosols_clouds primer:contrarian_pamphlet -w {w} --json"),
    "evaluate mcq": LongCommand(f"evaluate mcq {{given}}/questions.jsonl {ASKING} -w {{w}} --json"),
    "evaluate run": LongCommand("evaluate run {given}/experiment.toml -w {w} --json"),
    "evaluate judge-check": LongCommand(
        "evaluate judge-check {given}/items.jsonl --question group --answer text --label score:accuracy --lowest 0 "
        f"--highest 1000 --limit 2 --pairs 2 {ASKING} -w {{w}} --json"
    ),
    "evaluate lm-eval": LongCommand(
        "evaluate lm-eval climate_topics --include-path {given}/harness --model {model} --json -w {w}"
    ),
    "evaluate inspect": LongCommand("evaluate inspect {given}/inspect_tasks.py@words --model {model} --json -w {w}"),
    "generate run": LongCommand("generate run {given}/recipe.toml -w {w} --json"),
    "generate screen": LongCommand(
        "generate screen {given}/sample.jsonl --consistency openai:test --base-url {url} --concurrency 1 "
        "-o {out}/marked.jsonl -w {w} --json"
    ),
    "judge benchmark": LongCommand(
        f"judge benchmark {{given}}/items.jsonl {JUDGED} --method pairs --train-items 9 --limit-groups 3 {ASKING} "
        "-w {w} --json"
    ),
    "judge train": LongCommand(
        f"judge train {{given}}/items.jsonl -o {{out}}/probe.safetensors {JUDGED} --layer 1 --model {{model}} "
        "-w {w} --json"
    ),
    "judge evaluate": LongCommand(f"judge evaluate pairs {{given}}/few.jsonl {JUDGED} {ASKING} -w {{w}} --json"),
    "judge rank": LongCommand(
        f"judge rank {{given}}/few.jsonl --group group --quality 'is long' {ASKING} -o {{out}}/ranking.csv "
        "-w {w} --json"
    ),
    "judge insert": LongCommand(
        f"judge insert {{given}}/new.jsonl --anchors {{given}}/few.jsonl --kind claims --method pairs --label score "
        f"--levels 0,1,2 --samples 2 -o {{out}}/labels.csv {ASKING} -w {{w}} --json"
    ),
    "check": LongCommand(f"check {CLAIM} {DEBATE} --force {ASKING} -o {{out}}/page.html -w {{w}} --json"),
    "factcheck fallacies train": LongCommand(
        "factcheck fallacies train {given}/fallacies.csv -o {out}/f.safetensors --folds 2 --json"
    ),
    "factcheck run": LongCommand(
        f"factcheck run {{given}}/claims.csv {DEBATE} {ASKING} --transcripts {{out}}/debates.jsonl -w {{w}} --json"
    ),
    "factcheck claims": LongCommand(f"factcheck claims {{given}}/notes.md {ASKING} -o {{out}}/c.csv -w {{w}} --json"),
    "reproduce climaqa": LongCommand(
        f"reproduce climaqa --gold {{given}}/questions.jsonl --table 3 --limit 8 {ASKING} -o {{out}} -w {{w}} --json"
    ),
    "reproduce climinator": LongCommand(
        f"reproduce climinator --claims {{given}}/rated.csv --truth verdict --ipcc book --table 1 --limit 3 {ASKING} "
        "-o {out} -w {w} --json"
    ),
    "reproduce ppairs": LongCommand(
        "reproduce ppairs --table 4.3 --climate {given}/rated.csv --model {model} -o {out} -w {w} --json"
    ),
    "factcheck evidence": LongCommand(
        f"factcheck evidence {{given}}/evidence.jsonl --predictions {{out}}/rows.jsonl {ASKING} -w {{w}} --json"
    ),
    "tune finetune": LongCommand(
        "tune finetune {given}/sample.jsonl --validation-share 0.4 --model {model} --rank 2 --learning-rate 1e-2 "
        "--dtype float32 --output tuned --max-length 512 --epochs 3 -w {w} --json"
    ),
    "tune pretrain": LongCommand(
        "tune pretrain book --validation notes --model {model} --rank 2 --learning-rate 1e-2 --dtype float32 "
        "--output read --max-length 64 --epochs 3 -w {w} --json"
    ),
    "generate validate train": LongCommand(
        "generate validate train {given}/labels.jsonl -o {out}/validator.safetensors --json"
    ),
    "generate validate apply": LongCommand(
        "generate validate apply {given}/validator {given}/drafts.jsonl -o {out}/decided.jsonl --json",
        before=_TRAIN_VALIDATOR,
    ),
    "generate mask": LongCommand("generate mask statistics {given}/unmasked.jsonl -o {out}/masked.jsonl --json"),
    "confidence extract": LongCommand("confidence extract {given}/report.md --untagged -o {out}/s.jsonl --json"),
    "confidence tag train": LongCommand(
        "confidence tag train {given}/climatex.tsv -o {out}/t.safetensors --method words --folds 3 --json"
    ),
    "confidence tag evaluate": LongCommand(
        "confidence tag evaluate {given}/statements.jsonl --method words --folds 4 --predictions {out}/p.jsonl --json"
    ),
    "confidence tag insert": LongCommand(
        "confidence tag insert {given}/untagged.csv --text claim --anchors {given}/statements.jsonl --train-items 48 "
        "--layer 1 --model {model} -o {out}/tagged.jsonl --json"
    ),
    "confidence topics": LongCommand(
        f"confidence topics {{given}}/observed.jsonl --topics 6 --assign-untagged {NAMED} -o {{out}}/topics.json "
        "--names {out}/names.toml -w {w} --json"
    ),
    "confidence report": LongCommand(
        "confidence report {given}/observed.jsonl {given}/topics.json --tagger bundled -o {out}/page.html "
        "--tables {out}/tables -w {w} --json",
        before="confidence topics {given}/observed.jsonl --topics 6 --assign-untagged -o {given}/topics.json --json",
    ),
    "generate publish": LongCommand("generate publish {given}/sample.jsonl --name x -o {out}/published -w {w} --json"),
    "annotate retrain": LongCommand("annotate retrain silver --folds 2 --json -w {w}"),
}
"""Long commands by name, on small inputs: test_random_kills.py kills them all."""

SHORT = _named(
    ("", "ask check-text demo doctor mcp"), ("models", "install list check"),
    ("corpus", "list search show compact remove edit evaluate"), ("factcheck", "init score fallacies"),
    ("factcheck checks", "list show export"), ("factcheck fallacies", "evaluate apply"),
    ("confidence", "lint diff tag"),
    ("confidence tag", "apply"), ("records", "runs show usage export import backup restore"),
    ("evaluate", "init table report plan contamination compare blind"), ("generate", "checks init stats list export"),
    ("judge", "compare"), ("metrics", "score"), ("metrics entailment", "evaluate"),
    ("prompts", "list show export"), ("tune", "list show presets"),
    ("users", "add reset remove list"), ("generate validate", "evaluate show"),
    ("annotate", "open status agreement export import rubrics questions answers"),
)  # fmt: skip
"""Commands that keep nothing of what is half done, or do it in one transaction: they are simply run again."""

TARGET = "{target}"


@dataclass(frozen=True)
class WritingCommand(LongCommand):
    """A command that writes ``{target}``, a file or folder; ``{run}`` is the run of the command before it."""

    folder: bool = False
    """Whether it writes a folder."""
    new: bool = False
    """Whether it writes only where no file is yet."""
    again: str = ""
    """What must be said to write once more over what is there."""

    def target(self, folder: Path) -> Path:
        (named,) = (part for part in shlex.split(self.arguments) if part.startswith(TARGET))
        return Path(named.format(target=folder / "out"))


def _options(command: str, arguments: str, *names: str, ending: str = "", **more: Any) -> dict[str, WritingCommand]:
    """One command with each of these options, or arguments, in turn."""
    said = {name: f"{command} {arguments} {name if name[:2] == '--' else ''} {TARGET}{ending}" for name in names}
    return {f"{command} {name}": WritingCommand(said[name], **more) for name in names}


def _saved(command: str, arguments: str) -> dict[str, WritingCommand]:
    """One command with the option that saves its result as the file's ending says."""
    return _options(command, arguments, "--output", ending=".html")


_QUALITY = f"{{given}}/few.jsonl --group group --quality 'is long' {ASKING} -w {{w}}"
_EXPERIMENT = "evaluate run {given}/experiment.toml -w {w} --json"
_TRAINED = "--layer 1 --model {model} -w {w}"
_PROBE = f"{{given}}/items.jsonl {JUDGED} {_TRAINED}"

WRITES: dict[str, WritingCommand] = {
    **_saved("ask", f"'Why does it warm?' -c book --min-cosine -1 {ASKING} -w {{w}}"),
    **_saved("check-text", f"{{given}}/report.md -c book {NAMED.replace('--model', '--judge')} -w {{w}}"),
    **_options("generate publish", "{given}/sample.jsonl --data-only", "--output", folder=True, again="--replace"),
    **_options("factcheck init", "", "file", new=True),
    **_saved("check", f"{CLAIM} {DEBATE} --force {ASKING} -w {{w}}"),
    **_options("factcheck fallacies train", "{given}/fallacies.csv --folds 2", "--output"),
    **_saved("factcheck run", f"{{given}}/claims.csv {DEBATE} {ASKING} -w {{w}}"),
    **_options("factcheck run", f"{{given}}/claims.csv {DEBATE} {ASKING} -w {{w}}", "--transcripts"),
    **_options("factcheck run", f"{{given}}/claims.csv {DEBATE} {ASKING} -w {{w}}", "--pages", folder=True),
    **_options("factcheck evidence", f"{{given}}/evidence.jsonl {ASKING} -w {{w}}", "--predictions"),
    **_saved("factcheck evidence", f"{{given}}/evidence.jsonl {ASKING} -w {{w}}"),
    **_options("annotate export", "silver -w {w} --format jsonl", "--output"),
    "annotate export folder --output": WritingCommand(
        f"annotate export silver -w {{w}} --format label-studio --output {TARGET}", folder=True
    ),
    **_options("factcheck checks export", "-w {w}", "file", ending=".jsonl"),
    **_saved("confidence extract", "{given}/report.md --untagged"),
    **_options("confidence extract", "{given}/report.md --untagged", "--terms", ending=".csv"),
    **_saved("confidence lint", "{given}/report.md --exit-zero"),
    **_saved("confidence diff", "{given}/planted.jsonl {given}/planted.jsonl"),
    **_options("confidence topics", "{given}/planted.jsonl --topics 4 -w {w}", "--output"),
    **_options(
        "confidence topics",
        "{given}/planted.jsonl --topics 4 -w {w} -o {given}/t.json",
        "--names",
        new=True,
    ),
    **_saved("confidence report", "{given}/planted.jsonl {given}/topics.json -w {w}"),
    **_options("confidence report", "{given}/planted.jsonl {given}/topics.json -w {w}", "--tables", folder=True),
    **_saved("confidence tag apply", "bundled 'Seas rise.'"),
    **_saved(
        "confidence tag insert",
        "'Seas rise.' --anchors {given}/statements.jsonl --layer 1 --train-items 16 --model {model}",
    ),
    **_options("confidence tag train", "{given}/climatex.tsv --method words --folds 3", "--output"),
    **_options("confidence tag evaluate", "{given}/statements.jsonl --method words --folds 4", "--predictions"),
    **_options("records backup", "-w {w}", "file", ending=".sqlite", before=_EXPERIMENT),
    **_options("records export", "-w {w}", "file", ending=".jsonl", before=_EXPERIMENT),
    **_saved("evaluate mcq", f"{{given}}/questions.jsonl {ASKING} -w {{w}}"),
    **_options("evaluate mcq", f"{{given}}/questions.jsonl {ASKING} -w {{w}}", "--predictions"),
    **_options("evaluate init", "", "file", new=True),
    **_saved("evaluate run", "{given}/experiment.toml -w {w}"),
    **_options("evaluate table", "{run} -w {w} --format csv", "--output", before=_EXPERIMENT),
    **_options("evaluate report", "{run} -w {w}", "--output", before=_EXPERIMENT),
    **_options("generate screen", "{given}/drafts.jsonl", "--output"),
    **_options("generate init", "", "file", new=True),
    **_saved("generate run", "{given}/recipe.toml -w {w}"),
    **_saved("generate stats", "silver -w {w}"),
    **_options("generate export", "silver -w {w}", "--output"),
    **_options(
        "judge benchmark",
        f"{{given}}/items.jsonl {JUDGED} --method pairs --train-items 9 --limit-groups 3 {ASKING} -w {{w}}",
        "--predictions",
    ),
    **_saved(
        "judge benchmark",
        f"{{given}}/items.jsonl {JUDGED} --method pairs --train-items 9 --limit-groups 3 {ASKING} -w {{w}}",
    ),
    **_options("judge train", _PROBE, "--output"),
    **_options("judge train", f"{_PROBE} --output {{given}}/probe.safetensors", "--html"),
    **_saved("judge rank", f"{_QUALITY}"),
    **_saved(
        "judge insert",
        "{given}/new.jsonl --anchors {given}/few.jsonl --kind claims --method pairs --label score "
        f"--levels 0,1,2 --samples 2 {ASKING} -w {{w}}",
    ),
    **_saved("metrics score", "{given}/answers.jsonl --metric bleu_char"),
    **_saved("metrics entailment evaluate", "supports:openai:test {given}/pairs.jsonl --base-url {url} -w {w}"),
    **_options("generate mask", "statistics {given}/unmasked.jsonl", "--output"),
    **_options("prompts export", "", "folder", folder=True),
    **_options("generate validate train", "{given}/labels.jsonl", "--output"),
    **_options("generate validate train", "{given}/labels.jsonl --output {given}/validator", "--html", ending=".html"),
    **_options(
        "generate validate apply",
        "{given}/validator {given}/drafts.jsonl",
        "--output",
        before="generate validate train {given}/labels.jsonl -o {given}/validator",
    ),
    **_saved("factcheck score", "{given}/verdicts.csv --truth truth --predicted said"),
    **_options(
        "reproduce climaqa",
        f"--gold {{given}}/questions.jsonl --table 3 --limit 2 {ASKING} -w {{w}}",
        "--output",
        folder=True,
    ),
    **_options(
        "reproduce climinator",
        f"--claims {{given}}/rated.csv --truth verdict --ipcc book --table 1 --limit 1 {ASKING} -w {{w}}",
        "--output",
        folder=True,
    ),
    **_options(
        "reproduce ppairs",
        "--table 4.3 --climate {given}/rated.csv --model {model} -w {w}",
        "--output",
        folder=True,
    ),
}
"""By command and option."""

SMALL = (
    "factcheck score --output", "metrics score --output", "generate screen --output",
    "confidence extract --output", "generate publish --output", "prompts export folder", "generate init file",
    "evaluate init file",
)  # fmt: skip
"""What ``make test-faults`` tries; ``make faults`` tries all."""

ELSEWHERE = {
    "demo --output": "minutes of work, and the same writer as every other page",
    "tune pretrain --output": "a name in the workspace",
    "tune finetune --output": "a name in the workspace",
    "check --config": "is read",
    "generate run file": "is read",
    "annotate rubrics --overlap": "is a number",
    "check --claim-review": "is written for verdicts that rest on a quotation, which answers drawn by a hash have not",
    "factcheck run --config": "is read",
}
"""What looks as if it named a file to write and is not tried, and why."""


def offered() -> set[str]:
    """Every option, and every argument, that says what to write, by its command, for example ``publish --output``."""
    found = set()
    for command, app in walk():
        for option in arguments(app):
            description = (option.parameter.help or "").lower()
            is_named = option.name in {"--output", "--html"} or "write" in description
            # The option that saves a result in the format of the suffix has one writer: a few commands stand for all.
            saves = description.startswith("save the result too")
            if is_named and not saves and "bool" not in str(option.hint):
                found.add(f"{command} {option.name if option.name.startswith('-') else option.name.lower()}")
    return found
