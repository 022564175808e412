"""Generation with a local model: this package against ``generate`` of transformers, on the same weights and prompts.

Claim: not slower for one prompt, faster for many, and the same words. The answers have different lengths, as real ones
do: transformers waits in each batch for the longest, this package gives the free row to the next prompt. Both sides run
in one process with one number of threads, in turns; the table shows medians and ratios.

With --long, prompts of some 1,200 tokens that share most of them, as `generate run` has them: CPU time and peak memory,
each round in a process of its own; with --against FOLDER in turns with another checkout of this project.

Run: python benchmarks/generation.py [--model local:smollm2] [--prompts 24] [--repeats 3] [--json]
     python benchmarks/generation.py --long --prompts 48 --tokens 96 [--against FOLDER]
"""

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from climassay.models.contract import GenerationRequest, Message, Sampling
from climassay.models.local.model import LocalModel

QUESTIONS = (
    "What is the capital of France?",
    "Name three greenhouse gases.",
    "Explain in two sentences why the ocean becomes more acid when it takes up carbon dioxide.",
    "Is methane a greenhouse gas? Answer yes or no.",
    "Give the chemical formula of ozone.",
    "Why does Arctic sea ice reflect sunlight?",
    "Write one sentence about aerosols and clouds.",
    "What is two plus two?",
)


def questions(count: int) -> list[str]:
    """As many different questions as wanted, of different lengths."""
    lead = ("", "Please answer for a student of climate science. ", "Short. ", "In simple words: ", "I wonder. ")
    return [f"{lead[number % len(lead)]}{QUESTIONS[number % len(QUESTIONS)]}" for number in range(count)]


def with_transformers(model: LocalModel, prompts: Sequence[str], batch: int, limit: int) -> list[str]:
    """Sorted by length, padded on the left, in batches."""
    tokenizer, network = model.prompts.tokenizer, model.network.model
    tokenizer.padding_side = "left"
    texts: dict[int, str] = {}
    order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        inputs = tokenizer(
            [prompts[index] for index in chosen], return_tensors="pt", padding=True, add_special_tokens=False
        ).to(network.device)
        with torch.inference_mode():
            made = network.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                max_new_tokens=limit,
                do_sample=False,
            )
        for index, row in zip(chosen, made[:, inputs["input_ids"].shape[1] :], strict=True):
            texts[index] = tokenizer.decode(row, skip_special_tokens=True)
    return [texts[index] for index in range(len(prompts))]


def with_climassay(model: LocalModel, asked: Sequence[str], limit: int) -> tuple[list[str], int]:
    """Through the public interface."""
    model.reader.release()
    requests = [GenerationRequest((Message("user", text),), Sampling(max_tokens=limit)) for text in asked]
    completions = model.generate(requests)
    return [done.text for done in completions], sum(done.usage.completion_tokens for done in completions)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall time of a call, and its result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def compare(model: LocalModel, asked: Sequence[str], batch: int, limit: int, repeats: int) -> dict[str, Any]:
    """Both sides on the same prompts, in turns."""
    prompts = [model.render((Message("user", text),)) for text in asked]
    model._generation._most_rows = batch
    ours, theirs, tokens, same = [], [], 0, 0
    for _ in range(repeats):
        spent, texts = seconds(lambda: with_transformers(model, prompts, batch, limit))
        theirs.append(spent)
        spent, (own, tokens) = seconds(lambda: with_climassay(model, asked, limit))
        ours.append(spent)
        same = sum(first == second for first, second in zip(texts, own, strict=True))
    ratio = statistics.median(their / our for their, our in zip(theirs, ours, strict=True))
    return {
        "rows": batch,
        "prompts": len(asked),
        "tokens": tokens,
        "transformers_tokens_per_second": tokens / statistics.median(theirs),
        "climassay_tokens_per_second": tokens / statistics.median(ours),
        "ratio": ratio,
        "same_texts": same,
    }


def long_questions(model: LocalModel, count: int) -> list[str]:
    """Questions behind 900 tokens of a bundled book that all share, and 200 tokens that four of them share."""
    from climassay.primer import book_path

    tokenizer = model.prompts.tokenizer
    tokens = tokenizer.encode(book_path("physical_climate").read_text("utf-8"), add_special_tokens=False)
    shared, rest = tokenizer.decode(tokens[:900]), tokens[900:]
    texts = []
    for number, question in enumerate(questions(count)):
        start = 200 * (number // 4) % (len(rest) - 200)
        texts.append(f"{shared}\n\n{tokenizer.decode(rest[start : start + 200])}\n\n{question} ({number})")
    return texts


def one_round(name: str, count: int, limit: int) -> dict[str, Any]:
    """Answer the long prompts once; CPU time of the answering alone, and memory of the process before and at most."""
    model = LocalModel(name)
    asked = long_questions(model, count)
    model.generate([GenerationRequest((Message("user", "Hello"),), Sampling(max_tokens=2))])
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    texts, tokens = with_climassay(model, asked, limit)
    return {
        "cpu_seconds": time.process_time() - started,
        "tokens": tokens,
        "loaded_mib": loaded / 1024,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "weights_mib": sum(weight.numel() * weight.itemsize for weight in model.network.model.parameters()) / 2**20,
        "texts": hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12],
    }


def compare_checkouts(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Rounds of this checkout and of another one, in turns."""
    here = Path(__file__).resolve().parent.parent
    sides = {"this": here} | ({"other": Path(given.against).resolve()} if given.against else {})
    rounds = []
    for _ in range(given.repeats):
        for side, folder in sides.items():
            command = [sys.executable, __file__, "--round", "--model", given.model]
            command += ["--prompts", str(given.prompts), "--tokens", str(given.tokens)]
            environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            rounds.append({"checkout": side, **json.loads(done.stdout.splitlines()[-1])})
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--prompts", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=48, help="upper limit of each answer")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--long", action="store_true", help="prompts of 1,200 tokens; CPU time and peak memory")
    parser.add_argument("--against", metavar="FOLDER", help="another checkout, for --long")
    parser.add_argument("--round", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.round:
        print(json.dumps(one_round(given.model, given.prompts, given.tokens)))
        return
    if given.long:
        for row in compare_checkouts(given):
            print(json.dumps(row), flush=True)
        return
    model = LocalModel(given.model)
    asked = questions(given.prompts)
    cases = [(1, asked[:4]), (8, asked), (32, asked)]
    rows = [compare(model, texts, batch, given.tokens, given.repeats) for batch, texts in cases]
    if given.json:
        print(json.dumps({"threads": model.threads, "dtype": model.dtype, "cases": rows}, indent=2))
        return
    sys.stdout.write(f"{given.model}, {model.dtype}, {model.device}, threads: {model.threads}\n")
    sys.stdout.write("rows  prompts  transformers  climassay  ratio  same texts\n")
    for row in rows:
        sys.stdout.write(
            f"{row['rows']:4}  {row['prompts']:7}  {row['transformers_tokens_per_second']:8.1f}/s  "
            f"{row['climassay_tokens_per_second']:7.1f}/s  {row['ratio']:5.2f}  {row['same_texts']}/{row['prompts']}\n"
        )


if __name__ == "__main__":
    main()
