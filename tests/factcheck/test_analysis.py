import json
from dataclasses import replace

import pytest

from climassay.claim_identity import claim_id
from climassay.errors import InputError
from climassay.factcheck import analyse
from climassay.factcheck.certainty import Levels
from climassay.factcheck.results.analysis import analysis_data
from climassay.factcheck.results.analysis_tables import (
    citation_table,
    failed_table,
)
from climassay.factcheck.results.page import ENTAILMENT_PRECISION
from climassay.factcheck.scales import ACCURACY, CLIMATE_FEEDBACK, CLIMATE_FEVER
from climassay.models import Usage
from climassay.statistics import krippendorff_alpha, wilson_interval
from factcheck_transcripts import UNSURE, checked, full_transcript, sentence, unchecked

NEI = CLIMATE_FEEDBACK.nei


def both(ipcc, wmo, mediator, text, **changes):
    return checked(text, ({"IPCC": ipcc, "WMO": wmo}, mediator), **changes)


def sure(confidence):
    return Levels("medium", "medium", confidence)


def run():
    """Six claims: three right of five debated, one of them after a second round, and one not checkable."""
    return [
        both("incorrect", "incorrect", "incorrect", "a"),
        both("incorrect", NEI, "incorrect", "b", levels=sure("high"), reason="one informed advocate"),
        both("correct", "mostly correct", "correct", "c", levels=sure("medium")),
        checked(
            "d",
            ({"IPCC": "incorrect", "WMO": "correct"}, "correct"),
            ({"IPCC": "incorrect", "WMO": "inaccurate"}, "incorrect"),
            levels=sure("low"),
            without=(("IPCC", "inaccurate"), ("WMO", "correct")),
        ),
        both(NEI, NEI, NEI, "e", reason="not enough information"),
        unchecked("f", "not checkable"),
    ]


TRUTHS = {"a": "incorrect", "b": "Inaccurate", "c": "misleading", "d": "incorrect", "e": "correct", "f": "", "x": "?"}


def analysed(transcripts=None, truths=None, scale=CLIMATE_FEEDBACK, **options):
    return analyse(
        run() if transcripts is None else transcripts,
        {claim_id(text): verdict for text, verdict in (TRUTHS if truths is None else truths).items()},
        scale,
        **{"resamples": 200, **options},
    )


def scores_of(analysis, party, classes):
    (party_scores,) = [one for one in analysis.scores if one.party == party]
    (scores,) = [one for one in party_scores.levels if len(one.classes) == classes]
    return scores


def by_party(entries):
    return {entry.party: entry for entry in entries}


def test_claims_and_outcomes_are_counted_once():
    analysis = analysed([*run(), run()[0]])
    assert (analysis.claims, analysis.repeated, analysis.with_truth) == (6, 1, 5)
    assert dict(analysis.outcomes) == {
        "verdict": 4, "not enough information": 1, "not checkable": 1, "not about climate": 0, "failed": 0,
    }  # fmt: skip
    assert analysis.usage == Usage(500, 50, 25)


@pytest.mark.parametrize(
    ("party", "classes", "right"),
    [("mediator", 12, 2), ("mediator", 7, 3), ("mediator", 2, 3), ("IPCC", 12, 2), ("WMO", 12, 1), ("WMO", 7, 2)],
)
def test_scores_count_everything_that_is_not_the_published_verdict_as_wrong(party, classes, right):
    scores = scores_of(analysed(), party, classes)
    assert scores.rows.figures.n == 5
    assert scores.rows.figures.accuracy.value == pytest.approx(right / 5)


def test_scores_stand_beside_the_constant_answer_and_without_nei():
    scores = scores_of(analysed(), "mediator", 2)
    assert scores.rows.figures.constant == "incorrect"
    assert scores.rows.figures.constant_accuracy.value == pytest.approx(4 / 5)
    assert scores.rows.without_nei.accuracy.value == pytest.approx(3 / 4)
    assert scores.rows.nei == 1


def test_rounds_show_where_everybody_stood_and_debates_that_closed_stay():
    found = {(one.party, one.round): one for one in analysed().by_round}
    assert {name for name, _ in found} == {"mediator", "IPCC", "WMO"}
    shares = {key: one.scores.rows.figures.accuracy.value for key, one in found.items()}
    assert shares["mediator", 1] == pytest.approx(1 / 5)
    assert shares["mediator", 2] == pytest.approx(2 / 5)
    assert shares["WMO", 1] == shares["WMO", 2] == pytest.approx(1 / 5)
    assert found["mediator", 1].still_open == 1
    assert found["mediator", 2].still_open == 0
    assert analysed(run()[:3]).by_round == ()


def test_distributions_are_on_the_classes_asked_for():
    found = by_party(analysed(classes=2).distributions)
    assert list(found) == ["published", "mediator", "IPCC", "WMO"]
    assert dict(found["published"].counts) == {"incorrect": 4, "correct": 1, NEI: 0, "no verdict": 0}
    assert dict(found["mediator"].counts) == {"incorrect": 3, "correct": 1, NEI: 1, "no verdict": 1}
    assert dict(found["WMO"].counts) == {"incorrect": 2, "correct": 1, NEI: 2, "no verdict": 1}
    assert len(by_party(analysed().distributions)["IPCC"].counts) == 14


def test_too_little_information_is_a_share_of_the_debated_claims():
    found = by_party(analysed().nei)
    assert {party: one.share.value for party, one in found.items()} == {"mediator": 0.2, "IPCC": 0.2, "WMO": 0.4}
    assert found["WMO"].share.interval == wilson_interval(2, 5)


def test_rounds_needed_and_reasons():
    rounds = analysed().rounds
    assert rounds.debates == 5
    assert rounds.needed == ((1, 4), (2, 1))
    assert dict(rounds.closed) == {"close verdicts": 3, "one informed advocate": 1, "not enough information": 1}
    assert rounds.opened == (("contrast", 1),)
    assert rounds.changed == 1


def test_agreement_is_that_of_informed_advocates_before_and_after():
    first, last = analysed().agreement
    assert (first.claims, last.claims) == (3, 3)
    before = [["incorrect", "correct", "incorrect"], ["incorrect", "mostly correct", "correct"]]
    ordinal = krippendorff_alpha(before, measurement="ordinal", order=CLIMATE_FEEDBACK.labels)
    assert first.ordinal.value == pytest.approx(ordinal)
    assert first.sides.value == pytest.approx(krippendorff_alpha([[0, 1, 0], [0, 1, 1]]))
    assert last.sides.value == 1.0
    assert last.ordinal.value > first.ordinal.value
    assert first.ordinal.interval.low <= first.ordinal.value <= first.ordinal.interval.high
    assert analysed([both("correct", NEI, "correct", "a")]).agreement[0].ordinal is None
    assert analysed([checked("a", ({"IPCC": "correct"}, "correct"))]).agreement == ()


def test_citations_are_counted_by_what_sentences_rest_on():
    found = by_party(analysed([full_transcript()], {}).citations)
    told = found["mediator"]
    assert (told.explanations, told.sentences, told.cited, told.attributed, told.in_house) == (1, 3, 1, 1, 1)
    assert (told.removed, told.with_foreign_numbers, told.entailed) == (1, 0, None)
    assert (found["Pamphlet"].removed, found["Pamphlet"].with_foreign_numbers) == (2, 1)
    said = (
        replace(sentence("One.", 1, 2), entailment=(0.9, 0.4)),
        replace(sentence("Two.", 1, 2), entailment=(None, 0.5)),
    )
    entailed = analysed([both("correct", "correct", "correct", "a", explanation=said)])
    assert ENTAILMENT_PRECISION in citation_table(entailed).note
    assert ENTAILMENT_PRECISION not in citation_table(analysed([full_transcript()], {})).note
    measured = by_party(entailed.citations)
    assert measured["mediator"].entailed.value == pytest.approx(2 / 3)
    assert measured["mediator"].entailed.n == 3


def test_leaving_an_advocate_out_shows_what_it_changes_on_every_level():
    ipcc, wmo = analysed().left_out
    assert (ipcc.advocate, ipcc.claims, wmo.advocate) == ("IPCC", 1, "WMO")
    assert [(level.classes, level.changed.value) for level in ipcc.levels] == [(12, 1.0), (7, 0.0), (5, 0.0), (2, 0.0)]
    assert [level.changed.value for level in wmo.levels] == [1.0] * 4
    assert [level.gain.difference.value for level in ipcc.levels] == [1.0, 0.0, 0.0, 0.0]
    assert [level.gain.difference.value for level in wmo.levels] == [1.0] * 4
    untold = replace(run()[3], without=(("IPCC", None), ("WMO", "correct")))
    ipcc, wmo = analysed([untold], {}).left_out
    assert (ipcc.claims, ipcc.failed, ipcc.levels) == (0, 1, ())
    assert wmo.levels[0].gain is None


def test_the_surest_verdicts_are_kept_first():
    risk = analysed(classes=2).risk
    # a, b right; c wrong; d right; e has no verdict.
    assert [point.coverage for point in risk.points] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert [point.accuracy.value for point in risk.points] == pytest.approx([1, 1, 2 / 3, 3 / 4])
    assert risk.area == pytest.approx((1 + 1 + 2 / 3 + 3 / 4) / 4)
    assert risk.unordered == pytest.approx(3 / 4)
    assert (risk.constant, risk.constant_accuracy) == ("incorrect", 0.8)


def test_equally_sure_verdicts_make_one_point_whatever_their_order():
    tied = [replace(one, verdict=replace(one.verdict, levels=UNSURE)) for one in run()[:4]]
    risk = analysed(tied, classes=2).risk
    assert [(point.coverage, point.accuracy.value) for point in risk.points] == [(1.0, 0.75)]
    assert risk.area == pytest.approx(0.75)
    assert analysed(tied[::-1], classes=2).risk == risk


def test_without_a_verdict_or_truth_there_is_no_curve_and_no_score():
    assert analysed([both(NEI, NEI, NEI, "e")]).risk is None
    without = analysed(truths={})
    assert (without.risk, without.scores, without.by_round, without.disagreements) == (None, (), (), ())
    assert [one.party for one in without.distributions] == ["mediator", "IPCC", "WMO"]


def test_disagreements_are_listed_farthest_first_and_nei_is_none():
    found = analysed().disagreements
    assert [(one.claim, one.truth, one.verdict, one.distance) for one in found] == [
        (claim_id("c"), "misleading", "correct", 7),
        (claim_id("b"), "inaccurate", "incorrect", 1),
    ]
    assert (found[0].confidence, found[0].explanation) == ("medium", "It is correct [1].")
    assert [one.claim for one in analysed(classes=7).disagreements] == [claim_id("c")]


def test_nei_can_be_the_truth():
    scale = CLIMATE_FEVER
    checks = [
        checked("a", ({"E": "SUPPORTS"}, "SUPPORTS"), scale=scale),
        checked("b", ({"E": scale.nei}, scale.nei), scale=scale),
    ]
    analysis = analysed(checks, {"a": "NOT_ENOUGH_INFO", "b": "NOT_ENOUGH_INFO"}, scale)
    assert scores_of(analysis, "mediator", 3).rows.figures.accuracy.value == 0.5
    assert [(one.claim, one.distance) for one in analysis.disagreements] == [(claim_id("a"), None)]
    assert analysis.risk.points[-1].coverage == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transcripts": []}, "no fact-check"),
        ({"truths": {"a": "purple"}}, "'purple'"),
        ({"scale": CLIMATE_FEVER}, "on the scale climate-feedback, not climate-fever"),
        ({"classes": 4}, "cannot be shown in 4 classes"),
    ],
    ids=range(4),
)
def test_what_cannot_be_analysed_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        analysed(**options)


def test_verdicts_published_on_another_scale_are_compared_in_two_classes():
    given = {"a": "false", "b": "mostly true", "c": "misleading", "d": "true"}
    transcripts = [checked(name, ({"IPCC": label}, label), scale=ACCURACY) for name, label in given.items()]
    truths = {"a": "inaccurate", "b": "correct but", "c": "mostly accurate", "d": "accurate"}
    analysis = analysed(transcripts, truths, ACCURACY)
    assert [len(one.classes) for one in analysis.scores[0].levels] == [2]
    assert scores_of(analysis, "mediator", 2).rows.figures.accuracy.value == 0.75
    assert analysis.n_classes == 2
    [missed] = analysis.disagreements
    assert (missed.claim, missed.truth, missed.verdict) == (claim_id("c"), "mostly accurate", "misleading")
    assert missed.distance is None
    assert dict(by_party(analysis.distributions)["published"].counts)["correct"] == 3
    with pytest.raises(InputError, match="compared in 2 classes at most, not in 5"):
        analysed(transcripts, truths, ACCURACY, classes=5)
    own = analysed(transcripts, {"a": "false", "c": "true"}, ACCURACY)
    assert [len(one.classes) for one in own.scores[0].levels] == [5, 2]


def test_the_analysis_is_data_for_json_and_the_same_twice():
    first, second = (json.dumps(analysis_data(analysed())) for _ in range(2))
    assert first == second
    data = json.loads(first)
    assert data["scale"] == "climate-feedback"
    assert data["scores"][0]["levels"][0]["rows"]["figures"]["accuracy"]["value"] == pytest.approx(0.4)


def test_failed_checks_are_no_lack_of_information():
    lost = both(None, None, None, "g", reason="not enough information")
    lost = replace(lost, verdict=replace(lost.verdict, outcome="failed", label=None, error="The server was down."))
    analysis = analysed([*run(), lost])
    assert dict(analysis.outcomes)["failed"] == 1
    assert dict(analysis.rounds.closed)["not enough information"] == 1
    assert dict(analysis.rounds.closed)["a model call failed"] == 1
    [failed] = analysis.failed
    assert (failed.claim, failed.text, failed.error) == (lost.claim.id, "g", "The server was down.")
    assert failed_table(analysis).rows == (("g", "The server was down."),)
    assert not failed_table(analysed()).rows
