"""``climassay generate mask``: train, evaluate and apply what chooses the term of a cloze statement."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.learning_options import OutputOption, check_model_path, note, show
from climassay.cli.model_options import PromptsOption, ReachOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.generation.masking import ExpertChoice, WordStatistics

app = typer.Typer(no_args_is_help=True, help="Choose the term of cloze statements that is masked.")

_PRIMER = "primer"
_LEFT_OUT = "trained"

_LABELS = typer.Argument(help="Drafts whose terms experts chose, or cloze questions in any known format, or 'primer'.")
MaskerArgument = Annotated[str, typer.Argument(help="statistics, prompted:MODEL or a trained masker's file.")]
GlossaryOption = Annotated[Path | None, typer.Option(help="Terms of the field, one a line; preferred.")]
AskedModelOption = Annotated[
    str | None, typer.Option("--model", "-m", help="local:NAME or openai:NAME, asked by the masker 'prompted'.")
]


@app.command()
def train(
    labels: Annotated[list[str], _LABELS],
    output: OutputOption,
    glossary: GlossaryOption = None,
    vectors: Annotated[bool, typer.Option(help="Read what the bundled encoder sees of a word.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Learn from the terms that people masked; every statement is left out once to tell how well it works."""
    from climassay.generation.masking import MaskerReading, train_masker

    check_model_path(output)
    choices = _choices(labels)
    reading = MaskerReading(impact=vectors, vectors=vectors)
    masker = train_masker(choices, data=", ".join(labels), statistics=_statistics(glossary), reading=reading)
    masker.save(output)
    measured = masker.provenance.measured
    if as_json:
        print_json({"masker": output, "statements": len(choices), "held_out": measured})
        return
    words = ", ".join(f"{name} {value:.2f}" for name, value in measured.items())
    show((), f"{output}: {len(choices)} choices; left out one by one: {words}.")


@app.command("measure", hidden=True, help="Earlier form of evaluate: LABELS... --masker MASKER.")
@app.command()
@grouped
def evaluate(
    context: typer.Context,
    maskers: Annotated[
        str,
        typer.Argument(
            help="Between commas: statistics, prompted:MODEL, a trained masker's file, or 'trained': one fitted on all "
            "other statements.",
        ),
    ],
    labels: Annotated[list[str] | None, _LABELS] = None,
    earlier: Annotated[list[str] | None, typer.Option("--masker", hidden=True)] = None,
    model: AskedModelOption = None,
    reach: ReachOptions = ReachOptions(),
    glossary: GlossaryOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """How often maskers choose the term that people masked, beside chance and the longest word."""
    labels = labels or []
    if context.info_name == "measure":
        labels = [maskers, *labels]
        maskers = ",".join(earlier or ["statistics", *(["prompted"] if model else []), _LEFT_OUT])
        note(f"Now: climassay generate mask evaluate {maskers} {' '.join(labels)}")
    if not labels:
        raise InputError("Name the labels to measure on behind the maskers, for example primer.")
    from climassay.generation.masking import (
        StatisticsMasker,
        accuracies,
        candidates,
        leave_one_out,
        measure,
        open_masker,
    )
    from climassay.reporting import Table

    choices = _choices(labels)
    load = reach.loader(workspace, quiet=as_json)
    asked = None if model is None else load(model)
    statistics = _statistics(glossary)
    longest = StatisticsMasker(weights={"length": 1.0}).choose([choice.statement for choice in choices])
    found = [accuracies("longest word", choices, longest)]
    for name in maskers.split(","):
        if name != _LEFT_OUT:
            masker = open_masker(name, model=asked, glossary=sorted(statistics.glossary), load=load)
            found.append(measure(masker, choices))
        elif len(choices) > 1:
            found.append(accuracies("trained, left out", choices, leave_one_out(choices, statistics=statistics)))
    counts = [len(candidates(choice.statement)) for choice in choices]
    chance = sum(1 / count for count in counts) / len(counts)
    if as_json:
        print_json({"statements": len(choices), "chance": chance, "maskers": [asdict(one) for one in found]})
        return
    rows = [
        [
            one.name,
            *(f"{x.value:.3f} ({x.interval.low:.2f}-{x.interval.high:.2f})" for x in (one.first, one.among_three)),
        ]
        for one in found
    ]
    words = (
        f"{len(choices)} statements of {sum(counts) / len(counts):.1f} candidate words on average; "
        f"chance {chance:.3f}; 95% intervals (Wilson)."
    )
    show([Table.of("Terms that people masked", ["masker", "first", "among three"], rows, note=words)])


@app.command()
@grouped
def apply(
    masker: MaskerArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the drafts with their terms.")],
    drafts: Annotated[Path | None, typer.Argument(help="Drafts (JSONL).")] = None,
    earlier: Annotated[str, typer.Option("--masker", hidden=True)] = "statistics",
    model: AskedModelOption = None,
    reach: ReachOptions = ReachOptions(),
    glossary: GlossaryOption = None,
    prompts: PromptsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose the term of every accepted cloze statement that has none."""
    from climassay.generation import read_drafts, write_drafts
    from climassay.generation.masking import mask, open_masker, read_glossary

    if drafts is None:
        drafts, masker = Path(masker), earlier
        note(f"Now: climassay generate mask apply {masker} {drafts} -o {output}")
    before = list(read_drafts(drafts))
    if not before:
        raise InputError(f"{drafts} holds no draft: there is nothing to mask.")
    load = reach.loader(workspace, quiet=as_json)
    chooser = open_masker(
        masker,
        model=None if model is None else load(model),
        passages=list({passage.text for draft in before for passage in draft.passages}),
        glossary=() if glossary is None else read_glossary(glossary),
        prompts=prompts,
        load=load,
    )
    after = mask(before, chooser)
    write_drafts(output, after)
    new = [one.decisions[-1] for one, old in zip(after, before, strict=True) if len(one.decisions) > len(old.decisions)]
    counts = {
        "masked": sum(one.accepted is True for one in new),
        "no_term": sum(one.accepted is False for one in new),
        "failed": sum(one.accepted is None for one in new),
    }
    if as_json:
        print_json({"drafts": output, **counts})
        return
    words = f"{counts['masked']} masked, {counts['no_term']} without a term, {counts['failed']} failed"
    show((), f"{output}: {words}.")


def _choices(labels: list[str]) -> "list[ExpertChoice]":
    from climassay.generation.masking import choices_of, read_choices
    from climassay.primer import gold_questions

    return [
        choice
        for one in labels
        for choice in (choices_of(gold_questions()) if one == _PRIMER else read_choices(Path(one)))
    ]


def _statistics(glossary: Path | None) -> "WordStatistics":
    from climassay.generation.masking import count_words, read_glossary

    return count_words((), () if glossary is None else read_glossary(glossary))
