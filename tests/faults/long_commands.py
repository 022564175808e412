"""Long commands on small inputs, one line each, and what these inputs are."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import samples

ASKING = "--model openai:test --base-url {url} --concurrency 1"
"""Options of a command that asks the API server."""
NAMED = "--model openai:test --base-url {url}"
"""Likewise, of a command that has no ``--concurrency``."""
JUDGED = "--group group --quality 'is long' --label score"
DEBATE = "-c book --plain --samples 3 -k 1 --excerpt-words 30 --text-tokens 8 --rounds 1 --split none --wording brief"
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
    "judge apply": LongCommand(
        f"judge apply pairs {{given}}/few.jsonl --group group --quality 'is long' {ASKING} -o {{out}}/ranking.jsonl "
        "-w {w} --json"
    ),
    "judge rank": LongCommand(
        f"judge rank {{given}}/few.jsonl --group group --quality 'is long' {ASKING} --csv {{out}}/ranking.csv "
        "-w {w} --json"
    ),
    "judge insert": LongCommand(
        f"judge insert {{given}}/new.jsonl --anchors {{given}}/few.jsonl --kind claims --method pairs --label score "
        f"--levels 0,1,2 --samples 2 --csv {{out}}/labels.csv {ASKING} -w {{w}} --json"
    ),
    "judge ablate": LongCommand(
        "judge ablate {given}/probe.safetensors {given}/items.jsonl --group group --controls 1 --limit-groups 2 "
        "--limit-items 4 --model {model} -w {w} --json",
        before=_TRAIN_PROBE,
    ),
    "check": LongCommand(f"factcheck {CLAIM} {DEBATE} --force {ASKING} --html {{out}}/page.html -w {{w}} --json"),
    "factcheck fallacies train": LongCommand(
        "factcheck fallacies train {given}/fallacies.csv -o {out}/f.safetensors --folds 2 --json"
    ),
    "factcheck run": LongCommand(
        f"factcheck run {{given}}/claims.csv {DEBATE} {ASKING} --transcripts {{out}}/debates.jsonl -w {{w}} --json"
    ),
    "factcheck evidence": LongCommand(
        f"factcheck evidence {{given}}/evidence.jsonl --predictions {{out}}/rows.jsonl {ASKING} -w {{w}} --json"
    ),
    "factcheck train": LongCommand(
        "factcheck train {given}/evidence.jsonl -o {out}/head.safetensors --layer 2 --encoder none "
        "--model {model} -w {w} --json"
    ),
    "tune finetune": LongCommand(
        "tune finetune {given}/sample.jsonl --validation-share 0.4 --model {model} --rank 2 --lr 1e-2 "
        "--dtype float32 --output tuned --max-length 512 --epochs 3 -w {w} --json"
    ),
    "tune pretrain": LongCommand(
        "tune pretrain book --validation notes --model {model} --rank 2 --lr 1e-2 --dtype float32 --output read "
        "--max-length 64 --epochs 3 -w {w} --json"
    ),
    "generate validate train": LongCommand(
        "generate validate train {given}/labels.jsonl -o {out}/validator.safetensors --json"
    ),
    "generate validate apply": LongCommand(
        "generate validate apply {given}/validator {given}/drafts.jsonl -o {out}/decided.jsonl --json",
        before=_TRAIN_VALIDATOR,
    ),
    "generate validate simulate": LongCommand(
        "generate validate simulate {given}/labels.jsonl --splits 2 --start 6 --batch 10 --json "
        "--strategies random,margin"
    ),
    "generate mask train": LongCommand(
        "generate mask train {given}/cloze.jsonl -o {out}/masker.safetensors --no-vectors --json"
    ),
    "generate mask apply": LongCommand(
        "generate mask apply statistics {given}/unmasked.jsonl -o {out}/masked.jsonl --json"
    ),
    "confidence extract": LongCommand("confidence extract {given}/report.md --untagged -o {out}/s.jsonl --json"),
    "confidence compare": LongCommand(
        "confidence compare {given}/report.md {given}/report.md -o {out}/changes.jsonl --json"
    ),
    "confidence tag train": LongCommand(
        "confidence tag train {given}/climatex.tsv -o {out}/t.safetensors --method words --folds 3 --json"
    ),
    "confidence tag evaluate": LongCommand(
        "confidence tag evaluate {given}/statements.jsonl --method words --folds 4 --predictions {out}/p.jsonl --json"
    ),
    "confidence tag insert": LongCommand(
        "confidence tag insert {given}/untagged.csv --text claim --labelled {given}/statements.jsonl --train-items 48 "
        "--layer 1 --model {model} -o {out}/tagged.jsonl --json"
    ),
    "confidence topics": LongCommand(
        f"confidence topics {{given}}/observed.jsonl --topics 6 --place-untagged {NAMED} -o {{out}}/topics.json "
        "--names {out}/names.toml -w {w} --json"
    ),
    "confidence report": LongCommand(
        "confidence report {given}/observed.jsonl {given}/topics.json --tagger bundled --html {out}/page.html "
        "--tables {out}/tables -w {w} --json",
        before="confidence topics {given}/observed.jsonl --topics 6 --place-untagged --words-only "
        "-o {given}/topics.json --json",
    ),
    "metrics entailment train": LongCommand(
        "metrics entailment train {given}/pairs.jsonl -o {out}/head.safetensors --hold-out 3 --folds 3 --json"
    ),
    "generate publish": LongCommand("generate publish {given}/sample.jsonl --name x -o {out}/published -w {w} --json"),
    "annotate retrain": LongCommand("annotate retrain silver --folds 2 --json -w {w}"),
}
"""By name. Long commands that are missing here are killed by the tests that ``faults.commands.KILLED`` names only."""

EXPERIMENT = """
benchmarks = ["{given}/questions.jsonl"]
tasks = ["mcq"]
settings = ["default"]
scoring = "letter"
[[model]]
name = "{model}"
"""
"""What the model needs beyond its name comes after it."""
RECIPE = """
name = "drawn"
collections = ["book"]
batch = 2
[writer]
model = "openai:test"
base_url = "{url}"
concurrency = 1
[counts]
mcq = 2
freeform = 2
cloze = 2
base = 1
[contexts]
most = 0
[stop]
asked = 8
"""


def write_inputs(given: Path, url: str) -> None:
    """All inputs of all commands."""
    from climassay.generation import Decision, Wording, write_drafts
    from confidence.tagging.planted import LEVELS, planted, write_climatex, write_extracted
    from generated_drafts import draft
    from planted_evidence import evidence_rows
    from published_sample import write_sample

    def table(name: str, rows: list[dict[str, Any]]) -> None:
        (given / name).write_bytes(samples.jsonl(rows))

    row = samples.QUESTIONS[0]
    table("questions.jsonl", [row | {"id": f"q{n}", "question": f"What scatters light {n}?"} for n in range(12)])
    (given / "experiment.toml").write_text(
        EXPERIMENT.format(given=given, model="openai:test") + f'base_url = "{url}"\nconcurrency = 1\n', encoding="utf-8"
    )
    (given / "recipe.toml").write_text(RECIPE.format(url=url), encoding="utf-8")
    write_sample(given)
    items = [
        {"group": f"g{group}", "id": f"{group}-{item}", "text": f"{'a' * item} of {group}", "score": item % 3}
        for group in range(5)
        for item in range(6)
    ]
    table("items.jsonl", items)
    table("few.jsonl", items[:6])
    table("new.jsonl", [{"group": "g0", "id": f"new{n}", "text": f"{'e' * n} of 9"} for n in range(4)])
    (given / "claims.csv").write_text("claim\nIce melts in summer.\nThe Sun drives all warming.\n", encoding="utf-8")
    table("evidence.jsonl", evidence_rows(18))
    labelled = []
    for number in range(30):
        valid = number % 3 != 0
        wording = Wording(f"What does particle {number} do?", "It grows." if valid else "Bananas are sold.")
        decision = Decision("expert", "anna", valid, "" if valid else "wrong answer")
        labelled.append(draft(number, wording=wording).decided(decision))
    write_drafts(given / "labels.jsonl", labelled)
    write_drafts(given / "drafts.jsonl", [draft(number) for number in range(40, 52)])
    bare = [draft(n, "cloze", wording=Wording(f"The albedo of ice sheet {n} is high.")) for n in range(8)]
    write_drafts(given / "unmasked.jsonl", bare)
    terms = ("albedo", "forcing", "aerosol", "convection", "monsoon", "permafrost")
    table("cloze.jsonl", [{"question": f"The <MASK> is high in year {n}.", "answer": terms[n % 6]} for n in range(12)])
    sentence = "Seas will rise by {} cm (high confidence), but ice number {} may stay (low confidence)."
    text = "\n\n".join(sentence.format(n, n) for n in range(200))
    (given / "report.md").write_text(f"# Seas\n\n{text}\n", encoding="utf-8")
    statements = planted(80, seed=5)
    write_extracted([(one.item.text, LEVELS[n % 4]) for n, one in enumerate(statements)], given / "statements.jsonl")
    claims = "".join(f"Of {one.section} we say that {one.item.text.lower()}\n" for one in planted(40, seed=7)[28:])
    (given / "untagged.csv").write_text(f"claim\n{claims}", encoding="utf-8")
    write_observations(given / "observed.jsonl")
    write_climatex(given / "climatex.tsv")
    from climassay.factcheck.fallacies import FALLACIES

    misled = "".join(
        f"It is {name} by way {way} of {number}.,{name}\n" for number in range(4) for way in "abc" for name in FALLACIES
    )
    (given / "fallacies.csv").write_text(f"text,fallacy\n{misled}", encoding="utf-8")
    pairs = []
    for place, thing in enumerate(("ice", "snow", "rain", "wind", "heat", "salt", "dust", "soil", "rock", "sand")):
        statement = f"The {thing} grew by {place + 3} units."
        for verb, label in (("grew", "SUPPORTS"), ("shrank", "REFUTES")):
            said = f"Records show that the {thing} {verb} by {place + 3} units."
            pairs.append({"premise": said, "statement": statement, "label": label})
        pairs.append({"premise": "Nothing was measured.", "statement": statement, "label": "NOT_ENOUGH_INFO"})
    table("pairs.jsonl", pairs)


def write_observations(file: Path) -> None:
    """Statements about six topics, most of them tagged."""
    import planted_statements
    from climassay.confidence.statement import write_statements

    untagged = [
        planted_statements.statement(number, topic, tag=None)
        for topic in ("ocean", "cloud")
        for number in range(100, 106)
    ]
    write_statements([*planted_statements.planted(), *untagged], file)


def make_workspace(folder: Path) -> None:
    """A workspace with the collections ``book`` and ``notes`` and the dataset ``silver`` with an annotator's labels."""
    import debate_workspaces
    from annotated_drafts import begin
    from climassay.generation import Wording
    from climassay.generation.annotation import AnnotationStore, ImportedLabel
    from climassay.records import Records
    from climassay.workspace import Workspace
    from debate_tables import make_collection, paragraph
    from generated_drafts import draft

    debate_workspaces.make_workspace(folder)
    noted = paragraph("physical_climate", "The climatic importance of CO2")
    make_collection(Workspace.open(folder), "notes", noted, title="Notes")
    answers = ("Bananas are sold on Mondays.", "It grows.", "It grows and falls.")
    with Records(Workspace.open(folder).records_url) as records:
        begin(records, [draft(n, wording=Wording(f"What happens to particle {n}?", answers[n % 3])) for n in range(20)])
        given = [
            ImportedLabel(f"q{n:04d}", "ann", bool(n % 3), () if n % 3 else ("wrong answer",), key=str(n))
            for n in range(14)
        ]
        AnnotationStore(records).import_labels("silver", given)


def environment(life: Path, encoders: Path) -> dict[str, str]:
    """Of a command whose cache is its own but for the encoders' graphs, which take long to make."""
    cache = life / "cache"
    cache.mkdir(exist_ok=True)
    if not (cache / "encoders").exists():
        (cache / "encoders").symlink_to(encoders)
    own = {"CLIMASSAY_CACHE": str(cache), "OMP_NUM_THREADS": "1", "CLIMASSAY_THREADS": "1", "OPENAI_API_KEY": "none"}
    return os.environ | own
