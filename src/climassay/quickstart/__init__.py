"""The quickstart: six steps from a document to a scored model, each offered, each skippable.

What was done is told by what lies in the workspace, so that an interrupted quickstart goes on where it stopped, and one
whose steps were done by their own commands finds them done.
"""

from collections.abc import Sequence

from climassay.errors import InputError
from climassay.quickstart.step import NAME, Outcome, QuickstartContext, Step, Talk
from climassay.quickstart.steps import FIRST_STEPS, LATER_STEPS

__all__ = ["NAME", "STEPS", "Outcome", "QuickstartContext", "Step", "Talk", "run_quickstart"]

STEPS: tuple[Step, ...] = (*FIRST_STEPS, *LATER_STEPS)


def run_quickstart(room: QuickstartContext, talk: Talk, steps: Sequence[Step] = STEPS) -> tuple[Outcome, ...]:
    """Lead somebody through the steps.

    Args:
        room: What the steps work with; closed by who made it.
        talk: Asked and told.
        steps: In their order.

    Returns:
        What became of each.

    Raises:
        InputError: An answer is of no use, where it may not be asked for again.
        ModelError: The model cannot be loaded.
    """
    return tuple(_led(step, f"{number}/{len(steps)}", room, talk) for number, step in enumerate(steps, start=1))


def _led(step: Step, place: str, room: QuickstartContext, talk: Talk) -> Outcome:
    offer = step.offer(room)
    talk.say(f"\n{place}  {step.title}")
    if not step.needs(room):
        said = "Left out: what it builds upon is not there."
        talk.say(said)
        return Outcome(step.name, "skipped", said, step.command(room, offer))
    there = step.found(room)
    if there is not None:
        talk.say(f"There already: {there}")
        return Outcome(step.name, "found", there, step.command(room, offer))
    while True:
        answer = talk.answer(step.asks, offer)
        if answer is None:
            talk.say(f"Skipped. Alone: {step.command(room, offer)}")
            return Outcome(step.name, "skipped", "Skipped.", step.command(room, offer))
        try:
            said = step.work(room, answer, talk)
        except InputError as error:
            if not talk.patient:
                raise
            talk.say(str(error))
            continue
        command = step.command(room, answer)
        talk.say(f"{said}\nAlone: {command}")
        return Outcome(step.name, "done", said, command)
