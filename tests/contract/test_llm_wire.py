"""What only a wire can do wrong: the client against a provider that answers as it is told, and against addresses it
must not reach.
"""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from runs.agent.events import Call
from runs.agent.llm.endpoint import Endpoint
from runs.agent.llm.factory import ModelSite, model_for, secret_host
from runs.agent.llm.network import BoundSecret
from runs.agent.llm.openai_chat import OpenAIChat
from runs.agent.protocols import (
    AddressRefused,
    ChatMessage,
    ContentRefused,
    ContextOverflow,
    ModelRefused,
    ProviderDown,
    RateLimited,
    Role,
    UnknownModel,
    WrongKey,
)
from runs.agent.spec import parse_spec
from tests.contract.llm_parts import asked, mute
from tests.contract.provider import Answers, choice, failure, stream


def wire(url: str, *, allowed: tuple[str, ...] = (), secret: BoundSecret | None = None, more: str = "") -> OpenAIChat:
    spec = parse_spec(f"name: x\nmodel: {{provider: openai, name: m, base_url: '{url}', api_key: secret:K{more}}}")
    return OpenAIChat(spec.model, Endpoint(url, secret, allowed, read_timeout_s=1.0))


@pytest.fixture
def provider() -> Iterator[Answers]:
    with Answers.running() as server:
        yield server


FAILURES = [
    (failure(401), WrongKey, "wrong_key"),
    (failure(403), WrongKey, "wrong_key"),
    (failure(429, "insufficient_quota"), WrongKey, "no_credit"),
    (failure(429, "", "You exceeded your current quota, please check your plan"), WrongKey, "no_credit"),
    (failure(429, "rate_limit_exceeded", "Add a payment method: https://x.example/billing"), RateLimited, None),
    (failure(429, "", "Too many requests. See https://x.example/account/billing"), RateLimited, None),
    (failure(404, "model_not_found"), UnknownModel, "unknown_model"),
    (failure(400, "context_length_exceeded"), ContextOverflow, None),
    (failure(400, "", "This model's maximum context length is 8192 tokens"), ContextOverflow, None),
    (failure(400, "content_policy_violation"), ContentRefused, "content_refused"),
    (failure(400, "", "temperature is not supported"), ModelRefused, "request_refused"),
    (failure(500), ProviderDown, None),
    (failure(502), ProviderDown, None),
    (failure(307, Location="http://169.254.169.254/"), AddressRefused, "address_moved"),
    (failure(302), AddressRefused, "address_moved"),
    (stream(choice("content_filter", content="I")), ContentRefused, "content_refused"),
    (stream(choice(content="half"), done=False), ProviderDown, None),
    ((200, {}, b"data: {nonsense\n\n"), ProviderDown, None),
    ((200, {}, b'data: {"error": {"message": "overloaded", "code": 529}}\n\n'), ProviderDown, None),
    ((200, {}, b"\xff\xfe\x00"), ProviderDown, None),
    ((200, {}, b'data: {"id": "r", "choices": 5}\n\n'), ProviderDown, None),
    ((200, {}, b'data: {"id": "r", "choices": [{"delta": {"tool_calls": true}}]}\n\n'), ProviderDown, None),
    ((0, {}, b""), ProviderDown, None),
]


@pytest.mark.parametrize(("answer", "error", "code"), FAILURES, ids=range(len(FAILURES)))
def test_every_failure_of_a_provider_has_its_meaning(
    provider: Answers, answer: Any, error: type[Exception], code: str | None
):
    provider.next = [answer]
    with pytest.raises(error) as raised:
        wire(f"http://{provider.address}/v1", allowed=(provider.address,)).complete(asked(), mute)
    assert type(raised.value) is error
    assert getattr(raised.value, "code", None) == code
    assert len(provider.got) == 1


@pytest.mark.parametrize(
    ("headers", "wait"), [({"Retry-After": "7"}, 7), ({"retry-after-ms": "1500"}, 1.5), ({}, None)]
)
def test_retry_after_reaches_the_caller(provider: Answers, headers: dict[str, str], wait: float | None):
    """R10"""
    provider.next = [failure(429, **headers)]
    with pytest.raises(RateLimited) as limited:
        wire(f"http://{provider.address}/v1", allowed=(provider.address,)).complete(asked(), mute)
    assert limited.value.retry_after_s == wait


def test_a_server_that_is_never_silent_and_never_says_anything_is_left(provider: Answers):
    """R11: comments keep a connection alive, and would keep a worker for as long as the server likes."""

    def comments() -> Iterator[bytes]:
        while True:
            yield b": still at work\n\n"
            time.sleep(0.1)

    provider.next = [(200, {}, comments())]
    chat = wire(f"http://{provider.address}/v1", allowed=(provider.address,))
    chat.endpoint = replace(chat.endpoint, reply_timeout_s=1.0)
    with pytest.raises(ProviderDown):
        chat.complete(asked(), mute)


def call(index: int | None, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


def test_a_stream_in_pieces_becomes_one_reply(provider: Answers):
    usage = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}
    usage |= {"prompt_tokens_details": {"cached_tokens": 30}, "completion_tokens_details": {"reasoning_tokens": 4}}
    provider.next = [
        stream(
            choice(role="assistant", content=None, reasoning_content="hm\0"),
            choice(content="a\ud83d"),
            choice(content="\ude00\udc00", tool_calls=[call(0, "x", "run_command", '{"command"')]),
            choice(tool_calls=[call(0, None, None, ':"ls"}'), call(1, "x", "list_sessions", "")]),
            choice(tool_calls=[call(1, "y", "eval", "{}"), call(None, None, None, "")]),
            choice("tool_calls"),
            {"choices": [], "usage": usage},
        )
    ]
    reply = wire(f"http://{provider.address}/v1", allowed=(provider.address,)).complete(asked(), mute)
    assert (reply.text, reply.reasoning) == ("a😀\ufffd", "hm\u2400")
    assert [(c.name, c.arguments) for c in reply.calls] == [
        ("run_command", '{"command":"ls"}'),
        ("list_sessions", "{}"),
        ("eval", "{}"),
    ]
    assert len({c.id for c in reply.calls}) == 3
    assert (reply.usage.input, reply.usage.cached, reply.usage.output, reply.usage.reasoning) == (50, 30, 9, 4)
    assert (reply.model, reply.host, reply.usd) == ("real-model-1", provider.address, None)


def test_the_request_on_the_wire_is_what_the_config_says(provider: Answers):
    provider.next = [stream(choice("stop", content="x"))]
    key = BoundSecret("sk-test", provider.address)
    more = ", temperature: 0.5, reasoning: {effort: low}, extra_body: {provider: {order: [a]}}"
    model = wire(f"http://{provider.address}/v1", allowed=(provider.address,), secret=key, more=more)
    broken = Call(id="c", name="bad name\ud800", arguments='{"a":')
    reply = model.complete(
        asked(ChatMessage(Role.ASSISTANT, "", (broken,)), ChatMessage(Role.TOOL, "[refused] no", call_id="c")), mute
    )
    body, headers = provider.got[0]
    assert headers["authorization"] == "Bearer sk-test"
    assert (body["temperature"], body["reasoning_effort"], body["provider"]) == (0.5, "low", {"order": ["a"]})
    assert body["messages"][1]["content"] == "Task: demo\n\nDo it.\n\n[status] Left: 1"
    function = body["messages"][2]["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("bad_name_", {"not_json": '{"a":'})
    assert reply.usage.estimated


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/v1", "http://localhost:{port}/v1", "http://[::ffff:127.0.0.1]:{port}/v1"]
)
def test_private_addresses_are_refused_at_connect_time(provider: Answers, url: str):
    model = wire(url.format(port=provider.server_address[1]))
    with pytest.raises(AddressRefused, match="MODEL_ALLOWED_HOSTS"):
        model.complete(asked(), mute)
    assert provider.got == []


def test_a_name_that_turns_private_is_refused(provider: Answers, monkeypatch: pytest.MonkeyPatch):
    """The name is judged by the address it has at connect time, whatever it had before."""
    port = int(provider.server_address[1])
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: answer)
    with pytest.raises(AddressRefused):
        wire(f"http://models.example:{port}/v1").complete(asked(), mute)
    assert provider.got == []


def test_proxies_of_the_environment_are_not_used(provider: Answers, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", f"http://{provider.address}")
    monkeypatch.setenv("ALL_PROXY", f"http://{provider.address}")
    with pytest.raises(AddressRefused):
        wire("http://10.1.2.3/v1").complete(asked(), mute)
    assert provider.got == []


def test_nothing_of_the_operator_s_environment_reaches_a_stranger_s_endpoint(provider: Answers, monkeypatch: Any):
    """The SDKs read keys and headers from the environment of their process."""
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "operators-own")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "X-Mine: operators-own")
    for kind in ("openai", "anthropic"):
        config = f"name: x\nmodel: {{provider: {kind}, name: m, base_url: 'http://{provider.address}/v1'}}"
        provider.next = [failure(500)]
        with pytest.raises(ProviderDown):
            model_for(parse_spec(config).model, ModelSite((provider.address,))).complete(asked(), mute)
    assert len(provider.got) == 2
    assert "operators-own" not in str(provider.got)


def test_a_refused_connection_is_an_outage(provider: Answers):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ProviderDown, match="no connection"):
            wire(f"http://{where}/v1", allowed=(where,)).complete(asked(), mute)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["https://new.example.org/v1?k=secret", "https://u:secret@new.example.org/v1"])
def test_a_redirect_is_refused_with_the_address_that_should_be_asked(provider: Answers, status: int, location: str):
    for kind in ("openai", "anthropic"):
        config = f"name: x\nmodel: {{provider: {kind}, name: m, base_url: 'http://{provider.address}/v1'}}"
        provider.next = [failure(status, Location=location)]
        with pytest.raises(AddressRefused, match=r"put the final address into `model\.base_url`") as refused:
            model_for(parse_spec(config).model, ModelSite((provider.address,))).complete(asked(), mute)
        assert (refused.value.code, refused.value.facts) == ("address_moved", {"goal": "https://new.example.org"})
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("location", ["https://[::1", "ftp://h/", "http://h:99999/", "\xff"])
def test_a_redirect_to_nowhere_is_no_outage(provider: Answers, location: str):
    provider.next = [failure(307, Location=location)]
    with pytest.raises(AddressRefused) as refused:
        wire(f"http://{provider.address}/v1", allowed=(provider.address,)).complete(asked(), mute)
    assert refused.value.code == "address_moved"


@pytest.mark.parametrize("key", ["sk-é", "密钥", "sk\nX-Y: 1", "sk-x\n", " sk-x", "sk\u200b"])
def test_a_key_that_no_request_can_carry_is_a_wrong_key_at_once(key: str):
    """R16: not an outage that is waited out for hours."""
    with pytest.raises(WrongKey, match="store the key again") as wrong:
        wire("https://models.example/v1", secret=BoundSecret(key, "models.example"))
    assert wrong.value.code == "wrong_key"
    assert key not in str(wrong.value)


@pytest.mark.parametrize(
    "url", ["http://999.1.1.1/v1", "http://a..b/v1", "http://[::1/v1", "h/v1", "http://a:99999/v1"]
)
def test_a_text_that_is_no_address_is_refused_and_no_outage(url: str):
    """Configs of older releases were checked less."""
    model = parse_spec("name: x\nmodel: {provider: openai, name: m, api_key: secret:K}").model
    with pytest.raises(AddressRefused) as refused:
        model_for(model.model_copy(update={"base_url": url}), ModelSite())
    assert refused.value.code == "address_broken"


@pytest.mark.parametrize("body", [{"a": float("nan")}, {"a": "\ud800"}])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_what_can_not_be_written_is_the_config_s_fault_and_no_outage(provider: Answers, kind: str, body: Any):
    config = f"name: x\nmodel: {{provider: {kind}, name: m, base_url: 'http://{provider.address}/v1'}}"
    model = parse_spec(config).model.model_copy(update={"extra_body": body})
    with pytest.raises(ModelRefused) as refused:
        model_for(model, ModelSite((provider.address,))).complete(asked(), mute)
    assert (refused.value.code, provider.got) == ("request_unsendable", [])


def test_a_header_that_the_wire_refuses_is_no_outage(provider: Answers):
    model = parse_spec("name: x\nmodel: {provider: openai, name: m, api_key: secret:K}").model
    endpoint = Endpoint(f"http://{provider.address}/v1", None, (provider.address,), client_id="a\r\nX: y")
    with pytest.raises(ModelRefused) as refused:
        OpenAIChat(model, endpoint).complete(asked(), mute)
    assert (refused.value.code, provider.got) == ("request_unsendable", [])


def test_a_secret_goes_to_its_own_host_only():
    with pytest.raises(WrongKey, match=r"bound to api\.openai\.com"):
        wire("https://models.example/v1", secret=BoundSecret("sk-test", "api.openai.com"))
    assert "sk-test" not in repr(BoundSecret("sk-test", "api.openai.com"))
    assert (
        secret_host(parse_spec("name: x\nmodel: {provider: openai, name: m, api_key: secret:K}").model)
        == "api.openai.com"
    )


def test_a_site_without_a_scripted_model_says_so():
    model = parse_spec("name: x\nmodel: {provider: scripted, name: reference}").model
    with pytest.raises(ModelRefused, match="no scripted model"):
        model_for(model, ModelSite())
