"""Evaluations of one scripted model on the primer, kept once by an earlier version and repeated by this one.

``tests/data/kept_evaluations.sqlite.gz`` holds the records that the last commit with two engines left of both, and
``kept_evaluations.json`` the figures that it computed.
"""

from climassay.questions import PRIMER, read_questions
from scripted_model import ScriptedModel

SCORINGS = ("likelihood", "letter", "text", "text-pmi")
ORDERS = 3


def model():
    """Weighs options by their letters' place in the prompt and its length, and writes letters, words and sentences."""

    def choose(prompt, options):
        return [-1.0 - (len(prompt) * (place + 3) + 7 * len(option)) % 11 / 4 for place, option in enumerate(options)]

    def write(prompt, schema):
        if "Missing word" in prompt or "one scientific word" in prompt:
            return " " + prompt.split()[len(prompt) % 20]
        return " " + "abcd"[len(prompt) % 4] + ") It is so because the ocean warms."

    return ScriptedModel(choose=choose, write=write)


def few(kind, count):
    """The first questions of a kind."""
    return read_questions(PRIMER).of_kind(kind)[:count]
