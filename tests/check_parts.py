"""Checks in the browser for tests: a server whose debates are answered by a script, over small real collections."""

import threading

from climassay.corpus import Block, Collection, Document
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.web.checks.store import get_check_store
from debate_parts import WordEncoder
from debate_tables import Script, View
from patience import job_at_its_end, reached, until
from web_parts import post

SUN = "The Sun, and not carbon dioxide, has caused the warming since 1950."
SETTINGS = """\
model = "local:scripted"
scale = "climate-feedback"
split = "whole"
check_claims = false
[profile]
queries = 0
grade_passages = false
[[advocate]]
name = "Physical"
collections = ["physical"]
[[advocate]]
name = "Pamphlet"
collections = ["pamphlet"]
weight = 0.3
"""
TEXTS = {
    "physical": (
        "From 1750 to 2019 carbon dioxide added an effective forcing of about 2 watts per square metre, the largest of "
        "all drivers of the warming.",
        "Satellites have measured the Sun since 1978. Its brightness rises and falls over eleven years and shows no "
        "trend, so that the Sun has caused next to nothing of the warming since then.",
    ),
    "pamphlet": (
        "The Sun delivers practically all of the energy that reaches the climate, so the Sun has caused the warming.",
    ),
}
QUESTION = "How much has the brightness of the Sun changed?"


def _pamphlet(prompt):
    """Less sure of itself once it was asked; the prompt tells, so that a server that starts again goes on alike."""
    if QUESTION in prompt:
        return View(
            "inaccurate",
            placement="outlier",
            says="The Sun delivers the energy [3], which does not tell what has changed.",
        )
    return View("correct", says="Practically all of the energy of the climate comes from the Sun [3].")


def _mediator(prompt):
    """Asks both as long as they differ."""
    asks = ("Physical", "Pamphlet") if "so that the debate goes on" in prompt else ()
    says = "The Sun has not become brighter since it is measured [1]. What has risen is carbon dioxide [2]."
    return View(says=says, asks=asks)


DISPUTE = {
    "Physical": [
        View(
            placement="outlier",
            says="The Sun's brightness shows no trend since 1978 [1], while carbon dioxide added a large forcing [2].",
        )
    ],
    "Pamphlet": _pamphlet,
    "mediator": _mediator,
}
"""Two advocates that contrast, so that a second round is held."""


class Gate:
    """Holds a model at a speaker's turn until a test has looked."""

    def __init__(self, speaker="mediator"):
        self.speaker = speaker
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, prompt):
        """Wait, if it is the speaker's turn."""
        if f"You are the {self.speaker}" in prompt:
            self.reached.set()
            reached(self.open)


def scripted(gate=None, plans=DISPUTE, **script):
    """A script; with a gate (whatever takes a prompt) it waits there."""
    made = Script(plans, **{"question": QUESTION, "reply": "It has hardly changed since it is measured [1].", **script})
    write = made.model.write
    if gate is not None:
        made.model.write = lambda prompt, schema: (gate(prompt), write(prompt, schema))[1]
    return made


def write_settings(folder):
    """A file that sets up a debate of two collections."""
    file = folder / "two sides.toml"
    file.write_text(SETTINGS)
    return file


def add_collection(place, name, *texts, id="document", **document):
    """Add a document to a collection, each text a passage of its own; the collection is made where it is not there."""
    blocks = tuple(Block(text, chapter=f"Chapter {number}", page=number) for number, text in enumerate(texts, start=1))
    made = Collection.create(place.workspace, name, WordEncoder())
    made.add([Document(f"{name}-{id}", f"The book {name}", f"{name}.pdf", blocks, **document)])


def furnish(place, script, texts=TEXTS):
    """Give a server collections, and in place of models what answers by a script and compares by words."""
    for name, some in texts.items():
        add_collection(place, name, *some)
    for name in ("words", BUNDLED_ENCODER):
        place.shared(f"encoder {name}", WordEncoder)
    place.shared("model local:scripted", lambda: script.model)


def ask(client, claim=SUN, **more):
    """Send a claim; the id of its check."""
    answer = post(client, "/check", {"claim": claim, **more})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].removeprefix("/checks/")


def ended(place, check):
    """Wait until the work on a check has ended; the check."""
    job_at_its_end(place.jobs, until(lambda: get_check_store(place).get(check).about.job))
    return get_check_store(place).get(check)
