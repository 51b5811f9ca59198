"""The context: counting, cutting, summaries, and what happens when they fail."""

from decimal import Decimal

import pytest

from gymnode.observations import Outcome
from runs.agent.compaction import CAPS, compact, engine_facts
from runs.agent.context import compaction_due, context_tokens, cut_seq, estimate, message_tokens
from runs.agent.events import Compacted, EvaluationScored, Event, Kind, Observed, Replied, TaskGiven, Usage
from runs.agent.marks import SUMMARY_MARK
from runs.agent.protocols import (
    AgentError,
    ContentRefused,
    ContextOverflow,
    RateLimited,
    Role,
    RunningJob,
    RunStatus,
    StopReason,
    WrongKey,
)
from runs.agent.replay import AgentState, replay
from runs.agent.spec import parse_spec
from tests.pure.agent.memory import NOW, kinds, opened, played_out
from tests.pure.agent.models import ListedModel, said, scripted

SPEC = parse_spec(
    "name: x\nmodel: {provider: scripted, name: reference, max_output_tokens: 1000}\n"
    "context: {window_tokens: 10000, compact_at_tokens: 7500}"
)
SUMMARY = "## Goal and plan\nBeat it.\n## Next\nGo on with what was begun, as planned."
STATUS = RunStatus(
    NOW, 60, 5, 1, jobs=(RunningJob("train", "n1", "python train.py", 30),), idle_sessions=("main on n1",)
)


def turns(count: int, size: int) -> list[Event]:
    """`count` turns of one call each, `size` characters per observation, with a plausible count by the provider."""
    about = {"task_id": "demo", "task_version": 1, "engine_version": "t"}
    first = TaskGiven(system="s", task="Task: demo", outputs=("o.csv",), **about)
    log = [Event(1, NOW, Kind.TASK_GIVEN, first.stored())]
    for n in range(count):
        reply = said(f"thought {n}\nmore", ("list_sessions", "{}"), tokens=(100 + size // 4) * n)
        seen = Observed(call_id="c0", action_id=f"a{n}", name="list_sessions", outcome=Outcome.OK, text="x" * size)
        for kind, body in ((Kind.REPLIED, reply), (Kind.OBSERVED, seen)):
            log.append(Event(len(log) + 1, NOW, kind, body.stored()))
    return log


def after(log: list[Event], body: Compacted) -> AgentState:
    return replay([*log, Event(len(log) + 1, NOW, Kind.COMPACTED, body.stored())])


def test_tokens_are_the_provider_s_count_and_an_estimate_of_what_came_since():
    state = replay(turns(3, 360))
    assert context_tokens(state) == 380 + 10 + message_tokens(state.messages[-1])
    assert 100 < message_tokens(state.messages[-1]) < 120


def test_without_a_count_everything_is_estimated():
    log = turns(1, 3600)
    log[1] = Event(2, NOW, Kind.REPLIED, Replied(usage=Usage(input=5, estimated=True)).stored())
    assert context_tokens(replay(log)) > 1000
    assert context_tokens(AgentState()) == estimate("")


def test_other_alphabets_count_more():
    assert estimate("数据" * 100) == 201
    assert estimate("a" * 360) == 101


def test_whole_turns_are_kept_and_always_the_last():
    state = replay(turns(10, 1000))
    cut = cut_seq(state, 0.5)
    assert next(m for m in state.messages if m.seq == cut).role is Role.ASSISTANT
    assert cut in (12, 14)
    assert cut_seq(state, 0.0) == state.messages[-2].seq
    assert cut_seq(replay(turns(0, 0)), 0.5) == 2


def test_the_older_half_becomes_a_summary_with_the_engine_s_facts():
    log = turns(10, 3600)
    model = ListedModel([Replied(text=SUMMARY, usage=Usage(input=9000, output=50), usd=Decimal("0.5"))])
    body = compact(replay(log), SPEC, model, STATUS)
    state = after(log, body)
    assert body.by == "model"
    assert body.tokens_after < body.tokens_before
    assert state.summary.startswith(SUMMARY)
    for fact in (
        "o.csv",
        "Idle sessions: main on n1",
        "train on n1: `python train.py`",
        "5 steps",
        "1 evaluations",
        "Evaluations used: 0",
    ):
        assert fact in state.summary
    assert (state.usage.input, state.usd) == (9000 + sum(1000 * n for n in range(10)), None)
    assert SUMMARY_MARK in model.asked[0].messages[-1].text
    assert not compaction_due(state, SPEC)


def test_facts_name_the_best_result_and_the_open_file():
    score = EvaluationScored(evaluation=1, ordinal=1, score="41.5", left=2).stored()
    seen = Observed(call_id="", name="open_file", outcome=Outcome.OK, cursor={"path": "a.py", "line": 3}).stored()
    log = turns(1, 10)
    state = replay([*log, Event(4, NOW, Kind.EVALUATION_SCORED, score), Event(5, NOW, Kind.OBSERVED, seen)])
    facts = engine_facts(state, STATUS)
    assert "Evaluations used: 1; last score: 41.5" in facts
    assert "open file: a.py" in facts


@pytest.mark.parametrize(
    "replies",
    [
        [Replied(text=""), Replied(text="short")],
        [Replied(text=SUMMARY, calls=said("", ("eval", "{}")).calls), Replied(text=" ")],
        [ContentRefused("no")],
        [ContextOverflow("long"), ContextOverflow("long")],
    ],
)
def test_a_failing_summary_is_tried_again_and_then_replaced_by_an_outline(replies: list[Replied | Exception]):
    model = ListedModel(replies)
    body = compact(replay(turns(10, 3600)), SPEC, model, STATUS)
    assert body.by == "trim"
    assert "- thought 0\n- thought 1" in body.summary
    assert "o.csv" in body.summary
    assert model.replies == []


def test_a_second_try_may_succeed_and_both_are_paid():
    first = Replied(text="", usage=Usage(input=7), usd=Decimal(1))
    replies = [first, Replied(text=SUMMARY, usage=Usage(input=8), usd=Decimal(2))]
    body = compact(replay(turns(10, 3600)), SPEC, ListedModel(replies), STATUS)
    assert (body.by, body.usage.input, body.usd) == ("model", 15, Decimal(3))


def test_a_summary_prompt_that_is_too_long_is_cut_and_asked_again():
    model = ListedModel([ContextOverflow("long"), Replied(text=SUMMARY)])
    compact(replay(turns(10, 36_000)), SPEC, model, STATUS)
    sizes = [sum(len(message.text) for message in asked.messages) for asked in model.asked]
    assert sizes[1] < sizes[0] / 5


@pytest.mark.parametrize("error", [RateLimited("wait"), WrongKey("no")])
def test_errors_that_a_summary_can_t_help_reach_the_caller(error: Exception):
    with pytest.raises(type(error)):
        compact(replay(turns(10, 3600)), SPEC, ListedModel([error]), STATUS)


def test_overflow_after_overflow_cuts_harder_and_ends_with_the_numbers():
    log = turns(10, 50_000)
    for level in range(len(CAPS)):
        body = compact(replay(log), SPEC, ListedModel([Replied(text=SUMMARY)]), STATUS)
        log.append(Event(len(log) + 1, NOW, Kind.COMPACTED, body.stored()))
        state = replay(log)
        assert state.compactions_in_row == level + 1
        assert all(len(message.text) <= (CAPS[level] or 10**9) + 100 for message in state.messages)
    assert len(state.messages) == 2
    assert "characters left out to save context" in state.messages[-1].text
    with pytest.raises(AgentError, match="10000 tokens of window and 1000 of output"):
        compact(state, SPEC, ListedModel([]), STATUS)


def test_long_arguments_are_cut_too():
    log = turns(1, 10)
    long = said("x", ("create_file", '{"content": "' + "y" * 50_000 + '"}'))
    log[1] = Event(2, NOW, Kind.REPLIED, long.stored())
    state = after(log, Compacted(summary="s", kept_from_seq=2, tokens_before=1, tokens_after=1, text_cap=2000))
    assert len(state.messages[0].calls[0].arguments) < 2100


def test_the_loop_compacts_when_the_threshold_is_passed_and_the_scripted_model_goes_on():
    session = opened(SPEC, doings={"run_command": lambda arguments: (Outcome.OK, "y" * 9_000)})
    steps = "\n  - {say: a, call: {run_command: {command: ls}}, repeat: {until: {contains: never}, max: 12}}\n"
    assert played_out(scripted(steps), session, SPEC) is StopReason.FINISH
    assert kinds(session).count("compacted") >= 2
    assert kinds(session).count("replied") == 13
    state = replay(session.log)
    assert AgentState.from_json(state.to_json()) == state


def test_an_overflow_that_the_provider_reports_is_compacted_and_asked_again():
    session = opened(SPEC)
    call = ("list_sessions", "{}")
    end = said("c", ("finish", "{}"))
    model = ListedModel([said("a", call), said("b", call), ContextOverflow("long"), Replied(text=SUMMARY), end])
    assert played_out(model, session, SPEC) is StopReason.FINISH
    assert kinds(session).count("compacted") == 1
    assert "Summary of the work so far" in model.asked[-1].messages[2].text


def test_a_context_that_can_t_be_made_to_fit_ends_the_run():
    session = opened(SPEC)
    model = ListedModel([said("a", ("list_sessions", "{}")), *[ContextOverflow("long")] * 20])
    assert played_out(model, session, SPEC) is StopReason.AGENT_ERROR
    assert kinds(session).count("compacted") == 3
