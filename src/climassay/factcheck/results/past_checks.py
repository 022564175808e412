"""Past fact-checks of the same claim, or of a similar one, in the records of a workspace."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from climassay.claim_identity import claim_key
from climassay.factcheck.check_store import checks
from climassay.grounding.quantities import foreign_quantities
from climassay.models.contract import Encoder
from climassay.models.encoders import cached_vectors
from climassay.records import Records, tables

TRANSCRIPTS = "transcript"
"""Table of results in which each debate is a row; see :mod:`climassay.factcheck.transcript`."""
SIMILAR = 0.75
"""Cosine of the bundled encoder from which a claim is shown as similar.

Of 30 pairs of a claim and its paraphrase 27 reach it, of the 31,878 pairs of different claims of Climate Feedback,
Skeptical Science and the primer 20 do, most of which are one myth in two forms. A negation or another number changes
the cosine little: similarity marks candidates, and what differs is shown beside it.
"""

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|false|untrue|hoax|myth|stopped|fails?|hardly)\b|n['’]t\b"
    r"|\b(?:un|non)-?(?:related|natural|likely|affected|able)\b",
    re.IGNORECASE,
)
_OPPOSITES = tuple(
    (re.compile(rf"\b(?:{first})\b", re.IGNORECASE), re.compile(rf"\b(?:{second})\b", re.IGNORECASE))
    for first, second in (
        (
            r"increas\w*|ris(?:es?|en|ing)|rose|grow(?:s|n|ing|th)?|grew|gain(?:s|ed|ing)?|expand\w*|accelerat\w*|more|up",
            r"decreas\w*|declin\w*|fall(?:s|en|ing)?|fell|shr[iau]nk\w*|los(?:es?|t|ing)|decelerat\w*|slow\w*|less|fewer|down",
        ),
        (r"warm\w*|heat\w*|hot(?:ter|test)?", r"cool\w*|cold\w*|freez\w*"),
        (r"strong\w*|strengthen\w*|wors[et]\w*", r"weak\w*|better"),
        (r"high(?:er|est)?|above|faster", r"low(?:er|est)?|below|slower"),
        (r"before|precede\w*|leads?", r"after|follow\w*|lags?"),
        (r"good|beneficial|harmless|safe", r"bad|harmful|dangerous|harm\w*"),
    )
)


@dataclass(frozen=True, slots=True)
class PastCheck:
    """A debate in the records about the same or a similar claim."""

    run: str
    """Id of the run that holds it."""
    when: str
    """When the run began: ISO 8601, UTC."""
    claim: str
    verdict: str | None
    """Label; None where the debate ended without one."""
    outcome: str
    """As in :class:`~climassay.factcheck.transcript.Verdict`."""
    scale: str
    similarity: float
    """Cosine of the two claims; 1 for the same claim."""
    same: bool
    """The same text, but for case, spacing and quotation marks. A similar claim may say something else."""
    differs_in_numbers: bool
    """One of the two has a quantity that the other has not."""
    differs_in_negation: bool
    """Only one of the two holds a negation, or a word and its opposite stand against each other (rising, falling)."""


def find_past(
    store: Records, claim_text: str, encoder: Encoder, *, threshold: float = SIMILAR, most: int | None = None
) -> list[PastCheck]:
    """Debates in the records about the same claim or a similar one.

    Vectors of claims are kept in the cache folder, by fingerprint of the encoder. Debates that failed are left out.

    Args:
        store: The records of a workspace; they are only read.
        claim_text: What is to be checked.
        encoder: Compares claims.
        threshold: Cosine from which a claim is similar.
        most: Maximum number of checks returned; all by default.

    Returns:
        The same claim first, then the most similar ones; among equals the newest first.

    Notes:
        3000 transcripts of 107 kB take about one second; encoding 3000 claims that are not in the cache yet, 13 more.
    """
    stored = _stored(store)
    if not stored:
        return []
    texts = list(dict.fromkeys(one.claim for one in stored))
    vectors = cached_vectors([claim_text, *texts], encoder, "past_checks")
    cosines = dict(zip(texts, (vectors[1:] @ vectors[0]).tolist(), strict=True))
    wanted = claim_key(claim_text)
    found = []
    for text in texts:
        same = claim_key(text) == wanted
        if same or cosines[text] >= threshold:
            found += [
                PastCheck(
                    one.run,
                    datetime.fromtimestamp(one.began, UTC).isoformat(timespec="seconds"),
                    text,
                    one.verdict,
                    one.outcome,
                    one.scale,
                    similarity=1.0 if same else min(1.0, cosines[text]),
                    same=same,
                    differs_in_numbers=not same
                    and bool(foreign_quantities(claim_text, [text]) or foreign_quantities(text, [claim_text])),
                    differs_in_negation=not same and _differ_in_negation(claim_text, text),
                )
                for one in stored
                if one.claim == text
            ]
    found.sort(key=lambda check: check.when, reverse=True)
    found.sort(key=lambda check: (not check.same, -check.similarity))
    return found[:most]


# ------------------------------------------------------------------------------------------------ what is stored


@dataclass(frozen=True, slots=True)
class _Stored:
    """A debate in the records, without what was said in it."""

    run: str
    began: float
    claim: str
    verdict: str | None
    outcome: str
    scale: str


def _stored(store: Records) -> list[_Stored]:
    """All debates that did not fail, oldest first.

    Of those that were asked for in the browser the claim and how it ended are kept by themselves; out of all other
    transcripts, which are long, the database picks what is needed.
    """
    results, runs = tables.results, tables.runs

    def picked(column: sa.Column[str], *paths: tuple[str, ...]) -> list[sa.ColumnElement[str]]:
        if store.database.is_sqlite:
            return [sa.func.json_extract(column, "$." + ".".join(path)) for path in paths]
        return [sa.cast(column, sa.JSON)[path].as_string() for path in paths]

    fields = picked(results.c.row, ("claim", "text"), ("verdict", "label"), ("verdict", "outcome"), ("scale",))
    others = (
        sa.select(results.c.run, runs.c.started_at, *fields)
        .join(runs, runs.c.id == results.c.run)
        .where(results.c.name == TRANSCRIPTS)
        .order_by(results.c.id)
    )
    queries = [others]
    if store.database.has_table(checks):
        held = checks.c.outcome.is_not(None), checks.c.run.is_not(None)
        asked = sa.select(checks.c.run, runs.c.started_at, checks.c.claim, checks.c.label, checks.c.outcome)
        asked = asked.add_columns(*picked(checks.c.settings, ("scale",))).join(runs, runs.c.id == checks.c.run)
        queries = [asked.where(*held), others.where(results.c.run.not_in(sa.select(checks.c.run).where(*held)))]
    with store.database.read() as connection:
        found = [_Stored(*row) for query in queries for row in connection.execute(query)]
    found.sort(key=lambda one: one.began)
    return [one for one in found if one.claim and one.outcome != "failed"]


# --------------------------------------------------------------------------------------------------- comparisons


def _differ_in_negation(first: str, second: str) -> bool:
    if bool(_NEGATION.search(first)) != bool(_NEGATION.search(second)):
        return True
    words = [re.findall(r"\w+", text.lower()) for text in (first, second)]
    own, others = (" ".join(word for word in mine if word not in theirs) for mine, theirs in (words, words[::-1]))
    return any(
        (one.search(own) and other.search(others)) or (other.search(own) and one.search(others))
        for one, other in _OPPOSITES
    )
