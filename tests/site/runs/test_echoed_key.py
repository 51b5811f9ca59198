"""A provider that says back the key it was sent: nobody reads it, wherever they look."""

import json

import pytest

from evaluator.contract import Outcome
from portal.accounts.vault import secret_delete, secret_put
from portal.core.secrets import Secret
from runs import bell
from runs.exports.jsonl import run_lines
from runs.scoring.fake import Verdict
from runs.services import masking
from runs.services.masking import masks_for
from tests.contract.provider import Answers, choice, stream
from tests.site.runs.driving import CONFIG, drive, kinds, trace

KEY = "sk-echo-4f9d2c7a1b"


def called(name: str, **arguments: str) -> dict[str, object]:
    return {"index": 0, "id": f"c-{name}", "function": {"name": name, "arguments": json.dumps(arguments)}}


@pytest.fixture
def echoing(settings, team, alice):
    """A provider that puts the key into its text, in two pieces, and into a command; and the config that asks it."""
    with Answers.running() as server:
        say = [choice(content=f"Your key is {KEY[:9]}"), choice(content=f"{KEY[9:]}, isn't it?")]
        act = choice("tool_calls", tool_calls=[called("run_command", command=f"echo {KEY}; date")])
        over = choice("tool_calls", tool_calls=[called("finish")])
        usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}}
        as_model = {"model": KEY}  # shown beside the score as what the provider says it ran
        server.next = [stream(*(each | as_model for each in (*say, act, usage))), stream(over | as_model, usage)]
        settings.MODEL_ALLOWED_HOSTS = {server.address}
        secret_put(team=team, name="MY_KEY", value=Secret(KEY), host=server.address, by=alice)
        facts = f"provider: openai, name: m, base_url: 'http://{server.address}/v1', api_key: 'secret:MY_KEY'"
        model = f"{{{facts}, prices: {{input: 1, output: 1}}}}"
        yield server, CONFIG.replace("{provider: scripted, name: reference}", model)


def test_an_echoed_key_is_read_nowhere(echoing, queue, node, scorer, monkeypatch, caplog, client, alice) -> None:
    """A2: not in events, exports, pages, the API, the terminal, the live text or the log."""
    server, config = echoing
    live = list[str]()
    monkeypatch.setattr("runs.services.session.DELTA_EVERY_S", 0)
    monkeypatch.setattr(bell, "delta", lambda _run, text: live.append(text))
    caplog.set_level("DEBUG")
    run = drive(queue(config))
    assert (run.status, server.got[0][1]["authorization"]) == ("finished", f"Bearer {KEY}")
    assert "observed" in kinds(run)
    client.force_login(alice)
    terminal = f"/runs/{run.pk}/terminal/?session=main"
    addresses = (run.get_absolute_url(), terminal, f"/api/v1/runs/{run.pk}/events/", f"/api/v1/runs/{run.pk}/")
    shown = [client.get(address).content.decode() for address in addresses]
    told = [json.dumps(trace(run)), "".join(run_lines(run)), *shown, "".join(live), caplog.text]
    assert [KEY in text for text in told] == [False] * 8
    assert "Your key is " in "".join(live)
    assert "Your key is " in told[1]


def spoken(run) -> str:
    return json.dumps([trace(run), [(each.message, each.log_tail, each.envelope) for each in run.evaluations.all()]])


def test_what_a_scorer_quotes_of_it_is_masked(echoing, queue, node, scorer) -> None:
    """A2"""
    _server, config = echoing
    scorer.answer = lambda request: Verdict(Outcome.INVALID, message=f"line 1: {KEY!r} is no id")
    run = drive(queue(config))
    assert run.evaluations.get().message.startswith("line 1: '••••")
    assert KEY not in spoken(run)


@pytest.mark.parametrize("change", ["replace", "delete"])
def test_what_a_key_was_stays_masked_in_every_process(echoing, queue, node, team, alice, change: str) -> None:
    """A2: by what the vault keeps, not by what a process remembers."""
    _server, config = echoing
    run = queue(config)
    if change == "replace":
        secret_put(team=team, name="MY_KEY", value=Secret("sk-another-one-77"), host="127.0.0.1", by=alice)
    else:
        secret_delete(team=team, secret_id=team.secrets.get().pk, by=alice)
    masking._opened.clear()
    masks = masks_for(run.pk)
    assert masks is not None
    assert KEY in masks.values
    assert ("sk-another-one-77" in masks.values) == (change == "replace")
