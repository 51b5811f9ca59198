"""Room: runs.agent. Anthropic's messages API through the official SDK: streaming, tool use, prompt caching, errors by
meaning.

Caching is on: one mark behind tools and system, one behind the newest text that won't change. What changes with every
request (the status) stands in a block of its own behind the second mark.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import anthropic

from gymnode.rendering import storable
from runs.agent.events import Call, Usage
from runs.agent.llm.endpoint import Endpoint
from runs.agent.llm.sdk_errors import count_of, text_of
from runs.agent.llm.streamed import PartialReply, StreamedChat
from runs.agent.parsing import RawCall, wire_arguments, wire_name
from runs.agent.pricing import Pricing
from runs.agent.protocols import ChatMessage, ModelRequest, Role
from runs.agent.spec_parts import Model

CACHE = {"type": "ephemeral"}


class AnthropicChat(StreamedChat):
    """`LanguageModel` over the messages API."""

    REFUSED = ("refusal", "the model's safety system refused the request")

    def __init__(self, model: Model, endpoint: Endpoint, *, pricing: Pricing | None = None) -> None:
        super().__init__(model, endpoint, pricing=pricing)
        self.client = anthropic.Anthropic(**self.sdk_options())

    def opened(self, request: ModelRequest) -> AbstractContextManager[Iterable[Any]]:
        stream: AbstractContextManager[Iterable[Any]] = self.client.messages.create(**self._body(request))
        return stream

    def begun(self) -> PartialReply:
        return Building()

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        model = self.model
        system = [message for message in request.messages if message.role is Role.SYSTEM]
        body: dict[str, Any] = {
            "model": model.name,
            "max_tokens": model.max_output_tokens,
            "system": [{"type": "text", "text": str(storable(m.text)), "cache_control": CACHE} for m in system],
            "messages": wire_messages(message for message in request.messages if message.role is not Role.SYSTEM),
            "stream": True,
            "extra_body": dict(model.extra_body),
        }
        if model.temperature not in (None, 1.0):
            # The wire's own default is 1; the SDK has no parameter for it any more, as newer models refuse the field.
            body["extra_body"] = {"temperature": model.temperature, **body["extra_body"]}
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in request.tools
            ]
        if model.reasoning.effort is not None:
            body["output_config"] = {"effort": model.reasoning.effort.value}
        return body


def wire_messages(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """The conversation in the wire's form: neighbours of one role are one message, results blocks of the user."""
    wired: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if not wired or wired[-1]["role"] != role:
            wired.append({"role": role, "content": []})
        wired[-1]["content"] += _blocks(message)
    return wired


def _blocks(message: ChatMessage) -> list[dict[str, Any]]:
    text = str(storable(message.text))
    if message.role is Role.ASSISTANT:
        said = [] if message.calls and not text.strip() else [_said(text, "(an empty reply)")]
        return said + [_tool_use(call) for call in message.calls]
    block = _said(text, "(empty)")
    if message.role is Role.TOOL:
        block = {"type": "tool_result", "tool_use_id": message.call_id, "content": [block]}
    if not message.volatile:
        return [block]
    return [{**block, "cache_control": CACHE}, {"type": "text", "text": message.volatile}]


def _said(text: str, otherwise: str) -> dict[str, Any]:
    """A block of text; the wire refuses empty ones."""
    return {"type": "text", "text": text if text.strip() else otherwise}


def _tool_use(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": wire_name(call.name), "input": json.loads(wire_arguments(call))}


@dataclass
class Building(PartialReply):
    """A reply under construction from the events of a stream."""

    calls: dict[int, tuple[str, str, list[str]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def take(self, piece: Any, on_delta: Callable[[str], None]) -> None:
        """One event more; kinds that aren't known are passed over."""
        match getattr(piece, "type", ""):
            case "message_start":
                message = getattr(piece, "message", None)
                self.id, self.model = text_of(getattr(message, "id", "")), text_of(getattr(message, "model", ""))
                self._count(getattr(message, "usage", None))
            case "content_block_start":
                block = getattr(piece, "content_block", None)
                if getattr(block, "type", "") == "tool_use":
                    names = text_of(getattr(block, "id", "")), text_of(getattr(block, "name", ""))
                    self.calls[int(getattr(piece, "index", 0))] = (*names, [])
            case "content_block_delta":
                self._delta(getattr(piece, "delta", None), self.calls.get(getattr(piece, "index", -1)), on_delta)
            case "message_delta":
                self.finish = text_of(getattr(getattr(piece, "delta", None), "stop_reason", "")) or self.finish
                self._count(getattr(piece, "usage", None))

    def _delta(self, delta: Any, call: tuple[str, str, list[str]] | None, on_delta: Callable[[str], None]) -> None:
        self.say(self.text, text_of(getattr(delta, "text", "")), on_delta)
        self.say(self.reasoning, text_of(getattr(delta, "thinking", "")), on_delta)
        arguments = text_of(getattr(delta, "partial_json", ""))
        self.size += len(arguments)
        if call is not None:
            call[2].append(arguments)

    def _count(self, usage: Any) -> None:
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"):
            value = count_of(usage, name)
            if value is not None:
                self.counts[name] = value

    def counted(self) -> Usage | None:
        """The provider's count; its `input_tokens` leaves out what the cache read and wrote."""
        if "input_tokens" not in self.counts:
            return None
        cached = self.counts.get("cache_read_input_tokens", 0)
        written = self.counts.get("cache_creation_input_tokens", 0)
        whole = self.counts["input_tokens"] + cached + written
        return Usage(input=whole, cached=cached, written=written, output=self.counts.get("output_tokens", 0))

    def raw_calls(self) -> list[RawCall]:
        """The calls, whole, in the order of their blocks."""
        return [RawCall(call_id, name, "".join(parts)) for _, (call_id, name, parts) in sorted(self.calls.items())]
