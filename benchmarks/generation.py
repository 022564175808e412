"""Generation with a local model: this package against ``generate`` of transformers, and against llama.cpp.

Claim: not slower than transformers for one prompt, faster for many, and the same words. The answers have different
lengths, as real ones do: transformers waits in each batch for the longest, this package gives the free row to the next
prompt. All sides run in one process with one number of threads, in turns; the table shows medians and ratios, in each
number format of ``--dtypes`` (by default float32, and bfloat16 where the processor computes it faster) and of each
side's fastest. Beside other work, ``--cpu-time`` counts seconds of the CPU (one thread) and not of the clock.

llama.cpp's server takes part where it is installed (`pip install xllamacpp`): on the bundled model
in Q8_0, made from the same weights, with as many slots as there are rows.

With --long, prompts of some 1,200 tokens that share most of them, as `generate run` has them: CPU time and peak memory,
each round in a process of its own; with --against FOLDER in turns with another checkout of this project.

Run: python benchmarks/generation.py [--model local:smollm2] [--prompts 24] [--repeats 3] [--cpu-time] [--json]
     python benchmarks/generation.py --long --prompts 48 --tokens 96 [--against FOLDER]
"""

import argparse
import functools
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from climassay.models.contract import GenerationRequest, Message, Sampling
from climassay.models.local.cpu_settings import fastest_cpu_dtype
from climassay.models.local.loading import load_local
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


@functools.cache
def plain_network(name: str, dtype: str) -> Any:
    """The model as transformers loads it."""
    return load_local(name.removeprefix("local:"), dtype=dtype).model


def with_transformers(model: LocalModel, prompts: Sequence[str], batch: int, limit: int) -> list[str]:
    """Sorted by length, padded on the left, in batches."""
    tokenizer, network = model.prompts.tokenizer, plain_network(model.name, model.dtype)
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


def as_q8(folder: Path) -> Path:
    """The bundled model's GGUF with all matrices in Q8_0."""
    from importlib import metadata

    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, quants

    from climassay.models.bundled import BUNDLED

    bundled = BUNDLED["smollm2"]
    reader = GGUFReader(str(metadata.distribution(bundled.wheel).locate_file(bundled.path)))
    file = folder / "q8_0.gguf"
    writer = GGUFWriter(file, "llama")
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in ("general.architecture", "general.file_type"):
            kind, inner = field.types[0], field.types[-1]
            writer.add_key_value(field.name, field.contents(), kind, inner if kind is GGUFValueType.ARRAY else None)
    writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
    for tensor in reader.tensors:
        weights = quants.dequantize(tensor.data, tensor.tensor_type)
        if weights.ndim == 2:
            eight = GGMLQuantizationType.Q8_0
            writer.add_tensor(tensor.name, quants.quantize(weights, eight), raw_dtype=eight)
        else:
            writer.add_tensor(tensor.name, weights.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def llama_server(file: Path, rows: int, threads: int, window: int) -> Any:
    """llama.cpp's server with a slot of ``window`` tokens for every row."""
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path, wanted.port, wanted.verbosity = str(file), 0, -1
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads
    wanted.n_parallel, wanted.n_ctx, wanted.n_threads_http = rows, rows * window, rows + 2
    wanted.cache_prompt, wanted.cache_ram_mib = False, 0
    return xllamacpp.Server(wanted)


def with_llama(server: Any, prompts: Sequence[str], rows: int, limit: int) -> int:
    """All prompts, as many at a time as there are slots; the tokens written."""

    def ask(prompt: str) -> int:
        asked = {"prompt": prompt, "max_tokens": limit, "temperature": 0}
        return int(server.handle_completions(asked)["usage"]["completion_tokens"])

    with ThreadPoolExecutor(rows) as pool:
        return sum(pool.map(ask, prompts))


def spent(work: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, Any]:
    """Seconds that a call takes, and its result."""
    started = clock()
    result = work()
    return clock() - started, result


def compare(
    models: dict[str, LocalModel],
    asked: Sequence[str],
    batch: int,
    limit: int,
    repeats: int,
    clock: Callable[[], float],
    file: Path | None,
) -> list[dict[str, Any]]:
    """All sides on the same prompts, in turns; rates in tokens a second, by number format."""
    first = next(iter(models.values()))
    prompts = [first.render((Message("user", text),)) for text in asked]
    server = None if file is None else llama_server(file, batch, first.threads, 512)
    ours: dict[str, list[float]] = {dtype: [] for dtype in models}
    theirs: dict[str, list[float]] = {dtype: [] for dtype in models}
    llama, same = [], {}
    for _ in range(repeats):
        for dtype, model in models.items():
            model._generation._max_rows = batch
            seconds, texts = spent(lambda model=model: with_transformers(model, prompts, batch, limit), clock)  # type: ignore[misc]
            taken, (own, tokens) = spent(lambda model=model: with_climassay(model, asked, limit), clock)  # type: ignore[misc]
            # The same answers: transformers' tokens are counted as ours.
            theirs[dtype].append(tokens / seconds)
            ours[dtype].append(tokens / taken)
            same[dtype] = sum(a == b for a, b in zip(texts, own, strict=True))
        if server is not None:
            seconds, tokens = spent(lambda: with_llama(server, prompts, batch, limit), clock)
            llama.append(tokens / seconds)
    rows = [
        _row(batch, len(asked), f"both {dtype}", theirs[dtype], ours[dtype], f"{same[dtype]}/{len(asked)}")
        for dtype in models
    ]
    best = {name: max(rates.values(), key=statistics.median) for name, rates in (("ours", ours), ("theirs", theirs))}
    if len(models) > 1:
        rows.append(_row(batch, len(asked), "each at its best", best["theirs"], best["ours"], "-"))
    if llama:
        rows.append(_row(batch, len(asked), "llama.cpp Q8_0, climassay at its best", llama, best["ours"], "-"))
    return rows


def _row(rows: int, prompts: int, case: str, other: list[float], own: list[float], same: str) -> dict[str, Any]:
    return {
        "rows": rows,
        "prompts": prompts,
        "case": case,
        "other_tokens_per_second": statistics.median(other),
        "climassay_tokens_per_second": statistics.median(own),
        "ratio": statistics.median(our / their for their, our in zip(other, own, strict=True)),
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
        "weights_mib": model.network.parameters * model.network.dtype.itemsize / 2**20,
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
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 32], help="side by side")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtypes", nargs="+", default=sorted({"float32", fastest_cpu_dtype()}, reverse=True))
    parser.add_argument("--cpu-time", action="store_true")
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
    clock = time.process_time if given.cpu_time else time.perf_counter
    models = {dtype: LocalModel(given.model, dtype=dtype) for dtype in given.dtypes}
    asked = questions(given.prompts)
    with tempfile.TemporaryDirectory() as folder:
        file = None
        try:
            import xllamacpp  # noqa: F401

            file = as_q8(Path(folder)) if given.model == "local:smollm2" else None
        except ImportError:
            print("llama.cpp takes no part: xllamacpp is not installed", file=sys.stderr)
        rows = []
        for batch in given.rows:
            rows += compare(models, asked[:4] if batch == 1 else asked, batch, given.tokens, given.repeats, clock, file)
    first = models[given.dtypes[0]]
    about = {"threads": first.threads, "device": first.device, "clock": "CPU" if given.cpu_time else "wall"}
    if given.json:
        print(json.dumps({**about, "cases": rows}, indent=2))
        return
    print(f"{given.model}, {', '.join(f'{name}: {value}' for name, value in about.items())}")
    print("rows  prompts  case                                   other      climassay  ratio  same texts")
    for row in rows:
        print(
            f"{row['rows']:4}  {row['prompts']:7}  {row['case']:37}  {row['other_tokens_per_second']:7.1f}/s  "
            f"{row['climassay_tokens_per_second']:7.1f}/s  {row['ratio']:5.2f}  {row['same_texts']}"
        )


if __name__ == "__main__":
    main()
