"""A local model, tuned and untuned, in every setting on the primer and on Pira: docs/results/evaluation.md.

Pira's questions are split by source text: one half is learned from (fine-tuning, few-shot examples), the other asked.
Retrieval from the source means Pira's own texts, or the primer's books; held-out means the IPCC's Sixth Assessment
Report. Continued pre-training reads a climate textbook that gave no question and stops early on another one.

It takes hours on two cores; kill it and start it again at any time, only what is missing is done.

Usage: python benchmarks/long/evaluation_matrix.py WORKSPACE [primer] [pira] [--model local:NAME] [--limit N]
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from climassay import primer
from climassay.corpus import Block, Document, open_or_create, read
from climassay.evaluation.tuned import split_questions
from climassay.questions import Question, read_questions
from climassay.workspace import Workspace

DATA = Path(os.environ.get("CLIMASSAY_DATA", Path(__file__).parents[3] / "shared" / "data"))
HALF = 0.5
VALIDATION_PARAGRAPHS = 60
"""Of the second textbook: enough to see a validation loss turn, few enough to compute it often."""

SETTINGS = """
[[setting]]
use = "few-shot:{pool}"
label = "few-shot"

[[setting]]
use = "rag:{source}"
label = "rag-source"

[[setting]]
use = "rag:ar6"
label = "rag-held-out"

[[setting]]
use = "long-context:auto@{source}"
label = "long-context"
window = 2048

[[setting]]
use = "continued-pretraining"
label = "cp-held-out"
training = {{ collections = ["laboratory"], validation = ["academy-part"], source = ["{source}"] }}

[[setting]]
use = "fine-tuned"
label = "ft-pira"
training = {{ questions = "pira_tune.jsonl" }}
"""
MODELS = """
[[model]]
name = "{model}"
label = "{label} (letters)"
dtype = "bfloat16"

[[model]]
name = "{model}"
label = "{label} (texts)"
dtype = "bfloat16"
scoring = "text"
"""
EXPERIMENTS = {
    "primer": 'benchmarks = ["primer"]\nsettings = ["default"]\n'
    + MODELS
    + SETTINGS.format(pool="{data}/climaqa_fewshot_examples.json", source="primer-source"),
    "pira": '[[benchmark]]\nname = "pira"\nfiles = ["pira_test.jsonl"]\n'
    + MODELS
    + '\n[[setting]]\nuse = "default"\n\n[[setting]]\nuse = "context"\n'
    + SETTINGS.format(pool="pira_tune.jsonl", source="pira-source"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("workspace", type=Path)
    parser.add_argument("names", nargs="*", default=sorted(EXPERIMENTS), help=", ".join(EXPERIMENTS))
    parser.add_argument("--model", default="local:smollm2", help="local:smollm2, or local:FOLDER_OR_HUB_ID")
    parser.add_argument("--limit", type=int, help="most questions a task")
    options = parser.parse_args()
    workspace = Workspace.open(options.workspace)
    prepare(workspace)
    for name in options.names:
        label = options.model.rpartition(":")[2].rstrip("/").rpartition("/")[2]
        stem = f"{name}-{label}"
        values = {"data": str(DATA), "model": options.model, "label": label}
        text = f'name = "{stem}"\n' + EXPERIMENTS[name]
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", value)
        file = workspace.root / f"{stem}.toml"
        file.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "climassay.cli.main", "evaluate", "run", str(file)]
        command += ["--workspace", str(workspace.root), "--output", str(workspace.root / f"{stem}.html")]
        command += ["--limit", str(options.limit)] if options.limit else []
        subprocess.run(command, check=True)
    return 0


def prepare(workspace: Workspace) -> None:
    """Questions and collections, where they are not there yet."""
    multiple = read_questions(DATA / "pira_mcq.csv").questions
    free = read_questions(DATA / "pira_qa.csv").questions
    # The same questions stand in both files: both forms of one stay on one side, because they share their text.
    questions = [replace(one, id=f"{one.kind}-{one.id}") for one in (*multiple, *free)]
    tune, test = split_questions(questions, HALF, seed=0)
    _write(workspace.root / "pira_tune.jsonl", tune)
    _write(workspace.root / "pira_test.jsonl", test)
    texts = dict.fromkeys(one.context or "" for one in questions)
    made = [_document(f"pira-{number}", text) for number, text in enumerate(texts)]
    wanted = {
        "pira-source": lambda: made,
        "primer-source": lambda: [_read_one(primer.book_path(book)) for book in primer.SOURCE_BOOKS],
        "laboratory": lambda: read(DATA / "climate_laboratory.jsonl").documents,
        "academy-part": lambda: [_beginning(read(DATA / "climate_academy.jsonl").documents[0])],
        "ar6": lambda: read(DATA / "ipcc_ar6_paragraphs.jsonl.gz").documents,
    }
    for name, documents in wanted.items():
        collection = open_or_create(workspace, name)
        there = {one.id for one in collection.documents() if one.complete}
        missing = [one for one in documents() if one.id not in there]
        if missing:
            print(f"adding {len(missing)} documents to {name}", flush=True)
            collection.add(missing)


def _read_one(path: Path) -> Document:
    [document] = read(path).documents
    return document


def _document(name: str, text: str) -> Document:
    return Document(name, name, f"{name}.txt", (Block(text),))


def _beginning(document: Document) -> Document:
    return replace(document, id=f"{document.id}-part", blocks=document.blocks[:VALIDATION_PARAGRAPHS])


def _write(path: Path, questions: Sequence[Question]) -> None:
    lines = []
    for one in questions:
        row = asdict(one)
        row["passage"] = row.pop("context")
        if one.kind != "mcq":
            row.pop("options")
        lines.append(json.dumps(row, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
