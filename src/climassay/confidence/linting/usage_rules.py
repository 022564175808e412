"""Rules on the form of a tag, on what a term is said of, and on what a level is taken for."""

import re
from collections.abc import Iterator

from climassay.confidence.extraction.extracting import explains_terms
from climassay.confidence.linting.draft import Example, Remark, Sentence, rule
from climassay.confidence.linting.vocabulary_rules import CONCLUDES, EQUATES, off_scale
from climassay.confidence.marks import TagMark, is_mentioned
from climassay.confidence.vocabulary import EVIDENCE, LIKELIHOODS, TAGS

_BOX = "AR6 WG1, Box 1.1"
_LEVEL = "|".join(sorted(TAGS, key=len, reverse=True))
_LIKELY = "|".join(sorted((term.replace(" ", r"\s+") for term in LIKELIHOODS), key=len, reverse=True))
_BRACKETS = re.compile(r"[(\[][*_\s]*([^()\[\]]{1,120}?)[*_\s]*[)\]]")
_GAP = r"[\s\u00ad-]+"
_LINK = r"[\s-]*(?:\b(?:to|or|and)\b|[/–-])[\s-]*"
_EVIDENCE_WORD = "|".join(dict.fromkeys((*EVIDENCE, *TAGS)))
_RATING = re.compile(
    rf"(?:(?:{_LEVEL})(?:\s+confidence)?{_LINK})?(?:{_LEVEL}){_GAP}confidence"
    # What rates evidence and agreement wrongly is named by evidence-vocabulary.
    rf"|(?:(?:{_EVIDENCE_WORD}){_LINK})?(?:very\s+)?(?:{_EVIDENCE_WORD}){_GAP}(?:evidence|agreement)"
    rf"|(?:{_LIKELY})(?:\s+ranges?)?",
    re.IGNORECASE,
)
_HEAD = r"confidence|confident|evidence|agreement|conf|likely|unlikely|certain|certainty"
_RATE = (
    r"very|low(?:er|est)?|medium|med|high(?:er|est)?|hi|limited|robust|likely|unlikely|certain|virtually|extremely|"
    r"exceptionally|strong|good|moderate|weak|poor|believed|thought|said|be"
)
_GLUE = r"and|but|with|or|of|levels?|degree|is|in|to|at|an?|the|only|overall|about|as|not|that|per|cent"
_ONLY_THESE = re.compile(rf"(?:\W|\d|\b(?:{_HEAD}|{_RATE}|{_GLUE})\b)*", re.IGNORECASE)
_HAS_HEAD, _HAS_RATE, _HAS_EITHER = (
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words in (_HEAD, _RATE, f"{_HEAD}|{_RATE}")
)
_OPENED = re.compile(r"[(\[][\s*_]*\Z")
_CLOSED = re.compile(r"[\s*_]*[)\]}]")
_UNCLOSED = re.compile(r"[\s*_]*[.;]?\s*\Z")
_HEDGED_LEVEL = re.compile(
    rf"(?:[(\[]|\b(?:there\s+is|with|have|has)\s)[*_\s]*(?P<hedge>(?:more\s+or\s+less|roughly|about|approximately|"
    rf"around|perhaps|"
    rf"possibly|maybe|presumably|probably|sort\s+of|arguably|apparently|seemingly|kind\s+of|supposedly|nearly|almost|"
    rf"not)|(?P<tagged>at\s+most|{_LIKELY}))\s+[*_]*\Z"
    r"|(?P<modal>\bthere\s+(?:may|might|could)\s+be)\s+[*_]*\Z",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"[\s*_]*(?P<hedge>[?!]+|,?\s*(?:at\s+(?:best|most|least)|or\s+so|if\s+at\s+all|"
    r"more\s+or\s+less|perhaps|maybe|"
    r"probably))[\s*_]*[)\]]"
)
_ANGLES = re.compile(r"<\s*[*_]*\Z")
_DOUBLE = re.compile(r"[(\[]\s*[(\[][*_\s]*\Z")
_NO_BRACKETS = re.compile(r"(?:\w|[)\]])(?<!example)(?<!namely)(?<!such as)\s*(?:,|\s[-–—])\s+[*_]*\Z|^[*_]*\Z")
_AT_END = r"[*_\s]*[)\]](?=\s*(?:[.;{]|$|,?\s+(?:and|but|while|whereas)\b))"
_SURENESS = re.compile(
    r"[(\[][*_\s]*(?:(?:we\s+are|it\s+is|quite|fairly|well|very|rather|more|widely|generally|broadly|largely|"
    r"strongly|not)[\s-]+)*(?:(?:im)?probable|more\s+likely|possible|plausible|conceivable|(?:un)?certain|"
    r"(?:un)?sure|speculative|credible|(?:un)?supported|accepted|agreed|documented|confirmed|proven|"
    r"(?:un)?disputed|(?:un)?contested|controversial|unclear|doubtful|established(?:\s+but\s+incomplete)?|"
    r"safe|"
    rf"(?:no|little|(?:without|beyond)(?:\s+(?:any|a))?)\s+doubt|confidence){_AT_END}",
    re.IGNORECASE,
)
_ADDED = re.compile(
    r"[(\[][*_\s]*(?!(?:all|with|both|overall|each|mostly|generally|mainly|at|in|for|only|now|still|of|but|and|the|"
    r"[A-Z]+)\b)(?:(?!with\b)[a-z]+\s+){1,3}?"
    rf"(?<!very )(?<!to )(?<!or )(?<!and )(?:{_LEVEL})\s+confidence[*_\s]*[)\]]"
)
_FOREIGN = re.compile(
    r"[(\[][*_\s]*(?:[\w-]+\s+){0,3}?(?:confian(?:za|ce)|vertrauen|confiança|fiducia|(?:muy\s+|très\s+|sehr\s+|"
    r"extremadamente\s+)?(?:wahrscheinlich|probable?ment\w*|vraisemblable\w*)|"
    r"(?:muy|très|poco|peu)\s+probables?|verosimil\w*)\b[^()\[\]]{0,20}[)\]]",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"(?:\b(?:X{1,3}|TB[ACD]|tb[acd])\b|\?{1,3}|_{2,}|…|\.\.\.)\s(?:confidence|likelihood|agreement)\b"
)
_IS_LEVEL = re.compile(
    rf"\b(?:it|this)\s+(?:is|was)\s+(?:{_LEVEL}|highly)\s+confidence\b|(?<!there)(?<!There)\s(?:is|"
    rf"are)\s+(?:{_LEVEL})\s+confidence(?=\s*[.;]|\s*$)|"
    rf"(?<!very )\b(?:low|medium|high)\s+(?:confident(?:ly)?|confidences)(?=\s*[).]|\s+that\b)|\bhighly\s+confidence\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"[(\[][*_\s]*(?:very\s+)?(?:low|medium|moderate|high|limited|robust)(?:{_LINK}(?:very\s+)?(?:low|medium|"
    rf"high))?{_AT_END}",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[(\[][*_\s]*(?:very\s+)?(?:low|medium|moderate|high)[*_\s]*[)\]]", re.IGNORECASE)
_SCALE = re.compile(
    r"\b(?:scenarios?|pathways?|variants?|risks?|vulnerability|exposure|hazards?|sensitivity|prices?|costs?|scor\w+|"
    r"rat(?:ed|ing)|class\w*|"
    r"categor\w+|levels?|emissions?|quality|resolution|incomes?|intensity|SSP\S*|RCP\S*|\d[\d.]*|one\s+\w+|types?|"
    r"groups?)\s*\Z"
)
"""What is low or high itself, before brackets with such a word."""
_CONFIDENCE_FIGURE = re.compile(
    r"[(\[][*_\s]*(?:confidence\s*(?:level)?\s*(?:of|:|=|is)?\s*(?:about\s+)?(?:\d+(?:\s?%|\s*(?:/|of|"
    r"out\s+of)\s*\d+)|0?\.\d+)|0?\.\d+\s+confidence|\d\s+on\s+a\s+scale\s+of\s+\d+|(?P<percent>\d+)\s?%\s+confidence)"
    rf"{_AT_END}",
    re.IGNORECASE,
)
_STATISTICAL = ("66", "68", "90", "95", "99")


@rule(
    "malformed-tag",
    "warning",
    "tag that is not in the form of a term",
    f"A tag is a term of the vocabulary and nothing else ({_BOX}): readers and programs look for these words in this "
    "order, between brackets that close.",
    Example("Rain will increase (confidence: high confidence).", "Rain will increase (high confidence)."),
    Example("Rain will increase (confidence high).", "Rain will increase (very high confidence, likely)."),
    Example("Rain will increase (high confidence.", "Rain will increase (robust evidence, high agreement)."),
    Example("Rain will increase (higher confidence).", "Confidence is higher in the north (Figure 3)."),
    Example("Rain will increase (more or less medium confidence).", "Rain will increase (all medium confidence)."),
    Example("Rain will increase (probable).", "The cause (probable fraud) was investigated."),
    Example("The rain will increase (confianza alta).", "Rain will increase [high confidence]."),
)
def _malformed_tag(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    if explains_terms(text):
        return
    labels = {one.start() for one in _LABEL.finditer(text)}
    bare = [one for one in _BARE.finditer(text) if not _SCALE.search(text[: one.start()])]
    # Brackets with such a word elsewhere in the sentence name classes.
    tags = bare if labels <= {one.start() for one in bare} else []
    tags += [one for one in _ADDED.finditer(text) if not _RATING.fullmatch(one.group()[1:-1].strip(" *_"))]
    tags += [*_SURENESS.finditer(text), *_IS_LEVEL.finditer(text), *_PLACEHOLDER.finditer(text)]
    tags += _FOREIGN.finditer(text) if re.search(r"\b(?:the|of|in|will|is)\b", text) else ()
    for figure in _CONFIDENCE_FIGURE.finditer(text):
        if figure["percent"] not in _STATISTICAL or not re.search(r"\d|\brange|\binterval", text[: figure.start()]):
            tags.append(figure)
    for bracket in _BRACKETS.finditer(text):
        left, inside = _RATING.sub(" ", bracket[1]), bracket[1]
        rates = _HAS_HEAD.search(inside) and _HAS_RATE.search(inside)
        figured = _CONFIDENCE_FIGURE.match(text, bracket.start())
        if rates and not figured and _HAS_EITHER.search(left) and _ONLY_THESE.fullmatch(left):
            tags.append(bracket)
    named = [(remark.start, remark.end) for remark in off_scale(sentence)] if tags else []
    for tag in tags:
        start, end = sentence.at(*tag.span())
        if not any(one < end and start < other for one, other in named):
            message = f'"{tag.group()}" is not in the form of a term: say, for example, "high confidence".'
            yield Remark(start, end, message)
    for mark in sentence.marks:
        if mark.levels and not mark.attributive:
            yield from _around_tag(sentence, mark)


def _around_tag(sentence: Sentence, mark: TagMark) -> Iterator[Remark]:
    """What is wrong with the brackets of a level, or with the words beside it."""
    text, start, end = sentence.text, mark.start, mark.end
    opened = _OPENED.search(text[:start]) is not None
    behind = _TAKEN_BACK.match(text, end) if mark.in_brackets and opened else None
    hedge = _HEDGED_LEVEL.search(text[:start])
    closed = _CLOSED.match(text, end)
    ended = _UNCLOSED.match(text, end)
    if behind:
        message = f'"{behind["hedge"]}" takes the level back: choose the level that the evidence supports.'
        yield Remark(*sentence.at(start, behind.end() - 1), message)
    elif hedge and (mark.in_brackets or not (hedge["tagged"] or opened)):
        name = hedge.lastgroup or "hedge"
        message = f'"{hedge[name]}" takes the level back: choose the level that the evidence supports.'
        yield Remark(*sentence.at(hedge.start(name), end), message)
    elif _ANGLES.search(text[:start]) and re.match(r"[*_]*\s*>", text[end:]):
        yield Remark(*sentence.at(start - 1, end + 1), "A tag stands in round brackets.")
    elif mark.in_brackets and (double := _DOUBLE.search(text[:start])):
        yield Remark(*sentence.at(double.start(), end), "One pair of brackets around the tag is enough.")
    elif not mark.in_brackets and opened and (closed or ended or ")" not in text[end:]):
        last = next((max(end, one.end()) for one in (ended, closed) if one), end)
        yield Remark(*sentence.at(start - 1, last), "The brackets around the tag do not close.")
    elif not mark.in_brackets and ended and _NO_BRACKETS.search(text[:start]):
        yield Remark(*sentence.at(start, end), "A tag stands in brackets behind what it qualifies.")
    elif not mark.in_brackets and not opened and closed and "(" not in text[:start]:
        yield Remark(*sentence.at(start, closed.end()), "The brackets around the tag do not open.")


_AGENT = (
    r"(?:(?:national|local|city|regional|municipal|state|town|central|federal|all|both|every|each|"
    r"the)\s+)*(?:governments?|authorit(?:y|ies)|"
    r"councils?|cit(?:y|ies)|towns?|municipalit(?:y|ies)|countr(?:y|ies)|nations?|states|part(?:y|ies)|ministr(?:y|"
    r"ies)|"
    r"ministers?|parliaments?|legislators?|regulators?|policy-?\s?makers?|decision-?\s?makers?|planners?|politicians?|"
    r"compan(?:y|ies)|firms?|businesses|industr(?:y|ies)|banks?|investors?|insurers?|donors?|utilities|farmers?|"
    r"households?|"
    r"citizens|consumers?|people|societ(?:y|ies)|communit(?:y|ies)|everyone|everybody|we|one)"
)
_PRESCRIBES = re.compile(
    r"^\W*(?:further|more|additional)\s+(?:research|studies|work|data)\s+(?:is|are)\s+(?:\w+ly\s+)?(?:needed|required)|"
    r"\b(?:assessments?|reports?|research)\s+should\b"
    r"|(?<!that )\bshould\s+(?:not\s+|never\s+)?(?:\w+ly\s+)?be\s+(?:\w+ly\s+)?\w+(?:ed|en|lt|de|ut)\b|"
    r"\bshould\s+(?:go|come|receive|get)\b"
    rf"|\b{_AGENT}(?:\s+(?:of|in)\s+\w+)?\s+(?:should|must|ought\s+to|shall|needs?\s+to(?![^.]{{0,80}}\bas\b)|"
    rf"had\s+better|(?:is|"
    rf"are)\s+(?:urged|advised|"
    rf"called\s+(?:up)?on)\s+to)\b"
    r"|\bmust\s+(?:not\s+)?(?:now\s+)?(?:be\s+\w+ed|end|stop|cease)\b"
    r"|\b(?:it\s+is\s+(?:recommended|advisable|imperative|desirable|(?:(?:essential|necessary|crucial|vital|urgent|"
    r"high\s+time|time)\s+(?:to|that)\b))|"
    r"we\s+(?:recommend|urge|advise|call\s+(?:up)?on|propose))\b|\b(?:are|is)\s+called\s+upon\s+to\b|"
    r"\bneeds?\s+to\s+be\s+(?:abolished|banned|stopped|ended)\b"
    r"|\bha(?:s|ve)\s+to\s+(?:end|stop|cease)\b"
    r"|^\W*(?:let\s+us|(?:plant|build|stop|end|phase\s+out|invest|adopt|ban|tax|protect|restore|promote|support|"
    r"introduce|expand|reduce|cut|"
    r"increase|avoid|ensure|use|replace)\s+(?:more|all|the|every|each|fewer|less|in|up|out))\b(?![^.]{0,80}\b(?:is|"
    r"are|will|has|have|can|could)\b)",
    re.IGNORECASE,
)
_ON_CONDITION = re.compile(
    r"\b(?:if|in\s+order\s+to|to\s+be|so\s+(?:as\s+to|that)|would|(?:stud|paper|author|scholar|literature|farmer|"
    r"respondent)\w*(?!\s+(?:should|must|need))|argu\w+|"
    r"suggest\w*|alongside|because|since|(?:to|for)\s+(?:limit|limiting|reach|reaching|achiev|meet|"
    r"keep|stay|hold|avoid|stabili)\w*)\b",
    re.IGNORECASE,
)
_NUMBERED = r"(?:[\dA-Z][\w.-]*(?:\s*(?:,|and|to|–|-)\s*[\dA-Z][\w.-]*)*)"
_PART = (
    r"(?:(?:this|the\s+(?:(?:present|following|next|previous|remaining|first|second|third|last)\s+)?|"
    r"each)\s*(?:chapters?|sections?|"
    r"reports?|box(?:es)?|figures?|tables?|annex(?:es)?|appendix|assessments?|paragraphs?|summary|faq|panel|text)|"
    r"the\s+(?:(?:\w+\s+)?(?:lines?(?!\s+of)|bars?|colou?rs?|dots|shading|hatching|arrows|symbols|maps?|panels?|"
    r"whiskers|reader|authors)"
    rf"(?:\s+(?:in|on)\s+(?:the\s+\w+|(?:figure|table|box)\s+{_NUMBERED}))?)|"
    rf"(?:(?:cross-chapter|online|supplementary|extended\s+data)\s+)?(?:chapters?|sections?|box(?:es)?|figures?|"
    rf"fig\.|tables?|annex|appendix|panels?|part|faq)\s+{_NUMBERED}|we)"
)
_ASSERTS = (
    r"(?:strengthen|contain\w+\s+(?:evidence|high|low)|find|found|conclud|assess|demonstrat|suggest|confirm|reveal|"
    r"project|"
    r"estimat|report(?!s\b)|attribut|identif|establish|argu|stat(?:e|ing)|"
    r"expect|judg|infer|not(?:e|ing)|show|indicat|illustrat|provid|have\b|has\b|had\b|are\s+(?:confident|certain)|"
    r"is\s+that|limit|support|constrain|determin|quantif)"
)
"""Verbs by which a part of the text gives a finding."""
_POINTING = (
    r"(?:(?:location|network|coordinate|list|number|names?|method|data|station|boundar|map|area|stud(?:y|ies)|region|"
    r"extent|overview|scheme|definition|"
    r"example|detail|structure|site|grid|steps?)\w*)"
)
_ABOUT_TEXT = re.compile(
    rf"^\W*(?:(?:(?:here|(?:in|for)\s+[^,]{{0,60}}),?|in\s+{_PART})\s+)?{_PART}\s+(?:(?:then|also|first|next|now|"
    rf"finally|further|briefly|in\s+turn)\s+)*"
    rf"(?:(?:shows?|indicates?|illustrates?|provides?|gives?|presents?)\s+(?:an?\s+|the\s+|all\s+|further\s+|"
    rf"more\s+)*(?:\w+\s+)?{_POINTING}\b(?![^.]*\bwhich\b)|"
    rf"(?!{_ASSERTS})(?:\w+s|turn|discuss|describe|review|introduce|present|explore|examine|consider|use[d]?|(?:is|"
    rf"are|was|were)\s+(?:\w+ed|written|about|given|based|set))\b)"
    r"(?!\s+(?:to\s+)?(?:that|how\s+much)\b)"
    r"|^\W*(?:see|compare|consult|refer\s+to|cf\.)\s+(?:also\s+)?(?:the\s+)?(?:chapter|section|box|figure|fig\.|"
    r"table|annex)"
    rf"|\b(?:is|are|can\s+be|may\s+be)\s+(?:given|found|listed|described|discussed|provided|shown)\s+(?:elsewhere|"
    rf"(?:in|below|above)\s+(?:the\s+)?(?:chapter|section|box|figure|table|annex|appendix))\b",
    re.IGNORECASE,
)
_DEFINES = re.compile(
    r"^\W*(?:in\s+this\s+\w+,\s+)?[^,.;]{1,60}\s(?:(?:is|are)\s+(?:here\s+|in\s+this\s+\w+\s+)?"
    r"(?:defined|understood)\s+as|denotes\s+an?)\b|"
    r"^\W*by\s+[^,.;]{1,40}\s+we\s+mean\b",
    re.IGNORECASE,
)
_MORE, _LESS, _SAME = (
    r"(?:increase|rise|grow|higher|more|up|strengthen|expand|improve)\w*",
    r"(?:decrease|fall|decline|shrink|lower|less|fewer|down|weaken|worsen)\w*",
    r"(?:stay|remain|not\s+change|unchanged|the\s+same)",
)
_ALWAYS_TRUE = re.compile(
    rf"\b(?P<verb>\w+)s\s+or\s+does\s+not\s+(?P=verb)\b|\b{_MORE},\s+{_LESS}\s+or\s+{_SAME}|\b(?:larger,\s+smaller|"
    rf"smaller,\s+larger)\s+or\b|\bsome\s+\w+\s+will\s+be\s+\w+\s+(?:more|less)\s+than\s+others\b|"
    rf"\b(?:{_MORE},?\s+(?:or\s+)?{_LESS}|{_LESS},?\s+(?:or\s+)?{_MORE}),?\s+or\s+(?:be\s+)?{_SAME}\b|"
    rf"\bchange\s+or\s+{_SAME}"
    rf"|(?<!that )(?<!which )(?<!it )\b(?:may|might|could|can|will)\s+(?:either\s+)?(?:{_MORE}\s+or\s+{_LESS}|"
    rf"{_LESS}\s+or\s+{_MORE})\b(?!\s+(?:the|a|its|their|carbon|\w+s\b|depend|with|when|by|in|if|under|as|where)|"
    rf"[,;]?\s+and\s+the)"
    r"|\b(?:(?:may|might|will|could)\s+or\s+(?:may|might|will|could)\s+not|will\s+either\s+(?:\w+\s+){1,4}or\s+not|"
    r"or\s+(?:it|they)\s+(?:will|may|might|does|do)\s+not)\b"
    r"|\bsome\s+[^.;,]{1,60}\s(?:and|while)\s+others\s+(?:will|do|may|are)\s+not\b(?=\W*(?:\(|$))|"
    r"\bdiffers?\s+from\s+(?:place\s+to\s+place|case\s+to\s+case)\b"
    r"|\bremains?\s+to\s+be\s+seen\b|\bin\s+some\s+\w+\b[^.;]*\b(?:above|higher|more|wetter)\b[^.;]*"
    r"\bother\b[^.;]*\b(?:below|lower|less|drier)\b",
    re.IGNORECASE,
)
_EVENT = re.compile(
    r"\b(?:was|were)\s+(?:\w+ly\s+)?(?:adopted|signed|ratified|founded|established|published|"
    r"opened\s+for\s+signature|launched|"
    r"approved|held|elected|released|created|agreed)\s+(?:\w+\s+){0,4}?(?:in|on)\s+(?:\w+\s+){0,2}(?:1[89]|20)\d\d\b"
    r"|\b(?:hosted|deposited|submitted|adopted|signed|ratified|joined|published|launched|held|"
    r"took\s+place)\s+[^.;,]{0,60}(?:in|"
    r"on)\s+(?:\w+\s+){0,2}(?:1[89]|20)\d\d\W*(?:\([^()]*\)\W*)?$"
    r"|\b(?:entered|came)\s+into\s+force\s+(?:in|on)\b",
    re.IGNORECASE,
)
_METHOD = re.compile(
    r"^\W*(?:[\w°-]+\s+){0,4}?(?:data|samples?|cores?|series|simulations?|interviews?|questionnaires?|images?|"
    r"sensors?|plots?|measurements?|parameters?|"
    r"variables?|respondents|participants|articles|weights?)\s+(?:(?:from|of|on)\s+[^,.;()]{1,40}\s+)?(?:was|"
    r"were)\s+(?:\w+ly\s+)?"
    r"(?!found|observed|lost|damaged|affected|higher|lower|larger|smaller|more|less|not)\w+(?:ed|en|wn|lt|nt|ut|"
    r"un)\b(?![^.]*,|[^.]*\band\s+show)"
    r"|^\W*(?:the|our)\s+(?:\w+\s+)?(?:model|grid|simulation|data\s?set|survey|sample)\s+(?:has|had|covers?|covered|"
    r"uses?|used|consists?|contains?|comprises?|spans?)\b(?!\s+\w+\s+confidence)"
    r"|^\W*[^,.;()]{1,80}\b(?:was|were)\s+(?:\w+ly\s+)?(?:interpolated|aggregated|re-?gridded|bias-corrected|averaged|"
    r"sampled|digiti[sz]ed|resampled|detrended|"
    r"downscaled|normali[sz]ed|standardi[sz]ed|filled|computed|calculated|fitted|interviewed|run|validated|"
    r"calibrated|homogeni[sz]ed|weighted|screened|"
    r"simulated|measured|held\s+with|conducted\s+(?:in|with))\b(?![^.]*,|[^.]*\band\s+\w+ed\b)"
    r"|^\W*(?:(?:in|for)\s+(?:our|the|this|these)\s+[^,.;()]{1,40}?,?\s+)?(?:we|our\s+\w+)\s+(?:ran|used|covered|"
    r"interviewed|sampled|measured|collected|compared|applied|included|computed|analy[sz]ed|selected|fitted|trained|"
    r"screened|assumed?)\b",
    re.IGNORECASE,
)
_VALUED = re.compile(
    r"^\W*(?:sadly|fortunately|unfortunately|regrettably|luckily|happily)\b|\b(?:is|are|was|were|"
    r"would\s+be)\s+(?:\w+ly\s+)?"
    r"(?:unfair|unjust|unacceptable|immoral|shameful|regrettable|deplorable|tragic|beautiful|a\s+(?:disgrace|scandal|"
    r"pity|shame))\b",
    re.IGNORECASE,
)
_SCENARIO = re.compile(
    rf"\b(?:scenarios?|pathways?|SSP\d\S*|RCP\d\S*)\s+(?:itself\s+)?(?:is|"
    rf"are)\s+[*_]*(?:{_LIKELY})[*_]*(?=\s*(?:[.,;)]|to\s+(?:occur|happen|come\s+true|materiali[sz]e|be\s+"
    r"(?:followed|reali[sz]ed))))",
    re.IGNORECASE,
)
_ACT, _EMPTY, _CHOICE = "The date of an act", "What cannot be false", "The choice of a scenario"
_BY_THE_WAY = re.compile(r"[,;]|\b(?:since|after|when|before|as|which|who|while|because|until)\b", re.IGNORECASE)
_WHETHER = re.compile(r"^\W*(?:whether|if|it\s+is\s+(?:debated|disputed))\b", re.IGNORECASE)
_QUOTED_OR_ASKED = re.compile(r"[\"“‘']|\bmeans?\b|\bbetween\b|\bterms?\b|\bwords?\b", re.IGNORECASE)
_ONE_STUDY_SAYS = re.compile(
    r"^\W*(?:according\s+to|in|as\s+shown\s+by)\s+(?:one|a\s+single|a)\s+(?:\w+\s+)?(?:study|paper|article|trial|"
    r"experiment|simulation|survey)\b"
    r"|^\W*(?:one|a\s+single)\s+(?:\w+\s+)?(?:study|paper|article|trial|experiment|simulation|"
    r"survey)\s+(?:\w+\s+)?(?:finds?|found|shows?|showed|reports?|reported|suggests?)\b",
    re.IGNORECASE,
)
_SOURCE = re.compile(
    r"(?:\b(?:(?:this|that|the|a|an|one|single|recent|new)\s+)+(?:[\w-]+\s+)?(?:study|paper|article|simulation|"
    r"survey|experiment|trial|"
    r"thesis|(?:data\s?set|reanalysis|satellite\s+record)|(?:climate\s+|earth\s+system\s+|crop\s+|impact\s+)?models?)\b"
    r"(?:\s+(?:by|of|in|from)\s+[^,;]{1,30}?)?|\b[A-Z][\w’'-]+(?:\s+et\s+al\.?|\s+and\s+[A-Z]\w+)?,?\s+\((?:19|"
    r"20)\d\d[a-z]?\))\s+"
    r"(?:(?:itself|alone|also|therefore)\s+)?"
    r"(?:has|have|had|holds?|gives?|gave|shows?|assign(?:s|ed)|carr(?:y|ies)|is|are|(?:(?:finds?|found|concludes?|"
    r"concluded|states?|stated|reports?|reported|"
    r"projects?|projected|predicts?|predicted|shows?|simulates?)\s+)with)\s+(?:(?:of|given|assigned)\s+)?[*_]*\Z",
    re.IGNORECASE,
)


def _asks(text: str) -> bool:
    return text.rstrip(' "”’*_').endswith("?")


_NO_FINDINGS = (
    (_ALWAYS_TRUE, _EMPTY),
    (_ABOUT_TEXT, "A sentence about the text"),
    (_DEFINES, "A definition"),
    (_METHOD, "A sentence about methods"),
    (_SCENARIO, _CHOICE),
    (_VALUED, "A value judgement"),
    (_ONE_STUDY_SAYS, "A single study's result"),
)


def _no_finding(text: str) -> str:
    """What a sentence with a tag is, where it is no finding; empty where it may be one."""
    if _asks(text):
        return "" if _QUOTED_OR_ASKED.search(text) else "A question"
    found = next((what for pattern, what in _NO_FINDINGS if pattern.search(text)), "")
    if found:
        return found
    if _PRESCRIBES.search(text) and not (_ON_CONDITION.search(text) or _WHETHER.match(text)):
        return "A recommendation"
    event = _EVENT.search(text)
    return _ACT if event and not _BY_THE_WAY.search(text[: event.start()]) else ""


@rule(
    "term-without-finding",
    "note",
    "term on what is no finding",
    "Terms qualify findings of the assessment (Mastrandrea et al. 2010, paragraphs 1 and 11): not questions, "
    "recommendations, sentences about the text or methods, definitions, dates of acts, value judgements, choices of "
    "scenarios, what cannot be false, or single studies and models.",
    Example("Will rain increase (high confidence)?", "What does 'high confidence' mean?"),
    Example("Governments should build dams (high confidence).", "Dams reduce floods (high confidence)."),
    Example(
        "Section 3 turns to floods (medium confidence).", "Section 3 shows that floods increase (high confidence)."
    ),
    Example(
        "The treaty was signed in 1992 (very high confidence).", "Rain has increased since 1992 (high confidence)."
    ),
    Example("The model has high confidence that rain increases.", "AR5 had high confidence that rain increases."),
    Example(
        "Data were interpolated by kriging (high confidence).", "Losses were higher in the south (high confidence)."
    ),
    Example("Rain will increase or it will not (high confidence).", "Rain will increase in winter (high confidence)."),
    Example("It is unfair that the poor suffer most (high confidence).", "The poor suffer most (high confidence)."),
)
def _term_without_finding(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    marks = [mark for mark in sentence.marks if not mark.attributive and not is_mentioned(text, mark.start, mark.end)]
    behind = [
        mark.whole
        for mark in marks
        if (_asks(text) and ":" not in text[mark.end :])
        or (mark.in_brackets and re.fullmatch(r"[\W\d]*", text[mark.whole[1] :]))
    ]
    what = _no_finding(text) if marks or sentence.likelihoods else ""
    spans = behind or [(one.start, one.end) for one in sentence.likelihoods if what in (_ACT, _EMPTY, _CHOICE)]
    for start, end in spans[: bool(what)]:
        yield Remark(*sentence.at(start, end), f"{what} is no finding, and a term qualifies findings: leave it out.")
    for mark in marks:
        if mark.levels and not mark.in_brackets and _SOURCE.search(text[max(0, mark.start - 120) : mark.start]):
            message = (
                "Confidence is the assessment's, not that of one study, model or record: say who assesses, and what."
            )
            yield Remark(*sentence.at(mark.start, mark.end), message)


_WINDOW = 250
"""Characters before a term in which what speaks about it is looked for."""
_P_VALUE = (
    r"\bp(?:-values?)?\s*(?:[<>=≤≥]|(?:is|was|of|being|below|under|(?:less|smaller|lower)\s+than)\b\s*)+\s*0?\.\d+"
)
_STATISTICS = (
    rf"(?:{_P_VALUE}|\bp-values?\b|\b(?:statistical(?:ly)?\s+)significan(?:t|ce)\b|"
    r"\bsignifican(?:ce\b|t\s+(?:at|\(p)\b|t(?=,|\s+and\s+(?:so|hence|thus|therefore)))|"
    r"\b\d{1,2}(?:\.\d)?\s?%\s+(?:significance\s+|confidence\s+)?(?:levels?|intervals?)|\b(?:t-|F-|Mann-Kendall\s+|"
    r"chi-squared?\s+)tests?\b|"
    r"\b(?:two|three|\d)\s?(?:sigma|σ|standard\s+deviations)\b)"
)
_BECAUSE = rf"(?:\b(?:because|since|as|given|due\s+to|owing\s+to|in\s+that|based\s+on|{EQUATES})\b|[:=(])"
_STATISTICS_BEFORE = re.compile(
    rf"{_STATISTICS}[^.;()]{{0,60}}?[)\]]?[^.;()]{{0,20}}?\b(?:{CONCLUDES}|{EQUATES})(?!\w)[^.;()]{{0,40}}\Z|"
    rf"{_STATISTICS}[^.;()]{{0,30}}\s(?:shows?|gives?)\s+\Z",
    re.IGNORECASE,
)
_STATISTICS_AS_REASON = re.compile(
    rf"\b(?:because|since|as)\b[^.;()]{{0,100}}{_STATISTICS}[^.;]{{0,30}},[^.;,()]{{0,40}}\Z", re.IGNORECASE
)
_STATISTICS_BEHIND = re.compile(
    rf"\s*,?\s*(?:(?:was\s+assigned\s+)?{_BECAUSE}[^.;()]{{0,60}}?{_STATISTICS}|"
    rf"at\s+(?:the\s+)?\d{{1,2}}(?:\.\d)?\s?%)",
    re.IGNORECASE,
)
_PERCENT_BEFORE = re.compile(r"\b\d{2}(?:\.\d)?\s?%\s+[*_]*\Z")
_IS_READ_AS = re.compile(
    rf"(?:\s+(?:was|is)\s+(?:assigned|given))?\s*[,(;]?\s*(?:here\s+|then\s+)?(?:{EQUATES}|"
    rf"{CONCLUDES}),?\s+(?:that\s+)?(?:(?:it|there)\s+is\s+|(?:[\w-]+\s+){{1,4}}(?:is|are)\s+)?[*_]*\s*",
    re.IGNORECASE,
)
_MAKES_LIKELY = re.compile(
    rf"{_P_VALUE}[^.;()]{{0,20}}\b(?:makes?|{CONCLUDES}|{EQUATES})\b[^.;()]{{0,60}}\Z"
    r"|^\W*(?:since|because|as)\s+\d+\s+(?:out\s+)?of\s+(?:the\s+)?\d+\s+(?:models|simulations|runs|"
    r"members)\b[^.;()]*,[^.;()]*\Z",
    re.IGNORECASE,
)
_DENIAL = (
    r"(?:(?:will|would|does|do|did|is|are|has|have|can|was|were)\s*(?:not|n['’]t)\b(?!\s+(?:be\s+)?(?:ruled|"
    r"excluded))|cannot\b(?!\s+be\s+(?:ruled|excluded))|"
    r"(?:is|are|was|were|will\s+be|there\s+is|has\s+been|has|have|expect)\s+no\b|\bno\s+\w+\s+(?:will|is|are|has)\b|"
    r"(?:stays?|remains?)\s+(?:where|as|the\s+same)|there\s+is\s+none|(?:is|are)\s+safe\b|(?:does|do|will)\s+not\s*$|"
    r"will\s+(?:\w+\s+)?(?:decrease|decline|fall|drop|remain|stay|(?:be|become)\s+(?:stable|absent|unchanged|fewer|"
    r"less|rarer|weaker|smaller))|never\b|"
    r"(?:is|are|was|were)\s+(?:very\s+|extremely\s+)?(?:unlikely|impossible|absent|wrong|false|excluded|ruled\s+out)|"
    r"can\s+be\s+(?:excluded|ruled\s+out|dismissed)|"
    r"(?:rules?\s+out|excludes?)\b|(?:decreases?|declines?|falls?)\b)"
)
_DENIED_BEHIND = re.compile(
    rf"[^.;]{{0,160}}?(?:[,;–—:]\s*(?:and\s+|it\s+)?(?:{EQUATES}|{CONCLUDES}|which(?=\s+(?:rules|excludes)))|"
    rf"[:;](?=\s+(?:it|they|there)\s+(?:\w+ly\s+)?(?:will|does|do)\b)|(?<!not )\b(?:means?|implies|proves?|shows|and\s+"
    rf"(?:therefore|so|hence|thus))),?\s+(?:that\s+)?(?P<claim>[^.;:]{{0,60}}?\b{_DENIAL})",
    re.IGNORECASE,
)
_DENIED_BECAUSE = re.compile(rf"[^.;,]{{0,160}},\s*(?P<claim>[^.;:,]{{0,60}}?\b{_DENIAL})", re.IGNORECASE)
_GIVES_REASON = re.compile(
    r"^\W*(?:because(?:\s+of)?|since|as|given(?:\s+that)?|with|due\s+to|owing\s+to|in\s+(?:view|"
    r"light)\s+of)\b[^.;:,\d]{0,80}\Z",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"(?P<claim>[^.;:,]{1,80}?\b(?:(?:will|does|do)\s+(?:not|never|remain|stay)\b|cannot\b|(?:is|"
    r"are)\s+(?:\w+\s+)?(?:unlikely|excluded|ruled\s+out)|will\s+be\s+no\b))"
    r"[^.;:,()]{0,60},?\s+(?:because|since|as|given)\s+(?:of\s+)?(?:(?:there\s+is|we\s+have|the|only)\s+)*[*_]*\Z",
    re.IGNORECASE,
)
_OF_THE_ASSESSMENT = re.compile(
    r"\b(?:indicat\w*|discuss\w*|shown|assign\w*|confidence|curve|range|section|figure|assess\w*|attribut\w*|"
    r"quantif\w*|"
    r"provid\w*|report\w*|conclu\w*|possible|given|made|shown|used|includ\w*|consider\w*|"
    r"constrain\w*|available|clear|mean|imply|detect\w*|determin\w*|estimat\w*|known?|robust|suffic\w*|evidence|"
    r"studies|models?|data)\b",
    re.IGNORECASE,
)


@rule(
    "misread-level",
    "warning",
    "level taken for significance, likelihood or a denial",
    "Confidence sums up evidence and agreement (Mastrandrea et al. 2010, paragraphs 8 and 9): it is no statistical "
    f"significance and no likelihood ({_BOX}), says nothing about how grave an outcome is, and low confidence in a "
    "change does not say that there is none.",
    Example(
        "The trend is significant at the 95% level, hence there is high confidence.",
        "The trend is significant at the 95% level in most data sets (high confidence).",
    ),
    Example("Rain will increase (high confidence, i.e. very likely).", "Rain will increase (high confidence, likely)."),
    Example(
        "There is low confidence in more rain, which means that rain will not increase.",
        "There is low confidence in more rain, so that no range is given.",
    ),
    Example(
        "A break is expected (high confidence, since the damage would be enormous).",
        "The damage would be enormous (high confidence).",
    ),
    Example("The test gave p = 0.03, which makes rain very likely.", "Rain will very likely increase (p < 0.05)."),
)
def _misread_level(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    for start, end in [
        *((term.start, term.end) for term in sentence.likelihoods),
        *((mark.start, mark.end) for mark in sentence.said),
    ]:
        yield from _by_stakes(sentence, start, end)
    for term in sentence.likelihoods:
        if shown := _MAKES_LIKELY.search(text, max(0, term.start - _WINDOW), term.start):
            message = "A test of significance, or a count of models, alone gives no likelihood of an outcome."
            yield Remark(*sentence.at(shown.start(), term.end), message)
    for mark in sentence.said:
        if not mark.levels or mark.attributive or is_mentioned(text, mark.start, mark.end):
            continue
        yield from _as_statistics(sentence, mark)
        for term in sentence.likelihoods:
            # No level equals a term: "high confidence, that is, very likely".
            first, last = (mark.end, term.start) if term.start > mark.start else (term.end, mark.start)
            if 0 <= last - first < 80 and _IS_READ_AS.fullmatch(text, first, last):
                message = "A level of confidence is no likelihood: give each for itself."
                yield Remark(*sentence.at(min(mark.start, term.start), max(mark.end, term.end)), message)
        if TAGS.index(mark.levels[-1]) > TAGS.index("low"):
            continue
        denied, start, look = _DENIED_BEHIND.match(text, mark.end), mark.start, 40
        if mark.in_brackets and denied and denied.end() > mark.whole[1]:
            continue
        if not denied and not mark.in_brackets:
            if _GIVES_REASON.search(text[: mark.start]):
                denied = _DENIED_BECAUSE.match(text, mark.end)
            elif denied := _DENIED_BEFORE.search(text, max(0, mark.start - _WINDOW), mark.start):
                start, look = denied.start("claim"), 0
        if denied and not _OF_THE_ASSESSMENT.search(text, denied.start("claim"), denied.end("claim") + look):
            message = f"{mark.levels[-1].capitalize()} confidence in a finding does not say that its opposite holds."
            yield Remark(*sentence.at(start, max(mark.end, denied.end())), message)


_BIG = (
    r"(?:enormous|huge|immense|severe|catastrophic|high|large|great|serious|disastrous|devastating|affected|"
    r"at\s+stake|irreversible|lost)"
)
_STAKES = (
    r"(?:(?:damages?|loss(?:es)?|consequences?|impacts?|costs?|harm|stakes|people|lives)\s+(?:would|could|will|might|"
    r"are|is)\s+(?:be\s+)?"
    rf"(?:so\s+|very\s+)?{_BIG}\b|it\s+(?:is\s+(?:so\s+|very\s+)?(?:important|urgent)|matters)\b|"
    r"(?:\w+\s+){1,3}is\s+(?:\w+ly\s+)?(?:needed|necessary|required)\b|(?:topic|issue|matter|question|"
    r"subject)\s+is\s+(?:\w+\s+)?(?:important|urgent|sensitive)\b|(?:authors?|panel|"
    r"committee|majority|delegates|"
    r"governments?|ministers?|plenary|policymakers?)\s+(?:\w+\s+)?(?:voted|wants?|wanted|asked|insist\w*|demand\w*|"
    r"decided|prefer\w*|needs?)\b|"
    r"(?:\d+|all|most)\s+(?:out\s+)?of\s+(?:the\s+)?\d+\s+(?:models|simulations|runs|members)\s+\w+(?:\s+(?:it|this|"
    r"so))?\W*$)"
)
_STAKES_BEHIND = re.compile(
    rf"(?:\s+that\s+[^.;,()]{{0,80}}?)?[\s,)]*\b(?:since|because|as|given\s+that|"
    rf"for)\s+[^.;()]{{0,40}}?\b{_STAKES}",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"[\s,)]*(?:in\s+order\s+to|(?<=,\s)to\s+(?:alert|warn|convince|persuade|draw|stress|underline|emphasi[sz]e|"
    r"be\s+on\s+the\s+safe\s+side)|so\s+that\s+(?:people|readers|policymakers|governments))\b",
    re.IGNORECASE,
)
_STAKES_BEFORE = re.compile(
    rf"\b(?:since|because|as|given\s+that)\s+[^.;(),]{{0,40}}?\b{_STAKES}[^.;()]{{0,20}},\s*[^.;(),]{{0,20}}\Z",
    re.IGNORECASE,
)


def _by_stakes(sentence: Sentence, start: int, end: int) -> Iterator[Remark]:
    """A term that the size of the consequences is given as reason for."""
    behind = _STAKES_BEHIND.match(sentence.text, end) or _PURPOSE.match(sentence.text, end)
    before = _STAKES_BEFORE.search(sentence.text, max(0, start - _WINDOW), start)
    if behind or before:
        start, end = before.start() if before else start, behind.end() if behind else end
        message = "This is no reason for a term: confidence and likelihood rest on evidence and agreement."
        yield Remark(*sentence.at(start, end), message)


def _as_statistics(sentence: Sentence, mark: TagMark) -> Iterator[Remark]:
    """A level that a test of significance is given as reason or as another word for."""
    text = sentence.text
    before = text[max(0, mark.start - 200) : mark.start]
    start, end = mark.start, mark.end
    if behind := _STATISTICS_BEHIND.match(text, end):
        end = behind.end()
    elif percent := _PERCENT_BEFORE.search(before):
        start -= len(before) - percent.start()
    elif mark.in_brackets and (inside := re.search(_STATISTICS, text[slice(*mark.whole)], re.IGNORECASE)):
        start, end = min(start, mark.whole[0] + inside.start()), max(end, mark.whole[0] + inside.end())
    elif reason := _STATISTICS_BEFORE.search(before) or _STATISTICS_AS_REASON.search(before):
        start -= len(before) - reason.start()
    else:
        return
    message = "Confidence sums up evidence and agreement: statistical significance alone gives no level."
    yield Remark(*sentence.at(start, end), message)


USAGE_RULES = (_malformed_tag, _term_without_finding, _misread_level)
