"""climassay as a model of lm-evaluation-harness beside the harness's own class, same weights, same requests.

Claim: what the harness asks is answered at least as fast by ``--model climassay`` as by ``--model hf`` at its fastest
batch size, records included, with the same log-likelihoods (to 1e-4, or 1e-5 of their size) and the same texts; asked
again, everything comes from the records. Both sides compute in float32 with one thread, in turns.

Run: python benchmarks/harness_model.py [--questions 24] [--long 2] [--texts 24] [--batches 1 8] [--cpu-time] [--json]
"""

import argparse
import json
import tempfile
import time
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from climassay.integrations.lm_eval_model import ClimassayLM
from climassay.models.bundled import bundled_path
from mcq_scoring import cases, primer_questions


def instances(kind: str, arguments: list[tuple[Any, ...]]) -> list[Instance]:
    """Requests as the harness makes them."""
    return [Instance(request_type=kind, doc={}, arguments=one, idx=index) for index, one in enumerate(arguments)]


def works(questions: int, long: int, texts: int, render: Any) -> dict[str, tuple[str, list[Instance]]]:
    """Requests by name, with the function that answers them."""
    found = {}
    for case in cases(questions, long):
        pairs = [(render(one), option) for one in case.requests for option in one.options]
        found[case.name] = ("loglikelihood", instances("loglikelihood", pairs))
    chats = [[{"role": "user", "content": one.text}] for one in primer_questions()[:texts]]
    pairs = [(render(chat), {"until": ["\n\n"], "max_gen_toks": 32, "do_sample": False}) for chat in chats]
    return found | {"generation": ("generate_until", instances("generate_until", pairs))}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--long", type=int, default=2)
    parser.add_argument("--texts", type=int, default=24)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    clock = time.process_time if options.cpu_time else time.perf_counter
    path = str(bundled_path("smollm2"))
    theirs = {
        batch: HFLM(pretrained=path, dtype="float32", device="cpu", batch_size=batch) for batch in options.batches
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        ours = ClimassayLM("local:smollm2", workspace=folder, dtype="float32")

        def render(one: Any) -> str:
            if isinstance(one, list):
                return ours.apply_chat_template(one)
            return (
                ours.apply_chat_template([{"role": "user", "content": one.messages[0].content}]) + one.assistant_prefix
            )

        for name, (kind, requests) in works(options.questions, options.long, options.texts, render).items():
            seconds = {}
            for batch, model in theirs.items():
                started = clock()
                expected = getattr(model, kind)(requests, disable_tqdm=True)
                seconds[batch] = clock() - started
            started = clock()
            found = getattr(ours, kind)(requests, disable_tqdm=True)
            own = clock() - started
            started = clock()
            again = getattr(ours, kind)(requests, disable_tqdm=True)
            from_records = clock() - started
            assert again == found
            if kind == "loglikelihood":
                agreement = max(
                    abs(a[0] - b[0]) / max(1.0, abs(b[0]) / 10) for a, b in zip(found, expected, strict=True)
                )
                assert agreement < 1e-4
            else:
                agreement = sum(a == b for a, b in zip(found, expected, strict=True))
            best = min(seconds, key=seconds.__getitem__)
            rows.append(
                {
                    "work": name,
                    "requests": len(requests),
                    "hf": seconds[best],
                    "batch": best,
                    "climassay": own,
                    "ratio": seconds[best] / own,
                    "records": from_records,
                    "agreement": agreement,
                }
            )
        ours.close()
    if options.json:
        print(json.dumps(rows))
        return
    print("| work | requests | hf | batch | climassay | ratio | from the records | difference, equal texts |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['work']} | {row['requests']} | {row['hf']:.1f} s | {row['batch']} | {row['climassay']:.1f} s "
            f"| {row['ratio']:.1f} | {row['records']:.2f} s | {row['agreement']:.2g} |"
        )


if __name__ == "__main__":
    main()
