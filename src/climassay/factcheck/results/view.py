"""What of a fact-check may be shown, whoever made it and however old it is: the last look before any reader's.

A debate withholds by itself what nothing bears. Transcripts of earlier versions and from elsewhere come through here
too, so that no page, table or export calls a verdict what rests on nothing, nor says of a claim that it is rated right
and unlikely to be true.
"""

from dataclasses import replace

from climassay.factcheck.configuration import DEFAULT_MODEL
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Levels, Transcript, Verdict, cited_numbers, takes_side


def reader_view(transcript: Transcript, scale: Scale) -> Transcript:
    """The fact-check as readers may see it; the one given is not altered.

    - A verdict that cites and quotes no passage of the debate becomes "not enough information", and is reported as
      withheld.
    - A likelihood that says the opposite of the verdict beside it is left out.
    - How a claim misleads is said only where the verdict that is shown is against it.
    - A debate of the bundled model is a demonstration, also where it was stored before transcripts said so.

    Args:
        transcript: A finished fact-check.
        scale: Its scale.

    Raises:
        InputError: A verdict is not one of the scale's labels.
    """
    models = {transcript.mediator.rpartition(", ")[2], *(profile.model for profile in transcript.advocates)}
    rounds = tuple(
        replace(
            held,
            opinions=tuple(replace(one, levels=_agreeing(one.levels, one.verdict, scale)) for one in held.opinions),
            parts=tuple(replace(one, levels=_agreeing(one.levels, one.verdict, scale)) for one in held.parts),
            decision=replace(held.decision, levels=_agreeing(held.decision.levels, held.decision.verdict, scale)),
        )
        for held in transcript.rounds
    )
    verdict = transcript.verdict
    verdict = replace(verdict, levels=_agreeing(verdict.levels, verdict.label, scale))
    known = {source.number for source in transcript.sources}
    bears = known.intersection(cited_numbers(verdict.explanation, verdict.quotations))
    if verdict.outcome == "verdict" and verdict.label is not None and not bears:
        verdict = replace(
            verdict,
            outcome="not enough information",
            label=scale.nei,
            levels=None,
            probabilities=(),
            caveats=(withheld_caveat(verdict.label), *verdict.caveats),
            contradicts=None,
            withheld=verdict.label,
        )
    return replace(
        transcript,
        rounds=rounds,
        verdict=verdict,
        fallacy=transcript.fallacy if is_against(verdict, scale) else None,
        demonstration=transcript.demonstration or (bool(rounds) and DEFAULT_MODEL in models),
    )


def is_against(verdict: Verdict, scale: Scale) -> bool:
    """Whether a verdict stands on the wrong side of its scale."""
    return verdict.outcome == "verdict" and verdict.label in scale.labels and verdict.label not in scale.correct


def withheld_caveat(label: str) -> str:
    """What readers see of a verdict that is withheld."""
    return f"The mediator would say \u201c{label}\u201d, but rests it on no passage: it is not given as a verdict."


def _agreeing(levels: Levels | None, label: str | None, scale: Scale) -> Levels | None:
    """The levels without a likelihood that contradicts the verdict."""
    if levels is None or levels.likelihood is None or label is None or label == scale.nei:
        return levels
    return levels if takes_side(levels.likelihood, scale.is_correct(label)) else replace(levels, likelihood=None)
