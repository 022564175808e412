"""Tables of claims, the years that claims are about, and the screening of texts that cannot be checked.

Rules refuse empty texts, questions, greetings and orders. For other texts, two linear models of the encoder's vectors
decide, which are fitted at first use to the primer's labelled examples (``primer/checkability.jsonl``): one separates
statements of fact from opinions, wishes and requests, the other climate from other topics. The thresholds favour
debating, because wrongly refusing a claim is worse than debating it in vain.

Accepted with the bundled encoder: 98.8% of the 1028 claims of Climate-FEVER (95% interval 98.0 to 99.3), all 115 of
Climate Feedback (96.8 to 100), 94.4% of the 107 myths of Skeptical Science (88.3 to 97.4; the refused ones are
headlines without context, such as "Hockey stick is broken"), and all 40 claims of the primer (91.2 to 100). No rule
refuses any of these. In ten-fold cross-validation on the primer's texts (seed 0), 127 of 128 claims are accepted
(99.2%, 95.7 to 99.9); 76.9% of 91 statements about other topics (67.3 to 84.4) and 82.2% of 90 opinions, questions,
orders and the like (73.1 to 88.8) are refused. The hardest texts are statements about other topics that share words
with climate: 9 of 18 ("Polar bears have black skin.") are accepted. The thresholds were chosen on a random half of
Climate-FEVER (98.8% of the other half are accepted) and checked on the other sets; headlines were added to the examples
after a first look at the myths.
"""

import contextlib
import datetime
import hashlib
import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from climassay import primer
from climassay.claim_identity import bare_words
from climassay.corpus.collection_storage import StoredDocument
from climassay.corpus.documents import Passage
from climassay.corpus.sentences import split_sentences
from climassay.errors import ClimassayError, InputError
from climassay.factcheck.transcript import Claim
from climassay.io import Row, find_column, format_names, parse_rows, read_bytes, require_column
from climassay.learning.evaluation import HeldOutScores, evaluate
from climassay.learning.linear import LinearModel, fit_linear
from climassay.learning.model_file import ModelFormat, SavedModel
from climassay.models.contract import Encoder
from climassay.workspace import cache_folder


def make_claim(text: str, *, source: str = "", date: str = "", appearance: str = "") -> Claim:
    """Return a claim with normalised whitespace.

    Raises:
        InputError: The text is empty.
    """
    words = " ".join(text.split())
    if not words:
        raise InputError("The claim is empty.")
    return Claim(words, source.strip(), date.strip(), appearance.strip())


CLAIM_COLUMNS = ("claim", "statement", "text")
"""Names of the column that contains the claims unless the user names it, in order of preference; case is ignored."""
_DATE_FORMATS = ("%Y-%m-%d", "%d-%b-%y", "%d-%B-%y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%d.%m.%Y", "%d/%m/%Y")


@dataclass(frozen=True, slots=True)
class ClaimColumns:
    """Column names of a table of claims; None selects the column with the field's name if it exists."""

    claim: str | None = None
    """Column of the claims; by default ``claim``, ``statement`` or ``text``."""
    verdict: str | None = None
    """Column of the published verdicts; None reads no verdicts."""
    source: str | None = None
    date: str | None = None
    group: str | None = None
    """Column by whose values scores are broken down; None reads no groups."""


@dataclass(frozen=True, slots=True)
class ClaimTable:
    """Claims of a file, with their published verdicts."""

    claims: tuple[Claim, ...]
    verdicts: tuple[str | None, ...]
    """Published verdicts, as spelled in the file; None if a claim has none."""
    groups: tuple[str, ...]
    """Group of each claim; empty strings if the claims have no groups."""
    skipped: tuple[str, ...]
    """Reasons for skipped rows, one sentence each."""
    group_column: str = ""
    """Name of the column of groups; empty if the claims have no groups."""

    @staticmethod
    def load(claims: "Path | str | Iterable[str] | ClaimTable", columns: ClaimColumns | None = None) -> "ClaimTable":
        """Return a table of the claims in a file, in the primer (``primer:claims``) or in a sequence of texts.

        Raises:
            InputError: The file cannot be read, or a claim is empty.
        """
        if isinstance(claims, ClaimTable):
            return claims
        if str(claims) == primer.PRIMER_CLAIMS:
            columns = ClaimColumns(verdict="verdict", group=None if columns is None else columns.group)
            claims = primer.claims_path()
        if isinstance(claims, (str, Path)):
            return read_claims(Path(claims), columns)
        records = tuple(map(make_claim, claims))
        return ClaimTable(records, (None,) * len(records), ("",) * len(records), ())

    def sample(self, limit: int | None, seed: int) -> Self:
        """Draw ``limit`` claims at random, in the order of the table; all claims if ``limit`` is None."""
        if limit is None or limit >= len(self.claims):
            return self
        indices = sorted(random.Random(seed).sample(range(len(self.claims)), limit))
        return replace(
            self,
            claims=tuple(self.claims[index] for index in indices),
            verdicts=tuple(self.verdicts[index] for index in indices),
            groups=tuple(self.groups[index] for index in indices),
        )


def read_claims(file: Path, columns: ClaimColumns | None = None) -> ClaimTable:
    """Read claims from CSV, TSV, JSON lines, a JSON array or Parquet, also gzipped.

    The columns ``appearance`` and ``strike`` are also read if the file has them. A row with text in ``strike`` is
    skipped.

    Args:
        file: Table of claims.
        columns: Names of the columns.

    Raises:
        InputError: The file cannot be read, a named column is missing, or no row has a claim.
    """
    columns = columns or ClaimColumns()
    rows = list(parse_rows(file, read_bytes(file)))
    if not rows:
        raise InputError(f"{file} has no rows.")
    # JSON rows may omit columns; surplus cells of a CSV row have the name None.
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name is not None]
    claim_column = _find_column(columns.claim, CLAIM_COLUMNS, names, "--claim", file)
    if claim_column is None:
        raise InputError(f"{file} has no column of claims: name one of {format_names(names)} with --claim.")
    verdict_column = _find_column(columns.verdict, (), names, "--truth", file)
    source_column = _find_column(columns.source, ("source",), names, "--source", file)
    date_column = _find_column(columns.date, ("date",), names, "--date", file)
    group_column = _find_column(columns.group, (), names, "--by", file)
    appearance_column = _find_column(None, ("appearance",), names, "", file)
    strike_column = _find_column(None, ("strike",), names, "", file)
    claims, verdicts, groups, skip_reasons = [], [], [], []
    for number, row in enumerate(rows, start=1):
        if _cell_text(row, strike_column):
            skip_reasons.append(f"row {number} is struck")
            continue
        words = _cell_text(row, claim_column)
        if not words:
            skip_reasons.append(f"row {number} has no claim")
            continue
        origin = {"source": _cell_text(row, source_column), "appearance": _cell_text(row, appearance_column)}
        claims.append(make_claim(words, date=iso_date(_cell_text(row, date_column)), **origin))
        verdicts.append(_cell_text(row, verdict_column) or None)
        groups.append(_cell_text(row, group_column))
    if not claims:
        raise InputError(f"No row of {file} has a claim in the column {claim_column}.")
    return ClaimTable(tuple(claims), tuple(verdicts), tuple(groups), tuple(skip_reasons), group_column or "")


def _find_column(
    column: str | None, default_names: Sequence[str], names: Sequence[str], option: str, file: Path
) -> str | None:
    if column is not None:
        return require_column(file, names, column, option)
    return find_column(names, *default_names)


def _cell_text(row: Row, column: str | None) -> str:
    value = row.get(column) if column is not None else None
    return "" if value is None else " ".join(str(value).split())


def iso_date(text: str) -> str:
    """Convert a date to ISO 8601. If only its year is recognised, return the year.

    Otherwise, return the text unchanged.

    For example, ``15-May-23`` becomes ``2023-05-15``. In ``05/06/2023``, the day comes first. Times of day are removed.
    """
    text = re.sub(r"^(\d{4}-\d\d-\d\d)[T ].*", r"\1", text)
    for date_format in _DATE_FORMATS:
        try:
            return datetime.datetime.strptime(text, date_format).date().isoformat()
        except ValueError:
            continue
    match = re.search(r"\b(?:1[89]|20)\d\d\b", text)
    return text if match is None or len(text) > 40 else (text if re.match(r"\d{4}-\d\d", text) else match[0])


_EARLIEST_YEAR = 1800
"""Smallest number in a claim that is interpreted as a year."""

# A year is a bare number of four digits: no decimals, no thousands, no unit behind it, and no name it belongs to.
_YEAR = re.compile(
    r"(?:(?<![\w.,$€£#/-])|(?<=\bpre-)|(?<=\bpost-)|(?<=\bmid-))(?P<first>[12]\d{3})(?:s\b)?"
    r"(?:\s?[–—/-]\s?(?P<last>[12]\d{3}|\d{2})(?!\d))?"
    r"(?![\w%°]|[.,]\d|\s?[–—-]\s?\d)"
    r"(?!\s*(?:years?|people|scientists?|experts?|deaths?|times|stations?|studies|papers|species|tonn?e?s?|tons"
    r"|million|billion|trillion|percent|per\s?cent|degrees?|pp[mbt]v?|k?m|[cm]m|km2|GtCO2|Gt|Mt|[GMTk]W(?:h)?|W|K|C|m2"
    r"|met(?:re|er)s?|kilomet(?:re|er)s?|miles?|feet|ft|hectares?|acres|dollars|euros|USD|jobs|homes|days|hours)\b)"
)
_PRESENT_REFERENCE = re.compile(
    r"\b(?:since|today|nowadays|currently|at present|presently|now|so far|to date|recent(?:ly)?|still"
    r"|(?:this|last|past) (?:year|month|week|summer|winter|decade))\b",
    re.IGNORECASE,
)
_SHORT_DATE = re.compile(r"\b\d{1,2}-[A-Za-z]{3}-(?P<year>\d{2})\b")
_ANY_YEAR = re.compile(r"(?<!\d)(1[89]\d{2}|20\d{2})(?!\d)")


def subject_year(claim: Claim, *, today: datetime.date | None = None) -> int | None:
    """Return the year that a claim is about. Evidence from before that year may be outdated.

    This is the latest year named in the text. It is the year of the claim's date instead if the text

    - names no year;
    - names a later year, because a projection ("by 2100") is judged by the knowledge of its time;
    - refers to the present ("since 1998", "in 1950 ... today").

    Args:
        claim: Claim, with its date if known.
        today: Date that separates past from future years if the claim has no date; by default the current date.

    Returns:
        The year; None if the text names no past year and the claim has no date.
    """
    claim_year = parse_year(claim.date)
    current_year = claim_year or (today or datetime.date.today()).year
    years = find_years(claim.text)
    past_years = [year for year in years if year <= current_year]
    if claim_year is not None and (len(past_years) < len(years) or _PRESENT_REFERENCE.search(claim.text)):
        return claim_year
    return max(past_years, default=claim_year)


def find_years(text: str) -> tuple[int, ...]:
    """Return the years from 1800 to 2999 named in a text, including both ends of spans (``1998-2012``, ``1998-12``)."""
    results: list[int] = []
    for match in _YEAR.finditer(text):
        first, last = int(match["first"]), match["last"]
        results.append(first)
        if last is not None:
            results.append(int(last) if len(last) == 4 else first - first % 100 + int(last))
    return tuple(year for year in results if year >= _EARLIEST_YEAR)


def parse_year(date: str | None) -> int | None:
    """Return the year of a date (``2023-05-15``, ``15-May-23``, ``May 2023``, ``2nd edition 2019``), or None.

    A year of two digits is at most twenty years in the future: 23 is 2023, 95 is 1995.
    """
    text = date or ""
    if short_date := _SHORT_DATE.search(text):
        max_year = datetime.date.today().year + 20
        year = max_year - max_year % 100 + int(short_date["year"])
        return year if year <= max_year else year - 100
    years = _ANY_YEAR.findall(text)
    return int(years[-1]) if years else None


def dating_warning(claim: Claim, passages: Iterable[Passage], *, today: datetime.date | None = None) -> str | None:
    """Return a warning if all dated evidence is older than the year that the claim is about; otherwise None.

    Passages without a date are ignored. ``today`` is passed to :func:`subject_year`.
    """
    subject = subject_year(claim, today=today)
    years = [year for passage in passages if (year := parse_year(passage.date) or parse_year(passage.edition))]
    if subject is None or not years or max(years) >= subject:
        return None
    description = f"the newest is from {max(years)}" if len(set(years)) > 1 else f"it is from {years[0]}"
    return f"All dated evidence is older than what the claim is about ({subject}): {description}."


# ------------------------------------------------------------------------------------------------------- editions


def latest_editions(documents: Sequence[StoredDocument]) -> frozenset[str]:
    """Return the ids of the documents that are the latest edition of their work.

    Editions of a work have the same title and report after removing years, editions and versions: "Climate Change 2014:
    Synthesis Report" and "Climate Change 2023: Synthesis Report". The latest edition is the one with the latest date;
    among equal dates, the highest edition number decides. Documents without date and edition are always included.
    """
    editions_by_work: dict[tuple[str, str], list[tuple[tuple[str, int], str]]] = {}
    latest_ids = set()
    for document in documents:
        # Editions of one work are ordered by date (ISO, or year alone), then by the number of the edition.
        year = parse_year(document.date) or parse_year(document.edition)
        number = re.search(r"(?<!\d)(\d{1,3})(?!\d)", document.edition or "")
        if year is None and number is None:
            latest_ids.add(document.id)
            continue
        iso_match = re.fullmatch(r"\d{4}-\d{2}(?:-\d{2})?", (document.date or "").strip()[:10])
        recency = (iso_match[0] if iso_match else f"{year or 0:04d}", int(number[1]) if number else 0)
        work = _without_edition(document.title), _without_edition(document.report or "")
        editions_by_work.setdefault(work, []).append((recency, document.id))
    for entries in editions_by_work.values():
        max_recency = max(recency for recency, _ in entries)
        latest_ids.update(document_id for recency, document_id in entries if recency == max_recency)
    return frozenset(latest_ids)


_EDITION_WORDS = re.compile(
    r"\b(?:\d{4}|(?:edition|ed|version|ver|v|volume|update|updated|revised|revision)\b\.?\s*(?:no\.?\s*)?\d*"
    r"|\d{1,2}(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b"
    r"|\bAR\d\b|(?<=\bAR)\d\b",
    re.IGNORECASE,
)


def _without_edition(text: str) -> str:
    return bare_words(_EDITION_WORDS.sub(" ", text))


CheckabilityKind = Literal["checkable", "not checkable", "not about climate"]

OPINION_THRESHOLD = 0.90
"""Minimum probability of not being a statement of fact for a text to be refused."""
TOPIC_THRESHOLD = 0.80
"""Minimum probability of being about a topic other than climate for a text to be refused."""
PENALTY = 9.0
"""Regularisation parameter C of both linear models."""
_MODEL_NAMES = ("opinion_{}", "elsewhere_{}")

_QUESTION = re.compile(
    r"(?:who|whom|whose|what|when|where|why|which|how|is|are|was|were|am|do|does|did|can|could|will|would|should|shall|may"
    r"|has|have|had|isn.t|aren.t|don.t|doesn.t|didn.t|won.t)\b.*\?\W*",
    re.IGNORECASE | re.DOTALL,
)
_GREETING = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening|night|day)|thanks?(?: you)?|bye|goodbye|welcome|cheers)\b"
    r"(?:\W+\w+){0,3}\W*",
    re.IGNORECASE,
)
_PREVIOUS_WORDS = r"(?:(?:all|any|every|the|your|my|these|those|previous|prior|earlier|above|other|old|such|of)\s+)*"
_COMMAND = re.compile(
    r"\W*(?:please\b[\s,]*|(?:can|could|would) you (?:please )?)?(?:"
    rf"(?:ignore|disregard|forget|override|bypass|skip)\s+(?:about\s+)?{_PREVIOUS_WORDS}"
    r"(?:instructions?|rules?|prompts?|roles?|messages?|orders?|guidelines?|text|passages?|evidence|above|previous|everything)\b"
    r"|(?:system|assistant|user|developer|admin)\s*(?:prompt|message|note|override)?\s*:"
    r"|new instructions?\b|you are now\b|from now on,? you\b|(?:act|behave|respond|reply|answer) (?:as|only|with)\b"
    r"|pretend (?:to|that|you)\b|(?:output|print|return) (?:the|your|only|a|an)\b|(?:say|answer|reply|respond)\s*[:\"“]"
    r"|(?:say|declare|confirm) that (?:the|this|every) (?:claim|statement|verdict)\b"
    r"|(?:rate|mark|label) (?:this|the|my) claim\b"
    r"|(?:write|summari[sz]e|translate|explain|describe|recommend|compute|calculate|list)\s+"
    r"(?:me\b|a|an|the|this|that|in|some)\b"
    r"|(?:tell|give|show|draw|send|help) (?:me|us)\b"
    r")",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Checkability:
    """Assessment of whether a text can be debated."""

    kind: CheckabilityKind
    score: float
    """Probability of ``kind``; 1 if a rule decided. For ``checkable``, two probabilities are computed: that the claim
    states a fact, and that it is about climate. The score is the smaller one and may be below one half."""
    reason: str
    """Reason in one sentence; empty for ``checkable``."""


def assess_claims(texts: Sequence[str], encoder: Encoder) -> list[Checkability]:
    """Assess whether texts can be checked and are about climate.

    Args:
        texts: Texts to assess.
        encoder: Encoder of the texts. The thresholds were measured with the bundled encoder. Fitted classifiers are
            cached by encoder fingerprint.

    Returns:
        Assessments in the order of the texts.
    """
    results = [find_refusal(text) for text in texts]
    undecided_indices = [index for index, result in enumerate(results) if result is None]
    if undecided_indices:
        predictions = _load_or_fit_classifier(encoder).predict(
            encoder.encode([texts[index] for index in undecided_indices])
        )
        for index, result in zip(undecided_indices, predictions, strict=True):
            results[index] = result
    return [result for result in results if result is not None]


def assess_probabilities(p_opinion: float, p_off_topic: float) -> Checkability:
    """Convert the two probabilities of :meth:`CheckabilityClassifier.predict_proba` to an assessment."""
    if p_opinion >= OPINION_THRESHOLD:
        reason = "It reads as an opinion, a wish or a request, and not as a statement of fact."
        return Checkability("not checkable", p_opinion, reason)
    if p_off_topic >= TOPIC_THRESHOLD:
        return Checkability("not about climate", p_off_topic, "It seems to be about something else than climate.")
    return Checkability("checkable", 1.0 - max(p_opinion, p_off_topic), "")


def find_refusal(text: str) -> Checkability | None:
    """Return the assessment "not checkable" if a rule refuses the text, for example a question; otherwise None."""
    words = re.findall(r"[^\W\d_]+", text)
    stripped_text = text.strip().lstrip("\"'“”‘’«»([-*• ")
    if len(words) < 2:
        reason = "It is a single word, and states nothing." if words else "It has no words."
    elif _GREETING.fullmatch(stripped_text):
        reason = "It is a greeting."
    elif _COMMAND.match(stripped_text):
        reason = "It is an order; only statements about the world can be checked."
    elif _QUESTION.fullmatch(stripped_text) and len(split_sentences(stripped_text)) == 1:
        reason = "It is a question: write as a statement what is to be checked."
    else:
        return None
    return Checkability("not checkable", 1.0, reason)


# -------------------------------------------------------------------------------------------------- the two models


@dataclass(frozen=True, slots=True)
class Example:
    """Labelled text of the primer."""

    id: str
    text: str
    kind: CheckabilityKind
    topic: Literal["climate", "other", "none"]
    """Topic of the text; ``none`` for nonsense and for commands to the program."""


@lru_cache(maxsize=1)
def load_examples() -> tuple[Example, ...]:
    """Load the labelled texts that are bundled with the primer."""
    return tuple(Example(**json.loads(line)) for line in _examples_path().read_text(encoding="utf-8").splitlines())


def _examples_path() -> Path:
    return Path(primer.__file__).with_name("checkability.jsonl")


@dataclass(frozen=True, slots=True)
class CheckabilityClassifier(SavedModel):
    """Two linear classifiers of text embeddings: "not a statement of fact" and "not about climate"."""

    FORMAT = ModelFormat("climassay-checkability", 1, "pair of models", "any check of a claim")

    models: tuple[LinearModel, ...]

    @classmethod
    def fit(cls, texts: Sequence[Example], vectors: NDArray[np.floating]) -> Self:
        """Fit both classifiers to labelled texts and their embeddings of shape [texts, width]."""
        rows = np.asarray(vectors, dtype=np.float64)
        return cls(tuple(
            fit_linear([rows[is_used]], truth[is_used], 2, regularisation=PENALTY, standardise=False, balanced=True)
            for is_used, truth in _masks_and_labels(texts)
        ))  # fmt: skip

    def predict_proba(self, vectors: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the probabilities of "not a statement of fact" and "not about climate", shape [texts, 2]."""
        results = [model.probabilities([np.asarray(vectors, dtype=np.float64)])[:, 1] for model in self.models]
        # The last digits of a matrix product depend on how many rows there are.
        return np.stack(results, axis=1).round(10)

    def predict(self, vectors: NDArray[np.floating]) -> list[Checkability]:
        """Return the assessments of texts from their embeddings of shape [texts, width]."""
        return [assess_probabilities(*row) for row in self.predict_proba(vectors).tolist()]

    def score(self, texts: Sequence[Example], vectors: NDArray[np.floating]) -> tuple[HeldOutScores, ...]:
        """Score both classifiers on held-out texts with embeddings of shape [texts, width]."""
        return tuple(
            evaluate(truth[is_used], np.stack([1 - probabilities, probabilities], axis=1)[is_used], ("no", "yes"))
            for (is_used, truth), probabilities in zip(
                _masks_and_labels(texts), self.predict_proba(vectors).T, strict=True
            )
        )

    def contents(self) -> tuple[dict[str, NDArray[np.float64]], dict[str, Any]]:
        """See :class:`SavedModel`."""
        arrays_by_model = [model.to_arrays(name) for name, model in zip(_MODEL_NAMES, self.models, strict=True)]
        return {name: array for arrays in arrays_by_model for name, array in arrays.items()}, {}

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, NDArray[np.float64]]) -> Self:  # noqa: ARG003
        """See :class:`SavedModel`; ``facts`` is not used."""
        return cls(tuple(LinearModel.from_arrays(arrays, 2, name=name) for name in _MODEL_NAMES))


def _masks_and_labels(texts: Sequence[Example]) -> tuple[tuple[NDArray[np.bool_], NDArray[np.int64]], ...]:
    """Return, for each classifier, the mask of the texts used to fit it, and the labels of all texts."""
    is_opinion = np.array([example.kind == "not checkable" for example in texts], dtype=np.int64)
    is_off_topic = np.array([example.topic == "other" for example in texts], dtype=np.int64)
    has_topic = np.array([example.topic != "none" for example in texts])
    return (np.ones(len(texts), dtype=bool), is_opinion), (has_topic, is_off_topic)


def _load_or_fit_classifier(encoder: Encoder) -> CheckabilityClassifier:
    """Load the classifier for an encoder from the cache, or fit and cache it.

    Fitting takes 200 times as long as using it.
    """
    digest = hashlib.sha256(_examples_path().read_bytes() + f"{PENALTY}".encode()).hexdigest()
    file = cache_folder() / "checkability" / f"{encoder.fingerprint[:32]}-{digest[:16]}.safetensors"
    # A missing or damaged cache file is fitted again, and a full disk is ignored.
    with contextlib.suppress(ClimassayError):
        return CheckabilityClassifier.load(file)
    classifier = CheckabilityClassifier.fit(
        load_examples(), encoder.encode([example.text for example in load_examples()])
    )
    with contextlib.suppress(ClimassayError):
        classifier.save(file)
    return classifier
