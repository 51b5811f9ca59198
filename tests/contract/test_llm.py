"""The contract of the `LanguageModel` port, over the wire client against the scripted server, and over the scripted
model in process; then what only a wire can do wrong.
"""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runs.agent.llm.factory import ModelSite, model_for
from runs.agent.llm.scripted import ScriptedModel, library_of
from runs.agent.llm.scripted_server import ScriptedServer
from runs.agent.marks import SUMMARY_MARK
from runs.agent.protocols import (
    ChatMessage,
    LanguageModel,
    ProviderDown,
    RateLimited,
    Role,
    StopReason,
    UnknownModel,
)
from runs.agent.spec import parse_spec
from tests.contract.llm_parts import STEPS, after, asked, mute
from tests.pure.agent.memory import opened, played_out, suspend_once
from tests.pure.agent.models import book

Make = Callable[..., LanguageModel]
LIBRARY = library_of({("demo", "reference"): book(STEPS)})


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ScriptedServer(("127.0.0.1", 0), LIBRARY, ["reference"]) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(params=["wire", "in process"])
def make(request: pytest.FixtureRequest, address: str) -> Make:
    def wire(kind: str = "reference", client_id: str = "") -> LanguageModel:
        model = parse_spec(f"name: x\nmodel: {{provider: scripted, name: {kind}}}").model
        return model_for(model, ModelSite({address}, f"http://{address}/v1"), client_id=client_id)

    def in_process(kind: str = "reference", client_id: str = "") -> LanguageModel:
        return ScriptedModel(kind, LIBRARY, client_id=client_id)

    return wire if request.param == "wire" else in_process


def test_a_reply_has_text_calls_usage_model_and_price(make: Make):
    seen: list[str] = []
    reply = make().complete(asked(), seen.append)
    assert reply.text == 'I look. "quoted" — ünïcode 😀'
    assert "".join(seen) == reply.text
    assert [(c.id, c.name, c.index) for c in reply.calls] == [
        ("pb-0", "run_command", 0),
        ("pb-0c1", "list_sessions", 1),
    ]
    assert json.loads(reply.calls[0].arguments) == {"command": "ls — 😀"}
    assert (reply.model, reply.usd, reply.finish_reason) == ("scripted/reference", 0, "tool_calls")
    assert reply.usage.input > reply.usage.cached > 0
    assert not reply.usage.estimated


def test_the_same_request_gets_the_same_reply(make: Make):
    model = make()
    assert model.complete(asked(*after("pb-0")), mute) == model.complete(asked(*after("pb-0")), mute)


def test_a_reply_without_a_call_has_none(make: Make):
    reply = make().complete(asked(*after("pb-0c1")), mute)
    assert (reply.text, reply.calls, reply.finish_reason) == ("only words [pb-1]", (), "stop")


def test_a_rate_limit_says_how_long_to_wait_and_ends(make: Make):
    """R10"""
    model = make(client_id="run-1")
    words = ChatMessage(Role.ASSISTANT, "only words [pb-1]")
    for _ in range(2):
        with pytest.raises(RateLimited) as limited:
            model.complete(asked(words), mute)
        assert limited.value.retry_after_s == 2
    assert model.complete(asked(words), mute).text == "limited"


def test_faults_are_counted_per_client(make: Make):
    words = ChatMessage(Role.ASSISTANT, "only words [pb-1]")
    for client_id in ("a", "b"):
        with pytest.raises(RateLimited):
            make(client_id=client_id).complete(asked(words), mute)


def test_a_cut_stream_leaves_nothing_and_may_be_asked_again(make: Make):
    model = make(client_id="run-2")
    with pytest.raises(ProviderDown):
        model.complete(asked(*after("pb-2")), mute)
    assert model.complete(asked(*after("pb-2")), mute).text.startswith("a reply that is cut")


def test_a_provider_that_is_down_is_no_refusal(make: Make):
    model = make(client_id="run-3")
    with pytest.raises(ProviderDown, match="503") as down:
        model.complete(asked(*after("pb-3")), mute)
    assert down.value.retry_after_s == 1


def test_an_empty_reply_is_a_reply(make: Make):
    reply = make(client_id="run-4").complete(asked(*after("pb-4")), mute)
    assert (reply.text, reply.calls) == ("", ())


def test_broken_arguments_come_as_they_were_written(make: Make):
    """R12"""
    assert make().complete(asked(*after("pb-5")), mute).calls[0].arguments == '{"command": '


def test_an_unknown_model_is_final_and_says_what_there_is(make: Make):
    with pytest.raises(UnknownModel, match="it has: reference"):
        make(kind="nonsense").complete(asked(), mute)


def test_a_summary_prompt_gets_a_structured_summary(make: Make):
    wish = ChatMessage(Role.USER, f"{SUMMARY_MARK} Write it.")
    reply = make().complete(asked(*after("pb-0"), wish), mute)
    assert "## Next" in reply.text
    assert not reply.calls


def test_text_mode_gives_the_same_calls(make: Make):
    model = make()
    reply = model.complete(asked(tools=(), text=True), mute)
    assert [call.name for call in reply.calls] == ["run_command", "list_sessions"]
    assert "Action: run_command" in reply.text
    later = asked(
        ChatMessage(Role.ASSISTANT, reply.text), ChatMessage(Role.USER, "Observation: [ok] x"), tools=(), text=True
    )
    assert model.complete(later, mute).text == "only words [pb-1]"


def test_a_whole_run_plays_over_the_port(make: Make):
    model = make(client_id="run-5")
    session = opened(doings={"sleep": suspend_once()})
    assert _patient(model, session) is StopReason.FINISH
    assert len(session.performed) == 7


def _patient(model: LanguageModel, session: Any) -> StopReason:
    while True:
        try:
            return played_out(model, session)
        except (RateLimited, ProviderDown):
            continue
