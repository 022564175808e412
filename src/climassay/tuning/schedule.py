"""The learning rate of every step, a function of nothing but the step: there is no state to save."""

import math

from climassay.tuning.config import TuningConfig


def learning_rate(config: TuningConfig, step: int, steps: int) -> float:
    """Learning rate of a step.

    Linear warm-up over the first ``round(warmup x steps)`` steps, the last of which has the full rate; then cosine or
    linear decay that would reach 0 at the step after the last.

    Args:
        config: The settings.
        step: Number of the step, from 0.
        steps: Of the whole training.
    """
    rising = round(config.warmup * steps)
    if step < rising:
        return config.learning_rate * (step + 1) / rising
    share = (step - rising) / max(1, steps - rising)
    if config.schedule == "cosine":
        return config.learning_rate * (1 + math.cos(math.pi * share)) / 2
    return config.learning_rate * (1 - share if config.schedule == "linear" else 1.0)
