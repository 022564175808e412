"""From a JSON schema to a grammar that a model cannot leave and that is bound to end.

Constrained decoding forbids every token that the grammar does not allow. A weak model, however, can fill a string
without end, so each string and array must carry a bound, and numbers get one of their own. From the bounds follows the
greatest number of bytes that an answer can have, and so (a token is at least one byte) of tokens.

The JSON is written as Python's ``json.dumps`` writes it: one space after ``:`` and ``,``, no other whitespace. Strings
hold any character but control characters; a line break is written as an escape, and no other escapes are needed.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from climassay.errors import MissingExtraError, ModelError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

MAX_INTEGER_DIGITS = 15
"""Digits before the point of a number without bounds: such numbers are exact in double precision."""
MIN_DECIMALS = 4
"""Digits after the point that a number may have; more where its bounds have more."""

_CHARACTER = r"[ !#-\[\]-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]"
_ESCAPE = r'"\\" ["\\n]'
_CHARACTER_BYTES = 4
_CHAIN = 500
"""Characters up to which a string has a rule for each number of them: the fastest masks, but 6 ms to compile each."""
_BLOCK = 64
"""Characters of a block of longer strings."""
_POINT = '"."'
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions", "deprecated"}
)
_KNOWN = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}


class Piece(NamedTuple):
    """An expression of the grammar and the most bytes that it can match."""

    expression: str
    size: int


@dataclass(frozen=True, slots=True)
class SchemaGrammar:
    """A grammar in xgrammar's EBNF."""

    text: str
    max_bytes: int
    """Bytes of the longest answer."""
    closed: bool
    """The last character says that the answer is complete (a number's does not)."""


def schema_grammar(schema: Mapping[str, Any], *, longest_string: int | None = None) -> SchemaGrammar:
    """Translate a schema.

    Args:
        schema: Made of ``type``, ``properties``, ``required``, ``items``, ``enum``, ``const``, ``anyOf``, ``$ref`` to
            ``$defs`` (not recursive), and bounds. Properties come in the order in which they are listed; others than
            these are never written, whatever ``additionalProperties`` says.
        longest_string: Lower every ``maxLength`` to this (but not below ``minLength``), to make the longest answer fit.

    Raises:
        ModelError: A string or array has no bound, or the schema uses what cannot be enforced; names the place.
    """
    builder = _Builder(schema, longest_string)
    root = builder.value(schema, "$")
    character = f"char ::= {_CHARACTER} | {_ESCAPE}"
    lines = [f"root ::= {root.expression}", *builder.rules, *_up_to(builder.longest), *_blocks(builder.long), character]
    closed = root.expression.startswith(('("{"', '("["'))
    return SchemaGrammar("\n".join(lines) + "\n", root.size, closed)


@dataclass
class _Builder:
    schema: Mapping[str, Any]
    longest_string: int | None
    rules: list[str] = field(default_factory=list)
    open_references: list[str] = field(default_factory=list)
    longest: int = 0
    """Greatest number of characters that a rule ``upto`` is needed for."""
    long: set[int] = field(default_factory=set)
    """Numbers of characters, above :data:`_CHAIN`, that a rule ``many`` is needed for."""

    def value(self, schema: Any, place: str) -> Piece:
        """Any schema."""
        if not isinstance(schema, Mapping) or not schema:
            raise ModelError(f"The schema at {place} allows anything, so it cannot be enforced: give it a type.")
        if "$ref" in schema:
            return self._reference(schema, place)
        if "enum" in schema or "const" in schema:
            return self._literals(schema, place)
        if "anyOf" in schema:
            self._check_known(schema, frozenset({"anyOf"}), place)
            return _either([self.value(option, f"{place}.anyOf[{i}]") for i, option in enumerate(schema["anyOf"])])
        kind = schema.get("type")
        if isinstance(kind, Sequence) and not isinstance(kind, str) and kind:
            # Each of several types, with the keywords that belong to it.
            words = frozenset[str]().union(*_KNOWN.values())
            others = [words - _KNOWN.get(one, frozenset()) for one in kind]
            parts = [{key: schema[key] for key in schema if key not in other} for other in others]
            return _either([self.value(part | {"type": one}, place) for part, one in zip(parts, kind, strict=True)])
        if kind not in _KNOWN:
            raise ModelError(f"The schema at {place} has no type that can be enforced (it says {kind!r}).")
        self._check_known(schema, _KNOWN[kind] | {"type"}, place)
        if kind == "object":
            return self._object(schema, place)
        if kind == "array":
            return self._array(schema, place)
        if kind == "string":
            return self._string(schema, place)
        if kind == "boolean":
            return Piece('("true" | "false")', 5)
        if kind == "null":
            return Piece('"null"', 4)
        return _number(schema, place, whole=kind == "integer")

    def _check_known(self, schema: Mapping[str, Any], known: frozenset[str], place: str) -> None:
        unknown = sorted(set(schema) - known - _ANNOTATIONS)
        if unknown:
            raise ModelError(f"The schema at {place} uses {unknown[0]!r}, which cannot be enforced: leave it out.")

    def _reference(self, schema: Mapping[str, Any], place: str) -> Piece:
        reference = schema["$ref"]
        self._check_known(schema, frozenset({"$ref"}), place)
        match = re.fullmatch(r"#/(\$defs|definitions)/([^/]+)", str(reference))
        target = self.schema.get(match[1], {}).get(match[2]) if match else None
        if target is None:
            raise ModelError(f"The schema at {place} refers to {reference!r}, which is not among its $defs.")
        if reference in self.open_references:
            raise ModelError(f"The schema at {place} contains itself, so an answer to it might never end.")
        self.open_references.append(reference)
        piece = self.value(target, place)
        self.open_references.pop()
        return piece

    def _literals(self, schema: Mapping[str, Any], place: str) -> Piece:
        self._check_known(schema, frozenset({"enum", "const", "type"}), place)
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        if not values:
            raise ModelError(f"The schema at {place} has an empty enum.")
        texts = dict.fromkeys(json.dumps(value, ensure_ascii=False) for value in values)
        return _either([Piece(_quoted(text), len(text.encode())) for text in texts])

    def _string(self, schema: Mapping[str, Any], place: str) -> Piece:
        low = int(schema.get("minLength", 0))
        high = schema.get("maxLength")
        if high is None:
            raise ModelError(
                f"The string at {place} has no maxLength: give it one, so that answers are certain to end."
            )
        high = int(high) if self.longest_string is None else max(low, min(int(high), self.longest_string))
        _check_order(low, high, place)
        needed = f"char{{{low}}} " if low else ""
        most = high - low
        if most <= _CHAIN:
            self.longest, more = max(self.longest, most), f"upto{most}"
        else:
            self.long.add(most)
            self.longest, more = max(self.longest, _BLOCK - 1), f"many{most}"
        return Piece(f'("\\"" {needed}{more} "\\"")', 2 + _CHARACTER_BYTES * high)

    def _array(self, schema: Mapping[str, Any], place: str) -> Piece:
        low, high = int(schema.get("minItems", 0)), schema.get("maxItems")
        if high is None:
            raise ModelError(f"The array at {place} has no maxItems: give it one, so that answers are certain to end.")
        high = int(high)
        _check_order(low, high, place)
        if high == 0:
            return Piece('"[]"', 2)
        item = self.value(schema.get("items"), f"{place}[]")
        name = self._rule("item", item.expression)
        rest = f'{name} (", " {name}){{{max(low - 1, 0)},{high - 1}}}'
        inside = rest if low else f"({rest})?"
        return Piece(f'("[" {inside} "]")', 2 + high * item.size + 2 * (high - 1))

    def _object(self, schema: Mapping[str, Any], place: str) -> Piece:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        required = set(schema.get("required") or ())
        missing = sorted(required - set(properties))
        if missing:
            raise ModelError(f"The schema at {place} requires {missing[0]!r} without describing it.")
        if isinstance(schema.get("additionalProperties"), Mapping):
            raise ModelError(f"The schema at {place} leaves property names open, so answers are unbounded: list them.")
        pairs = []
        for name, part in properties.items():
            key = json.dumps(name, ensure_ascii=False) + ": "
            value = self.value(part, f"{place}.{name}")
            rule = self._rule("pair", f"{_quoted(key)} {value.expression}")
            pairs.append(Piece(rule, len(key.encode()) + value.size))
        needed = [name in required for name in properties]
        size = 2 + sum(pair.size for pair in pairs) + 2 * max(len(pairs) - 1, 0)
        return Piece(f'("{{" {self._members(pairs, needed)} "}}")', size)

    def _members(self, pairs: Sequence[Piece], needed: Sequence[bool]) -> str:
        """Chain the members from the last to the first: what may follow when something, or nothing, came before."""
        after_some, after_none = '""', '""'
        for pair, must in zip(reversed(pairs), reversed(needed), strict=True):
            follows = self._rule("rest", after_some)
            with_comma, alone = f'", " {pair.expression} {follows}', f"{pair.expression} {follows}"
            skipped = after_none
            after_some = with_comma if must else f"({with_comma} | {follows})"
            after_none = alone if must else f"({alone} | {self._rule('rest', skipped)})"
        return after_none

    def _rule(self, kind: str, expression: str) -> str:
        name = f"{kind}{len(self.rules)}"
        self.rules.append(f"{name} ::= {expression}")
        return name


def _up_to(longest: int) -> list[str]:
    """Rules for any number of characters up to each number, shared by all strings of a schema.

    The same as ``char{0,n}``, for which xgrammar 0.2 fills each mask anew: measured at 10 ms a token for n = 60 and 480
    for 250, against 0.2 ms for these rules, whose masks are made when the grammar is compiled (in 3 s for 250).
    """
    return ['upto0 ::= ""', *(f'upto{number} ::= "" | char upto{number - 1}' for number in range(1, longest + 1))]


def _blocks(numbers: Collection[int]) -> list[str]:
    """Rules for great numbers of characters, in blocks: compiled in a second whatever the number, 3 ms a token."""
    if not numbers:
        return []
    rules = ["block1 ::= char", *(f"block{number} ::= char block{number - 1}" for number in range(2, _BLOCK + 1))]
    for most in sorted(numbers):
        blocks, rest = divmod(most, _BLOCK)
        rules.append(f"many{most}in0 ::= upto{rest}")
        rules += [
            f"many{most}in{count} ::= upto{_BLOCK - 1} | block{_BLOCK} many{most}in{count - 1}"
            for count in range(1, blocks + 1)
        ]
        rules.append(f"many{most} ::= many{most}in{blocks}")
    return rules


def _either(pieces: Sequence[Piece]) -> Piece:
    unique = dict.fromkeys(piece.expression for piece in pieces)
    return Piece(f"({' | '.join(unique)})", max(piece.size for piece in pieces))


def _quoted(text: str) -> str:
    """A literal of the grammar."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _check_order(low: int, high: int, place: str) -> None:
    if low < 0 or high < low:
        raise ModelError(f"The bounds of the schema at {place} exclude every value: {low} to {high}.")


def _number(schema: Mapping[str, Any], place: str, *, whole: bool) -> Piece:
    """Numbers between bounds, written without exponent; decimals only up to a fixed number of digits."""
    limit = Decimal(10) ** MAX_INTEGER_DIGITS
    low, low_open = _bound(schema, "minimum", "exclusiveMinimum", -limit)
    high, high_open = _bound(schema, "maximum", "exclusiveMaximum", limit)
    most = 0 if whole else max(MIN_DECIMALS, _decimals(low), _decimals(high))
    patterns: list[str] = []
    size = 0
    for decimals in range(most + 1):
        scale = Decimal(10) ** decimals
        first = int((low * scale).to_integral_value(rounding="ROUND_CEILING"))
        last = int((high * scale).to_integral_value(rounding="ROUND_FLOOR"))
        first += low_open and first == low * scale
        last -= high_open and last == high * scale
        if first <= last:
            patterns += _range(max(first, 0), last, decimals) if last >= 0 else []
            if first < 0:
                patterns += [f'"-" {pattern}' for pattern in _range(max(1, -last), -first, decimals)]
            size = max(size, len(str(max(abs(first), abs(last)))) + decimals + 3)
    if not patterns:
        raise ModelError(f"The bounds of the number at {place} exclude every value: {low} to {high}.")
    return Piece(f"({' | '.join(patterns)})", size)


def _bound(schema: Mapping[str, Any], closed: str, opened: str, default: Decimal) -> tuple[Decimal, bool]:
    """The tighter one of an inclusive and an exclusive bound, and whether it is exclusive (as the default is)."""
    sign = 1 if closed == "minimum" else -1
    given = [(Decimal(str(schema[name])), name == opened) for name in (closed, opened) if name in schema]
    return max(given, key=lambda bound: (sign * bound[0], bound[1])) if given else (default, True)


def _decimals(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _range(low: int, high: int, decimals: int) -> list[str]:
    """Patterns for integers from low (0 or more) to high in units of 10^-decimals: one for each number of digits."""
    patterns = []
    digits = decimals + 1
    while low <= high:
        last = min(high, 10**digits - 1)
        if low <= last:
            patterns.append(_digits(str(low).zfill(digits), str(last).zfill(digits), decimals))
            low = last + 1
        digits += 1
    return patterns


def _digits(low: str, high: str, decimals: int) -> str:
    """Digit strings of one length from low to high, with a point before the last ``decimals`` digits."""
    if not low:
        return '""'
    point = f"{_POINT} " if len(low) == decimals else ""
    rest = len(low) - 1
    if set(low) == {"0"} and set(high) == {"9"}:
        before = len(low) - decimals if len(low) > decimals else 0
        whole = f"[0-9]{{{before}}} {_POINT if decimals else ''}" if before else point
        return f"{whole} [0-9]{{{len(low) - before}}}" if before < len(low) else whole
    if low[0] == high[0]:
        return f'{point}"{low[0]}" {_digits(low[1:], high[1:], decimals)}'
    options = [f'"{low[0]}" {_digits(low[1:], "9" * rest, decimals)}']
    if int(high[0]) - int(low[0]) > 1:
        between = f"[{int(low[0]) + 1}-{int(high[0]) - 1}]"
        options.append(f"{between} {_digits('0' * rest, '9' * rest, decimals)}")
    options.append(f'"{high[0]}" {_digits("0" * rest, high[1:], decimals)}')
    return f"{point}({' | '.join(options)})"


class Compiled(NamedTuple):
    """A schema's grammar, ready for a tokenizer."""

    grammar: SchemaGrammar
    automaton: Any
    """xgrammar's compiled grammar."""

    @property
    def max_tokens(self) -> int:
        """Tokens of the longest answer, its end included: a token is at least one byte."""
        return self.grammar.max_bytes + 1


class Constraint:
    """The progress of one answer through its grammar."""

    def __init__(self, compiled: Compiled) -> None:
        import xgrammar

        self._closed = compiled.grammar.closed
        self._matcher = xgrammar.GrammarMatcher(compiled.automaton)

    def fill(self, bitmask: "Tensor", row: int) -> None:
        """Write into a row of a bitmask, int32 [rows, ceil(vocabulary / 32)], which tokens may come next."""
        self._matcher.fill_next_token_bitmask(bitmask, row)

    def accept(self, token: int) -> bool:
        """Go on by one token; True when the answer is complete and nothing can follow."""
        if not self._matcher.accept_token(token):
            raise AssertionError("a token was drawn that the grammar does not allow")
        return bool(self._matcher.is_terminated() or (self._closed and self._matcher.is_completed()))


class Grammars:
    """Compiles each schema once for a tokenizer; the vocabulary is prepared at first use (a second for 50,000 tokens).

    Args:
        tokenizer: The model's.
        vocabulary: Width of the model's logits.
        ends: Tokens that end an answer.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", vocabulary: int, ends: Sequence[int]) -> None:
        self._tokenizer, self._vocabulary, self._ends = tokenizer, vocabulary, list(ends)
        self._compiler: Any = None
        self._compiled: dict[tuple[str, int | None], Compiled] = {}

    def compile(self, schema: Mapping[str, Any], room: int | None = None) -> Compiled:
        """Compile a schema.

        Args:
            schema: With bounds on strings and arrays.
            room: Tokens that an answer may have; where the schema's longest answer is longer, the bounds of its
                strings are lowered together until it fits.

        Raises:
            ModelError: The schema has no bounds, cannot be enforced, or needs more than ``room``.
        """
        key = json.dumps(schema)
        compiled = self._cached(key, schema, None)
        if room is None or compiled.max_tokens <= room:
            return compiled
        # The greatest common bound of strings with which the longest answer fits, by bisection.
        smallest = schema_grammar(schema, longest_string=0).max_bytes + 1
        if smallest > room:
            raise ModelError(
                f"The schema's longest answer has at least {smallest} tokens, but there is room for only {room}."
            )
        low, high = 0, room
        while low < high:
            middle = (low + high + 1) // 2
            fits = schema_grammar(schema, longest_string=middle).max_bytes + 1 <= room
            low, high = (middle, high) if fits else (low, middle - 1)
        return self._cached(key, schema, low)

    def mask(self, logits: "Tensor", constraints: Sequence[Constraint | None]) -> None:
        """Forbid in place what constraints do not allow.

        Args:
            logits: Shape [rows, vocabulary].
            constraints: One a row; None allows everything.
        """
        import xgrammar

        rows = [row for row, constraint in enumerate(constraints) if constraint is not None]
        bitmask = xgrammar.allocate_token_bitmask(len(constraints), self._vocabulary)
        for row, constraint in enumerate(constraints):
            if constraint is not None:
                constraint.fill(bitmask, row)
        xgrammar.apply_token_bitmask_inplace(logits, bitmask.to(logits.device), indices=rows)

    def _cached(self, key: str, schema: Mapping[str, Any], longest_string: int | None) -> Compiled:
        result = self._compiled.get((key, longest_string))
        if result is None:
            grammar = schema_grammar(schema, longest_string=longest_string)
            result = Compiled(grammar, self._automaton(grammar.text))
            self._compiled[key, longest_string] = result
        return result

    def _automaton(self, text: str) -> Any:
        try:
            import xgrammar
        except ImportError as error:
            raise MissingExtraError(
                "Answers with a schema need the package xgrammar: install it with `pip install 'climassay[local]'`."
            ) from error
        if self._compiler is None:
            import torch

            if not self._ends:
                raise ModelError("The model has no token that ends an answer, so a schema cannot be enforced.")
            info = xgrammar.TokenizerInfo.from_huggingface(
                self._tokenizer, vocab_size=self._vocabulary, stop_token_ids=self._ends
            )
            self._compiler = xgrammar.GrammarCompiler(info, max_threads=max(1, torch.get_num_threads()))
        return self._compiler.compile_grammar(xgrammar.Grammar.from_ebnf(text))
