"""Whole debates for tests: participants who answer by a script, over small real collections of primer passages."""

import functools
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
    MediatorSettings,
    Transcript,
    make_claim,
)
from climassay.factcheck.checking import list_collections, list_models, set_up_debate
from climassay.factcheck.debate.assessment import PLACEMENTS
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
_PLACEMENT_OPTIONS = dict(
    zip(
        PLACEMENTS,
        (
            " the consensus view",
            " an outlier view",
            " an exaggeration of something true",
            " something true that is presented in a misleading way",
        ),
        strict=True,
    )
)


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
    goes_on: bool = True
    """Of the mediator: whether it would rather ask than close."""
    says: str = ""
    fails: str = ""
    """The line at which the model fails, for example ``Verdict``."""
    likelihood: str = "not quantified"
    chances: tuple[float, ...] = ()
    """Log-probabilities of the labels, instead of a clear preference for the verdict."""


NEI = View(informed=False)
UNSURE = {"evidence": "limited", "agreement": "medium", "confidence": "low"}
Plan = Mapping[str, "Sequence[View | str] | Callable[[str], View]"]


class Script:
    """Answers the requests of a debate as its participants' plans say.

    Args:
        plans: By name of the advocate, or ``mediator``: views in order of the rounds, the last of which stays (a text
            is a view with this verdict), or a function from the prompt to a view.
        whole: From the prompt about a claim's statements to the verdict on the whole.
        side: Which side every explanation takes.
        question: What is written where a question is asked for.
        reply: What is written where a reply is asked for; a text or a function of the prompt.
    """

    def __init__(
        self,
        plans: Plan,
        *,
        whole: Callable[[str], str] = lambda _: "incorrect",
        side: str = "wrong",
        question: str = "How much has solar irradiance changed since 1750?",
        reply: "str | Callable[[str], str]" = "Its change was close to zero [2].",
        split: str = "{}",
    ) -> None:
        self.plans, self.whole, self.side, self.question, self.reply, self.split = (
            plans, whole, side, question, reply, split,
        )  # fmt: skip
        self.model = ScriptedModel(self._choose, self._write)
        self._rounds: Counter[tuple[str, str]] = Counter()

    def _choose(self, prompt: str, options: Sequence[str]) -> Any:
        if "Claim: N/A" in prompt or "claim: N/A" in prompt:
            return [-1.0] * len(options)
        if prompt.startswith("<system>You read an explanation"):
            return f" {self.side}"
        if prompt.startswith("<system>You bring the verdicts"):
            return f" {self.whole(prompt)}"
        speaker, line = speaker_of(prompt), _line(prompt)
        key = (speaker, _statement(prompt))
        if line == ("Evidence" if speaker == "mediator" else "Information"):
            self._rounds[key] += 1
        view = self._view(speaker, prompt, self._rounds[key])
        if view.fails and view.fails == line:
            return ModelError(f"{speaker} is not to be reached.")
        if line == "Verdict" and view.chances:
            return list(view.chances)
        return _option(line, view)

    def _write(self, prompt: str, schema: Any) -> Any:
        if prompt.startswith(("<system>You split", "<system>You prepare")):
            return self.split
        if re.match(r"<system>You are [^\n]*? in a debate about a claim\. Ask", prompt):
            return self.question
        if re.match(r"<system>You are [^\n]*?, a fact-checker, and answer", prompt):
            return self.reply(prompt) if callable(self.reply) else self.reply
        speaker, line = speaker_of(prompt), _line(prompt)
        view = self._view(speaker, prompt, self._rounds[speaker, _statement(prompt)])
        if view.fails and view.fails == line:
            return ModelError(f"{speaker} is not to be reached.")
        # An advocate cites its first passage and the mediator whatever they cite: nothing else supports a verdict.
        numbers = [number for number in re.findall(r"\[(\d)\]", prompt.partition("<user>")[2]) if speaker]
        cited = dict.fromkeys(numbers if speaker == "mediator" else numbers[:1])
        return view.says or f"{speaker} finds it {view.verdict}{''.join(f' [{number}]' for number in cited)}."

    def _view(self, speaker: str, prompt: str, number: int) -> View:
        plan = self.plans.get(speaker, [View()])
        found = plan(prompt) if callable(plan) else plan[min(max(number, 1), len(plan)) - 1]
        return View(found) if isinstance(found, str) else found

    def prompts_of(self, speaker: str, line: str) -> list[str]:
        """Prompts, content-free ones left out, at which somebody was asked for a line, in order."""
        every = [prompt for prompt, _ in self.model.options] + self.model.texts
        return [
            prompt
            for prompt in every
            if "Claim: N/A" not in prompt and _line(prompt) == line and speaker_of(prompt) == speaker
        ]


def speaker_of(prompt: str) -> str:
    """Whose assessment a prompt asks for; empty for other prompts."""
    if prompt.startswith("<system>You are the mediator"):
        return "mediator"
    match = re.match(r"<system>You are ([^\n]*?), a fact-checker with", prompt)
    return match[1] if match else ""


def _line(prompt: str) -> str:
    return prompt.rpartition("<answer>")[2].rpartition("\n")[2].partition(":")[0]


def _statement(prompt: str) -> str:
    return re.findall(r"^Claim: (.*)$", prompt, re.MULTILINE)[-1]


def _option(line: str, view: View) -> str:
    return {
        "Information": " enough" if view.informed else " not enough",
        "The claim is": _PLACEMENT_OPTIONS[view.placement],
        "Evidence": f" {view.evidence}; agreement: {view.agreement}; confidence: {view.confidence}",
        "Likelihood": f" {view.likelihood}",
        "Verdict": f" {view.verdict}",
        "Next": " ask follow-up questions" if view.goes_on else " close the debate",
    }[line]


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


def hold(
    script: Script, *advocates: AdvocateSettings, claim: str = SUN, decide: Any = "mediator", **settings: Any
) -> Held:
    """Hold a debate; the mediator's own model is the script, too."""
    known: dict[str, Any] = {
        "model": "local:scripted",
        "scale": "climate-feedback",
        "split": "whole",
        "check_claims": False,
        "profile": SCORED,
    }
    chosen = DebateSettings(advocates, MediatorSettings(decide=decide), **{**known, **settings})
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


SCORED = ProfileSettings("small", brief=False)
"""A small model that is asked by scores, with prompts that state every rule and say who is asked."""


def among(settings: AdvocateSettings, **changes: Any) -> AdvocateSettings:
    return replace(settings, **changes)
