"""The configuration of a run in lines: names joined by dots, and the hashes of its prompts by themselves."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

LONGEST_VALUE = 600
"""Characters of a value; the whole is in the run's JSON."""
MOST_LINES = 120


def settings_lines(config: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and values of a configuration, however deep, without the prompts."""
    lines = [(name, value) for name, value in _flat(config) if not _is_prompt(name)]
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    return (*lines[:MOST_LINES], ("…", f"{len(lines) - MOST_LINES} more in the run's JSON"))


def prompt_hashes(config: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Prompts with the SHA-256 of their text, where the configuration has them."""
    return tuple((name.removeprefix("prompts."), value) for name, value in _flat(config) if _is_prompt(name))


def _is_prompt(name: str) -> bool:
    return (name.startswith("prompts.") and not name.endswith(".origin")) or name == "prompt_sha256"


def _flat(config: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{at}{name}.")
        elif isinstance(value, list) and any(isinstance(entry, Mapping) for entry in value):
            for number, entry in enumerate(value, start=1):
                yield from _flat(entry if isinstance(entry, Mapping) else {"": entry}, f"{at}{name}.{number}.")
        else:
            yield f"{at}{name}", _words(value)


def _words(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        text = ", ".join(_words(entry) for entry in value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + " …"
