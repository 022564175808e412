r"""JSON in models' answers: extraction, unambiguous repairs, and validation against a schema.

Models write LaTeX without doubling its backslashes: ``\alpha`` is then invalid JSON, and ``\tau`` is JSON for a tab and
"au". A backslash is therefore doubled if no JSON text of a model can mean it otherwise: before an unknown escape, a
backspace, form feed or carriage return before a letter, and a tab or line feed at the beginning of a LaTeX command.
Other control characters are a fault, and the answer is requested again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from climassay.questions.thoughts import separate_thoughts

ROOT = "answer"
"""Name of the field that contains the answer if its schema is not an object and was therefore wrapped in one."""
_UPPER_BOUNDS = ("maxLength", "maxItems", "maximum", "exclusiveMaximum", "maxProperties")
"""Keywords of upper bounds; an answer that exceeds one is accepted."""
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
    (list, "array"),
    (dict, "object"),
)
"""Python types with their names in JSON schemas; bool comes first, since it is a subclass of int."""
_MAX_PROBLEMS = 5
"""Maximum number of faults reported per answer."""
_MAX_BRACKETS = 256
"""Maximum number of opening brackets that are tried as the start of JSON. If a text has more, a quarter of this number
is tried from its beginning, and the others from its end."""
_DECODER = json.JSONDecoder(strict=False)
_ESCAPE = re.compile(r"\\(?:\\|u[0-9a-fA-F]{4}|.|\Z)", re.DOTALL)
_TAB_COMMANDS = (
    r"(?:au|heta|imes|ext(?:bf|it|rm|sf|tt|sc|up|normal|style|color)?|ilde|frac|herefore|riangle\w*|anh|binom|op|o"
    r"|an(?=\s*(?:\\|[({^0-9])))(?![a-zA-Z])"
)
_LINE_COMMANDS = r"(?:abla|u|eg|eq|leq|geq|mid|ot|otin|rightarrow|atural|subseteq|ewcommand|olimits)(?![a-zA-Z.,])"
_LATEX_COMMANDS = {"t": re.compile(_TAB_COMMANDS), "n": re.compile(_LINE_COMMANDS)}
"""Patterns of LaTeX commands without their first letter, by that letter.

JSON reads a backslash and that letter as a tab or a line feed.
"""
_CONTROL_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


_LOOP_CHARACTERS, _LOOP_COUNT = 60, 3
"""A text is in a loop if its last ``_LOOP_CHARACTERS`` characters occur at least ``_LOOP_COUNT`` times in it."""


def ends_in_loop(text: str) -> bool:
    """Return whether the end of a truncated text occurs at least three times in it, treating all numerals as equal."""
    normalised_text = re.sub(r"\d+", "0", " ".join(text.split()))
    end = normalised_text[-_LOOP_CHARACTERS:]
    return len(end) == _LOOP_CHARACTERS and normalised_text.count(end) >= _LOOP_COUNT


class NoJsonError(ValueError):
    """Error for an answer without complete JSON, such as prose or a truncated answer."""


def extract_valid_json(text: str, schema: Mapping[str, Any]) -> str:
    """Return the JSON of an answer that satisfies a schema, without surrounding text.

    Of several values, the last one that satisfies the schema is returned. Repairs: backslashes of LaTeX
    (:func:`repair_backslashes`), trailing commas, and enumeration values that differ in case or punctuation.

    Args:
        text: Answer, with JSON in a code block or between sentences.
        schema: Schema. Upper bounds may be exceeded, and objects may have additional fields.

    Returns:
        The JSON as written unless repaired, without the wrapper object for strict servers
        (:func:`~climassay.models.openai.schema.response_format`).

    Raises:
        NoJsonError: There is no complete JSON.
        ValueError: The JSON does not satisfy the schema; the message describes the faults.
    """
    import jsonschema

    json_type = schema.get("type") or implied_type(schema, None)
    relaxed_schema = _without_upper_bounds(schema)
    validator = jsonschema.validators.validator_for(relaxed_schema)(relaxed_schema)
    problems: list[str] = []
    candidates = _outermost_json(repair_backslashes(text), json_type)
    for candidate, value in reversed(candidates):
        if json_type != "object" and isinstance(value, dict) and value.keys() == {ROOT}:
            value = value[ROOT]
            candidate = json.dumps(value, ensure_ascii=False)
        normalised_value = _match_enumerations(value, schema)
        faults = list(dict.fromkeys(_describe_fault(error) for error in validator.iter_errors(normalised_value)))
        faults += _describe_control_character(normalised_value)
        if not faults:
            is_strict = normalised_value == value and _is_json(candidate)
            return candidate if is_strict else json.dumps(normalised_value, ensure_ascii=False)
        problems = problems or faults
    if not candidates:
        raise NoJsonError("It is not complete JSON.")
    raise ValueError(" ".join(problems[:_MAX_PROBLEMS]))


def repair_backslashes(text: str) -> str:
    r"""Double the backslashes of LaTeX commands in an answer's JSON, keeping JSON escapes.

    Example:
        ``{"a": "\tau and \alpha,\nthen"}`` becomes ``{"a": "\\tau and \\alpha,\nthen"}``.
    """

    def repair_escape(match: re.Match[str]) -> str:
        escape = match[0][1:2]
        next_character = text[match.end() : match.end() + 1]
        if len(match[0]) > 2 or escape in ("\\", '"', "/"):
            return match[0]
        if escape in _LATEX_COMMANDS:
            is_latex = bool(_LATEX_COMMANDS[escape].match(text, match.end()))
        elif escape in ("b", "f", "r"):
            is_latex = next_character.isascii() and next_character.isalpha()
        else:
            is_latex = True
        return "\\" + match[0] if is_latex else match[0]

    return _ESCAPE.sub(repair_escape, text)


def implied_type(schema: Mapping[str, Any], values: Sequence[Any] | None) -> Any:
    """Infer the type of a schema node without ``type`` from its allowed values or its keywords; None if impossible."""
    if values is not None:
        type_names = dict.fromkeys(
            next(name for python_type, name in _TYPES if isinstance(value, python_type)) for value in values
        )
        return next(iter(type_names)) if len(type_names) == 1 else list(type_names)
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    return None if schema.keys() & {"$ref", "anyOf", "oneOf"} else "string"


def _without_upper_bounds(schema: Any) -> Any:
    """Return the schema without upper bounds. Objects may have additional fields."""
    if isinstance(schema, Mapping):
        mapping_keywords = {"properties", "$defs", "definitions"}
        return {
            name: {key: _without_upper_bounds(subschema) for key, subschema in part.items()}
            if name in mapping_keywords
            else part
            if name in ("enum", "const")
            else _without_upper_bounds(part)
            for name, part in schema.items()
            if name not in _UPPER_BOUNDS and not (name == "additionalProperties" and part is False)
        }
    if isinstance(schema, list | tuple):
        return [_without_upper_bounds(part) for part in schema]
    return schema


def _describe_fault(error: Any) -> str:
    """Return a validation error as a sentence with the field's name."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    field = f'The field "{path}"' if path else "The answer"
    if error.validator == "required":
        missing_names = [name for name in error.validator_value if name not in error.instance]
        names = ", ".join(f'"{name}"' for name in missing_names)
        return f"{field} lacks {names}." if path else f"The answer lacks the field {names}."
    if error.validator == "enum":
        options = ", ".join(json.dumps(option, ensure_ascii=False) for option in error.validator_value)
        return f"{field} is {_shorten_json(error.instance)}, but must be one of {options}."
    if error.validator == "type":
        expected_type = error.validator_value
        type_names = expected_type if isinstance(expected_type, str) else " or ".join(expected_type)
        return f"{field} is {_shorten_json(error.instance)}, but must be of the type {type_names}."
    if error.validator == "minLength":
        return f"{field} is too short: at least {error.validator_value} characters are needed."
    if error.validator == "minItems":
        return f"{field} has {len(error.instance)} items, but needs at least {error.validator_value}."
    return f"{field} does not satisfy {error.validator}: {_shorten_json(error.validator_value)}."


def _shorten_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _outermost_json(text: str, json_type: Any) -> list[tuple[str, Any]]:
    """Return the source text and the value of each JSON value that is not inside another one.

    If ``json_type`` is ``"object"``, only objects are returned.
    """
    text = separate_thoughts(text).answer
    python_types, brackets = (dict, r"\{") if json_type == "object" else ((dict, list), r"[\[{]")
    starts = [bracket.start() for bracket in re.finditer(brackets, text)]
    if len(starts) > _MAX_BRACKETS:
        starts = starts[: _MAX_BRACKETS // 4] + starts[-(_MAX_BRACKETS - _MAX_BRACKETS // 4) :]
    results: list[tuple[str, Any]] = []
    end = 0
    for start in starts:
        if start < end:
            continue
        with suppress(ValueError, RecursionError):
            candidate, value, end = _decode_json(text, start)
            if isinstance(value, python_types):
                results.append((candidate, value))
    return results


def _decode_json(text: str, start: int) -> tuple[str, Any, int]:
    """Return the JSON value that starts at an index: its source text, the parsed value and the end index.

    Raises:
        ValueError: No JSON value starts there.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
        return text[start:end], value, end
    except ValueError:
        rest = text[start:]
        repaired_rest = _TRAILING_COMMA.sub(lambda part: part[0] if part[0] != "," else "", rest)
        if repaired_rest == rest:
            raise
        value, length = _DECODER.raw_decode(repaired_rest)
        return repaired_rest[:length], value, start + length


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _match_enumerations(value: Any, schema: Any) -> Any:
    """Replace values by the enumeration option that they equal if case and punctuation are ignored, if it is unique."""
    if not isinstance(schema, Mapping):
        return value
    options = schema.get("enum")
    if options is not None and value not in options and isinstance(value, str | int) and not isinstance(value, bool):
        matches = [
            option
            for option in options
            if isinstance(option, str) and _normalise_option(option) == _normalise_option(str(value))
        ]
        return matches[0] if len(matches) == 1 else value
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {name: _match_enumerations(part, properties.get(name)) for name, part in value.items()}
    if isinstance(value, list):
        return [_match_enumerations(part, schema.get("items")) for part in value]
    return value


def _normalise_option(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().casefold()


def _describe_control_character(value: Any) -> list[str]:
    """Return a sentence on the first invalid control character in a JSON value, as a list; empty if there is none."""
    if isinstance(value, dict):
        return [fault for part in value.values() for fault in _describe_control_character(part)][:1]
    if isinstance(value, list):
        return [fault for part in value for fault in _describe_control_character(part)][:1]
    if isinstance(value, str) and (match := _CONTROL_CHARACTER.search(value)):
        excerpt = value[max(0, match.start() - 20) : match.end() + 20]
        return [f"The text {_shorten_json(excerpt)} has a control character: a backslash is written as two."]
    return []
