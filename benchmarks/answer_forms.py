"""Which forms of multiple-choice answers are read, by language and wrapper, and how often a letter is wrong.

The forms are those of ``tests/questions/answer_forms.jsonl``: one part was looked at while the reader was made, two
parts were held out. With ``--outputs``, answers of models to MMLU-Pro (the folder ``eval_results`` of its repository,
zip files of JSON) are read too and compared with the letter after "answer is", which is how MMLU-Pro scores them.

    python benchmarks/answer_forms.py [--outputs eval_results]
"""

import argparse
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from climassay.questions.types.multiple_choice.answers import find_chosen_option
from climassay.statistics import proportion

FORMS = Path(__file__).parents[1] / "tests" / "questions" / "answer_forms.jsonl"
_STATED = re.compile(r"answer is \(?([A-J])\b")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--outputs", type=Path)
    outputs = parser.parse_args().outputs
    forms = [json.loads(line) for line in FORMS.read_text(encoding="utf-8").splitlines()]
    for form in forms:
        chosen = find_chosen_option(form["answer"], form["options"])
        is_right = chosen == form["expected"]
        form["outcome"] = "right" if is_right else "unread" if chosen is None else "wrong"
    for name, group in (
        ("part", lambda form: form["part"]),
        ("language", lambda form: form["language"]),
        ("wrapper", lambda form: form["wrapper"]),
    ):
        print_table(name, forms, group)
    if outputs is not None:
        print(
            "\n| model | answers | same letter | other letter | read by one only: MMLU-Pro, here | CPU ms an answer |"
        )
        print("|---|---:|---:|---:|---:|---:|")
        for path in sorted(outputs.glob("*.zip")):
            compare(path)


def print_table(name: str, forms: list[dict[str, Any]], group: Callable[[dict[str, Any]], str]) -> None:
    print(f"\n| {name} | forms | right | wrong (95% interval) | unread (95% interval) |\n|---|---:|---:|---:|---:|")
    for value in dict.fromkeys(map(group, forms)):
        outcomes = Counter(form["outcome"] for form in forms if group(form) == value)
        count = outcomes.total()
        print(f"| {value} | {count} | {outcomes['right']} | {share(outcomes['wrong'], count)} ", end="")
        print(f"| {share(outcomes['unread'], count)} |")


def share(count: int, total: int) -> str:
    estimate = proportion(count, total)
    low, high = (f"{100 * value:.1f}" for value in (estimate.interval.low, estimate.interval.high))
    return f"{count} ({low} to {high}%)"


def compare(path: Path) -> None:
    from time import process_time

    outcomes: Counter[str] = Counter()
    start = process_time()
    for row in answers(path):
        text = row.get("model_outputs") or row.get("generated_text") or ""
        text = text[0] if isinstance(text, list) else text
        options = [option for option in row["options"] if option != "N/A"]
        stated = _STATED.findall(text)
        theirs = ord(stated[-1]) - ord("A") if stated else None
        ours = find_chosen_option(text, len(options))
        outcomes["answers"] += 1
        outcomes["same"] += ours is not None and ours == theirs
        outcomes["other"] += None not in (ours, theirs) and ours != theirs
        outcomes["theirs"] += ours is None and theirs is not None
        outcomes["ours"] += theirs is None and ours is not None
    spent = 1000 * (process_time() - start) / max(1, outcomes["answers"])
    name = path.name.removeprefix("model_outputs_").partition("_5shots")[0]
    print(f"| {name} | {outcomes['answers']} | {outcomes['same']} | {outcomes['other']} ", end="")
    print(f"| {outcomes['theirs']}, {outcomes['ours']} | {spent:.2f} |")


def answers(path: Path) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".json") and "MACOSX" not in name:
                yield from json.loads(archive.read(name))


if __name__ == "__main__":
    main()
