"""Debates of the bundled model beside the constant: mediator, pool of the advocates, contradictions, "not enough".

Reads transcripts of ``climassay factcheck run --transcripts`` and the file of claims with its published verdicts,
and prints one Markdown table a file. The commands stand in docs/results/factcheck.md.

Run: python benchmarks/long/factcheck_debates.py CLAIMS COLUMN SCALE TRANSCRIPTS...
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from climassay.factcheck import ClaimColumns, Scale, Transcript, from_data, load_scale, read_claims, score_verdicts
from climassay.factcheck.debate.mediator import pool
from climassay.reporting import Table, as_markdown
from climassay.statistics import Estimate, proportion


def read_transcripts(path: Path) -> list[Transcript]:
    """The debates of one run."""
    return [from_data(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def verdicts_of(debates: Sequence[Transcript], scale: Scale) -> dict[str, list[str | None]]:
    """Verdicts of every party: advocates' last opinions, the mediator, and the pool of the informed advocates."""
    found: dict[str, list[str | None]] = {}
    for number, debate in enumerate(debates):
        last = debate.rounds[-1].opinions if debate.rounds else ()
        weights = {profile.name: profile.weight for profile in debate.advocates}
        pooled = pool([opinion for opinion in last if opinion.informed], weights)
        said = {opinion.advocate: opinion.verdict for opinion in last}
        said["mediator"] = debate.verdict.label
        said["pool"] = scale.labels[pooled.index(max(pooled))] if pooled else scale.nei
        for name, verdict in said.items():
            found.setdefault(name, [None] * len(debates))[number] = verdict
    return found


def figure(estimate: Estimate) -> str:
    """A share with its interval."""
    return f"{estimate.value:.3f} ({estimate.interval.low:.3f} to {estimate.interval.high:.3f})"


def score_table(debates: Sequence[Transcript], truths: Sequence[str | None], scale: Scale, title: str) -> Table:
    """Accuracy and macro-F1 of every party at each number of classes, the constant first."""
    rows = []
    for count in scale.class_counts[1:] or scale.class_counts:
        for place, (party, given) in enumerate(verdicts_of(debates, scale).items()):
            scores = score_verdicts(truths, given, scale, classes=count)
            figures = scores.rows.figures
            if place == 0:
                constant = (figure(figures.constant_accuracy), figure(figures.constant_f1))
                rows.append((str(count), f"always {figures.constant}", *constant, ""))
            nei = proportion(scores.rows.nei, len(given))
            rows.append((str(count), party, figure(figures.accuracy), figure(figures.f1), figure(nei)))
    return Table.of(title, ("classes", "participant", "accuracy", "macro-F1", "not enough information"), rows, left=2)


def facts(debates: Sequence[Transcript]) -> list[str]:
    """What else the results tell."""
    opinions = [opinion for debate in debates for held in debate.rounds for opinion in held.opinions]
    known = [opinion.contradicts for opinion in opinions if opinion.contradicts is not None]
    final = [debate.verdict.contradicts for debate in debates if debate.verdict.contradicts is not None]
    sentences = [sentence for opinion in opinions for sentence in opinion.explanation]
    lines = [f"outcomes {dict(Counter(debate.verdict.outcome for debate in debates))}"]
    lines.append(f"verdicts {dict(Counter(debate.verdict.label for debate in debates).most_common())}")
    lines.append(f"rounds {dict(Counter(len(debate.rounds) for debate in debates))}")
    lines.append(f"closed {dict(Counter(debate.rounds[-1].decision.reason for debate in debates if debate.rounds))}")
    if known:
        lines.append(
            f"explanations that contradict their verdict: opinions {figure(proportion(sum(known), len(known)))}"
        )
    if final:
        lines.append(f"the mediator's: {figure(proportion(sum(final), len(final)))}")
    if sentences:
        own = sum(sentence.in_house for sentence in sentences)
        by_model = sum(sentence.origin == "model" for sentence in sentences)
        lines.append(f"sentences {len(sentences)}: cited by the model {by_model}, attributed "
                     f"{len(sentences) - own - by_model}, in-house {own}")  # fmt: skip
        lines.append(f"sentences with foreign quantities {sum(bool(s.foreign_numbers) for s in sentences)}")
    lines.append(f"citations removed {sum(opinion.removed_citations for opinion in opinions)}")
    left_out = [(debate.verdict.label, label) for debate in debates for _, label in debate.without]
    if left_out:
        changed = sum(first != second for first, second in left_out)
        lines.append(f"verdicts that change without one advocate: {changed} of {len(left_out)}")
    lines.append(f"failed calls {sum(debate.failures for debate in debates)}")
    tokens = sum(debate.usage.prompt_tokens for debate in debates), sum(d.usage.completion_tokens for d in debates)
    lines.append(f"tokens {tokens[0]} prompt, {tokens[1]} completion")
    return lines


def main() -> None:
    claims, column, name, *files = sys.argv[1:]
    scale = load_scale(name)
    table = read_claims(Path(claims), ClaimColumns(verdict=column))
    truths = {claim.id: verdict for claim, verdict in zip(table.claims, table.verdicts, strict=True)}
    for file in files:
        debates = read_transcripts(Path(file))
        wanted = [truths[debate.claim.id] for debate in debates]
        print(as_markdown(score_table(debates, wanted, scale, f"{Path(file).stem}, n = {len(debates)}")))
        print("".join(f"- {line}\n" for line in facts(debates)))


if __name__ == "__main__":
    main()
