"""Room: runs.agent. Lines of the prompt that a program reads again: the scripted model finds its task and its place
by them.
"""

import re

STATUS_MARK = "[status]"
SUMMARY_MARK = "[summary wanted]"
TASK_LINE = re.compile(r"^Task: (\S+)$", re.MULTILINE)
OUTCOME = re.compile(r"^(?:Observation: )?\[(ok|refused|failed|broken)\] ?")


def without_status(text: str) -> str:
    """The text of a newest message without the status that changes from request to request."""
    head, mark, _ = text.rpartition(f"\n\n{STATUS_MARK} ")
    return head if mark else text
