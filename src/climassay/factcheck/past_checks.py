"""Search for earlier fact-checks of the same or a similar claim, in all runs of a workspace."""

import re
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from climassay.claim_identity import claim_key
from climassay.factcheck.check_records import iso_time
from climassay.factcheck.check_store import checks
from climassay.grounding.quantities import find_foreign_quantities
from climassay.models.contract import Encoder
from climassay.models.encoders import cached_vectors
from climassay.records import Records, tables

TRANSCRIPTS = "transcript"
"""Name of the result table with a transcript in each row; see :mod:`climassay.factcheck.transcript`."""
MIN_SIMILARITY = 0.75
"""Minimum cosine similarity of similar claims, measured for the bundled encoder.

Of 30 pairs of a claim and its paraphrase, 27 reach it. Of the 31,878 pairs of different claims by Climate Feedback,
Skeptical Science and the primer, 20 do; most of these pairs are two forms of one myth. Negations and different numbers
change the similarity little, so :class:`PastCheck` reports them separately.
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
    """An earlier fact-check of the same or a similar claim."""

    run: str
    """Id of the run of the fact-check."""
    when: str
    """Start time of the run: ISO 8601, UTC."""
    claim: str
    verdict: str | None
    """Label of the verdict; None if the debate ended without one."""
    outcome: str
    """Outcome of the debate, as in :class:`~climassay.factcheck.transcript.Verdict`."""
    scale: str
    demonstration: bool
    """Whether a very small model took part; the verdict is then not reliable."""
    similarity: float
    """Cosine similarity of the claims; 1 for the same claim."""
    same: bool
    """Whether the texts of the claims are equal apart from case, spacing and quotation marks."""
    differs_in_numbers: bool
    """Whether one claim states a quantity that the other does not."""
    differs_in_negation: bool
    """Whether only one claim has a negation, or the claims use opposite words (rising, falling)."""


def find_past_checks(
    store: Records,
    claim_text: str,
    encoder: Encoder,
    *,
    min_similarity: float = MIN_SIMILARITY,
    limit: int | None = None,
) -> list[PastCheck]:
    """Return earlier fact-checks of the same or a similar claim; failed debates are left out.

    Vectors of claims are cached in the cache folder by the encoder's fingerprint.

    Args:
        store: Records of a workspace; nothing is written to them.
        claim_text: Claim to be checked.
        encoder: Encoder that compares claims.
        min_similarity: Minimum cosine similarity of a similar claim.
        limit: Maximum number of fact-checks returned; all by default.

    Returns:
        Fact-checks of the same claim, then of similar claims by decreasing similarity; ties are ordered newest first.

    Notes:
        3000 transcripts of 107 kB take about one second, and encoding 3000 new claims 13 seconds more.
    """
    by_claim: dict[str, list[tuple[Any, ...]]] = {}
    for run, started_at, claim, verdict, outcome, scale, demonstration in _read_debates(store):
        if claim and outcome != "failed":
            is_demonstration = str(demonstration).lower() in ("1", "true")
            values = run, iso_time(started_at), claim, verdict, outcome, scale, is_demonstration
            by_claim.setdefault(claim, []).append(values)
    if not by_claim:
        return []
    texts = list(by_claim)
    vectors = cached_vectors([claim_text, *texts], encoder, "past_checks")
    key = claim_key(claim_text)
    past_checks = []
    for text, cosine in zip(texts, (vectors[1:] @ vectors[0]).tolist(), strict=True):
        is_same = claim_key(text) == key
        if not is_same and cosine < min_similarity:
            continue
        foreign_numbers = find_foreign_quantities(claim_text, [text]) or find_foreign_quantities(text, [claim_text])
        similarity: dict[str, Any] = {
            "similarity": 1.0 if is_same else min(1.0, cosine),
            "same": is_same,
            "differs_in_numbers": not is_same and bool(foreign_numbers),
            "differs_in_negation": not is_same and _differ_in_negation(claim_text, text),
        }
        past_checks += [PastCheck(*values, **similarity) for values in by_claim[text]]
    past_checks.sort(key=lambda check: check.when, reverse=True)
    past_checks.sort(key=lambda check: (not check.same, -check.similarity))
    return past_checks[:limit]


def _read_debates(store: Records) -> list[tuple[Any, ...]]:
    """Return a tuple for each stored debate, oldest first, without hidden checks.

    Its items are run id, start time, claim, label, outcome, scale, and whether the debate was a demonstration.
    """
    results, runs = tables.results, tables.runs

    def json_fields(column: sa.Column[str], *paths: tuple[str, ...]) -> list[sa.ColumnElement[str]]:
        if store.database.is_sqlite:
            return [sa.func.json_extract(column, "$." + ".".join(path)) for path in paths]
        return [sa.cast(column, sa.JSON)[path].as_string() for path in paths]

    # The database extracts the fields from the transcripts, which are long. Checks made in the browser have columns.
    paths = ("claim", "text"), ("verdict", "label"), ("verdict", "outcome"), ("scale",), ("demonstration",)
    fields = json_fields(results.c.row, *paths)
    transcripts = (
        sa.select(results.c.run, runs.c.started_at, *fields)
        .join(runs, runs.c.id == results.c.run)
        .where(results.c.name == TRANSCRIPTS)
        .order_by(results.c.id)
    )
    queries: list[sa.Select[Any]] = [transcripts]
    if store.database.has_table(checks):
        has_ended = checks.c.outcome.is_not(None), checks.c.run.is_not(None)
        stored_checks = sa.select(checks.c.run, runs.c.started_at, checks.c.claim, checks.c.label, checks.c.outcome)
        stored_checks = stored_checks.add_columns(*json_fields(checks.c.settings, ("scale",)), checks.c.demonstration)
        stored_checks = stored_checks.join(runs, runs.c.id == checks.c.run).where(
            *has_ended, checks.c.visibility != "hidden"
        )
        queries = [stored_checks, transcripts.where(results.c.run.not_in(sa.select(checks.c.run).where(*has_ended)))]
    with store.database.read() as connection:
        rows = [tuple(row) for query in queries for row in connection.execute(query)]
    return sorted(rows, key=lambda row: row[1])


def _differ_in_negation(first_text: str, second_text: str) -> bool:
    if bool(_NEGATION.search(first_text)) != bool(_NEGATION.search(second_text)):
        return True
    first_words, second_words = (re.findall(r"\w+", text.lower()) for text in (first_text, second_text))
    words_only_in_first = " ".join(word for word in first_words if word not in second_words)
    words_only_in_second = " ".join(word for word in second_words if word not in first_words)
    return any(
        (positive_pattern.search(words_only_in_first) and negative_pattern.search(words_only_in_second))
        or (negative_pattern.search(words_only_in_first) and positive_pattern.search(words_only_in_second))
        for positive_pattern, negative_pattern in _OPPOSITES
    )
