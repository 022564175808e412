"""Servers with the manners of those that people use: what they refuse, ignore and answer, and in which form.

Each manner names what it was taken from. What they answer comes from :mod:`providers.knowing_model` and is the same for
all of them, so that whatever differs in the end was made by the manners.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from api_server import ApiServer, Request, schema_of
from providers.knowing_model import Answer, answer

Body = dict[str, Any]
Refusal = tuple[int, Any]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPENAI_PARAMETERS = _words(
    "model messages temperature top_p n stream stream_options stop max_tokens max_completion_tokens presence_penalty "
    "frequency_penalty logit_bias logprobs top_logprobs seed response_format tools tool_choice user metadata store "
    "service_tier parallel_tool_calls"
)


def tokens(text: str) -> list[str]:
    """The text in tokens: words in pieces of at most five letters, each with the space before it, and signs."""
    return re.findall(r"\s*\w{1,5}|\s*[^\w\s]|\s+$", text)


THOUGHTS = "The question is about the passages, so let us see what they say before we answer."


class Manner:
    """What all have in common; the methods are what can differ."""

    name = ""
    model = "gpt-4.1-mini"
    path = "/v1"
    gives_logprobs = True
    thinking = 0
    """Tokens thought before each answer, which count against the limit."""
    thought = ""
    """Field of the message in which the thoughts are told; their tokens then come first among the log-probabilities."""
    limits: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """Parameters that limit an answer."""
    most_top_logprobs = 20
    impossible = -9999.0
    """The log-probability of what cannot be."""
    lessons = 0
    """Refusals from which all of this can be learnt."""

    def error(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Refusal:
        """An error in OpenAI's form, which most have taken over."""
        return status, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        """Status and body of the error with which a request is refused, None where it is not."""
        return None

    def schema(self, body: Body) -> dict[str, Any] | None:
        """The schema under which is decoded."""
        return schema_of(body)

    def written(self, text: str, under_schema: bool) -> str:
        """What is written around an answer that follows a schema of the prompt."""
        return text

    def message(self, text: str) -> Body:
        """The message of an answer."""
        told = {self.thought: THOUGHTS} if self.thought else {}
        return {"role": "assistant", "content": text, **told}

    def usage(self, prompt: int, visible: int) -> Body:
        """The tokens of an answer."""
        completion = visible + self.thinking
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def token(self, text: str, logprob: float) -> Body:
        """A token with its log-probability."""
        return {"token": text, "logprob": max(logprob, self.impossible), "bytes": list(text.encode())}

    def extra(self) -> Body:
        """Further fields of an answer."""
        return {}

    def models(self) -> Any:
        """What ``GET models`` answers."""
        return {"object": "list", "data": [{"id": self.model, "object": "model", "created": 1, "owned_by": self.name}]}


STRICT_KEYWORDS = _words(
    "type properties required additionalProperties items enum const anyOf $ref $defs title description"
)
"""Keywords that strict structured output takes with every kind of model, Azure's among them."""


def strict_problem(schema: Any, place: tuple[str, ...] = ()) -> str | None:
    """Why strict structured output refuses a schema, in OpenAI's words; None where it does not."""
    where = f"In context={place}, "
    if not place and (schema.get("type") != "object" or "anyOf" in schema):
        return "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."
    if not {"type", "$ref", "anyOf"} & schema.keys():
        return f"{where}schema must have a 'type' key."
    for keyword in schema:
        if keyword not in STRICT_KEYWORDS:
            return f"{where}'{keyword}' is not permitted."
    kinds = schema.get("type", ())
    if kinds == "object" or "object" in kinds:
        if schema.get("additionalProperties") is not False:
            return f"{where}'additionalProperties' is required to be supplied and to be false."
        if set(schema.get("required", ())) != set(schema.get("properties", ())):
            return f"{where}'required' is required to be supplied and to be an array including every key in properties."
    if (kinds == "array" or "array" in kinds) and "items" not in schema:
        return f"{where}array schema missing items."
    inner = [(("properties", name), part) for name, part in schema.get("properties", {}).items()]
    inner += [(("$defs", name), part) for name, part in schema.get("$defs", {}).items()]
    inner += [(("items",), schema["items"])] if "items" in schema else []
    inner += [(("anyOf", str(number)), part) for number, part in enumerate(schema.get("anyOf", ()))]
    return next((found for step, part in inner if (found := strict_problem(part, (*place, *step)))), None)


class OpenAI(Manner):
    """Chat models of OpenAI that do not reason.

    Strict structured output takes a part of JSON Schema and refuses the rest with status 400: every node typed, every
    property required, no further properties, and keywords such as minLength "not permitted" (OpenAI's guide "Structured
    model outputs", section "Supported schemas"; jina-ai/node-DeepResearch issue 79). The keywords refused here are
    those that Microsoft's page of the same title lists as unsupported, which are the most. Unknown parameters are
    refused as "Unrecognized request argument supplied" (openai/openai-python issue 433).
    """

    name = "openai"
    lessons = 1

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        if unknown := sorted(body.keys() - OPENAI_PARAMETERS):
            return self.error(f"Unrecognized request argument supplied: {unknown[0]}")
        if body.get("top_logprobs", 0) > self.most_top_logprobs:
            message = "Invalid value for 'top_logprobs': must be less than or equal to 20."
            return self.error(message, param="top_logprobs")
        asked = body.get("response_format", {}).get("json_schema")
        problem = asked and asked.get("strict") and strict_problem(asked["schema"])
        if problem:
            message = f"Invalid schema for response_format '{asked['name']}': {problem}"
            return self.error(message, param="response_format")
        return None

    def message(self, text: str) -> Body:
        return {"role": "assistant", "content": text, "refusal": None, "annotations": []}


class Reasoning(OpenAI):
    """OpenAI's reasoning models.

    Log-probabilities: 403 "You are not allowed to request logprobs from this model", with no parameter named (met by
    many, for example huggingface/lighteval and the notes of public repositories on the gpt-5 family). ``max_tokens``:
    400 ``unsupported_parameter`` (fish2018/YPrompt issue 26). Temperature: 400 ``unsupported_value``, "Only the
    default (1) value is supported" (decolua/9router issue 560). ``stop`` and ``top_p`` are refused likewise. Tokens
    thought count against ``max_completion_tokens``, are told in ``completion_tokens_details``, and leave an empty
    answer with ``finish_reason`` "length" where they use it up (OpenAI's guide "Reasoning models").
    """

    name = "reasoning"
    model = "gpt-5-mini"
    gives_logprobs = False
    thinking = 700
    limits = ("max_completion_tokens",)
    lessons = 4

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        if body.get("logprobs"):
            return self.error("You are not allowed to request logprobs from this model.", status=403)
        if "max_tokens" in body:
            advice = "is not supported with this model. Use 'max_completion_tokens' instead."
            return self.error(
                f"Unsupported parameter: 'max_tokens' {advice}", param="max_tokens", code="unsupported_parameter"
            )
        for name in ("temperature", "top_p"):
            if body.get(name, 1) != 1:
                message = (
                    f"Unsupported value: '{name}' does not support {body[name]} with this model. Only the default (1) "
                    "value is supported."
                )
                return self.error(message, param=name, code="unsupported_value")
        if "stop" in body:
            message = "Unsupported parameter: 'stop' is not supported with this model."
            return self.error(message, param="stop", code="unsupported_parameter")
        return super().refusal({name: body[name] for name in body if name != "reasoning_effort"}, prompt_tokens)

    def usage(self, prompt: int, visible: int) -> Body:
        details = {"reasoning_tokens": self.thinking, "audio_tokens": 0}
        return {**super().usage(prompt, visible), "completion_tokens_details": details}


FILTERED = "pipe bomb"
"""Words that Azure's content filter does not let through."""


class Azure(OpenAI):
    """Azure OpenAI under its v1 address, which needs no ``api-version`` and takes a key as OpenAI does.

    https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle: the base URL is
    ``https://RESOURCE.openai.azure.com/openai/v1/``. (The older address, ``openai/deployments/NAME`` with a query
    ``api-version``, is none that a base URL can hold.) Answers carry the content filter's findings; a prompt that it
    does not let through gets status 400 with the code ``content_filter`` and an inner error
    ``ResponsibleAIPolicyViolation`` (same place, "Content filtering"), and an answer that it does not let through ends
    with ``finish_reason`` "content_filter".
    """

    name = "azure"
    model = "my-deployment"
    path = "/openai/v1"

    def filtered(self) -> Refusal:
        """What the content filter answers."""
        message = (
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please "
            "modify your prompt and retry."
        )
        inner = {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
        }
        error = {
            "message": message, "type": None, "param": "prompt", "code": "content_filter", "status": 400,
            "innererror": inner,
        }  # fmt: skip
        return 400, {"error": error}

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        if any(FILTERED in message["content"] for message in body["messages"]):
            return self.filtered()
        return super().refusal(body, prompt_tokens)

    def extra(self) -> Body:
        safe = {"violence": {"filtered": False, "severity": "safe"}}
        return {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": safe}]}


class Gemini(Manner):
    """Google's compatible endpoint of the Gemini API.

    An error is a list with one object, and every unknown parameter is refused by name: "Unknown name "seed": Cannot
    find field." (Vali-98/ChatterUI issue 227, SuzumiyaAkizuki/ComfyUI-NewBie-LLM-Formatter issue 3). The parameters it
    knows are those of https://ai.google.dev/gemini-api/docs/openai; log-probabilities are not among them. Schemas are
    the part of OpenAPI's that https://ai.google.dev/api/caching#Schema lists. Thoughts count against the limit and
    can leave nothing for the answer, which then has no content (stanford-crfm/helm pull request 3804,
    langchain-ai/langchain-google issue 1020); they are in the total of tokens alone.
    """

    name = "gemini"
    model = "gemini-2.5-flash"
    path = "/v1beta/openai"
    gives_logprobs = False
    thinking = 300
    lessons = 2
    PARAMETERS = _words(
        "model messages max_tokens max_completion_tokens temperature top_p n stop stream stream_options tools "
        "tool_choice response_format reasoning_effort extra_body"
    )
    SCHEMA = _words(
        "type format title description nullable enum maxItems minItems properties required minLength maxLength pattern "
        "anyOf propertyOrdering items minimum maximum additionalProperties $ref $defs"
    )

    def error(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Refusal:
        violations = [{"description": line} for line in message.splitlines()]
        details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]
        error = {"code": status, "message": message, "status": "INVALID_ARGUMENT", "details": details}
        return status, [{"error": error}]

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        unknown = [f'Unknown name "{name}": Cannot find field.' for name in sorted(body.keys() - self.PARAMETERS)]
        if schema := schema_of(body):
            unknown += [
                f"Unknown name \"{keyword}\" at 'generation_config.response_schema': Cannot find field."
                for keyword in sorted({word for node in nodes(schema) for word in node} - self.SCHEMA)
            ]
        if not unknown:
            return None
        return self.error("\n".join(f"Invalid JSON payload received. {one}" for one in unknown))

    def message(self, text: str) -> Body:
        return {"role": "assistant", "content": text} if text else {"role": "assistant"}

    def usage(self, prompt: int, visible: int) -> Body:
        total = prompt + visible + self.thinking
        return {"prompt_tokens": prompt, "completion_tokens": visible, "total_tokens": total}


class Anthropic(Manner):
    """Anthropic's compatible endpoint.

    https://platform.claude.com/docs/en/api/openai-sdk: ``response_format``, ``logprobs``, ``top_logprobs``, ``seed``
    and ``reasoning_effort`` are ignored, the temperature is at most 1, and of ``stop`` "all non-whitespace stop
    sequences work"; others are refused by the API behind it: "stop_sequences: each stop sequence must contain
    non-whitespace" (stanford-crfm/helm, RunExpander of Claude 3). Asked for JSON in words, the model puts it into a
    code block.
    """

    name = "anthropic"
    model = "claude-sonnet-4-5"
    gives_logprobs = False
    lessons = 1

    def error(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Refusal:
        kind = "invalid_request_error"
        return status, {"error": {"code": kind, "message": message, "type": kind, "param": None}}

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        if any(not stop.strip() for stop in stops(body)):
            return self.error("stop_sequences: each stop sequence must contain non-whitespace")
        return None

    def schema(self, body: Body) -> dict[str, Any] | None:
        return None

    def written(self, text: str, under_schema: bool) -> str:
        return f"```json\n{text}\n```" if under_schema else text


class Vllm(Manner):
    """vLLM with a model that reasons aloud and a short window.

    ``GET models`` tells ``max_model_len``; a prompt and limit that do not fit it together are refused with 400
    (``BadRequestError``, its code a number), as are more than 20 ``top_logprobs``
    (vllm/entrypoints/openai, vllm/sampling_params.py: "Requested sample logprobs of N, which is greater than max
    allowed: 20"). Unknown parameters are ignored, schemas of any kind decoded, thoughts told in ``reasoning_content``
    (https://docs.vllm.ai, "Reasoning outputs"), where the usage counts them in.
    """

    name = "vllm"
    model = "Qwen/Qwen3-8B"
    thought = "reasoning_content"
    thinking = len(tokens(THOUGHTS))
    window = 8192
    lessons = 1

    def error(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Refusal:
        return status, {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status}}

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        wanted = next((body[name] for name in self.limits if body.get(name)), 1)
        message = None
        if prompt_tokens + wanted > self.window:
            message = (
                f"'max_tokens' or 'max_completion_tokens' is too large: {wanted}. This model's maximum context length "
                f"is {self.window} tokens and your request has {prompt_tokens} input tokens ({wanted} > {self.window} "
                f"- {prompt_tokens})."
            )
        elif body.get("top_logprobs", 0) > self.most_top_logprobs:
            message = f"Requested sample logprobs of {body['top_logprobs']}, which is greater than max allowed: 20"
        return None if message is None else self.error(message)

    def models(self) -> Any:
        [model] = super().models()["data"]
        return {"object": "list", "data": [{**model, "root": self.model, "max_model_len": self.window}]}


class Ollama(Manner):
    """Ollama before it gave log-probabilities.

    openai/openai.go in its sources: the request knows ``max_tokens`` and not ``max_completion_tokens``, and neither
    ``logprobs`` nor ``top_logprobs``; what it does not know is ignored. Thoughts are told in ``reasoning``. Schemas go
    to llama.cpp as grammars, see there.
    """

    name = "ollama"
    model = "llama3.2:3b"
    gives_logprobs = False
    limits = ("max_tokens",)

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        if (schema := schema_of(body)) and not grammar(schema):
            return self.error("Failed to initialize samplers: failed to parse grammar")
        return None


def grammar(schema: dict[str, Any]) -> bool:
    """Whether llama.cpp makes a grammar of a schema; repetitions of 2000 and more were too many for it until 2026."""
    return all(node.get(bound, 0) < 2000 for node in nodes(schema) for bound in ("maxLength", "maxItems", "minLength"))


class LlamaCpp(Manner):
    """llama.cpp's server.

    tools/server/tests/unit/test_chat_completion.py and README.md in its sources: a schema becomes a grammar, and one
    that cannot gets status 400 (``MAX_REPETITION_THRESHOLD`` in src/llama-grammar.cpp); the name of the model is taken
    from the server and not from the request. Log-probabilities are in OpenAI's form with an ``id`` more, and what is
    impossible has the lowest number of 32 bits, about -3.4e38. ``GET models`` tells ``meta`` with ``n_ctx_train``.
    """

    name = "llama.cpp"
    model = "whatever"
    impossible = -3.4028234663852886e38

    def error(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> Refusal:
        return status, {"error": {"code": status, "message": message, "type": "invalid_request_error"}}

    def refusal(self, body: Body, prompt_tokens: int) -> Refusal | None:
        if (schema := schema_of(body)) and not grammar(schema):
            return self.error("Failed to initialize samplers: failed to parse grammar")
        return None

    def token(self, text: str, logprob: float) -> Body:
        return {"id": len(text), **super().token(text, logprob)}

    def extra(self) -> Body:
        return {"model": "qwen3-8b-q4_k_m.gguf", "timings": {"predicted_per_second": 31.4}}

    def models(self) -> Any:
        meta = {"n_vocab": 151936, "n_ctx_train": 40960, "n_params": 8_190_735_360, "size": 5_019_900_000}
        data = {"id": "qwen3-8b-q4_k_m.gguf", "object": "model", "created": 1, "owned_by": "llamacpp", "meta": meta}
        return {"object": "list", "data": [data]}


MANNERS = {
    manner.name: manner for manner in (OpenAI, Reasoning, Azure, Gemini, Anthropic, Vllm, Ollama, LlamaCpp)
}  # fmt: skip


def nodes(schema: Any) -> Iterable[dict[str, Any]]:
    """Every schema within a schema, itself first."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    for part in [*inner, *([schema["items"]] if "items" in schema else [])]:
        yield from nodes(part)


def stops(body: Body) -> list[str]:
    """The stop sequences of a request."""
    given = body.get("stop") or []
    return [given] if isinstance(given, str) else given


def told_schema(content: str) -> dict[str, Any] | None:
    """The schema that stands in a prompt, if one does."""
    for match in re.finditer(r"\{", content):
        try:
            found, _ = json.JSONDecoder().raw_decode(content, match.start())
        except ValueError:
            continue
        if isinstance(found, dict) and ("properties" in found or found.get("type") == "array"):
            return found
    return None


class ProviderServer(ApiServer):
    """A server with the manners of a provider."""

    def __init__(self, manner: Manner) -> None:
        super().__init__()
        self.manner = manner
        self.path = manner.path
        self.refused: list[Refusal] = []
        self.emptied: list[Body] = []
        """Requests whose limit left nothing for the answer."""
        self.cut: list[Body] = []
        """Requests whose limit cut the answer."""

    def error(self, request: Request) -> Refusal | None:
        refused = self.manner.refusal(request.body, len(tokens(request.content)))
        if refused is not None:
            self.refused.append(refused)
        return refused

    def completion(self, request: Request) -> Body:
        manner, body = self.manner, request.body
        schema = manner.schema(body)
        told = schema or told_schema(request.content)
        said = answer(request.content, told)
        text = manner.written(said.text, told is not None and schema is None)
        for stop in stops(body):
            text = text.split(stop)[0]
        pieces = tokens(text)
        limit = next((body[name] for name in manner.limits if body.get(name)), None)
        room = len(pieces) if limit is None else max(0, limit - manner.thinking)
        finish = "stop"
        if room < len(pieces):
            finish = "length"
            # With log-probabilities what counts stands in the first place; a chat that the assistant has begun tries
            # whether the server goes on.
            if not body.get("logprobs") and body["messages"][-1]["role"] != "assistant":
                (self.cut if room else self.emptied).append(body)
            pieces = pieces[:room]
        choice: Body = {"index": 0, "message": manner.message("".join(pieces)), "finish_reason": finish}
        if body.get("logprobs") and manner.gives_logprobs:
            choice["logprobs"] = {"content": self._logprobs(said, pieces, body.get("top_logprobs", 0))}
        return {
            "id": f"chatcmpl-{request.prompt[:12]}",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [choice],
            "usage": manner.usage(len(tokens(request.content)), len(pieces)),
            **manner.extra(),
        }

    def other_route(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> Refusal:
        if (method, path) == ("GET", f"{self.path}/models"):
            return 200, self.manner.models()
        return super().other_route(method, path, headers, raw)

    def _logprobs(self, said: Answer, pieces: list[str], listed: int) -> list[Body]:
        thoughts = tokens(THOUGHTS) if self.manner.thought else []
        found = [{**self.manner.token(piece, -0.1), "top_logprobs": [self.manner.token(piece, -0.1)]}
                 for piece in thoughts]  # fmt: skip
        for place, piece in enumerate(pieces):
            likely = (said.first_place() if place == 0 else []) or [(piece, math.log(0.9)), ("\n", -math.inf)]
            top = [self.manner.token(text, logprob) for text, logprob in likely[:listed]]
            found.append({**self.manner.token(piece, likely[0][1]), "top_logprobs": top})
        return found
