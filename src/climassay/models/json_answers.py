r"""JSON in models' answers: found, repaired where only one meaning is possible, and checked against a schema.

Models write LaTeX without doubling its backslashes. ``\alpha`` is then no JSON, and ``\tau`` is JSON for a tab and
"au". A backslash is therefore doubled before anything that no JSON text of a model can mean otherwise: an unknown
escape, a backspace, form feed or carriage return before a letter, and a tab or line feed that begins the name of a
LaTeX command. Other control characters are a fault, and the answer is asked for again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

ROOT = "answer"
"""Field of the object that is made of a schema of something else."""
_UPPER_BOUNDS = ("maxLength", "maxItems", "maximum", "exclusiveMaximum", "maxProperties")
"""What an answer may exceed and is kept all the same."""
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
    (list, "array"),
    (dict, "object"),
)
"""Python's types by their names in JSON schemas; a truth value is a number in Python, so it comes first."""
_PROBLEMS = 5
"""Faults of one answer that are named; the others show once these are gone."""
_BRACKETS = 256
"""Places in an answer at which its JSON is looked for; if there are more, the first quarter and the last ones."""
_DECODER = json.JSONDecoder(strict=False)
_ESCAPE = re.compile(r"\\(?:\\|u[0-9a-fA-F]{4}|.|\Z)", re.DOTALL)
_TAB_COMMANDS = (
    r"(?:au|heta|imes|ext(?:bf|it|rm|sf|tt|sc|up|normal|style|color)?|ilde|frac|herefore|riangle\w*|anh|binom|op|o"
    r"|an(?=\s*(?:\\|[({^0-9])))(?![a-zA-Z])"
)
_LINE_COMMANDS = r"(?:abla|u|eg|eq|leq|geq|mid|ot|otin|rightarrow|atural|subseteq|ewcommand|olimits)(?![a-zA-Z.,])"
_AMBIGUOUS = {"t": re.compile(_TAB_COMMANDS), "n": re.compile(_LINE_COMMANDS)}
"""Names of LaTeX commands without the letter that JSON takes for a tab or a line feed, and not found in prose."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


class NoJsonError(ValueError):
    """An answer without JSON, as prose is or an answer that was cut off."""


def satisfying_json(text: str, schema: Mapping[str, Any]) -> str:
    """Return the JSON of an answer that satisfies a schema, without what a model may write around it.

    If there are several values, the last one that satisfies the schema counts. Repaired are backslashes of LaTeX
    (:func:`repair_backslashes`), commas before closing brackets, and values of enumerations that differ in case or
    punctuation only.

    Args:
        text: The answer; its JSON may appear in a code block or between sentences.
        schema: What it must satisfy. Texts, lists and numbers may exceed their upper bounds, and objects may have
            further fields.

    Returns:
        The JSON as the model wrote it unless it was repaired, without the object around it that strict servers need
        (:func:`~climassay.models.openai.schema.response_format`).

    Raises:
        NoJsonError: There is no complete JSON; the message is one sentence.
        ValueError: The JSON does not satisfy the schema; the message names every field and what is wrong with it.
    """
    import jsonschema

    kind = schema.get("type") or implied_type(schema, None)
    checked = _without_upper_bounds(schema)
    validator = jsonschema.validators.validator_for(checked)(checked)
    problems: list[str] = []
    found = _outermost_json(repair_backslashes(text), kind)
    for candidate, value in reversed(found):
        if kind != "object" and isinstance(value, dict) and value.keys() == {ROOT}:
            value = value[ROOT]
            candidate = json.dumps(value, ensure_ascii=False)
        named = _with_enumerated(value, schema)
        faults = list(dict.fromkeys(_in_words(error) for error in validator.iter_errors(named)))
        faults += _control_characters(named)
        if not faults:
            is_strict = named == value and _is_json(candidate)
            return candidate if is_strict else json.dumps(named, ensure_ascii=False)
        problems = problems or faults
    if not found:
        raise NoJsonError("It is not complete JSON.")
    raise ValueError(" ".join(problems[:_PROBLEMS]))


def repair_backslashes(text: str) -> str:
    r"""Double the backslashes of LaTeX in an answer's JSON, and leave those of JSON's own escapes.

    Example:
        ``{"a": "\tau and \alpha,\nthen"}`` becomes ``{"a": "\\tau and \\alpha,\nthen"}``.
    """

    def repaired(match: re.Match[str]) -> str:
        escape = match[0][1:2]
        following = text[match.end() : match.end() + 1]
        if len(match[0]) > 2 or escape in ("\\", '"', "/"):
            return match[0]
        if escape in _AMBIGUOUS:
            is_latex = bool(_AMBIGUOUS[escape].match(text, match.end()))
        elif escape in ("b", "f", "r"):
            is_latex = following.isascii() and following.isalpha()
        else:
            is_latex = True
        return "\\" + match[0] if is_latex else match[0]

    return _ESCAPE.sub(repaired, text)


def implied_type(schema: Mapping[str, Any], values: Sequence[Any] | None) -> Any:
    """Return the type of a schema's node that does not name it, from its values or parts; None if open."""
    if values is not None:
        kinds = dict.fromkeys(next(name for kind, name in _TYPES if isinstance(value, kind)) for value in values)
        return next(iter(kinds)) if len(kinds) == 1 else list(kinds)
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    return None if schema.keys() & {"$ref", "anyOf", "oneOf"} else "string"


def _without_upper_bounds(schema: Any) -> Any:
    """The schema with its structure only, for the check of an answer."""
    if isinstance(schema, Mapping):
        named = {"properties", "$defs", "definitions"}
        return {
            name: {key: _without_upper_bounds(each) for key, each in part.items()}
            if name in named
            else part
            if name in ("enum", "const")
            else _without_upper_bounds(part)
            for name, part in schema.items()
            if name not in _UPPER_BOUNDS and not (name == "additionalProperties" and part is False)
        }
    if isinstance(schema, list | tuple):
        return [_without_upper_bounds(part) for part in schema]
    return schema


def _in_words(error: Any) -> str:
    """One fault of an answer, with the field's name."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    field = f'The field "{place}"' if place else "The answer"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        names = ", ".join(f'"{name}"' for name in missing)
        return f"{field} lacks {names}." if place else f"The answer lacks the field {names}."
    if error.validator == "enum":
        options = ", ".join(json.dumps(option, ensure_ascii=False) for option in error.validator_value)
        return f"{field} is {_shown(error.instance)}, but must be one of {options}."
    if error.validator == "type":
        kind = error.validator_value
        wanted = kind if isinstance(kind, str) else " or ".join(kind)
        return f"{field} is {_shown(error.instance)}, but must be of the type {wanted}."
    if error.validator == "minLength":
        return f"{field} is too short: at least {error.validator_value} characters are needed."
    if error.validator == "minItems":
        return f"{field} has {len(error.instance)} items, but needs at least {error.validator_value}."
    return f"{field} does not satisfy {error.validator}: {_shown(error.validator_value)}."


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _outermost_json(text: str, kind: Any) -> list[tuple[str, Any]]:
    """Return the complete JSON values of a type in a text, none within another: as written, and as read."""
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    types, brackets = (dict, r"\{") if kind == "object" else ((dict, list), r"[\[{]")
    starts = [bracket.start() for bracket in re.finditer(brackets, text)]
    if len(starts) > _BRACKETS:
        starts = starts[: _BRACKETS // 4] + starts[-(_BRACKETS - _BRACKETS // 4) :]
    results: list[tuple[str, Any]] = []
    end = 0
    for start in starts:
        if start < end:
            continue
        with suppress(ValueError, RecursionError):
            candidate, value, end = _decode(text, start)
            if isinstance(value, types):
                results.append((candidate, value))
    return results


def _decode(text: str, start: int) -> tuple[str, Any, int]:
    """Return the JSON value that begins there as written, as read, and its end in the text.

    Raises:
        ValueError: There is none.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
        return text[start:end], value, end
    except ValueError:
        rest = text[start:]
        tidy = _TRAILING_COMMA.sub(lambda part: part[0] if part[0] != "," else "", rest)
        if tidy == rest:
            raise
        value, length = _DECODER.raw_decode(tidy)
        return tidy[:length], value, start + length


def _is_json(text: str) -> bool:
    """Return whether a text is JSON to any reader; line breaks within texts are not."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _with_enumerated(value: Any, schema: Any) -> Any:
    """Return a value whose texts of enumerations are written as the schema has them, if only one is meant."""
    if not isinstance(schema, Mapping):
        return value
    options = schema.get("enum")
    if options is not None and value not in options and isinstance(value, str | int) and not isinstance(value, bool):
        meant = [option for option in options if isinstance(option, str) and _plain(option) == _plain(str(value))]
        return meant[0] if len(meant) == 1 else value
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {name: _with_enumerated(part, properties.get(name)) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_enumerated(part, schema.get("items")) for part in value]
    return value


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().casefold()


def _control_characters(value: Any) -> list[str]:
    """Return a sentence if a text has a control character that no text can mean."""
    if isinstance(value, dict):
        return [fault for part in value.values() for fault in _control_characters(part)][:1]
    if isinstance(value, list):
        return [fault for part in value for fault in _control_characters(part)][:1]
    if isinstance(value, str) and (found := _CONTROL.search(value)):
        place = value[max(0, found.start() - 20) : found.end() + 20]
        return [f"The text {_shown(place)} has a control character: a backslash is written as two."]
    return []
