"""Direct scoring, PairS, zero-shot contrast and probes: what they ask, and that both orders cancel a pull to a side."""

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.judging import (
    ContrastProbe,
    Item,
    PointwiseProbe,
    Preferences,
    QualityRequests,
    StateExtractor,
    aspect_names,
    fit_contrast,
    quality,
    sort_items,
)
from climassay.judging.fitting import fit_pointwise
from climassay.judging.judges import (
    DirectScoring,
    PairwisePrompt,
    StateTable,
    ZeroShotContrast,
    layer_choices,
    layers_of,
)
from climassay.judging.preferences import CERTAIN_LOG_ODDS, WORDINGS
from climassay.learning import harvest
from climassay.models import OptionRequest, OptionScores
from planted_model import WIDTH, PlantedModel, extractor, items
from tiny_models import smollm2

SOURCE = "Sea level rises because water expands as it warms and because ice on land melts."
ITEMS = [
    Item("a", "Warm water and melting land ice raise the sea.", SOURCE, "g", 3.0),
    Item("b", "The sea rises.", SOURCE, "g", 2.0),
    Item("c", "Bananas are yellow.", SOURCE, "g", 1.0),
]
PAIRS = np.array([[0, 1], [0, 2], [1, 2]])


class Scorer:
    """Answers from the words of the prompt: likes the longer text and, by ``pull`` nats, the first option."""

    name, fingerprint = "fake:scorer", "0" * 64

    def __init__(self, pull: float = 0.0, broken: str = "") -> None:
        self.pull, self.broken = pull, broken
        self.requests: list[OptionRequest] = []

    def option_logprobs(self, requests, *, on_result=None):
        self.requests += requests
        answers = []
        for index, request in enumerate(requests):
            text = request.messages[-1].content
            if self.broken and self.broken in text:
                answers.append(OptionScores.failed("It broke."))
            elif len(request.options) == 2:
                first, second = (len(part.split("\n")[0]) for part in text.split("Summary ")[1:3])
                answers.append(OptionScores((0.1 * first + self.pull, 0.1 * second)))
            else:
                words = len(text.split("Summary:")[1].split("\n")[0].split())
                answers.append(OptionScores(tuple(-abs(words / 2 - place) for place in range(5))))
            if on_result is not None:
                on_result(index, answers[-1])
        return answers


def test_pairs_asks_in_both_orders_and_a_pull_to_one_position_cancels() -> None:
    straight, pulled = (
        PairwisePrompt(Scorer(pull), QualityRequests(quality("text", "relevance"))) for pull in (0, 3.0)
    )
    first, second = straight.compare(ITEMS, PAIRS), pulled.compare(ITEMS, PAIRS)
    assert second.log_odds == pytest.approx(first.log_odds)
    once = PairwisePrompt(Scorer(3.0), QualityRequests(quality("text", "relevance")), orders=1).compare(ITEMS, PAIRS)
    assert once.log_odds == pytest.approx(first.log_odds + 3.0)
    mirrored = straight.compare(ITEMS, PAIRS[:, ::-1])
    assert mirrored.log_odds == pytest.approx(-first.log_odds)
    assert first.probabilities == pytest.approx(1 - mirrored.probabilities)


def test_direct_scoring_gives_one_half_or_nothing_as_published() -> None:
    scorer = Scorer()
    method = DirectScoring(scorer, QualityRequests(quality("text", "coherence")))
    assert method.scores(ITEMS).tolist() == [4, 1, 1]  # of 9, 3 and 3 words: 4.5, 1.5, 1.5
    judged = method.compare(ITEMS, PAIRS)
    assert judged.log_odds.tolist() == [CERTAIN_LOG_ODDS, CERTAIN_LOG_ODDS, 0]
    assert len(scorer.requests) == 2 * 3
    expected = DirectScoring(scorer, QualityRequests(quality("text", "coherence")), rule="expected").scores(ITEMS)
    weights = np.exp([-1.5, -0.5, -0.5, -1.5, -2.5])
    assert expected[1] == pytest.approx((weights @ np.arange(5)) / weights.sum())


def test_a_failed_answer_is_marked_and_undecided() -> None:
    questions = QualityRequests(quality("text", "relevance"))
    for method in (PairwisePrompt(Scorer(broken="Bananas"), questions), DirectScoring(Scorer(broken="Ban"), questions)):
        judged = method.compare(ITEMS, PAIRS)
        assert judged.failed.tolist() == [False, True, True]
        assert judged.log_odds[1:].tolist() == [0, 0]
        assert judged.log_odds[0] > 0
        preferences = Preferences(method, ITEMS)
        matrix = preferences.matrix()
        assert matrix + matrix.T == pytest.approx(np.ones((3, 3)))
        assert (preferences.n_pairs, preferences.failed) == (3, 2)


def test_preferences_are_asked_for_once_and_sort_the_items() -> None:
    scorer = Scorer()
    preferences = Preferences(PairwisePrompt(scorer, QualityRequests(quality("text", "relevance"))), ITEMS)
    ranking = sort_items(3, preferences.ask, method="greedy")
    assert [ITEMS[index].id for index in ranking.order] == ["a", "c", "b"]
    asked = len(scorer.requests)
    preferences.ask(PAIRS[:, ::-1])
    preferences.matrix()
    assert len(scorer.requests) == 6
    assert asked <= 6


@pytest.mark.parametrize("wording", WORDINGS)
def test_every_template_of_every_wording_can_be_filled_in(wording: int) -> None:
    qualities = [quality("text", aspect, wording=wording) for aspect in aspect_names()]
    qualities += [quality("claims", wording=wording), quality("confidence", wording=wording)]
    qualities += [quality("own", sentence="It names a physical mechanism.", wording=wording)]
    for one in qualities:
        questions = QualityRequests(one)
        requests = [*questions.direct(ITEMS), *questions.point(ITEMS)]
        compared = [*questions.pairs(ITEMS, PAIRS), *questions.contrast(ITEMS, PAIRS)]
        for request in (*requests, *compared):
            text = "".join(message.content for message in request.messages)
            assert "{" not in text
            assert "\n\n\n" not in text
            assert one.kind == "claims" or SOURCE in text
            assert request.assistant_prefix == request.assistant_prefix.strip()
            assert all(option.startswith(" ") for option in request.options)
        assert all(ITEMS[i].text in r.messages[-1].content for r, (i, _) in zip(compared[3:], PAIRS, strict=True))
        if one.kind == "own":
            assert "It names a physical mechanism." in requests[0].messages[-1].content


def test_what_cannot_be_compared_is_told() -> None:
    other = [ITEMS[0], Item("d", "Ice.", "Another article.")]
    with pytest.raises(InputError, match="'a' and 'd' have different source texts"):
        QualityRequests(quality("text", "relevance")).contrast(other, np.array([[0, 1]]))
    QualityRequests(quality("claims")).contrast(other, np.array([[0, 1]]))
    with pytest.raises(InputError, match="no aspect 'beauty': there are coherence"):
        quality("text", "beauty")
    with pytest.raises(InputError, match="no wording 4"):
        quality("claims", wording=4)
    with pytest.raises(InputError, match="needs a sentence"):
        quality("own")


@pytest.mark.model
def test_zero_shot_contrast_is_what_the_models_own_answers_say() -> None:
    """The answer logits of the harvest equal those of scoring the same prompts."""
    questions = QualityRequests(quality("text", "relevance"))
    judged = ZeroShotContrast(StateExtractor(smollm2(), questions)).compare(ITEMS, PAIRS)
    both = np.concatenate([PAIRS, PAIRS[:, ::-1]])
    scores = smollm2().option_logprobs(questions.contrast(ITEMS, both))
    odds = np.array([score.logprobs[0] - score.logprobs[1] for score in scores])
    assert judged.log_odds == pytest.approx((odds[:3] - odds[3:]) / 2, abs=1e-4)
    assert not judged.failed.any()


@pytest.mark.model
def test_probes_are_antisymmetric_and_read_the_layers_they_were_fitted_on() -> None:
    questions = QualityRequests(quality("text", "relevance"))
    extractor = StateExtractor(smollm2(), questions, layers=(5, 16, -1))
    labels = np.array([item.label for item in ITEMS])
    both = np.concatenate([PAIRS, PAIRS[:, ::-1]])
    found = extractor.contrasts(ITEMS, both, layers=(16,))
    assert found.states.shape == (6, 576)
    fit = fit_contrast(found.states, both, labels, groups=["g"] * 3, regularisation=1.0)
    method = ContrastProbe(extractor, fit.probe, layers=(16,))
    forward, backward = method.compare(ITEMS, PAIRS), method.compare(ITEMS, PAIRS[:, ::-1])
    assert forward.log_odds == pytest.approx(-backward.log_odds, abs=1e-4)
    assert (forward.log_odds > 0).all()  # its own training pairs
    alone = harvest(smollm2(), questions.contrast(ITEMS, both), layers=(16,))
    np.testing.assert_allclose(alone.states[:, 0, 0] - alone.states[:, 1, 0], found.states, atol=1e-4)
    states, _ = extractor.item_states(ITEMS, layers=(5, -1))
    assert states.shape == (3, 2 * 576)
    point = PointwiseProbe(
        extractor,
        fit_pointwise(states, labels, groups=["g"] * 3, pairs=PAIRS, regularisation=1.0).probe,
        layers=(5, -1),
    )
    scores, _ = point.scores(ITEMS)
    assert point.compare(ITEMS, PAIRS).log_odds == pytest.approx(scores[PAIRS[:, 0]] - scores[PAIRS[:, 1]], abs=1e-5)
    assert extractor.cost.tokens_computed < extractor.cost.tokens_two_pass / 2


@pytest.mark.model
def test_an_item_too_long_for_the_model_fails_alone() -> None:
    items = [*ITEMS, Item("long", "word " * 9000, SOURCE, "g", 0.0)]
    pairs = np.array([[0, 1], [0, 3]])
    judged = ZeroShotContrast(StateExtractor(smollm2(), QualityRequests(quality("text", "relevance")))).compare(
        items, pairs
    )
    assert judged.failed.tolist() == [False, True]
    assert judged.log_odds[1] == 0


@pytest.mark.model
def test_layers_to_choose_among_lie_in_the_upper_half_and_end_with_the_last() -> None:
    assert layer_choices(smollm2(), ()) == ((16,), (20,), (24,), (-1,))
    assert layer_choices(PlantedModel(), ()) == ((2,), (3,), (-1,))
    assert layer_choices(smollm2(), ((3, -1),)) == ((3, -1),)
    assert layer_choices(object(), ()) == ((-1,),)


@pytest.mark.model
@pytest.mark.parametrize(("sets", "expected"), [([(-1,), (16, 3)], (3, 16, -1)), ([(2,), (2, -2)], (2, -2))])
def test_each_layer_is_harvested_once(sets, expected) -> None:
    assert layers_of(sets) == expected


GOOD, BAD = [[0, 1], [1, 2]], [[3, 4], [4, 5]]


@pytest.mark.parametrize("blocks", [[GOOD, BAD], [BAD, GOOD]], ids=["then bad", "then good"])
def test_comparisons_that_fail_in_one_call_stand_beside_those_of_another(blocks):
    table = StateTable(extractor(PlantedModel(fail=(" 1-0",)), layers=(1, 2)), items())
    for block in blocks:
        table.contrasts(items(), np.array(block))
    found = table.contrasts(items(), np.array(GOOD + BAD), layers=[2])
    assert found.failed.tolist() == [False, False, True, True]
    assert found.states.shape == (4, WIDTH)
    assert np.abs(found.states[:2]).sum(axis=1).min() > 0
    assert not found.states[2:].any()
