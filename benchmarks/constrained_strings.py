"""Masks of bounded strings in constrained decoding: xgrammar's repetition against climassay's chain of rules.

Usage: python benchmarks/constrained_strings.py [--steps 40]
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import xgrammar

from climassay.models import load_model
from climassay.models.local.schema_grammar import schema_grammar

BOUNDS = (20, 60, 120, 250, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40, help="Tokens of a random answer that are timed.")
    options = parser.parse_args()
    tokenizer = load_model("local:smollm2")._generation._grammars._tokenizer
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer), stop_token_ids=[2])
    print("bound  repetition: compile s, ms a token   rules: compile s, ms a token   ratio a token")
    for bound in BOUNDS:
        schema = {
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": bound}},
            "required": ["text"],
        }
        rules = schema_grammar(schema).text
        repeated = rules.replace(f"upto{bound}", f"char{{0,{bound}}}", 1).replace(
            f"many{bound}", f"char{{0,{bound}}}", 1
        )
        head, *rest = repeated.splitlines()
        kept = [line for line in rest if not line.startswith(("upto", "many", "block"))]
        slow = _measured(info, "\n".join([head, *kept]) + "\n", options.steps)
        fast = _measured(info, rules, options.steps)
        print(
            f"{bound:5}  {slow[0]:12.2f} {slow[1]:16.2f}   {fast[0]:16.2f} {fast[1]:12.2f}   {slow[1] / fast[1]:12.0f}",
            flush=True,
        )


def _measured(info: Any, grammar: str, steps: int) -> tuple[float, float]:
    """(seconds of CPU to compile, milliseconds of CPU a mask) over random answers."""
    started = time.process_time()
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_grammar(xgrammar.Grammar.from_ebnf(grammar))
    compiling = time.process_time() - started
    bitmask = xgrammar.allocate_token_bitmask(1, info.vocab_size)
    generator = np.random.default_rng(0)
    spent: list[float] = []
    while len(spent) < steps:
        matcher = xgrammar.GrammarMatcher(compiled)
        while len(spent) < steps and not matcher.is_terminated():
            started = time.process_time()
            matcher.fill_next_token_bitmask(bitmask, 0)
            spent.append(time.process_time() - started)
            matcher.accept_token(_short(bitmask, info, generator))
    return compiling, 1000 * float(np.mean(spent))


def _short(bitmask: Any, info: Any, generator: np.random.Generator) -> int:
    """One of the allowed tokens that come first in the vocabulary, most of them single characters."""
    bits = np.unpackbits(bitmask.numpy().view(np.uint8), bitorder="little")[: info.vocab_size]
    allowed: Sequence[int] = np.flatnonzero(bits)[:400].tolist()
    return int(generator.choice(allowed))


if __name__ == "__main__":
    main()
