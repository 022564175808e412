"""Rules on words that look like calibrated terms and are none, and on terms that are misspelt.

What is not a term is recognised by grammar rather than by a list of phrases: a word of degree ("fairly",
"exceptionally"), a word of amount ("strong", "moderate") and a head ("confidence", "likely", "evidence") that do not
make one of the terms. A word is taken for a misspelt term where the words around it make a term of it ("hgh
confidence", "very likley") and it is not one of the English words that lie as near.

Rules on figures beside calibrated terms: the probability that a text gives, and what the terms stand for.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from climassay.confidence.linting.draft import Example, Remark, Sentence, rule
from climassay.confidence.marks import TagMark, is_held_by_people, is_mentioned, is_opinion
from climassay.confidence.vocabulary import AGREEMENT, EVIDENCE, LIKELIHOOD_RANGES, LIKELIHOODS, TAGS, Tag

_BOX = "AR6 WG1, Box 1.1"
EQUATES = (
    r"(?:i\.\s?e\.|that\s+is(?:\s+to\s+say)?|in\s+(?:other|plain)\s+words|in\s+short|(?:or\s+)?put\s+(?:differently|"
    r"another\s+way)|namely|"
    r"or(?:\s+rather)?|=|≈|(?:which|this)\s+is|(?:(?:which|this|that|it)\s+)?(?:means?|implies|equals?|denotes|"
    r"stands?\s+for|amounts?\s+to|equates\s+to|"
    r"corresponds?\s+to|translates?\s+(?:in)?to|is\s+(?:the\s+same\s+as|equivalent\s+to|equal\s+to))|meaning|implying|"
    r"equal(?:ling|\s+to)|equivalent\s+to|amounting\s+to|corresponding\s+to|translating\s+(?:in)?to|(?:defined|"
    r"expressed|interpreted)\s+as)"
)
"""Words that say the same thing again."""
CONCLUDES = (
    r"(?:(?:and\s+)?(?:so|hence|thus|therefore|consequently|accordingly|as\s+a\s+result|it\s+follows)|(?:which|"
    r"this)\s+(?:shows?|proves?|"
    r"suggests?|gives?)|leads?\s+to|leading\s+to|proving|showing|giving)"
)
"""Words that draw a conclusion."""
_STRONGLY = (
    "very|super|ultra|hugely|immensely|incredibly|tremendously|extremely|exceptionally|highly|really|exceedingly|extraordinarily|extraordinary|"
    "overwhelmingly|remarkably|unusually|truly|vanishingly"
)
_PARTLY = (
    "fairly|quite|rather|relatively|reasonably|moderately|somewhat|pretty|comparatively|sufficiently|slightly|"
    "modestly|substantially|considerably|largely"
)
_NEARLY = (
    r"virtually|almost|nearly|near|next\s+to|practically|absolutely|completely|totally|entirely|all[\s-]but|"
    r"as[\s-]good[\s-]as"
)
_DEGREE = f"{_STRONGLY}|{_PARTLY}|{_NEARLY}"
_AMOUNTS = {
    "very high": "every|full|complete|absolute|total|utmost|maximum|maximal|overwhelming|unshakeable|near[\\s-]total",
    "high": "high|strong|great|considerable|substantial|significant|solid|firm|robust|good|much|ample|large|compelling",
    "medium": "medium|moderate|intermediate|average|middling|fair|reasonable|modest",
    "low": "low|weak|poor|limited|little|slight|scant|minimal|scarce|slim|thin|small",
    "very low": "no|zero",
}
_AMOUNT = "|".join(_AMOUNTS.values())
_EVIDENCE_ONLY = {
    "medium": "some",
    "robust": "ample|extensive|abundant|clear|conclusive|strongest|unequivocal|convincing|overwhelming",
    "limited": "sparse|insufficient|inadequate|patchy|anecdotal",
}
_AGREEMENT_ONLY = {"high": "broad|wide|widespread|general|universal|close|excellent|unanimous", "low": "partial"}
_GAP = r"[\s*_-]+"


def _phrase(amounts: str, head: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w-])(?:(?P<how>{_DEGREE}){_GAP})?(?P<word>{amounts})(?:[-\u2010]?ish)?{_GAP}(?P<head>{head})\b(?![-\u2010]\w)",
        re.IGNORECASE,
    )


_CONFIDENCE = _phrase(_AMOUNT, "confidence")
_NOT_A_LEVEL = re.compile(
    r"\s+(?:intervals?|bounds?|limits?|levels?|statements?|scores?|bands?|ranges?)\b", re.IGNORECASE
)
_CERTAINTY = _phrase(_AMOUNT, "certainty|certitude")
_OTHER_HEAD = re.compile(
    rf"[(\[][*_\s]*(?:(?:{_DEGREE}){_GAP})?(?P<word>{_AMOUNT}){_GAP}(?:uncertainty|assurance|reliability|credibility|"
    rf"trust|"
    rf"conviction|"
    r"belief|plausibility)[*_\s]*[)\]](?=\s*(?:[.;]|$))",
    re.IGNORECASE,
)
_MUCH = re.compile(
    rf"(?:{_AMOUNT}|a)\s+(?:degree|level|deal|measure|amount|lot)\s+of\s+(?:confidence|certainty)(?=\s+(?:that|in)\b)",
    re.IGNORECASE,
)
_RANGE_FROM = re.compile(
    rf"(?<![\w-])(?!(?:low|medium|high)\b)(?:{_AMOUNT}){_GAP}(?:to|or|and|[/–-]){_GAP}(?:very\s+)?(?:low|medium|"
    rf"high){_GAP}confidence\b",
    re.IGNORECASE,
)
_ANY_WORD = re.compile(r"[(\[][*_\s]*(?P<word>[a-z]+)\s+confidence[*_\s]*[)\]](?=\s*(?:[.;,{]|$))", re.IGNORECASE)
_PERCENT_IN = re.compile(
    r"\bconfidence\s+(?:in|that)\b[^.;:()]{0,80}?\s(?:is|was)\s+(?:about\s+)?\d{1,3}\s?(?:%|per\s?cent)", re.IGNORECASE
)
_WE_ARE = re.compile(
    r"\b(?:we|authors|experts)\s+(?:are|remain|feel)\s+(?:[\w%]+\s+){0,3}?(?P<how>certain|sure|convinced|"
    r"positive)(?=\s+that\b)",
    re.IGNORECASE,
)
_SURE = re.compile(rf"[(\[][*_\s]*(?:(?:{_DEGREE}){_GAP})?sure[*_\s]*[)\]](?=\s*(?:[.;]|$))", re.IGNORECASE)
_SAID_SURELY = re.compile(
    r"\b(?:sa(?:y|id)|state[sd]?|conclude[sd]?|assert(?:ed)?|claim(?:ed)?)\s+(?P<how>with\s+(?:confidence|"
    r"certainty))(?=\s+that\b)",
    re.IGNORECASE,
)
_MISCALLED = re.compile(
    rf"(?<![\w-])(?P<word>(?:(?:{_DEGREE}){_GAP})?(?:(?:un)?likely|certain)){_GAP}(?P<head>confidence)\b", re.IGNORECASE
)
_CONFIDENT = re.compile(
    r"(?<![\w-])(?:(?P<how>\d{1,3}\s?%|(?:\w+ly|very|quite|rather))\s+)?confident\b(?=\s+that\b|\s*[,)])"
    r"|\b(?<!be )confidently(?=\s+(?:conclude|state|say|assert|assess|attribute|project|expect)(?:d|ed|s)?\b)"
    r"|(?<=stated )confidently(?=\s+that\b)|(?<=said )confidently(?=\s+that\b)"
    r"|\b(?:with|at|there\s+is)\s+(?P<percent>\d{1,3}\s?%)\s+confidence\b(?=\s+that\b)",
    re.IGNORECASE,
)
_AUXILIARIES = ("will", "would", "has", "have", "had")
_CHANCE = _phrase(_AMOUNT, "likelihood|probability|chance|possibility")
_BEYOND_DOUBT = (
    r"(?:beyond|without)(?:\s+(?:any|a|all))*\s+(?:doubt|question)(?=\s+that\b|\s*[,.)])|"
    r"(?<=will )without\s+(?:doubt|question)|"
    r"no\s+doubt(?=,|\s+\w+\s+\w+\s+will\b)|(?:with\s+(?:near|absolute|full|complete)|\Awith|"
    r"(?<=will )in\s+all)\s+certainty\b|"
    r"it\s+is\s+a\s+(?:near\s+)?certainty(?=\s+that\b)|it\s+goes\s+without\s+saying(?=\s+that\b)|"
    r"(?<=\bit is )(?:far\s+from|anything\s+but)\s+certain(?=\s+that\b)"
)
_STATING_MOST = (
    rf"most(?=\s+(?:im)?probably)|(?:{'|'.join(f'(?<={verb} )' for verb in _AUXILIARIES)})most(?=\s+(?:un)?likely)"
)
"""In "will most likely fall" it rates the outcome; in "the most likely cause", "most likely in summer" it compares."""
_LIKELY = re.compile(
    rf"(?<![\w-])(?P<how>{_DEGREE}|{_STATING_MOST}|high|low|medium|moderate|strong|weak){_GAP}(?P<head>(?:un)?likely|"
    rf"(?:im)?probabl[ey]|"
    r"certain(?:ly)?|surely|(?:plausible|possible|impossible|sure)(?=\s+that\b))\b(?![-\u2010]\w)"
    r"|(?<![\w-])(?P<alone>(?:more|less)\s+than\s+likely(?!\s+not)|less\s+likely\s+than\s+not|"
    r"equally\s+likely\s+as\s+not|"
    r"in\s+all\s+(?:likelihood|probability)|there\s+is\s+(?:very\s+|extremely\s+)?(?:un)?likely(?=\s+that\b)|(?:more|"
    r"less)\s+probable\s+than\s+not|"
    r"as\s+likely\s+as\s+(?:it\s+is\s+)?unlikely|"
    r"\d{1,3}\s?%\s+(?:likely|certain|sure)(?=\s+(?:that|to)\b)|very\s+much\s+likely|"
    r"(?:about\s+)?as\s+likely\s+th[ae]n\s+not|more\s+likely\s+as\s+not|more\s+likely\s+(?:then|"
    r"that)\s+not(?=\s+(?:that|to)\b|\s*[,.;)])|improbable|probably)\b(?!\s+not\s+the\b|-)"
    rf"|(?<![\w-])(?P<sure>there\s+(?:is|can\s+be)\s+(?:no|little|hardly\s+any|scarcely\s+any)\s+doubt(?=\s+that\b)|"
    rf"{_BEYOND_DOUBT}|"
    r"(?:undoubtedly|indubitably|unquestionably|indisputably|doubtless)(?!\s+(?:said|wrote))|"
    r"(?:(?<=will )|(?<=will not ))(?:certainly|surely|definitely|assuredly)|"
    r"(?<=\bit is )(?:more|less|increasingly)\s+likely(?=\s+that\b(?!.*\b(?:than|if|when|where|under|unless|once|"
    r"with)\b))|(?<=is )(?:50[:/–-]50|"
    r"fifty-fifty)(?=\s+whether)|"
    r"(?<=\bit is )(?:certain|sure|clear\s+beyond\s+doubt|a\s+safe\s+bet)(?=\s+that\b[^.;]{0,80}?\b(?:will|would)\b)|"
    r"(?:(?<=is )|(?<=are ))(?:(?:sure|certain)(?=\s+to\s+(?!(?:the|a|an|its|their|this|that|be\s+(?:on|in))\b)\w)|"
    r"bound(?=\s+to\s+(?:be(?!\s+(?:on|in)\b)|become|cause|come|continue|decline|exceed|fail|fall|grow|happen|have|increase|"
    r"intensify|lead|lose|occur|reach|rise|shrink|spread|suffer|worsen)\b))|"
    rf"(?:the\s+)?(?:odds|chances?|probability|likelihood)\s+(?:is|"
    rf"are)\s+(?:(?:{_DEGREE})\s+)?(?:(?:{_AMOUNT})\s+)?(?=that\b)|"
    r"(?:(?<=\A)|(?<=[;:,.]\s))most\s+likely(?=,))",
    re.IGNORECASE,
)
_PARTICULAR = re.compile(
    r"\s+(?:\w+ly\s+)?(?:\w+\s+)?(?:extent|degree|amounts?|kinds?|types?|areas?|regions?|cases?|circumstances|"
    r"conditions)\b"
)
_NO_TERM = re.compile(r"\b(?:more|less|equally|most|least|as|so|how)\s+\Z", re.IGNORECASE)
_ASKED_HOW = re.compile(r"\b(?:how|as|so)\s+\Z", re.IGNORECASE)
_NOT_RATING = re.compile(
    r"\b(?:not|whether|if)\b[^.;:()]*\Z|\b(?:says?|said|wrote|writes?|asked|argue[sd]?|claim(?:s|ed)?)\b|\b(?:paper|"
    r"section|chapter|team)\b",
    re.IGNORECASE,
)
"""Denied, asked or told by somebody, or about the text."""
_WHETHER = re.compile(r"\bwhether\b[^,.;:()]*\Z", re.IGNORECASE)
_EVIDENCE = _phrase("|".join((_AMOUNT, *_EVIDENCE_ONLY.values())), "evidence")
_AGREEMENT = _phrase("|".join((_AMOUNT, *_EVIDENCE_ONLY.values(), *_AGREEMENT_ONLY.values())), "agreement")
_PAIR_WORD = rf"(?:(?:{_DEGREE})\s+)?(?:limited|{_AMOUNT}|\w+ed|\w+ive)"
_PAIR_END = re.compile(
    rf"[\s,;*_]*(?:and|but|with|or)?[\s*_]*(?:{_PAIR_WORD})\s+(?:evidence|agreement)\b", re.IGNORECASE
)
_PAIR_START = re.compile(
    rf"\b(?:{_PAIR_WORD})\s+(?:evidence|agreement)[\s,;*_]*(?:and|but|with|or)?[\s*_]*\Z", re.IGNORECASE
)
_BRACKETS = re.compile(r"[(\[]([^()\[\]]{0,300})[)\]]")
_ANY_AMOUNT = "|".join((_AMOUNT, _DEGREE, *_EVIDENCE_ONLY.values(), *_AGREEMENT_ONLY.values()))
_RATED = re.compile(r"(?:limited|medium|robust)\s+evidence|(?:low|medium|high)\s+agreement", re.IGNORECASE)
_UNRATED = re.compile(
    r"(?:(?:(?:very\s+)?(?P<word>[\w-]+))\s+(?:evidence|agreement)|(?:[\w-]+\s+)?(?:consensus|data|support|"
    r"literature|unanimity))",
    re.IGNORECASE,
)
_NEAR = 40
"""Characters before words in which what governs them is looked for."""
_SHORT_BRACKETS = 8
"""Words from which on brackets hold a sentence rather than a tag."""
_THERE_IS = re.compile(r"\b(?:there\s+(?:is|was|remains)|with|have|has)\s+(?:an?\s+|now\s+|only\s+)*\Z", re.IGNORECASE)
_THAT = re.compile(r"\s+that\b", re.IGNORECASE)
_THAT_OR_IN = re.compile(r"\s+(?:that|in)\b|\s*[,.;)]", re.IGNORECASE)
_TERMS = (
    (("low", "medium", "high"), ("confidence", "agreement")),
    (("limited", "medium", "robust"), ("evidence",)),
    (("very",), ("low", "high")),
    (("very", "extremely"), ("likely", "unlikely")),
    (("virtually",), ("certain",)),
    (("exceptionally",), ("unlikely",)),
)
_CONFIDENCE_BEHIND = re.compile(r"[\s*_-]+confidence\b", re.IGNORECASE)
_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        """
        conference conferences confluence confluences confidences confident confidently confidant confidants
        confine confined evidences evidenced evident evidently eminence agreements argument arguments lively
        lovely likes liked likelier likeliest curtain contain certainly uncertain captain unlike hug hi hit
        his how law now row lows highs highly igh mediums median media limits robustly every ever vary verb
        """,
    )
)
"""English words that lie near terms."""
_WORD = re.compile(r"[^\W\d_]+")
_SHORT = 5
"""Letters up to which only swapped, lost and doubled letters count: other English words lie near short ones."""
_LIKELIHOOD_OF_LEVEL = {
    "very high": "very likely",
    "high": "likely",
    "medium": "about as likely as not",
    "low": "unlikely",
    "very low": "very unlikely",
}


def _confidence(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    for match in _CONFIDENCE.finditer(text):
        if _words(match).removesuffix(" confidence") in TAGS or _NOT_A_LEVEL.match(text, match.end()):
            continue
        if not (_ASKED_HOW.search(_before(text, match)) or is_held_by_people(text, *match.span())):
            yield _better(sentence, match, f"{_level(match)} confidence", "is not a level of confidence")
    for match in _CERTAINTY.finditer(text):
        framed = _THERE_IS.search(_before(text, match)) and _THAT_OR_IN.match(text, match.end())
        if (framed or _in_short_brackets(text, match)) and not is_held_by_people(text, *match.span()):
            yield _better(sentence, match, f"{_level(match)} confidence", "is not a level of confidence")
    for pattern in (_MUCH, _RANGE_FROM, _PERCENT_IN, _WE_ARE):
        for match in pattern.finditer(text):
            if not is_held_by_people(text, *match.span()) and (
                pattern is not _MUCH or _THERE_IS.search(_before(text, match))
            ):
                yield Remark(
                    *sentence.at(*match.span()), f'"{match.group()}" is no level of confidence: name one of the five.'
                )
    for match in _ANY_WORD.finditer(text):
        word = match["word"].lower()
        if not (
            re.fullmatch(rf"{_AMOUNT}|{_DEGREE}|(?:un)?likely|certain|(?:low|high)(?:er|est)", word)
            or any(misspelt(word, tag) for tag in TAGS)
        ):
            yield _better(sentence, match, "(medium confidence)", "is not a level of confidence")
    for match in _SURE.finditer(text):
        yield Remark(*sentence.at(*match.span()), f'"{match.group()}" is no level of confidence: name one of the five.')
    for match in _OTHER_HEAD.finditer(text):
        yield _better(sentence, match, f"({_amount(match['word'])} confidence)", "is not a level of confidence")
    for match in _SAID_SURELY.finditer(text):
        if not re.search(r"\b(?:not|cannot)\b", _before(text, match)) and not is_opinion(text, match.start()):
            yield Remark(*sentence.at(*match.span("how")), f'"{match["how"]}" is no level: name one of the five.')
    for match in _MISCALLED.finditer(text):
        if not is_held_by_people(text, *match.span()):
            message = (
                f'"{_words(match)}" mixes the two scales: confidence is low, medium or high, an outcome is likely.'
            )
            yield Remark(*sentence.at(*match.span()), message)
    for match in _CONFIDENT.finditer(text):
        if _NO_TERM.search(_before(text, match)) or re.search(r"\bnot\s+\Z", _before(text, match)):
            continue
        if is_held_by_people(text, *match.span()) or is_opinion(text, match.start()):
            continue
        how = match["how"] or match["percent"] or ""
        if how.endswith("%"):
            message = f'"{match.group()}" gives confidence as a probability: name one of the five levels.'
            yield Remark(*sentence.at(*match.span()), message)
            continue
        level = "medium" if re.fullmatch(_PARTLY, how, re.IGNORECASE) else "very high" if how else "high"
        message = f'"{match.group()}" is not a level of confidence: name one of the five, perhaps {level} confidence.'
        yield Remark(*sentence.at(*match.span()), message, f"({level} confidence)")


def _likelihood(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    for match in _LIKELY.finditer(text):
        said = _words(match)
        if match["sure"] is not None:
            if not (
                is_opinion(text, match.start())
                or is_mentioned(text, *match.span())
                or _NOT_RATING.search(text[: match.start()])
                or _NOT_RATING.search(text[match.end() :])
            ):
                yield _better(sentence, match, "virtually certain", "is not a term of likelihood")
            continue
        named = match["head"] is not None and match["head"][0].isupper() and match["how"].islower()
        if named or is_mentioned(text, *match.span()):
            continue  # "near Likely" is a place
        if said in LIKELIHOODS or _NO_TERM.search(_before(text, match)) or is_opinion(text, match.start()):
            continue
        if said.endswith("certain") and _PARTICULAR.match(text, match.end()):
            continue  # "in almost certain areas"
        if _WHETHER.search(text[: match.start()]):
            continue  # a question rates nothing
        yield _better(sentence, match, _likely_term(match), "is not a term of likelihood")
    for match in _CHANCE.finditer(text):
        framed = _THERE_IS.search(_before(text, match)) and _THAT.match(text, match.end())
        if (framed or _in_short_brackets(text, match)) and "-" not in match.group():
            yield _better(sentence, match, _LIKELIHOOD_OF_LEVEL[_level(match)], "is not a term of likelihood")


def _evidence(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    for pattern, terms, noun, more in (
        (_EVIDENCE, EVIDENCE, "evidence", _EVIDENCE_ONLY),
        (_AGREEMENT, AGREEMENT, "agreement", _EVIDENCE_ONLY | _AGREEMENT_ONLY),
    ):
        for match in pattern.finditer(text):
            # Evidence in ordinary English is not a rating: only in short brackets, or evidence and agreement side by
            # side.
            rates = (
                _in_short_brackets(text, match)
                or _PAIR_END.match(text, match.end())
                or _PAIR_START.search(text[max(0, match.start() - 60) : match.start()])
            )
            if _words(match).removesuffix(f" {noun}") in terms or not rates:
                continue
            word = match["word"]
            known = next((term for term, words in more.items() if re.fullmatch(words, word, re.IGNORECASE)), "")
            known = known or terms[min(max(TAGS.index(_amount(word)) - 1, 0), 2)]
            # What is robust of evidence is high of agreement.
            better = f"{known if known in terms else terms[(*EVIDENCE, *AGREEMENT).index(known) % 3]} {noun}"
            yield _better(sentence, match, better, f"does not rate {noun}")
    for bracket in _BRACKETS.finditer(text):
        parts = [part.strip(" *_") for part in re.split(r"[,;]|\band\b", bracket[1])]
        if len(parts) == 2 and any(_RATED.fullmatch(part) for part in parts):
            for part in parts:
                if (odd := _UNRATED.fullmatch(part)) and not re.fullmatch(
                    rf"(?:{_ANY_AMOUNT})(?:-(?:{_ANY_AMOUNT}))*", odd["word"] or "", re.IGNORECASE
                ):
                    start = text.index(part, bracket.start())
                    message = f'"{part}" rates neither evidence nor agreement in the calibrated vocabulary.'
                    yield Remark(*sentence.at(start, start + len(part)), message)


_IN_SINGLE_QUOTES = re.compile(r"(?<!\w)['‘]\w.*?[\w.,!?]['’](?!\w)")


def off_scale(sentence: Sentence) -> list[Remark]:
    """Words by which a sentence states its certainty and that are not calibrated terms."""
    return [remark for check in (_confidence, _likelihood, _evidence) for remark in _unquoted(check)(sentence)]


def _unquoted(check: Callable[[Sentence], Iterator[Remark]]) -> Callable[[Sentence], Iterator[Remark]]:
    """A check without what it says about words in quotation marks, which are somebody else's."""

    def checked(sentence: Sentence) -> Iterator[Remark]:
        for remark in check(sentence):
            place = sentence.places.index(remark.start)
            before = sentence.text[:place]
            within = any(one.start() < place < one.end() for one in _IN_SINGLE_QUOTES.finditer(sentence.text))
            if not within and before.count('"') % 2 == 0 and before.count("“") <= before.count("”"):
                yield remark

    return checked


def _amount(word: str) -> str:
    """The level of confidence that a word of amount comes nearest to."""
    return next(level for level, words in _AMOUNTS.items() if re.fullmatch(words, word, re.IGNORECASE))


def _level(match: re.Match[str]) -> str:
    """The level of confidence nearest to a word of amount and its word of degree."""
    near, how = _amount(match["word"]), match["how"] or ""
    if near in ("low", "high") and how and not re.fullmatch(_PARTLY, how, re.IGNORECASE):
        return f"very {near}"
    return near


def _likely_term(match: re.Match[str]) -> str:
    """The term of likelihood that comes nearest to words of degree and of likelihood."""
    if match["alone"]:
        return "unlikely" if match["alone"].lower().split()[0] in ("less", "improbable") else "likely"
    head, how = match["head"].lower(), match["how"].lower()
    against = head.startswith(("un", "im"))
    if head.startswith("certain"):
        return "very likely" if re.fullmatch(_PARTLY, how) else "virtually certain"
    if re.fullmatch(_NEARLY, how):
        return "exceptionally unlikely" if against else "virtually certain"
    plain = "unlikely" if against else "likely"
    return f"very {plain}" if re.fullmatch(_STRONGLY, how) else plain


def _before(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - _NEAR) : match.start()]


def _words(match: re.Match[str]) -> str:
    return re.sub(r"[\s*_-]+", " ", match.group().lower())


def _better(sentence: Sentence, match: re.Match[str], better: str, what: str) -> Remark:
    said = " ".join(match.group().split())
    message = f'"{said}" {what} in the calibrated vocabulary: say "{better}".'
    return Remark(*sentence.at(*match.span()), message, better)


def _in_short_brackets(text: str, match: re.Match[str]) -> bool:
    return any(
        bracket.start() < match.start() and match.end() < bracket.end()
        for bracket in _BRACKETS.finditer(text)
        if len(bracket[1].split()) <= _SHORT_BRACKETS
    )


def misspelt(word: str, term: str) -> bool:
    """Whether a word is a term with a slip in it."""
    word = word.lower()
    if word == term or word in _ENGLISH or abs(len(word) - len(term)) > 2 or word[0] != term[0]:
        return False
    doubled = any(word == term[:at] + letter + term[at:] for at, letter in enumerate(term))
    if doubled or _swapped(word, term) or (len(term) > 3 and _lost(word, term)):
        return True
    return len(term) > _SHORT and _distance(word, term) <= (2 if len(term) > len("unlikely") else 1)


def _swapped(word: str, term: str) -> bool:
    return any(word == term[:at] + term[at + 1] + term[at] + term[at + 2 :] for at in range(len(term) - 1))


def _lost(word: str, term: str) -> bool:
    return any(word == term[:at] + term[at + 1 :] for at in range(len(term)))


def _distance(one: str, other: str) -> int:
    """Letters to change, add, remove or swap with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, start=1):
        older, before, row = before, row, [place]
        for at, wanted in enumerate(other, start=1):
            best = min(before[at] + 1, row[-1] + 1, before[at - 1] + (letter != wanted))
            if place > 1 and at > 1 and letter == other[at - 2] and one[place - 2] == wanted:
                best = min(best, older[at - 2] + 1)
            row.append(best)
    return row[-1]


def misspellings(sentence: Sentence) -> Iterator[tuple[int, int, str]]:
    """Where a misspelt term begins and ends, and the term that was meant."""
    text = sentence.text
    words = list(_WORD.finditer(text))
    done = -1
    for one, other in pairwise(words):
        if one.start() <= done or re.fullmatch(r"[\s*_-]{1,4}", text[one.end() : other.start()]) is None:
            continue
        meant = _meant(one.group().lower(), other.group().lower())
        if meant.endswith((" low", " high")) and not _CONFIDENCE_BEHIND.match(text, other.end()):
            continue
        # Files made of pages leave words in two: "high confidenc e".
        if meant and not text[one.start() :].replace(" ", "").lower().startswith(meant.replace(" ", "")):
            done = other.start()
            yield one.start(), other.end(), meant
    for word in words:
        slip = word.group().lower()
        if word.start() > done and slip not in _ENGLISH:
            for term in ("likely", "unlikely"):
                if slip[0] == term[0] and (_swapped(slip, term) or _lost(slip, term)):
                    yield *word.span(), term


def _meant(one: str, other: str) -> str:
    """The term that two neighbouring words stand for with a slip in one of them at least; empty if there is none."""
    for firsts, heads in _TERMS:
        for head in heads:
            for first in firsts:
                slipped = misspelt(one, first), misspelt(other, head)
                if any(slipped) and (slipped[0] or one == first) and (slipped[1] or other == head):
                    return f"{first} {head}"
    return ""


@rule(
    "misspelt-term",
    "warning",
    "term misspelt",
    "Readers and programs look for the exact terms: a finding whose term is misspelt is not found by it.",
    Example("Rain will increase (hgh confidence).", "Rain will increase (high confidence)."),
    Example("It is virtualy certain.", "The high-level conference was very lively."),
)
def _misspelt_term(sentence: Sentence) -> Iterator[Remark]:
    for start, end, meant in misspellings(sentence):
        message = f'"{sentence.text[start:end]}" is a misspelt term, which a search for the terms does not find.'
        yield Remark(*sentence.at(start, end), message, meant)


VOCABULARY_RULES = (
    rule(
        "confidence-vocabulary",
        "warning",
        "no level of confidence",
        f"A level of confidence is very low, low, medium, high or very high ({_BOX}); readers cannot place other "
        "words.",
        Example("Rain will increase (moderate confidence).", "Rain will increase (medium confidence)."),
        Example("We are highly confident that rain will increase.", "Rain will increase (high confidence)."),
        Example("Rain will increase (extremely high confidence).", "Rain will increase (very high confidence)."),
        Example("Rain will increase (high certainty).", "Farmers report strong confidence in the forecasts."),
        Example("Rain will increase (likely confidence).", "Rain will likely increase."),
    )(_unquoted(_confidence)),
    rule(
        "likelihood-vocabulary",
        "warning",
        "no term of likelihood",
        f"Terms of likelihood stand for ranges of probability ({_BOX}); everybody reads other words differently.",
        Example("Rain will fairly likely increase.", "Rain will likely increase."),
        Example("Rain will almost certainly increase.", "It is virtually certain that rain will increase."),
        Example("Rain will undoubtedly increase.", "The minister said that rain will undoubtedly increase."),
        Example("Rain is exceptionally likely to increase.", "Rain is extremely likely to increase."),
        Example("Rain will increase (high likelihood).", "Plans consider low-likelihood, high-impact outcomes."),
    )(_unquoted(_likelihood)),
    rule(
        "evidence-vocabulary",
        "warning",
        "no summary term of evidence or agreement",
        f"Evidence is limited, medium or robust, agreement low, medium or high ({_BOX}). Checked in brackets, and "
        "where evidence and agreement stand side by side.",
        Example("Yields fall (strong evidence, high agreement).", "Yields fall (robust evidence, high agreement)."),
        Example("Yields fall (medium evidence, strong agreement).", "Strong evidence points to falling yields."),
    )(_unquoted(_evidence)),
    _misspelt_term,
)


_RANGES = "AR6 WG1, Box 1.1"
_TOLERANCE = 0.015
_NEAR_TERM = 80
"""Characters around a term in which its probability is looked for."""
_DIGITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {**{word: place for place, word in enumerate(_DIGITS, start=1)}, "hundred": 100}
_TENS = ("ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_PERCENTS = {word: 10 * place for place, word in enumerate(_TENS, start=1)} | _COUNTS
_PARTS = {"third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_N = rf"(?:\d{{1,3}}|(?:an?\s+)?(?:{'|'.join(_COUNTS)}))"
_NUMBER = r"\d{1,3}(?:\.\d+)?"
_NOUN = r"(?:probabilit(?:y|ies)|chances?|likelihood|odds)"
_ABOVE = r"[>≥]|(?:more|greater|higher)\s+than|over|above|at\s+least|no\s+less\s+than|exceeding|upwards?\s+of"
_BELOW = r"[<≤]|(?:less|lower|fewer|smaller)\s+than|under|below|at\s+most|up\s+to|no\s+more\s+than"
_PROBABILITY = re.compile(
    rf"(?:(?:an?|the)\s+)?(?P<named>(?:{_NOUN}|\bp)\s*(?:(?:is|was|of|at|=|:|being|estimated\s+at)\s*){{0,2}})?"
    r"(?:(?:about|around|roughly|approximately|some|nearly|ca?\.|~|≈|an?)\s*)*"
    rf"(?:(?P<above>{_ABOVE})|(?P<below>{_BELOW}))?\s*(?:about\s+|an?\s+)?"
    rf"(?:(?:between\s+)?(?P<low>[<>≤≥]?{_NUMBER})(?:\s*%|st|nd|rd|th)?\s*(?:[-–—]|to|and)\s*"
    rf"(?P<high>[<>≤≥]?{_NUMBER})(?:\s*(?:%|per\s?cent)|(?:st|nd|rd|th)?\s+(?:per)?centiles?)"
    rf"|(?P<value>{_NUMBER})\s*(?:%|per\s?cent)|(?P<tens>(?:{'|'.join(_TENS)})(?:[\s-]+(?:{'|'.join(_DIGITS)}))?|"
    rf"{'|'.join(_DIGITS)})\s+per\s?cent"
    rf"|(?P<decimal>0?\.\d+)|(?P<of>{_N})(?:\s+(?:chances?|times|cases))?[\s-]+(?:in|out\s+of)[\s-]+(?P<all>{_N})"
    rf"|(?P<parts>an?|{'|'.join(_DIGITS)})[\s-]+(?P<nth>{'|'.join(_PARTS)})s?\b"
    rf"|(?P<half>(?:one\s+)?half|fifty[\s-]fifty|50[:/–-]50|even(?=\s+{_NOUN})|coin\s+(?:toss|flip)|(?:toss|"
    rf"flip)\s+of\s+a\s+coin))"
    r"(?P<more>\s+(?:or\s+(?:more|greater|higher|above|better)|at\s+(?:the\s+)?least))?"
    r"(?P<less>\s+(?:or\s+(?:less|lower|below)|at\s+(?:the\s+)?most))?"
    rf"(?P<after>\s*{_NOUN}\b(?:\s+of\s+(?:occurrence|being\s+(?:correct|right|true)))?)?",
    re.IGNORECASE,
)
_LEAD = rf"(?:(?:{EQUATES}|{CONCLUDES}|with|having|at)(?=[\s,:≈=<>≥≤\d]),?\s*)"
_BEFORE_FIGURE = re.compile(rf"\s*(?P<open>[(\[:,;–—]\s*)?(?P<lead>{_LEAD})?", re.IGNORECASE)
_LAST_BRACKETS = re.compile(
    r"[^.;:,()]{1,120}[(\[](?=(?:a\s+|with\s+a\s+)?(?:probability|p\b|\d+(?:\.\d+)?\s?%\s+(?:prob|chance)))"
)
_ELSEWHERE = re.compile(
    r"[;,:]\s(?:[^.;()]{0,60}?\s)?(?:the|a|its|this)\s+(?=(?:probability|chance)\s+(?:(?:is|was|at|of|"
    r"estimated)\s+)+(?:about\s+|around\s+)?[\d\w])",
    re.IGNORECASE,
)
_IN_RUNS = re.compile(
    rf"[;,:]\s[^.;()]{{0,60}}?\bin\s+(?=(?:only\s+)?(?:{_NUMBER}\s?%|{_N}\s+(?:in|"
    rf"out\s+of)\s+{_N})\s+(?:of\s+)?(?:(?:the|our|all)\s+)?(?:runs|simulations|members|realisations))",
    re.IGNORECASE,
)
_EARLIER = re.compile(
    r"\b(?:probability|chance)\b[^.;,()]{0,60}?\s(?:is|was|at|of)\s+(?:about\s+|around\s+)?(?=\d|(?:an?\s+)?(?:one|"
    r"two|three|four|five|six|seven|eight|nine|ten)\b)",
    re.IGNORECASE,
)
_THIS_IS = re.compile(
    rf"\s*[;,.]\s*(?:(?:{CONCLUDES})\s+)?(?:that\s+)?(?:(?:this|it|that|which|the\s+\w+)\s+is\s+)?(?:(?:therefore|"
    rf"thus|hence|so)\s+)?[*_]*\Z",
    re.IGNORECASE,
)
_SPAN = (
    rf"(?P<low>{_NUMBER})(?:\s?(?:%|°C|K|[cm]?m)\b)?\s*(?:to|[-–])\s*(?P<high>{_NUMBER})\s*(?P<unit>%|°C|[a-zA-Z]+)?"
)
_SPAN_BY = re.compile(rf"[\s*_]*(?:\w+\s+){{0,3}}?by\s+{_SPAN}")
_SPAN_BEHIND = re.compile(rf"[\s*_]*ranges?\b[^.;()\d]{{0,30}}?\(?{_SPAN}")
_SPAN_BEFORE = re.compile(rf"{_SPAN}\s*(?:\w+\s*)?[(\[][*_]*\Z")
_PERCENTILES = re.compile(
    r"\s*\branges?\b[^.;()]{0,60}?[(,]?[^.;()]{0,60}?\b(?P<low>\d\d?)(?:st|nd|rd|th)?\s*(?:to|and|[-–])\s*(?:the\s+)?"
    r"(?P<high>\d\d)(?:st|nd|rd|th)?\s+percentiles?\b"
)
_RANGE_HERE = re.compile(r"\s*\branges?\b")
_CLOSE = re.compile(r"\s*(?:[)\];,.:]|$)")
_RANGE_BEHIND = re.compile(r"\s*(?:[a-z]+\s+)?ranges?\b")
_MEANS = re.compile(
    r"[^.;()]{0,60}?(?<!not )\b(?:means?|denotes?|stands?\s+for|implies|signif(?:y|ies)|corresponds?\s+to|(?:is|"
    r"are)\s+(?:defined|"
    r"understood|interpreted|to\s+be\s+read)\s+as|translates?\s+(?:in)?to|"
    r"indicates?)\b(?![^.;]{0,20}\bnot\b)[^.;]{0,80}?$"
    rf"|[^.;()]{{0,60}}?[,;]\s*(?:{EQUATES}|{CONCLUDES}),?\s+(?:that\s+)?"
    r"(?:(?:it|the\s+(?:outcome|finding|statement|result))\s+has\s+(?:a\s+)?|the\s+chance\s+of\s+being\s+(?:wrong|"
    r"right|correct)\s+is\s+|it\s+is\s+(?:right|correct|true)\s+in\s+)?$",
    re.IGNORECASE,
)
_OLD_SCALE: dict[Tag, tuple[float, float]] = {
    "very low": (0.0, 0.1),
    "low": (0.05, 0.33),
    "medium": (0.33, 0.67),
    "high": (0.66, 0.95),
    "very high": (0.9, 1.0),
}
"""Chances of being right that the third and fourth assessment gave the levels; the guidance of 2010 dropped them."""


@dataclass(frozen=True, slots=True)
class StatedProbability:
    """A probability that a text gives in figures or number words: ``text[start:end]``."""

    start: int
    end: int
    low: float
    high: float
    kind: Literal["point", "bound", "range"]
    """A bound has one open end."""
    named: bool
    """Whether it is called a probability, chance, likelihood or odds: "20–30%" alone may be any quantity."""


def probability_at(text: str, place: int) -> StatedProbability | None:
    """The probability that begins at a place of a text, if one does."""
    match = _PROBABILITY.match(text, place)
    if match is None:
        return None
    named = bool(match["named"] or match["after"])
    kind: Literal["point", "bound", "range"] = "point"
    if match["low"] is not None:
        low, high = (float(match[end].lstrip("<>≤≥")) / 100 for end in ("low", "high"))
        kind = "range"
    else:
        if match["value"] is not None:
            low = float(match["value"]) / 100
        elif match["tens"] is not None:
            low = sum(_PERCENTS[word] for word in re.split(r"[\s-]+", match["tens"].lower())) / 100
        elif match["decimal"] is not None:
            low = float(match["decimal"])
        elif match["half"] is not None:
            low = 0.5
        elif match["nth"] is not None:
            low = _COUNTS.get(match["parts"].lower(), 1) / _PARTS[match["nth"].lower()]
        else:
            words = (match[name].lower().split()[-1] for name in ("of", "all"))
            of, every = (int(word) if word.isdecimal() else _COUNTS[word] for word in words)
            low = of / every if every else 2.0
        high = low
        if match["above"] or match["more"]:
            kind, high = "bound", 1.0
        elif match["below"] or match["less"]:
            kind, low = "bound", 0.0
    # "more than half of the emissions" is a share.
    share = (
        (match["of"] or match["half"] or match["nth"])
        and not named
        and re.match(r"\s+(?:of|the)\b", text[match.end() :])
    )
    if not 0 <= low <= high <= 1 or share or (match["decimal"] and not named):
        return None
    return StatedProbability(match.start(), match.end(), low, high, kind, named or bool(match["of"]))


def gives_probability(text: str) -> bool:
    """Whether a text gives a probability, called so, in figures or number words."""
    return any(result["named"] or result["after"] for result in _PROBABILITY.finditer(text))


@rule(
    "likelihood-range",
    "error",
    "numbers contradict the term of likelihood",
    f"Every term of likelihood stands for one range of probability ({_RANGES}, and the first footnotes of the "
    "summaries).",
    Example(
        "It is very likely (66–100%) that rain will increase.", "It is very likely (90–100%) that rain will increase."
    ),
    Example(
        "It is very likely (80%) that rain will increase.", "It is likely (80% probability) that rain will increase."
    ),
    Example(
        "The likely range is 2.0 to 5.0°C, the very likely range 2.5 to 4.0°C.",
        "The likely range is 2.5 to 4.0°C, the very likely range 2.0 to 5.0°C.",
    ),
)
def _likelihood_range(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    yield from _nested(sentence)
    for term in sentence.likelihoods:
        between = _PERCENTILES.match(text, term.end)
        held = LIKELIHOOD_RANGES[term.term][0]
        if between and abs((int(between["high"]) - int(between["low"])) / 100 - held) > _TOLERANCE:
            meaning = f'A "{term.term}" range holds {round(100 * held)}% of the probability'
            yield Remark(*sentence.at(term.start, between.end()), f"{meaning}; these percentiles hold another share.")
            continue
        named_range = _RANGE_HERE.match(text, term.end)
        stated = _behind(text, named_range.end() if named_range else term.end, ranged=bool(named_range))
        start, end = term.start, stated.end if stated else 0
        if stated is None:
            stated = _words_before(text, term.start)
            start, end = (stated.start, term.end) if stated else (0, 0)
        if stated is None and len(sentence.likelihoods) == 1 and (behind := _LAST_BRACKETS.match(text, term.end)):
            stated = probability_at(text, behind.end())
            end = stated.end if stated else 0
            stated = stated if stated and stated.named and _CLOSE.match(text, end) else None
        if stated is None and len(sentence.likelihoods) == 1:
            far = _ELSEWHERE.search(text, term.end) or _IN_RUNS.search(text, term.end)
            elsewhere = probability_at(text, far.end()) if far else None
            if elsewhere is None:
                elsewhere = next(_told_before(text, term.start), None)
            low, high = LIKELIHOOD_RANGES[term.term]
            if elsewhere and (elsewhere.high < low - _TOLERANCE or elsewhere.low > high + _TOLERANCE):
                stated, start, end = elsewhere, min(term.start, elsewhere.start), max(term.end, elsewhere.end)
        if stated is None or is_opinion(text, term.start):
            continue
        bracket = re.match(r"\s*[)\]]", text[end:])
        end += bracket.end() if bracket else 0
        # The word "range" may come before the numbers or behind them.
        ranged = bool(named_range) or _RANGE_BEHIND.match(text, end) is not None
        low, high = LIKELIHOOD_RANGES[term.term]
        fits = _fits(stated, low, high)
        if ranged:
            # A "very likely range (5-95%)" is named by its quantiles: it holds nine tenths of the probability.
            fits = fits or stated.kind == "point" or abs(stated.high - stated.low - low) <= _TOLERANCE + 0.005
            meaning = f'A "{term.term}" range holds {round(100 * low)}% of the probability'
        else:
            share = f"{round(100 * low)} to {round(100 * high)}%"
            meaning = f'"{term.term.capitalize()}" stands for a probability of {share}'
        if not fits:
            yield Remark(*sentence.at(start, end), f"{meaning}; the numbers beside it say something else.")


def _told_before(text: str, place: int) -> Iterator[StatedProbability]:
    """A probability told in the clause before a term: "the probability of a flood is 10%, so this is very likely"."""
    for match in _EARLIER.finditer(text, 0, place):
        stated = probability_at(text, match.end())
        if stated is not None and stated.end <= place and _THIS_IS.match(text[stated.end : place]):
            yield stated


def _nested(sentence: Sentence) -> Iterator[Remark]:
    """Ranges of a surer term that lie within those of a less sure one."""
    text = sentence.text
    spans = []
    for term in sentence.likelihoods:
        ranged = re.match(r"[\s*_]*ranges?\b", text[term.end :])
        before = _SPAN_BEFORE.search(text[: term.start]) if ranged else None
        found = before or (_SPAN_BEHIND if ranged else _SPAN_BY).match(text, term.end)
        if found:
            low, high = float(found["low"]), float(found["high"])
            spans.append((LIKELIHOOD_RANGES[term.term][0], low, high, found["unit"], term))
    for sure, low, high, unit, term in spans:
        for less, lower, higher, other, beside in spans:
            if sure > less and lower <= low and high <= higher and high - low < higher - lower and unit == other:
                message = (
                    f'A "{term.term}" range holds more of the probability, and so cannot lie within the other range.'
                )
                start, end = min(term.start, beside.start), max(term.end, beside.end)
                yield Remark(*sentence.at(start, end), message)


def _behind(text: str, place: int, *, ranged: bool = False) -> StatedProbability | None:
    """The probability that appears directly behind a term, and not a quantity: "likely 20-30% lower" speaks of one."""
    lead = _BEFORE_FIGURE.match(text, place)
    stated = probability_at(text, lead.end()) if lead else None
    if lead is None or stated is None:
        return None
    opened = (lead["open"] or "").strip()
    ends = _CLOSE.match(text, stated.end) is not None
    if ranged:
        return stated if opened in ("(", "[", ":") and ends and stated.kind == "range" else None
    if stated.named:
        return stated if opened or lead["lead"] or stated.end > place else None
    enclosed = opened in ("(", "[", ":") and ends
    reaches = stated.kind == "range" and (stated.high >= 1 or stated.low <= 0) and ends
    return stated if enclosed or reaches else None


def _words_before(text: str, place: int) -> StatedProbability | None:
    """A named probability directly before a term: "a 40% chance (likely)"."""
    base = max(0, place - _NEAR_TERM)
    gap = re.search(rf"\s*[(,]\s*(?:(?:{EQUATES}|{CONCLUDES}),?\s*)?(?:it\s+is\s+)?\Z", text[base:place], re.IGNORECASE)
    if gap is None:
        return None
    end = base + gap.start()
    for result in _PROBABILITY.finditer(text, base, end):
        stated = probability_at(text, result.start())
        if stated is not None and stated.named and stated.end == end:
            return stated
    return None


def _fits(stated: StatedProbability, low: float, high: float) -> bool:
    """Whether a range is that of a term and of no other, or a single probability lies within it."""
    if stated.kind == "point":
        return low - _TOLERANCE <= stated.low <= high + _TOLERANCE
    if stated.kind == "range":
        return abs(stated.low - low) <= _TOLERANCE and abs(stated.high - high) <= _TOLERANCE
    if stated.high == 1.0:
        return high == 1.0 and abs(stated.low - low) <= _TOLERANCE
    return low == 0.0 and abs(stated.high - high) <= _TOLERANCE


@rule(
    "level-as-probability",
    "warning",
    "level of confidence explained as a probability",
    "Confidence is qualitative and is not to be read as a probability (Mastrandrea et al. 2010, paragraph 9; "
    f"{_RANGES}); the chances that the third and fourth assessment gave the levels were dropped.",
    Example(
        "Ice melts (high confidence, about an 8 in 10 chance).",
        "Ice melts (high confidence), and yields fall by 20% (medium confidence).",
    ),
)
def _level_as_probability(sentence: Sentence) -> Iterator[Remark]:
    for mark in sentence.said:
        if not mark.levels or mark.attributive or mark.likelihood:
            continue
        stated = _explaining(sentence.text, mark)
        if stated is not None:
            yield Remark(
                *sentence.at(mark.start, stated.end),
                f"{mark.levels[-1].capitalize()} confidence stands for no probability: it sums up evidence and "
                "agreement. Give the probability as a term of likelihood, or leave it out.",
            )


def _explaining(text: str, mark: TagMark) -> StatedProbability | None:
    """The probability by which a text explains a level."""
    low, high = _OLD_SCALE[mark.levels[-1]]
    for place in dict.fromkeys((mark.end, mark.whole[1])):
        lead = _BEFORE_FIGURE.match(text, place)
        stated = probability_at(text, lead.end()) if lead else None
        if lead is None or stated is None or not (lead["open"] or lead["lead"]):
            continue
        if _CLOSE.match(text, stated.end) is None and not (stated.named and lead["lead"]):
            continue
        # A figure that is not called a probability may be a quantity: "(high confidence; 5–10%)".
        ends = (stated.low, stated.high) if stated.kind != "bound" else (max(stated.low, 1 - stated.high),) * 2
        if stated.named or (low - _TOLERANCE <= ends[0] and ends[1] <= high + _TOLERANCE):
            return stated
    for result in _PROBABILITY.finditer(text, mark.whole[1], min(len(text), mark.whole[1] + 2 * _NEAR_TERM)):
        stated = probability_at(text, result.start())
        if stated is not None and stated.named and _MEANS.match(text[mark.whole[1] : result.start()]):
            return stated
    return None


PROBABILITY_RULES = (_likelihood_range, _level_as_probability)
