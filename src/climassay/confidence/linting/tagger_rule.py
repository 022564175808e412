"""The rule on tags that a trained tagger would not have given, and the tagger with its measured accuracy."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.confidence.extraction.cleaning import clean_sentence
from climassay.confidence.linting.draft import Draft, Remark, Rule, Sentence
from climassay.confidence.vocabulary import TAGS, Tag
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.confidence.tagging.tagger import Tagger
    from climassay.models.contract import Encoder


TAGGER_DIFFERS = "tagger-differs"
CERTAINTY = 0.7
"""Probability of another level from which on a difference is reported."""
_SURROUNDING = 5
"""Sentences each side that the tagger is shown."""


@dataclass(frozen=True, slots=True)
class MeasuredAccuracy:
    """How often a tagger was right on statements that it had not seen."""

    value: float
    low: float
    high: float
    """Ends of the 95% interval."""
    items: int
    on: str
    """What it was measured on, in words."""

    def __str__(self) -> str:
        return f"{self.value:.0%} [{self.low:.0%} to {self.high:.0%}] of {self.items:,} statements ({self.on})"


def tagger_rule(tagger: "Tagger", accuracy: MeasuredAccuracy | None, certainty: float = CERTAINTY) -> Rule:
    """A rule that names tags which differ from a tagger's.

    Only sentences with one tag are looked at: of others it is not clear which words the tag speaks about.

    Args:
        tagger: Trained on reports.
        accuracy: As it was measured; appears in every finding. None is reported as not measured.
        certainty: Least probability of the tagger's level.

    Raises:
        InputError: The certainty is not a probability above one half.
    """
    if not 0.5 < certainty < 1:
        raise InputError(f"A certainty is a probability above 0.5 and below 1, not {certainty:g}.")
    known = str(accuracy) if accuracy else "not measured"

    def check(draft: Draft) -> Iterator[Remark]:
        asked = list(tagged_sentences(draft))
        if not asked:
            return
        levels = list(tagger.levels)
        table = tagger.predict_proba([(sentence.text, context) for sentence, _, context in asked])
        for (sentence, tag, _), row in zip(asked, table, strict=True):
            best = max(range(len(levels)), key=lambda place: float(row[place]))
            if tag in levels and levels[best] != tag and float(row[best]) >= certainty:
                mark = next(mark for mark in sentence.marks if mark.levels)
                yield Remark(
                    *sentence.at(mark.start, mark.end),
                    f"The tagger gives {levels[best]} confidence a probability of {float(row[best]):.0%} and {tag} "
                    f"confidence {float(row[levels.index(tag)]):.0%} (its accuracy: {known}).",
                )

    return Rule(
        TAGGER_DIFFERS,
        "note",
        "tag that the tagger would not give",
        "A tagger that was trained on IPCC reports gives another level with a probability of at least "
        f"{certainty:.0%}. It reads words, not evidence; its accuracy: {known}.",
        (),
        check,
    )


def tagged_sentences(draft: Draft) -> Iterator[tuple[Sentence, Tag, str]]:
    """Sentences with exactly one level, the level, and the sentences of their block around them as one text."""
    for place, sentence in enumerate(draft.sentences):
        levels = [mark for mark in sentence.marks if mark.levels and not mark.attributive]
        if len(levels) != 1 or len(levels[0].levels) != 1 or sentence.block.kind == "heading":
            continue
        # A bracket that was cut off from its sentence says nothing that could be tagged.
        if not any(map(str.isalpha, clean_sentence(sentence.text))):
            continue
        near = draft.sentences[max(0, place - _SURROUNDING) : place + _SURROUNDING + 1]
        context = " ".join(one.text for one in near if one.block == sentence.block)
        yield sentence, levels[0].levels[0], context


def levels_of(row: Sequence[float], levels: Sequence[Tag]) -> list[tuple[Tag, float]]:
    """The probability of each level, highest level first, for showing."""
    pairs = [(level, float(row[place])) for place, level in enumerate(levels)]
    return sorted(pairs, key=lambda pair: -TAGS.index(pair[0]))


@dataclass(frozen=True, slots=True)
class OpenedTagger:
    """A tagger, ready to be asked."""

    tagger: "Tagger"
    accuracy: MeasuredAccuracy | None
    """As it was measured before the tagger was saved; None where its file does not tell."""
    equal_accuracy: MeasuredAccuracy | None = None
    """The same where all levels are equally frequent, of answers for that."""
    shares: Sequence[float] | None = None
    """Shares of the levels among what it was trained on, for which its probabilities are."""


def open_tagger(path: Path | None = None, encoder: "Callable[[str], Encoder] | None" = None) -> OpenedTagger:
    """Open a tagger.

    Args:
        path: A file of ``climassay confidence tag train``; None takes the bundled one.
        encoder: Gives the encoder of a name, where it may be loaded already; by default it is loaded when needed.

    Raises:
        InputError: The file is missing or is not a tagger.
        ModelError: A model that the tagger reads is not there.
    """
    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger

    tagger = load_tagger(BUNDLED_TAGGER if path is None else path)
    reads = tagger.provenance
    if encoder is not None and reads.encoder and not reads.model:
        tagger = tagger.with_models(encoder(reads.encoder))
    share, level = max(zip(tagger.shares, tagger.levels, strict=True))
    on = f"{reads.data}, sections it was not trained on"

    def accuracy(measure: str, on: str) -> MeasuredAccuracy | None:
        wanted = [reads.measured.get(name) for name in (measure, f"{measure}_low", f"{measure}_high", "n")]
        known = [value for value in wanted if value is not None and not math.isnan(value)]
        return MeasuredAccuracy(known[0], known[1], known[2], round(known[3]), on) if len(known) == 4 else None

    return OpenedTagger(
        tagger,
        accuracy("accuracy", f"{on}; always to say {level} is right for {share:.0%}"),
        accuracy("equal_accuracy", f"{on}; chance is {1 / len(tagger.levels):.0%}"),
        tagger.shares,
    )
