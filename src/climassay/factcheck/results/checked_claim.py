"""Result of checking one claim, for screens, notebooks and files."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from climassay.errors import NoAnswerError
from climassay.factcheck.certainty import Levels
from climassay.factcheck.scales import Scale, load_scale
from climassay.factcheck.transcript import (
    Transcript,
    as_data,
    reader_view,
)
from climassay.grounding import AnswerSentence, format_sentence
from climassay.reporting import Table
from climassay.reporting.results import Result

if TYPE_CHECKING:
    from climassay.factcheck.past_checks import PastCheck


from climassay.factcheck.results.page import (
    ENDING,
    OUTCOME,
    SIDE,
    describe_levels,
    factcheck_page,
    fallacy_note,
    list_notices,
    quoted_passages,
)


@dataclass(frozen=True, slots=True)
class CheckedClaim(Transcript, Result):
    """Result of checking one claim: its transcript."""

    rests_on_calls = False

    labels: Scale | None = None
    """Scale of the verdicts; None loads the scale that the transcript names."""
    past: "tuple[PastCheck, ...] | None" = None
    """Earlier fact-checks of the same or a similar claim; None if not searched."""

    @classmethod
    def of(cls, transcript: Transcript, labels: Scale) -> "CheckedClaim":
        """Create a result from a transcript and the scale of its verdicts."""
        return cls(**{entry.name: getattr(transcript, entry.name) for entry in fields(Transcript)}, labels=labels)

    def to_dict(self) -> dict[str, Any]:
        """Return the transcript and the earlier fact-checks as JSON-serialisable values."""
        past_data = {} if self.past is None else {"past": [asdict(check) for check in self.past]}
        return {**as_data(self), **past_data}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per opinion, in the order of the debate."""
        return [
            {"round": opinion.round, "advocate": opinion.advocate, "verdict": opinion.verdict,
             "changed": opinion.changed, "explanation": _format_sentences(opinion.explanation), "error": opinion.error}
            for debate_round in self.rounds for opinion in debate_round.opinions
        ]  # fmt: skip

    def tables(self) -> tuple[Table, ...]:
        """Return a table of the verdict and a table of all opinions."""
        names = ("round", "advocate", "verdict", "explanation")
        cells = [tuple(str(row[name] or "") for name in names) for row in self.rows()]
        outcome = verdict_row(self)
        verdict_cells = (str(outcome["label"] or outcome["outcome"]), str(outcome["confidence"] or "-"))
        return (
            Table.of(str(outcome["claim"]), ("verdict", "confidence"), [verdict_cells], left_columns=2),
            Table.of("Debate", names, cells, left_columns=4),
        )

    def terminal_tables(self, width: int) -> tuple[Table, ...]:  # noqa: ARG002
        """Return no tables: the terminal has already shown the debate, and :meth:`lines` contains the verdict."""
        return ()

    def lines(self) -> Iterator[Any]:
        """Return the verdict with its explanation and sources, line by line."""
        return verdict_lines(self, self.labels or load_scale(self.scale))

    def failure(self) -> NoAnswerError | None:
        """Return the error if there is no verdict because a model call failed."""
        if self.verdict.outcome != "failed":
            return None
        return NoAnswerError(f"There is no verdict, because a model call failed: {self.verdict.error}")

    def page(self) -> str:
        """Return the HTML page of the fact-check."""
        return factcheck_page(self, self.labels)


def verdict_row(transcript: Transcript) -> dict[str, str | None]:
    """Return the outcome of a debate as a table row."""
    verdict = transcript.verdict
    return {
        "id": transcript.claim.id,
        "claim": transcript.claim.text,
        "outcome": verdict.outcome,
        "label": verdict.label,
        "confidence": verdict.levels.confidence if verdict.levels else None,
    }


def format_levels(levels: Levels) -> str:
    """Format levels of certainty as one line of text."""
    likelihood = f", {levels.likelihood} to be true" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def _format_sentences(sentences: "Sequence[AnswerSentence]") -> str:
    return " ".join(format_sentence(sentence) for sentence in sentences)


def verdict_lines(transcript: Transcript, scale: Scale) -> Iterator[Any]:
    """Yield the lines of a verdict for a terminal: explanation, quotations, certainty, warnings and sources."""
    from rich.padding import Padding
    from rich.text import Text

    transcript = reader_view(transcript, scale)
    verdict = transcript.verdict
    if verdict.outcome == "verdict" and verdict.label is not None:
        yield Text.assemble(("Verdict: ", "bold"), (verdict.label, "bold cyan"))
        yield Text(f"This verdict says that the claim {scale.meaning(verdict.label)}.")
    else:
        yield Text.assemble(("Result: ", "bold"), (OUTCOME[verdict.outcome], "bold cyan"))
        yield Text(ENDING[verdict.outcome])
    if verdict.explanation:
        heading = "Why" if verdict.outcome == "verdict" else "What the model wrote"
        yield Text(f"\n{heading}", style="bold")
        yield Text(_format_sentences(verdict.explanation))
    if transcript.fallacy is not None:
        fallacy = transcript.fallacy
        yield Text("\nHow it may mislead", style="bold")
        yield Text(f"{fallacy.name.capitalize()} ({fallacy.probability:.0%}). {fallacy.definition}")
        yield Text(fallacy_note(fallacy), style="dim")
    for side, pairs in quoted_passages(transcript).items():
        yield Text(f"\n{SIDE[side]}", style="bold")
        for quotation, source in pairs:
            yield Padding(Text(f"\u201c{quotation.text}\u201d [{source.number}]"), (0, 0, 0, 2))
    if verdict.levels is not None:
        yield Text("\nHow certain it is", style="bold")
        for name, value, meaning in describe_levels(verdict.levels):
            yield Text.assemble(f"{name}: ", (value, "bold"), (f" ({meaning})", "dim"))
    remarks = list_notices(transcript)
    if remarks:
        yield Text("\nBefore you rely on this", style="bold")
    for note in remarks:
        yield Text(f"! {note}", style="yellow")
    if transcript.stability is not None:
        stability = transcript.stability
        yield Text(f"{stability.share:.0%} of {stability.samples} debates ended with the same verdict.", style="dim")
    if transcript.sources:
        heading = "Passages" if transcript.cited else f"Passages found: {len(transcript.sources)}, none of them cited"
        yield Text(f"\n{heading}", style="bold")
    for source in transcript.cited or transcript.sources:
        yield Text(f"[{source.number}] {source.citation}  ({source.collection})", style="dim")
    yield Text("\nWritten by a language model: have a person review it before you rely on it.", style="dim")
