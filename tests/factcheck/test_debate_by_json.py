"""Whole debates of strong models: one JSON answer an advocate and round, quotations that hold, few calls in a row."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from climassay.factcheck import DebateResources, DebateSettings, factcheck_page, make_claim
from climassay.factcheck.checking import set_up_debate
from climassay.factcheck.debate import batcher, evidence
from climassay.factcheck.debate.batcher import RequestBatcher, search_all
from climassay.factcheck.debate.context import is_likelihood_supported
from climassay.factcheck.debate.requests import TextRequest
from climassay.factcheck.debate.rounds import add_follow_up_passages, debate
from climassay.factcheck.transcript import Activity
from debate_parts import drive_batches
from debate_tables import (
    ICE,
    PHYSICAL,
    SUN,
    among,
    collection,
    encoder,
    held,
    make_collection,
    speaker_of,
)
from scripted_model import ScriptedModel

MERE = "Carbon dioxide makes up a mere"
"""The beginning of a passage that lies before who has the pamphlet."""
NEAR = [
    "Carbon dioxide makes up a mere 0.04 per cent of the atmosphere, four molecules in every te",
    "The sun delivers practically all the energy that the Earth receives, so it is only common",
]
"""Queries that find one passage of the pamphlet each."""
ON_SUBJECT = {"Carbon": 1, "The sun": 1, "The record": 1}
"""Grades of the pamphlet's passages, by how they begin."""
FORCING = "From 1750 to 2019 the effective forcing by CO2"
"""The beginning of a passage that lies before Physical and Ice."""


def number_of(prompt, beginning):
    """Of the passage in a prompt that begins so."""
    match = re.search(rf"^\[(\d+)\] [^\n]*\n{re.escape(beginning)}", prompt, re.MULTILINE)
    return int(match[1]) if match else 1


def quoting(prompt, text=FORCING, side="against"):
    return {"passage": number_of(prompt, FORCING), "quotation": text, "side": side}


class TooLong(RuntimeError):
    """A server's refusal, which states its window in tokens."""

    window = 2650


class JsonSpeaker:
    """Answers each interview under its schema as its plan says: changes by round, or a function of the prompt."""

    def __init__(self, statements=(), grades=None, **plans):
        self.plans, self.rounds, self.statements, self.grades = plans, {}, statements, grades
        self.model = ScriptedModel(write=self._write, name="openai:scripted")

    def _write(self, prompt, schema):
        if prompt.startswith("<system>You prepare"):
            parts = [{"quotation": one, "statement": one, "queries": ["forcing"]} for one in self.statements]
            return json.dumps({"reason": "", "kind": "checkable", "parts": parts})
        if prompt.startswith("<system>You sort"):
            count = len(re.findall(r"^Passage \d+", prompt, re.MULTILINE))
            if isinstance(self.grades, Exception):
                return self.grades
            if self.grades is not None:
                texts = re.findall(r"^Passage (\d+) [^\n]*\n(.*)", prompt, re.MULTILINE)
                chosen = [(int(number), grade) for number, text in texts for beginning, grade in self.grades.items()
                          if text.startswith(beginning)]  # fmt: skip
                return json.dumps({"grades": [{"passage": number, "grade": grade} for number, grade in chosen]})
            entry = schema["properties"]["grades"]["items"]["properties"]
            every = {"statements": [], "grade": 2}
            grades = [{**{k: v for k, v in every.items() if k in entry}, "passage": n + 1} for n in range(count)]
            return json.dumps({"grades": grades})
        name = speaker_of(prompt)
        self.rounds[name] = number = self.rounds.get(name, 0) + 1
        plan = self.plans.get(name, [{}])
        changes = plan[min(number, len(plan)) - 1]
        changes = changes(prompt) if callable(changes) else changes
        if isinstance(changes, Exception):
            self.model.window = getattr(changes, "window", self.model.window)
            return changes
        return json.dumps(self._filled(schema, {**self._usual(name), **changes}))

    def _usual(self, name):
        return {
            "quotations": [], "reasoning": f"{name} weighs it.", "verdict": "incorrect", "evidence": "medium",
            "agreement": "medium", "confidence": "medium", "likelihood": "not quantified", "placement": "outlier",
            "explanation": f"{name} says so [1] [2] [3] [4] [5].", "questions": [],
        }  # fmt: skip

    def _filled(self, schema, known):
        values = {}
        for field, kind in schema["properties"].items():
            if field in ("statements", "replies"):
                given = known.get(field, {})
                values[field] = {
                    key: self._filled(part, {**known, **given.get(key, {})})
                    if part["type"] == "object"
                    else given.get(key, "The change was close to zero [1] [2].")
                    for key, part in kind["properties"].items()
                }
            else:
                values[field] = known[field]
            if field == "questions":
                values[field] = [{"queries": [], **one} for one in values[field]]
            if field == "quotations" and "statements" in kind["items"]["properties"]:
                values[field] = [{"statements": [], **one} for one in values[field]]
        return values


def by_json(*advocates, claim=SUN, statements=(), grades=None, shelves=None, window=None, **plans):
    known = {"split": "whole", "rounds": 3, "scale": "climate-feedback"}
    given = {name: plans.pop(name) for name in (*known, "context_prefix") if name in plans}
    speaker = JsonSpeaker(statements, grades, **plans)
    settings = DebateSettings(advocates, model="openai:scripted", check_claims=False, **{**known, **given})
    speaker.model.window = window
    names = dict.fromkeys(name for one in advocates for name in one.collections)
    collections = {name: (shelves or {}).get(name) or collection(name) for name in names}
    company = DebateResources({"openai:scripted": speaker.model}, collections, encoder=encoder())
    return held(speaker, settings, company, claim)


def test_a_debate_takes_one_request_an_opinion_and_replies_come_with_the_second_view():
    question = {"to": "Ice", "question": "Which record shows it?"}
    found = by_json(
        PHYSICAL,
        ICE,
        Physical=[{}],
        Ice=[{"verdict": "correct"}, {"verdict": "inaccurate", "replies": {"1": "None does [4]."}}],
        mediator=[{"questions": [question]}, {}],
    )
    assert found.reasons == ["contrast", "close verdicts"]
    doing = [one for one in found.events if isinstance(one, Activity) and one.participant == "Ice"]
    told = ["searching", "judging", "checking quotations", "searching", "judging", "checking quotations"]
    assert [(one.doing, one.round) for one in doing] == list(zip(told, [1, 1, 1, 2, 2, 2], strict=True))
    [asked] = found.transcript.rounds[1].follow_ups
    assert (asked.asker, asked.to, asked.question, asked.origin) == (
        "mediator", "Ice", "Which record shows it?", "model",
    )  # fmt: skip
    assert [one.text for one in asked.reply] == ["None does."]
    assert found.script.rounds == {"Physical": 2, "Ice": 2, "mediator": 2}
    prompts = found.script.model.texts
    assert [speaker_of(prompt) for prompt in prompts].count("") == 1, "only the passages are graded, once"
    # The side of an explanation is not asked for, nor is anything weighed.
    assert found.script.model.options == []
    assert found.transcript.verdict.label == "incorrect"
    last = next(prompt for prompt in reversed(prompts) if speaker_of(prompt) == "mediator")
    assert "Reply of Ice: None does" in last


def test_an_advocate_keeps_its_passages_whatever_it_is_asked():
    before = [SimpleNamespace(number=number) for number in range(8)]
    kept = before
    for question in (10, 20, 30):
        new = [SimpleNamespace(number=question + place) for place in range(8)]
        kept = add_follow_up_passages(new, kept, 8)
    assert {one.number for one in before} <= {one.number for one in kept}
    assert len(kept) == 8 + 3 * 4


def test_questions_that_advocates_ask_are_put_to_whom_they_name():
    found = by_json(
        PHYSICAL,
        ICE,
        Physical=[{"questions": [{"to": "Ice", "question": "Which record?"}, {"to": "Nobody", "question": "Why?"}]}],
        Ice=[{"verdict": "correct"}],
        mediator=[{}],
    )
    asked = {(one.asker, one.to) for one in found.transcript.rounds[1].follow_ups}
    assert asked == {("mediator", "Physical"), ("mediator", "Ice"), ("Physical", "Ice")}


QUESTION = [{"to": "Ice", "question": "Which record shows it?"}]


@pytest.mark.parametrize(("questions", "reasons"), [
    ([], ["contrast", "mediator"]),
    (QUESTION, ["contrast", "contrast", "round limit"]),
])  # fmt: skip
def test_the_mediator_goes_on_as_long_as_it_has_questions(questions, reasons):
    changing = [{"verdict": verdict} for verdict in ("correct", "accurate", "mostly accurate")]
    found = by_json(PHYSICAL, ICE, Physical=[{}], Ice=changing, mediator=[{"questions": questions}])
    assert found.reasons == reasons


def test_a_quotation_that_is_not_in_its_passage_is_removed_and_counted_and_the_mediator_sees_the_others():
    made_up = {"passage": 1, "quotation": "The Sun explains nothing at all.", "side": "against"}
    found = by_json(
        PHYSICAL,
        Physical=[lambda prompt: {"quotations": [quoting(prompt), made_up, {**made_up, "passage": 99}]}],
        mediator=[{"quotations": [{"passage": 1, "quotation": FORCING, "side": "against"}]}],
    )
    [opinion] = found.transcript.rounds[0].opinions
    assert [(one.text, one.side) for one in opinion.quotations] == [(FORCING, "against")]
    assert opinion.removed_quotations == 2
    mediator = next(prompt for prompt in found.script.model.texts if speaker_of(prompt) == "mediator")
    number = opinion.quotations[0].passage
    assert f'against, [{number}]: "{FORCING}"' in mediator
    assert made_up["quotation"] not in mediator
    verdict = found.transcript.verdict
    assert verdict.removed_quotations + len(verdict.quotations) == 1


def test_an_advocate_sees_the_first_passages_that_fit_its_models_window_and_the_others_are_counted():
    """Servers of small models often have windows of 4,096 tokens."""
    wide, narrow = by_json(PHYSICAL, Physical=[{}]), by_json(PHYSICAL, Physical=[{}], window=TooLong.window)
    [before], [after] = (
        [prompt for prompt in found.script.model.texts if speaker_of(prompt) == "Physical"] for found in (wide, narrow)
    )
    assert len(after) < len(before)
    retrieved, fitting = (found.transcript.rounds[0].opinions[0].retrieved for found in (wide, narrow))
    assert fitting == retrieved[: len(fitting)]
    assert 1 <= len(fitting) < len(retrieved)
    n_left_out = len(retrieved) - len(fitting)
    assert [warning for warning in narrow.transcript.warnings if f"{n_left_out} did not fit" in warning]
    assert not [warning for warning in wide.transcript.warnings if "did not fit" in warning]


def test_an_opinion_is_asked_for_again_with_fewer_passages_if_a_server_states_its_window():
    found = by_json(PHYSICAL, Physical=[TooLong("It exceeds the context size (2650 tokens)."), {}])
    first, second = (prompt for prompt in found.script.model.texts if speaker_of(prompt) == "Physical")
    assert len(second) < len(first)
    assert found.transcript.verdict.outcome == "verdict"
    assert found.transcript.failures == 1


def test_a_quotation_with_the_number_of_another_passage_is_moved_to_its_own():
    """Qwen2.5-Coder 1.5B quoted whole sentences correctly and misnumbered them by one."""
    wrong = {"quotations": [{"passage": 2, "quotation": FORCING, "side": "against"}], "explanation": "It is not."}
    found = by_json(PHYSICAL, Physical=[wrong], mediator=[wrong])
    [opinion] = found.transcript.rounds[0].opinions
    sources = {source.number: source.passage.text for source in found.transcript.sources}
    for quotations, removed in (
        (opinion.quotations, opinion.removed_quotations),
        (found.transcript.verdict.quotations, found.transcript.verdict.removed_quotations),
    ):
        assert removed == 0
        assert [FORCING in sources[quotation.passage] for quotation in quotations] == [True]
    assert found.transcript.verdict.outcome == "verdict"


@pytest.mark.parametrize(
    ("side", "label", "explanation", "is_given"),
    [
        ("for", "correct", "It is so.", True),
        ("against", "incorrect", "It is not.", True),
        ("against", "correct", "It is so.", False),
        ("for", "incorrect", "It is not.", False),
        ("for", "incorrect", "It is not [{}].", True),
        ("for", "lacks context", "It is not all.", True),
        (None, "inaccurate", "From 1750 to 2019 the effective forcing by CO2 rose.", False),
    ],
)
def test_a_verdict_needs_a_quotation_for_its_side_or_a_citation_by_the_model(side, label, explanation, is_given):
    """Qwen2.5-Coder 1.5B gave verdicts that nothing supported but similar words."""

    def answer(prompt):
        match = re.search(rf'\[(\d+)\]: "{FORCING}"', prompt)
        number = int(match[1]) if match else number_of(prompt, FORCING)
        quotations = [{"passage": number, "quotation": FORCING, "side": side}] if side else []
        return {"quotations": quotations, "verdict": label, "explanation": explanation.format(number)}

    found = by_json(PHYSICAL, Physical=[answer], mediator=[answer])
    [opinion] = found.transcript.rounds[0].opinions
    assert (opinion.verdict == label) == is_given
    assert (opinion.withheld == label) != is_given
    assert (found.transcript.verdict.outcome == "verdict") == is_given


def test_an_advocate_without_evidence_has_no_verdict_and_the_mediator_hears_why():
    bare = {"explanation": "Everybody knows it.", "verdict": "correct"}
    found = by_json(PHYSICAL, ICE, Physical=[{}], Ice=[bare], mediator=[{}])
    ice = found.transcript.rounds[0].opinions[1]
    assert (ice.verdict, ice.withheld, ice.informed) == ("not enough information", "correct", False)
    assert [one.text for one in ice.explanation] == ["Everybody knows it."]
    assert found.reasons == ["one informed advocate"]
    mediator = next(prompt for prompt in found.script.model.texts if speaker_of(prompt) == "mediator")
    assert re.search(r"^Ice \(.*gives no verdict: nothing that it quoted or cited bears its verdict", mediator, re.M)


@pytest.mark.parametrize(
    ("changes", "withheld"),
    [({"explanation": "Everybody knows it."}, "incorrect"), ({"verdict": "not enough information"}, None)],
    ids=["nothing bears it", "the mediator abstains"],
)
def test_a_verdict_that_nothing_bears_is_not_given_and_stays_visible(changes, withheld):
    found = by_json(PHYSICAL, ICE, mediator=[changes])
    verdict = found.transcript.verdict
    assert (verdict.outcome, verdict.label) == ("not enough information", "not enough information")
    assert verdict.withheld == withheld
    assert verdict.explanation
    assert verdict.caveats


RAIN = "Heavy rain will become more intense in a warmer climate."
MONSOON = "It is very likely that heavy rainfall intensifies in a warmer climate."
FLOODS = "Rivers have flooded cities. It is extremely likely that the sea rises further."


@pytest.fixture(scope="module")
def rain(tmp_path_factory):
    """One passage with a finding about rain, and one about the sea."""
    text = f"{MONSOON} {FLOODS} Heavy rain is unlikely to become less intense."
    return {"physical": make_collection(tmp_path_factory.mktemp("rain"), "physical", ("Rain", text))}


SURE = {"evidence": "robust", "agreement": "high", "confidence": "very high", "explanation": "It does [1]."}


@pytest.mark.parametrize(
    ("verdict", "likelihood", "quotation", "side", "kept"),
    [
        ("correct", "very likely", "heavy rainfall intensifies", "for", True),
        ("correct", "very likely", "heavy rainfall intensifies ... flooded cities", "for", True),
        # The contrary is said to be unlikely.
        ("correct", "likely", "unlikely to become less intense", "for", True),
        # The term stands in the passage, but in what is said of the sea.
        ("correct", "extremely likely", "heavy rainfall intensifies", "for", False),
        ("correct", "very likely", "Rivers have flooded cities.", "for", False),
        # What speaks for the other side bears no likelihood of this one.
        ("correct", "very likely", "heavy rainfall intensifies", "against", False),
        ("incorrect", "very unlikely", "heavy rainfall intensifies", "for", False),
        ("incorrect", "very unlikely", "heavy rainfall intensifies", "against", True),
        ("incorrect", "very likely", "heavy rainfall intensifies", "against", False),
        # Cited and not quoted: the sentence nearest to the claim.
        ("correct", "very likely", None, None, True),
        ("correct", "extremely likely", None, None, False),
    ],
)
def test_a_likelihood_stands_in_the_sentence_that_bears_the_verdict(verdict, likelihood, quotation, side, kept, rain):
    quotations = [{"passage": 1, "quotation": quotation, "side": side}] if quotation else []
    said = {**SURE, "verdict": verdict, "likelihood": likelihood, "quotations": quotations}
    found = by_json(PHYSICAL, claim=RAIN, shelves=rain, Physical=[said], mediator=[said]).transcript
    for one in (found.rounds[0].opinions[0], found.verdict):
        assert one.removed_quotations == 0
        assert one.levels.likelihood == (likelihood if kept else None)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("It is very likely that it warms.", True),
        ("Warming is\nvery likely.", True),
        ("The forcing is -1.1 W m⁻² (very likely −1.7 to −0.4 W m⁻²).", False),
        ("The very likely range is 2 to 5 °C.", False),
        ("It is likely that it warms.", False),
        ("It is extremely likely that it warms.", False),
        ("It is not very likely that it warms.", False),
    ],
)
def test_a_term_of_likelihood_is_read_whole_and_as_that_of_a_finding(text, stated):
    assert is_likelihood_supported("very likely", True, [text]) == stated
    assert is_likelihood_supported("very unlikely", False, [text]) == stated
    assert not is_likelihood_supported("very likely", False, [text])


def prompt_of(found, name, place=0):
    """A participant's prompt, as it was asked in a round."""
    return [prompt for prompt in found.script.model.texts if speaker_of(prompt) == name][place]


def test_what_an_advocate_without_a_view_quotes_lies_before_the_mediator_and_may_be_quoted():
    nothing = {"verdict": "not enough information", "explanation": "It does not settle it."}

    def abstains(prompt):
        return {**nothing, "quotations": [{"passage": number_of(prompt, MERE), "quotation": MERE, "side": "for"}]}

    def takes_it(prompt):
        number = int(re.search(rf'for, \[(\d+)\]: "{MERE}"', prompt)[1])
        quotation = {"passage": number, "quotation": MERE, "side": "for"}
        return {"quotations": [quotation], "explanation": "So it is.", "verdict": "lacks context"}

    other = among(ICE, collections=("pamphlet",))
    found = by_json(PHYSICAL, other, Physical=[{}], Ice=[abstains], mediator=[takes_it])
    [mine] = found.transcript.rounds[0].opinions[1].quotations
    told = prompt_of(found, "mediator")
    assert re.search(rf"^\[{mine.passage}\] Common Contrarian Claims", told, re.MULTILINE)
    assert [one.passage for one in found.transcript.verdict.quotations] == [mine.passage]
    assert found.transcript.verdict.label == "lacks context"


def test_the_mediator_may_ask_an_advocate_without_a_view_even_if_only_one_has_one():
    nothing = {"verdict": "not enough information"}
    found = by_json(
        PHYSICAL, ICE, Ice=[nothing, {"verdict": "incorrect"}], mediator=[{"questions": QUESTION}, {"questions": []}]
    )
    assert found.reasons == ["uncertain", "close verdicts"]
    [asked] = found.transcript.rounds[1].follow_ups
    assert (asked.to, bool(asked.reply)) == ("Ice", True)
    assert by_json(PHYSICAL, ICE, Ice=[nothing], mediator=[{}]).reasons == ["one informed advocate"]


def test_an_advocate_whose_source_only_has_the_subject_is_not_asked_and_the_mediator_hears_why():
    found = by_json(PHYSICAL, among(ICE, collections=("pamphlet",)), grades=ON_SUBJECT)
    ice = found.transcript.rounds[0].opinions[1]
    assert (ice.verdict, ice.informed, ice.unasked) == ("not enough information", False, True)
    assert ice.retrieved, "what was found is told"
    assert found.script.rounds == {"Physical": 1, "mediator": 1}
    why = r"^Ice \(.*gives no verdict: nothing in its source bears on the claim\."
    assert re.search(why, prompt_of(found, "mediator"), re.MULTILINE)
    assert not found.transcript.rounds[0].opinions[0].unasked


def test_a_question_is_searched_with_its_queries_and_may_bring_an_unasked_advocate_to_speak(monkeypatch):
    searched = []

    def search(asks, *others):
        searched.extend(ask.query for ask in asks)
        return search_all(asks, *others)

    monkeypatch.setattr(batcher, "search_all", search)
    # One passage of each collection is graded; that of the pamphlet does not bear.
    monkeypatch.setattr(evidence, "MAX_CANDIDATES", 2)
    found = by_json(
        PHYSICAL,
        among(ICE, collections=("pamphlet",)),
        grades={"From": 2, "The climatic": 2, "The Sun": 2, **ON_SUBJECT},
        Physical=[{}],
        mediator=[{"questions": [{**QUESTION[0], "queries": NEAR}]}, {}],
    )
    first, second = [one.opinions[1] for one in found.transcript.rounds]
    assert (first.unasked, second.unasked, second.verdict) == (True, False, "incorrect")
    assert set(second.retrieved) - set(first.retrieved)
    [asked] = found.transcript.rounds[1].follow_ups
    assert set(asked.queries) <= set(searched)
    assert asked.queries == tuple(NEAR)


@pytest.mark.parametrize("error", ["No luck.", None])
def test_where_the_grader_fails_or_passes_all_over_everybody_is_asked(error):
    found = by_json(PHYSICAL, ICE, grades=RuntimeError(error) if error else {})
    assert found.script.rounds == {"Physical": 1, "Ice": 1, "mediator": 1}
    [warning] = found.transcript.warnings
    assert (error or "grades none").rstrip(".") in warning


TWO = "The Sun has caused the warming. Carbon dioxide does not warm the Earth."
PARTS = ("The Sun has caused the warming.", "Carbon dioxide does not warm the Earth.")


def waves(claim, statements, rounds, **plans):
    """How many calls of models follow one another in a debate, and its transcript."""
    speaker = JsonSpeaker(statements, **plans)
    third = replace(PHYSICAL, name="Third", weight=0.6)
    settings = DebateSettings((PHYSICAL, ICE, third), model="openai:scripted", rounds=rounds, scale="climate-feedback")
    shelves = {name: collection(name) for name in ("physical", "ice")}
    company = DebateResources({"openai:scripted": speaker.model}, shelves, encoder=encoder())
    exchange = RequestBatcher(company.models, shelves)
    transcript, batches = drive_batches(debate(make_claim(claim), set_up_debate(settings, company)), exchange.answer)
    return sum(any(isinstance(ask, TextRequest) for ask in asks) for asks in batches), transcript


@pytest.mark.parametrize(("claim", "statements"), [(SUN, (SUN,)), (TWO, PARTS)], ids=["one", "two"])
def test_a_check_of_one_round_takes_at_most_four_calls_in_sequence_and_two_more_a_further_round(claim, statements):
    count, transcript = waves(claim, statements, 1)
    assert count <= 4
    assert transcript.verdict.outcome == "verdict"
    contrast = [{"verdict": verdict} for verdict in ("correct", "accurate", "mostly accurate")]
    count, transcript = waves(claim, statements, 3, Ice=contrast, mediator=[{"questions": QUESTION}])
    assert len(transcript.rounds) == 3
    assert count <= 4 + 2 * 2


def test_several_statements_are_judged_with_the_whole_in_one_answer():
    judged = {"1": {"verdict": "incorrect"}, "2": {"verdict": "not enough information"}}
    _, transcript = waves(TWO, PARTS, 1, Physical=[lambda prompt: {
        "statements": {key: {**one, "quotations": [quoting(prompt)] if key == "1" else []}
                       for key, one in judged.items()},
        "explanation": "It is wrong.",
    }])  # fmt: skip
    whole = transcript.rounds[0].opinions[0]
    parts = [one for one in transcript.rounds[0].parts if one.advocate == "Physical"]
    assert [(one.subclaim, one.verdict) for one in parts] == [(1, "incorrect"), (2, "not enough information")]
    # What bears a statement bears the whole.
    assert whole.verdict == "incorrect"
    assert [one.text for one in whole.quotations] == [FORCING]
    # ... and stays tied to it.
    assert [one.statements for one in (*whole.quotations, *parts[0].quotations)] == [(1,), (1,)]


def test_the_mediator_sees_on_which_statement_a_quotation_bears_and_says_so_itself():
    def both(prompt):
        return {"statements": {key: {"quotations": [quoting(prompt)], "reasoning": f"On {key}."} for key in "12"}}

    def on_second(prompt):
        number = int(re.search(r"against statement 1 and 2, \[(\d+)\]", prompt)[1])
        return {"quotations": [{**quoting(prompt), "passage": number, "statements": [2]}], "explanation": "It is."}

    found = by_json(PHYSICAL, claim=TWO, statements=PARTS, split="model", Physical=[both], mediator=[on_second])
    told = prompt_of(found, "mediator")
    assert "on statement 2: incorrect; reasoning: On 2." in told
    assert all(f"\n{number}. {text}\n" in told for number, text in enumerate(PARTS, start=1))
    assert [one.statements for one in found.transcript.rounds[0].opinions[0].quotations] == [(1, 2)]
    [quotation] = found.transcript.verdict.quotations
    assert quotation.statements == (2,)
    assert "on statement 2" in factcheck_page(found.transcript)


def test_a_failed_call_is_an_opinion_with_its_reason():
    found = by_json(PHYSICAL, ICE, Physical=[RuntimeError("No luck.")], Ice=[{}])
    physical = found.transcript.rounds[0].opinions[0]
    assert (physical.verdict, physical.error) == (None, "No luck.")
    assert found.transcript.verdict.outcome == "verdict"
    assert found.transcript.failures == 1
