"""The pages of the documentation: what stands in them, and what happens when a reader does what they say.

A page's fenced blocks are read with the comments that stand right before them:

``<!-- not run: needs ... -->``    the block is shown only; commands must still exist with all their options
``<!-- file: NAME -->``            the block is the content of a file that the following commands read
``<!-- output varies -->``         the commands are run, and what they print is not compared with the page

``python -m documentation PAGE...`` (with ``tests`` on the path) runs pages and writes what was printed into them.
"""

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from climassay.errors import ClimassayError

ROOT = Path(__file__).resolve().parent.parent
WIDTH = "96"
"""Columns of the outputs shown in the pages."""

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)\s*(?P<language>[\w-]*)[^`]*$")
COMMENT = re.compile(r"^\s*<!--\s*(?P<said>not run:.+|file:.+|output varies)\s*-->\s*$")
INLINE = re.compile(r"(?<!`)`(climassay(?: [^`]+)?)`(?!`)")
SHELLS = ("console", "bash", "sh")
ENVIRONMENT = re.compile(r"^[A-Za-z_]\w*=")
RUN = re.compile(r"\br[0-9a-f]{8}\b")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    said: tuple[str, ...] = ()
    """The comments before it."""

    @property
    def place(self) -> str:
        """Page and line, as in messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def why_not_run(self) -> str | None:
        """The reason given for not running it, if there is one."""
        return next((said.partition(":")[2].strip() for said in self.said if said.startswith("not run:")), None)

    @property
    def file(self) -> str | None:
        return next((said.partition(":")[2].strip() for said in self.said if said.startswith("file:")), None)

    @property
    def varies(self) -> bool:
        """Whether what is printed differs from run to run or machine to machine."""
        return "output varies" in self.said


@dataclass(frozen=True)
class Step:
    """One command of a console block with the output shown below it."""

    command: str
    shown: tuple[str, ...]


def pages() -> list[Path]:
    """Every page a reader may land on, in the same order each time."""
    return [
        ROOT / "README.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    said: list[str] = []
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        if comment := COMMENT.match(line):
            said.append(comment["said"].strip())
            continue
        fence = FENCE.match(line)
        if fence is None:
            said = [] if line.strip() else said
            continue
        inside: list[str] = []
        for _, other in lines:
            if other.strip() == fence["ticks"]:
                break
            inside.append(other.removeprefix(fence["indent"]))
        found.append(Block(page, number, fence["language"], "\n".join(inside), tuple(said)))
        said = []
    return found


def steps(block: Block) -> list[Step]:
    """The commands of a console block, continued lines joined, each with the lines shown below it."""
    found: list[Step] = []
    lines = block.text.splitlines()
    prompted = any(line.startswith("$ ") for line in lines)
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if prompted and not line.startswith("$ "):
            if found:
                found[-1] = Step(found[-1].command, (*found[-1].shown, line))
            continue
        command = line.removeprefix("$ ")
        while command.endswith("\\") and place < len(lines):
            command = command[:-1].rstrip() + " " + lines[place].strip()
            place += 1
        if command.strip() and not command.lstrip().startswith("#"):
            found.append(Step(command, ()))
    return found


def calls(command: str) -> list[list[str]]:
    """The calls of climassay in a line of a shell: their words after the name, without redirections."""
    reader = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    reader.whitespace_split = True
    reader.commenters = "#"
    found: list[list[str]] = []
    current: list[str] = []
    words = iter([*reader, ";"])
    for word in words:
        if set(word) <= set("<>"):
            next(words, None)
        elif set(word) <= set("|&;"):
            while current and ENVIRONMENT.match(current[0]):
                current = current[1:]
            if current and current[0] == "climassay":
                found.append(current[1:])
            current = []
        else:
            current.append(word)
    return found


def fault(words: list[str], *, whole: bool) -> str | None:
    """What the application would say against a call, its files aside; None if it would begin to work.

    Calls that are not whole may lack arguments, and have words in place of values.
    """
    from cyclopts import CycloptsError, UnknownCommandError, UnknownOptionError

    from climassay.cli.main import app

    try:
        command, _, _ = app.parse_args(words)
    except (CycloptsError, ClimassayError) as error:
        return str(error) if whole or isinstance(error, UnknownCommandError | UnknownOptionError) else None
    is_group = command.__name__ == "help_print" and "--help" not in words
    return "no command" if whole and is_group else None


def inline_calls(page: Path) -> list[list[str]]:
    """The calls of climassay named in the running text."""
    text = re.sub(r"(?ms)^ *(```+).*?^ *\1\s*$", "", page.read_text(encoding="utf-8"))
    found = []
    for said in INLINE.findall(re.sub(r"\s+", " ", text)):
        # Placeholders such as `a|b` and `(...)` are not shell.
        with contextlib.suppress(ValueError):
            found += [shlex.split(said)[1:]]
    return found


def names_imported(source: str) -> list[tuple[str, str | None]]:
    """Module and name of every import of climassay in a piece of Python."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "climassay":
            found += [(node.module or "", name.name) for name in node.names]
        elif isinstance(node, ast.Import):
            found += [(name.name, None) for name in node.names if name.name.split(".")[0] == "climassay"]
    return found


def shape(line: str) -> str:
    """A line without what may differ from run to run: words that hold a digit, widths, rules and the ends of a bar."""
    line = re.sub(r"[─━═-]{3,}", " ", line)
    return " ".join("#" if re.search(r"\d", word) else word for word in line.split())


def missing_lines(shown: tuple[str, ...], printed: str) -> list[str]:
    """Lines of the page that the command did not print, in this order; lines that hold only an ellipsis leave out."""
    there = iter([shape(line) for line in printed.splitlines()])
    return [line for line in shown if shape(line) not in ("", "...", "…") and shape(line) not in there]


@dataclass
class Reader:
    """Somebody who follows a page in a folder of their own: writes its files, types its commands, runs its Python.

    Attributes:
        folder: The current folder of everything that is run.
        names: What the Python blocks of the page have defined so far.
        run: Id of the run that a command told last, on stderr; readers type it where the page has an id.
    """

    folder: Path
    run: str | None = None
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "page"})

    def follow(self, page: Path) -> Iterator[tuple[Block, Step | None, str]]:
        """Run a page's blocks in order; yields what each command and each piece of Python printed."""
        for block in blocks(page):
            if block.why_not_run is not None:
                continue
            if block.file is not None:
                file = self.folder / block.file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text + "\n", encoding="utf-8")
            elif block.language in SHELLS:
                for step in steps(block):
                    yield block, step, self._type(step.command, block)
            elif block.language == "python":
                yield block, None, self.run_python(block)

    def _type(self, command: str, block: Block) -> str:
        if self.run is not None:
            command = RUN.sub(self.run, command)
        first = shlex.split(command, comments=True)
        if first[0] != "climassay" or set("|;<>&*") & set(re.sub(r"'[^']*'|\"[^\"]*\"", "", command)):
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"PATH": path},
            )
            assert done.returncode == 0, f"{block.place}: {command}\n{done.stdout}{done.stderr}"
            return done.stdout
        from climassay.cli.main import main

        out, err = io.StringIO(), io.StringIO()
        arguments, sys.argv = sys.argv, first
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main()
            code: object = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.argv = arguments
        assert code == 0, f"{block.place}: {command}\n{out.getvalue()}{err.getvalue()}"
        told = RUN.findall(err.getvalue())
        self.run = told[-1] if told else self.run
        return out.getvalue()

    def run_python(self, block: Block) -> str:
        """Run a block with what earlier ones have defined; what it printed."""
        out = io.StringIO()
        code = compile("\n" * block.line + block.text, str(block.page), "exec")
        try:
            with contextlib.chdir(self.folder), contextlib.redirect_stdout(out):
                exec(code, self.names)
        except Exception:
            raise AssertionError(f"{block.place} failed:\n{traceback.format_exc()}") from None
        return out.getvalue()


def rewritten(page: Path, printed: dict[tuple[int, str], str]) -> str:
    """A page's text with what its commands print in the places of what it showed."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found = blocks(page)
    for place, block in reversed(list(enumerate(found))):
        new: list[str] | None = None
        if block.language == "console" and any((block.line, step.command) in printed for step in steps(block)):
            new = []
            source = iter(block.text.splitlines())
            typed = [line for line in source if line.startswith(("$ ", "    "))]
            for step in steps(block):
                new.append(typed.pop(0))
                while new[-1].endswith("\\"):
                    new.append(typed.pop(0))
                while typed and not typed[0].startswith("$ "):
                    typed.pop(0)
                new += [line.rstrip() for line in printed[block.line, step.command].strip("\n").splitlines()]
        elif block.language == "text" and place and (found[place - 1].line, "") in printed:
            new = [line.rstrip() for line in printed[found[place - 1].line, ""].strip("\n").splitlines()]
        if new is not None:
            lines[block.line : block.line + len(block.text.splitlines())] = new
    return "\n".join(lines) + "\n"


def main(folder: Path, *names: str) -> None:
    """Run pages in a folder, one in a subfolder each, and write what was printed into them."""
    os.environ["COLUMNS"] = WIDTH
    for name in names:
        page = Path(name).resolve()
        place = folder / page.stem
        place.mkdir(parents=True, exist_ok=True)
        printed: dict[tuple[int, str], str] = {}
        try:
            for block, step, output in Reader(place).follow(page):
                printed[block.line, step.command if step else ""] = output
                print(f"{block.place}: {step.command if step else 'python'}\n{output}", file=sys.stderr)
        finally:
            page.write_text(rewritten(page, printed), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
