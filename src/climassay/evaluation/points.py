"""Points of a long answer: which sentences the collections bear out, and which references exist."""

from collections.abc import Mapping, Sequence

from climassay.corpus.documents import Passage
from climassay.corpus.sentences import locate_quotation
from climassay.grounding.text_check import CheckedSentence
from climassay.reporting.html import Finding, TextPart, Tone

TONES: Mapping[str, Tone] = {"supported": "right", "unsupported": "middle", "contradicted": "wrong"}


def point_scores(points: Sequence[CheckedSentence]) -> dict[str, float]:
    """Scores of a looked-up answer from 0 to 1, 1 being best.

    ``points_supported``
        Share of the sentences that claim something that the collections bear out.
    ``references_found``
        Share of the references that exist among those that exist, are invented or malformed. References that nobody
        could look up ("not checked") count in neither.

    An answer that claims nothing, or gives no reference that could be looked up, has no score.
    """
    claims = [one.status for one in points if one.status != "no claim"]
    statuses = [one.status for point in points for one in point.references if one.status != "not checked"]
    found = {"points_supported": claims.count("supported") / len(claims)} if claims else {}
    return found | ({"references_found": statuses.count("exists") / len(statuses)} if statuses else {})


def given_passages(ids: Sequence[str], texts: Sequence[str]) -> dict[int, Passage]:
    """The passages that the writer of an answer was given, by the numbers under which they were shown."""
    shown = enumerate(zip(ids, texts, strict=False), start=1)
    return {number: Passage(name, text, name, name, name, number) for number, (name, text) in shown}


def coloured(answer: str, points: Sequence[CheckedSentence]) -> tuple[TextPart, ...]:
    """An answer in parts, each sentence that claims something in the colour of its support; nothing without points."""
    parts: list[TextPart] = []
    done = 0
    for point in points:
        span = locate_quotation(answer[done:], point.text)
        if span is None or point.status not in TONES:
            continue
        start, end = done + span[0], done + span[1]
        parts += [TextPart(answer[done:start])] * (start > done)
        parts.append(TextPart(answer[start:end], TONES[point.status], f"{point.status}: {point.reason}"))
        done = end
    return (*parts, TextPart(answer[done:])) if parts else ()


def point_findings(points: Sequence[CheckedSentence]) -> list[Finding]:
    """What was looked up, for reports: sentences that are contradicted or that nothing bears, and wrong references."""
    found = []
    for point in points:
        quotation = "" if point.evidence is None else point.evidence.quotation
        if point.status in ("contradicted", "unsupported"):
            found.append(Finding(point.text, point.status, TONES[point.status], point.reason, quotation))
        found += [Finding(one.text, one.status, "wrong", one.reason) for one in point.wrong_references]
    return found
