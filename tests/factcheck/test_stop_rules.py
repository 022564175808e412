"""Every reason for which a debate closes or goes on, in whole debates over real collections with scripted answers.

Leippold et al. (2024), figure 1 and listings 1 and 3.
"""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.factcheck import SCALES, AdvocateOpinion, FollowUp, MediatorDecision, Verdict
from climassay.factcheck.results.page import list_notices
from climassay.factcheck.scales import BINARY, CLIMATE_FEEDBACK, CLIMATE_FEVER
from climassay.factcheck.transcript import Activity, Retrieval
from debate_tables import ICE, NEI, PAMPHLET, PHYSICAL, PLAIN, UNSURE, Script, View, among, hold

LABELS = CLIMATE_FEEDBACK.labels


def debate(plans, *advocates, rounds=3, **options):
    given = {
        name: options.pop(name) for name in ("whole", "side", "question", "reply", "split_text") if name in options
    }
    if "split_text" in given:
        given["split"] = given.pop("split_text")
    return hold(Script(plans, **given), *(advocates or (PHYSICAL, ICE)), rounds=rounds, **options)


def decisions(held):
    return [(one.decision.reason, one.decision.closes) for one in held.transcript.rounds]


@pytest.mark.parametrize(
    ("verdicts", "spread"),
    [(("incorrect", "incorrect"), 0), (("incorrect", "inaccurate"), 1), (("accurate", "correct"), 1)],
)
def test_verdicts_within_one_step_close_the_debate_in_the_first_round(verdicts, spread):
    held = debate({"Physical": [verdicts[0]], "Ice": [verdicts[1]], "mediator": [verdicts[0]]})
    assert decisions(held) == [("close verdicts", True)]
    assert held.transcript.rounds[0].decision.spread == spread
    assert held.transcript.verdict.outcome == "verdict"
    assert held.transcript.verdict.label == verdicts[0]
    assert held.transcript.verdict.caveats == ()


@pytest.mark.parametrize(("scale", "rounds"), [("binary", 2), ("science-feedback", 1), ("climate-fever", 1)])
def test_the_two_sides_of_a_binary_scale_are_a_contrast_although_they_are_one_step_apart(scale, rounds):
    labels = SCALES[scale].labels
    plans = {"Physical": [labels[0]], "Ice": [labels[1]], "mediator": [labels[0]]}
    held = debate(plans, scale=scale)
    assert len(held.transcript.rounds) == rounds
    if scale == BINARY.name:
        assert held.reasons == ["contrast", "no change"]
        [caveat] = held.transcript.verdict.caveats
        assert caveat == "The advocates still differ: Physical says incorrect, Ice says correct."
    agreed = debate({**plans, "Ice": [labels[0]]}, scale=scale)
    assert agreed.reasons == ["close verdicts"]


def test_a_contrast_opens_a_round_in_which_everybody_sees_the_first_opinions_the_questions_and_the_replies():
    views = {
        "Physical": [View("incorrect", says="Irradiance hardly changed [1].")],
        "Ice": [View("correct", says="The forcing says so [4]."), "incorrect"],
        "Model": [View("inaccurate", says="It is widely known.")],
    }
    held = debate(views, PHYSICAL, ICE, PLAIN, reply="The change was close to zero [4].")
    assert held.reasons == ["contrast", "close verdicts"]
    [asked, _] = held.transcript.rounds[1].follow_ups
    assert (asked.asker, asked.round, asked.origin) == ("mediator", 2, "model")
    assert {one.to for one in held.transcript.rounds[1].follow_ups} == {"Physical", "Ice"}
    for name in views:
        first, second = held.script.prompts_of(name, "Information")
        assert "What the advocates said at first" not in first
        for words in (
            "- Physical: incorrect. Irradiance hardly changed [1].",
            "- Ice: correct. The forcing says so [4].",
            "- Model: inaccurate. It is widely known (In-house knowledge).",
            f"Question of mediator to Ice: {asked.question}",
            "Reply of Ice: The change was close to zero [4].",
        ):
            assert words in second
    third = held.script.prompts_of("mediator", "Evidence")[1]
    assert "Ice (authority medium; source: Principles of Physical Climate): incorrect" in third
    assert "Reply of Ice: The change was close to zero [4]." in third


def test_in_the_third_round_the_opinions_shown_are_still_the_first_ones_and_earlier_replies_are_not_forgotten():
    changing = [View("correct", says="At first."), View("accurate", says="Later."), View("incorrect", says="At last.")]
    questions = iter(f"What does the record number {number} say about it?" for number in range(9))
    script = Script({"Physical": ["incorrect"], "Ice": changing}, reply="As before [1].")
    script.model.write = lambda prompt, schema, write=script._write: (
        next(questions) if " Ask one short question" in prompt else write(prompt, schema)
    )
    held = hold(script, PHYSICAL, ICE, rounds=4)
    assert held.reasons == ["contrast", "contrast", "close verdicts"]
    third = script.prompts_of("Ice", "Information")[2]
    assert "- Ice: correct. At first (In-house knowledge)." in third
    assert "Later." not in third
    every = [one.question for round_ in held.transcript.rounds for one in round_.follow_ups]
    assert len(set(every)) == 4
    assert all(f"Question of mediator to {name}: " in third for name in ("Physical", "Ice"))
    assert all(question in third for question in every)
    assert all(question in script.prompts_of("mediator", "Evidence")[2] for question in every)


def test_the_brief_prompts_for_small_models_show_the_first_opinions_too():
    # They do not name the advocate: who answers is told by the passages.
    sides = {"": lambda prompt: View("correct" if "The sun delivers practically all" in prompt else "incorrect")}
    held = debate(sides, PHYSICAL, PAMPHLET, wording="brief", rounds=2)
    assert held.reasons == ["contrast", "no change"]
    drafts = [text for text in held.script.model.texts if text.endswith("<answer>") and "checks claims" in text]
    assert len(drafts) == 4
    for text in drafts[2:]:
        assert "Physical said at first: incorrect. " in text
        assert "Pamphlet said at first: correct. " in text
        assert "mediator asked Pamphlet: How much has solar irradiance changed since 1750? Reply: " in text
    assert not any("said at first" in text for text in drafts[:2])


def test_an_addressed_advocate_retrieves_anew_and_the_passage_lies_before_it_in_the_next_round():
    one = among(PHYSICAL, passages=1)
    question = "How much has solar irradiance changed since 1750, and how strong is the forcing by CO2 and methane?"
    held = debate(
        {"Physical": ["incorrect"], "Ice": ["correct"]},
        one,
        ICE,
        claim="The Sun delivers more than it did.",
        question=question,
    )
    first, second = held.transcript.rounds[:2]
    [before] = first.opinions[0].retrieved
    asked = next(follow_up for follow_up in second.follow_ups if follow_up.to == "Physical")
    [found] = asked.retrieved
    assert found != before
    assert second.opinions[0].retrieved == (found,)
    texts = {source.number: source.passage.text for source in held.transcript.sources}
    assert texts[before].startswith("The Sun delivers about 1361")
    assert texts[found].startswith("From 1750 to 2019")
    assert f"[{found}] " in held.script.prompts_of("Physical", "Information")[1]
    assert f"[{before}] " not in held.script.prompts_of("Physical", "Information")[1]


def test_both_ends_of_a_contrast_are_asked_and_the_weightier_of_those_who_agree():
    third = among(ICE, name="Third", weight=0.9)
    held = debate({"Physical": ["misleading"], "Ice": ["incorrect"], "Third": ["incorrect"]}, PHYSICAL, ICE, third)
    assert [one.to for one in held.transcript.rounds[1].follow_ups] == ["Third", "Physical"]


def test_a_question_that_the_model_does_not_manage_is_put_in_a_fixed_form_and_marked():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct"]}, question="I have no question.")
    one, other = held.transcript.rounds[1].follow_ups
    assert one.origin == other.origin == "template"
    assert one.question == "You say incorrect, but Ice says correct: which of your passages bear on this difference?"


def test_an_advocate_of_low_confidence_asks_the_weightiest_of_the_others_itself():
    held = debate(
        {"Physical": ["incorrect"], "Ice": [View("correct", **UNSURE)], "Model": ["accurate"]}, PHYSICAL, ICE, PLAIN
    )
    own = [one for one in held.transcript.rounds[1].follow_ups if one.asker != "mediator"]
    assert [(one.asker, one.to) for one in own] == [("Ice", "Physical")]
    assert own[0].reply
    assert "Question of Ice to Physical: " in held.script.prompts_of("Model", "Information")[1]


def test_the_mediators_own_low_confidence_opens_a_round_although_the_verdicts_are_close():
    held = debate({"Physical": ["incorrect", "inaccurate"], "mediator": [View(**UNSURE), View("incorrect")]})
    assert decisions(held) == [("uncertain", False), ("close verdicts", True)]
    assert [one.to for one in held.transcript.rounds[1].follow_ups] == ["Physical"]


def test_no_change_closes_in_the_second_round_and_not_in_the_first():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct"], "mediator": ["misleading"]}, rounds=9)
    assert decisions(held) == [("contrast", False), ("no change", True)]
    assert held.transcript.verdict.label == "misleading"
    [caveat] = held.transcript.verdict.caveats
    assert caveat == "The advocates still differ: Physical says incorrect, Ice says correct."
    assert [one.changed for one in held.transcript.rounds[1].opinions] == [False, False]


@pytest.mark.parametrize("satisfied", [True, False])
def test_the_mediator_may_be_satisfied_with_a_contrast_from_the_second_round_on_only(satisfied):
    changing = ["correct", "accurate", "mostly accurate"]
    plans = {"Physical": ["incorrect"], "Ice": changing, "mediator": [View("misleading", goes_on=not satisfied)]}
    held = debate(plans, rounds=3)
    expected = ["contrast", "mediator"] if satisfied else ["contrast", "contrast", "round limit"]
    assert held.reasons == expected
    # In the first round, and at the limit, it is not even asked.
    assert len(held.script.prompts_of("mediator", "Next")) == 1
    assert held.transcript.verdict.caveats[0].startswith("The advocates still differ")


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_round_limit_holds(limit):
    changing = [LABELS[place] for place in (11, 9, 7, 5)]
    held = debate({"Physical": ["incorrect"], "Ice": changing}, rounds=limit)
    assert held.reasons == ["contrast"] * (limit - 1) + ["round limit"]


def test_a_verdict_without_a_cited_sentence_or_a_quotation_of_the_model_is_not_given():
    held = debate({"Physical": ["correct"], "mediator": [View("correct", says="Numerous studies support it.")]})
    verdict = held.transcript.verdict
    assert (verdict.outcome, verdict.withheld, verdict.levels) == ("not enough information", "correct", None)
    # The sentence nearest to the claim is shown, on no side.
    assert [quotation.side for quotation in verdict.quotations] == [None]
    assert "rests it on no passage" in verdict.caveats[0]


def test_the_only_informed_advocate_is_leant_to_with_a_caveat():
    held = debate({"Physical": [NEI], "Ice": ["misleading"], "mediator": ["misleading"]})
    assert decisions(held) == [("one informed advocate", True)]
    verdict = held.transcript.verdict
    assert (verdict.outcome, verdict.label) == ("verdict", "misleading")
    # The levels may be high: the caveat says whose evidence they rate, and does not deny them.
    [caveat] = verdict.caveats
    assert caveat.startswith("Only Ice has information on this claim")
    assert "by this source alone" in caveat
    assert list_notices(held.transcript) == (caveat,)
    [prompt] = held.script.prompts_of("mediator", "Evidence")
    # It is told who abstained, and why.
    assert (
        "Physical (authority high; source: Principles of Physical Climate) gives no verdict: what was found" in prompt
    )


def test_without_any_information_the_mediator_is_not_asked():
    held = debate({"Physical": [NEI], "Ice": [NEI]})
    assert decisions(held) == [("not enough information", True)]
    verdict = held.transcript.verdict
    assert (verdict.outcome, verdict.label) == ("not enough information", CLIMATE_FEEDBACK.nei)
    assert held.script.prompts_of("mediator", "Evidence") == []
    assert verdict.levels is None
    assert verdict.explanation == ()


def test_without_any_relevant_passage_no_model_is_asked_at_all():
    far = among(PHYSICAL, min_cosine=0.99)
    held = debate({}, far)
    assert held.script.model.options == held.script.model.texts == []
    assert held.transcript.verdict.outcome == "not enough information"
    assert held.transcript.usage.requests == 0


LACKING = [NEI, View("unsupported", evidence="limited", agreement="medium", confidence="low")]


@pytest.mark.parametrize("lacking", LACKING, ids=["nei", "unsupported"])
def test_a_lack_of_information_never_opens_a_round(lacking):
    held = debate({"Physical": ["correct"], "Ice": [lacking], "Model": ["accurate"]}, PHYSICAL, ICE, PLAIN)
    assert held.reasons == ["close verdicts"]
    assert held.transcript.rounds[0].decision.informed == ("Physical", "Model")
    alone = debate({"Physical": [lacking], "Ice": [lacking]})
    assert alone.reasons == ["not enough information"]


def test_an_advocate_that_gives_up_its_view_no_longer_contrasts():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct", NEI], "mediator": ["incorrect"]})
    assert held.reasons == ["contrast", "one informed advocate"]
    assert held.transcript.rounds[1].opinions[1].changed


@pytest.mark.parametrize("line", ["Information", "Evidence", "Assessment", "Verdict", "Explanation"])
def test_a_failed_advocate_is_left_out_and_named(line):
    held = debate({"Physical": ["incorrect"], "Ice": [View(fails=line)], "mediator": ["incorrect"]})
    opinion = held.transcript.rounds[0].opinions[1]
    assert (opinion.verdict, opinion.informed, opinion.error) == (None, False, "Ice is not to be reached.")
    assert held.transcript.verdict.label == "incorrect"
    assert "Ice gave no opinion, because a model call failed." in held.transcript.verdict.caveats
    assert held.transcript.failures == 1


def test_a_failed_call_is_no_change_of_view():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct"], "Model": ["imprecise", View(fails="Verdict")]},
                  PHYSICAL, ICE, PLAIN, rounds=9)  # fmt: skip
    assert held.reasons == ["contrast", "no change"]
    assert not held.transcript.rounds[1].opinions[2].changed


def test_a_debate_in_which_every_advocate_fails_has_failed():
    verdict = debate({"Physical": [View(fails="Verdict")], "Ice": [View(fails="Evidence")]}).transcript.verdict
    assert (verdict.outcome, verdict.label, verdict.error) == ("failed", None, "Physical is not to be reached.")


@pytest.mark.parametrize("other", ["inaccurate", "correct"])
@pytest.mark.parametrize("line", ["Evidence", "Assessment", "Verdict", "Explanation"])
def test_a_failed_mediator_ends_the_debate(line, other):
    held = debate({"Physical": ["incorrect"], "Ice": [other], "mediator": [View(fails=line)]})
    verdict = held.transcript.verdict
    assert (verdict.outcome, verdict.label, verdict.error) == ("failed", None, "mediator is not to be reached.")
    assert len(held.transcript.rounds) == (2 if (line, other) == ("Explanation", "correct") else 1)
    assert all(len(one.opinions) == 2 for one in held.transcript.rounds)


@pytest.mark.parametrize("line", ["Evidence", "Verdict"])
def test_a_failed_mediator_is_not_asked_again(line):
    held = debate({"Physical": ["incorrect"], "Ice": ["correct"], "mediator": [View(fails=line)]})
    lines = ("Evidence", "Assessment", "Verdict", "Explanation", "Next")
    counts = {name: len(held.script.prompts_of("mediator", name)) for name in lines}
    assert counts[line] == 1
    later = lines[lines.index(line) + 1 :] if line == "Evidence" else ("Explanation", "Next")
    assert [counts[name] for name in later] == [0] * len(later)
    assert held.transcript.rounds[-1].follow_ups == ()


@pytest.mark.parametrize("confidence", ["low", "medium", "high"])
def test_only_an_uncertain_advocate_asks_another(confidence):
    """The verdicts contrast, so that there is a second round for which questions are asked."""
    view = View("correct", confidence=confidence, evidence="limited" if confidence == "low" else "robust")
    held = debate({"Physical": ["incorrect"], "Ice": [view]}, rounds=2)
    askers = {follow_up.asker for follow_up in held.transcript.rounds[1].follow_ups}
    assert ("Ice" in askers) == (confidence == "low")


def test_nobody_is_asked_if_the_verdicts_are_close_and_the_mediator_is_confident():
    held = debate({"Physical": ["incorrect"], "Ice": [View("inaccurate", **UNSURE)], "mediator": ["incorrect"]})
    assert held.reasons == ["close verdicts"]
    assert not any(" in a debate about a claim. Ask" in prompt for prompt in held.script.model.texts)


def test_a_failed_reply_is_shown_as_none_and_the_debate_goes_on():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct", "incorrect"]}, reply=lambda _: ValueError("gone"))
    assert held.reasons == ["contrast", "close verdicts"]
    assert {one.error for one in held.transcript.rounds[1].follow_ups} == {"gone"}
    assert "Reply of Ice: (no reply)" in held.script.prompts_of("Ice", "Information")[1]
    assert held.transcript.failures == 2


def test_leaving_one_out_tells_what_the_mediator_would_have_said():
    def weighs(prompt):
        return View("incorrect" if "Physical (authority" in prompt else "correct")

    plans = {"Physical": ["incorrect"], "Ice": ["correct"], "Model": [NEI], "mediator": weighs}
    held = debate(plans, PHYSICAL, ICE, PLAIN, leave_one_out=True)
    assert held.transcript.verdict.label == "incorrect"
    assert held.transcript.without == (("Physical", "correct"), ("Ice", "incorrect"))
    left = [prompt for prompt in held.script.prompts_of("mediator", "Evidence") if "Ice (authority" not in prompt]
    assert left
    assert not any("to Ice" in prompt or "Ice says" in prompt for prompt in left)
    assert held.reasons == debate(plans, PHYSICAL, ICE, PLAIN).reasons


TWO = "The Sun has become brighter since 1950. Carbon dioxide does not warm the Earth."


def by_statement(brighter, warm):
    return lambda prompt: brighter if "\nClaim: The Sun" in prompt else warm


def test_subclaims_are_judged_apart_and_aggregated_by_each_advocate():
    physical = by_statement(
        View("incorrect", confidence="high"), View("inaccurate", evidence="limited", confidence="low")
    )
    held = debate({"Physical": physical, "Ice": by_statement(NEI, View("incorrect"))}, claim=TWO, split="rules")
    [round_] = held.transcript.rounds
    assert [(one.advocate, one.subclaim, one.verdict) for one in round_.parts] == [
        ("Physical", 1, "incorrect"),
        ("Physical", 2, "inaccurate"),
        ("Ice", 1, CLIMATE_FEEDBACK.nei),
        ("Ice", 2, "incorrect"),
    ]
    whole = round_.opinions[0]
    assert (whole.subclaim, whole.verdict, whole.informed) == (None, "incorrect", True)
    assert (whole.levels.evidence, whole.levels.confidence) == ("limited", "low")
    assert set(whole.retrieved) == {number for one in round_.parts[:2] for number in one.retrieved}
    asked = [prompt for prompt, _ in held.script.model.options if prompt.startswith("<system>You bring")]
    told = '"The Sun has become brighter since 1950.": incorrect\n"Carbon dioxide does not warm the Earth.": inaccurate'
    assert any(told in prompt for prompt in asked)
    [prompt] = held.script.prompts_of("mediator", "Evidence")
    assert '- on "Carbon dioxide does not warm the Earth.": inaccurate' in prompt


def test_a_whole_that_is_unsupported_on_low_evidence_is_no_view():
    low = View("unsupported", **UNSURE)
    plans = {"Physical": by_statement(View("incorrect"), low), "Ice": by_statement(View("correct"), View("correct"))}
    held = debate(
        plans,
        claim=TWO,
        split="rules",
        whole=lambda prompt: "unsupported" if "unsupported\n" in prompt.partition("Verdicts")[0] else "correct",
    )
    assert held.transcript.rounds[0].opinions[0].verdict == "unsupported"
    assert not held.transcript.rounds[0].opinions[0].informed
    assert held.reasons == ["one informed advocate"]


def test_an_advocate_that_fails_at_one_statement_has_failed():
    plans = {"Physical": by_statement(View("incorrect"), View(fails="Verdict")), "Ice": ["incorrect"]}
    held = debate(plans, claim=TWO, split="rules")
    assert held.transcript.rounds[0].opinions[0].verdict is None
    assert held.reasons == ["one informed advocate"]


def test_the_models_subclaims_are_debated_by_what_they_say_and_keep_their_places():
    parts = (
        ("The Sun has become brighter since 1950", "The Sun has become brighter since 1950."),
        ("Carbon dioxide does not warm the Earth", "Carbon dioxide does not warm the Earth at all."),
    )
    given = [{"quotation": quotation, "statement": said, "queries": []} for quotation, said in parts]
    text = json.dumps({"reason": "", "kind": "checkable", "parts": given})
    held = debate({}, claim=TWO, split="model", split_text=text, context_prefix=True)
    one, other = held.transcript.subclaims
    assert (held.transcript.split, TWO[other.start : other.end]) == ("model", "Carbon dioxide does not warm the Earth")
    assert one.text == "The Sun has become brighter since 1950."
    statements = {
        prompt.rpartition("\nClaim: ")[2].partition("\n")[0] for prompt in held.script.prompts_of("Ice", "Verdict")
    }
    prefix = "This claim is made in a climate-change context: "
    assert statements == {prefix + one.text, prefix + "Carbon dioxide does not warm the Earth at all."}
    assert held.transcript.prefixed
    assert held.transcript.verdict.restated == TWO


def test_with_an_adversary_the_mediator_is_neutral_and_trusts_nobody_beforehand():
    with_adversary = debate({}, PHYSICAL, PAMPHLET)
    [prompt] = with_adversary.script.prompts_of("mediator", "Evidence")
    assert "can be trusted. Bring" not in prompt
    assert "Do not assume that every source can be trusted" in prompt
    assert with_adversary.transcript.mediator == "neutral, local:scripted"
    assert (
        "You hold the standpoint of your source: the Sun explains everything."
        in (with_adversary.script.prompts_of("Pamphlet", "Evidence")[0])
    )
    without = debate({})
    assert "Their documents can be trusted." in without.script.prompts_of("mediator", "Evidence")[0]
    assert without.transcript.mediator == "expert, local:scripted"


def test_the_pool_weighs_probabilities_by_authority():
    """Two labels matter: log odds 2 with weight 1 against -5 with weight 0.5 make (2 - 2.5) / 1.5 = -1/3."""
    floor = -30.0
    first = tuple({"incorrect": 0.0, "correct": -2.0}.get(label, floor) for label in LABELS)
    second = tuple({"incorrect": -5.0, "correct": 0.0}.get(label, floor) for label in LABELS)
    plans = {"Physical": [View(chances=first)], "Ice": [View(chances=second)], "mediator": ["misleading"]}
    held = debate(plans, decide="pool", rounds=1)
    verdict = held.transcript.verdict
    odds = verdict.probabilities[LABELS.index("incorrect")] / verdict.probabilities[LABELS.index("correct")]
    assert odds == pytest.approx(math.exp(-1 / 3), rel=1e-6)
    assert verdict.label == "correct"
    assert held.transcript.rounds[0].decision.verdict == "correct"
    even = debate(plans, PHYSICAL, among(ICE, weight=0.1), decide="pool", rounds=1)
    assert even.transcript.verdict.label == "incorrect"
    assert debate(plans, rounds=1).transcript.verdict.label == "misleading"


@pytest.mark.parametrize("verdict_first", [False, True])
def test_the_explanation_of_a_pooled_verdict_is_asked_for_that_verdict(verdict_first):
    held = debate({"Physical": ["correct"], "Ice": ["correct"], "mediator": ["misleading"]}, decide="pool",
                  verdict_first=verdict_first)  # fmt: skip
    assert held.transcript.verdict.label == "correct"
    answer = held.script.prompts_of("mediator", "Explanation")[-1].rpartition("<answer>")[2]
    assert "Verdict: correct" in answer
    assert "Verdict: misleading" not in answer


def test_everything_is_told_as_it_happens():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct"]})
    told = [event for event in held.events if not isinstance(event, Activity)]
    assert [type(event) for event in told] == [
        tuple, Retrieval, *[AdvocateOpinion] * 2, MediatorDecision,
        Retrieval, *[FollowUp] * 2, *[AdvocateOpinion] * 2, MediatorDecision, Verdict,
    ]  # fmt: skip
    assert told[-1] == held.transcript.verdict
    assert told[2:4] == list(held.transcript.rounds[0].opinions)


def test_the_mediator_cites_only_what_advocates_cited():
    plans = {"Physical": [View(says="It is so [1].")], "Ice": [View(says="I cite nothing.")],
             "mediator": [View(says="It is so [1]. And so [2].")]}  # fmt: skip
    held = debate(plans)
    numbers = {number for one in held.transcript.verdict.explanation for number in one.citations}
    assert numbers == {1}
    assert held.transcript.verdict.removed_citations == 1
    assert any(source.number == 2 for source in held.transcript.sources)


@pytest.mark.parametrize(("side", "contradicts"), [("right", True), ("wrong", False)])
def test_an_explanation_for_the_other_side_is_marked(side, contradicts):
    held = debate({}, side=side)
    assert held.transcript.verdict.contradicts is contradicts
    assert all(one.contradicts is contradicts for one in held.transcript.rounds[0].opinions)


VIEWS = st.builds(
    View,
    verdict=st.sampled_from(CLIMATE_FEVER.labels),
    evidence=st.sampled_from(["limited", "medium"]),
    agreement=st.just("medium"),
    confidence=st.sampled_from(["low", "medium"]),
    informed=st.booleans(),
    goes_on=st.booleans(),
    says=st.sampled_from(["", "Verdict: SUPPORTS [7]. Verdict: TRUE"]),
    fails=st.sampled_from(["", "", "", "Information", "Evidence", "Verdict", "Explanation", "Next"]),
)


@given(
    plans=st.fixed_dictionaries(
        {name: st.lists(VIEWS, min_size=1, max_size=3) for name in ("Physical", "Ice", "mediator")}
    ),
    limit=st.integers(1, 3),
    decide=st.sampled_from(["mediator", "pool"]),
)
def test_any_answers_lead_to_a_legal_verdict_within_the_limit(plans, limit, decide):
    # A share of the levels drawn is not coherent, and cannot be chosen: then all options are equal.
    def mended(view):
        return replace(view, confidence="medium") if view.evidence == "medium" else replace(view, confidence="low")

    plans = {name: [mended(view) for view in views] for name, views in plans.items()}
    held = hold(Script(plans), PHYSICAL, ICE, rounds=limit, decide=decide, scale="climate-fever")
    transcript = held.transcript
    assert 1 <= len(transcript.rounds) <= limit
    assert all(not one.decision.closes for one in transcript.rounds[:-1])
    verdict = transcript.verdict
    if verdict.outcome == "failed":
        assert verdict.label is None
        assert verdict.error
    else:
        assert transcript.rounds[-1].decision.closes
        legal = CLIMATE_FEVER.labels if verdict.outcome == "verdict" else (CLIMATE_FEVER.nei,)
        assert verdict.label in legal
    known = {source.number for source in transcript.sources}
    for one in transcript.rounds:
        assert {opinion.verdict for opinion in one.opinions} <= {*CLIMATE_FEVER.labels, CLIMATE_FEVER.nei, None}
        for opinion in one.opinions:
            assert all(set(sentence.citations) <= set(opinion.retrieved) <= known for sentence in opinion.explanation)
