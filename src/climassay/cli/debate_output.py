"""A debate on the terminal: opinions and questions as they come, then the verdict."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from climassay.cli.output import stdout_console
from climassay.factcheck.transcript import (
    AdvocateOpinion,
    Claim,
    FollowUp,
    Levels,
    MediatorDecision,
    Transcript,
)

if TYPE_CHECKING:
    from climassay.factcheck.debate import Table
    from climassay.factcheck.scales import Scale
    from climassay.grounding import AnswerSentence

_REASONS = {
    "close verdicts": "the informed verdicts are close",
    "no change": "nobody changed a verdict",
    "mediator": "the mediator is satisfied",
    "round limit": "the limit of rounds is reached",
    "one informed advocate": "one advocate has information",
    "not enough information": "no advocate has enough information",
    "contrast": "the verdicts contrast",
    "uncertain": "the mediator is not certain",
}


def teller(table: "Table") -> Callable[[Claim, Any], None]:
    """A function that prints what happens in a debate."""
    from rich.text import Text

    console = stdout_console()
    names = ", ".join(profile.name for profile in table.profiles)

    def tell(claim: Claim, event: Any) -> None:
        if isinstance(event, tuple):
            console.print(Text(f"Claim: {claim.text}", style="bold"))
            if len(event) > 1:
                for part in event:
                    console.print(Text(f"  {part.number}. {part.text}", style="dim"))
            console.print(Text(f"Advocates: {names}; mediator: {table.mediator.style}\n", style="dim"))
        elif isinstance(event, AdvocateOpinion):
            console.print(_opinion(event))
        elif isinstance(event, FollowUp):
            reply = _written(event.reply) or (event.error or "no reply")
            console.print(Text.assemble((f"{event.asker} asks {event.to}: ", "bold"), event.question))
            console.print(Text(f"  {event.to}: {reply}\n"))
        elif isinstance(event, MediatorDecision) and event.error is not None:
            console.print(Text(f"mediator failed: {event.error}\n", style="italic"))
        elif isinstance(event, MediatorDecision):
            step = "closes the debate" if event.closes else "opens another round"
            console.print(Text(f"mediator {step}: {_REASONS[event.reason]}\n", style="italic"))

    return tell


def _opinion(opinion: AdvocateOpinion) -> Any:
    from rich.text import Text

    verdict = opinion.verdict or f"no opinion ({opinion.error})"
    changed = " (changed)" if opinion.changed else ""
    text = Text.assemble((f"{opinion.advocate}, round {opinion.round}: ", "bold"), (verdict, "bold cyan"), changed)
    if opinion.levels is not None:
        text.append(f"  {_level_words(opinion.levels)}", style="dim")
    if opinion.explanation:
        text.append(f"\n  {_written(opinion.explanation)}")
    return text.append("\n")


def _level_words(levels: Levels) -> str:
    """Levels on one line, after the verdict that they belong to."""
    likelihood = f", {levels.likelihood} to be true" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def _written(sentences: "Sequence[AnswerSentence]") -> str:
    from climassay.grounding import written

    return " ".join(written(sentence) for sentence in sentences)


def show_verdict(transcript: Transcript, scale: "Scale") -> None:
    """Print the verdict with its reasons, what speaks for and against it, and its sources."""
    from rich.padding import Padding
    from rich.text import Text

    from climassay.factcheck import page_words
    from climassay.factcheck.page import notices, quoted_passages
    from climassay.factcheck.risk_coverage import probability_of
    from climassay.factcheck.shown import as_shown

    console = stdout_console()
    transcript = as_shown(transcript, scale)
    verdict = transcript.verdict
    if verdict.outcome == "verdict" and verdict.label is not None:
        console.print(Text.assemble(("Verdict: ", "bold"), (verdict.label, "bold cyan")))
        chance = probability_of(verdict, scale)
        probability = "" if chance is None else f" The model gives this verdict a probability of {100 * chance:.0f}%."
        console.print(Text(f"The claim {scale.meaning(verdict.label)}.{probability}"))
    else:
        console.print(Text.assemble(("Result: ", "bold"), (page_words.OUTCOME[verdict.outcome], "bold cyan")))
        console.print(Text(page_words.ENDING[verdict.outcome]))
    if verdict.explanation:
        heading = "Why" if verdict.outcome == "verdict" else "What the model wrote"
        console.print(Text(f"\n{heading}", style="bold"))
        console.print(Text(_written(verdict.explanation)))
    if transcript.fallacy is not None:
        one = transcript.fallacy
        console.print(Text("\nHow it misleads", style="bold"))
        console.print(Text(f"{one.name.capitalize()} ({one.probability:.0%}). {one.definition}"))
        console.print(Text(page_words.fallacy_note(one), style="dim"))
    for side, pairs in quoted_passages(transcript).items():
        console.print(Text(f"\n{page_words.SIDE[side]}", style="bold"))
        for quotation, source in pairs:
            console.print(Padding(Text(f"\u201c{quotation.text}\u201d [{source.number}]"), (0, 0, 0, 2)))
    if verdict.levels is not None:
        console.print(Text("\nHow certain it is", style="bold"))
        for name, value, meaning in page_words.level_lines(verdict.levels):
            console.print(Text.assemble(f"{name}: ", (value, "bold"), (f" ({meaning})", "dim")))
    known = notices(transcript)
    if known:
        console.print(Text("\nBefore you rely on this", style="bold"))
    for note in known:
        console.print(Text(f"! {note}", style="yellow"))
    if transcript.stability is not None:
        stable = transcript.stability
        console.print(Text(f"{stable.share:.0%} of {stable.samples} debates ended with the same verdict.", style="dim"))
    if transcript.sources:
        heading = "Passages" if transcript.cited else f"Passages found: {len(transcript.sources)}, none of them cited"
        console.print(Text(f"\n{heading}", style="bold"))
    for source in transcript.cited or transcript.sources:
        console.print(Text(f"[{source.number}] {source.citation}  ({source.collection})", style="dim"))
    console.print(Text("\nWritten by a language model: have a person review it before you rely on it.", style="dim"))
