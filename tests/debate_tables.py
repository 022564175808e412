"""Whole debates for tests: participants who answer by a script, over small real collections of primer passages."""

import functools
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document
from climassay.errors import ModelError
from climassay.factcheck import (
    AdvocateSettings,
    DebateResources,
    DebateSettings,
    Transcript,
    make_claim,
)
from climassay.factcheck.checking import list_collections, list_models, set_up_debate
from climassay.factcheck.debate.batcher import RequestBatcher
from climassay.factcheck.debate.context import load_templates
from climassay.factcheck.debate.rounds import debate
from climassay.grounding import CollectionGroup
from climassay.models import Encoder
from climassay.models.encoders import CachedEncoder
from climassay.primer import book_path
from climassay.prompts import ProfileSettings, Prompt
from scripted_model import ScriptedModel

SUN = "The Sun, and not carbon dioxide, has caused the warming since 1950."
PASSAGES = {
    "physical": (
        "The Sun delivers about 1361",
        "From 1750 to 2019 the effective forcing by CO2",
        "The climatic importance of CO2",
    ),
    "ice": ("From 1750 to 2019 the effective forcing by CO2", "The greenhouse effect can be measured"),
    "pamphlet": ("The sun delivers practically all", "Carbon dioxide makes up a mere", "The record shows that 1998"),
}
"""Of each collection, the beginnings of its passages; two collections share one."""
_PHYSICAL = ("physical_climate", "Principles of Physical Climate")
BOOKS = {
    "physical": _PHYSICAL,
    "ice": _PHYSICAL,
    "pamphlet": ("contrarian_pamphlet", "Common Contrarian Claims"),
}
"""The book of each collection, and its title."""


@functools.cache
def encoder() -> Encoder:
    """The bundled one, loaded once, which encodes a text once for all tests of a process."""
    return CachedEncoder(load_encoder())


@functools.cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory()


@functools.cache
def paragraph(book: str, beginning: str) -> tuple[str, str]:
    """The heading and the text of the paragraph of a primer book that begins so."""
    heading, found = "", []
    for line in book_path(book).read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            heading = line.removeprefix("### ")
        if line.startswith(beginning):
            found.append((heading, line))
    [only] = found
    return only


def make_collection(folder: Path, name: str, *paragraphs: tuple[str, str], title: str = "A book") -> CollectionGroup:
    """A collection with one passage for each pair of heading and text; the headings have to differ."""
    blocks = tuple(Block(text, chapter=heading) for heading, text in paragraphs)
    made = Collection.create(folder, name, encoder())
    made.add([Document(f"{name}-document", title, f"{name}.md", blocks)])
    return CollectionGroup((made,))


@functools.cache
def collection(name: str) -> CollectionGroup:
    """One of :data:`PASSAGES`."""
    book, title = BOOKS[name]
    found = [paragraph(book, beginning) for beginning in PASSAGES[name]]
    return make_collection(Path(_folder().name), name, *found, title=title)


@dataclass(frozen=True, slots=True)
class View:
    """What somebody holds in one round."""

    verdict: str = "incorrect"
    evidence: str = "medium"
    agreement: str = "medium"
    confidence: str = "medium"
    placement: str = "consensus"
    informed: bool = True
    asks: tuple[str, ...] = ()
    """Names of those to whom it puts the script's question, if it may ask."""
    says: str = ""
    """The explanation; by default it cites the first passage, or whatever the advocates cite."""
    fails: bool = False
    """Whether the call fails."""
    likelihood: str = "not quantified"
    quotations: tuple[Mapping[str, Any], ...] = ()


NEI = View(informed=False)
UNSURE = {"evidence": "limited", "agreement": "medium", "confidence": "low"}
Plan = Mapping[str, "Sequence[View | str] | Callable[[str], View]"]


class Script:
    """Answers the requests of a debate as its participants' plans say.

    Args:
        plans: By name of the advocate, or ``mediator``: views in order of the rounds, the last of which stays (a text
            is a view with this verdict), or a function from the prompt to a view.
        question: What is written where a question is asked; a text or a function of the name of who is asked.
        reply: What is written where a reply is asked for; a text or a function of the prompt.
        split: The answer of the model that reads the claim.
    """

    def __init__(
        self,
        plans: Plan,
        *,
        question: "str | Callable[[str], str]" = "How much has solar irradiance changed since 1750?",
        reply: "str | Callable[[str], str]" = "Its change was close to zero [2].",
        split: str = "{}",
    ) -> None:
        self.plans, self.question, self.reply, self.split = plans, question, reply, split
        self.model = ScriptedModel(write=self._write)
        self._rounds: Counter[tuple[str, str]] = Counter()
        """How many views each participant has given on each claim."""

    def _write(self, prompt: str, schema: Any) -> Any:
        if prompt.startswith("<system>You prepare"):
            return self.split
        speaker = speaker_of(prompt)
        key = speaker, re.findall(r"^Claim: (.*)$", prompt, re.MULTILINE)[-1]
        self._rounds[key] += 1
        view = self._view(speaker, prompt, self._rounds[key])
        if view.fails:
            return ModelError(f"{speaker} is not to be reached.")
        # An advocate cites its first passage and the mediator whatever they cite: nothing else supports a verdict.
        numbers = re.findall(r"\[(\d)\]", prompt.partition("<user>")[2])
        cited = dict.fromkeys(numbers if speaker == "mediator" else numbers[:1])
        citations = "".join(f" [{number}]" for number in cited)
        fields = {
            "quotations": view.quotations,
            "reasoning": f"{speaker} weighs it.",
            "verdict": view.verdict if view.informed else schema["properties"]["verdict"]["enum"][-1],
            "evidence": view.evidence,
            "agreement": view.agreement,
            "confidence": view.confidence,
            "likelihood": view.likelihood,
            "placement": view.placement,
            "explanation": view.says or f"{speaker} finds it {view.verdict}{citations}.",
            "questions": [{"to": name, "question": _text(self.question, name), "queries": []} for name in view.asks],
        }
        return json.dumps(self._filled(schema, fields, prompt))

    def _filled(self, schema: Any, fields: Mapping[str, Any], prompt: str) -> dict[str, Any]:
        """The fields that the schema has; each statement is judged like the whole."""
        values: dict[str, Any] = {}
        for name, part in schema["properties"].items():
            if name == "replies":
                values[name] = {number: _text(self.reply, prompt) for number in part["properties"]}
            elif name == "statements":
                values[name] = {number: self._filled(one, fields, prompt) for number, one in part["properties"].items()}
            else:
                values[name] = fields[name]
        return values

    def _view(self, speaker: str, prompt: str, number: int) -> View:
        plan = self.plans.get(speaker, [View()])
        found = plan(prompt) if callable(plan) else plan[min(number, len(plan)) - 1]
        return View(found) if isinstance(found, str) else found

    def prompts_of(self, speaker: str) -> list[str]:
        """Prompts at which somebody was asked for an assessment, in order."""
        return [prompt for prompt in self.model.texts if speaker_of(prompt) == speaker]


def _text(given: "str | Callable[[str], str]", about: str) -> str:
    return given(about) if callable(given) else given


def speaker_of(prompt: str) -> str:
    """Whose assessment a prompt asks for; empty for other prompts."""
    if prompt.startswith("<system>You are the mediator"):
        return "mediator"
    match = re.match(r"<system>You are ([^\n]*?), a fact-checker with", prompt)
    return match[1] if match else ""


@dataclass(frozen=True)
class Held:
    transcript: Transcript
    script: Script
    events: list[Any]

    @property
    def reasons(self) -> list[str]:
        """Why each round was followed by another one, or by none."""
        return [one.decision.reason for one in self.transcript.rounds]


PHYSICAL = AdvocateSettings("Physical", collections=("physical",), min_cosine=0.0)
ICE = AdvocateSettings("Ice", collections=("ice",), weight=0.5, min_cosine=0.0)
PLAIN = AdvocateSettings("Model", "plain", weight=0.4)
PAMPHLET = AdvocateSettings(
    "Pamphlet", "adversarial", ("pamphlet",), 0.3, stance="the Sun explains everything", min_cosine=0.0
)


def hold(script: Script, *advocates: AdvocateSettings, claim: str = SUN, **settings: Any) -> Held:
    """Hold a debate; the mediator's own model is the script, too."""
    known: dict[str, Any] = {
        "model": "local:scripted",
        "scale": "climate-feedback",
        "split": "whole",
        "check_claims": False,
        "profile": UNGRADED,
    }
    chosen = DebateSettings(advocates, **{**known, **settings})
    company = DebateResources(
        dict.fromkeys(list_models(chosen), script.model),
        {name: collection(name) for name in list_collections(chosen)},
        encoder=encoder(),
    )
    return held(script, chosen, company, claim)


@functools.cache
def _templates() -> Mapping[str, Prompt]:
    """Compiled once: that takes longer than a debate."""
    return load_templates()


def held(script: Script, settings: DebateSettings, company: DebateResources, claim: str) -> Held:
    """Hold a debate with collections of the caller's own."""
    events: list[Any] = []
    table = replace(set_up_debate(settings, company), templates=_templates())
    steps = debate(make_claim(claim), table, events.append)
    exchange = RequestBatcher(company.models, company.collections)
    answers = None
    try:
        while True:
            asks = next(steps) if answers is None else steps.send(answers)
            answers = exchange.answer(asks)
    except StopIteration as end:
        return Held(end.value, script, events)


UNGRADED = ProfileSettings(queries=0, grade_passages=False)
"""Prompts without search queries and without grades, so that a model is asked for nothing but assessments."""


def among(settings: AdvocateSettings, **changes: Any) -> AdvocateSettings:
    return replace(settings, **changes)
