"""Room: runs.agent. Any OpenAI-compatible endpoint through the official SDK: streaming, tool calls, usage."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import openai

from gymnode.rendering import storable
from runs.agent.events import Usage
from runs.agent.llm.endpoint import Endpoint
from runs.agent.llm.sdk_errors import count_of, text_of
from runs.agent.llm.streamed import PartialReply, StreamedChat
from runs.agent.parsing import RawCall, wire_arguments, wire_name
from runs.agent.pricing import Pricing
from runs.agent.protocols import ChatMessage, ModelRequest, Role
from runs.agent.spec_parts import Model


class OpenAIChat(StreamedChat):
    """`LanguageModel` over chat completions."""

    REFUSED = ("content_filter", "the provider's content filter cut the reply off")

    def __init__(self, model: Model, endpoint: Endpoint, *, pricing: Pricing | None = None) -> None:
        super().__init__(model, endpoint, pricing=pricing)
        self.client = openai.OpenAI(**self.sdk_options())

    def opened(self, request: ModelRequest) -> AbstractContextManager[Iterable[Any]]:
        stream: AbstractContextManager[Iterable[Any]] = self.client.chat.completions.create(**self._body(request))
        return stream

    def begun(self) -> PartialReply:
        return Assembly()

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        model = self.model
        limit = "max_completion_tokens" if self.endpoint.host == "api.openai.com" else "max_tokens"
        body: dict[str, Any] = {
            "model": model.name,
            "messages": [wire_message(message) for message in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            limit: model.max_output_tokens,
            "extra_body": dict(model.extra_body),
        }
        if request.tools:
            body["tools"] = [{"type": "function", "function": tool.model_dump(mode="json")} for tool in request.tools]
        if model.temperature is not None:
            body["temperature"] = model.temperature
        if model.reasoning.effort is not None:
            body["reasoning_effort"] = model.reasoning.effort.value
        return body


def wire_message(message: ChatMessage) -> dict[str, Any]:
    """A message in the wire's form."""
    text = str(storable(message.whole))
    if message.role is Role.TOOL:
        return {"role": "tool", "tool_call_id": message.call_id, "content": text}
    if message.role is not Role.ASSISTANT:
        return {"role": message.role.value, "content": text}
    if not message.calls:
        return {"role": "assistant", "content": text or "(an empty reply)"}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": wire_name(call.name), "arguments": wire_arguments(call)},
        }
        for call in message.calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


@dataclass
class _CallParts:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass
class Assembly(PartialReply):
    """A reply under construction from the chunks of a stream."""

    calls: dict[int, _CallParts] = field(default_factory=dict)
    slots: dict[int, int] = field(default_factory=dict)
    usage: Usage | None = None

    def take(self, piece: Any, on_delta: Callable[[str], None]) -> None:
        """One chunk more."""
        self.id = self.id or text_of(getattr(piece, "id", ""))
        self.model = self.model or text_of(getattr(piece, "model", ""))
        self.usage = usage_of(getattr(piece, "usage", None)) or self.usage
        for choice in getattr(piece, "choices", None) or ():
            delta = getattr(choice, "delta", None)
            self.say(
                self.text, text_of(getattr(delta, "content", "")) or text_of(getattr(delta, "refusal", "")), on_delta
            )
            thought = text_of(getattr(delta, "reasoning_content", "")) or text_of(getattr(delta, "reasoning", ""))
            self.say(self.reasoning, thought, on_delta)
            for part in getattr(delta, "tool_calls", None) or ():
                self._call(part)
            self.finish = text_of(getattr(choice, "finish_reason", "")) or self.finish

    def _call(self, part: Any) -> None:
        """Parts of one call share an index; some endpoints give every call index 0 or none and differ by id."""
        given = getattr(part, "index", None)
        index = given if isinstance(given, int) else max(len(self.slots) - 1, 0)
        call_id = text_of(getattr(part, "id", ""))
        known = self.calls.get(self.slots.get(index, -1))
        if known is None or (call_id and known.id and call_id != known.id):
            known = _CallParts()
            self.slots[index] = len(self.calls)
            self.calls[len(self.calls)] = known
        function = getattr(part, "function", None)
        known.id = known.id or call_id
        known.name = known.name or text_of(getattr(function, "name", ""))
        arguments = text_of(getattr(function, "arguments", ""))
        known.arguments.append(arguments)
        self.size += len(arguments)

    def raw_calls(self) -> Iterable[RawCall]:
        """The calls, whole, in the order in which they began."""
        return [RawCall(call.id, call.name, "".join(call.arguments)) for call in self.calls.values()]

    def counted(self) -> Usage | None:
        return self.usage


def usage_of(usage: Any) -> Usage | None:
    """The provider's count, or None where it gave none that can be read."""
    read = count_of(usage, "prompt_tokens")
    if read is None:
        return None
    cached = count_of(getattr(usage, "prompt_tokens_details", None), "cached_tokens") or 0
    reasoning = count_of(getattr(usage, "completion_tokens_details", None), "reasoning_tokens") or 0
    output = count_of(usage, "completion_tokens") or 0
    return Usage(input=read, cached=min(cached, read), output=output, reasoning=min(reasoning, output))
