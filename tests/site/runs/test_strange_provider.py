"""Whole runs on a provider whose words can't be believed: none stands still, none loses its page."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from portal.accounts.vault import secret_put
from portal.core.secrets import Secret
from runs.models.run import Run
from tests.contract.provider import Answers, choice, failure, stream
from tests.site.runs.driving import CONFIG, drive, kinds, trace

KEY = 'sk-qu"ote\\back/4f9d2c7a1b+x=='
DEEP = "[" * 20_000


def called(name: str, arguments: str, index: int = 0) -> dict[str, Any]:
    return {"index": index, "id": f"c-{name}-{index}", "function": {"name": name, "arguments": arguments}}


OVER = choice("tool_calls", tool_calls=[called("finish", "{}")])


def usage(read: int, wrote: int) -> dict[str, Any]:
    return {"choices": [], "usage": {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": 1}}


@pytest.fixture
def provider(settings, team, alice) -> Iterator[Answers]:
    with Answers.running() as server:
        settings.MODEL_ALLOWED_HOSTS = {server.address}
        secret_put(team=team, name="MY_KEY", value=Secret(KEY), host=server.address, by=alice)
        yield server


@pytest.fixture
def played(provider: Answers, queue, node, scorer) -> Callable[..., Run]:
    """A run on these answers, driven to its end."""

    def play(*answers: tuple[int, dict[str, str], bytes], price: int = 1, more: str = "") -> Run:
        provider.next = [*answers]
        facts = f"provider: openai, name: m, base_url: 'http://{provider.address}/v1', api_key: 'secret:MY_KEY'"
        model = f"{{{facts}, prices: {{input: {price}, output: {price}}}{more}}}"
        return drive(queue(CONFIG.replace("{provider: scripted, name: reference}", model)))

    return play


@pytest.mark.parametrize(("read", "wrote"), [(10**30, 1), (2**63, 2**63), (2**62, 2**62), (-1, 5), (10**9 + 1, 0)])
def test_counts_beyond_belief_are_estimated(played, read, wrote) -> None:
    """T3, R5: nothing is lost over a figure that can't be stored, and the run isn't tried for ever."""
    run = played(stream(OVER, usage(read, wrote)))
    assert (run.status, run.steps) == ("finished", 1)
    assert 0 < run.tokens < 100_000


def test_money_beyond_the_column_stands_at_its_limit(played) -> None:
    """T3"""
    run = played(stream(OVER, usage(5, 10**9)), price=100_000)
    assert (run.status, str(run.usd)) == ("finished", "99999999.999999")


def test_a_stream_nested_without_end_is_an_outage_and_not_our_fault(played) -> None:
    """R16"""
    broken = (200, {}, f"data: {DEEP}\n\n".encode())
    run = played(broken, stream(OVER, usage(5, 5)))
    assert (run.status, run.engine_faults) == ("finished", 0)


ODD = [
    '{"thought":"\\ud83d"}',
    '{"\\udc00":1}',
    DEEP,
    '{"thought":NaN}',
    '{"thought":1e999}',
    '{"thought":[[[[[1]]]]]}',
]


def test_the_page_bears_whatever_arguments_hold(played, client, alice, provider) -> None:
    """T1, R13: and what goes back to the provider is strict JSON."""
    odd = [called("think", text, index) for index, text in enumerate(ODD)]
    run = played(stream(choice("tool_calls", tool_calls=odd), usage(5, 5)), stream(OVER, usage(5, 5)))
    client.force_login(alice)
    for address in (run.get_absolute_url(), f"{run.get_absolute_url()}steps/", f"/api/v1/runs/{run.pk}/events/"):
        assert client.get(address).status_code == 200, address
    (sent,) = (message["tool_calls"] for message in provider.got[1][0]["messages"] if message.get("tool_calls"))
    for call in sent:
        json.loads(call["function"]["arguments"], parse_constant=pytest.fail)


def test_a_reply_of_thousands_of_calls_is_cut(played) -> None:
    """V1"""
    flood = choice("stop", content='Action: think\nAction Input: {"thought": "x"}\n' * 5000)
    last = choice("stop", content="Action: finish\nAction Input: {}\n")
    run = played(stream(flood, usage(5, 5)), stream(last, usage(5, 5)), more=", tool_mode: text")
    assert run.status == "finished"
    seen = [body["text"] for kind, body in trace(run) if kind == "observed"]
    assert len(seen) == 66
    assert "A reply may hold 64 calls, this one held 5000" in seen[64]


def test_no_spelling_of_the_key_is_read_anywhere(played, client, alice, caplog) -> None:
    """A2: escaped in arguments, echoed by a refusal, in an error of the provider."""
    caplog.set_level(logging.DEBUG)
    spelt = "".join(f"\\u{ord(char):04x}" for char in KEY)
    calls = [called("think", json.dumps({"thought": KEY})), called("think", f'{{"{spelt}": "x"}}', 1)]
    calls += [called("fly", json.dumps({KEY: KEY}), 2), called("think", f"not JSON {KEY}", 3)]
    boom = failure(500, message=f"boom {KEY}")
    run = played(boom, stream(choice("tool_calls", tool_calls=calls), usage(5, 5)), stream(OVER, usage(5, 5)))
    assert kinds(run).count("observed") == 5
    client.force_login(alice)
    shown = [client.get(each).content.decode() for each in (run.get_absolute_url(), f"/api/v1/runs/{run.pk}/events/")]
    told = [json.dumps(trace(run)), json.dumps(trace(run), ensure_ascii=False), *shown, caplog.text]
    forms = (KEY, json.dumps(KEY)[1:-1], "4f9d2c7a1b", spelt)
    assert [form for form in forms for text in told if form in text] == []
