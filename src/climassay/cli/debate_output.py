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
    Verdict,
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
        text.append(f"  {level_words(opinion.levels)}", style="dim")
    if opinion.explanation:
        text.append(f"\n  {_written(opinion.explanation)}")
    return text.append("\n")


def level_words(levels: Levels) -> str:
    """Levels on one line."""
    likelihood = f", likelihood {levels.likelihood}" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def _written(sentences: "Sequence[AnswerSentence]") -> str:
    from climassay.grounding import written

    return " ".join(written(sentence) for sentence in sentences)


def show_verdict(transcript: Transcript, scale: "Scale") -> None:
    """Print the verdict with its reasons and sources."""
    from rich.text import Text

    from climassay.factcheck.risk_coverage import probability_of

    console = stdout_console()
    verdict: Verdict = transcript.verdict
    told = verdict.label or verdict.outcome
    chance = probability_of(verdict, scale)
    probability = "" if chance is None else f" (probability {chance:.2f})"
    console.print(Text.assemble(("Verdict: ", "bold"), (told, "bold cyan"), (probability, "dim")))
    if verdict.levels is not None:
        console.print(Text(level_words(verdict.levels), style="dim"))
    if verdict.explanation:
        console.print(Text(_written(verdict.explanation)))
    for note in (*verdict.caveats, *transcript.warnings):
        console.print(Text(f"! {note}", style="yellow"))
    if transcript.stability is not None:
        one = transcript.stability
        console.print(Text(f"{one.share:.0%} of {one.samples} debates ended with the same verdict.", style="dim"))
    if transcript.sources:
        nothing = f"No passage is cited; {len(transcript.sources)} lay before the advocates:"
        console.print(Text("" if transcript.cited else f"\n{nothing}", style="dim"))
    for source in transcript.cited or transcript.sources:
        console.print(Text(f"[{source.number}] {source.citation}  ({source.collection})", style="dim"))
    console.print(Text("Written by a language model: have a person review it before you rely on it.", style="dim"))
