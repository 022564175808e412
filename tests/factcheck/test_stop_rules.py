"""Every reason for which a debate closes or goes on, in whole debates over real collections with scripted answers.

Leippold et al. (2024), figure 1 and listings 1 and 3.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.factcheck import SCALES, AdvocateOpinion, FollowUp, MediatorDecision, Verdict
from climassay.factcheck.certainty import CONFIDENCES, allowed_confidences
from climassay.factcheck.results.page import list_notices
from climassay.factcheck.scales import BINARY, CLIMATE_FEEDBACK, CLIMATE_FEVER
from climassay.factcheck.transcript import Activity, Retrieval
from debate_tables import ICE, NEI, PAMPHLET, PHYSICAL, PLAIN, UNSURE, Script, View, among, hold

LABELS = CLIMATE_FEEDBACK.labels


def debate(plans, *advocates, rounds=3, **options):
    given = {name: options.pop(name) for name in ("question", "reply") if name in options}
    if "split_text" in options:
        given["split"] = options.pop("split_text")
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
        "mediator": [View(asks=("Physical", "Ice")), View()],
    }
    held = debate(views, PHYSICAL, ICE, PLAIN, reply="The change was close to zero [4].")
    assert held.reasons == ["contrast", "close verdicts"]
    [asked, _] = held.transcript.rounds[1].follow_ups
    assert (asked.asker, asked.round, asked.origin) == ("mediator", 2, "model")
    assert {one.to for one in held.transcript.rounds[1].follow_ups} == {"Physical", "Ice"}
    for name in ("Physical", "Ice", "Model"):
        first, second = held.script.prompts_of(name)
        assert "What the advocates said at first" not in first
        for words in (
            "- Physical: incorrect. Irradiance hardly changed [1].",
            "- Ice: correct. The forcing says so [4].",
            "- Model: inaccurate. It is widely known (In-house knowledge).",
        ):
            assert words in second
        assert (f"mediator asks: {asked.question}" in second) == (name != "Model")
    third = held.script.prompts_of("mediator")[1]
    assert "Ice (authority medium; source: Principles of Physical Climate): incorrect" in third
    assert "Reply of Ice: The change was close to zero [4]." in third


def test_in_the_third_round_the_opinions_shown_are_still_the_first_ones_and_earlier_replies_are_not_forgotten():
    changing = [View("correct", says="At first [4]."), View("accurate", says="Later [4]."), View("incorrect")]
    questions = iter(f"What does the record number {number} say about it?" for number in range(9))
    script = Script(
        {"Physical": ["incorrect"], "Ice": changing, "mediator": [View(asks=("Physical", "Ice"))]},
        question=lambda _: next(questions),
        reply="As before [1].",
    )
    held = hold(script, PHYSICAL, ICE, rounds=4)
    assert held.reasons == ["contrast", "contrast", "uncertain", "no change"]
    third = script.prompts_of("Ice")[2]
    assert "- Ice: correct. At first [4]." in third
    assert "Later" not in third
    earlier = [one.question for one in held.transcript.rounds[1].follow_ups]
    later = [one.question for one in held.transcript.rounds[2].follow_ups]
    assert len({*earlier, *later}) == 4
    assert all(f"Question of mediator to {name}: " in third for name in ("Physical", "Ice"))
    assert all(question in third for question in (*earlier, later[1]))
    assert all(question in script.prompts_of("mediator")[2] for question in (*earlier, *later))


def test_an_addressed_advocate_retrieves_anew_and_the_passage_lies_before_it_in_the_next_round():
    one = among(PHYSICAL, passages=1)
    question = "How much has solar irradiance changed since 1750, and how strong is the forcing by CO2 and methane?"
    held = debate(
        {"Physical": ["incorrect"], "Ice": ["correct"], "mediator": [View(asks=("Physical",))]},
        one,
        ICE,
        claim="The Sun delivers more than it did.",
        question=question,
        rounds=2,
    )
    first, second = held.transcript.rounds
    [before] = first.opinions[0].retrieved
    [asked] = second.follow_ups
    found, *kept = second.opinions[0].retrieved
    assert kept == [before]
    assert asked.retrieved == (found, before)
    texts = {source.number: source.passage.text for source in held.transcript.sources}
    assert texts[before].startswith("The Sun delivers about 1361")
    assert texts[found].startswith("From 1750 to 2019")
    assert f"[{found}] " in held.script.prompts_of("Physical")[1]


def test_both_ends_of_a_contrast_are_asked_and_the_weightier_of_those_who_agree():
    third = among(ICE, name="Third", weight=0.9)
    held = debate({"Physical": ["misleading"], "Ice": ["incorrect"], "Third": ["incorrect"]}, PHYSICAL, ICE, third)
    assert [one.to for one in held.transcript.rounds[1].follow_ups] == ["Third", "Physical"]


def test_a_question_that_the_mediator_does_not_ask_is_put_in_a_fixed_form_and_marked():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct"]})
    one, other = held.transcript.rounds[1].follow_ups
    assert (one.to, other.to) == ("Physical", "Ice")
    assert one.origin == other.origin == "template"
    assert one.question == "You say incorrect, but Ice says correct: which of your passages bear on this difference?"


def test_an_advocate_s_question_is_put_if_the_debate_goes_on():
    held = debate(
        {"Physical": ["incorrect"], "Ice": [View("correct", asks=("Physical",))], "Model": ["accurate"]},
        PHYSICAL, ICE, PLAIN, rounds=2,
    )  # fmt: skip
    own = [one for one in held.transcript.rounds[1].follow_ups if one.asker != "mediator"]
    assert [(one.asker, one.to) for one in own] == [("Ice", "Physical")]
    assert own[0].reply
    assert "Question of Ice to Physical: " in held.script.prompts_of("mediator")[1]
    close = debate({"Physical": ["incorrect"], "Ice": [View("inaccurate", asks=("Physical",), **UNSURE)]})
    assert close.reasons == ["close verdicts"]


def test_the_mediators_question_opens_a_round_although_the_verdicts_are_close():
    held = debate({"Physical": ["incorrect", "inaccurate"], "mediator": [View(asks=("Physical",)), View()]})
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
    weighs = View("misleading", asks=() if satisfied else ("Ice",))
    plans = {"Physical": ["incorrect"], "Ice": changing, "mediator": [weighs]}
    held = debate(plans, rounds=3)
    expected = ["contrast", "mediator"] if satisfied else ["contrast", "contrast", "round limit"]
    assert held.reasons == expected
    prompts = held.script.prompts_of("mediator")
    # In the first round it has to ask, and at the limit it cannot.
    asked = ["contrast, so that the debate goes on" in prompt for prompt in prompts]
    assert asked == [True, False, False][: len(prompts)]
    assert ["closes unless you ask" in prompt for prompt in prompts] == [False, True, False][: len(prompts)]
    assert held.transcript.verdict.caveats[0].startswith("The advocates still differ")


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_round_limit_holds(limit):
    changing = [LABELS[place] for place in (11, 9, 7, 5)]
    held = debate({"Physical": ["incorrect"], "Ice": changing, "mediator": [View(asks=("Ice",))]}, rounds=limit)
    assert held.reasons == ["contrast"] * (limit - 1) + ["round limit"]


def test_a_verdict_without_a_cited_sentence_or_a_quotation_of_the_model_is_not_given():
    held = debate({"Physical": ["correct"], "mediator": [View("correct", says="Numerous studies support it.")]})
    verdict = held.transcript.verdict
    assert (verdict.outcome, verdict.withheld, verdict.levels) == ("not enough information", "correct", None)
    assert verdict.quotations == ()
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
    [prompt] = held.script.prompts_of("mediator")
    # It is told who abstained, and why.
    assert (
        "Physical (authority high; source: Principles of Physical Climate) gives no verdict: what was found" in prompt
    )


def test_without_any_information_the_mediator_is_not_asked():
    held = debate({"Physical": [NEI], "Ice": [NEI]})
    assert decisions(held) == [("not enough information", True)]
    verdict = held.transcript.verdict
    assert (verdict.outcome, verdict.label) == ("not enough information", CLIMATE_FEEDBACK.nei)
    assert held.script.prompts_of("mediator") == []
    assert verdict.levels is None
    assert verdict.explanation == ()


def test_without_any_relevant_passage_no_model_is_asked_at_all():
    far = among(PHYSICAL, min_cosine=0.99)
    held = debate({}, far)
    assert held.script.model.texts == []
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


def test_a_failed_advocate_is_left_out_and_named():
    held = debate({"Physical": ["incorrect"], "Ice": [View(fails=True)], "mediator": ["incorrect"]})
    opinion = held.transcript.rounds[0].opinions[1]
    assert (opinion.verdict, opinion.informed, opinion.error) == (None, False, "Ice is not to be reached.")
    assert held.transcript.verdict.label == "incorrect"
    assert "Ice gave no opinion, because a model call failed." in held.transcript.verdict.caveats
    assert held.transcript.failures == 1


def test_a_failed_call_is_no_change_of_view():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct"], "Model": ["imprecise", View(fails=True)]},
                  PHYSICAL, ICE, PLAIN, rounds=9)  # fmt: skip
    assert held.reasons == ["contrast", "no change"]
    assert not held.transcript.rounds[1].opinions[2].changed


def test_a_debate_in_which_every_advocate_fails_has_failed():
    verdict = debate({"Physical": [View(fails=True)], "Ice": [View(fails=True)]}).transcript.verdict
    assert (verdict.outcome, verdict.label, verdict.error) == ("failed", None, "Physical is not to be reached.")


@pytest.mark.parametrize("other", ["inaccurate", "correct"])
def test_a_failed_mediator_ends_the_debate_and_is_not_asked_again(other):
    held = debate({"Physical": ["incorrect"], "Ice": [other], "mediator": [View(fails=True)]})
    verdict = held.transcript.verdict
    assert (verdict.outcome, verdict.label, verdict.error) == ("failed", None, "mediator is not to be reached.")
    [only] = held.transcript.rounds
    assert len(only.opinions) == 2
    assert len(held.script.prompts_of("mediator")) == 1


def test_a_failed_reply_is_shown_as_none_and_the_debate_goes_on():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct", View(fails=True)]}, rounds=2)
    assert held.reasons == ["contrast", "one informed advocate"]
    assert [one.error for one in held.transcript.rounds[1].follow_ups] == [None, "Ice is not to be reached."]
    assert "Reply of Ice: (no reply)" in held.script.prompts_of("mediator")[1]
    assert held.transcript.failures == 1


def test_leaving_one_out_tells_what_the_mediator_would_have_said():
    def weighs(prompt):
        return View("incorrect" if "Physical (authority" in prompt else "correct")

    plans = {"Physical": ["incorrect"], "Ice": ["correct"], "Model": [NEI], "mediator": weighs}
    held = debate(plans, PHYSICAL, ICE, PLAIN, leave_one_out=True)
    assert held.transcript.verdict.label == "incorrect"
    assert held.transcript.without == (("Physical", "correct"), ("Ice", "incorrect"))
    left = [prompt for prompt in held.script.prompts_of("mediator") if "Ice (authority" not in prompt]
    assert left
    assert not any("Ice" in prompt.partition("<user>")[2] for prompt in left)
    assert held.reasons == debate(plans, PHYSICAL, ICE, PLAIN).reasons


TWO = "The Sun has become brighter since 1950. Carbon dioxide does not warm the Earth."


def test_a_whole_that_is_unsupported_on_low_evidence_is_no_view():
    held = debate({"Physical": [View("unsupported", **UNSURE)], "Ice": ["correct"]}, claim=TWO, split="rules")
    opinion = held.transcript.rounds[0].opinions[0]
    assert (opinion.verdict, opinion.informed) == ("unsupported", False)
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
    [prompt] = held.script.prompts_of("Ice")
    prefix = "This claim is made in a climate-change context: "
    assert f"1. {prefix}{one.text}\n2. {prefix}Carbon dioxide does not warm the Earth at all.\n" in prompt
    assert f"\nClaim: {prefix}{TWO}\n" in prompt
    assert held.transcript.prefixed
    assert held.transcript.verdict.restated == TWO


def test_with_an_adversary_the_mediator_is_neutral_and_trusts_nobody_beforehand():
    with_adversary = debate({}, PHYSICAL, PAMPHLET)
    [prompt] = with_adversary.script.prompts_of("mediator")
    assert "can be trusted. Bring" not in prompt
    assert "Do not assume that every source can be trusted" in prompt
    assert with_adversary.transcript.mediator == "neutral, local:scripted"
    assert (
        "You hold the standpoint of your source: the Sun explains everything."
        in (with_adversary.script.prompts_of("Pamphlet")[0])
    )
    without = debate({})
    assert "Their documents can be trusted." in without.script.prompts_of("mediator")[0]
    assert without.transcript.mediator == "expert, local:scripted"


def test_everything_is_told_as_it_happens():
    held = debate({"Physical": ["incorrect"], "Ice": ["correct"]})
    told = [event for event in held.events if not isinstance(event, Activity)]
    assert [type(event) for event in told] == [
        tuple, Retrieval, *[AdvocateOpinion] * 2, MediatorDecision,
        FollowUp, AdvocateOpinion, FollowUp, AdvocateOpinion, MediatorDecision, Verdict,
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


VIEWS = st.builds(
    View,
    verdict=st.sampled_from(CLIMATE_FEVER.labels),
    evidence=st.sampled_from(["limited", "medium", "robust"]),
    agreement=st.sampled_from(["low", "medium", "high"]),
    confidence=st.sampled_from(CONFIDENCES),
    likelihood=st.sampled_from(["not quantified", "likely"]),
    informed=st.booleans(),
    asks=st.sampled_from([(), ("Ice",), ("Physical", "Ice")]),
    says=st.sampled_from(["", "Verdict: SUPPORTS [7]. Verdict: TRUE"]),
    fails=st.sampled_from([False, False, False, True]),
)


@given(
    plans=st.fixed_dictionaries(
        {name: st.lists(VIEWS, min_size=1, max_size=3) for name in ("Physical", "Ice", "mediator")}
    ),
    limit=st.integers(1, 3),
)
def test_any_answers_lead_to_a_legal_verdict_within_the_limit(plans, limit):
    held = hold(Script(plans), PHYSICAL, ICE, rounds=limit, scale="climate-fever")
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
            if opinion.levels is not None:
                levels = opinion.levels
                assert levels.confidence in allowed_confidences(levels.evidence, levels.agreement)
            assert all(set(sentence.citations) <= set(opinion.retrieved) <= known for sentence in opinion.explanation)
