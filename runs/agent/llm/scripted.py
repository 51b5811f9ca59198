"""Room: runs.agent. The scripted model: plays a playbook instead of thinking. Pure; `scripted_server.py` puts it on a
wire.

It ships, it isn't a mock: the demo and the tests drive the real client, the real wire and the real engine with it.

Playbook format (`tasks/<task id>/playbooks/<kind>.yaml`; the model's name is the kind)::

    task: worked-example-filtering-nano      # must be the task on the prompt's `Task: ID` line
    note: free text for readers              # optional
    steps:                                   # played from top to bottom
      - say: "I look at the pool first."     # the thought
        call: {run_command: {command: "head -n 3 data/pool.jsonl", timeout_s: 20}}
      - say: "Two things at once."
        calls:                               # several calls in one reply, carried out in order
          - create_file:
              filename: work/run.py
              content: |
                print("any text; nothing in it is special but ${{ name }}")
          - run_command: {command: "python work/run.py"}
      - when: {outcome: ok, contains: "done"}    # condition on the last observation; where it fails, the step
        else: repair                             # is skipped, or the play goes on at this label
        say: "It worked."
        call: {eval: {}}
      - say: "I wait for the job."
        call: {sleep: {seconds: 30, until_session_idle: main}}
        repeat: {until: {contains: "finished"}, max: 20, else: give-up}    # the same step, at most `max` times in all
        then: end                            # where to go after the step and its repeat; default: the next step
      - label: repair
        when: {matches: 'best value (?P<best>[0-9.]+)'}
        say: "I use ${{ best }}."            # templates: named groups of this step's `matches`; `text` and `outcome`
        call: {run_command: {command: "python work/run.py --keep ${{ best }}"}}
      - label: give-up
        call: {run_command: '{"command": '}  # a text in place of the arguments is sent raw: a model that writes no JSON
      - label: end
        fault: {status: 429, retry_after: 1, times: 3}
        call: {finish: {summary: "done"}}

Conditions: all given parts must hold; `any: [...]` for alternatives. `outcome`: one word or a list of ok, refused,
failed, broken. `contains`, `lacks`: a text or a list, looked for in the text that the model read. `matches`: a
regular expression, multi-line. `field`: `{exit_code: 0, score: ">= 10"}` looks for `exit code: 0`, `score = 12.5` or
`"score": 12.5` in the text. The last observation is the one of the last call of the last reply. Labels lead forward
only. Past the last step the model calls `finish`.

The place is the id of the last tool call in the request: `pb-N` for step N (from 0), `pb-N-k` for round k of a repeat
(from 1), with `cJ` added for the J-th further call of one reply. A reply without a tool call, and every reply to a
request without tools (text mode), carries `[pb-N]` at the end of its thought instead.

Templates fill texts. Where a number is wanted, write the arguments raw: `call: {sleep: '{"seconds": ${{ n }}}'}`.
`python -m runs.agent.llm.scripted_server --tasks tasks --check` reads all playbooks and parses each call but raw ones.

Faults are played `times` times (default 1, null: for ever) before the step itself: `status` with `retry_after`, `code`,
`message`; `slow_s` (wait before the reply); `cut` (the connection ends in the middle of the stream); `empty` (a reply
with neither text nor call). They are counted per process by task, kind, step and the header `X-Client-Request-Id`
where the client sends one. That count is the only thing the model remembers: after a restart a fault is played again.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from runs.agent.events import Call, Replied, Usage
from runs.agent.llm.errors import error_from_status
from runs.agent.llm.playbook import (
    Fault,
    LastSeen,
    Playbook,
    Position,
    Step,
    filled,
    next_position,
    parse_position,
)
from runs.agent.marks import OUTCOME, SUMMARY_MARK, TASK_LINE, without_status
from runs.agent.parsing import text_calls
from runs.agent.protocols import ModelRequest, ProviderDown, Role, UnknownModel

_MARKER = re.compile(r"\[(pb-[0-9c-]+)\]")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
Library = Callable[[str, str], Playbook]

SUMMARY = """## Goal and plan
Play the playbook to its end; the next step follows from the last observation.
## What is known
Nothing but what the messages that were kept say.
## Best result and how it was made
See the evaluations that the engine lists.
## Files
See the workspace.
## Tried and failed
Nothing.
## Next
The step after the last one played."""


@dataclass(frozen=True)
class Turn:
    """One message of a request, as far as the play needs it."""

    role: str
    text: str
    call_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Played:
    """What the model answers, and the fault before it. `position` None: the answer to a compaction prompt."""

    text: str
    calls: tuple[Call, ...] = ()
    position: Position | None = None
    fault: Fault | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass
class FaultCount:
    """How often the fault of a step was played. The one memory of the scripted model; thread-safe."""

    counts: Counter[tuple[str, str, int, str]] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def due(self, fault: Fault | None, key: tuple[str, str, int, str]) -> bool:
        """Whether the fault is to be played once more."""
        if fault is None:
            return False
        with self.lock:
            self.counts[key] += 1
            return fault.times is None or self.counts[key] <= fault.times


def play(book: Playbook, turns: Sequence[Turn], *, with_tools: bool) -> Played:
    """The next reply of the playbook to a conversation. The same conversation gives the same reply."""
    usage = _usage(turns)
    if turns and SUMMARY_MARK in turns[-1].text and turns[-1].role == Role.USER:
        return Played(SUMMARY, usage=usage)
    last, seen = where(turns)
    position = next_position(book, last, seen)
    if position.step >= len(book.steps):
        step = Step(say="The playbook is at its end.", call={"finish": {}})
    else:
        step = book.steps[position.step]
    calls = _calls(step, position, seen)
    text = str(filled(step.say, step, seen))
    if not calls or not with_tools:
        text = f"{text} [{position.call_id()}]".lstrip()
    if not with_tools and calls:
        actions = [f"Action: {call.name}\nAction Input: {call.arguments}" for call in calls]
        text, calls = "\n".join([f"Thought: {text}", *actions]), ()
    size = len(text) + sum(len(call.arguments) for call in calls)
    return Played(text, calls, position, step.fault, usage.model_copy(update={"output": 1 + size // 4}))


def where(turns: Sequence[Turn]) -> tuple[Position | None, LastSeen]:
    """The place of the last reply that has one, and the last observation after it."""
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if turn.role != Role.ASSISTANT:
            continue
        named = [*_MARKER.findall(turn.text), *turn.call_ids]
        places = [place for place in map(parse_position, named) if place is not None]
        if places:
            return places[-1], _last_seen(turns[index + 1 :])
    return None, LastSeen()


def _last_seen(turns: Sequence[Turn]) -> LastSeen:
    for turn in reversed(turns):
        text = without_status(turn.text)
        found = OUTCOME.match(text)
        if found is not None:
            return LastSeen(found[1], text[found.end() :])
    return LastSeen()


def _calls(step: Step, position: Position, seen: LastSeen) -> tuple[Call, ...]:
    calls = []
    for index, call in enumerate(step.all_calls()):
        name, given = next(iter(call.items()))
        arguments = filled({} if given is None else given, step, seen)
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        calls.append(Call(id=position.call_id(index), name=name, arguments=raw, index=index))
    return tuple(calls)


def _usage(turns: Sequence[Turn]) -> Usage:
    """A made-up count that is the same for two runs that differ in times only: numbers count as one digit each."""
    sizes = [1 + len(_DIGITS.sub("0", without_status(turn.text))) // 4 for turn in turns]
    return Usage(input=sum(sizes), cached=sum(sizes[:-1]), output=1 + len(SUMMARY) // 4)


def task_named(turns: Sequence[Turn]) -> str | None:
    """The task on the prompt's `Task: ID` line."""
    for turn in turns:
        found = TASK_LINE.search(turn.text) if turn.role != Role.ASSISTANT else None
        if found is not None:
            return found[1]
    return None


def summary_wanted(turns: Sequence[Turn]) -> bool:
    """Whether the request is a compaction prompt."""
    return bool(turns) and SUMMARY_MARK in turns[-1].text


class ScriptedModel:
    """The scripted model in this process: a `LanguageModel` without a wire, for tests and benchmarks."""

    def __init__(self, kind: str, library: Library, *, client_id: str = "") -> None:
        self.kind = kind
        self.library = library
        self.client_id = client_id
        self.faults = FaultCount()

    def complete(self, request: ModelRequest, on_delta: Callable[[str], None]) -> Replied:
        """The next reply of the playbook. Faults of the playbook are raised as the wire client would raise them."""
        turns = [Turn(m.role, m.whole, tuple(call.id for call in m.calls)) for m in request.messages]
        task = task_named(turns)
        if task is None:
            raise UnknownModel(
                "the prompt has no `Task: ID` line, so the scripted model can't tell which playbook to play"
            )
        played = play(self.library(task, self.kind), turns, with_tools=bool(request.tools))
        if played.position is not None:
            key = (task, self.kind, played.position.step, self.client_id)
            if played.fault is not None and self.faults.due(played.fault, key):
                played = _with_fault(played, played.fault)
        on_delta(played.text)
        return Replied(
            text=played.text,
            calls=text_calls(played.text, str(len(turns))) if request.text_tools else played.calls,
            model=f"scripted/{self.kind}",
            usage=played.usage,
            usd=Decimal(0),
            finish_reason="tool_calls" if played.calls else "stop",
            host="in-process",
        )


def _with_fault(played: Played, fault: Fault) -> Played:
    time.sleep(fault.slow_s)
    if fault.status is not None:
        message = fault.message or f"scripted fault {fault.status}"
        raise error_from_status(fault.status, fault.code or "", message, fault.retry_after)
    if fault.cut:
        raise ProviderDown("the connection ended in the middle of the reply")
    return Played("", (), played.position, None, played.usage) if fault.empty else played


def library_of(books: Mapping[tuple[str, str], Playbook]) -> Library:
    """A library of playbooks held in memory. Raises `UnknownModel` for what it lacks."""

    def find(task: str, kind: str) -> Playbook:
        if (task, kind) not in books:
            known = ", ".join(sorted(k for t, k in books if t == task)) or "none"
            raise UnknownModel(f"task `{task}` has no playbook `{kind}`; it has: {known}")
        return books[task, kind]

    return find
