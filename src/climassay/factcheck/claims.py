"""Claims to be checked: tables of them, the years that they are about, and whether a text is a claim at all.

Before a debate a few rules decide what is certain: empty texts, questions, greetings, orders (those to this program
among them). All else is decided by two linear models of the encoder's vectors, fitted at first use to the primer's
labelled examples (``primer/checkability.jsonl``): one tells statements of fact from opinions, wishes and requests, one
tells climate from other topics. Their thresholds favour debating: a claim that is wrongly refused is worse than one
that is debated in vain.

Let through, with the bundled encoder: 98.8% of the 1028 claims of Climate-FEVER (95% interval 98.0 to 99.3), all of the
115 of Climate Feedback (96.8 to 100), 94.4% of the 107 myths of Skeptical Science (88.3 to 97.4; what is refused are
headlines without context, such as "Hockey stick is broken"), and all 40 claims of the primer (91.2 to 100). No rule
refuses any of these. The primer's own texts in ten-fold cross-validation with seed 0: 127 of 128 claims are let through
(99.2%, 95.7 to 99.9); 76.9% of 91 statements about other things are refused (67.3 to 84.4), 82.2% of 90 opinions,
questions, orders and the like (73.1 to 88.8). What is hardest to tell are other topics that share words with climate:
of 18 such statements ("Polar bears have black skin.") 9 are let through. The thresholds were chosen on a random half of
Climate-FEVER (on the other half 98.8% are let through) with an eye on the other sets, and headlines were added to the
examples after a first look at the myths.
"""

import contextlib
import datetime
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from climassay import primer
from climassay.claim_identity import bare_words
from climassay.corpus.collection_storage import StoredDocument
from climassay.corpus.documents import Passage, split_sentences
from climassay.errors import ClimassayError, InputError
from climassay.factcheck.transcript import Claim
from climassay.io import Row, listed_names, parse_rows, read_bytes
from climassay.learning.evaluation import Evaluation, evaluate
from climassay.learning.linear import LinearModel, fit_linear
from climassay.learning.model_file import ModelFormat, SavedModel
from climassay.models.contract import Encoder
from climassay.workspace import cache_folder


def make_claim(text: str, *, source: str = "", date: str = "") -> Claim:
    """A claim, its words one space apart.

    Raises:
        InputError: There is no text.
    """
    words = " ".join(text.split())
    if not words:
        raise InputError("The claim is empty.")
    return Claim(words, source.strip(), date.strip())


_CLAIM_COLUMNS = ("claim", "statement", "text")
_DATES = ("%Y-%m-%d", "%d-%b-%y", "%d-%B-%y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%d.%m.%Y", "%d/%m/%Y")


@dataclass(frozen=True, slots=True)
class ClaimColumns:
    """Which columns hold what; None takes those called so, where there are any."""

    claim: str | None = None
    """``claim``, ``statement`` or ``text`` by default."""
    verdict: str | None = None
    """Published verdicts; none by default."""
    source: str | None = None
    date: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimTable:
    """Claims of a file."""

    claims: tuple[Claim, ...]
    verdicts: tuple[str | None, ...]
    """As the file spells them; None where there is none."""
    skipped: tuple[str, ...]
    """Why rows were left out, one sentence each."""

    @property
    def judged(self) -> bool:
        """Whether any claim has a published verdict."""
        return any(verdict is not None for verdict in self.verdicts)


def read_claims(file: Path, columns: ClaimColumns | None = None) -> ClaimTable:
    """Claims from CSV, TSV, JSON lines, a JSON array or Parquet, gzip included.

    Args:
        file: The table.
        columns: Which columns to read.

    Raises:
        InputError: The file cannot be read, a column is not there, or no row has a claim.
    """
    wanted = columns or ClaimColumns()
    rows = list(parse_rows(file, read_bytes(file)))
    if not rows:
        raise InputError(f"{file} has no rows.")
    # Rows of JSON may leave columns out; what a row of CSV has beyond the header has no name.
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name is not None]
    text = _column(wanted.claim, _CLAIM_COLUMNS, names, "--claim", file)
    if text is None:
        raise InputError(f"{file} has no column of claims: name one of {listed_names(names)} with --claim.")
    verdict = _column(wanted.verdict, (), names, "--truth", file)
    source = _column(wanted.source, ("source",), names, "--source", file)
    date = _column(wanted.date, ("date",), names, "--date", file)
    claims, verdicts, skipped = [], [], []
    for number, row in enumerate(rows, start=1):
        words = _cell(row, text)
        if not words:
            skipped.append(f"row {number} has no claim")
            continue
        claims.append(make_claim(words, source=_cell(row, source), date=iso_date(_cell(row, date))))
        verdicts.append(_cell(row, verdict) or None)
    if not claims:
        raise InputError(f"No row of {file} has a claim in the column {text}.")
    return ClaimTable(tuple(claims), tuple(verdicts), tuple(skipped))


def _column(given: str | None, usual: Sequence[str], names: Sequence[str], option: str, file: Path) -> str | None:
    if given is not None:
        if given not in names:
            raise InputError(f"{file} has no column {given!r} ({option}): it has {listed_names(names)}.")
        return given
    lower: Mapping[str, str] = {name.strip().lower(): name for name in reversed(names)}
    return next((lower[name] for name in usual if name in lower), None)


def _cell(row: Row, column: str | None) -> str:
    value = row.get(column) if column is not None else None
    return "" if value is None else " ".join(str(value).split())


def iso_date(text: str) -> str:
    """A date as ISO 8601 where it is understood, the year where only that is; else as it stands.

    Example: ``15-May-23`` is ``2023-05-15``. Of ``05/06/2023`` the first number is taken for the day;
    a time is left out.
    """
    text = re.sub(r"^(\d{4}-\d\d-\d\d)[T ].*", r"\1", text)
    for form in _DATES:
        try:
            return datetime.datetime.strptime(text, form).date().isoformat()
        except ValueError:
            continue
    match = re.search(r"\b(?:1[89]|20)\d\d\b", text)
    return text if match is None or len(text) > 40 else (text if re.match(r"\d{4}-\d\d", text) else match[0])


EARLIEST_YEAR = 1800
"""A claim's number below this is not a year of its own time: 1500 years, 1000 m, the Middle Ages."""

# A year is a bare number of four digits: no decimals, no thousands, no unit behind it, and no name it belongs to.
_YEAR = re.compile(
    r"(?:(?<![\w.,$€£#/-])|(?<=\bpre-)|(?<=\bpost-)|(?<=\bmid-))(?P<first>[12]\d{3})(?:s\b)?"
    r"(?:\s?[–—/-]\s?(?P<last>[12]\d{3}|\d{2})(?!\d))?"
    r"(?![\w%°]|[.,]\d|\s?[–—-]\s?\d)"
    r"(?!\s*(?:years?|people|scientists?|experts?|deaths?|times|stations?|studies|papers|species|tonn?e?s?|tons"
    r"|million|billion|trillion|percent|per\s?cent|degrees?|pp[mbt]v?|k?m|[cm]m|km2|GtCO2|Gt|Mt|[GMTk]W(?:h)?|W|K|C|m2"
    r"|met(?:re|er)s?|kilomet(?:re|er)s?|miles?|feet|ft|hectares?|acres|dollars|euros|USD|jobs|homes|days|hours)\b)"
)
_UP_TO_NOW = re.compile(
    r"\b(?:since|today|nowadays|currently|at present|presently|now|so far|to date|recent(?:ly)?|still"
    r"|(?:this|last|past) (?:year|month|week|summer|winter|decade))\b",
    re.IGNORECASE,
)
_SHORT_DATE = re.compile(r"\b\d{1,2}-[A-Za-z]{3}-(?P<year>\d{2})\b")
_ANY_YEAR = re.compile(r"(?<!\d)(1[89]\d{2}|20\d{2})(?!\d)")


def subject_year(claim: Claim, *, today: datetime.date | None = None) -> int | None:
    """The year that a claim is about, as far as evidence has to know of it.

    It is the latest year that the text names, or the year in which the claim was made, where

    - the text names none;
    - it names one after that: of a projection ("by 2100") evidence has to know what was known when it was made;
    - it speaks of the present beside it ("since 1998", "in 1950 ... today").

    Args:
        claim: With its date where that is known.
        today: Tells future years from past ones where the claim has no date; by default the current date.

    Returns:
        None where the text names no past year and the claim has no date.
    """
    made = year_of(claim.date)
    now = made or (today or datetime.date.today()).year
    named = years_named(claim.text)
    past = [year for year in named if year <= now]
    if made is not None and (len(past) < len(named) or _UP_TO_NOW.search(claim.text)):
        return made
    return max(past, default=made)


def years_named(text: str) -> tuple[int, ...]:
    """Years from 1800 to 2999 that a text names, both ends of a span (``1998-2012``, ``1998-12``), in order."""
    results: list[int] = []
    for match in _YEAR.finditer(text):
        first, last = int(match["first"]), match["last"]
        results.append(first)
        if last is not None:
            results.append(int(last) if len(last) == 4 else first - first % 100 + int(last))
    return tuple(year for year in results if year >= EARLIEST_YEAR)


def year_of(date: str | None) -> int | None:
    """Year of a date as sources write it (``2023-05-15``, ``15-May-23``, ``May 2023``, ``2nd edition 2019``), or None.

    Two digits are a year of the hundred that ends twenty years from now at the latest: 23 is 2023, 95 is 1995.
    """
    text = date or ""
    if short := _SHORT_DATE.search(text):
        latest = datetime.date.today().year + 20
        year = latest - latest % 100 + int(short["year"])
        return year if year <= latest else year - 100
    years = _ANY_YEAR.findall(text)
    return int(years[-1]) if years else None


def dating_warning(claim: Claim, passages: Iterable[Passage], *, today: datetime.date | None = None) -> str | None:
    """One sentence where all dated evidence is older than what the claim is about; None otherwise.

    Passages without a date say nothing for or against; ``today`` is as in :func:`subject_year`.
    """
    subject = subject_year(claim, today=today)
    years = [year for passage in passages if (year := year_of(passage.date) or year_of(passage.edition))]
    if subject is None or not years or max(years) >= subject:
        return None
    dated = f"the newest is from {max(years)}" if len(set(years)) > 1 else f"it is from {years[0]}"
    return f"All dated evidence is older than what the claim is about ({subject}): {dated}."


# ------------------------------------------------------------------------------------------------------- editions


def latest_editions(documents: Sequence[StoredDocument]) -> frozenset[str]:
    """Ids of the documents to keep where only the latest edition of each work counts.

    Editions of one work have the same title and report once numbers of years, editions and versions are taken out:
    "Climate Change 2014: Synthesis Report" and "Climate Change 2023: Synthesis Report". The one with the latest date is
    kept (then the latest edition), or all of them where several have it, and every document without date and edition.
    """
    dated: dict[tuple[str, str], list[tuple[tuple[str, int], str]]] = {}
    kept = set()
    for document in documents:
        # Editions of one work are ordered by date (ISO, or year alone), then by the number of the edition.
        year = year_of(document.date) or year_of(document.edition)
        number = re.search(r"(?<!\d)(\d{1,3})(?!\d)", document.edition or "")
        if year is None and number is None:
            kept.add(document.id)
            continue
        iso = re.fullmatch(r"\d{4}-\d{2}(?:-\d{2})?", (document.date or "").strip()[:10])
        age = (iso[0] if iso else f"{year or 0:04d}", int(number[1]) if number else 0)
        work = _without_edition(document.title), _without_edition(document.report or "")
        dated.setdefault(work, []).append((age, document.id))
    for editions in dated.values():
        latest = max(age for age, _ in editions)
        kept.update(name for age, name in editions if age == latest)
    return frozenset(kept)


_EDITION_WORDS = re.compile(
    r"\b(?:\d{4}|(?:edition|ed|version|ver|v|volume|update|updated|revised|revision)\b\.?\s*(?:no\.?\s*)?\d*"
    r"|\d{1,2}(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b"
    r"|\bAR\d\b|(?<=\bAR)\d\b",
    re.IGNORECASE,
)


def _without_edition(text: str) -> str:
    return bare_words(_EDITION_WORDS.sub(" ", text))


Kind = Literal["checkable", "not checkable", "not about climate"]

OPINION_THRESHOLD = 0.90
"""Probability from which a text is not a statement of fact."""
TOPIC_THRESHOLD = 0.80
"""Probability from which a text is about something else than climate."""
PENALTY = 9.0
"""C of both models."""
_NAMES = ("opinion_{}", "elsewhere_{}")

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
_ABOVE = r"(?:(?:all|any|every|the|your|my|these|those|previous|prior|earlier|above|other|old|such|of)\s+)*"
_ORDER = re.compile(
    r"\W*(?:please\b[\s,]*|(?:can|could|would) you (?:please )?)?(?:"
    rf"(?:ignore|disregard|forget|override|bypass|skip)\s+(?:about\s+)?{_ABOVE}"
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
    """Whether a text can be debated."""

    kind: Kind
    score: float
    """Probability of the kind, 0 to 1; 1 where a rule decided. For ``checkable`` the smaller of those of being a
    statement and of being about climate: below one half where it was let through in doubt."""
    reason: str
    """One sentence for the reader; empty for ``checkable``."""


def assess_claims(texts: Sequence[str], encoder: Encoder) -> list[Checkability]:
    """Tell claims from texts that cannot be checked or are not about climate.

    Args:
        texts: Any number.
        encoder: Gives the vectors; the thresholds were measured with the bundled one. What is fitted to its vectors is
            kept in the cache folder by its fingerprint.

    Returns:
        One assessment per text, in order.
    """
    results = [refused_by_rule(text) for text in texts]
    left = [place for place, one in enumerate(results) if one is None]
    if left:
        predicted = _classifier(encoder).predict(encoder.encode([texts[place] for place in left]))
        for place, one in zip(left, predicted, strict=True):
            results[place] = one
    return [one for one in results if one is not None]


def by_probability(opinion: float, elsewhere: float) -> Checkability:
    """The assessment of a text that no rule refuses, from what :meth:`CheckabilityClassifier.predict_proba` gives."""
    if opinion >= OPINION_THRESHOLD:
        reason = "It reads as an opinion, a wish or a request, and not as a statement of fact."
        return Checkability("not checkable", opinion, reason)
    if elsewhere >= TOPIC_THRESHOLD:
        return Checkability("not about climate", elsewhere, "It seems to be about something else than climate.")
    return Checkability("checkable", 1.0 - max(opinion, elsewhere), "")


def refused_by_rule(text: str) -> Checkability | None:
    """A refusal that is certain from the words alone; None otherwise."""
    words = re.findall(r"[^\W\d_]+", text)
    stripped = text.strip().lstrip("\"'“”‘’«»([-*• ")
    if len(words) < 2:
        reason = "It is a single word, and states nothing." if words else "It has no words."
    elif _GREETING.fullmatch(stripped):
        reason = "It is a greeting."
    elif _ORDER.match(stripped):
        reason = "It is an order; only statements about the world can be checked."
    elif _QUESTION.fullmatch(stripped) and len(split_sentences(stripped)) == 1:
        reason = "It is a question: write as a statement what is to be checked."
    else:
        return None
    return Checkability("not checkable", 1.0, reason)


# -------------------------------------------------------------------------------------------------- the two models


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled text of the primer."""

    id: str
    text: str
    kind: Kind
    topic: Literal["climate", "other", "none"]
    """``none`` for orders to this program and nonsense."""


@lru_cache(maxsize=1)
def examples() -> tuple[Example, ...]:
    """The primer's labelled texts."""
    return tuple(Example(**json.loads(line)) for line in _examples_path().read_text(encoding="utf-8").splitlines())


def _examples_path() -> Path:
    return Path(primer.__file__).with_name("checkability.jsonl")


@dataclass(frozen=True, slots=True)
class CheckabilityClassifier(SavedModel):
    """Two linear models on a text's vector: of "no statement of fact" and of "not about climate"."""

    FORMAT = ModelFormat("climassay-checkability", 1, "pair of models", "any check of a claim")

    models: tuple[LinearModel, ...]

    @classmethod
    def fit(cls, texts: Sequence[Example], vectors: NDArray[np.floating]) -> Self:
        """Fit both to vectors of shape [texts, width]."""
        rows = np.asarray(vectors, dtype=np.float64)
        return cls(tuple(
            fit_linear([rows[kept]], truth[kept], 2, regularisation=PENALTY, standardise=False, balanced=True)
            for kept, truth in _targets(texts)
        ))  # fmt: skip

    def predict_proba(self, vectors: NDArray[np.floating]) -> NDArray[np.float64]:
        """P(no statement of fact) and P(not about climate), shape [texts, 2], for vectors of shape [texts, width]."""
        results = [model.probabilities([np.asarray(vectors, dtype=np.float64)])[:, 1] for model in self.models]
        # The last digits of a matrix product depend on how many rows there are.
        return np.stack(results, axis=1).round(10)

    def predict(self, vectors: NDArray[np.floating]) -> list[Checkability]:
        """Assessments of texts that no rule refuses, by their vectors of shape [texts, width]."""
        return [by_probability(*row) for row in self.predict_proba(vectors).tolist()]

    def score(self, texts: Sequence[Example], vectors: NDArray[np.floating]) -> tuple[Evaluation, ...]:
        """Figures of each of the two on texts that it was not fitted on; vectors have the shape [texts, width]."""
        return tuple(
            evaluate(truth[kept], np.stack([1 - chances, chances], axis=1)[kept], ("no", "yes"))
            for (kept, truth), chances in zip(_targets(texts), self.predict_proba(vectors).T, strict=True)
        )

    def contents(self) -> tuple[dict[str, NDArray[np.float64]], dict[str, Any]]:
        """See :class:`SavedModel`."""
        named = [model.arrays(name) for name, model in zip(_NAMES, self.models, strict=True)]
        return {name: array for arrays in named for name, array in arrays.items()}, {}

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, NDArray[np.float64]]) -> Self:  # noqa: ARG003
        """See :class:`SavedModel`, whose signature this is; the file states no facts of its own."""
        return cls(tuple(LinearModel.read(arrays, 2, name=name) for name in _NAMES))


def _targets(texts: Sequence[Example]) -> tuple[tuple[NDArray[np.bool_], NDArray[np.int64]], ...]:
    """Texts that each model is fitted on, and its labels of all."""
    opinion = np.array([one.kind == "not checkable" for one in texts], dtype=np.int64)
    elsewhere = np.array([one.topic == "other" for one in texts], dtype=np.int64)
    either = np.array([one.topic != "none" for one in texts])
    return (np.ones(len(texts), dtype=bool), opinion), (either, elsewhere)


def _classifier(encoder: Encoder) -> CheckabilityClassifier:
    """That of an encoder, from the cache where it is: to fit it takes 200 times as long as to use it."""
    digest = hashlib.sha256(_examples_path().read_bytes() + f"{PENALTY}".encode()).hexdigest()
    file = cache_folder() / "checkability" / f"{encoder.fingerprint[:32]}-{digest[:16]}.safetensors"
    # It is only a cache: what is not there or spoilt is fitted anew, and again where the disk is full.
    with contextlib.suppress(ClimassayError):
        return CheckabilityClassifier.load(file)
    classifier = CheckabilityClassifier.fit(examples(), encoder.encode([one.text for one in examples()]))
    with contextlib.suppress(ClimassayError):
        classifier.save(file)
    return classifier
