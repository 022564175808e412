"""Every reader of files that people give, with a file that it reads: what the damaged files are made of."""

import gzip
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from faults import samples
from faults.samples import ANSWERS, CLAIMS, CLIMAQA, ITEMS, PARAGRAPHS, PREDICTIONS, QUESTIONS


@dataclass(frozen=True)
class Reader:
    """One reader."""

    name: str
    file: str
    """Name under which the file lies; its ending may decide how it is read."""
    kind: str
    """What the damage may know of the file: see :func:`faults.mutations.mutated`."""
    sample: Callable[[], bytes]
    """A file that can be read."""
    read: Callable[[Path], object]
    """Reads all of it."""


def _called(place: str, *arguments: Any) -> Callable[[Path], object]:
    """A function by module and name, so that the catalogue imports nothing heavy."""

    def read(path: Path) -> object:
        module, _, name = place.partition(":")
        found = attrgetter(name)(importlib.import_module(f"climassay.{module}"))(path, *arguments)
        return list(found) if hasattr(found, "__next__") else found

    return read


def _document(path: Path) -> object:
    """Reads a document and cuts it into passages, as ``corpus add`` does."""
    from climassay.corpus import read, split_passages

    result = read(path)
    assert result.documents or result.skipped, "neither a document nor a reason"
    return [split_passages(document, size=400, overlap=40) for document in result.documents]


def _items(path: Path) -> object:
    from climassay.judging import ItemColumns, read_items

    return read_items(path, ItemColumns("text", "id", "source", "group", "score"))


def _with_drafts(place: str) -> Callable[[Path], object]:
    return lambda path: _called(place, samples.drafts_by_id())(path)


def _template(path: Path) -> object:
    from climassay.prompts import load_prompt

    return load_prompt("answer", path.parent).render(question="q", passages=[], sentences=3)


def _published(path: Path) -> object:
    """A folder whose manifest is damaged, with the drafts that it tells of."""
    from climassay.generation import read_dataset

    (path.parent / "drafts.jsonl").write_bytes(samples.drafts())
    return read_dataset(path.parent)


def _adapter(path: Path) -> object:
    from climassay.tuning import read_result

    return read_result(path.parent)


def _price(path: Path) -> object:
    from climassay.models.servers import find_price

    return find_price("gpt", path.parent)


def _scale(path: Path) -> object:
    from climassay.factcheck import load_scale

    return load_scale(str(path))


def _corpus() -> list[Reader]:
    jsonl, lines = samples.jsonl(PARAGRAPHS), samples.jsonl
    return [
        Reader("pdf", "a.pdf", "bytes", samples.pdf, _document),
        Reader("epub", "a.epub", "zip", samples.epub, _document),
        Reader("docx", "a.docx", "zip", samples.docx, _document),
        Reader("html", "a.html", "bytes", samples.html, _document),
        Reader("markdown", "a.md", "bytes", samples.markdown, _document),
        Reader("text", "a.txt", "bytes", lambda: samples.markdown().replace(b"#", b"\x0c"), _document),
        Reader("paragraphs csv", "a.csv", "bytes", lambda: samples.csv_table(PARAGRAPHS), _document),
        Reader("paragraphs json", "a.json", "json", lambda: json.dumps(PARAGRAPHS).encode(), _document),
        Reader("paragraphs jsonl", "a.jsonl.gz", "gzip", lambda: gzip.compress(jsonl, mtime=0), _document),
        Reader("paragraphs parquet", "a.parquet", "bytes", lambda: samples.parquet(PARAGRAPHS), _document),
        Reader("paragraphs workbook", "a.xlsx", "zip", lambda: samples.workbook(PARAGRAPHS), _document),
        Reader("question passages", "q.jsonl", "jsonl", lambda: lines(QUESTIONS), _labelled),
    ]


_labelled = _called("corpus.gold_texts:read_gold_questions")


def _tables() -> list[Reader]:
    questions, claims = _called("questions:read_questions"), samples.jsonl(CLAIMS)
    read_claims, pairs = _called("factcheck.claims:read_claims"), _called("metrics.labelled_pairs:read_pairs")
    evidence = _called("factcheck.evidence_mode:read_evidence_claims")
    table = samples.csv_table
    return [
        Reader("questions jsonl", "q.jsonl", "jsonl", lambda: samples.jsonl(QUESTIONS), questions),
        Reader("questions json", "q.json", "json", lambda: json.dumps(QUESTIONS).encode(), questions),
        Reader("questions csv", "q.csv", "bytes", lambda: table(CLIMAQA), questions),
        Reader("questions gzip", "q.csv.gz", "gzip", lambda: gzip.compress(table(CLIMAQA), mtime=0), questions),
        Reader("questions parquet", "q.parquet", "bytes", lambda: samples.parquet(CLIMAQA), questions),
        Reader("items csv", "i.csv", "bytes", lambda: table(ITEMS), _items),
        Reader("items jsonl", "i.jsonl", "jsonl", lambda: samples.jsonl(ITEMS), _items),
        Reader("claims", "c.jsonl", "jsonl", lambda: claims, read_claims),
        Reader("claims csv", "c.csv", "bytes", lambda: table(CLAIMS), read_claims),
        Reader("evidence", "c.jsonl", "jsonl", lambda: claims, evidence),
        Reader("evidence csv", "c.csv", "bytes", lambda: table(CLAIMS), evidence),
        Reader("entailment pairs", "c.jsonl", "jsonl", lambda: claims, pairs),
        Reader("answers", "a.jsonl", "jsonl", lambda: samples.jsonl(ANSWERS), _called("metrics:read_answers")),
    ]


def _generation() -> list[Reader]:
    labels, annotation = _called("generation.validation.labels:read_label_set"), "generation.annotation.files"
    studio, argilla = "integrations.labelling_tools:read_label_studio", "integrations.labelling_tools:read_argilla"
    prompts = _called("integrations.benchmark:read_prompt_rows")
    glossary = _called("generation.terms:read_glossary")
    return [
        Reader("drafts", "d.jsonl", "jsonl", samples.drafts, _called("generation:read_drafts")),
        Reader("labels", "d.jsonl", "jsonl", samples.drafts, labels),
        Reader("labels csv", "l.csv", "bytes", lambda: samples.csv_table(CLIMAQA), labels),
        Reader("glossary", "g.txt", "bytes", lambda: b"# terms\nalbedo\nradiative forcing\n", glossary),
        Reader("annotations", "a.jsonl", "jsonl", samples.annotations, _called(f"{annotation}:read_annotations")),
        Reader(
            "annotation table", "a.csv", "bytes", samples.annotation_table, _with_drafts(f"{annotation}:read_table")
        ),
        Reader("label studio", "l.json", "json", samples.label_studio, _with_drafts(studio)),
        Reader("argilla", "a.json", "json", samples.argilla, _with_drafts(argilla)),
        Reader("manifest", "dataset.json", "json", samples.manifest, _published),
        Reader("prompts published", "p.jsonl", "jsonl", samples.prompt_rows, prompts),
    ]


def _configurations() -> list[Reader]:
    state = _called("models.openai.finetuning:read_state")
    experiment = _called("evaluation.experiment_file:load_plan")
    return [
        Reader("recipe", "r.toml", "toml", samples.recipe, _called("generation.recipe:load_recipe")),
        Reader("experiment", "e.toml", "toml", samples.experiment, experiment),
        Reader("debate", "f.toml", "toml", samples.debate, _called("factcheck.configuration:load_settings")),
        Reader("scale", "s.toml", "toml", samples.SCALE.encode, _scale),
        Reader("prices", "prices.toml", "toml", samples.PRICES.encode, _price),
        Reader("prompt", "answer.prompt", "bytes", lambda: b"[system]\nBe brief.\n[user]\n{{ question }}\n", _template),
        Reader("fine-tuning", "s.json", "json", lambda: json.dumps(samples.STATE).encode(), state),
        Reader("adapter", "climassay.json", "json", samples.adapter, _adapter),
    ]


def _confidence() -> list[Reader]:
    predictions = _called("confidence.trends.analysis:read_predictions")
    sections, draft = _called("confidence.tagging.labelled:read_sections"), "confidence.linting.draft:read_draft"
    statements, climatex = "confidence.statement:read_statements", "confidence.tagging.labelled:read_labelled"
    return [
        Reader("statements", "s.jsonl", "jsonl", samples.statements, _called(statements)),
        Reader("topics", "t.json", "json", samples.topics, _called("confidence.topics.topic:read_topics")),
        Reader("topic names", "n.toml", "toml", samples.names, _called("confidence.topics.naming:read_names")),
        Reader("predictions", "p.jsonl", "jsonl", lambda: samples.jsonl(PREDICTIONS), predictions),
        Reader("predictions csv", "p.csv", "bytes", lambda: samples.csv_table(PREDICTIONS), predictions),
        Reader("climatex", "c.tsv", "bytes", samples.climatex, _called(climatex)),
        Reader("sections", "s.jsonl", "jsonl", lambda: samples.jsonl(PARAGRAPHS), sections),
        Reader("draft markdown", "d.md", "bytes", samples.markdown, _called(draft)),
        Reader("draft html", "d.html", "bytes", samples.html, _called(draft)),
    ]


def _trained() -> list[Reader]:
    kind = "safetensors"
    tagger = samples.bundled("climassay.confidence.tagging", "tagger.safetensors")
    return [
        Reader("probe", "p.safetensors", kind, samples.probe, _called("judging.probe:load_probe")),
        Reader(
            "validator",
            "v.safetensors",
            kind,
            samples.validator_head,
            _called("generation.validation:read_training_record"),
        ),
        Reader("tagger", "t.safetensors", kind, tagger, _called("confidence.tagging.tagger:load_tagger")),
    ]


@cache
def readers() -> dict[str, Reader]:
    rooms = (_corpus, _tables, _generation, _configurations, _confidence, _trained)
    return {reader.name: reader for room in rooms for reader in room()}
