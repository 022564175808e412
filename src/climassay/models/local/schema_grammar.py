"""Translate a JSON schema into a grammar with bounded answers.

Constrained decoding excludes every token that the grammar does not allow. A weak model can still fill a string without
end, so strings and arrays need bounds, and numbers get default ones. The bounds determine the maximum number of bytes
of an answer, and thereby of tokens, since a token has at least one byte.

JSON is written like ``json.dumps``: one space after ``:`` and ``,``, no other white space. Strings may contain all
characters but control characters; line breaks are escaped.
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
"""Maximum number of integer digits of a number without bounds; such numbers are exact in double precision."""
MIN_DECIMALS = 4
"""Number of decimals that a number may have; more only if its bounds have more."""

_CHARACTER = r"[ !#-\[\]-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]"
_ESCAPE = r'"\\" ["\\n]'
_CHARACTER_BYTES = 4
_MAX_CHAINED_CHARACTERS = 500
"""Maximum string length for which each length has a rule. Such rules give the fastest masks, but take 6 ms each to
compile."""
_BLOCK_SIZE = 64
"""Number of characters in a block; the rules of longer strings consist of blocks."""
_POINT = '"."'
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions", "deprecated"}
)
_KEYWORDS = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}


class GrammarPiece(NamedTuple):
    """Expression of the grammar and the maximum number of bytes that it matches."""

    expression: str
    size: int


@dataclass(frozen=True, slots=True)
class SchemaGrammar:
    """Grammar in xgrammar's EBNF."""

    text: str
    max_bytes: int
    """Number of bytes of the longest answer."""
    has_end_mark: bool
    """True if the last character shows that the answer is complete; False for numbers, as another digit may follow."""


def schema_grammar(schema: Mapping[str, Any], *, max_string_length: int | None = None) -> SchemaGrammar:
    """Translate a schema into a grammar.

    Args:
        schema: Schema with ``type``, ``properties``, ``required``, ``items``, ``enum``, ``const``, ``anyOf``, ``$ref``
            to ``$defs`` (not recursive), and bounds. Properties are written in the listed order, without additional
            ones. ``additionalProperties`` is ignored.
        max_string_length: Value that replaces a greater ``maxLength`` (but not below ``minLength``), to shorten the
            longest answer.

    Raises:
        ModelError: A string or array has no bound, or the schema uses an unsupported keyword; the message names its
            path.
    """
    builder = _Builder(schema, max_string_length)
    root = builder.translate(schema, "$")
    character = f"char ::= {_CHARACTER} | {_ESCAPE}"
    lines = [
        f"root ::= {root.expression}",
        *builder.rules,
        *_max_length_rules(builder.max_optional),
        *_block_rules(builder.long_lengths),
        character,
    ]
    has_end_mark = root.expression.startswith(('("{"', '("["'))
    return SchemaGrammar("\n".join(lines) + "\n", root.size, has_end_mark)


@dataclass
class _Builder:
    schema: Mapping[str, Any]
    max_string_length: int | None
    rules: list[str] = field(default_factory=list)
    active_references: list[str] = field(default_factory=list)
    max_optional: int = 0
    """Maximum n for which the grammar needs the rule ``upto`` (up to n characters)."""
    long_lengths: set[int] = field(default_factory=set)
    """Values of n above :data:`_MAX_CHAINED_CHARACTERS` for which the grammar needs a rule ``many`` (up to n
    characters, in blocks)."""

    def translate(self, schema: Any, path: str) -> GrammarPiece:
        """Translate a schema of any type into an expression of the grammar."""
        if not isinstance(schema, Mapping) or not schema:
            raise ModelError(f"The schema at {path} allows anything, so it cannot be enforced: give it a type.")
        if "$ref" in schema:
            return self._translate_reference(schema, path)
        if "enum" in schema or "const" in schema:
            return self._translate_literals(schema, path)
        if "anyOf" in schema:
            self._check_known(schema, frozenset({"anyOf"}), path)
            return _alternatives(
                [self.translate(option, f"{path}.anyOf[{i}]") for i, option in enumerate(schema["anyOf"])]
            )
        type_name = schema.get("type")
        if isinstance(type_name, Sequence) and not isinstance(type_name, str) and type_name:
            # Each of several types, with the keywords that belong to it.
            keywords_of_all_types = frozenset[str]().union(*_KEYWORDS.values())
            irrelevant_keywords = [keywords_of_all_types - _KEYWORDS.get(name, frozenset()) for name in type_name]
            parts = [{key: schema[key] for key in schema if key not in keywords} for keywords in irrelevant_keywords]
            return _alternatives(
                [self.translate(part | {"type": name}, path) for part, name in zip(parts, type_name, strict=True)]
            )
        if type_name not in _KEYWORDS:
            raise ModelError(f"The schema at {path} has no type that can be enforced (it says {type_name!r}).")
        self._check_known(schema, _KEYWORDS[type_name] | {"type"}, path)
        if type_name == "object":
            return self._translate_object(schema, path)
        if type_name == "array":
            return self._translate_array(schema, path)
        if type_name == "string":
            return self._translate_string(schema, path)
        if type_name == "boolean":
            return GrammarPiece('("true" | "false")', 5)
        if type_name == "null":
            return GrammarPiece('"null"', 4)
        return _translate_number(schema, path, is_integer=type_name == "integer")

    def _check_known(self, schema: Mapping[str, Any], keywords: frozenset[str], path: str) -> None:
        unknown_keywords = sorted(set(schema) - keywords - _ANNOTATIONS)
        if unknown_keywords:
            raise ModelError(
                f"The schema at {path} uses {unknown_keywords[0]!r}, which cannot be enforced: leave it out."
            )

    def _translate_reference(self, schema: Mapping[str, Any], path: str) -> GrammarPiece:
        reference = schema["$ref"]
        self._check_known(schema, frozenset({"$ref"}), path)
        match = re.fullmatch(r"#/(\$defs|definitions)/([^/]+)", str(reference))
        target = self.schema.get(match[1], {}).get(match[2]) if match else None
        if target is None:
            raise ModelError(f"The schema at {path} refers to {reference!r}, which is not among its $defs.")
        if reference in self.active_references:
            raise ModelError(f"The schema at {path} contains itself, so an answer to it might never end.")
        self.active_references.append(reference)
        piece = self.translate(target, path)
        self.active_references.pop()
        return piece

    def _translate_literals(self, schema: Mapping[str, Any], path: str) -> GrammarPiece:
        self._check_known(schema, frozenset({"enum", "const", "type"}), path)
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        if not values:
            raise ModelError(f"The schema at {path} has an empty enum.")
        texts = dict.fromkeys(json.dumps(value, ensure_ascii=False) for value in values)
        return _alternatives([GrammarPiece(_quote(text), len(text.encode())) for text in texts])

    def _translate_string(self, schema: Mapping[str, Any], path: str) -> GrammarPiece:
        min_length = int(schema.get("minLength", 0))
        max_length = schema.get("maxLength")
        if max_length is None:
            raise ModelError(f"The string at {path} has no maxLength: give it one, so that answers are certain to end.")
        max_length = (
            int(max_length)
            if self.max_string_length is None
            else max(min_length, min(int(max_length), self.max_string_length))
        )
        _check_bounds(min_length, max_length, path)
        required_part = f"char{{{min_length}}} " if min_length else ""
        n_optional = max_length - min_length
        if n_optional <= _MAX_CHAINED_CHARACTERS:
            self.max_optional, optional_part = max(self.max_optional, n_optional), f"upto{n_optional}"
        else:
            self.long_lengths.add(n_optional)
            self.max_optional, optional_part = max(self.max_optional, _BLOCK_SIZE - 1), f"many{n_optional}"
        return GrammarPiece(f'("\\"" {required_part}{optional_part} "\\"")', 2 + _CHARACTER_BYTES * max_length)

    def _translate_array(self, schema: Mapping[str, Any], path: str) -> GrammarPiece:
        min_items, max_items = int(schema.get("minItems", 0)), schema.get("maxItems")
        if max_items is None:
            raise ModelError(f"The array at {path} has no maxItems: give it one, so that answers are certain to end.")
        max_items = int(max_items)
        _check_bounds(min_items, max_items, path)
        if max_items == 0:
            return GrammarPiece('"[]"', 2)
        item = self.translate(schema.get("items"), f"{path}[]")
        name = self._add_rule("item", item.expression)
        item_list = f'{name} (", " {name}){{{max(min_items - 1, 0)},{max_items - 1}}}'
        content = item_list if min_items else f"({item_list})?"
        return GrammarPiece(f'("[" {content} "]")', 2 + max_items * item.size + 2 * (max_items - 1))

    def _translate_object(self, schema: Mapping[str, Any], path: str) -> GrammarPiece:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        required_names = set(schema.get("required") or ())
        missing_names = sorted(required_names - set(properties))
        if missing_names:
            raise ModelError(f"The schema at {path} requires {missing_names[0]!r} without describing it.")
        if isinstance(schema.get("additionalProperties"), Mapping):
            raise ModelError(f"The schema at {path} leaves property names open, so answers are unbounded: list them.")
        pairs = []
        for name, part in properties.items():
            key = json.dumps(name, ensure_ascii=False) + ": "
            value = self.translate(part, f"{path}.{name}")
            rule = self._add_rule("pair", f"{_quote(key)} {value.expression}")
            pairs.append(GrammarPiece(rule, len(key.encode()) + value.size))
        are_required = [name in required_names for name in properties]
        size = 2 + sum(pair.size for pair in pairs) + 2 * max(len(pairs) - 1, 0)
        return GrammarPiece(f'("{{" {self._join_members(pairs, are_required)} "}}")', size)

    def _join_members(self, pairs: Sequence[GrammarPiece], required_flags: Sequence[bool]) -> str:
        """Return the expression of an object's members, built from last to first.

        At each step, the members that follow have two expressions: one begins with a comma, for use after a member, and
        one does not.
        """
        rest_with_comma, rest_or_nothing = '""', '""'
        for pair, is_required in zip(reversed(pairs), reversed(required_flags), strict=True):
            rest_rule = self._add_rule("rest", rest_with_comma)
            with_comma, without_comma = f'", " {pair.expression} {rest_rule}', f"{pair.expression} {rest_rule}"
            rest_without_comma = rest_or_nothing
            rest_with_comma = with_comma if is_required else f"({with_comma} | {rest_rule})"
            rest_or_nothing = (
                without_comma if is_required else f"({without_comma} | {self._add_rule('rest', rest_without_comma)})"
            )
        return rest_or_nothing

    def _add_rule(self, prefix: str, expression: str) -> str:
        name = f"{prefix}{len(self.rules)}"
        self.rules.append(f"{name} ::= {expression}")
        return name


def _max_length_rules(max_optional: int) -> list[str]:
    """Return rules for up to n characters, shared by all strings of a schema.

    Equivalent to ``char{0,n}``, for which xgrammar 0.2 computes each mask again: 10 ms per token for n = 60 and 480 ms
    for n = 250, as measured. Masks of these rules are computed when the grammar is compiled (3 s for n = 250) and take
    0.2 ms.
    """
    return ['upto0 ::= ""', *(f'upto{number} ::= "" | char upto{number - 1}' for number in range(1, max_optional + 1))]


def _block_rules(numbers: Collection[int]) -> list[str]:
    """Return rules for up to n characters in blocks, compiled in a second for any n, with masks in 3 ms per token."""
    if not numbers:
        return []
    rules = ["block1 ::= char", *(f"block{number} ::= char block{number - 1}" for number in range(2, _BLOCK_SIZE + 1))]
    for length in sorted(numbers):
        blocks, n_rest = divmod(length, _BLOCK_SIZE)
        rules.append(f"many{length}in0 ::= upto{n_rest}")
        rules += [
            f"many{length}in{count} ::= upto{_BLOCK_SIZE - 1} | block{_BLOCK_SIZE} many{length}in{count - 1}"
            for count in range(1, blocks + 1)
        ]
        rules.append(f"many{length} ::= many{length}in{blocks}")
    return rules


def _alternatives(pieces: Sequence[GrammarPiece]) -> GrammarPiece:
    expressions = dict.fromkeys(piece.expression for piece in pieces)
    return GrammarPiece(f"({' | '.join(expressions)})", max(piece.size for piece in pieces))


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _check_bounds(low: int, high: int, path: str) -> None:
    if low < 0 or high < low:
        raise ModelError(f"The bounds of the schema at {path} exclude every value: {low} to {high}.")


def _translate_number(schema: Mapping[str, Any], path: str, *, is_integer: bool) -> GrammarPiece:
    """Translate a number with bounds, written without exponent and with a limited number of decimals."""
    limit = Decimal(10) ** MAX_INTEGER_DIGITS
    low, is_low_exclusive = _find_tighter_bound(schema, "minimum", "exclusiveMinimum", -limit)
    high, is_high_exclusive = _find_tighter_bound(schema, "maximum", "exclusiveMaximum", limit)
    max_decimals = 0 if is_integer else max(MIN_DECIMALS, _count_decimals(low), _count_decimals(high))
    patterns: list[str] = []
    size = 0
    for decimals in range(max_decimals + 1):
        scale = Decimal(10) ** decimals
        first = int((low * scale).to_integral_value(rounding="ROUND_CEILING"))
        last = int((high * scale).to_integral_value(rounding="ROUND_FLOOR"))
        first += is_low_exclusive and first == low * scale
        last -= is_high_exclusive and last == high * scale
        if first <= last:
            patterns += _range_patterns(max(first, 0), last, decimals) if last >= 0 else []
            if first < 0:
                patterns += [f'"-" {pattern}' for pattern in _range_patterns(max(1, -last), -first, decimals)]
            size = max(size, len(str(max(abs(first), abs(last)))) + decimals + 3)
    if not patterns:
        raise ModelError(f"The bounds of the number at {path} exclude every value: {low} to {high}.")
    return GrammarPiece(f"({' | '.join(patterns)})", size)


def _find_tighter_bound(
    schema: Mapping[str, Any], inclusive_name: str, exclusive_name: str, default: Decimal
) -> tuple[Decimal, bool]:
    """Return the tighter of a schema's inclusive and exclusive bounds, and whether it is exclusive.

    If the schema has neither, return the default as an exclusive bound.
    """
    sign = 1 if inclusive_name == "minimum" else -1
    bounds = [
        (Decimal(str(schema[name])), name == exclusive_name)
        for name in (inclusive_name, exclusive_name)
        if name in schema
    ]
    return max(bounds, key=lambda bound: (sign * bound[0], bound[1])) if bounds else (default, True)


def _count_decimals(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _range_patterns(low: int, high: int, decimals: int) -> list[str]:
    """Return patterns of numbers from ``low`` (at least 0) to ``high``, one for each number of digits.

    Both bounds are integers, in units of 10^-decimals.
    """
    patterns = []
    digits = decimals + 1
    while low <= high:
        last = min(high, 10**digits - 1)
        if low <= last:
            patterns.append(_digit_pattern(str(low).zfill(digits), str(last).zfill(digits), decimals))
            low = last + 1
        digits += 1
    return patterns


def _digit_pattern(low: str, high: str, decimals: int) -> str:
    """Return a pattern for the numbers from ``low`` to ``high``, two strings of equally many digits.

    The last ``decimals`` digits follow a decimal point.
    """
    if not low:
        return '""'
    point = f"{_POINT} " if len(low) == decimals else ""
    n_rest = len(low) - 1
    if set(low) == {"0"} and set(high) == {"9"}:
        n_integer_digits = len(low) - decimals if len(low) > decimals else 0
        integer_part = f"[0-9]{{{n_integer_digits}}} {_POINT if decimals else ''}" if n_integer_digits else point
        return f"{integer_part} [0-9]{{{len(low) - n_integer_digits}}}" if n_integer_digits < len(low) else integer_part
    if low[0] == high[0]:
        return f'{point}"{low[0]}" {_digit_pattern(low[1:], high[1:], decimals)}'
    options = [f'"{low[0]}" {_digit_pattern(low[1:], "9" * n_rest, decimals)}']
    if int(high[0]) - int(low[0]) > 1:
        middle_digits = f"[{int(low[0]) + 1}-{int(high[0]) - 1}]"
        options.append(f"{middle_digits} {_digit_pattern('0' * n_rest, '9' * n_rest, decimals)}")
    options.append(f'"{high[0]}" {_digit_pattern("0" * n_rest, high[1:], decimals)}')
    return f"{point}({' | '.join(options)})"


class CompiledSchema(NamedTuple):
    """Compiled grammar of a schema for a tokenizer."""

    grammar: SchemaGrammar
    automaton: Any
    """Compiled grammar of xgrammar."""

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens of an answer, including its end."""
        return self.grammar.max_bytes + 1


class Constraint:
    """State of one answer in its grammar; it determines the tokens that may follow."""

    def __init__(self, compiled: CompiledSchema) -> None:
        import xgrammar

        self._has_end_mark = compiled.grammar.has_end_mark
        self._matcher = xgrammar.GrammarMatcher(compiled.automaton)

    def fill(self, bitmask: "Tensor", row: int) -> None:
        """Write the allowed next tokens into a row of a bitmask, int32 [rows, ceil(vocabulary / 32)]."""
        self._matcher.fill_next_token_bitmask(bitmask, row)

    def accept(self, token: int) -> bool:
        """Advance by one token; return whether the answer is complete."""
        if not self._matcher.accept_token(token):
            raise AssertionError("a token was drawn that the grammar does not allow")
        return bool(self._matcher.is_terminated() or (self._has_end_mark and self._matcher.is_completed()))


class Grammars:
    """Compiler of schemas for one tokenizer, with a cache. Its first use takes a second for 50,000 tokens.

    Args:
        tokenizer: Tokenizer of the model.
        vocabulary: Width of the model's logits.
        end_tokens: Tokens that end an answer.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", vocabulary: int, end_tokens: Sequence[int]) -> None:
        self._tokenizer, self._vocabulary, self._end_tokens = tokenizer, vocabulary, list(end_tokens)
        self._compiler: Any = None
        self._compiled: dict[tuple[str, int | None], CompiledSchema] = {}

    def compile(self, schema: Mapping[str, Any], max_tokens: int | None = None) -> CompiledSchema:
        """Compile a schema for an optional maximum number of tokens.

        Args:
            schema: Schema with bounds on strings and arrays.
            max_tokens: Maximum number of tokens of an answer. If the schema allows longer answers, the bounds of its
                strings are lowered to a common bound.

        Raises:
            ModelError: The schema has no bounds, is not supported, or needs more than ``max_tokens``.
        """
        key = json.dumps(schema)
        compiled_schema = self._compile_cached(key, schema, None)
        if max_tokens is None or compiled_schema.max_tokens <= max_tokens:
            return compiled_schema
        # The greatest common bound of strings with which the longest answer fits, by bisection.
        min_tokens = schema_grammar(schema, max_string_length=0).max_bytes + 1
        if min_tokens > max_tokens:
            raise ModelError(
                f"The schema's longest answer has at least {min_tokens} tokens, but only {max_tokens} are allowed."
            )
        low, high = 0, max_tokens
        while low < high:
            middle = (low + high + 1) // 2
            is_short_enough = schema_grammar(schema, max_string_length=middle).max_bytes + 1 <= max_tokens
            low, high = (middle, high) if is_short_enough else (low, middle - 1)
        return self._compile_cached(key, schema, low)

    def mask(self, logits: "Tensor", constraints: Sequence[Constraint | None]) -> None:
        """Set the logits [rows, vocabulary] of tokens that a row's constraint excludes to minus infinity, in place."""
        import xgrammar

        rows = [row for row, constraint in enumerate(constraints) if constraint is not None]
        bitmask = xgrammar.allocate_token_bitmask(len(constraints), self._vocabulary)
        for row, constraint in enumerate(constraints):
            if constraint is not None:
                constraint.fill(bitmask, row)
        xgrammar.apply_token_bitmask_inplace(logits, bitmask.to(logits.device), indices=rows)

    def _compile_cached(self, key: str, schema: Mapping[str, Any], max_string_length: int | None) -> CompiledSchema:
        result = self._compiled.get((key, max_string_length))
        if result is None:
            grammar = schema_grammar(schema, max_string_length=max_string_length)
            result = CompiledSchema(grammar, self._compile_automaton(grammar.text))
            self._compiled[key, max_string_length] = result
        return result

    def _compile_automaton(self, text: str) -> Any:
        try:
            import xgrammar
        except ImportError as error:
            raise MissingExtraError(
                "Answers with a schema need the package xgrammar: install it with `pip install 'climassay[local]'`."
            ) from error
        if self._compiler is None:
            import torch

            if not self._end_tokens:
                raise ModelError("The model has no token that ends an answer, so a schema cannot be enforced.")
            info = xgrammar.TokenizerInfo.from_huggingface(
                self._tokenizer, vocab_size=self._vocabulary, stop_token_ids=self._end_tokens
            )
            self._compiler = xgrammar.GrammarCompiler(info, max_threads=max(1, torch.get_num_threads()))
        return self._compiler.compile_grammar(xgrammar.Grammar.from_ebnf(text))
