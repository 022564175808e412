"""Peak memory of every long command, with the bundled models on the primer or on small stated inputs.

Each command runs in a process of its own, whose largest resident set the operating system tells (``ru_maxrss``, its own
children included). The first row is a command that loads nothing. Commands whose inputs lie in the shared data are left
out where these are absent.

Run: python benchmarks/peak_memory.py [--data ../shared/data] [--only "generate run"] [--json]
"""

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from climassay.primer import gold_questions

LEVELS = (
    "incorrect|inaccurate|flawed reasoning|unsupported,misleading|lacks context|imprecise|correct but,"
    "mostly correct|mostly accurate|accurate|correct"
)
CLAIMS = (
    f'primer:claims --kind claims --text claim --label verdict --pairs-per-item 2 --limit-items 20 --levels "{LEVELS}"'
)
RECIPE = """
name = "silver"
collections = ["books"]
batch = 32
[writer]
model = "local:smollm2"
[counts]
mcq = 12
freeform = 0
cloze = 0
[screening]
consistency = ""
[stop]
drafts = 12
"""
EXPERIMENT = """
name = "small"
tasks = ["mcq", "freeform", "cloze"]
settings = ["default", "rag:books"]
[[benchmark]]
name = "primer"
files = ["primer"]
[[model]]
name = "local:smollm2"
"""


def commands(folder: Path, data: Path) -> list[tuple[str, str, str]]:
    """Each command's name, its arguments, and what it works on."""
    (folder / "recipe.toml").write_text(RECIPE, "utf-8")
    (folder / "experiment.toml").write_text(EXPERIMENT, "utf-8")
    with (folder / "answers.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["reference", "answer"])
        rows.writerows([one.answer, one.question] for one in gold_questions().of_kind("freeform"))
    report, statements, climatex = data / "pdf", folder / "statements.jsonl", data / "climatex_train.tsv"
    listed = [
        ("models list", "models list", "no model"),
        ("corpus add", "corpus add books primer:physical_climate primer:aerosols_clouds", "two books of the primer"),
        ("ask", 'ask "How much has the sea level risen since 1901?" -c books', "one question"),
        ("generate run", f"generate run {folder / 'recipe.toml'}", "12 drafts of multiple choice, 1,200 tokens each"),
        (
            "evaluate mcq",
            "evaluate mcq primer --setting default --setting rag:books --scoring text --limit 12",
            "12 questions, 2 settings",
        ),
        ("evaluate run", f"evaluate run {folder / 'experiment.toml'} --limit 2", "6 questions, 3 tasks, 2 settings"),
        (
            "factcheck",
            'factcheck "Volcanoes emit more CO2 than people do." -c books --rounds 1',
            "one claim, one advocate",
        ),
        ("judge train", f"judge train {CLAIMS} --output {folder / 'judge.safetensors'}", "20 claims, 2 pairs each"),
        ("judge benchmark", f"judge benchmark {CLAIMS} --folds 2 --regularisation 1", "20 claims, 2 pairs each"),
        ("tune finetune", "tune finetune primer --output small --epochs 1 --limit 4", "4 questions, 1 epoch"),
        ("metrics score", f"metrics score {folder / 'answers.csv'} -m bert_score", "30 answers, BERTScore"),
    ]
    if report.exists():
        listed += [
            ("confidence extract", f"confidence extract {report} -o {statements}", "four PDFs, 219 pages"),
            (
                "confidence topics",
                f"confidence topics {statements} -o {folder / 't.json'} --topics 8",
                "their statements",
            ),
            (
                "confidence tag train",
                f"confidence tag train {climatex} -o {folder / 'tagger.safetensors'} --folds 2",
                "ClimateX, 7,794 statements",
            ),
        ]
    return listed


def measured(arguments: str, folder: Path) -> dict[str, Any]:
    """Run a command; its wall time, CPU time, peak memory and how it ended."""
    program = Path(sys.executable).with_name("climassay")
    started = time.perf_counter()
    with (folder / "output.txt").open("wb") as output:
        environment = os.environ | {"CLIMASSAY_WORKSPACE": str(folder / "workspace")}
        child = subprocess.Popen(
            [program, *shlex.split(arguments)], env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return {
        "peak_mib": round(used.ru_maxrss / 1024),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "seconds": round(time.perf_counter() - started, 1),
        "exit_code": child.returncode,
        "last_words": "" if child.returncode == 0 else (folder / "output.txt").read_text("utf-8")[-400:],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--only", action="append", help="names of commands; repeat")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, arguments, on in commands(folder, given.data.resolve()):
            if given.only and name not in (*given.only, "corpus add"):
                continue
            row = {"command": name, "on": on, **measured(arguments, folder)}
            if given.json:
                print(json.dumps(row), flush=True)
            else:
                sys.stdout.write(
                    f"{name:22} {on:44} {row['peak_mib']:6} MiB {row['cpu_seconds']:7} s  {row['last_words']}\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
