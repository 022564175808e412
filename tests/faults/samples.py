"""Files as they should be, one for each kind of reader: what the damaged ones are made of."""

import csv
import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]


def jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def csv_table(rows: Rows) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def parquet(rows: Rows) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def written(write: Callable[[Path], object], name: str = "file") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


PARAGRAPHS = [
    {"report": "AR6 WG1", "doc_id": "ch7", "headings": "Forcing > Aerosols", "class": "body", "page": 3,
     "text": "Sulfate scatters sunlight and cools the surface (high confidence). It is short-lived, at 2.5 W m-2."},
    {"report": "AR6 WG1", "doc_id": "ch9", "headings": "Sea level", "class": "body", "page": 4,
     "text": "The ocean takes up heat and expands (medium confidence). Ice sheets lose mass, 0.4 mm a year."},
]  # fmt: skip
QUESTIONS = [
    {"id": "q1", "kind": "mcq", "level": "base", "question": "What scatters sunlight?", "answer": "a",
     "options": ["sulfate", "soot", "methane", "ozone"], "passage": PARAGRAPHS[0]["text"], "document": "Book"},
    {"id": "q2", "kind": "freeform", "level": "reasoning", "question": "Why does the sea rise?",
     "answer": "It warms and expands.", "passage": PARAGRAPHS[1]["text"] * 2},
    {"id": "q3", "kind": "cloze", "question": "The <MASK> takes up heat.", "answer": "ocean", "passage": "Heat." * 20},
]  # fmt: skip
CLIMAQA = [
    {"Question": "What scatters sunlight?", "Options": "a) sulfate\n" + "-" * 20 + "\nb) soot", "Answer": "a",
     "Context": "Sulfate does.", "Complexity": "BASE", "Validation": "VALID"},
    {"Question": "The <MASK> warms.", "Options": "", "Answer": "ocean", "Context": "", "Complexity": "",
     "Validation": "INVALID"},
]  # fmt: skip
ITEMS = [
    {"group": f"g{number % 2}", "id": number, "text": f"<b>Text</b> {number} &amp; more",
     "source": "The source.", "score": number}
    for number in range(6)
]  # fmt: skip
CLAIMS = [
    {"claim": "The sun drives all warming.", "claim_label": "REFUTES", "source": "a blog", "date": "15-May-23",
     "evidences": [{"evidence": "Solar forcing is small.", "article": "Sun", "evidence_label": "REFUTES"}]},
    {"claim": "Sea level rises 3 mm a year.", "claim_label": "SUPPORTS", "source": "", "date": "2020-01-02",
     "evidences": [{"evidence": "Satellites see a rise.", "article": "Sea", "evidence_label": "SUPPORTS"}]},
]  # fmt: skip
ANSWERS = [
    {"id": "1", "reference": "the ocean", "answer": "ocean", "statement": "All heat goes into <MASK>."},
    {"id": "2", "reference": "It warms.", "answer": "It cools.", "statement": ""},
]
LABELLED_ANSWERS = [
    {"statement": "The <MASK> warms.", "reference": "ocean", "answer": "sea", "correct": "yes",
     "labelled_by": "a", "reason": ""},
    {"statement": "The <MASK> melts.", "reference": "ice", "answer": "sea", "correct": "no",
     "labelled_by": "b", "reason": "x"},
]  # fmt: skip
PREDICTIONS = [{"id": "s1", "low": 0.1, "medium": 0.2, "high": 0.6, "very high": 0.1}]
STATE = {
    "format": "climassay-finetuning", "version": 1, "base_url": "http://x/v1", "base_model": "m",
    "data_sha256": "a" * 64,
    "settings": [["epochs", 3]], "file_id": "f", "validation_file_id": None, "job_id": "j", "status": "running",
    "model": None,
    "error": None, "facts": [],
}  # fmt: skip
SCALE = """
labels = ["wrong", "misleading", "right"]
correct = ["right"]
lack_of_information = ["misleading"]
[definitions]
wrong = "contradicts what is known"
[classes.2]
bad = ["wrong", "misleading"]
good = ["right"]
"""
PRICES = '["gpt"]\nprompt = 0.15\ncompletion = 0.6\n'


def pdf() -> bytes:
    from pdf_building import build_pdf, column

    words = " ".join(row["text"] for row in PARAGRAPHS) * 4
    return build_pdf([column(words, 72, 720, 220), column(words, 72, 700, 400)], title="A report")


def workbook(rows: Rows) -> bytes:
    from openpyxl import Workbook

    book, file = Workbook(), io.BytesIO()
    names = list(rows[0])
    for cells in (names, *([str(row[name]) for name in names] for row in rows)):
        book.active.append(cells)
    book.save(file)
    return file.getvalue()


def docx(*lines: str) -> bytes:
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    written = lines or ("The sea warms.", "It rises (high confidence).")
    said = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in written)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("word/document.xml", f'<w:document xmlns:w="{word}"><w:body>{said}</w:body></w:document>')
        file.writestr("word/styles.xml", f'<w:styles xmlns:w="{word}"/>')
    return out.getvalue()


def epub() -> bytes:
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>Book</dc:title><dc:date>2020</dc:date></metadata><manifest>"
        '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'
    page = f"<html><body><h1>Ice</h1><p>{PARAGRAPHS[0]['text']}</p></body></html>"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as book:
        for name, text in {"META-INF/container.xml": container, "b.opf": package, "a.xhtml": page}.items():
            book.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


def html() -> bytes:
    rows = "".join(f"<tr><td>{row['page']}</td><td>{row['text']}</td></tr>" for row in PARAGRAPHS)
    meta = '<script type="application/ld+json">{"headline": "Ice", "datePublished": "2020-01-01"}</script>'
    body = (
        f"<h1>Sea</h1><p>{PARAGRAPHS[1]['text']}</p><table>{rows}</table><ul><li>one<li>two</ul><math><mi>x</mi></math>"
    )
    return f"<!doctype html><html><head><title>T</title>{meta}</head><body><main>{body}</main></body></html>".encode()


def markdown() -> bytes:
    text = f"{PARAGRAPHS[0]['text']}\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n"
    return (
        f"---\ntitle: Ice\ndate: 2020-01-01\ntags: [a, b]\n---\n# Head\n\n{text}\n> quote [link](http://x)\n".encode()
    )


def drafts() -> bytes:
    from climassay.generation import Decision, write_drafts
    from generated_drafts import draft

    expert = Decision("expert", "anna", True, "", "", 0.9)
    made = [draft(1, "mcq"), draft(2).with_decisions(expert), draft(3, "cloze").with_decisions(expert)]
    return written(lambda file: write_drafts(file, made))


def drafts_by_id() -> dict[str, Any]:
    from generated_drafts import draft

    return {one.id: one for one in (draft(1, "mcq"), draft(2), draft(3, "cloze"))}


def annotations() -> bytes:
    label = {
        "key": "k1", "draft": "q0001", "annotator": "anna", "accepted": False, "reasons": ["wrong answer"],
        "remark": "",
        "wording": None, "seconds": 3.5, "made_at": 1.7e9, "withdrawn_at": None, "adjudicates": False,
    }  # fmt: skip
    head = {"format": "climassay-annotations", "version": 1, "dataset": "silver", "settings": {"overlap": 2}}
    return jsonl([head, {"label": label}, {"skip": {"draft": "q0002", "annotator": "anna", "made_at": 1.7e9}}])


def annotation_table() -> bytes:
    row = {
        "draft": "q0001", "annotator": "anna", "label": "invalid", "reasons": "other; wrong answer", "remark": "'=no",
        "edited_question": "", "edited_answer": "", "edited_options": '["a", "b"]', "edited_correct": "",
        "seconds": "3.5",
        "made_at": "2024-01-01T00:00:00+00:00", "adjudicates": "yes", "key": "",
    }  # fmt: skip
    return csv_table([row, row | {"draft": "q0002", "label": "valid", "edited_answer": "It does grow."}])


def label_studio() -> bytes:
    results = [
        {"from_name": "verdict", "type": "choices", "value": {"choices": ["valid"]}},
        {"from_name": "edited_answer", "type": "textarea", "value": {"text": ["It grows fast."]}},
    ]
    said = {
        "id": 1,
        "completed_by": {"email": "a@b.c"},
        "updated_at": "2024-01-01T00:00:00Z",
        "lead_time": 3.2,
        "result": results,
    }
    return json.dumps([{"id": 7, "data": {"draft": "q0002"}, "annotations": [said]}]).encode()


def argilla() -> bytes:
    user = "6b1b3e0c-3c1c-4f5f-9d53-1a2b3c4d5e6f"
    values = {"verdict": "invalid", "reasons": ["other"], "remark": "no"}
    responses = {name: [{"value": value, "user_id": user, "status": "submitted"}] for name, value in values.items()}
    return json.dumps([{"id": "q0002", "fields": {}, "metadata": {}, "responses": responses}]).encode()


def statements() -> bytes:
    from planted_statements import planted

    return jsonl([asdict(one) for one in planted(2, ("cloud", "ocean"))])


def topics() -> bytes:
    from climassay.confidence.topics import write_topics
    from planted_statements import planted, topics_of

    return written(lambda file: write_topics(topics_of(planted(1, ("cloud", "ocean")), [0, 1]), file))


def names() -> bytes:
    tables = ("names", "proposed", "sizes", "statements")
    values = ('"Clouds"', '"clouds"', "12", '"0a 1b"')
    return "".join(f"[{table}]\n0 = {value}\n\n" for table, value in zip(tables, values, strict=True)).encode()


def climatex() -> bytes:
    return b"report\tpage_num\tstatement\tconfidence\nAR6_WGI\t7\tIt warms with every year that passes by now\thigh\n"


def probe() -> bytes:
    import numpy as np

    from climassay.judging import Probe
    from climassay.learning import Provenance

    source = Provenance(items=10, fingerprint="a" * 64, layers=(1,), settings={"method": "supervised"})
    rows = np.arange(12, dtype=np.float64).reshape(2, 6)
    return written(Probe("pair", *rows, 0.5, 0.1, source).save)


def validator_head() -> bytes:
    import numpy as np

    from climassay.generation.validation import TrainedValidator, TrainingRecord
    from climassay.learning import Calibrator, LinearModel, Provenance

    source = Provenance("d", "b" * 64, items=20, trained_on=("q1",), settings={"kind": "features", "kinds": ["mcq"]})
    model = LinearModel("nominal", np.ones((4, 2)), np.zeros(2))
    return written(TrainedValidator(model, TrainingRecord(source, Calibrator("platt"), None)).save)


def manifest() -> bytes:
    digest = hashlib.sha256(drafts()).hexdigest()
    values = {"name": "x", "files": [], "sha256": {"drafts.jsonl": digest}, "questions": {}, "content_sha256": "a" * 64}
    settings = {"canary": None, "canary_sentence": None, "licence": None, "splits": {"parts": [0.8, 0.1, 0.1]}}
    return json.dumps(values | settings).encode()


def adapter() -> bytes:
    from climassay.tuning import TuningConfig

    data = {"name": "d", "kind": "examples", "size": 3, "sha256": "a" * 64, "sources": ["Book"]}
    settings = asdict(TuningConfig())
    return json.dumps({
        "format": 1, "fingerprint": "f", "base": "local:m", "base_fingerprint": "b", "dtype": "float32",
        "device": "cpu",
        "threads": 1, "config": settings, "preset": None, "train": data, "validation": data, "steps": 2,
        "losses": [{"step": 1, "loss": 2.5, "learning_rate": 1e-4}], "evaluations": [{"step": 0, "loss": 2.6}],
        "best_step": 1, "stopped_early": False, "seconds": 1.0, "weights_sha256": "c", "versions": {"torch": "2"},
        "warnings": [], "trials": [{"config": settings, "loss": None, "step": 0, "seconds": 1.0}],
    }).encode()  # fmt: skip


def bundled(package: str, file: str) -> Callable[[], bytes]:
    import importlib.resources

    return lambda: importlib.resources.files(package).joinpath(file).read_bytes()


def recipe() -> bytes:
    from climassay.generation.recipe import COMMENTED

    return COMMENTED.encode()


def experiment() -> bytes:
    from climassay.evaluation.experiment_file import COMMENTED

    tables = '[[setting]]\nuse = "few-shot:x.jsonl"\nexamples = 5\n[[benchmark]]\nname = "gold"\nfiles = ["a.csv"]\n'
    head, _, rest = COMMENTED.partition("[metrics]")
    return f"{head}{tables}[metrics]{rest}".encode()


def debate() -> bytes:
    from climassay.factcheck.configuration import COMMENTED

    return COMMENTED.encode()


def prompt_rows() -> bytes:
    from climassay.primer import gold_questions

    question = gold_questions().of_kind("mcq")[0]
    fields = {name: value for name, value in asdict(question).items() if name not in ("context", "document", "section")}
    turns = [{"role": "user", "content": question.question}, {"role": "assistant", "content": "The answer is"}]
    return jsonl([fields | {"messages": turns, "prefix": "The answer is"}])
