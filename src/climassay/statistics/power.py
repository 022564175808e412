"""How many questions are enough."""

import math

import numpy as np

from climassay.errors import InputError


def accuracy_sample_size(accuracy: float, half_width: float, level: float = 0.95) -> int:
    """Questions needed for an interval of plus or minus ``half_width`` around an accuracy (normal approximation).

    Example: 245 questions near 80% give about five points each side: ``accuracy_sample_size(0.8, 0.05) == 246``.

    Args:
        accuracy: Expected, above 0 and below 1.
        half_width: In the same unit, above 0.
        level: Confidence level of the interval.

    Raises:
        InputError: The accuracy or the half-width lies outside its range.
    """
    from scipy.stats import norm

    if not 0 < accuracy < 1 or half_width <= 0:
        raise InputError("Sample size needs an accuracy between 0 and 1 and a positive half-width.")
    z = float(norm.ppf((1 + level) / 2))
    return math.ceil(z * z * accuracy * (1 - accuracy) / half_width**2)


def mcnemar_power(gain: float, loss: float, n: int, alpha: float = 0.05) -> float:
    """Power of the exact two-sided McNemar test.

    Args:
        gain: Probability that only the second system is right on an item.
        loss: Probability that only the first system is right.
        n: Number of items.
        alpha: Significance level.

    Returns:
        Probability that p <= alpha.

    Raises:
        InputError: Probabilities that are none or sum to more than 1, or no items.
    """
    from scipy.stats import binom

    if gain < 0 or loss < 0 or gain + loss > 1 or n < 1:
        raise InputError("Power needs probabilities of gain and loss that sum to at most 1, and n >= 1.")
    discordance = gain + loss
    if discordance == 0:
        return 0.0
    discordant = np.arange(1, n + 1)
    weight = binom.pmf(discordant, n, discordance)
    discordant, weight = discordant[weight >= 1e-12], weight[weight >= 1e-12]
    # The largest count k with P(X <= k) <= alpha / 2 under a fair coin bounds the lower rejection region.
    k = binom.ppf(alpha / 2, discordant, 0.5)
    k -= binom.cdf(k, discordant, 0.5) > alpha / 2
    share = gain / discordance
    rejected = binom.cdf(k, discordant, share) + binom.sf(discordant - k - 1, discordant, share)
    return float(weight @ np.where(k >= 0, rejected, 0.0))


def mcnemar_sample_size(gain: float, loss: float, power: float = 0.8, alpha: float = 0.05, limit: int = 100_000) -> int:
    """Smallest n (found by doubling and bisection) at which :func:`mcnemar_power` reaches ``power``.

    Raises:
        InputError: gain equals loss, or more than ``limit`` items would be needed.
    """
    if gain == loss:
        raise InputError("Systems that gain and lose alike cannot be told apart by any number of items.")
    high = 8
    while mcnemar_power(gain, loss, high, alpha) < power:
        high *= 2
        if high > limit:
            raise InputError(f"More than {limit} items would be needed.")
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if mcnemar_power(gain, loss, middle, alpha) >= power else (middle, high)
    return high
