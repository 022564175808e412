"""Calls in flight while many claims are debated against a server: each debate at its own pace, and in rounds.

The server is a process of its own that answers after 100 to 300 ms (drawn from the prompt) with JSON that fits the
schema and whose texts are sentences of the prompt. It notes when each request comes and leaves; the mean of those under
way, the share of time with none, and the calls a second are computed from these notes. Side by side in one run:

- ``rounds``: all debates ask, then all are answered, then all go on; every sentence is encoded whenever it is met
- ``rounds, vectors kept``: the same, but a sentence is encoded once
- ``own pace``: what ``climassay factcheck-run`` does, on both counts

Claims are sentences of the primer's books (beyond 900 of them two or three neighbours each), collections are two of the
books. Each case has fresh records.

Run: python benchmarks/debate_throughput.py [--claims 40] [--at-once 16] [--only "own pace"] [--json]
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from itertools import islice
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import api_server
from climassay import primer
from climassay.corpus import Collection, open_or_create, read
from climassay.corpus.sentences import split_sentences
from climassay.factcheck import DebateResources, DebateSettings, advocates_from_names, make_claim, open_checker
from climassay.factcheck.debate.scheduler import DebateScheduler
from climassay.grounding import CollectionGroup
from climassay.models.encoders import CachedEncoder, load_encoder
from climassay.models.openai.client import OpenAIModel
from climassay.records import Records
from climassay.workspace import Workspace

BOOKS = ("physical_climate", "carbon_ice_past")
SENTENCE = re.compile(r"[A-Z][^.!?\n]{30,200}[.!?]")


class TimedServer(api_server.ApiServer):
    """Answers after a time drawn from the prompt, and notes times in a file."""

    notes = sys.stderr

    def log(self, event, request):
        """Note a request that comes or leaves."""
        super().log(event, request)
        self.notes.write(f"{time.time()} {1 if event == 'asked' else -1}\n")
        if event == "asked":
            self.behaviour = api_server.Behaviour(latency=0.1 + 0.2 * int(request.prompt[:6], 16) / 0xFFFFFF)


def by_prompt(request):
    """JSON after the schema, its texts taken from the prompt."""
    said = SENTENCE.findall(request.content) or ["The prompt says nothing."]

    def instance(schema, place):
        if "enum" in schema:
            return schema["enum"][int(request.prompt[:4], 16) % len(schema["enum"])]
        kind = schema["type"][0] if isinstance(schema.get("type"), list) else schema.get("type", "string")
        if kind == "object":
            return {
                name: instance(part, place + number) for number, (name, part) in enumerate(schema["properties"].items())
            }
        if kind == "array":
            return [instance(schema["items"], place + number) for number in range(max(2, schema.get("minItems", 0)))]
        text = said[(int(request.prompt[:6], 16) + place) % len(said)]
        return {"string": text, "integer": 1 + place % 4, "number": 0.5, "boolean": place % 2 == 0}[kind]

    schema = api_server.schema_of(request.body)
    return api_server.Reply(json.dumps(instance(schema, 0)) if schema else said[0])


class Rounds:
    """Stands for the scheduler: all debates under way ask, and wait until all of them have been answered."""

    def __init__(self, steps, exchange, at_once, *_):
        self.steps, self.exchange, self.at_once = steps, exchange, at_once

    def run(self):
        """Results of all debates, in order."""
        results, due, under_way = {}, deque(enumerate(self.steps)), {}
        while due or under_way:
            asked = {}
            for place, (step, answers) in under_way.items():
                self.advance(place, step, answers, asked, results)
            while due and len(asked) < self.at_once:
                place, step = due.popleft()
                self.advance(place, step, None, asked, results)
            answers = iter(self.exchange.answer([ask for _, asks in asked.values() for ask in asks]))
            under_way = {place: (step, list(islice(answers, len(asks)))) for place, (step, asks) in asked.items()}
        return [results[place] for place in range(len(self.steps))]

    @staticmethod
    def advance(place, step, answers, asked, results):
        """Go on with one debate."""
        try:
            asked[place] = (step, step.send(answers))
        except StopIteration as end:
            results[place] = end.value


class Counted:
    """An encoder that counts the texts it encodes."""

    def __init__(self, encoder):
        self.inner, self.texts = encoder, 0
        self.name, self.fingerprint, self.width = encoder.name, encoder.fingerprint, encoder.width

    def encode(self, texts, **options):
        """As the encoder."""
        self.texts += len(texts)
        return self.inner.encode(texts, **options)


def in_flight(notes, begin, end):
    """Mean requests under way from begin to end, and the share of that time without any."""
    area, idle, last, now = 0.0, 0.0, begin, 0
    for at, change in sorted(notes):
        at = min(max(at, begin), end)
        area += (at - last) * now
        idle += (at - last) * (now == 0)
        last, now = at, now + change
    return area / (end - begin), (idle + (end - last) * (now == 0)) / (end - begin)


def measured(place, claims, at_once, scheduler, remembers):
    """One case."""
    encoder = Counted(load_encoder())
    memory = CachedEncoder(encoder) if remembers else CachedEncoder(encoder, max_texts=0)
    groups = {name: CollectionGroup((Collection.open(place, name, memory),)) for name in BOOKS}
    memory.encode(["warm up"])
    settings = DebateSettings(advocates=advocates_from_names(BOOKS), model="m", check_claims=False)
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        server = subprocess.Popen([sys.executable, __file__, "--serve", notes], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().strip()
            model = OpenAIModel("m", base_url=url)
            company = DebateResources({"m": model}, groups, encoder=memory)
            with (
                Records(f"sqlite:///{folder}/records.sqlite") as store,
                open_checker(settings, company, store) as checker,
                mock.patch("climassay.factcheck.checking.DebateScheduler", scheduler),
            ):
                encoder.texts, begin, cpu = 0, time.time(), time.process_time()
                transcripts = checker.check(claims, concurrency=at_once)
                end, cpu = time.time(), time.process_time() - cpu
            model.close()
        finally:
            server.kill()
            server.wait()
        events = [(float(at), int(change)) for at, change in map(str.split, notes.read_text().splitlines())]
    mean, idle = in_flight(events, begin, end)
    calls = sum(change > 0 for _, change in events)
    return {
        "seconds": round(end - begin, 1),
        "cpu_seconds": round(cpu, 1),
        "calls": calls,
        "calls_a_second": round(calls / (end - begin), 1),
        "mean_in_flight": round(mean, 2),
        "share_of_at_once": round(mean / at_once, 3),
        "share_without_any": round(idle, 3),
        "sentences_encoded": encoder.texts,
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "verdicts": sum(one.verdict.label is not None for one in transcripts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--claims", type=int, default=40)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--only")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.serve:
        with Path(given.serve).open("w", buffering=1, encoding="utf-8") as TimedServer.notes:
            TimedServer(api_server.Behaviour(), by_prompt).run_forever()
        return
    documents = [document for name in primer.book_names() for document in read(primer.book_path(name)).documents]
    sentences = [
        sentence
        for document in documents
        for block in document.blocks
        for sentence in split_sentences(block.text)
        if len(sentence.split()) >= 6
    ]
    several = [" ".join(sentences[start : start + count]) for count in (1, 2, 3) for start in range(len(sentences))]
    claims = [make_claim(text) for text in dict.fromkeys(several)][: given.claims]
    cases = {"rounds": (Rounds, False), "rounds, vectors kept": (Rounds, True), "own pace": (DebateScheduler, True)}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Workspace.open(Path(folder))
        for name in BOOKS:
            open_or_create(place, name, encoder="local:minilm").add(read(primer.book_path(name)).documents)
        for name, (scheduler, remembers) in cases.items():
            if given.only in (None, name):
                found[name] = measured(place, claims, given.at_once, scheduler, remembers)
    result = {"claims": len(claims), "at_once": given.at_once, "cases": found}
    if given.json:
        print(json.dumps(result, indent=2))
        return
    sys.stdout.write(f"{len(claims)} claims, {given.at_once} at once\n")
    for name, one in found.items():
        sys.stdout.write(f"\n{name}\n" + "".join(f"  {key:20} {value}\n" for key, value in one.items()))


if __name__ == "__main__":
    main()
