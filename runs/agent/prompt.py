"""Room: runs.agent. Words that the model reads: system prompt, first prompt, status, and the messages of each
request. Pure.

Order is made for provider caches: system, tools and task first and never changed; the conversation only grows; what
changes with every request (time, evaluations, running jobs) stands last, in the newest message, and is gone from it
in the next request.
"""

import json
from collections.abc import Iterable, Sequence

from gymnode.actions.registry import tool_specs
from runs.agent.events import NodeBrief, TaskGiven, ToolOffer
from runs.agent.marks import STATUS_MARK
from runs.agent.protocols import ChatMessage, ModelRequest, Role, RunStatus
from runs.agent.replay import AgentState, Message
from runs.agent.spec import AgentSpec, offered_tools
from runs.agent.spec_parts import HintMode, ToolMode
from runs.agent.system_prompt import DEFAULT_SYSTEM, NO_RESULT, PROMPT_VERSION, TEXT_RULES
from runs.agent.taskbrief import TaskBrief


def first_prompt(brief: TaskBrief, spec: AgentSpec) -> TaskGiven:
    """All that stands before the conversation. Called once per run; its body is the first event."""
    tools = tuple(
        ToolOffer(name=tool.name, description=tool.description, parameters=tool.parameters)
        for tool in tool_specs(offered_tools(spec))
    )
    system = DEFAULT_SYSTEM if spec.prompt.system is None else spec.prompt.system
    parts = [system, spec.prompt.extra]
    if spec.model.tool_mode is ToolMode.TEXT:
        parts.append(TEXT_RULES + "\n".join(_tool_line(tool) for tool in tools))
    return TaskGiven(
        system="\n\n".join(part for part in parts if part),
        task=_task_text(brief, with_hint=spec.hint is HintMode.UPFRONT),
        task_id=brief.task_id,
        task_version=brief.task_version,
        engine_version=brief.engine_version,
        prompt_version=PROMPT_VERSION,
        tools=tools,
        nodes=brief.nodes,
        outputs=brief.outputs,
    )


def _tool_line(tool: ToolOffer) -> str:
    return f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.parameters, ensure_ascii=False)}"


def _task_text(brief: TaskBrief, *, with_hint: bool) -> str:
    parts = [
        f"Task: {brief.task_id}",
        brief.description.strip(),
        "## Machines\n" + "\n".join(map(_node_line, brief.nodes)),
    ]
    if brief.outputs:
        parts.append("## Output files that are evaluated\n" + "\n".join(f"- {path}" for path in brief.outputs))
    parts.append("## Limits\n" + "\n".join(f"- {line}" for line in brief.limit_lines()))
    if with_hint and brief.hint:
        parts.append("## Hint\n" + brief.hint.strip())
    return "\n\n".join(parts)


def _node_line(node: NodeBrief) -> str:
    gpus = f"{node.gpus} GPUs" if node.gpus else "no GPU"
    if node.gpus and node.gpu_memory_gb:
        gpus += f" of {node.gpu_memory_gb:g} GB"
    cpus = f"{node.cpus} CPUs, " if node.cpus else ""
    memory = f"{node.memory_gb:g} GB memory, " if node.memory_gb else ""
    labels = f", {', '.join(node.labels)}" if node.labels else ""
    machine = f"{cpus}{memory}{gpus}, network: {node.network}, workspace {node.workspace}{labels}"
    return f"- {node.name} (role {node.role}): {machine}"


def status_text(status: RunStatus, state: AgentState) -> str:
    """What is left and what runs; the last lines of the newest message."""
    left = [
        None if status.remaining_s is None else f"{duration(status.remaining_s)} of working time",
        None if status.steps_left is None else f"{status.steps_left} steps",
        None if status.evaluations_left is None else f"{status.evaluations_left} evaluations",
        None if status.usd_left is None else f"${status.usd_left:.2f}",
        None if status.tokens_left is None else f"{status.tokens_left} tokens",
    ]
    known = [text for text in left if text is not None]
    lines = [f"{STATUS_MARK} Left: {', '.join(known) if known else 'no limit'}."]
    if state.best_score is not None:
        lines.append(f"Best score so far: {state.best_score}.")
    jobs = [f"{job.session} on {job.node}: `{job.command[:200]}` for {duration(job.running_s)}" for job in status.jobs]
    lines.append(f"Running jobs: {'; '.join(jobs) if jobs else 'none'}.")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """`2 h 05 min`, `12 min`, `8 s`."""
    whole = max(0, int(seconds))
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min" if whole >= 120 else f"{whole} s"


def request(state: AgentState, status: RunStatus, spec: AgentSpec) -> ModelRequest:
    """The next request: valid for the provider whatever happened to the workers before."""
    messages = conversation(state, state.messages)
    newest = messages[-1]
    messages[-1] = ChatMessage(
        newest.role, newest.text, newest.calls, newest.call_id, newest.name, volatile=status_text(status, state)
    )
    return in_mode(messages, state, spec)


def in_mode(messages: Sequence[ChatMessage], state: AgentState, spec: AgentSpec) -> ModelRequest:
    """The request in the form of the config's tool mode."""
    if spec.model.tool_mode is ToolMode.TEXT:
        return ModelRequest(tuple(_as_text(message) for message in messages), text_tools=True)
    return ModelRequest(tuple(messages), tools=state.given.tools if state.given else ())


def conversation(state: AgentState, messages: Sequence[Message]) -> list[ChatMessage]:
    """System, task, summary, and the given messages with every call followed by its result."""
    given = state.given
    head = [] if given is None else [ChatMessage(Role.SYSTEM, given.system), ChatMessage(Role.USER, given.task)]
    if state.summary:
        head.append(ChatMessage(Role.USER, f"Summary of the work so far:\n\n{state.summary}"))
    return [*head, *paired(messages)]


def paired(messages: Iterable[Message]) -> list[ChatMessage]:
    """Each call directly followed by its result, in the order of the calls; a missing result is said to be missing.

    Providers refuse a request in which a call has no result, or in which something stands between the two. Both
    happen: a worker dies between call and result, a person writes a message meanwhile.
    """
    turns: list[list[Message]] = [[]]
    for message in messages:
        if message.role is Role.ASSISTANT:
            turns.append([])
        turns[-1].append(message)
    return [chat for turn in turns for chat in _turn(turn)]


def _turn(turn: Sequence[Message]) -> list[ChatMessage]:
    if not turn:
        return []
    first, rest = turn[0], list(turn[1:])
    if first.role is not Role.ASSISTANT:
        return [ChatMessage(Role.USER, message.text) for message in turn]
    chats = [ChatMessage(Role.ASSISTANT, first.text, first.calls)]
    for call in first.calls:
        result = next((message for message in rest if message.call_id == call.id and message.role is Role.TOOL), None)
        if result is not None:
            rest.remove(result)
        text = NO_RESULT if result is None else result.text
        chats.append(ChatMessage(Role.TOOL, text, call_id=call.id, name=call.name))
    return chats + [ChatMessage(Role.USER, message.text) for message in rest]


def _as_text(message: ChatMessage) -> ChatMessage:
    if message.role is Role.TOOL:
        return ChatMessage(Role.USER, f"Observation: {message.text}", volatile=message.volatile)
    return ChatMessage(message.role, message.text, volatile=message.volatile)
