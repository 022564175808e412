"""Whole debates in their other forms: several models and collections, plain advocates, entailment."""

from climassay.factcheck import DebateResources, DebateSettings, MediatorSettings, make_claim
from climassay.factcheck.checking import set_up_debate
from climassay.factcheck.debate.batcher import RequestBatcher
from climassay.factcheck.debate.requests import EntailmentRequest
from climassay.factcheck.debate.rounds import debate
from debate_parts import drive_batches
from debate_tables import (
    ICE,
    PHYSICAL,
    PLAIN,
    SUN,
    UNGRADED,
    Script,
    View,
    among,
    collection,
    encoder,
    held,
    hold,
    speaker_of,
)


def test_every_participant_asks_its_own_model():
    scripts = {name: Script({"Physical": ["incorrect"], "Ice": ["correct"]}) for name in ("a", "b", "c")}
    settings = DebateSettings(
        (among(PHYSICAL, model="local:a"), among(ICE, model="local:b")),
        MediatorSettings(model="local:c"),
        model="local:a",
        profile=UNGRADED,
        scale="climate-feedback",
        split="whole",
        rounds=2,
    )
    models = {f"local:{name}": script.model for name, script in scripts.items()}
    company = DebateResources(models, {name: collection(name) for name in ("physical", "ice")}, encoder=encoder())
    transcript = held(scripts["a"], settings, company, SUN).transcript
    heard = {name: {speaker_of(prompt) for prompt in script.model.texts} for name, script in scripts.items()}
    assert heard == {"a": {"Physical"}, "b": {"Ice"}, "c": {"mediator"}}
    assert [one.model for one in transcript.advocates] == ["local:a", "local:b"]
    assert transcript.mediator == "expert, local:c"


def test_a_plain_advocate_judges_without_passages_and_all_it_says_is_in_house():
    found = hold(Script({"Model": [View(says="It is well known [1].")]}), PLAIN)
    [opinion] = found.transcript.rounds[0].opinions
    assert (opinion.retrieved, opinion.removed_citations) == ((), 1)
    assert [(one.text, one.citations, one.in_house) for one in opinion.explanation] == [("It is well known.", (), True)]
    assert found.transcript.sources == ()
    assert opinion.verdict == "incorrect"
    # Its view is shown, but is not a verdict that evidence bears.
    verdict = found.transcript.verdict
    assert (verdict.outcome, verdict.withheld, verdict.levels) == ("not enough information", "incorrect", None)


def answered(settings, script, give):
    """A debate whose entailment is answered by ``give``."""
    company = DebateResources({"local:scripted": script.model}, {"physical": collection("physical")}, encoder=encoder())
    exchange = RequestBatcher(company.models, company.collections)
    other = EntailmentRequest

    def answers(asks):
        known = iter(exchange.answer([ask for ask in asks if not isinstance(ask, other)]))
        return [give(ask) if isinstance(ask, other) else next(known) for ask in asks]

    return drive_batches(debate(make_claim(SUN), set_up_debate(settings, company)), answers)[0]


def test_entailment_is_measured_for_every_citation_of_the_verdict_and_the_last_opinions():
    script = Script(
        {"Physical": [View(says="One thing [1]. Another [1, 2].")], "mediator": [View(says="So it is [2].")]}
    )
    settings = DebateSettings(
        (PHYSICAL,), model="local:scripted", scale="climate-feedback", profile=UNGRADED, split="whole", entailment=True
    )
    asked = []

    def give(ask):
        asked.append((ask.premise[:12], ask.statement))
        return len(asked) / 10

    transcript = answered(settings, script, give)
    assert [one.entailment for one in transcript.verdict.explanation] == [(0.1,)]
    assert [one.entailment for one in transcript.rounds[-1].opinions[0].explanation] == [(0.2,), (0.3, 0.4)]
    texts = {source.number: source.passage.text[:12] for source in transcript.sources}
    assert asked == [
        (texts[2], "So it is."), (texts[1], "One thing."), (texts[1], "Another."), (texts[2], "Another."),
    ]  # fmt: skip
