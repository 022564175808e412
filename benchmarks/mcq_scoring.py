"""Scoring multiple-choice questions: this package against lm-evaluation-harness, same weights, same strings.

Claim: never slower, and three times faster where a long retrieved context is shared by the options or by several
questions, with the same log-likelihoods (to 1e-3) and so the same accuracies. Four cases:

  letters    a short prompt, answers are letters
  full text  a short prompt, answers are the options' texts
  context    a long context before each question, answers are the options' texts
  shared     one long context before several questions, answers are the options' texts

Both sides hold the same model object with the same number of threads and get the same context and continuation strings.
They run in turns, in every number format of ``--dtypes`` (by default float32, and bfloat16 where the processor computes
it faster): the table has each format, and each side at its fastest. lm-evaluation-harness runs at several batch sizes,
the fastest of which counts. What this package keeps between calls is dropped before each run. Beside other work,
``--cpu-time`` counts seconds of the CPU (one thread) and not of the clock.

lm-evaluation-harness is not needed by the package: give it an environment of its own, for example
  python -m venv ../bench
  ../bench/bin/pip install -c requirements/constraints.txt -e '.[local]' 'lm-eval==0.4.13'

Run: python benchmarks/mcq_scoring.py [--questions 24] [--long 4] [--repeats 2] [--batches 1 8] [--cpu-time] [--json]
"""

import argparse
import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from climassay.models.contract import Message, OptionRequest
from climassay.models.local.cpu_settings import fastest_cpu_dtype
from climassay.models.local.loading import load_local
from climassay.models.local.model import LocalModel

DATA = Path(os.environ.get("CLIMASSAY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
PIRA = DATA / "pira_mcq.csv"
LETTERS = "abcde"
CONTEXT_CHARACTERS = 4500
QUESTIONS_PER_CONTEXT = 4


@dataclass(frozen=True)
class Question:
    """A question with its options and the text that it is about."""

    text: str
    options: tuple[str, ...]
    correct: int
    source: str


@dataclass(frozen=True)
class Case:
    """Requests of one kind, with the option that is right in each."""

    name: str
    requests: list[OptionRequest]
    correct: list[int]


def primer_questions() -> list[Question]:
    """The bundled gold multiple-choice questions."""
    folder = resources.files("climassay.primer") / "questions"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".jsonl")), key=lambda entry: entry.name)
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        Question(row["question"], tuple(row["options"]), LETTERS.index(row["answer"]), row["passage"])
        for row in rows
        if row["kind"] == "mcq"
    ]


def pira_questions() -> list[Question]:
    """Questions of the Pira set, which come with the text they were written on."""
    if not PIRA.exists():
        sys.exit(f"The questions with long contexts are in {PIRA.name}, which is not there: see ../shared/data.")
    with PIRA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Question(row["question"], tuple(row[letter] for letter in LETTERS.upper()), right, row["text"])
        for row in rows
        if (right := LETTERS.upper().find(row["alternative"].strip())) >= 0
        and all(row[letter].strip() for letter in LETTERS.upper())
    ]


def request(question: Question, *, letters: bool, context: str = "") -> OptionRequest:
    """A question as a chat; no string ends with a space, so both sides cut it into the same tokens."""
    listed = "\n".join(f"{letter}) {option}" for letter, option in zip(LETTERS, question.options, strict=False))
    text = f"{context}\n\n{question.text}\n{listed}".strip() if letters else f"{context}\n\n{question.text}".strip()
    options = LETTERS[: len(question.options)] if letters else question.options
    return OptionRequest((Message("user", text),), tuple(f" {option.strip()}" for option in options), "Answer:")


def long_context(questions: Sequence[Question], start: int) -> str:
    """Texts of the questions from ``start`` on, each once, as retrieval would put them together."""
    texts: dict[str, None] = {}
    for question in [*questions[start:], *questions[:start]]:
        if sum(map(len, texts)) >= CONTEXT_CHARACTERS:
            break
        texts[question.source] = None
    return "\n\n".join(texts)[:CONTEXT_CHARACTERS].rsplit(" ", 1)[0]


def cases(short: int, long: int) -> list[Case]:
    """The four kinds of work."""
    primer, pira = primer_questions()[:short], pira_questions()
    own = pira[: long * 7 : 7]
    groups = [pira[start : start + QUESTIONS_PER_CONTEXT] for start in range(0, long * 20, 20)]
    shared = [(question, long_context(group, 0)) for group in groups[: max(1, long // 2)] for question in group]
    return [
        Case("letters", [request(one, letters=True) for one in primer], [one.correct for one in primer]),
        Case("full text", [request(one, letters=False) for one in primer], [one.correct for one in primer]),
        Case(
            "context",
            [request(one, letters=False, context=long_context([one, *pira[1:]], 0)) for one in own],
            [one.correct for one in own],
        ),
        Case(
            "shared",
            [request(question, letters=False, context=context) for question, context in shared],
            [question.correct for question, _ in shared],
        ),
    ]


def with_climassay(model: LocalModel, case: Case) -> list[list[float]]:
    """Through the public interface, nothing kept from before."""
    model.reader.release()
    return [list(scores.logprobs) for scores in model.option_logprobs(case.requests)]


def with_harness(harness: Any, model: LocalModel, case: Case) -> list[list[float]]:
    """Through ``loglikelihood``, which its multiple-choice tasks call."""
    from lm_eval.api.instance import Instance

    pairs = [
        (model.render(one.messages, one.assistant_prefix), option) for one in case.requests for option in one.options
    ]
    instances = [
        Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=number) for number, pair in enumerate(pairs)
    ]
    results = iter(harness.loglikelihood(instances, disable_tqdm=True))
    return [[next(results)[0] for _ in one.options] for one in case.requests]


def accuracy(scores: Sequence[Sequence[float]], correct: Sequence[int]) -> float:
    """Share of questions whose right option has the highest log-likelihood."""
    hits = [max(range(len(row)), key=row.__getitem__) == right for row, right in zip(scores, correct, strict=True)]
    return sum(hits) / len(hits)


def compare(
    sides: dict[str, tuple[LocalModel, dict[int, Any]]], case: Case, repeats: int, clock: Callable[[], float]
) -> list[dict[str, Any]]:
    """All sides on one case, in turns; the medians, by number format and of each side's fastest."""
    ours: dict[str, list[float]] = {dtype: [] for dtype in sides}
    theirs: dict[tuple[str, int], list[float]] = {(one, batch): [] for one in sides for batch in sides[one][1]}
    own: dict[str, list[list[float]]] = {}
    other: dict[str, list[list[float]]] = {}
    for _ in range(repeats):
        for dtype, (model, harnesses) in sides.items():
            for batch, harness in harnesses.items():
                started = clock()
                other[dtype] = with_harness(harness, model, case)
                theirs[dtype, batch].append(clock() - started)
            started = clock()
            own[dtype] = with_climassay(model, case)
            ours[dtype].append(clock() - started)

    def row(their: tuple[str, int], our: str, dtype: str) -> dict[str, Any]:
        ratios = (a / b for a, b in zip(theirs[their], ours[our], strict=True))
        rows = zip(own[our], other[their[0]], strict=True)
        pairs = [(a, b) for first, second in rows for a, b in zip(first, second, strict=True)]
        return {
            "case": case.name,
            "dtype": dtype,
            "questions": len(case.requests),
            "harness_seconds": statistics.median(theirs[their]),
            "harness_batch": their[1],
            "climassay_seconds": statistics.median(ours[our]),
            "ratio": statistics.median(ratios),
            "harness_accuracy": accuracy(other[their[0]], case.correct),
            "climassay_accuracy": accuracy(own[our], case.correct),
            "largest_difference": max(abs(a - b) for a, b in pairs),
        }

    def fastest(dtypes: Sequence[str]) -> tuple[str, int]:
        return min((key for key in theirs if key[0] in dtypes), key=lambda key: statistics.median(theirs[key]))

    rows = [row(fastest([dtype]), dtype, dtype) for dtype in sides]
    if len(sides) > 1:
        quickest = min(ours, key=lambda dtype: statistics.median(ours[dtype]))
        rows.append(row(fastest(list(sides)), quickest, "each its best"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--questions", type=int, default=24, help="short questions")
    parser.add_argument("--long", type=int, default=4, help="questions with a context of their own")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8], help="of lm-evaluation-harness")
    parser.add_argument("--cases", nargs="+", help="only these cases")
    parser.add_argument("--dtypes", nargs="+", default=sorted({"float32", fastest_cpu_dtype()}, reverse=True))
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        from lm_eval.models.huggingface import HFLM
    except ImportError:
        sys.exit("lm-evaluation-harness is not installed: the head of this file says how to get it.")
    clock = time.process_time if given.cpu_time else time.perf_counter
    sides = {}
    for dtype in given.dtypes:
        model = LocalModel(given.model, dtype=dtype)
        plain = load_local(given.model.removeprefix("local:"), dtype=dtype).model
        sides[dtype] = (
            model,
            {
                batch: HFLM(pretrained=plain, tokenizer=model.prompts.tokenizer, batch_size=batch)
                for batch in given.batches
            },
        )
        model.option_logprobs([OptionRequest((Message("user", "warm up"),), ("a",))])
    torch.set_num_threads(model.threads)
    chosen = [case for case in cases(given.questions, given.long) if not given.cases or case.name in given.cases]
    rows = [row for case in chosen for row in compare(sides, case, given.repeats, clock)]
    about = {"threads": model.threads, "device": model.device, "clock": "CPU" if given.cpu_time else "wall"}
    if given.json:
        print(json.dumps({**about, "cases": rows}, indent=2))
        return
    print(f"{given.model}, {', '.join(f'{name}: {value}' for name, value in about.items())}")
    print("case       number format  questions  harness (batch)  climassay  ratio  accuracies     largest difference")
    for row in rows:
        print(
            f"{row['case']:9}  {row['dtype']:13}  {row['questions']:9}  {row['harness_seconds']:8.2f} s "
            f"({row['harness_batch']:3})  {row['climassay_seconds']:7.2f} s  {row['ratio']:5.2f}  "
            f"{row['harness_accuracy']:.3f} {row['climassay_accuracy']:.3f}    {row['largest_difference']:.1e}"
        )


if __name__ == "__main__":
    main()
