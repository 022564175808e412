"""Finished fact-checks for tests: built by hand, and drawn at random."""

from dataclasses import fields, replace
from functools import cache
from types import SimpleNamespace

from hypothesis import strategies as st

from climassay.corpus import Passage
from climassay.factcheck import (
    AdvocateOpinion,
    Claim,
    FollowUp,
    Levels,
    MediatorDecision,
    PassageCitation,
    Round,
    Subclaim,
    Transcript,
    Verdict,
)
from climassay.factcheck.scales import CLIMATE_FEEDBACK
from climassay.factcheck.transcript import AdvocateProfile, Quotation, Stability
from climassay.grounding import AnswerSentence
from climassay.models import Usage

SURE = Levels("robust", "high", "very high", "very likely")
UNSURE = Levels("limited", "medium", "low")


def passage(number, text="", **changes):
    known = {
        "document_id": "d",
        "document": "Physical climate",
        "source": "physical.pdf",
        "headings": ("Energy", "Greenhouse effect"),
        "first_page": 10 + number,
    }
    return Passage(f"d-{number}", text or f"Text of passage {number}.", position=number, **{**known, **changes})


def source(number, advocates=("IPCC",), text="", **changes):
    return PassageCitation(number, passage(number, text, **changes), "ar6", 0.5, advocates)


def sentence(text, *citations, in_house=False, foreign=()):
    origin = "model" if citations else "none"
    return AnswerSentence(text, citations, origin, in_house, 0.7, foreign)


def opinion(advocate, verdict, round_number=1, *, scale=CLIMATE_FEEDBACK, **changes):
    informed = verdict is not None and verdict != scale.nei
    known = {
        "levels": SURE if informed else None,
        "explanation": (sentence(f"{advocate} finds it {verdict}.", 1),) if informed else (),
        "retrieved": (1,),
    }
    return AdvocateOpinion(advocate, round_number, None, verdict, informed, **{**known, **changes})


def debate(*rounds, scale=CLIMATE_FEEDBACK, reason="close verdicts"):
    """Rounds from (verdicts by advocate, mediator's verdict) pairs; all but the last are open for a contrast."""
    held = []
    before = {}
    for number, (verdicts, decided) in enumerate(rounds, start=1):
        opinions = tuple(
            opinion(name, verdict, number, scale=scale, changed=name in before and before[name] != verdict)
            for name, verdict in verdicts.items()
        )
        last = number == len(rounds)
        informed = tuple(one.advocate for one in opinions if one.informed)
        decision = MediatorDecision(number, last, reason if last else "contrast", decided, SURE, informed=informed)
        asked = () if number == 1 else (FollowUp(number, "mediator", next(iter(verdicts)), "Why?"),)
        held.append(Round(number, asked, opinions, (), decision))
        before = verdicts
    return tuple(held)


def checked(text, *rounds, scale=CLIMATE_FEEDBACK, reason="close verdicts", **changes):
    """A finished fact-check of a claim."""
    label = rounds[-1][1]
    nei = label == scale.nei
    verdict = Verdict(
        "failed" if label is None else "not enough information" if nei else "verdict",
        label,
        text,
        None if nei or label is None else changes.pop("levels", SURE),
        changes.pop("explanation", () if nei else (sentence(f"It is {label}.", 1),)),
    )
    known = {
        "advocates": tuple(
            AdvocateProfile(name, "collection", ("ar6",), "local:smollm2", "f" * 64, 1.0) for name in rounds[-1][0]
        ),
        "rounds": debate(*rounds, scale=scale, reason=reason),
        "verdict": verdict,
        "sources": (source(1, tuple(rounds[-1][0])), source(2)),
        "usage": Usage(100, 10, 5),
    }
    whole = Subclaim(1, text, 0, len(text))
    start = Transcript(Claim(text), scale.name, mediator="expert, local:smollm2", subclaims=(whole,), **known)
    return replace(start, **changes)


def unchecked(text, outcome, *, error=None, scale=CLIMATE_FEEDBACK):
    """A fact-check that ended before the debate."""
    return Transcript(
        Claim(text),
        scale.name,
        (),
        "expert, local:smollm2",
        (),
        (),
        Verdict(outcome, None, text, error=error),
        (),
    )


def with_text_everywhere(record, text):
    """A record with a text in place of every free text that it holds; choices, names of scales and ids stay."""
    kept = {"id", "scale", "kind", "origin", "outcome", "reason", "split", "document_id", "label", "verdict", "round"}
    kept |= {"side", "evidence", "agreement", "confidence", "likelihood", "placement"}
    changed = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name in kept and not isinstance(value, Verdict):
            continue
        if isinstance(value, tuple):
            changed[field.name] = tuple(_replaced(entry, text) for entry in value)
        else:
            changed[field.name] = _replaced(value, text)
    return replace(record, **changed)


def _replaced(value, text):
    if isinstance(value, str):
        return text
    return with_text_everywhere(value, text) if hasattr(value, "__dataclass_fields__") else value


def full_transcript():
    """Two subclaims, three advocates, a follow-up round, warnings and removed citations: something of everything."""
    text = "The Sun warms the Earth, and CO2 does nothing since 1950."
    parts = (Subclaim(1, "The Sun warms the Earth.", 0, 23), Subclaim(2, "CO2 does nothing.", 29, len(text)))
    names = {"IPCC": "incorrect", "WMO": "lacks context", "Pamphlet": "correct"}
    first, second = debate((names, "incorrect"), ({**names, "WMO": "incorrect"}, "incorrect"), reason="mediator")
    asked = FollowUp(
        2,
        "mediator",
        "Pamphlet",
        "Which measurement shows that CO2 does nothing?",
        reply=(sentence("Plants like it.", 3),),
        retrieved=(3,),
    )
    on_parts = tuple(
        replace(opinion(name, verdict, 2), subclaim=part.number) for name, verdict in names.items() for part in parts
    )
    failed = replace(opinion("WMO", "incorrect", 2), asks=(replace(asked, asker="WMO", to="IPCC", reply=()),))
    doubtful = opinion(
        "Pamphlet",
        "correct",
        2,
        explanation=(sentence("It fell by 42 percent.", 3, foreign=("42",)), sentence("I know it.", in_house=True)),
        removed_citations=2,
        placement="outlier",
        draft="The pamphlet says so.",
        retrieved=(3, 4),
    )
    second = replace(
        second,
        follow_ups=(asked,),
        opinions=(replace(second.opinions[0], placement="consensus"), failed, doubtful),
        parts=on_parts,
        decision=replace(second.decision, spread=11, draft="Two sources of weight agree."),
    )
    verdict = Verdict(
        "verdict",
        "incorrect",
        "The Sun alone warms the Earth, and carbon dioxide has had no effect since 1950.",
        replace(SURE, likelihood="very unlikely"),
        (
            sentence("The Sun has not become brighter since 1950.", 1),
            replace(sentence("Carbon dioxide has.", 1, 2), origin="attributed"),
            sentence("That is common knowledge.", in_house=True),
        ),
        ("The advocates still differ: Pamphlet holds the claim for correct.",),
        removed_citations=1,
        quotations=(
            Quotation(1, "Solar irradiance has changed little.", "against"),
            Quotation(3, "The Sun drives the weather.", "for"),
        ),
        removed_quotations=1,
    )
    profiles = (
        AdvocateProfile("IPCC", "collection", ("ar6",), "local:smollm2", "f" * 64, 1.0),
        AdvocateProfile("WMO", "collection", ("wmo",), "local:smollm2", "f" * 64, 0.8),
        AdvocateProfile("Pamphlet", "adversarial", ("pamphlet",), "local:smollm2", "f" * 64, 0.2),
    )
    return Transcript(
        Claim(text, "A columnist, The Daily", "2023-04-28"),
        "climate-feedback",
        profiles,
        "neutral, local:smollm2",
        parts,
        (first, second),
        verdict,
        (
            source(1, ("IPCC", "WMO"), url="https://example.org/report?page=11", date="2021", licence="CC BY 4.0"),
            source(2, ("WMO",), report="State of the Climate", paragraph_ids=("A.1", "A.2")),
            source(3, ("Pamphlet",), document="A pamphlet"),
            source(4, ("Pamphlet",), "Nobody cited this."),
        ),
        True,
        "model",
        ("All evidence is older than 2023.",),
        1,
        Usage(12345, 678, 40, 0.0123),
        Stability(3, ("incorrect", "incorrect", "misleading"), 2 / 3),
        (("IPCC", "misleading"), ("WMO", "incorrect"), ("Pamphlet", None)),
    )


LABELS = st.sampled_from((*CLIMATE_FEEDBACK.labels, CLIMATE_FEEDBACK.nei, None))
TEXTS = st.text(max_size=12)


def _some(strategy, most=3):
    return st.lists(strategy, max_size=most).map(tuple)


def _drawn(kind, **fixed):
    """A record whose fields are drawn by their annotations, except for those given."""
    return st.builds(kind, **{name: ... for name in _names(kind) if name not in fixed}, **fixed)


@cache
def _parts(count):
    """Strategies of everything in a transcript of so many passages, made once: each looks up annotations."""
    passages = _drawn(Passage, text=TEXTS, headings=_some(TEXTS), paragraph_ids=_some(TEXTS))
    sources = [
        _drawn(PassageCitation, number=st.just(number), passage=passages, advocates=_some(TEXTS),
               cosine=st.none() | st.floats(0, 1))
        for number in range(1, count + 1)
    ]  # fmt: skip
    numbers = _some(st.integers(1, count)) if count else st.just(())
    shares = st.floats(0, 1)
    sentences = _some(
        _drawn(AnswerSentence, text=TEXTS, citations=numbers, support=shares, foreign_numbers=_some(TEXTS),
               entailment=_some(st.none() | shares)),
        2,
    )  # fmt: skip
    quoted = _some(_drawn(Quotation, passage=st.integers(1, count), text=TEXTS), 2) if count else st.just(())
    asked = _some(_drawn(FollowUp, reply=sentences, retrieved=numbers), 1)
    opinions = _some(
        _drawn(AdvocateOpinion, verdict=LABELS, levels=st.none() | _drawn(Levels),
               explanation=sentences, retrieved=numbers, asks=asked, quotations=quoted),
        2,
    )  # fmt: skip
    decision = _drawn(MediatorDecision, verdict=LABELS, informed=_some(TEXTS))
    return SimpleNamespace(
        sources=st.tuples(*sources),
        claim=_drawn(Claim, text=TEXTS),
        profiles=_some(_drawn(AdvocateProfile, collections=_some(TEXTS), weight=shares), 2),
        rounds=_some(_drawn(Round, follow_ups=asked, opinions=opinions, parts=opinions, decision=decision), 2),
        verdict=_drawn(Verdict, label=LABELS, explanation=sentences, caveats=_some(TEXTS),
                       quotations=quoted),
        usage=_drawn(Usage, cost=st.none() | st.floats(0, 1e6)),
        stability=st.none() | _drawn(Stability, labels=_some(LABELS), share=shares),
        texts=_some(TEXTS),
        without=_some(st.tuples(TEXTS, LABELS)),
    )  # fmt: skip


@st.composite
def transcripts(draw):
    """Any transcript whose citations name its passages and whose subclaims lie in its claim."""
    parts = _parts(draw(st.integers(0, 3)))
    sources, claim = draw(parts.sources), draw(parts.claim)
    ends = draw(_some(st.tuples(*[st.integers(0, len(claim.text))] * 2).map(sorted)))
    return Transcript(
        claim,
        "climate-feedback",
        draw(parts.profiles),
        draw(TEXTS),
        tuple(Subclaim(number, draw(TEXTS), *span) for number, span in enumerate(ends, start=1)),
        draw(parts.rounds),
        draw(parts.verdict),
        sources,
        draw(st.booleans()),
        draw(st.sampled_from(["model", "rules", "whole"])),
        draw(parts.texts),
        draw(st.integers(0, 9)),
        draw(parts.usage),
        draw(parts.stability),
        draw(parts.without),
    )


def _names(record):
    return {field.name for field in fields(record)}
