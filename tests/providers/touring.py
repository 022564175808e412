"""A tour: every command that asks a model, each run once against one server, and what came of it."""

import io
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from climassay.cli.main import main
from providers.knowing_model import FACTS
from providers.manners import Manner, ProviderServer

TRUE = f"{FACTS[0].true}."
THREE = f"{FACTS[0].true}. {FACTS[1].true}. {FACTS[3].false}."
QUALITY = ("--quality", "has a high value")

EXPERIMENT = """
benchmarks = ["{given}/questions.jsonl"]
tasks = ["mcq", "freeform", "cloze"]
settings = ["default", "rag:book"]
[metrics]
entailment = "supports:openai:{model}"
facts = false
[[model]]
name = "openai:{model}"
label = "asked"
"""
RECIPE = """
name = "made"
collections = ["book"]
batch = 2
[writer]
model = "openai:{model}"
[counts]
mcq = 2
freeform = 2
cloze = 2
[contexts]
max_passages = 0
[screening]
consistency = "writer"
[stop]
drafts = 8
"""


@dataclass(frozen=True)
class Command:
    """A command of the tour, and what of its result does not depend on the server."""

    arguments: tuple[str, ...]
    result: Callable[[Any, Path], Any]
    """From what it printed, and the folder for its files, to what is the same with all servers."""
    takes_model: bool = True
    """As ``--model``; the others have it in their file, or under another name."""


def _answer(data: Any, _: Path) -> Any:
    assert data["error"] is None
    return data["text"], data["enough_information"], data["removed_citations"]


def _predictions(data: Any, file: Path) -> Any:
    assert data["tally"]["failed"] == 0
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert all(row["error"] is None for row in rows)
    chosen = [(row["question"], row["permutation"], row["chosen"]) for row in rows]
    # Servers call the model by names of their own, and give probabilities or not.
    return chosen, [{**row, "model": "", "readings": []} for row in data["scores"]["accuracy"]]


def _scores(data: Any, _: Path) -> Any:
    assert not data["skipped"]
    assert all(score["unscored"] == 0 for score in data["scores"])
    judged = [score for score in data["scores"] if score["metric"] == "factual_accuracy"]
    # Log-probabilities give a share and a word gives 0 or 1: on the same side they have to be.
    assert judged
    assert all(score["estimate"]["value"] > 0.5 for score in judged)
    return [score for score in data["scores"] if score not in judged]


def _drafts(data: Any, _: Path) -> Any:
    assert data["complete"]
    assert all(stream["failed"] == 0 for stream in data["streams"])
    return data["streams"], data["sources"]


def _verdict(data: Any, _: Path) -> Any:
    verdict, rounds = data["verdict"], data["rounds"]
    said = [
        (one["advocate"], one["subclaim"], one["verdict"], [sentence["text"] for sentence in one["explanation"]])
        for round_ in rounds
        for one in (*round_["opinions"], *round_["parts"])
    ]
    errors = [one["error"] for round_ in rounds for one in (*round_["opinions"], *round_["parts"], round_["decision"])]
    assert not any(errors), errors
    assert all(opinion["verdict"] is not None for round_ in rounds for opinion in round_["opinions"])
    explained = [(sentence["text"], sentence["citations"]) for sentence in verdict["explanation"]]
    statements = [part["text"] for part in data["subclaims"]]
    return verdict["outcome"], verdict["label"], verdict["levels"], explained, statements, said


def _marks(data: Any, _: Path) -> Any:
    assert not data["skipped"]
    return data["means"]["judged_accuracy"], data["answers"]


def _order(data: Any, _: Path) -> Any:
    assert data["failed"] == 0
    return [item["text"] for item in data["items"]]


def _asked_mcq(file: str, *more: str) -> tuple[str, ...]:
    return ("evaluate", "mcq", "{given}/questions.jsonl", "--predictions", f"{{place}}/{file}", *more)


def _checked(claim: str) -> tuple[str, ...]:
    return ("check", claim, "-c", "book", "--plain", "--force", "--scale", "climate-feedback")


COMMANDS = {
    "ask": Command(("ask", FACTS[0].question, "-c", "book"), _answer),
    "letters by likelihood": Command(
        _asked_mcq("likelihood.jsonl", "--permutations", "4"),
        lambda data, place: _predictions(data, place / "likelihood.jsonl"),
    ),
    "letters generated": Command(
        _asked_mcq("letter.jsonl", "--scoring", "letter", "-s", "rag:book"),
        lambda data, place: _predictions(data, place / "letter.jsonl"),
    ),
    "experiment": Command(("evaluate", "run", "{place}/experiment.toml"), _scores, takes_model=False),
    "generation": Command(("generate", "run", "{place}/recipe.toml"), _drafts, takes_model=False),
    "one statement": Command(_checked(TRUE), _verdict),
    "three statements": Command(_checked(THREE), _verdict),
    "metrics": Command(
        ("metrics", "score", "{given}/answers.jsonl", "--judge", "openai:{model}", "-m", "judged_accuracy"),
        _marks,
        takes_model=False,
    ),
    "pairs": Command(("judge", "rank", "{given}/items.jsonl", *QUALITY, "--method", "pairs"), _order),
    "ratings": Command(("judge", "rank", "{given}/items.jsonl", *QUALITY, "--method", "direct"), _order),
}
"""By what is looked at."""


def told(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``climassay ARGUMENTS...`` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with ExitStack() as stack:
        stack.enter_context(patch.object(sys, "argv", ["climassay", *arguments]))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return code, out.getvalue(), err.getvalue()


@dataclass(frozen=True)
class Stop:
    """What came of a command."""

    code: int
    out: str
    err: str
    refused: int
    """Requests that the server refused."""
    asked: int

    @property
    def data(self) -> Any:
        """What it printed as JSON."""
        assert self.code == 0, self.err
        return json.loads(self.out)


class Tour:
    """Runs a command when its result is first asked for; all of them in one workspace."""

    def __init__(self, manner: Manner, place: Path, given: Path) -> None:
        self.manner = manner
        self.place = place
        self.given = given
        self.server = ProviderServer(manner).__enter__()
        self._stops: dict[str, Stop] = {}
        for name, text in (("experiment", EXPERIMENT), ("recipe", RECIPE)):
            (place / f"{name}.toml").write_text(text.format(given=given, model=manner.model), encoding="utf-8")

    def close(self) -> None:
        """End the server."""
        self.server.__exit__()

    def result(self, name: str) -> Any:
        """What of a command's result does not depend on the server."""
        return COMMANDS[name].result(self.stop(name).data, self.place)

    def stop(self, name: str) -> Stop:
        """What came of a command."""
        if name not in self._stops:
            command = COMMANDS[name]
            self._stops[name] = self.run(*command.arguments, model=command.takes_model)
        return self._stops[name]

    def all(self) -> list[Stop]:
        """What came of all commands."""
        return [self.stop(name) for name in COMMANDS]

    def run(self, *arguments: str, model: bool = True) -> Stop:
        """A command against the tour's server, afresh."""
        filled = [part.format(given=self.given, place=self.place, model=self.manner.model) for part in arguments]
        filled += ["--model", f"openai:{self.manner.model}"] if model else []
        filled += ["--workspace", str(self.place / "w"), "--json"]
        refused, asked = len(self.server.refused), len(self.server.asked)
        with patch.dict(os.environ, {"OPENAI_BASE_URL": self.server.url, "OPENAI_API_KEY": ""}):
            code, out, err = told(*filled)
        return Stop(code, out, err, len(self.server.refused) - refused, len(self.server.asked) - asked)
