"""What the commands of :mod:`faults.commands` read, and the workspace they work in."""

import os
from pathlib import Path
from typing import Any

from faults import samples

EXPERIMENT = """
benchmarks = ["{given}/questions.jsonl"]
tasks = ["mcq"]
settings = ["default"]
scoring = "letter"
[[model]]
name = "{model}"
"""
"""What the model needs beyond its name comes after it."""
RECIPE = """
name = "drawn"
collections = ["book"]
batch = 2
[writer]
model = "openai:test"
base_url = "{url}"
concurrency = 1
[counts]
mcq = 2
freeform = 2
cloze = 2
base = 1
[contexts]
max_passages = 0
[stop]
drafts = 8
"""


def write_inputs(given: Path, url: str) -> None:
    from climassay.generation import Decision, Wording, write_drafts
    from confidence.tagging.planted import TAGGER_LEVELS, planted, write_climatex, write_extracted
    from generated_drafts import draft
    from planted_evidence import evidence_rows
    from published_sample import write_sample

    def table(name: str, rows: list[dict[str, Any]]) -> None:
        (given / name).write_bytes(samples.jsonl(rows))

    row = samples.QUESTIONS[0]
    table("questions.jsonl", [row | {"id": f"q{n}", "question": f"What scatters light {n}?"} for n in range(12)])
    (given / "experiment.toml").write_text(
        EXPERIMENT.format(given=given, model="openai:test") + f'base_url = "{url}"\nconcurrency = 1\n', encoding="utf-8"
    )
    (given / "recipe.toml").write_text(RECIPE.format(url=url), encoding="utf-8")
    write_sample(given)
    items = [
        {"group": f"g{group}", "id": f"{group}-{item}", "text": f"{'a' * item} of {group}", "score": item % 3}
        for group in range(5)
        for item in range(6)
    ]
    table("items.jsonl", items)
    table("few.jsonl", items[:6])
    table("new.jsonl", [{"group": "g0", "id": f"new{n}", "text": f"{'e' * n} of 9"} for n in range(4)])
    (given / "claims.csv").write_text("claim\nIce melts in summer.\nThe Sun drives all warming.\n", encoding="utf-8")
    verdicts = ("incorrect", "misleading", "correct", "inaccurate", "imprecise", "accurate")
    rated = "".join(f"Claim {n} says that ice melts.,{verdicts[n % 6]}\n" for n in range(12))
    (given / "rated.csv").write_text(f"claim,verdict\n{rated}", encoding="utf-8")
    notes = "\n\n".join(f"## Part {n}\n\nIce melts in summer {n}. The Sun warms the sea." for n in range(6))
    (given / "notes.md").write_text(f"# Notes\n\n{notes}\n", encoding="utf-8")
    table("evidence.jsonl", evidence_rows(18))
    labelled = []
    for number in range(30):
        valid = number % 3 != 0
        wording = Wording(f"What does particle {number} do?", "It grows." if valid else "Bananas are sold.")
        decision = Decision("expert", "anna", valid, "" if valid else "wrong answer")
        labelled.append(draft(number, wording=wording).with_decisions(decision))
    write_drafts(given / "labels.jsonl", labelled)
    write_drafts(given / "drafts.jsonl", [draft(number) for number in range(40, 52)])
    bare = [draft(n, "cloze", wording=Wording(f"The albedo of ice sheet {n} is high.")) for n in range(8)]
    write_drafts(given / "unmasked.jsonl", bare)
    terms = ("albedo", "forcing", "aerosol", "convection", "monsoon", "permafrost")
    table("cloze.jsonl", [{"question": f"The <MASK> is high in year {n}.", "answer": terms[n % 6]} for n in range(12)])
    sentence = "Seas will rise by {} cm (high confidence), but ice number {} may stay (low confidence)."
    text = "\n\n".join(sentence.format(n, n) for n in range(200))
    (given / "report.md").write_text(f"# Seas\n\n{text}\n", encoding="utf-8")
    statements = planted(80, seed=5)
    labelled = [(one.item.text, TAGGER_LEVELS[n % 4]) for n, one in enumerate(statements)]
    write_extracted(labelled, given / "statements.jsonl")
    claims = "".join(f"Of {one.section} we say that {one.item.text.lower()}\n" for one in planted(40, seed=7)[28:])
    (given / "untagged.csv").write_text(f"claim\n{claims}", encoding="utf-8")
    write_observations(given / "observed.jsonl")
    write_climatex(given / "climatex.tsv")
    from climassay.factcheck import FALLACIES

    misled = "".join(
        f"It is {name} by way {way} of {number}.,{name}\n" for number in range(4) for way in "abc" for name in FALLACIES
    )
    (given / "fallacies.csv").write_text(f"text,fallacy\n{misled}", encoding="utf-8")
    pairs = []
    for place, thing in enumerate(("ice", "snow", "rain", "wind", "heat", "salt", "dust", "soil", "rock", "sand")):
        statement = f"The {thing} grew by {place + 3} units."
        for verb, label in (("grew", "SUPPORTS"), ("shrank", "REFUTES")):
            said = f"Records show that the {thing} {verb} by {place + 3} units."
            pairs.append({"premise": said, "statement": statement, "label": label})
        pairs.append({"premise": "Nothing was measured.", "statement": statement, "label": "NOT_ENOUGH_INFO"})
    table("pairs.jsonl", pairs)


def write_observations(file: Path) -> None:
    """Statements about six topics, most of them tagged."""
    import planted_statements

    untagged = [
        planted_statements.statement(number, topic, tag=None)
        for topic in ("ocean", "cloud")
        for number in range(100, 106)
    ]
    planted_statements.write_statements([*planted_statements.planted(), *untagged], file)


def make_workspace(folder: Path) -> None:
    """A workspace with the collections ``book`` and ``notes`` and the dataset ``silver`` with an annotator's labels."""
    import debate_workspaces
    from annotated_drafts import begin
    from climassay.generation import Wording
    from climassay.generation.annotation import AnnotationStore, Label
    from climassay.records import Records
    from climassay.workspace import Workspace
    from debate_tables import make_collection, paragraph
    from generated_drafts import draft

    debate_workspaces.make_workspace(folder)
    noted = paragraph("physical_climate", "The climatic importance of CO2")
    make_collection(Workspace.open(folder), "notes", noted, title="Notes")
    answers = ("Bananas are sold on Mondays.", "It grows.", "It grows and falls.")
    with Records(Workspace.open(folder).records_url) as records:
        begin(records, [draft(n, wording=Wording(f"What happens to particle {n}?", answers[n % 3])) for n in range(20)])
        given = [
            Label(f"q{n:04d}", "ann", bool(n % 3), () if n % 3 else ("wrong answer",), key=str(n)) for n in range(14)
        ]
        AnnotationStore(records).import_labels("silver", given)


def environment(life: Path, encoders: Path) -> dict[str, str]:
    """Of a command whose cache is its own but for the encoders' graphs, which take long to make."""
    cache = life / "cache"
    cache.mkdir(exist_ok=True)
    if not (cache / "encoders").exists():
        (cache / "encoders").symlink_to(encoders)
    own = {"CLIMASSAY_CACHE": str(cache), "OMP_NUM_THREADS": "1", "CLIMASSAY_THREADS": "1", "OPENAI_API_KEY": "none"}
    return os.environ | own
