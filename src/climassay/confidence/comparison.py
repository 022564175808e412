"""Compare how two texts state their certainty: two drafts of a report, or a summary and the chapters behind it.

Sentences are matched by their words, by meaning (vectors of an encoder) and by reference: the number of a paragraph,
the sections that appear in curly brackets. Then the levels and terms of what was matched are laid side by side.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from climassay.confidence.extraction import ExtractOptions, extract
from climassay.confidence.extraction.cleaning import clean_sentence
from climassay.confidence.extraction.extracting import explains_terms, normalised
from climassay.confidence.marks import find_tags
from climassay.confidence.statement import Statement, read_statements
from climassay.confidence.vocabulary import score
from climassay.errors import InputError
from climassay.models.contract import Encoder
from climassay.models.encoders import cached_vectors

Kind = Literal["drafts", "summary"]
Status = Literal[
    "level changed", "level removed", "level added", "terms changed", "dropped", "added", "reworded", "unchanged"
]
STATUSES: tuple[Status, ...] = get_args(Status)
"""In the order in which they matter."""
LEAST_SIMILAR = 0.7
"""Similarity from which on two sentences may be the same one."""
_SAME_LABEL = 0.05
_SAME_REFERENCE = 0.05
_SAME_PLACE = 0.02
"""What a shared paragraph number, section and place in the text add to a similarity."""
_ASSESSED = 0.05
"""What a term adds to the similarity of a chapter's sentence: a summary is made of assessed statements."""
_PART_SIMILAR = 0.4
"""Similarity that a sentence needs to one that has its words: a half is less like the whole than another wording is."""
_BOTH_ASSESSED = 0.6
"""What it adds to the share of common words of two parts of sentences that both have a term, or neither."""
_CONTAINED = 0.8
"""Share of a sentence's words that are in a longer one, of which it is then a part: sentences are joined and split."""
_SECTION = re.compile(r"^(?:(?:Section|Chapter|Box|Cross-Chapter Box)\s+)?((?:\d+|[A-Z])(?:\.\d+)*)\b")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one statement; of those that are dropped or added, one side is missing."""

    status: Status
    old: Statement | None
    new: Statement | None
    similarity: float | None = None
    """Cosine of the two sentences, 1 for the same words; None where one side is missing."""

    @property
    def step(self) -> int | None:
        """Levels up (positive) or down, where both sides have one."""
        if self.old is None or self.new is None or self.old.tag is None or self.new.tag is None:
            return None
        return score(self.new.tag) - score(self.old.tag)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All statements of two texts that have a calibrated term on one side at least."""

    changes: tuple[Change, ...]
    """In the order of the new text, of a summary in that of the summary; what was dropped, at its old place."""
    kind: Kind

    @property
    def counts(self) -> dict[Status, int]:
        """How many statements have each status, zeros included."""
        counts = Counter(one.status for one in self.changes)
        return {status: counts[status] for status in STATUSES}


class _Sentence(NamedTuple):
    text: str
    statements: tuple[Statement, ...]
    sections: frozenset[str]
    """Numbers of the sections that it appears in."""


class _Match(NamedTuple):
    old: int
    new: int
    similarity: float


def has_terms(statement: Statement) -> bool:
    """Whether a statement carries a level, a term of likelihood, evidence or agreement, and does not explain them."""
    terms = statement.tag or statement.likelihood or statement.evidence or statement.agreement
    return bool(terms) and not explains_terms(statement.sentence)


def compare(
    old: Sequence[Statement],
    new: Sequence[Statement],
    encoder: Encoder,
    *,
    kind: Kind = "drafts",
    least_similar: float = LEAST_SIMILAR,
    on_progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Compare the statements of two texts.

    Args:
        old: From :func:`climassay.confidence.extraction.extract`; with ``untagged=True``, so that levels which were
            taken away or added are distinguished from statements which were dropped or added. Of a summary, the
            summary.
        new: The later draft, or the chapters.
        encoder: For meaning; vectors are kept, so that a comparison that was stopped goes on.
        kind: ``drafts`` matches sentence to sentence, one to one but for sentences that were joined or split;
            ``summary`` looks for the nearest statement of ``new`` for each assessed one of ``old``, and does not tell
            what of ``new`` is not in the summary.
        least_similar: Similarity, between 0 and 1, from which on two sentences may be the same.
        on_progress: Called with the number of texts encoded since the last call.

    Raises:
        InputError: The similarity is not between 0 and 1, or a side has no statement.
    """
    if not 0 < least_similar < 1:
        raise InputError(f"The minimum similarity must be between 0 and 1, not {least_similar:g}.")
    if not old or not new:
        raise InputError(f"The {'second' if old else 'first'} text has no sentence to compare.")
    if kind == "drafts":
        ours, theirs = _sentences(old), _sentences(new)
    else:
        # Each statement by itself; a sentence whose division is not sure once.
        ours, theirs = (
            [_Sentence(one.text, (one,), _sections(one)) for one in side if not one.duplicate_of]
            for side in ([one for one in old if has_terms(one)], new)
        )
        if not ours:
            raise InputError("The first text has no statement with a calibrated term: there is nothing to look for.")
    vectors = cached_vectors(
        [one.text for one in (*ours, *theirs)], encoder, "statement_vectors", on_progress=on_progress
    )
    cosines = np.asarray(vectors[: len(ours)] @ vectors[len(ours) :].T)
    scores = cosines + _bonus(ours, theirs, placed=kind == "drafts")
    if kind == "summary":
        scores += _ASSESSED * np.array([any(map(has_terms, one.statements)) for one in theirs], np.float32)
        changes = []
        for row, sentence in enumerate(ours):
            one, best = sentence.statements[0], int(scores[row].argmax())
            if scores[row, best] < least_similar:
                changes.append(Change("dropped", one, None))
            else:
                other = theirs[best].statements[0]
                changes.append(Change(_status(one, other), one, other, float(cosines[row, best])))
        return Comparison(tuple(changes), kind)
    matches = _one_to_one(ours, theirs, cosines, scores, least_similar)
    matches += _parts(ours, theirs, cosines, matches)
    return Comparison(tuple(_draft_changes(ours, theirs, matches)), kind)


def statements_to_compare(path: Path) -> list[Statement]:
    """The statements of a report, tagged or not: of a document, or of JSON lines that ``extract --untagged`` wrote.

    Raises:
        InputError: The file cannot be read.
    """
    if path.suffix.lower() == ".jsonl":
        return read_statements(path)
    from climassay.corpus.readers.file_types import read

    result = read(path)
    if not result.documents:
        raise InputError(result.skipped[0].reason if result.skipped else f"{path} has no text to compare.")
    return extract(result.documents, ExtractOptions(untagged=True, context=0))


def change_row(change: Change) -> dict[str, Any]:
    """A change as a row of a table or of JSON, the words of both sides beside each other."""
    row: dict[str, Any] = {"status": change.status, "step": change.step, "similarity": change.similarity}
    for side, one in (("old", change.old), ("new", change.new)):
        row |= {
            f"{side}_level": one.tag if one else None,
            f"{side}_likelihood": list(one.likelihood) if one else [],
            f"{side}_evidence": one.evidence if one else None,
            f"{side}_agreement": one.agreement if one else None,
            f"{side}_place": place_of(one) if one else None,
            f"{side}_words": one.original if one else None,
        }
    return row


def place_of(statement: Statement) -> str:
    """Number of the paragraph and page, as far as the report has them."""
    page = f"page {statement.page}" if statement.page is not None else ""
    return ", ".join(filter(None, (statement.label or statement.paragraph_id, page)))


def word_pieces(old: str, new: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in pieces, each with whether the other text has other words there."""
    one, other = re.findall(r"\S+\s*", old), re.findall(r"\S+\s*", new)
    left: list[tuple[str, bool]] = []
    right: list[tuple[str, bool]] = []
    matcher = SequenceMatcher(None, [word.strip() for word in one], [word.strip() for word in other], autojunk=False)
    for what, start, end, begin, stop in matcher.get_opcodes():
        for pieces, words in ((left, one[start:end]), (right, other[begin:stop])):
            if words:
                pieces.append(("".join(words), what != "equal"))
    return left, right


def _sentences(statements: Sequence[Statement]) -> list[_Sentence]:
    """All sentences, each with its statements; the tag of a whole paragraph counts once, where it stands."""
    groups: dict[str, list[Statement]] = defaultdict(list)
    for one in statements:
        elsewhere = one.whole_paragraph and not find_tags(one.sentence)
        groups[one.sentence_id].append(replace(one, tag=None) if elsewhere else one)
    results = [
        _Sentence(clean_sentence(group[0].sentence), tuple(group), _sections(group[0])) for group in groups.values()
    ]
    return [one for one in results if _WORD.search(one.text)]


def _sections(statement: Statement) -> frozenset[str]:
    results = (_SECTION.match(heading.strip()) for heading in statement.headings)
    return frozenset(match[1] for match in results if match)


def _bonus(ours: Sequence[_Sentence], theirs: Sequence[_Sentence], *, placed: bool) -> NDArray[np.float32]:
    """What references and places add to similarities: an array [ours, theirs]."""
    added = np.zeros((len(ours), len(theirs)), np.float32)
    labels, references, sections = defaultdict(list), defaultdict(list), defaultdict(list)
    for place, one in enumerate(theirs):
        if label := one.statements[0].label:
            labels[label].append(place)
        for reference in one.statements[0].references:
            references[reference].append(place)
        for section in one.sections:
            sections[section].append(place)
    for row, one in enumerate(ours):
        first = one.statements[0]
        if first.label:
            added[row, labels[first.label]] += _SAME_LABEL
        near = {place for reference in first.references for place in references[reference]}
        for reference in first.references:
            # {3.2.1} means section 3.2.1, and what appears in section 3.2 is near it.
            parts = reference.split(".")
            near |= {place for end in range(2, len(parts) + 1) for place in sections[".".join(parts[:end])]}
        added[row, sorted(near)] += _SAME_REFERENCE
    if placed:
        rows, columns = (np.linspace(0, 1, len(side), dtype=np.float32) for side in (ours, theirs))
        added += _SAME_PLACE * (1 - np.abs(rows[:, None] - columns[None, :]))
    return added


def _one_to_one(
    ours: Sequence[_Sentence],
    theirs: Sequence[_Sentence],
    cosines: NDArray[np.float32],
    scores: NDArray[np.float32],
    least: float,
) -> list[_Match]:
    """The same words first, in their order; then the pairs with the greatest sum of scores."""
    matches = []
    waiting: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(theirs):
        waiting[normalised(one.text)].append(place)
    left = []
    for row, one in enumerate(ours):
        same = waiting[normalised(one.text)]
        if same:
            best = max(same, key=lambda place: scores[row, place])
            same.remove(best)
            matches.append(_Match(row, best, 1.0))
        else:
            left.append(row)
    right = sorted(place for places in waiting.values() for place in places)
    if left and right:
        gain = np.maximum(scores[np.ix_(left, right)] - least, 0)
        for at, to in zip(*linear_sum_assignment(gain, maximize=True), strict=True):
            if gain[at, to] > 0:
                matches.append(_Match(left[at], right[to], float(cosines[left[at], right[to]])))
    return matches


def _parts(
    ours: Sequence[_Sentence],
    theirs: Sequence[_Sentence],
    cosines: NDArray[np.float32],
    matches: Sequence[_Match],
) -> list[_Match]:
    """Sentences without a match of their own whose words are a part of one on the other side."""
    words = [[Counter(_WORD.findall(one.text.lower())) for one in side] for side in (ours, theirs)]

    def whole_of(part: Counter[str], wholes: Sequence[Counter[str]], similar: NDArray[np.float32]) -> int | None:
        """The most similar sentence that has nearly all words of a part."""
        for place in np.argsort(-similar).tolist():
            if similar[place] < _PART_SIMILAR:
                return None
            shorter = part.total() <= _CONTAINED * wholes[place].total()
            if shorter and (part & wholes[place]).total() >= _CONTAINED * part.total():
                return int(place)
        return None

    results = [
        _Match(row, whole, float(cosines[row, whole]))
        for row in set(range(len(ours))) - {one.old for one in matches}
        if (whole := whole_of(words[0][row], words[1], cosines[row])) is not None
    ]
    results += [
        _Match(whole, place, float(cosines[whole, place]))
        for place in set(range(len(theirs))) - {one.new for one in matches}
        if (whole := whole_of(words[1][place], words[0], cosines[:, place])) is not None
    ]
    return results


def _draft_changes(
    ours: Sequence[_Sentence],
    theirs: Sequence[_Sentence],
    matches: Sequence[_Match],
) -> Iterator[Change]:
    """Changes in the order of the new text."""
    placed: list[tuple[float, Change]] = []
    where = {match.old: match.new for match in matches}
    for group in _joined(matches):
        olds, news = sorted({one.old for one in group}), sorted({one.new for one in group})
        similarity = max(one.similarity for one in group)
        sides = [
            [one for place in places for one in side[place].statements]
            for side, places in ((ours, olds), (theirs, news))
        ]
        placed += [(news[0], change) for change in _aligned(sides[0], sides[1], similarity)]
    for place in set(range(len(theirs))) - {one.new for one in matches}:
        placed += [(place, Change("added", None, one)) for one in theirs[place].statements if has_terms(one)]
    before = -1.0
    for row, sentence in enumerate(ours):
        if row in where:
            before = where[row] + 0.5
        else:
            placed += [(before, Change("dropped", one, None)) for one in sentence.statements if has_terms(one)]
    yield from (change for _, change in sorted(placed, key=lambda pair: pair[0]))


def _joined(matches: Sequence[_Match]) -> list[list[_Match]]:
    """Matches that share a sentence on either side, together."""
    group_of: dict[tuple[str, int], list[_Match]] = {}
    for match in matches:
        keys = (("old", match.old), ("new", match.new))
        groups = {id(group): group for key in keys if (group := group_of.get(key)) is not None}
        joined = [match, *(one for group in groups.values() for one in group)]
        for one in joined:
            group_of["old", one.old] = group_of["new", one.new] = joined
    return list({id(group): group for group in group_of.values()}.values())


def _aligned(old: Sequence[Statement], new: Sequence[Statement], similarity: float) -> Iterator[Change]:
    """The statements of sentences that belong together, each with its counterpart of the most similar words."""
    words = [[_WORD.findall(one.text.lower()) for one in side] for side in (old, new)]
    alike = np.array(
        [[SequenceMatcher(None, one, other, autojunk=False).ratio() for other in words[1]] for one in words[0]]
    )
    # A half without a term is not the counterpart of a whole that has one where the other half has one too; of
    # statements with the same words, the first belongs to the first.
    alike += _BOTH_ASSESSED * np.array([[has_terms(one) == has_terms(other) for other in new] for one in old])
    order = np.abs(np.arange(len(old))[:, None] - np.arange(len(new))[None, :])
    pairs = dict(
        zip(*(side.tolist() for side in linear_sum_assignment(alike - 0.01 * order, maximize=True)), strict=True)
    )
    for row, one in enumerate(old):
        other = new[pairs[row]] if row in pairs else None
        if other is not None and (has_terms(one) or has_terms(other)):
            yield Change(_status(one, other), one, other, similarity)
        elif other is None and has_terms(one):
            yield Change(
                "level removed" if one.tag else "terms changed", one, new[int(alike[row].argmax())], similarity
            )
    for place in set(range(len(new))) - set(pairs.values()):
        other = new[place]
        if has_terms(other):
            yield Change(
                "level added" if other.tag else "terms changed", old[int(alike[:, place].argmax())], other, similarity
            )


def _status(old: Statement, new: Statement) -> Status:
    if old.tag != new.tag:
        return "level added" if old.tag is None else "level removed" if new.tag is None else "level changed"
    if (old.likelihood, old.evidence, old.agreement) != (new.likelihood, new.evidence, new.agreement):
        return "terms changed"
    return "unchanged" if normalised(old.text) == normalised(new.text) else "reworded"


def write_comparison(comparison: Comparison, path: Path, names: Iterable[str] = ("old", "new")) -> None:
    """Write all changes: ``.html`` a page with the words side by side, ``.csv``, ``.xlsx`` or else JSON lines.

    Raises:
        InputError: The file cannot be written.
    """
    from climassay.io import write_file
    from climassay.reporting.html import render_page
    from climassay.reporting.results import write_rows

    if path.suffix.lower() not in (".html", ".htm"):
        write_rows(path, [change_row(one) for one in comparison.changes])
        return
    shown = [
        (
            change,
            *word_pieces(change.old.original if change.old else "", change.new.original if change.new else ""),
            *(place_of(one) if one else "" for one in (change.old, change.new)),
        )
        for change in comparison.changes
    ]
    old, new = names
    write_file(path, render_page("confidence_compare.html.j2", comparison=comparison, changes=shown, old=old, new=new))
