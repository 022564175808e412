"""How well the screening finds faults, and how often it cries wolf, on made, published and real texts.

One command; prints Markdown tables for docs/results/screening.md::

    python benchmarks/long/screening_quality.py --data ../shared/data --model local:smollm2

``--model`` adds self-consistency (some minutes for the bundled model); without ``--data`` only the primer is used.
"""

import argparse
import csv
import gzip
import json
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pypdfium2

from climassay.corpus import Passage, read, split_passages
from climassay.generation import Draft
from climassay.generation.draft import question_draft
from climassay.generation.screening import DuplicateFinder, Verification, check_names, find_passage_fault, screen
from climassay.generation.screening.check import content_words
from climassay.models import ModelOptions, load_model
from climassay.models.contract import Encoder
from climassay.models.encoders import load_encoder
from climassay.primer import SOURCE_BOOKS, book_path, gold_questions, screening_examples
from climassay.questions import Question, read_questions
from climassay.reporting import Table, as_markdown
from climassay.statistics import proportion

SEED = 0
PIECE = 2000
"""Characters of a passage cut from a page of a PDF file."""


def share(hits: int, n: int) -> str:
    if not n:
        return "-"
    found = proportion(hits, n)
    return f"{hits} of {n}: {found.value:.1%} ({found.interval.low:.1%} to {found.interval.high:.1%})"


def reasons(draft: Draft) -> set[str]:
    return {one.reason for one in draft.decisions if one.accepted is False}


def examples_tables(encoder: Encoder) -> list[Table]:
    """Precision and recall on the 60 hand-made questions, as a whole and by check."""
    examples = screening_examples()
    drafts = [question_draft(example) for example in examples]
    settings = {
        "rules": screen(drafts),
        "rules and encoder": screen(drafts, encoder=encoder),
    }
    rows = []
    for name, marked in settings.items():
        stopped = [bool(reasons(draft)) for draft in marked]
        faulty = [bool(example.faults) for example in examples]
        both = sum(one and other for one, other in zip(stopped, faulty, strict=True))
        alarms = sum(stopped) - both
        rows.append((name, share(both, sum(stopped)), share(both, sum(faulty)), share(alarms, faulty.count(False))))
    whole = Table.of("60 questions as a whole", ("checks", "precision", "recall", "good ones stopped"), rows)
    marked = settings["rules and encoder"]
    rows = []
    for check in check_names():
        found = {draft.id for draft in marked if check in reasons(draft)}
        faulty_ids = {example.id for example in examples if check in example.faults}
        rows.append(
            (check, share(len(found & faulty_ids), len(found)), share(len(found & faulty_ids), len(faulty_ids)))
        )
    return [whole, Table.of("60 questions by check", ("check", "precision", "recall"), rows)]


def nearest_passages() -> dict[str, str]:
    """For each gold question the passage of about 2000 characters of its book that its excerpt comes from."""
    pieces = [(one, set(content_words(one.text))) for one in _book_passages()]
    found = {}
    for question in gold_questions().questions:
        wanted = set(content_words(question.context or ""))
        found[question.id] = max(pieces, key=lambda piece: len(wanted & piece[1]))[0].text
    return found


def _book_passages() -> list[Passage]:
    documents = [document for name in SOURCE_BOOKS for document in read(book_path(name)).documents]
    return [passage for document in documents for passage in split_passages(document)]


def with_text(draft: Draft, text: str) -> Draft:
    return replace(draft, passages=(replace(draft.passages[0], text=text),))


def alarm_sets(data: Path | None) -> dict[str, list[Draft]]:
    """Questions of people that are good as far as anybody knows, with their texts."""
    gold = [question_draft(question) for question in gold_questions().questions]
    own = nearest_passages()
    sets = {
        "primer, excerpts": gold,
        "primer, passages of 2000 characters": [with_text(draft, own[draft.id]) for draft in gold],
    }
    if data is not None:
        for name, file in (("Pirá, multiple choice", "pira_mcq.csv"), ("Pirá, freeform", "pira_qa.csv")):
            sets[name] = [question_draft(question) for question in read_questions(data / file).questions]
    return sets


def alarms_table(sets: dict[str, list[Draft]], encoder: Encoder | None) -> Table:
    # Pirá has five options by design; whether they are four is no finding there.
    marked = {
        name: screen(drafts, encoder=encoder, without=("option count",) if "multiple" in name else ())
        for name, drafts in sets.items()
    }
    rows = []
    for check in check_names():
        counts = [sum(check in reasons(draft) for draft in drafts) for drafts in marked.values()]
        if any(counts):
            shares = [
                f"{count} ({count / len(drafts):.1%})" for count, drafts in zip(counts, marked.values(), strict=True)
            ]
            rows.append((check, *shares))
    stopped = [[bool(reasons(draft)) for draft in drafts] for drafts in marked.values()]
    rows.append(("any check", *(share(sum(one), len(one)) for one in stopped)))
    return Table.of("Alarms on questions of people", ("check", *marked), rows)


def swapped_table(encoder: Encoder) -> Table:
    """Questions beside a passage that they are not about, drawn at random: what notices it?"""
    rng = random.Random(SEED)
    own = nearest_passages()
    texts = sorted(set(own.values()))
    drafts = [question_draft(question) for question in gold_questions().questions]
    swapped = [with_text(draft, rng.choice([text for text in texts if text != own[draft.id]])) for draft in drafts]
    marked = screen(swapped, encoder=encoder)
    checks = ("unsupported answer", "foreign quantity", "off topic")
    rows = [(check, share(sum(check in reasons(draft) for draft in marked), len(marked))) for check in checks]
    rows.append(("any of the three", share(sum(bool(reasons(draft) & set(checks)) for draft in marked), len(marked))))
    return Table.of("Gold questions beside another passage of the primer", ("check", "stopped"), rows)


def rated_table(data: Path) -> Table:
    """Pirá's freeform pairs that human raters found unusable, against the others."""
    with (data / "pira_qa.csv").open(encoding="utf-8") as file:
        table = [row for row in csv.DictReader(file) if row["answer_in_text"]]
    limits = (("answer_in_text", 1), ("question_meaningful", 3), ("answer_equivalent", 3))
    bad = [any(row[name] and float(row[name]) < least for name, least in limits) for row in table]
    drafts = [
        question_draft(
            Question(
                id=str(place), kind="freeform", question=row["question_en_origin"], answer=row["answer_en_origin"],
                context=row["abstract"],
            )
        )
        for place, row in enumerate(table)
    ]  # fmt: skip
    stopped = [bool(reasons(draft)) for draft in screen(drafts)]
    rows = [
        (name, share(sum(one for one, other in zip(stopped, bad, strict=True) if other is is_bad), bad.count(is_bad)))
        for name, is_bad in (("unusable", True), ("usable", False))
    ]
    return Table.of("Pirá's rated pairs, rules", ("raters", "stopped"), rows)


def pages(file: Path) -> list[str]:
    pdf = pypdfium2.PdfDocument(file)
    return [pdf[place].get_textpage().get_text_range().replace("\r\n", "\n") for place in range(len(pdf))]


def pieces(texts: Sequence[str]) -> list[str]:
    """Passages of so many characters, short remainders of a page left out."""
    return [text[start : start + PIECE] for text in texts for start in range(0, max(1, len(text) - 300), PIECE)]


def passage_sets(data: Path, paragraphs: int) -> dict[str, list[str]]:
    with gzip.open(data / "ipcc_ar6_paragraphs.jsonl.gz", "rt", encoding="utf-8") as file:
        body = [row["text"] for row in map(json.loads, file) if row["class"] == "body"]
    sample = random.Random(SEED).sample(body, paragraphs)
    with (data / "climaqa_sample_textbook.csv").open(encoding="utf-8") as file:
        textbook = [row["text"] for row in csv.DictReader(file)]
    with (data / "pira_qa.csv").open(encoding="utf-8") as file:
        pira = list(csv.DictReader(file))
    laboratory = [json.loads(line)["text"] for line in (data / "climate_laboratory.jsonl").open(encoding="utf-8")]
    report = pages(data / "pdf" / "ipcc_ar6_wg3_ch07_agriculture.pdf")
    thesis = pages(data / "pdf" / "maiya2024_ppairs_thesis.pdf")
    return {
        "primer, passages": [passage.text for passage in _book_passages()],
        "AR6 paragraphs of 20 words or more": [text for text in sample if len(text.split()) >= 20],
        "AR6 paragraphs, shorter": [text for text in sample if len(text.split()) < 20],
        "ClimaQA sample textbook, pages": textbook,
        "Pirá, abstracts": [row["abstract"] for row in pira],
        "climate_laboratory (notebooks with formulae)": laboratory,
        "WG3 chapter 7, raw pages of text": pieces(report[8:83]),
        "WG3 chapter 7, pages of references": pieces(report[86:]),
        "thesis, pages of references": pieces([page for page in thesis if page.startswith("References")]),
        "Pirá, abstracts in Portuguese": [row["abstract_translated_pt"] for row in pira],
    }


def passages_table(data: Path, paragraphs: int) -> Table:
    rows = []
    for name, texts in passage_sets(data, paragraphs).items():
        found = [fault for text in texts if (fault := find_passage_fault(text)) is not None]
        counts = sorted(((found.count(fault), fault) for fault in set(found)), reverse=True)
        rows.append((name, share(len(found), len(texts)), ", ".join(f"{count} {fault}" for count, fault in counts)))
    return Table.of("Passages refused", ("passages", "refused", "as"), rows)


def duplicates_table(count: int) -> Table:
    """Made questions of the primer's vocabulary, a tenth of them with one word changed: time, and what is found."""
    rng = random.Random(SEED)
    vocabulary = [word for passage in _book_passages() for word in passage.text.split() if word.isalpha()]
    draft = question_draft(gold_questions().of_kind("freeform")[0])
    finder = DuplicateFinder()
    repeated = found = 0
    start = time.process_time()
    texts: list[list[str]] = []
    for number in range(count):
        text = rng.choices(vocabulary, k=30)
        is_repeat = number % 10 == 9
        if is_repeat:
            text = list(rng.choice(texts))
            text[rng.randrange(30)] = "unlike"
        else:
            texts.append(text)
        words = replace(draft.wording, question=" ".join(text[:15]), answer=" ".join(text[15:]))
        known = finder.add(replace(draft, id=str(number), wording=words))
        repeated += is_repeat
        found += is_repeat and known is not None
    seconds = time.process_time() - start
    rows = [(f"{count}", f"{seconds / count * 1e3:.2f}", share(found, repeated))]
    return Table.of("Near-duplicates", ("questions", "ms of one core per question", "repetitions found"), rows)


def consistency_table(name: str, limit: int) -> Table:
    """How many gold questions a model verifies, as they are and with a wrong option marked."""
    model = load_model(name, ModelOptions(dtype="bfloat16")) if name.startswith("local:") else load_model(name)
    right = [question_draft(question) for question in gold_questions().of_kind("mcq")[:limit]]
    wrong = [_mismarked(draft) for draft in right]
    checked = [Verification(model).check(drafts) for drafts in (right, wrong)]
    model.close()
    rows = [
        (label, *(share(sum(draft.decisions[-1].accepted is accepted for draft in one), len(one)) for one in checked))
        for label, accepted in (("pass", True), ("refused", False), ("no readable reply", None))
    ]
    return Table.of(f"Self-consistency of {name}", ("", "gold questions", "mismarked ones"), rows)


def _mismarked(draft: Draft) -> Draft:
    wording = draft.wording
    assert wording.correct is not None
    other = (wording.correct + 1) % len(wording.options)
    return replace(draft, wording=replace(wording, correct=other, answer=wording.options[other]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the shared data folder")
    parser.add_argument("--model", help="answers the gold questions for self-consistency")
    parser.add_argument("--limit", type=int, default=60, help="multiple-choice questions for self-consistency")
    parser.add_argument("--questions", type=int, default=100_000, help="questions for the search for near-duplicates")
    parser.add_argument("--paragraphs", type=int, default=4000, help="AR6 paragraphs to judge as passages")
    given = parser.parse_args()
    encoder = load_encoder()
    show(*examples_tables(encoder))
    if given.data is not None:
        show(passages_table(given.data, given.paragraphs))
    show(alarms_table(alarm_sets(given.data), None), swapped_table(encoder))
    if given.data is not None:
        show(rated_table(given.data))
    show(duplicates_table(given.questions))
    if given.model:
        show(consistency_table(given.model, given.limit))
    show(alarms_table(alarm_sets(given.data), encoder))


def show(*tables: Table) -> None:
    for table in tables:
        print(as_markdown(table), flush=True)


if __name__ == "__main__":
    main()
