"""What fact-checks will take, said before any model is asked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from climassay.cli.factcheck_options import DebateOptions, Room
from climassay.cli.output import print_json, stderr_console, stdout_console, waiting

if TYPE_CHECKING:
    from climassay.factcheck.estimate import Estimate
    from climassay.factcheck.transcript import Claim


def estimate_debates(
    room: Room, claims: "Sequence[Claim]", debate: DebateOptions, samples: int, *, only: bool, as_json: bool
) -> None:
    """Rehearse the debates and say what they will take: on standard output where nothing else is asked for."""
    from climassay.factcheck.checking import set_table
    from climassay.factcheck.estimate import rehearse
    from climassay.records.queries import seconds_per_answer

    with waiting("Estimating ..."):
        table = set_table(room.settings, room.company, debate.prompts)
        found = rehearse(
            table, room.company, claims, samples, lambda model: seconds_per_answer(room.store.database, model)
        )
    if only and as_json:
        print_json(found)
    else:
        (stdout_console() if only else stderr_console()).print(_words(found), highlight=False)


def _words(found: "Estimate") -> str:
    claims = "1 claim" if found.claims == 1 else f"{found.claims} claims"
    time = "time unknown, as the records have no answer of this model"
    if found.seconds is not None:
        time = f"about {_duration(found.seconds)}"
    money = "cost unknown, as no price is given" if found.cost is None else f"at most about ${found.cost:.2f}"
    further = f", and at most {found.further_rounds} more" if found.further_rounds else ""
    if found.further_rounds and found.further_sequence is not None:
        further += f" with at most {found.further_sequence} more calls one after the other in each"
    return (
        f"{claims}, one round{further}. The first round: {found.requests} calls, for each claim at most "
        f"{found.sequence} one after the other; {found.prompt_tokens:,} prompt and up to {found.completion_tokens:,} "
        f"completion tokens; {money}; {time}. Answers that the records have are not asked again."
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
