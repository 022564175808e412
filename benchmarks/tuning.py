"""LoRA training: tokens a second and loss of the same steps, ours against the usual loop around transformers.

Both train the bundled model on the primer's questions of all kinds that it has, in the prompts of the evaluation, with
the same adapter, seed and optimiser settings, one thread, float32. The usual loop takes the questions in random order,
pads every batch to its longest row with an attention mask and computes the logits of every token; ours sorts within a
pool, needs no mask and computes logits where something is learned. A second comparison is ours in float32 against ours
in bfloat16, which is what training takes by default on CPUs that multiply it.

What is counted are tokens of the questions, padding not, for each second of CPU time.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import torch
from transformers import logging

from climassay.evaluation.settings import chat_examples
from climassay.models.local.prompt_format import PromptFormat
from climassay.primer import gold_questions
from climassay.tuning.base import TuningBase, default_dtype
from climassay.tuning.config import TuningConfig
from climassay.tuning.data import ChatData
from climassay.tuning.run import attach_adapter
from climassay.tuning.sequences import IGNORED, SequenceLoss, TokenSequence, epoch_order, tokenise

RANK = 8
Step = Callable[[Sequence[int]], torch.Tensor]


@dataclass(frozen=True)
class Measurement:
    """One way of training over the same sequences."""

    name: str
    tokens_per_second: float
    loss: float
    """Nats a token over all sequences, before anything was learned: the same for all ways."""


def sequences(base: TuningBase, count: int) -> tuple[TokenSequence, ...]:
    """Questions of the primer as they are trained on, drawn with a fixed seed."""
    loaded, questions = base.load(), list(gold_questions().questions)
    random.Random(0).shuffle(questions)
    data = ChatData("primer", tuple(chat_examples(questions[:count])))
    ends = frozenset({int(loaded.tokenizer.eos_token_id)})
    return tokenise(data, PromptFormat(loaded.tokenizer), ends, 512).sequences


def usual_step(model: torch.nn.Module, rows: Sequence[TokenSequence]) -> Step:
    """Pad, mask, and let the model compute all logits."""

    def step(indices: Sequence[int]) -> torch.Tensor:
        longest = max(len(rows[index].tokens) for index in indices)
        tokens, mask = (torch.zeros(len(indices), longest, dtype=torch.long) for _ in range(2))
        labels = torch.full((len(indices), longest), IGNORED)
        for place, index in enumerate(indices):
            row = rows[index]
            tokens[place, : len(row.tokens)] = torch.tensor(row.tokens)
            mask[place, : len(row.tokens)] = 1
            labels[place, row.start : len(row.tokens)] = torch.tensor(row.tokens[row.start :])
        logits = model(input_ids=tokens, attention_mask=mask, use_cache=False).logits.float()
        flat = logits[:, :-1].reshape(-1, logits.shape[-1])
        return torch.nn.functional.cross_entropy(flat, labels[:, 1:].reshape(-1), reduction="sum")

    return step


def measure(name: str, step: Step, steps: Sequence[Sequence[int]], rows: Sequence[TokenSequence]) -> Measurement:
    """Forward and backward passes over all steps, after one to warm up."""
    step(steps[0]).backward()
    started, nats = time.process_time(), 0.0
    for indices in steps:
        loss = step(indices)
        loss.backward()
        nats += float(loss.detach())
    seconds = time.process_time() - started
    tokens = sum(len(row.tokens) for row in rows)
    return Measurement(name, tokens / seconds, nats / sum(row.n_target_tokens for row in rows))


def compare(count: int, size: int, repeats: int) -> list[Measurement]:
    """All ways in turn, as often as asked; the medians."""
    found: dict[str, list[Measurement]] = {}
    bases = {dtype: TuningBase("local:smollm2", device="cpu", dtype=dtype) for dtype in ("float32", "bfloat16")}
    rows = sequences(bases["float32"], count)
    torch.set_num_threads(1)
    lengths = [len(row.tokens) for row in rows]
    order = list(range(count))
    random.Random(0).shuffle(order)
    sorted_steps, random_steps = (
        [tuple(indices[start : start + size]) for start in range(0, count, size)]
        for indices in (epoch_order(lengths, size, seed=0, epoch=0), order)
    )
    for _ in range(repeats):
        for dtype, base in bases.items():
            with attach_adapter(base.load(), TuningConfig(rank=RANK)) as peft_model:
                torch.set_num_threads(1)
                ours = SequenceLoss(base, peft_model.get_base_model(), rows)
                ways = {f"climassay, {dtype}": (ours.summed_loss, sorted_steps)}
                if dtype == "float32":
                    ways["usual loop, float32"] = (usual_step(peft_model.get_base_model(), rows), random_steps)
                for name, (step, steps) in ways.items():
                    found.setdefault(name, []).append(measure(name, step, steps, rows))
    return [
        Measurement(name, statistics.median(one.tokens_per_second for one in all_of_it), all_of_it[0].loss)
        for name, all_of_it in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    given = parser.parse_args()
    logging.set_verbosity_error()
    measurements = compare(given.questions, given.batch_size, given.repeats)
    by_name = {one.name: one for one in measurements}
    usual, ours, fast = (by_name[name] for name in ("usual loop, float32", "climassay, float32", "climassay, bfloat16"))
    ratios = {
        "climassay to usual loop": ours.tokens_per_second / usual.tokens_per_second,
        "bfloat16 to float32": fast.tokens_per_second / ours.tokens_per_second,
    }
    if given.json:
        print(json.dumps({"measurements": [asdict(one) for one in measurements], "ratios": ratios}, indent=2))
        return
    for one in measurements:
        print(f"{one.name:24} {one.tokens_per_second:7.0f} tokens/s   loss {one.loss:.4f}")
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.2f}")
    print(f"default on this CPU: {default_dtype('cpu')}")


if __name__ == "__main__":
    main()
