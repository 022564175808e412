"""Who held what, and when: the verdicts of a run by advocate and round."""

from collections.abc import Sequence
from typing import Final

from climassay.factcheck.transcript import AdvocateOpinion, Round, Transcript
from climassay.grounding import AnswerSentence

MEDIATOR: Final = "mediator"
"""The mediator among the parties; no advocate can be called so."""


def parties_of(transcripts: Sequence[Transcript]) -> tuple[str, ...]:
    """The mediator, then the advocates in order of appearance."""
    names = (profile.name for transcript in transcripts for profile in transcript.advocates)
    return (MEDIATOR, *dict.fromkeys(names))


def opinion_of(transcript: Transcript, advocate: str, number: int | None = None) -> AdvocateOpinion | None:
    """An advocate's opinion on the whole claim after so many rounds, or at the end; None where it has none."""
    held = round_of(transcript, number)
    if held is None:
        return None
    return next((opinion for opinion in held.opinions if opinion.advocate == advocate), None)


def round_of(transcript: Transcript, number: int | None = None) -> Round | None:
    """The round after which a debate stood so, or its last: a debate that closed earlier stays as it closed."""
    if not transcript.rounds:
        return None
    return transcript.rounds[-1 if number is None else min(number, len(transcript.rounds)) - 1]


def verdict_of(transcript: Transcript, party: str, number: int | None = None) -> str | None:
    """A party's verdict after so many rounds, or at the end; None where there is none."""
    if party == MEDIATOR:
        if number is None or number >= len(transcript.rounds):
            return transcript.verdict.label
        return transcript.rounds[number - 1].decision.verdict
    opinion = opinion_of(transcript, party, number)
    return None if opinion is None else opinion.verdict


def explanation_of(transcript: Transcript, party: str) -> tuple[tuple[AnswerSentence, ...], int, bool | None]:
    """A party's last explanation, how many citations were removed from it, and whether it contradicts its verdict."""
    source = transcript.verdict if party == MEDIATOR else opinion_of(transcript, party)
    if source is None:
        return (), 0, None
    return source.explanation, source.removed_citations, source.contradicts
