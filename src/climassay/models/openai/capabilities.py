"""What one model behind one server can do: found out by asking, kept in the workspace, learnt anew when contradicted.

Servers that call themselves compatible differ in what they take: log-probabilities, JSON schemas, seeds, the name of
the token limit. The user is asked for none of this, and no list of models is consulted. It is learnt from error replies
(:func:`rejected_parameters`) and from answers: a schema that was ignored, tokens that were thought and not shown.
"""

import hashlib
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from climassay.errors import InputError
from climassay.io import write_file
from climassay.models.contract import CHARACTERS_PER_TOKEN
from climassay.models.openai.replies import ErrorReply, Reply
from climassay.settings import filled

log = logging.getLogger("climassay.models")

Logprobs = Literal["given", "refused", "ignored"]
SchemaSupport = Literal["strict", "loose", "refused", "ignored"]
"""``strict``: decodes under a schema. ``loose``: answers in JSON that may break it. ``ignored``: answers in prose."""

FILE_NAME = "model_capabilities.json"
"""File of the workspace: what is known, by base URL and model."""
REFUSAL_STATUSES = frozenset({400, 403, 404, 405, 422, 501})
"""Statuses under which servers refuse single parameters. Some of them mean other things as well."""
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprobs", "log_probs", "log probabilities", "responseLogprobs", "response_logprobs"),
    "top_logprobs": ("top_logprobs",),
    "response_format": (
        *("response_format", "response format", "json_schema", "json schema", "response_schema", "responseSchema"),
        *("structured output", "structured outputs", "guided_json", "output_format", "grammar", "Invalid schema"),
    ),
    "max_tokens": ("max_tokens", "max_output_tokens", "maxOutputTokens"),
    "max_completion_tokens": ("max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "seed": ("seed",),
    "stop": ("stop", "stop_sequences", "stopSequences", "stop sequence"),
    "reasoning_effort": ("reasoning_effort", "reasoning effort", "reasoning", "thinking"),
    "stream": ("stream", "streaming"),
    "stream_options": ("stream_options", "streamOptions", "include_usage"),
    "continue_final_message": ("continue_final_message",),
    "add_generation_prompt": ("add_generation_prompt",),
}
"""How servers name the parameters that may be refused, in the fields and words of their errors."""
_TURN_FLAGS = ("continue_final_message", "add_generation_prompt")
"""Parameters with which vLLM and SGLang continue the assistant's message; others do so without, or not at all."""
_DROPPABLE = ("seed", "temperature", "top_p", "stop", "reasoning_effort", "stream", "stream_options", *_TURN_FLAGS)
"""Parameters without which a model answers in its own way, or all at once."""
_REFUSAL = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra|only the default|"
    r"invalid|must (?:be|contain|not)|not (?:available|enabled|implemented|accepted|compatible)|cannot|can't|disabled|"
    r"deprecated|forbidden|extra_forbidden|no longer|unavailable|does not accept|incompatible|ignored",
    re.IGNORECASE,
)
_SCHEMA_FAULT = re.compile(
    r"invalid (?:json )?schema|\bschema (?:is (?:not valid|invalid|too)|has|contains|produces|for)\b|in context=|"
    r"too (?:complex|many|deep)",
    re.IGNORECASE,
)
"""Words about the content of one schema, after which others may still be taken."""
_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})
_WINDOW = re.compile(
    r"(?:maximum context length(?: is| of)?|context (?:window|size|length)(?: is| of)?:?)\D{0,20}(\d+)"
)
_PROMPT_TOKENS = re.compile(r"(\d+) (?:tokens )?(?:in|from|of) the (?:messages|prompt|input)|(\d+) input tokens")
_OUTPUT_LIMIT = re.compile(r"(?:at most|less than or equal to|[<>]=?|maximum(?: value)?(?: of| is)?:?)\D{0,20}(\d+)")
_TOO_LITTLE = re.compile(r"higher max_|output limit was reached", re.IGNORECASE)
"""Words about thoughts that have used up the limit of an answer."""
_TEMPLATE_TOKENS = 64
"""Tokens that the server's chat template may add to a prompt, rather too many."""
_LEAST_ROOM = 256
"""Limit of an answer where a prompt is thought to fill the window: the server counts better."""
MOST_TOP_LOGPROBS = 20
_REFUSED_SCHEMAS = 3
"""After so many different schemas refused and none accepted, no schema is tried any more."""
FIRST_ALLOWANCE = 8192
"""Tokens for thinking on top of the answer's, once a model is seen to think; costs nothing unless it is used."""
MOST_ALLOWANCE = 131_072
CONTRADICTIONS = 3
"""Requests in a row that must contradict what earlier answers have shown before it is given up."""
_LOCK_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is known of one model behind one server; None and empty where nothing is."""

    logprobs: Logprobs | None = None
    logprobs_status: int | None = None
    """HTTP status of the refusal of log-probabilities."""
    top_logprobs: int = MOST_TOP_LOGPROBS
    """How many likely tokens it lists at a place."""
    continues: bool | None = None
    """Whether it goes on with an assistant's message that ends the chat."""
    counts_cached: bool | None = None
    """Whether it counts the tokens of a prompt that it has in its cache; known only if a prompt was seen to come up
    short."""
    schema: SchemaSupport | None = None
    refused_schemas: tuple[str, ...] = ()
    """Digests of schemas that were refused for themselves."""
    token_limit: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The name under which it takes the limit of an answer."""
    taken: tuple[str, ...] = ()
    """Parameters with which a request was answered."""
    dropped: tuple[str, ...] = ()
    """Parameters that it refuses, and that are left out."""
    thinks: bool | None = None
    """Whether it was seen to think before it answers: tokens that are counted and no part of the answer."""
    allowance: int = 0
    """Tokens added to the limit of an answer for what is thought before it."""
    window: int | None = None
    """Maximum number of tokens of prompt and answer together, where the server tells."""
    most_output: int | None = None
    """Highest limit of an answer that it takes, where it has refused a higher one."""
    learnt_on: str = ""
    """Day of the last thing learnt, as ``2026-01-31`` (UTC)."""

    def offers_schema(self, schema: Mapping[str, Any]) -> bool:
        """Whether it is worth giving the server this schema."""
        return self.schema not in ("refused", "ignored") and schema_digest(schema) not in self.refused_schemas


class LearnedCapabilities:
    """The capabilities of one model as a client uses and extends them. Used from one event loop only.

    Args:
        base_url: Address of the server, normalised.
        model: Name of the model there.
        folder: The workspace in which it is kept; None keeps it for this client only.
        provider: Name of the server in the user's configuration, under which it is kept in place of the address, so
            that it is not lost when the server moves.

    Attributes:
        known: What is known by now.
        fallbacks: How often something had to be done in another way, by what the server lacks.
    """

    def __init__(self, base_url: str, model: str, folder: Path | None = None, provider: str | None = None) -> None:
        self._server = base_url if provider is None else f"{provider}:"
        self._model = model
        self._file = None if folder is None else folder / FILE_NAME
        self.known = Capabilities()
        entry: Any = None if self._file is None else self._entry(_read(self._file))
        names = {one.name for one in fields(Capabilities)}
        # What does not fit, as a newer version may have written, is learnt again.
        with suppress(InputError, TypeError):
            self.known = filled(Capabilities, {name: entry[name] for name in entry or () if name in names}, "", "")
        self.fallbacks: Counter[str] = Counter()
        self._contradictions: Counter[str] = Counter()

    def adapt(
        self,
        payload: Mapping[str, Any],
        without: Collection[str] = (),
        *,
        thoughts: bool = True,
        room: float = math.inf,
    ) -> dict[str, Any]:
        """The payload in the form that this server is known to accept.

        Args:
            payload: What is to be asked; its ``max_tokens`` is the limit of the answer alone.
            without: Parameters left out for a trial.
            thoughts: Whether the limit gets an allowance for thinking.
            room: Highest limit that this payload may have.
        """
        known = self.known
        out = {*known.dropped, *without, "max_tokens"}
        if known.thinks:
            out.add("stop")  # Servers stop thoughts, too; answers are cut here.
        if "stream" in out:
            out.add("stream_options")
        adapted = {name: value for name, value in payload.items() if name not in out}
        renamed = known.token_limit == "max_completion_tokens" or "max_tokens" in without
        name = "max_completion_tokens" if renamed else "max_tokens"
        if name not in without:
            # Only models that think refuse the old name, so there is room for thoughts from the first answer on.
            allowance = (known.allowance or (FIRST_ALLOWANCE if renamed else 0)) if thoughts else 0
            limits = [
                payload["max_tokens"] + allowance,
                room,
                math.inf if known.most_output is None else known.most_output,
            ]
            if known.window is not None:
                prompt = sum(len(message["content"]) for message in payload["messages"]) / CHARACTERS_PER_TOKEN
                limits.append(max(known.window - prompt - _TEMPLATE_TOKENS, _LEAST_ROOM))
            adapted[name] = int(min(limits))
        if "top_logprobs" in adapted:
            adapted["top_logprobs"] = known.top_logprobs
        return adapted

    def note_refusal(self, sent: Mapping[str, Any], refusal: ErrorReply, tried: set[str]) -> bool:
        """Take from a refusal what can be done about it.

        Args:
            sent: The payload that was refused.
            refusal: What the server said.
            tried: Parameters left out of this request so far; the new ones are added. That they are refused is
                certain, and kept, only when the request has been answered without them.

        Returns:
            Whether the request would now be sent in another way.
        """
        names = rejected_parameters(sent, refusal)
        limit_name = next((name for name in _LIMITS if name in sent), None)
        if "top_logprobs" in names:
            told = [int(number) for number in re.findall(r"\d+", refusal.message)]
            if fitting := [number for number in told if 0 < number < sent["top_logprobs"]]:
                self._learn(top_logprobs=max(fitting))
                return True
        if limit_name is not None and names & _LIMITS:
            told = [int(number) for number in _OUTPUT_LIMIT.findall(refusal.message)]
            if fitting := [number for number in told if 0 < number < sent[limit_name]]:
                self._learn(most_output=max(fitting))
                return True
            if limit_name == "max_completion_tokens" and "max_tokens" not in tried:
                self._learn(token_limit="max_tokens")
        if limit_name is not None and _TOO_LITTLE.search(refusal.message):
            allowance = min(MOST_ALLOWANCE, max(FIRST_ALLOWANCE, 4 * self.known.allowance))
            if sent[limit_name] < allowance:
                self._learn(allowance=allowance)
                return True
        new = (names & {*_DROPPABLE, limit_name} & sent.keys()) - tried
        if not new.isdisjoint(_TURN_FLAGS):
            new |= sent.keys() & set(_TURN_FLAGS)  # neither makes sense without the other
        tried |= new
        return bool(new)

    def room_after(self, sent: Mapping[str, Any], refusal: ErrorReply) -> int | None:
        """Tokens left for an answer beside a prompt that fits the window alone; None where the refusal is another."""
        window, prompt = _WINDOW.search(refusal.message), _PROMPT_TOKENS.search(refusal.message)
        if window is None:
            return None
        self.note_window(int(window[1]))
        if prompt is None:
            return None
        room = int(window[1]) - int(prompt[1] or prompt[2])
        limit = next((sent[name] for name in _LIMITS if name in sent), 0)
        return room if 0 < room < limit else None

    def note_answer(self, sent: Mapping[str, Any], reply: Reply, tried: Collection[str]) -> None:
        """Learn from an answer: what was sent is taken, what had to be left out is refused, and whether it thinks."""
        known = self.known
        changes: dict[str, Any] = {}
        for name in sent:
            self._contradictions.pop(name, None)
        refused = set(tried) & set(_DROPPABLE) - set(known.dropped)
        if dropped := {name for name in refused if self._believed(name, name in known.taken)}:
            for name in sorted(dropped - set(_TURN_FLAGS)):
                self.fallbacks[name] += 1
                log.warning("The server does not accept the parameter %s; it is left out from now on.", name)
            changes["dropped"] = tuple(sorted({*known.dropped, *dropped}))
        taken = {*known.taken, *(name for name in (*_DROPPABLE, *_LIMITS) if name in sent)} - dropped
        if taken != set(known.taken):
            changes["taken"] = tuple(sorted(taken))
        limit_name = next((name for name in _LIMITS if name in sent), known.token_limit)
        if limit_name != known.token_limit:
            changes["token_limit"] = limit_name
        if reply.reasoning_tokens and not known.thinks:
            changes["thinks"] = True
        elif known.thinks is None and reply.text:
            changes["thinks"] = False
        if reply.reasoning_tokens or changes.get("token_limit") == "max_completion_tokens":
            # Four times the longest thoughts seen, as a power of two so that it is seldom written anew.
            wanted = max(FIRST_ALLOWANCE, 1 << max(0, 4 * reply.reasoning_tokens - 1).bit_length())
            if min(wanted, MOST_ALLOWANCE) > known.allowance:
                changes["allowance"] = min(wanted, MOST_ALLOWANCE)
        if changes:
            self._learn(**changes)

    def note_uncounted_stream(self) -> None:
        """Stream no more from a server that does not say how many tokens a stream took, since they are counted."""
        if "stream" not in self.known.dropped:
            self.fallbacks["stream"] += 1
            log.warning("The server does not count the tokens of a streamed answer; answers come whole from now on.")
            self._learn(dropped=tuple(sorted({*self.known.dropped, "stream"})))

    def give_more_room(self, sent: Mapping[str, Any], asked: int | None, reply: Reply) -> bool:
        """Raise the allowance after an answer that thinking has cut off; whether asking again makes sense.

        ``asked`` is the limit of the answer alone; None where there was none.
        """
        limit = next((sent[name] for name in _LIMITS if name in sent), None)
        if limit is None or asked is None or reply.finish_reason != "length":
            return False
        if reply.text and reply.completion_tokens - reply.reasoning_tokens >= asked:
            return False  # The answer has had all the room that was asked for.
        if (reply.text and not reply.reasoning_tokens) or limit == self.known.most_output:
            return False
        before = limit - asked
        allowance = min(MOST_ALLOWANCE, max(FIRST_ALLOWANCE, 4 * before))
        if allowance <= before:
            return False
        if allowance > self.known.allowance:
            self._learn(allowance=allowance, **({"thinks": True} if reply.reasoning_tokens else {}))
        return True

    def note_logprobs(self, status: Logprobs, http_status: int | None = None) -> None:
        """Remember how a request for log-probabilities was taken; see :data:`CONTRADICTIONS` where they were given."""
        if status == "given":
            self._contradictions.pop("logprobs", None)
        elif not self._believed("logprobs", self.known.logprobs == "given"):
            return
        if (self.known.logprobs, self.known.logprobs_status) != (status, http_status):
            self._learn(logprobs=status, logprobs_status=http_status)

    def note_continuation(self, continues: bool) -> None:
        """Remember whether the server goes on with an assistant's message; see :data:`CONTRADICTIONS` for a change."""
        if continues == self.known.continues:
            self._contradictions.pop("continues", None)
        elif self._believed("continues", self.known.continues is not None):
            self._learn(continues=continues)

    def note_cached_count(self, counted: bool) -> None:
        """Remember whether the server counts the tokens of a prompt that it has in its cache."""
        self._learn(counts_cached=counted)

    def note_schema(self, status: SchemaSupport, schema: Mapping[str, Any]) -> None:
        """Remember what became of a schema; a server that was seen to be looser stays so.

        See :data:`CONTRADICTIONS` for one that was seen to be stricter.
        """
        known, order = self.known.schema, get_args(SchemaSupport)
        if known is not None and order.index(status) <= order.index(known):
            self._contradictions.pop("response_format", None)
            self._contradictions.pop(schema_digest(schema), None)
        elif self._believed("response_format", known is not None):
            self._learn(schema=status)

    def note_refused_schema(self, schema: Mapping[str, Any], refusal: ErrorReply) -> None:
        """Remember that a schema was refused: this one where its content is to blame, else every one."""
        digest = schema_digest(schema)
        digests = tuple(sorted({*self.known.refused_schemas, digest}))
        content = _SCHEMA_FAULT.search(refusal.message) is not None
        general = not content and _names("response_format", refusal)
        if general or (self.known.schema is None and len(digests) >= _REFUSED_SCHEMAS):
            self.note_schema("refused", schema)
        elif digests != self.known.refused_schemas and self._believed(digest, self.known.schema and not content):
            self._learn(refused_schemas=digests)

    def note_window(self, window: int | None) -> None:
        """Remember the context window that the server tells."""
        if window is not None and window != self.known.window:
            self._learn(window=window)

    def forget(self) -> None:
        """Know nothing of the model any more, here and in the workspace."""
        self.known = Capabilities()
        self._keep(None)

    def _entry(self, everything: Mapping[str, dict[str, Any]]) -> Any:
        """Return what the workspace has of the model."""
        return everything.get(self._server, {}).get(self._model)

    def _believed(self, name: str, shown: object) -> bool:
        """Whether a contradiction is taken as it is: at once, or the last of several where the contrary was shown."""
        self._contradictions[name] += 1
        return not shown or self._contradictions[name] >= CONTRADICTIONS

    def _learn(self, **changes: Any) -> None:
        changes["learnt_on"] = datetime.now(UTC).date().isoformat()
        self.known = replace(self.known, **changes)
        self._keep(changes)

    def _keep(self, changes: Mapping[str, Any] | None) -> None:
        """Write what was learnt, or forget it; what other processes have learnt meanwhile stays as it is."""
        if self._file is None:
            return
        from filelock import FileLock, Timeout

        # What cannot be kept, for example in a workspace that may only be read, is learnt again.
        with suppress(OSError, Timeout), FileLock(f"{self._file}.lock", timeout=_LOCK_SECONDS):
            everything = _read(self._file)
            kept = self._entry(everything)
            models = everything.setdefault(self._server, {})
            models[self._model] = {} if changes is None else {**(kept if isinstance(kept, dict) else {}), **changes}
            if not models[self._model]:
                del models[self._model]
            everything = {url: entries for url, entries in everything.items() if entries}
            write_file(self._file, json.dumps(everything, indent=1, sort_keys=True, ensure_ascii=False).encode())


def rejected_parameters(sent: Mapping[str, Any], refusal: ErrorReply) -> frozenset[str]:
    """The parameters of a request that a refusal is about.

    Args:
        sent: The request's body.
        refusal: What the server said: the parameter that it names, else those that its words name beside a word of
            refusal.

    Returns:
        Names of :data:`SPELLINGS`; empty where the refusal is about something else, such as the key or the prompt.
    """
    candidates = [name for name in SPELLINGS if name in sent]
    if refusal.parameter:
        head = re.split(r"[.\[]", refusal.parameter.removeprefix("body.").removeprefix("generation_config."))[0]
        named = {name for name in candidates if head.lower() in {each.lower() for each in SPELLINGS[name]}}
        if named:
            return frozenset(named)
    said = f"{refusal.message} {refusal.code.replace('invalid', '')}"  # which is the kind of nearly every error
    if not _REFUSAL.search(said) and not _OUTPUT_LIMIT.search(refusal.message):
        return frozenset()
    return frozenset(name for name in candidates if _names(name, refusal))


def schema_digest(schema: Mapping[str, Any]) -> str:
    """A short name for a schema that was refused."""
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()[:16]


def _names(parameter: str, refusal: ErrorReply) -> bool:
    said = f"{refusal.message} {refusal.parameter}"
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", said, re.IGNORECASE) for one in SPELLINGS[parameter])


def _read(file: Path) -> dict[str, dict[str, Any]]:
    """Everything that is kept; nothing where the file is missing or no such file."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {url: dict(models) for url, models in data.items() if isinstance(models, dict)}
