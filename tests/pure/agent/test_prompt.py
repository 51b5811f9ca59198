"""What the model reads, in which order."""

import hashlib
from datetime import timedelta
from decimal import Decimal

import pytest

from gymnode.observations import Outcome
from runs.agent.events import Call, Event, Kind, MessageSent, NodeBrief, Observed, Replied
from runs.agent.prompt import duration, first_prompt, paired, request, status_text
from runs.agent.protocols import Role, RunningJob, RunStatus
from runs.agent.replay import AgentState, Message, replay
from runs.agent.spec import parse_spec
from runs.agent.system_prompt import DEFAULT_SYSTEM, PROMPT_VERSION
from tests.pure.agent.memory import BRIEF, NOW, SPEC, opened, played_out
from tests.pure.agent.models import ListedModel, said, scripted

NODES = (
    NodeBrief(name="n1", role="main", cpus=8, memory_gb=32, gpus=2, gpu_memory_gb=80, network="none", labels=("h100",)),
    NodeBrief(name="n2", role="judge", network="proxy", workspace="/srv/run-7"),
)
BUSY = RunStatus(NOW, 3725, 12, 2, Decimal("3.456"), 900, jobs=(RunningJob("train", "n1", "python train.py", 4000),))


def test_the_default_prompt_is_pinned_to_its_version():
    """A change of wording is a change of the agent: raise PROMPT_VERSION, then pin the new text here."""
    pinned = {"1": "2ea328e4cccfa058"}
    assert hashlib.sha256(DEFAULT_SYSTEM.encode()).hexdigest()[:16] == pinned[PROMPT_VERSION]


@pytest.mark.parametrize(
    "words",
    [
        "Reason before each action",
        "whatever honest method",
        "Evaluations are few",
        "named session",
        "don't kill",
        "who holds the GPUs",
        "fastest library",
        "Keep the best outputs safe",
    ],
)
def test_the_default_prompt_says_what_it_must(words: str):
    assert words in DEFAULT_SYSTEM


def test_the_first_prompt_lists_task_nodes_outputs_and_limits():
    given = first_prompt(
        BRIEF.model_copy(update={"nodes": NODES, "usd": Decimal(50), "tokens": 10**6, "disk_gb": 2}), SPEC
    )
    assert given.task.startswith("Task: demo\n\nMake a file.")
    assert (
        "- n1 (role main): 8 CPUs, 32 GB memory, 2 GPUs of 80 GB, network: none, workspace /workspace, h100"
        in given.task
    )
    assert "- n2 (role judge): no GPU, network: proxy, workspace /srv/run-7" in given.task
    for line in (
        "data/outputs/a.csv",
        "1 hours of working time",
        "2 GB on the disk of each machine",
        "300 steps",
        "$50",
        "1000000 tokens",
        "3 evaluations",
    ):
        assert line in given.task
    assert given.tools[0].name == "create_session"
    assert (given.prompt_version, given.outputs) == (PROMPT_VERSION, ("data/outputs/a.csv",))


def test_the_hint_stands_in_the_task_only_when_it_is_given_upfront():
    brief = BRIEF.model_copy(update={"hint": "Look at authors."})
    upfront = parse_spec("name: x\nhint: upfront\nmodel: {provider: scripted, name: r}")
    assert "## Hint\nLook at authors." in first_prompt(brief, upfront).task
    assert "Look at authors" not in first_prompt(brief, SPEC).task


def test_a_custom_prompt_takes_the_place_of_the_default_one():
    spec = parse_spec("name: x\nprompt: {system: Be brief., extra: And kind.}\nmodel: {provider: scripted, name: r}")
    assert first_prompt(BRIEF, spec).system == "Be brief.\n\nAnd kind."
    assert spec.prompt.custom


def test_a_request_begins_with_the_whole_of_the_one_before():
    """Provider caches work on equal beginnings: only the status at the end of the newest message changes."""
    model = ListedModel([said("a", ("list_sessions", "{}")), said("words"), said("b", ("finish", "{}"))])
    session = opened(now=BUSY)
    played_out(model, session)
    for earlier, later in zip(model.asked, model.asked[1:], strict=False):
        assert earlier.tools == later.tools
        stable = [(m.role, m.text, m.calls, m.call_id) for m in earlier.messages]
        assert [(m.role, m.text, m.calls, m.call_id) for m in later.messages][: len(stable)] == stable
    for asked in model.asked:
        assert [bool(message.volatile) for message in asked.messages].index(True) == len(asked.messages) - 1


def test_the_status_names_what_is_left_and_what_runs():
    text = status_text(BUSY, AgentState(best_score=Decimal("41.5")))
    assert "1 h 02 min of working time, 12 steps, 2 evaluations, $3.46, 900 tokens" in text
    assert "train on n1: `python train.py` for 1 h 06 min" in text
    assert "Best score so far: 41.5." in text
    assert status_text(RunStatus(NOW), AgentState()) == "[status] Left: no limit.\nRunning jobs: none."
    assert [duration(s) for s in (8.9, 119, 720, -5)] == ["8 s", "119 s", "12 min", "0 s"]


def test_every_call_is_followed_by_its_result():
    """R13: results out of order, missing ones, messages between, results without a call."""
    calls = (Call(id="a", name="eval"), Call(id="b", name="eval", index=1), Call(id="c", name="eval", index=2))
    log = [
        Message(seq=1, role=Role.TOOL, text="of a call that was cut away", call_id="z"),
        Message(seq=2, role=Role.ASSISTANT, text="x", calls=calls),
        Message(seq=3, role=Role.USER, text="hurry"),
        Message(seq=4, role=Role.TOOL, text="2", call_id="b"),
        Message(seq=5, role=Role.TOOL, text="1", call_id="a"),
        Message(seq=6, role=Role.TOOL, text="again", call_id="a"),
    ]
    shape = [(m.role, m.call_id or m.text[:8]) for m in paired(log)]
    assert shape == [
        ("user", "of a cal"),
        ("assistant", "x"),
        ("tool", "a"),
        ("tool", "b"),
        ("tool", "c"),
        ("user", "hurry"),
        ("user", "again"),
    ]
    assert paired(log)[4].text.startswith("[broken] No result")


def test_ids_that_a_provider_uses_again_are_told_apart_by_turn():
    def turn(seq: int) -> list[Event]:
        reply = Replied(calls=(Call(id="call_0", name="eval"),))
        seen = Observed(call_id="call_0", action_id="x", name="eval", outcome=Outcome.OK, text=f"result {seq}")
        at = NOW + timedelta(seconds=seq)
        return [Event(seq, at, Kind.REPLIED, reply.stored()), Event(seq + 1, at, Kind.OBSERVED, seen.stored())]

    state = replay([*turn(1), *turn(3), Event(5, NOW, Kind.MESSAGE_SENT, MessageSent(text="hi").stored())])
    texts = [message.text for message in request(state, RunStatus(NOW), SPEC).messages]
    assert texts[1::2] == ["[ok] result 1", "[ok] result 3"]
    assert texts[-1].endswith("hi")


def test_text_mode_needs_no_tools_on_the_wire():
    spec = parse_spec("name: x\nmodel: {provider: scripted, name: reference, tool_mode: text}")
    session = opened(spec)
    model = ListedModel(
        [said("Thought: a\nAction: list_sessions", ("list_sessions", "{}")), said("b", ("finish", "{}"))]
    )
    played_out(model, session, spec)
    asked = model.asked[1]
    assert asked.text_tools
    assert not asked.tools
    assert [m.role for m in asked.messages] == ["system", "user", "assistant", "user"]
    assert asked.messages[-1].text.startswith("Observation: [ok] ")
    assert "- run_command: " in asked.messages[0].text


def test_a_run_in_text_mode_plays_to_its_end():
    spec = parse_spec("name: x\nmodel: {provider: scripted, name: reference, tool_mode: text}")
    session = opened(spec)
    steps = (
        "\n  - {say: a, calls: [{list_sessions: {}}, {run_command: {command: ls}}]}\n  - {say: b, call: {finish: {}}}\n"
    )
    played_out(scripted(steps), session, spec)
    assert session.performed == ["r1.2.0", "r1.2.1", "r1.7.0"]
