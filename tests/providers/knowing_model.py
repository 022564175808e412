"""A model that knows four facts, for servers whose manners differ: what it answers depends on what is asked alone.

It reads the messages and, where there is one, the JSON schema, and answers from the facts that the text is about, in
whatever words the prompt asks and however the schema's fields are called. It never looks at parameters, so that every
server that puts the same question to it gets the same answer.
"""

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any

LIKELY = 0.9
"""Probability of what it answers; the rest is shared by the alternatives."""


@dataclass(frozen=True)
class Fact:
    """One thing that it knows."""

    passage: str
    """What the book says."""
    question: str
    right: str
    wrong: tuple[str, str, str]
    answer: str
    """To the question, in a sentence."""
    statement: str
    """The fact in a sentence of which any term can be found from the others."""
    term: str
    """A term of the statement."""
    true: str
    """A claim that follows from it, in words that neither the book nor its own answers have."""
    false: str
    """A claim that contradicts it."""


FACTS = (
    Fact(
        "The ocean has taken up about ninety per cent of the excess heat since 1970. Sea water expands as it warms, "
        "and this thermal expansion raises the sea level. It will go on doing so for centuries, because the deep ocean "
        "warms slowly.",
        "Why does the uptake of heat by the ocean raise the sea level?",
        "Sea water expands as it warms",
        ("Sea water becomes saltier as it warms", "Sea ice grows thicker as it warms", "Sea water sinks as it warms"),
        "The uptake of heat raises the sea level because sea water expands as it warms.",
        "Thermal expansion of warming sea water raises the sea level.",
        "expansion",
        "Warming sea water takes up more room",
        "Warming sea water takes up less room",
    ),
    Fact(
        "When carbon dioxide increases, the stratosphere cools. It radiates more infrared energy to space than "
        "before, while its heating by ozone stays the same. Cooling of the stratosphere is therefore a sign of "
        "greenhouse gases.",
        "Why does the stratosphere cool when carbon dioxide increases?",
        "It radiates more infrared energy to space",
        (
            "It absorbs less sunlight from space",
            "It receives less water vapour from below",
            "It mixes more cold air from the poles",
        ),
        "The stratosphere cools because it radiates more infrared energy to space than before.",
        "The stratosphere cools when carbon dioxide increases, because it radiates more infrared energy to space.",
        "stratosphere",
        "Carbon dioxide makes the stratosphere colder",
        "Carbon dioxide makes the stratosphere warmer",
    ),
    Fact(
        "Thawing permafrost releases carbon dioxide and methane. Microbes decompose the organic matter that had been "
        "frozen in the soil for thousands of years. This feedback adds to the warming that thaws the ground.",
        "Why does thawing permafrost release methane?",
        "Microbes decompose its organic matter",
        ("Its ice turns into methane", "Its minerals react with rain", "Its volcanoes become active"),
        "Thawing permafrost releases methane because microbes decompose the organic matter in the soil.",
        "Thawing permafrost releases methane when microbes decompose the organic matter of the soil.",
        "permafrost",
        "Permafrost that thaws is a source of methane",
        "Permafrost that thaws is a sink of methane",
    ),
    Fact(
        "Sulphate aerosols scatter sunlight back to space and so cool the surface of the Earth. They also make clouds "
        "brighter, since they offer more nuclei on which droplets form. Rain washes them out of the air within days.",
        "How do sulphate aerosols cool the surface of the Earth?",
        "They scatter sunlight back to space",
        ("They absorb heat from the ground", "They destroy ozone in the air", "They carry heat to the poles"),
        "Sulphate aerosols cool the surface because they scatter sunlight back to space.",
        "Sulphate aerosols scatter sunlight back to space and cool the surface of the Earth.",
        "aerosols",
        "Sulphate aerosols make the surface of the Earth colder",
        "Sulphate aerosols make the surface of the Earth warmer",
    ),
)


@dataclass(frozen=True)
class Answer:
    text: str
    alternatives: tuple[str, ...] = ()
    """What it might have said instead, where it chose among a few short answers."""

    def first_place(self) -> list[tuple[str, float]]:
        """The likely first tokens with log-probabilities, the likeliest first; empty where there was no choice."""
        if not self.alternatives:
            return []
        rest = (1 - LIKELY) / (2 * len(self.alternatives))
        others = [(other, math.log(rest)) for other in self.alternatives if other != self.text]
        return [(self.text, math.log(LIKELY)), *others]


def answer(content: str, schema: dict[str, Any] | None) -> Answer:
    """What it answers to the messages, as one text; under the schema where there is one."""
    plain = _plain_answer(content)
    if schema is not None and schema["properties"].keys() == {"answer"}:
        # One of the options that the prompt has: chosen as without a schema.
        options = {str(option).casefold(): option for option in schema["properties"]["answer"].get("enum", ())}
        if plain.text.casefold() in options:
            return Answer(json.dumps({"answer": options[plain.text.casefold()]}))
    if schema is not None:
        return Answer(json.dumps(_value(schema, "", _Subject.of(content), schema), ensure_ascii=False))
    return plain


def _plain_answer(content: str) -> Answer:
    """What it answers without a schema."""
    for kind in (_letter, _preference, _rating, _word, _verdict, _gap):
        if (found := kind(content)) is not None:
            return found
    return Answer(_Subject.of(content).sentence())


def _letter(content: str) -> Answer | None:
    """Of the options in the last block of lettered lines: the one that it knows to be right."""
    lines = [
        (match[1], match[2].strip()) for match in re.finditer(r"^\(?([A-Da-d])[).:] +(.+)$", content, re.MULTILINE)
    ]
    options = lines[-4:]
    if len(options) < 4 or [letter.lower() for letter, _ in options] != ["a", "b", "c", "d"]:
        return None
    letters = tuple(letter for letter, _ in options)
    rights = {_plain(fact.right) for fact in FACTS}
    return Answer(next((letter for letter, text in options if _plain(text) in rights), letters[0]), letters)


def _preference(content: str) -> Answer | None:
    """Of two texts with a number each: the one with the higher number."""
    numbers = re.findall(r"number (\d)", content)
    return Answer("A" if numbers[0] >= numbers[1] else "B", ("A", "B")) if len(numbers) == 2 else None


def _rating(content: str) -> Answer | None:
    """Of one text with a number: that number."""
    numbers = re.findall(r"number (\d)", content)
    return Answer(numbers[0], ("1", "2", "3", "4", "5")) if len(numbers) == 1 else None


def _word(content: str) -> Answer | None:
    """One of two words in capitals that the prompt offers, such as VALID and INVALID."""
    for good, bad in (("VALID", "INVALID"), ("SUPPORTS", "REFUTES")):
        if re.search(rf"\b{good}\b", content) and re.search(rf"\b{bad}\b", content):
            return Answer(good if _Subject.of(content).truth is not False else bad, (good, bad))
    return None


def _verdict(content: str) -> Answer | None:
    """One of the verdicts that the prompt lists, or the side that an explanation takes."""
    labels = tuple(re.findall(r"^- ([\w ]+): the claim", content, re.MULTILINE))
    if "the claim is" in content.splitlines()[-1]:
        labels = ("right", "wrong")
    if not labels:
        return None
    return Answer(_choice(list(labels), _Subject.of(content)), labels)


def _gap(content: str) -> Answer | None:
    """The word that is missing in a statement."""
    for gap in ("____", "<MASK>", "[MASK]"):
        for before, after in re.findall(rf"([^\n]*){re.escape(gap)}([^\n]*)", content):
            for text in (text for fact in FACTS for text in (fact.statement, *_sentences(fact.passage))):
                start, end = _plain(before).split(": ")[-1], _plain(after)
                plain = _plain(text)
                if plain.startswith(start) and plain.endswith(end) and len(start) + len(end) < len(plain):
                    return Answer(plain[len(start) : len(plain) - len(end)].strip())
    return None


@dataclass(frozen=True)
class _Subject:
    """What a prompt is about."""

    content: str
    facts: tuple[Fact, ...]
    """The first is the one asked about; the others stand in the prompt too."""
    claims: tuple[str, ...] = ()
    """The statements of the claim that is checked."""
    truth: bool | None = None
    """Of what is claimed; None where claims are mixed, or nothing is claimed."""

    @classmethod
    def of(cls, content: str, only: str | None = None) -> "_Subject":
        plain = _plain(content)
        said = [(plain.count(_plain(text)), fact, text, truth) for fact in FACTS
                for text, truth in ((fact.true, True), (fact.false, False))]  # fmt: skip
        asked = [fact for fact in FACTS if _plain(fact.question) in plain]
        most = max(count for count, *_ in said)
        claimed = [entry for entry in said if entry[0] > 0] if not asked and re.search(r"\bclaim", plain) else []
        # Where one statement of several is asked about, it stands in the prompt once more than the others.
        chosen = [entry for entry in claimed if (entry[0] == most if only is None else entry[2] == only)]
        in_order = sorted(
            (fact for fact in FACTS if _plain(fact.passage) in plain), key=lambda fact: plain.find(_plain(fact.passage))
        )
        stated = [fact for fact in FACTS if _plain(fact.statement) in plain]
        facts = dict.fromkeys([*(fact for _, fact, _, _ in chosen), *asked, *stated, *in_order])
        truths = {truth for *_, truth in chosen}
        return cls(
            content,
            tuple(facts) or FACTS[:1],
            tuple(sorted((text for *_, text, _ in claimed), key=lambda text: plain.find(_plain(text)))),
            truths.pop() if len(truths) == 1 else None,
        )

    def part(self, name: str) -> "_Subject":
        """The statement of the claim that a field is named after by its number; itself where none is."""
        if not name.isdecimal() or not 1 <= int(name) <= len(self.claims) or len(self.claims) == 1:
            return self
        return _Subject.of(self.content, self.claims[int(name) - 1])

    @property
    def fact(self) -> Fact:
        return self.facts[0]

    def number(self, fact: Fact) -> int | None:
        """Of the passage, or quotation, that holds a fact; None where they have no numbers or none holds it."""
        number = r"^(?:\[(\d+)\]|Passage (\d+)\b| *- (?:for|against)\b[^\n\[]*\[(\d+)\])"
        for match in re.finditer(rf"{number}(.*?)(?={number}|\Z)", self.content, re.MULTILINE | re.DOTALL):
            if _plain(_sentences(fact.passage)[0]) in _plain(match[4]):
                return int(match[1] or match[2] or match[3])
        return None

    def sentence(self) -> str:
        number = self.number(self.fact)
        return self.fact.answer if number is None else f"{self.fact.answer.removesuffix('.')} [{number}]."


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().strip(" .;,\"'*")


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) ", text)


_YES = (
    "accurate", "correct", "true", "right", "supports", "supported", "supports the claim", "for", "enough", "answers",
    "relevant", "consensus", "none", "robust", "high", "close the debate", "not quantified", "full", "yes",
)  # fmt: skip
_NO = (
    "inaccurate", "incorrect", "false", "wrong", "refutes", "refuted", "contradicts", "against", "enough", "relevant",
    "misleading", "robust", "high", "close the debate", "not quantified", "yes",
)  # fmt: skip
FAULTS = ("declined", "missing")
"""Fields for what is wrong with a passage or a question: nothing is."""
_MIXED = ("mixed", "partly correct", "partly accurate", "half true", "imprecise", "disputed", *_YES)


def _value(schema: dict[str, Any], name: str, subject: _Subject, root: dict[str, Any]) -> Any:
    """A value that satisfies a schema and says what is so."""
    if "$ref" in schema:
        return _value(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], name, subject, root)
    if "anyOf" in schema:
        return _value(next(part for part in schema["anyOf"] if part.get("type") != "null"), name, subject, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        if name == "passage" and subject.number(subject.fact) in schema["enum"]:
            return subject.number(subject.fact)
        return _choice(schema["enum"], subject)
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    if kind == "object":
        return _object(schema["properties"], subject.part(name), root)
    if kind == "array":
        return _array(schema, name, subject, root)
    if kind == "string":
        text = _string(name, subject)
        most = schema.get("maxLength", len(text))
        return text if len(text) <= most else text[:most].rsplit(" ", 1)[0]
    if kind == "boolean":
        return re.search(r"enough|relevant|checkable|agree|support|term", name) is not None
    low = schema.get("minimum", 0)
    return max(low, subject.number(subject.fact) or 1) if kind == "integer" else max(low, 0.5)


def _choice(values: list[Any], subject: _Subject) -> Any:
    if "a" in values and (letter := _letter(subject.content)) is not None:
        return letter.text
    wanted = {True: _YES, False: _NO, None: _MIXED if subject.claims else _YES}[subject.truth]
    if all(isinstance(value, int) for value in values):
        return max(values)
    named = {str(value).casefold(): value for value in values}
    return next((named[word] for word in wanted if word in named), values[0])


def _object(properties: dict[str, Any], subject: _Subject, root: dict[str, Any]) -> dict[str, Any]:
    fact = subject.fact
    known = {
        "question": fact.question,
        "stem": fact.question,
        "statement": fact.statement,
        "term": fact.term,
        "answer": fact.right if "distractors" in properties else fact.answer,
        "distractors": list(fact.wrong),
        **dict.fromkeys(FAULTS, ""),
    }
    return {
        name: known[name] if name in known and "enum" not in part else _value(part, name, subject, root)
        for name, part in properties.items()
    }


def _array(schema: dict[str, Any], name: str, subject: _Subject, root: dict[str, Any]) -> list[Any]:
    items = schema["items"]
    fields = set(items.get("properties", ()))
    if {"quotation", "statement"} <= fields and subject.claims:
        # A claim is split: each statement in the claim's own spelling.
        parts = [_object(items["properties"], _Subject.of(subject.content, claim), root) for claim in subject.claims]
        words = [re.search(re.escape(claim), subject.content, re.IGNORECASE) for claim in subject.claims]
        said = [match[0] for match in words if match]
        return [part | {"quotation": one, "statement": f"{one}."} for part, one in zip(parts, said, strict=True)]
    if items.get("type") == "integer":
        return [number] if (number := subject.number(subject.fact)) else []
    if any(part.get("type") == "integer" for part in items.get("properties", {}).values()):
        known = [replace(subject, facts=(fact,)) for fact in subject.facts if subject.number(fact) is not None]
        return [_value(items, name, one, root) for one in known][: schema.get("maxItems", len(known))]
    least = schema.get("minItems", 0)
    if least == 0 and ("question" in fields or not fields) and not re.search("quer|search", name):
        return []
    return [_value(items, name, subject, root)] * max(1, least)


def _string(name: str, subject: _Subject) -> str:
    if re.search(r"quot|words", name):
        return _sentences(subject.fact.passage)[0]
    if re.search(r"quer|search", name):
        return subject.fact.question
    return subject.sentence()
