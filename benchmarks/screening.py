"""Screening measured on 242 labelled questions: which of the bad ones are refused, and which of the good ones.

The questions, their short passages and the named faults of the bad ones (``benchmarks/data/screening_*.jsonl``) were
written for this. A hash of each id puts it into the half for tuning or into the half that was not looked at while rules
and prompts were changed. Prints Markdown tables for docs/results/screening.md::

    python benchmarks/screening.py

The model's part is replayed from ``screening_answers.jsonl``: answers written by hand to the prompts, not a model's. So
figures with it say what prompts and code make of good answers. "Before" is what the rules of the commit that brought
the questions refused (``screening_before.json``), and the self-consistency of that time with the same letters.

``--save FILE`` keeps what was refused and why, ``--list tuning`` shows the mistakes of the half for tuning.
"""

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from climassay.generation import Draft, Origin, SourcePassage, Wording
from climassay.generation.screening import REPLACED_CHECKS, Verification, find_passage_fault, screen
from climassay.models.contract import Completion, GenerationRequest
from climassay.models.encoders import load_encoder
from climassay.reporting import Table, as_markdown
from climassay.statistics import proportion

DATA = Path(__file__).parent / "data"
HALVES = ("tuning", "held out")
Refusals = Mapping[str, str]
"""Why each refused question was refused, by id."""


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").open(encoding="utf-8")]


def half(question: Mapping[str, Any]) -> str:
    return HALVES[int(hashlib.sha256(question["id"].encode()).hexdigest(), 16) % 2]


def as_draft(question: Mapping[str, Any], passages: Mapping[str, Mapping[str, str]]) -> Draft:
    passage = passages[question["passage"]]
    source = SourcePassage(passage["id"], passage["text"], passage["document"], passage["document"], passage["section"])
    wording = Wording(
        question["question"], question["answer"], tuple(question.get("options", ())), question.get("correct")
    )
    origin = Origin("by hand", "", (), 0)
    return Draft(question["id"], question["kind"], question["level"], wording, (source,), origin)


class AnsweredByHand:
    """Answers that were written from the prompts, found again by the hash of each prompt."""

    name = "by hand"
    fingerprint = ""

    def __init__(self) -> None:
        self._answers = {row["prompt"]: row["answer"] for row in rows("screening_answers")}

    def generate(self, requests: Sequence[GenerationRequest], *, on_result: object = None) -> list[Completion]:  # noqa: ARG002
        """The answer to each request.

        Raises:
            KeyError: A prompt was never answered: the prompt has been changed since.
        """
        return [Completion(json.dumps(self._answers[prompt_hash(request)]), "stop") for request in requests]


def prompt_hash(request: GenerationRequest) -> str:
    return hashlib.sha256("\n".join(message.content for message in request.messages).encode()).hexdigest()


def refused(drafts: Sequence[Draft], *, by_model: bool) -> dict[str, str]:
    """What a line refuses: passages that are not seed, the checks (with its encoder), and what a strong model says."""
    screened = screen(drafts, encoder=load_encoder(), without=REPLACED_CHECKS if by_model else ())
    if by_model:
        screened = Verification(AnsweredByHand()).check(screened)  # type: ignore[arg-type]
    found = {}
    for draft in screened:
        fault = find_passage_fault(draft.main.text)
        if fault is not None:
            found[draft.id] = f"passage: {fault}"
        elif draft.rejection is not None:
            found[draft.id] = draft.rejection.reason
    return found


def as_before(drafts: Sequence[Draft]) -> tuple[Refusals, Refusals]:
    """What was refused before: by rules alone, and with self-consistency, which asked for the right letter only.

    The letter is that of the answers written by hand. Options had to be answered as marked, with the passages, and
    neither a second right answer nor freeform and cloze were looked at.
    """
    rules = json.loads((DATA / "screening_before.json").read_text(encoding="utf-8"))["rules"]
    open_to_it = [draft for draft in drafts if draft.kind == "mcq" and draft.id not in rules]
    judged = Verification(AnsweredByHand()).check(open_to_it)  # type: ignore[arg-type]
    wrong = {
        draft.id: "self-inconsistency"
        for draft in judged
        if any(one.reason == "self-inconsistency" for one in draft.decisions)
    }
    return rules, rules | wrong


def share(hits: int, n: int) -> str:
    if not n:
        return "-"
    found = proportion(hits, n)
    return f"{hits} of {n}: {found.value:.1%} ({found.interval.low:.1%} to {found.interval.high:.1%})"


def whole_table(title: str, questions: Sequence[Mapping[str, Any]], results: Mapping[str, Refusals]) -> Table:
    bad = {one["id"] for one in questions if one["fault"]}
    good = {one["id"] for one in questions if not one["fault"]}
    lines = []
    for name, refusals in results.items():
        right, wrong = len(refusals.keys() & bad), len(refusals.keys() & good)
        lines.append((name, share(right, right + wrong), share(right, len(bad)), share(wrong, len(good))))
    return Table.of(title, ("checks", "precision", "recall", "good ones refused"), lines)


def fault_table(title: str, questions: Sequence[Mapping[str, Any]], results: Mapping[str, Refusals]) -> Table:
    faults: dict[str, set[str]] = {}
    for one in questions:
        faults.setdefault(one["fault"] or "good", set()).add(one["id"])
    lines = [
        (fault, *(share(len(refusals.keys() & ids), len(ids)) for refusals in results.values()))
        for fault, ids in sorted(faults.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return Table.of(title, ("refused", *results), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, help="JSON file for what was refused and why")
    parser.add_argument("--list", choices=("tuning",), help="show the mistakes of the half for tuning")
    given = parser.parse_args()
    questions = rows("screening_questions")
    passages = {passage["id"]: passage for passage in rows("screening_passages")}
    drafts = [as_draft(question, passages) for question in questions]
    before = as_before(drafts)
    results: dict[str, Refusals] = {
        "rules, before": before[0],
        "rules, after": refused(drafts, by_model=False),
        "rules and model, before": before[1],
        "rules and model, after": refused(drafts, by_model=True),
    }
    if given.save is not None:
        given.save.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name in HALVES:
        those = [question for question in questions if half(question) == name]
        ids = {question["id"] for question in those}
        own = {key: {one: why for one, why in found.items() if one in ids} for key, found in results.items()}
        print(as_markdown(whole_table(f"{len(those)} questions, {name}", those, own)), flush=True)
        print(as_markdown(fault_table(f"By fault, {name}", those, own)), flush=True)
        if given.list == name:
            for question in those:
                for key, found in own.items():
                    if bool(question["fault"]) != (question["id"] in found):
                        print(f"- {key}: {json.dumps(question)} {found.get(question['id'], 'passed')}")


if __name__ == "__main__":
    main()
