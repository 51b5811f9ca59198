"""The messages API: what goes over the wire and what comes back, against a provider that answers as it is told."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from runs.agent.events import Call
from runs.agent.llm.anthropic_chat import AnthropicChat
from runs.agent.llm.factory import ModelSite, model_for, secret_host
from runs.agent.llm.network import BoundSecret
from runs.agent.protocols import (
    AddressRefused,
    ChatMessage,
    ContentRefused,
    ContextOverflow,
    ModelRefused,
    ProviderDown,
    RateLimited,
    Role,
    StopReason,
    UnknownModel,
    WrongKey,
)
from runs.agent.spec import parse_spec
from tests.contract.llm_parts import TOOLS, asked, mute
from tests.contract.provider import Answers
from tests.pure.agent.memory import opened, played_out

START = {"id": "msg_1", "model": "claude-real-1", "usage": {"input_tokens": 10, "cache_read_input_tokens": 60}}
START["usage"] |= {"cache_creation_input_tokens": 30, "output_tokens": 1}
CONFIG = (
    "name: x\nmodel: {provider: anthropic, name: claude-sonnet-4, api_key: secret:K, base_url: 'http://ADDRESS'MORE}"
)


@pytest.fixture
def provider() -> Iterator[Answers]:
    with Answers.running() as server:
        yield server


def client(provider: Answers, more: str = "", *, allowed: bool = True) -> AnthropicChat:
    model = parse_spec(CONFIG.replace("ADDRESS", provider.address).replace("MORE", more)).model
    site = ModelSite((provider.address,) if allowed else ())
    made = model_for(model, site, secret=BoundSecret("sk-ant-x", provider.address), client_id="r1")
    assert isinstance(made, AnthropicChat)
    return made


def events(*middle: dict[str, Any], stop: str | None = "end_turn") -> tuple[int, dict[str, str], bytes]:
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 25}}
    every = [{"type": "message_start", "message": START}, *middle, *([end, {"type": "message_stop"}] if stop else [])]
    return 200, {}, "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in every).encode()


def block(index: int, **content: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: int, **content: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": content}


def say(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return block(0, type="text", text=""), delta(0, type="text_delta", text=text)


def use(index: int, call_id: str, name: str, *parts: str) -> list[dict[str, Any]]:
    opening = block(index, type="tool_use", id=call_id, name=name, input={})
    return [opening, *(delta(index, type="input_json_delta", partial_json=part) for part in parts)]


def test_a_stream_becomes_one_reply(provider: Answers):
    thought = [block(1, type="thinking", thinking=""), delta(1, type="thinking_delta", thinking="hm\0")]
    calls = [*use(2, "toolu_1", "run_command", '{"command"', ': "ls"}'), *use(3, "toolu_2", "eval")]
    provider.next = [events(*say("I look\ud800."), *thought, *calls, {"type": "ping"}, stop="tool_use")]
    seen: list[str] = []
    reply = client(provider).complete(asked(), seen.append)
    assert (reply.text, reply.reasoning, seen) == ("I look\ufffd.", "hm\u2400", ["I look\ufffd.", "hm\u2400"])
    assert [(c.id, c.name, c.arguments) for c in reply.calls] == [
        ("toolu_1", "run_command", '{"command": "ls"}'),
        ("toolu_2", "eval", "{}"),
    ]
    assert (reply.usage.input, reply.usage.cached, reply.usage.written, reply.usage.output) == (100, 60, 30, 25)
    assert (reply.model, reply.host, reply.finish_reason) == ("claude-real-1", provider.address, "tool_use")


def test_the_wire_has_results_as_blocks_and_marks_for_the_cache(provider: Answers):
    provider.next = [events(*say("x"))]
    call = Call(id="toolu_1", name="run_command", arguments='{"a":')
    request = asked(
        ChatMessage(Role.ASSISTANT, "", (call,)),
        ChatMessage(Role.TOOL, "[refused] no", call_id="toolu_1"),
        ChatMessage(Role.USER, "hurry", volatile="[status] Left: 1"),
    )
    more = ", temperature: 0.5, reasoning: {effort: low}, extra_body: {metadata: {user_id: u}}"
    client(provider, more).complete(request, mute)
    body, headers = provider.got[0]
    assert (headers["authorization"], headers["x-client-request-id"]) == ("Bearer sk-ant-x", "r1")
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"][0]["input"] == {"not_json": '{"a":'}
    kinds = [(part["type"], "cache_control" in part) for part in body["messages"][2]["content"]]
    assert kinds == [("tool_result", False), ("text", True), ("text", False)]
    assert (body["output_config"], body["metadata"]) == ({"effort": "low"}, {"user_id": "u"})
    assert body["temperature"] == 0.5
    assert body["tools"][0]["input_schema"] == TOOLS[0].parameters


def failure(status: int, kind: str, message: str = "no", **headers: str) -> tuple[int, dict[str, str], bytes]:
    data = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return status, {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}, data


BROKEN = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
FAILURES = [
    (failure(401, "authentication_error"), WrongKey),
    (failure(400, "invalid_request_error", "Your credit balance is too low"), WrongKey),
    (failure(404, "not_found_error"), UnknownModel),
    (failure(429, "rate_limit_error", **{"Retry-After": "9"}), RateLimited),
    (failure(529, "overloaded_error"), ProviderDown),
    (failure(413, "request_too_large"), ContextOverflow),
    (failure(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), ContextOverflow),
    (failure(400, "invalid_request_error", "temperature: range"), ModelRefused),
    (events(*say("I"), stop="refusal"), ContentRefused),
    (events(*say("half"), stop=None), ProviderDown),
    (events(*say("half"), BROKEN, stop=None), ProviderDown),
    ((200, {}, b"event: message_start\ndata: {nonsense\n\n"), ProviderDown),
]


@pytest.mark.parametrize(("answer", "error"), FAILURES, ids=range(len(FAILURES)))
def test_every_failure_has_its_meaning(provider: Answers, answer: Any, error: type[Exception]):
    provider.next = [answer]
    with pytest.raises(error) as raised:
        client(provider).complete(asked(), mute)
    assert type(raised.value) is error
    assert getattr(raised.value, "retry_after_s", None) in (None, 9)


def test_the_address_policy_holds_here_too(provider: Answers):
    with pytest.raises(AddressRefused):
        client(provider, allowed=False).complete(asked(), mute)
    model = parse_spec("name: x\nmodel: {provider: anthropic, name: m, api_key: secret:K}").model
    assert secret_host(model) == "api.anthropic.com"
    with pytest.raises(WrongKey):
        model_for(model, ModelSite(), secret=BoundSecret("sk-ant-x", "api.openai.com"))


def test_a_run_plays_over_this_wire(provider: Answers):
    provider.next = [
        events(*say("look"), *use(1, "toolu_1", "run_command", '{"command": "ls"}'), stop="tool_use"),
        events(*say("only words")),
        events(block(0, type="text", text=""), *use(1, "toolu_2", "finish"), stop="tool_use"),
    ]
    session = opened()
    with_prices = ", prices: {input: 1, output: 10, cached: 0.1}"
    model = client(provider, with_prices)
    assert played_out(model, session) is StopReason.FINISH
    model.close()
    assert Decimal(session.log[1].body["usd"]) == Decimal("0.000296")
    assert [message["role"] for message in provider.got[2][0]["messages"]] == ["user", "assistant"] * 2 + ["user"]
