"""Generation with a local model: this package against ``generate`` of transformers, on the same weights and prompts.

Claim: not slower for one prompt, faster for many, and the same words. The answers have different lengths, as real ones
do: transformers waits in each batch for the longest, this package gives the free row to the next prompt. Both sides run
in one process with one number of threads, in turns; the table shows medians and ratios.

Run: python benchmarks/generation.py [--model local:smollm2] [--prompts 24] [--repeats 3] [--json]
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="local:smollm2")
    parser.add_argument("--prompts", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=48, help="upper limit of each answer")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
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
