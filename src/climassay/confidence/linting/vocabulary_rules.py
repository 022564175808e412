"""Rules on words that look like calibrated terms and are none."""

import re
from collections.abc import Iterator

from climassay.confidence.linting.draft import Draft, Sentence
from climassay.confidence.linting.finding import Example, Remark, Rule

_BOX = "AR6 WG1, Box 1.1"
_CONFIDENCE_WORDS = {
    "moderate": "medium",
    "moderately high": "medium",
    "fair": "medium",
    "reasonable": "medium",
    "considerable": "high",
    "strong": "high",
    "great": "high",
    "fairly high": "high",
    "quite high": "high",
    "relatively high": "high",
    "rather high": "high",
    "reasonably high": "high",
    "extremely high": "very high",
    "exceptionally high": "very high",
    "highest": "very high",
    "full": "very high",
    "complete": "very high",
    "absolute": "very high",
    "total": "very high",
    "very medium": "medium",
    "weak": "low",
    "poor": "low",
    "limited": "low",
    "little": "low",
    "fairly low": "low",
    "quite low": "low",
    "relatively low": "low",
    "rather low": "low",
    "extremely low": "very low",
    "exceptionally low": "very low",
    "no": "very low",
}
_LIKELIHOOD_WORDS = {
    "highly likely": "very likely",
    "quite likely": "likely",
    "fairly likely": "likely",
    "rather likely": "likely",
    "reasonably likely": "likely",
    "relatively likely": "likely",
    "somewhat likely": "more likely than not",
    "quite certain": "extremely likely",
    "almost certain": "virtually certain",
    "almost certainly": "virtually certain",
    "nearly certain": "virtually certain",
    "near certain": "virtually certain",
    "practically certain": "virtually certain",
    "very probable": "very likely",
    "highly probable": "very likely",
    "very probably": "very likely",
    "probably": "likely",
    "highly unlikely": "very unlikely",
    "quite unlikely": "unlikely",
    "fairly unlikely": "unlikely",
    "rather unlikely": "unlikely",
    "highly improbable": "very unlikely",
    "improbable": "unlikely",
    "very improbable": "very unlikely",
}
_EVIDENCE_WORDS = {
    **dict.fromkeys(
        ("strong", "high", "good", "ample", "solid", "much", "compelling", "overwhelming", "strongest"), "robust"
    ),
    **dict.fromkeys(("moderate", "some", "fair"), "medium"),
    **dict.fromkeys(("low", "weak", "poor", "little", "sparse", "scarce", "insufficient"), "limited"),
}
_AGREEMENT_WORDS = {
    **dict.fromkeys(
        ("strong", "robust", "good", "broad", "wide", "widespread", "full", "general", "very high"), "high"
    ),
    **dict.fromkeys(("moderate", "fair", "some"), "medium"),
    **dict.fromkeys(("weak", "poor", "limited", "little", "no"), "low"),
}


def _any_of(words: dict[str, str]) -> str:
    """The longest first, so that "very probably" is not read as "probably"."""
    ordered = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", r"[\s-]+") for word in ordered)


_CONFIDENCE = re.compile(
    rf"(?<![\w-])(?P<word>{_any_of(_CONFIDENCE_WORDS)})(?P<end>\s+confidence)\b(?!\s+(?:intervals?|bounds?|limits?|levels?|statements?|in\s+"
    r"(?:the\s+)?(?:government|institution|market|currenc|science|scientist|econom|public|leader)))",
    re.IGNORECASE,
)
_CONFIDENT = re.compile(
    r"(?<![\w-])(?:(?P<how>very|highly|fairly|quite|reasonably|extremely|absolutely|virtually)\s+)?confident\b(?=\s+that\b|\s*[,)])",
    re.IGNORECASE,
)
_HOW_CONFIDENT = {"fairly": "medium", "quite": "high", "reasonably": "medium", "": "high", "highly": "high"}
_LIKELIHOOD = re.compile(rf"(?<![\w-])(?P<word>{_any_of(_LIKELIHOOD_WORDS)})\b(?!\s+not\s+the\b)", re.IGNORECASE)
_NO_TERM = re.compile(r"(?:more|less|equally|not|most|least|as)\s+\Z", re.IGNORECASE)
_EVIDENCE = re.compile(rf"(?<![\w-])(?P<word>{_any_of(_EVIDENCE_WORDS)})(?P<end>\s+evidence)\b", re.IGNORECASE)
_AGREEMENT = re.compile(rf"(?<![\w-])(?P<word>{_any_of(_AGREEMENT_WORDS)})(?P<end>\s+agreement)\b", re.IGNORECASE)
_PAIR_END = re.compile(r"[\s,;*_]*(?:and|but|with|or)?[\s*_]*(?:\w+\s+){1,3}(?:evidence|agreement)\b", re.IGNORECASE)
_PAIR_START = re.compile(r"\b(?:evidence|agreement)[\s,;*_]*(?:and|but|with|or)?[\s*_]*\Z", re.IGNORECASE)
_BRACKETS = re.compile(r"[(\[]([^()\[\]]{0,300})[)\]]")
_SHORT_BRACKETS = 8
"""Words from which on brackets hold a sentence rather than a tag."""


def _confidence(draft: Draft) -> Iterator[Remark]:
    for sentence in draft.sentences:
        for match in _CONFIDENCE.finditer(sentence.text):
            yield _of(sentence, match, _CONFIDENCE_WORDS, "confidence", "is not a level of confidence")
        for match in _CONFIDENT.finditer(sentence.text):
            if _NO_TERM.search(sentence.text[: match.start()]):
                continue
            level = _HOW_CONFIDENT.get((match["how"] or "").lower(), "very high")
            yield Remark(
                *sentence.at(*match.span()),
                f'"{match.group()}" is not a level of confidence: name one of the five, perhaps {level} confidence.',
                f"({level} confidence)",
            )


def _likelihood(draft: Draft) -> Iterator[Remark]:
    for sentence in draft.sentences:
        for match in _LIKELIHOOD.finditer(sentence.text):
            if not _NO_TERM.search(sentence.text[: match.start()]):
                yield _of(sentence, match, _LIKELIHOOD_WORDS, "", "is not a term of likelihood")


def _evidence(draft: Draft) -> Iterator[Remark]:
    for pattern, words, noun in ((_EVIDENCE, _EVIDENCE_WORDS, "evidence"), (_AGREEMENT, _AGREEMENT_WORDS, "agreement")):
        for sentence in draft.sentences:
            brackets = _tag_brackets(sentence.text)
            for match in pattern.finditer(sentence.text):
                if _is_rating(sentence.text, match, brackets):
                    yield _of(sentence, match, words, noun, f"does not rate {noun}")


def _of(sentence: Sentence, match: re.Match[str], words: dict[str, str], noun: str, what: str) -> Remark:
    known = words[re.sub(r"[\s-]+", " ", match["word"].lower())]
    better = f"{known} {noun}".strip()
    said = " ".join(match.group().split())
    return Remark(*sentence.at(*match.span()), f'"{said}" {what} in the calibrated vocabulary: say "{better}".', better)


def _tag_brackets(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _BRACKETS.finditer(text) if len(match[1].split()) <= _SHORT_BRACKETS]


def _is_rating(text: str, match: re.Match[str], brackets: list[tuple[int, int]]) -> bool:
    """Evidence in ordinary English is none: only in short brackets, or evidence and agreement side by side."""
    if any(start < match.start() and match.end() < end for start, end in brackets):
        return True
    pair = _PAIR_END.match(text, match.end()) or _PAIR_START.search(text[max(0, match.start() - 40) : match.start()])
    return pair is not None


CONFIDENCE_VOCABULARY = Rule(
    "confidence-vocabulary",
    "warning",
    "no level of confidence",
    f"A level of confidence is very low, low, medium, high or very high ({_BOX}); readers cannot place other words.",
    (
        Example("Rain will increase (moderate confidence).", "Rain will increase (medium confidence)."),
        Example("We are highly confident that rain will increase.", "Rain will increase (high confidence)."),
        Example("Rain will increase (extremely high confidence).", "Rain will increase (very high confidence)."),
    ),
    _confidence,
)
LIKELIHOOD_VOCABULARY = Rule(
    "likelihood-vocabulary",
    "warning",
    "no term of likelihood",
    f"Terms of likelihood stand for ranges of probability ({_BOX}); everybody reads other words differently.",
    (
        Example("Rain will fairly likely increase.", "Rain will likely increase."),
        Example("Rain will almost certainly increase.", "It is virtually certain that rain will increase."),
    ),
    _likelihood,
)
EVIDENCE_VOCABULARY = Rule(
    "evidence-vocabulary",
    "warning",
    "no summary term of evidence or agreement",
    f"Evidence is limited, medium or robust, agreement low, medium or high ({_BOX}). Checked in brackets, and where "
    "evidence and agreement stand side by side.",
    (
        Example("Yields fall (strong evidence, high agreement).", "Yields fall (robust evidence, high agreement)."),
        Example("Yields fall (medium evidence, strong agreement).", "Strong evidence points to falling yields."),
    ),
    _evidence,
)
VOCABULARY_RULES = (CONFIDENCE_VOCABULARY, LIKELIHOOD_VOCABULARY, EVIDENCE_VOCABULARY)
