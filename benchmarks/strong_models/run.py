"""The whole use of climassay with a strong model: 20 claims checked, 12 questions asked, 10 answers judged.

    python benchmarks/strong_models/run.py --model openai:NAME [--base-url URL] [--data ../shared/data]
        [--workspace FOLDER] [--pages FOLDER] [--price-in 2.5 --price-out 10]

The claims are those of ``claim_retrieval.py``, each with the verdict that Climate Feedback published. Advocates are the
IPCC (AR6 and three summaries of special reports), a textbook and abstracts of papers. Everything goes through the
records of the workspace: run again, the same command asks nothing and prints the same tables.

For each claim: requests, model calls one after the other, tokens, cost, passages put before the advocates and passages
cited or quoted, and the verdict beside the published one.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from claim_retrieval import PARAGRAPHS, chosen_claims
from climassay.corpus import open_or_create, read
from climassay.factcheck import DebateResources, DebateSettings, Transcript, factcheck_page, make_claim
from climassay.factcheck.checking import Checker, open_checker
from climassay.factcheck.configuration import AdvocateSettings
from climassay.factcheck.debate.requests import Request, TextRequest
from climassay.factcheck.scales import CLIMATE_FEEDBACK, load_scale
from climassay.grounding import answer_question, open_collections
from climassay.io import write_file
from climassay.models import Generator, ModelOptions, load_model
from climassay.models.servers import TrustedUrl
from climassay.records import RecordedModel, Records
from climassay.workspace import Workspace, cache_folder

FOLDER = Path(__file__).parent
ADVOCATES = (
    AdvocateSettings("IPCC", collections=("ar6",), passages=8),
    AdvocateSettings("Textbook", collections=("textbook",), weight=0.8),
    AdvocateSettings("Abstracts", collections=("abstracts",), weight=0.5, about="Abstracts of 100 papers on climate"),
)
COLLECTIONS = {"ar6": PARAGRAPHS, "textbook": "climate_laboratory.jsonl", "abstracts": "climate_abstracts.jsonl"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--workspace", type=Path, default=None)
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--price-in", type=float)
    parser.add_argument("--price-out", type=float)
    options = parser.parse_args()
    if not (options.data / PARAGRAPHS).exists():
        sys.exit(f"There is no {PARAGRAPHS} in {options.data}; name its folder with --data.")
    place = Workspace.open(options.workspace or cache_folder() / "benchmarks" / "claim-retrieval")
    fill(place, options.data)
    model = load_model(
        options.model,
        ModelOptions(
            base_url=options.base_url and TrustedUrl(options.base_url),
            price_in=options.price_in,
            price_out=options.price_out,
        ),
        folder=place.root,
    )
    try:
        with Records(place.records_url) as store:
            check_claims(place, store, model, options.data, options.pages)
            ask_questions(place, store, model)
    finally:
        model.close()


def fill(place: Workspace, data: Path) -> None:
    """The three collections, made where they are not there yet."""
    abstracts = place.root / COLLECTIONS["abstracts"]
    if not abstracts.exists():
        rows = json.loads((data / "climate_abstracts.json").read_text(encoding="utf-8"))
        lines = [json.dumps({"title": row["title"], "text": row["abstract"], "url": row["id"]}) for row in rows]
        abstracts.write_text("\n".join(lines), encoding="utf-8")
    for name, file in COLLECTIONS.items():
        source = data / file if (data / file).exists() else place.root / file
        open_or_create(place, name, encoder="local:minilm").add(read(source).documents)


def check_claims(place: Workspace, store: Records, model: Generator, data: Path, pages: Path | None) -> None:
    """Check the claims side by side, then each alone from the records, to count the calls one after the other."""
    texts = chosen_claims(data)
    with (data / "climate_feedback.csv").open(encoding="utf-8", newline="") as file:
        published = {row["claim"]: row["climate_feedback_verdict"] for row in csv.DictReader(file)}
    settings = DebateSettings(model=model.name, advocates=ADVOCATES, rounds=2)
    groups = {name: open_collections(place, (name,)) for name in COLLECTIONS}
    company = DebateResources({settings.model: model}, groups)
    with open_checker(settings, company, store, command="strong models") as checker:
        transcripts = checker.check([make_claim(text) for text in texts])
        checker.save_transcripts(transcripts)
        waves = [in_sequence(checker, text) for text in texts]
    scale = load_scale(settings.scale)
    sides = []
    print("| claim | requests | in sequence | tokens in | out | US$ | shown | used | rounds | verdict | published |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for number, (transcript, calls) in enumerate(zip(transcripts, waves, strict=True), start=1):
        verdict, truth = transcript.verdict, CLIMATE_FEEDBACK.match(published[transcript.claim.text])
        if verdict.outcome == "verdict" and verdict.label and truth:
            sides.append(scale.is_correct(verdict.label) == CLIMATE_FEEDBACK.is_correct(truth))
        used, usage = transcript.usage, transcript.usage
        cost = "" if usage.cost is None else f"{usage.cost:.3f}"
        row = (
            *(number, used.requests, calls, usage.prompt_tokens, usage.completion_tokens, cost),
            *(len(transcript.sources), len(transcript.cited), len(transcript.rounds)),
            *(verdict.label or verdict.outcome, truth or published[transcript.claim.text]),
        )
        print("|", " | ".join(map(str, row)), "|")
        if pages:
            pages.mkdir(parents=True, exist_ok=True)
            write_file(pages / f"{number:02}.html", factcheck_page(transcript))
    print(f"\nOn the same of two sides as published: {sum(sides)} of {len(sides)} verdicts; {removed(transcripts)}")


def in_sequence(checker: Checker, text: str) -> int:
    """Model calls one after the other for one claim; what is asked at the same time counts once."""
    waves = 0

    def on_requests(asks: Sequence[Request]) -> None:
        nonlocal waves
        waves += any(isinstance(ask, TextRequest) for ask in asks)

    checker.check([make_claim(text)], on_requests=on_requests)
    return waves


def removed(transcripts: Sequence[Transcript]) -> str:
    """Citations and quotations that did not hold, over all opinions and verdicts."""
    said = [one.verdict for one in transcripts]
    said += [opinion for one in transcripts for held in one.rounds for opinion in held.opinions]
    citations, quotations = sum(one.removed_citations for one in said), sum(one.removed_quotations for one in said)
    kept = sum(len(one.quotations) for one in said)
    return f"{kept} quotations hold, {quotations} were removed; {citations} citations removed."


def ask_questions(place: Workspace, store: Records, model: Generator) -> None:
    """Ask all questions of the three collections together."""
    questions = (FOLDER / "questions.txt").read_text(encoding="utf-8").splitlines()
    group = open_collections(place, tuple(COLLECTIONS))
    with store.run(command="strong models ask", config={"questions": questions, "model": model.name}) as run:
        recorded = RecordedModel(model, store, run)
        for question in questions:
            answer = answer_question(question, group, recorded)
            cited = {number for sentence in answer.sentences for number in sentence.citations}
            print(f"\n{question}\n{answer.text}\n({len(answer.sources)} passages, {len(cited)} cited)")


if __name__ == "__main__":
    main()
