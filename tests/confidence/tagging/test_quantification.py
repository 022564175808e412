import numpy as np
import pytest

from climassay.confidence.tagging import estimate_shares
from climassay.confidence.tagging.quantification import adjust_shares, compute_share_residuals
from climassay.errors import InputError

RATES = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])


def answers(counts) -> np.ndarray:
    return np.repeat(np.eye(len(counts)), counts, axis=0)


def test_known_error_is_taken_out_of_the_counts() -> None:
    shares = np.array([0.5, 0.1, 0.4])
    found = adjust_shares(shares @ RATES * 1000, RATES)
    assert found == pytest.approx(shares, abs=1e-5)


def test_by_hand_for_two_levels() -> None:
    # Adjusted count (Forman 2008): (0.5 - 0.2) / (0.8 - 0.2).
    assert adjust_shares([50, 50], [[0.8, 0.2], [0.2, 0.8]]) == pytest.approx([0.5, 0.5], abs=1e-6)
    assert adjust_shares([38, 62], [[0.8, 0.2], [0.2, 0.8]]) == pytest.approx([0.3, 0.7], abs=1e-5)


def test_intervals_cover_and_carry_the_taggers_error() -> None:
    generator = np.random.default_rng(1)
    truth, covered, widths = np.array([0.2, 0.5, 0.3]), 0, []
    for seed in range(16):
        errors = np.stack([generator.multinomial(150, row) for row in RATES])
        said = np.concatenate([generator.choice(3, count, p=RATES[level])
                               for level, count in enumerate(generator.multinomial(300, truth))])  # fmt: skip
        found = estimate_shares(np.eye(3)[said], errors, samples=40, seed=seed)
        score = truth @ [0, 1, 2]
        covered += found.score_low <= score <= found.score_high
        widths.append(found.score_high - found.score_low)
    assert covered >= 13
    plain = np.std([generator.choice(3, 300, p=truth).mean() for _ in range(200)]) * 3.92
    assert np.mean(widths) > 1.3 * plain


def test_groups_are_resampled_as_wholes() -> None:
    said = answers([50, 50])
    errors = 1e6 * np.eye(2)
    alone = estimate_shares(said, errors, samples=300)
    together = estimate_shares(said, errors, groups=["a"] * 50 + ["b"] * 50, samples=300)
    assert together.low[0] == pytest.approx(0, abs=1e-3)
    assert alone.low[0] > 0.3


@pytest.mark.parametrize(
    ("probabilities", "confusion", "more"),
    [
        (np.zeros((0, 2)), np.eye(2), {}),
        (np.eye(2), np.eye(3), {}),
        (np.eye(2), [[1, 0], [0, 0]], {}),
        (np.eye(2), np.eye(2), {"groups": ["a"]}),
        (np.eye(2), np.eye(2), {"scores": [1.0]}),
    ],
    ids=["nothing", "other levels", "a level never tested", "groups", "scores"],
)
def test_what_does_not_fit_is_refused(probabilities, confusion, more) -> None:
    with pytest.raises(InputError):
        estimate_shares(probabilities, confusion, samples=5, **more)


def documents(count, seed):
    """Documents whose levels a tagger tells badly: probabilities stay near what is usual, and drift by document."""
    generator = np.random.default_rng(seed)
    usual = np.array([0.1, 0.3, 0.5, 0.1])
    truth, given, names = [], [], []
    for number in range(count):
        shares = generator.dirichlet(30 * usual)
        drift = generator.dirichlet(60 * usual)
        truth += generator.choice(4, 80, p=shares).tolist()
        given += [0.2 * shares + 0.8 * drift] * 80
        names += [number] * 80
    return np.array(truth), np.array(given), names


def test_expectation_carries_the_spread_between_documents() -> None:
    truth, given, names = documents(40, 1)
    residuals = compute_share_residuals(truth, given, names)
    assert residuals.shape == (40, 4)
    assert residuals.sum(axis=1) == pytest.approx(0, abs=1e-9)
    fresh, unseen, places = documents(40, 2)
    covered = 0
    for number in range(40):
        own = np.array(places) == number
        found = estimate_shares(unseen[own], residuals=residuals, samples=200)
        covered += found.score_low <= fresh[own].mean() - 1 <= found.score_high
    assert covered >= 34


def test_small_documents_tell_nothing() -> None:
    truth, given, names = documents(6, 1)
    assert len(compute_share_residuals(truth, given, names, min_statements=80)) == 6
    with pytest.raises(InputError, match="at least 5"):
        compute_share_residuals(truth, given, names, min_statements=81)
    with pytest.raises(InputError, match="give one of them"):
        estimate_shares(given)
    with pytest.raises(InputError, match="at least five rows"):
        estimate_shares(given, residuals=np.zeros((4, 4)))
