"""The quickstart: six steps from a document to a scored model, each offered, each skippable.

What was done is seen from what lies in the workspace, so that an interrupted quickstart goes on where it stopped, and
one whose steps were done by their own commands finds them done.
"""

from collections.abc import Sequence

from climassay.errors import InputError
from climassay.quickstart.step import NAME, Dialog, Outcome, QuickstartContext, Step
from climassay.quickstart.steps import FIRST_STEPS, LATER_STEPS

__all__ = ["NAME", "STEPS", "Dialog", "Outcome", "QuickstartContext", "Step", "run_quickstart"]

STEPS: tuple[Step, ...] = (*FIRST_STEPS, *LATER_STEPS)


def run_quickstart(context: QuickstartContext, dialog: Dialog, steps: Sequence[Step] = STEPS) -> tuple[Outcome, ...]:
    """Lead somebody through the steps.

    Returns:
        What became of each.

    Raises:
        InputError: An answer is of no use, where it may not be asked for again.
        ModelError: The model cannot be loaded.
    """
    return tuple(_led(step, f"{number}/{len(steps)}", context, dialog) for number, step in enumerate(steps, start=1))


def _led(step: Step, place: str, context: QuickstartContext, dialog: Dialog) -> Outcome:
    offer = step.offer(context)
    dialog.say(f"\n{place}  {step.title}")
    if not step.needs(context):
        said = "Left out: what it builds upon is not there."
        dialog.say(said)
        return Outcome(step.name, "skipped", said, step.command(context, offer))
    there = step.found(context)
    if there is not None:
        dialog.say(f"There already: {there}")
        return Outcome(step.name, "found", there, step.command(context, offer))
    while True:
        answer = dialog.answer(step.asks, offer)
        if answer is None:
            dialog.say(f"Skipped. Alone: {step.command(context, offer)}")
            return Outcome(step.name, "skipped", "Skipped.", step.command(context, offer))
        try:
            said = step.work(context, answer, dialog)
        except InputError as error:
            if not dialog.patient:
                raise
            dialog.say(str(error))
            continue
        command = step.command(context, answer)
        dialog.say(f"{said}\nAlone: {command}")
        return Outcome(step.name, "done", said, command)
