"""What one server can do, found out by asking it and remembered."""

import json
import logging
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("climassay.models")

DROPPABLE = ("seed", "temperature", "top_p", "stop")
"""Parameters that some models do not accept; without them the model draws in its own way."""
REFUSAL = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra|only the default", re.I
)
MOST_TOP_LOGPROBS = 20
REFUSED_SCHEMAS = 3
"""After so many different schemas refused and none accepted, no schema is tried any more."""


class Abilities:
    """What has been learnt about a server. Used from one event loop only.

    Attributes:
        logprobs: Whether it gives log-probabilities; None until known.
        top_logprobs: How many likely tokens it lists at a place.
        fallbacks: How often something had to be done in another way, by what the server lacks.
    """

    def __init__(self) -> None:
        self.logprobs: bool | None = None
        self.top_logprobs = MOST_TOP_LOGPROBS
        self.fallbacks: Counter[str] = Counter()
        self._dropped: set[str] = set()
        self._new_token_limit = False
        self._refused_schemas: set[str] = set()
        self._accepted_schema = False

    def adapt(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The payload in the form that this server is known to accept."""
        adapted = {name: value for name, value in payload.items() if name not in self._dropped}
        if self._new_token_limit and "max_tokens" in adapted:
            adapted["max_completion_tokens"] = adapted.pop("max_tokens")
        if "top_logprobs" in adapted:
            adapted["top_logprobs"] = self.top_logprobs
        return adapted

    def learn(self, sent: Mapping[str, Any], error: str) -> bool:
        """Learn from a refusal (400 or 422) of an adapted payload.

        Returns:
            Whether the payload would now be adapted in another way, so that asking again makes sense.
        """
        before = self.adapt(sent)
        if "max_tokens" in sent and "max_completion_tokens" in error:
            self._new_token_limit = True
        if sent.get("top_logprobs", 0) >= self.top_logprobs > 1 and re.search(r"top_logprobs", error):
            limits = [int(number) for number in re.findall(r"\d+", error) if 0 < int(number) < self.top_logprobs]
            if limits:
                self.top_logprobs = max(limits)
        if REFUSAL.search(error):
            for name in DROPPABLE:
                if name in sent and re.search(rf"\b{name}\b", error):
                    self._dropped.add(name)
                    self.fallbacks[name] += 1
                    log.warning("The server does not accept the parameter %s; it is left out from now on.", name)
        return self.adapt(sent) != before

    def accepts_schema(self, schema: Mapping[str, Any]) -> bool:
        """Whether it is worth giving the server this schema."""
        if not self._accepted_schema and len(self._refused_schemas) >= REFUSED_SCHEMAS:
            return False
        return _digest(schema) not in self._refused_schemas

    def note_schema(self, schema: Mapping[str, Any], accepted: bool) -> None:
        """Remember how the server took a schema."""
        if accepted:
            self._accepted_schema = True
        else:
            self._refused_schemas.add(_digest(schema))


def _digest(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True)
