"""Every command that writes a file or folder where the user says, option by option, on small inputs."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from faults.commands import walk
from faults.long_commands import ASKING, CLAIM, DEBATE, JUDGED, LongCommand

TARGET = "{target}"


@dataclass(frozen=True)
class WritingCommand(LongCommand):
    """A command with the option that names what it writes: ``{target}``, a file or folder.

    ``{run}`` stands for the run that the command before it made.
    """

    folder: bool = False
    """Whether it writes a folder."""
    new: bool = False
    """Whether it writes only where no file is yet."""
    again: str = ""
    """What must be said to write once more over what is there."""

    def target(self, folder: Path) -> Path:
        """What is written into a folder."""
        (named,) = (part for part in shlex.split(self.arguments) if part.startswith(TARGET))
        return Path(named.format(target=folder / "out"))


def _options(command: str, arguments: str, *names: str, before: str = "") -> dict[str, WritingCommand]:
    """One command with each of these options in turn."""
    return {f"{command} {name}": WritingCommand(f"{command} {arguments} {name} {TARGET}", before) for name in names}


def _saved(command: str, arguments: str, before: str = "") -> dict[str, WritingCommand]:
    """One command with the option that saves its result as the file's ending says."""
    return {f"{command} --output": WritingCommand(f"{command} {arguments} --output {TARGET}.html", before)}


_QUALITY = f"{{given}}/few.jsonl --group group --quality 'is long' {ASKING} -w {{w}}"
_EXPERIMENT = "evaluate run {given}/experiment.toml -w {w} --json"
_VERDICTS = "{given}/verdicts.csv --truth truth --predicted said"
_TRAINED = "--layer 1 --model {model} -w {w}"
_PROBE = f"{{given}}/items.jsonl {JUDGED} {_TRAINED}"

WRITES: dict[str, WritingCommand] = {
    **_saved("ask", f"'Why does it warm?' -c book --threshold -1 {ASKING} -w {{w}}"),
    "generate publish --output": WritingCommand(
        f"generate publish {{given}}/sample.jsonl --data-only --output {TARGET}", folder=True, again="--force"
    ),
    "factcheck init file": WritingCommand(f"factcheck init {TARGET}", new=True),
    **_saved("check", f"{CLAIM} {DEBATE} --force {ASKING} -w {{w}}"),
    **_options("factcheck fallacies train", "{given}/fallacies.csv --folds 2", "--output"),
    **_options(
        "check",
        f"{CLAIM} {DEBATE} --force {ASKING} -w {{w}} --url https://example.org/1 --publisher Us",
        "--claim-review",
    ),
    **_saved("factcheck run", f"{{given}}/claims.csv {DEBATE} {ASKING} -w {{w}}"),
    **_options("factcheck run", f"{{given}}/claims.csv {DEBATE} {ASKING} -w {{w}}", "--transcripts"),
    "factcheck run --pages": WritingCommand(
        f"factcheck run {{given}}/claims.csv {DEBATE} {ASKING} -w {{w}} --pages {TARGET}", folder=True
    ),
    **_options("factcheck evidence", f"{{given}}/evidence.jsonl {ASKING} -w {{w}}", "--predictions"),
    **_saved("factcheck evidence", f"{{given}}/evidence.jsonl {ASKING} -w {{w}}"),
    **_options(
        "factcheck train", f"{{given}}/evidence.jsonl --encoder none {_TRAINED.replace('1', '2', 1)}", "--output"
    ),
    **_options(
        "factcheck apply",
        "{given}/head.safetensors {given}/evidence.jsonl --model {model} -w {w}",
        "--output",
        before="factcheck train {given}/evidence.jsonl --encoder none --layer 2 --model {model} -w {w}"
        " -o {given}/head.safetensors",
    ),
    **_options("annotate export", "silver -w {w} --format jsonl", "--output"),
    "annotate export folder --output": WritingCommand(
        f"annotate export silver -w {{w}} --format label-studio --output {TARGET}", folder=True
    ),
    "factcheck kept export file": WritingCommand(f"factcheck kept export {TARGET}.jsonl -w {{w}}"),
    **_saved("confidence extract", "{given}/report.md --untagged"),
    **_options(
        "confidence extract", "{given}/report.md --untagged --output {given}/extracted.jsonl", "--html", "--terms"
    ),
    **_options("confidence lint", "{given}/report.md --exit-zero", "--html"),
    **_options("confidence compare", "{given}/report.md {given}/report.md", "--output"),
    "confidence lint --output": WritingCommand(f"confidence lint {{given}}/a.docx --exit-zero --output {TARGET}.docx"),
    **_options("confidence topics", "{given}/planted.jsonl --topics 4 --words-only -w {w}", "--output"),
    "confidence topics --names": WritingCommand(
        "confidence topics {given}/planted.jsonl --topics 4 --words-only -w {w} -o {given}/t.json "
        f"--names {TARGET}",
        new=True,
    ),
    **_options("confidence report", "{given}/planted.jsonl {given}/topics.json -w {w} --html {given}/r.html", "--html"),
    "confidence report --tables": WritingCommand(
        f"confidence report {{given}}/planted.jsonl {{given}}/topics.json -w {{w}} --tables {TARGET}", folder=True
    ),
    **_options("confidence tag apply", "bundled 'Seas rise.'", "--output"),
    **_options(
        "confidence tag insert",
        "'Seas rise.' --labelled {given}/statements.jsonl --layer 1 --train-items 16 --model {model}",
        "--output",
    ),
    **_options("confidence tag train", "{given}/climatex.tsv --method words --folds 3", "--output"),
    **_options("confidence tag evaluate", "{given}/statements.jsonl --method words --folds 4", "--predictions"),
    "records export file": WritingCommand(f"records export {TARGET}.jsonl -w {{w}}", before=_EXPERIMENT),
    **_options(
        "evaluate mcq", f"{{given}}/questions.jsonl {ASKING} -w {{w}}", "--csv", "--markdown", "--html", "--predictions"
    ),
    "evaluate init file": WritingCommand(f"evaluate init {TARGET}", new=True),
    **_options("evaluate run", "{given}/experiment.toml -w {w}", "--html", "--markdown"),
    **_options("evaluate table", "{run} -w {w} --format csv", "--output", before=_EXPERIMENT),
    **_options("evaluate report", "{run} -w {w}", "--html", before=_EXPERIMENT),
    **_options("generate screen", "{given}/drafts.jsonl", "--output"),
    "generate init file": WritingCommand(f"generate init {TARGET}", new=True),
    **_saved("generate run", "{given}/recipe.toml -w {w}"),
    **_saved("generate stats", "silver -w {w}"),
    **_options("generate export", "silver -w {w}", "--output"),
    **_options(
        "judge benchmark",
        f"{{given}}/items.jsonl {JUDGED} --method pairs --train-items 9 --limit-groups 3 {ASKING} -w {{w}}",
        "--csv",
        "--markdown",
        "--html",
        "--predictions",
    ),
    **_options("judge train", _PROBE, "--output"),
    **_options("judge train", f"{_PROBE} --output {{given}}/probe.safetensors", "--html"),
    **_options("judge rank", f"{_QUALITY}", "--csv", "--html"),
    **_options("judge apply", f"pairs {_QUALITY}", "--output"),
    **_options(
        "judge insert",
        "{given}/new.jsonl --anchors {given}/few.jsonl --kind claims --method pairs --label score "
        f"--levels 0,1,2 --samples 2 {ASKING} -w {{w}}",
        "--csv",
    ),
    **_saved("metrics score", "{given}/answers.jsonl --metric bleu_char"),
    **_saved("metrics calibrate-window", ""),
    **_options("metrics entailment evaluate", "bundled {given}/pairs.jsonl", "--html"),
    **_options("metrics entailment apply", "bundled {given}/pairs.jsonl", "--output"),
    **_options("metrics entailment train", "{given}/pairs.jsonl --hold-out 3 --folds 3", "--output"),
    **_options("generate mask train", "{given}/cloze.jsonl --no-vectors", "--output"),
    **_options("generate mask apply", "statistics {given}/unmasked.jsonl", "--output"),
    "prompts export folder": WritingCommand(f"prompts export {TARGET}", folder=True),
    **_options("generate validate train", "{given}/labels.jsonl", "--output"),
    **_options("generate validate train", "{given}/labels.jsonl --output {given}/validator", "--html"),
    **_options(
        "generate validate apply",
        "{given}/validator {given}/drafts.jsonl",
        "--output",
        before="generate validate train {given}/labels.jsonl -o {given}/validator",
    ),
    **_options(
        "generate validate simulate",
        "{given}/labels.jsonl --splits 2 --start 6 --batch 10 --strategies random",
        "--html",
    ),
    **_saved("factcheck score", _VERDICTS),
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
    "factcheck run --config": "is read",
}
"""What looks as if it named a file to write and is not tried, and why."""


def offered() -> set[str]:
    """Every option, and every argument, that says what to write, by its command, for example ``publish --output``.

    The option that saves a result as the file's ending says has one writer for all commands: a few stand for all.
    """
    found = set()
    for command, made in walk():
        for option in made.params:
            said = (getattr(option, "help", None) or "").lower()
            named = option.name in {"output", "html"} or "write" in said
            saves = {"--output", "--markdown"} <= set(option.opts)
            if named and not saves and not getattr(option, "is_flag", False):
                found.add(f"{command} {option.opts[0]}")
    return found
