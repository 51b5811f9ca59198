"""Room: evaluator (pure). The rules of `task_description.md`: sections, a number to beat, no prescribed steps."""

from __future__ import annotations

import re

from evaluator.yamlcore import Fault

FILE = "task_description.md"
SECTIONS = ("Motivation", "Task", "Data", "Constraints", "Evaluation", "Environment", "Scripts")
MAX_CHARACTERS = 20_000
_HEADING = re.compile(r"^#{1,3}\s+(.+?)\s*#*\s*$")
_NUMBER = re.compile(r"\d")
_BEAT = re.compile(
    r"\b(beat|beats|exceed|exceeds|surpass|outperform|improve (?:on|upon)|better than|above|higher than|lower than)\b",
    re.I,
)
_ANY_METHOD = re.compile(
    r"\b(any|whatever|whichever)\b[^.]{0,60}\b(method|means|way|approach|idea|technique|like|want)", re.I
)
_REFERENCE = re.compile(r"\breference\b", re.I)
_STEP = re.compile(r"^\s*(?:[-*]\s*)?(?:\*\*)?(?:step\s+\d+|first(?:ly)?,|second(?:ly)?,|then,|next,|finally,)", re.I)
_NUMBERED = re.compile(r"^\s*\d+[.)]\s+(\w+)")
ADVICE = "say what counts and what is allowed, never how to get there"


def _sections(text: str) -> dict[str, tuple[int, list[str]]]:
    found: dict[str, tuple[int, list[str]]] = {}
    name, fenced = "", False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.match(line)
        if heading:
            name = heading[1].strip().casefold()
            found.setdefault(name, (number, []))
        elif name:
            found[name][1].append(line)
    return found


def description_faults(text: str) -> list[Fault]:
    """Every rule the description breaks, with its line."""
    if len(text) > MAX_CHARACTERS:
        return [Fault(f"longer than {MAX_CHARACTERS} characters; move detail into the workspace", "", 1, FILE)]
    sections = _sections(text)
    faults = [
        Fault(f"has no section `## {name}`; add it", "", 1, FILE)
        for name in SECTIONS
        if name.casefold() not in sections
    ]
    task_line, task = sections.get("task", (1, []))
    if "task" in sections:
        faults += _task_faults(task_line, task)
    told = " ".join(task + sections.get("evaluation", (0, []))[1])
    if "task" in sections and not _NUMBER.search(told):
        faults.append(
            Fault(
                "names no number to beat; say the baseline's and the reference's in Task or Evaluation",
                "",
                task_line,
                FILE,
            )
        )
    return faults


def _task_faults(start: int, lines: list[str]) -> list[Fault]:
    faults = []
    numbered = [number for number, line in enumerate(lines) if _NUMBERED.match(line)]
    ordered = [number for number, line in enumerate(lines) if _STEP.match(line)]
    for found, what in (
        (ordered if len(ordered) > 1 else [], "prescribes steps"),
        (numbered if len(numbered) > 2 else [], "is a numbered recipe"),
    ):
        if found:
            faults.append(Fault(f"the Task section {what}; {ADVICE}", "", start + 1 + found[0], FILE))
    paragraphs = [part for part in "\n".join(lines).split("\n\n") if part.strip()]
    last = " ".join(paragraphs[-1].split()) if paragraphs else ""
    if not (_REFERENCE.search(last) and _BEAT.search(last) and _ANY_METHOD.search(last)):
        faults.append(
            Fault(
                "the Task section must end by asking to beat the reference result by any method "
                "(its last paragraph names the reference, to beat it, and any method)",
                "",
                start,
                FILE,
            )
        )
    return faults
