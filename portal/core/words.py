"""Room core: words of the rooms that know no language (agent, gym, scoring) and stored words, for the reader.

Such a word is a code or a sentence of the code's own; the catalogue has it because it stands here or where it is
defined, marked with `gettext_noop`. A text that the catalogue does not know stays as it is.
"""

from django.utils.translation import gettext, gettext_noop

EVENT_KINDS = (
    gettext_noop("action sent"),
    gettext_noop("agent failed"),
    gettext_noop("agent finished"),
    gettext_noop("budget reached"),
    gettext_noop("cancelled"),
    gettext_noop("compacted"),
    gettext_noop("evaluation failed"),
    gettext_noop("evaluation scored"),
    gettext_noop("hint revealed"),
    gettext_noop("message sent"),
    gettext_noop("model refused"),
    gettext_noop("node lost"),
    gettext_noop("observed"),
    gettext_noop("paused"),
    gettext_noop("replied"),
    gettext_noop("resumed"),
    gettext_noop("run ended"),
    gettext_noop("shared"),
    gettext_noop("suspended"),
    gettext_noop("task given"),
)
OUTCOMES = (gettext_noop("ok"), gettext_noop("refused"), gettext_noop("failed"), gettext_noop("broken"))
ACTION_FAMILIES = (gettext_noop("command"), gettext_noop("file"), gettext_noop("special"))
NODE_CODES = (
    gettext_noop("unreachable"),
    gettext_noop("host key unknown"),
    gettext_noop("host key changed"),
    gettext_noop("protocol"),
    gettext_noop("unreadable"),
    gettext_noop("set by person"),
)
ISOLATION = (gettext_noop("namespace"), gettext_noop("landlock"), gettext_noop("plain"))
SEEDS = (gettext_noop("public"), gettext_noop("secret"))
MEASURES = (gettext_noop("memory"),)
ANCHORS = (gettext_noop("baseline"), gettext_noop("target"))
CONFIG_FIELDS = (
    gettext_noop("Who runs the loop: this site, or an agent that lives elsewhere."),
    gettext_noop("The model and how it is reached."),
    gettext_noop("The wire that the model speaks. `openai` is any compatible endpoint."),
    gettext_noop("Null: the provider's own address."),
    gettext_noop("Passed through with every request."),
    gettext_noop("A reference to the owner's vault: secret:NAME."),
    gettext_noop("Thinking of the model: an effort (openai) or a token budget (anthropic)."),
    gettext_noop("USD per million tokens; null: the price library's."),
    gettext_noop("Native tool calls, or Thought / Action / Action Input for models without them."),
    gettext_noop("The context window and when its older half becomes a summary."),
    gettext_noop("Null: 0.78 of the window."),
    gettext_noop("When snapshots are taken and how many are kept."),
    gettext_noop("Never, when the agent asks (it costs points), or in the task text."),
    gettext_noop("The agent's own limits; the lower of these and the task's holds. Null: the task's."),
    gettext_noop("What a lost node means for the run."),
    gettext_noop("What more the newest message says."),
    gettext_noop("Whether the engine warns about acts that lose work."),
    gettext_noop("A custom system prompt, or text added to the default one. Both are badged."),
)
PACKAGE_FIELDS = (
    gettext_noop("The version of this format."),
    gettext_noop("What stands in addresses; an owner's name and a slash may stand before it."),
    gettext_noop("As boards and pages show it."),
    gettext_noop("One of the catalog's domains, as in loss-design."),
    gettext_noop("Who made the task."),
    gettext_noop("The work the task was made from."),
    gettext_noop("The machines that a run gets; the scheduler honours each figure."),
    gettext_noop("Whether several nodes share one workspace (refused in this release) or have one each."),
    gettext_noop("Large files beside the package, mounted read-only; refused in this release."),
    gettext_noop("The Python environment of the workspace; only `system` in this release."),
    gettext_noop("What a run may call through the portal, with a budget; refused in this release."),
    gettext_noop("Names that whoever runs the task must provide; refused in this release."),
    gettext_noop("What a run may use; a config may only lower it."),
    gettext_noop("What snapshots of the workspace leave out, and how large they may be."),
    gettext_noop("How often outputs are scored, and what the agent is told."),
    gettext_noop("The files that are collected and scored, and nothing else."),
    gettext_noop("What the hint costs; only with a hint.md."),
    gettext_noop("What a run may not read."),
    gettext_noop("What boards must say of the task."),
    gettext_noop("A small build is for tests and never ranked."),
    gettext_noop("A random string in each hidden program, by which a leak is recognised."),
    gettext_noop("Submitted code, each world in a sandbox of its own beside the scoring one."),
    gettext_noop("Its name."),
    gettext_noop("Under which its code and data stand."),
    gettext_noop("How the agent names the node."),
    gettext_noop("How many of this kind."),
    gettext_noop("Of each GPU, at least."),
    gettext_noop("What the node must be labelled with."),
    gettext_noop("Whether the run must reach the internet; refused in this release."),
    gettext_noop("Where it can be had from."),
    gettext_noop("Its path in the workspace."),
    gettext_noop("The node's own Python, a locked requirements file, or a conda archive among the assets."),
    gettext_noop("The requirements file, by its path in the workspace."),
    gettext_noop("The asset that holds the conda archive."),
    gettext_noop("Working time; waiting for us is not charged."),
    gettext_noop("Replies of the model."),
    gettext_noop("Of the workspace."),
    gettext_noop("How many the agent may ask for."),
    gettext_noop("Whether the outputs are scored when the run ends."),
    gettext_noop("Score and raw metrics, the score alone, those of a public split, or nothing."),
    gettext_noop("In the workspace; a regular file."),
    gettext_noop("The node it is taken from."),
    gettext_noop("Without it the submission is invalid."),
    gettext_noop("How many are shown."),
    gettext_noop("Pairs of a metric's value and a share from 0 to 1, in rising order; straight lines between."),
    gettext_noop("Every metric the evaluator gives; `none` is shown and never scored."),
    gettext_noop("Of metrics and curves; its value is held to 0 to 100."),
    gettext_noop("A metric's value as a share from 0 to 1."),
    gettext_noop("Points for valid outputs; the rest of the scale is squeezed above it."),
    gettext_noop("How far calibration may be off."),
    gettext_noop("Points off each evaluation after it was seen."),
    gettext_noop("What the scoring may write."),
    gettext_noop("A pinned model that judges; refused in this release."),
    gettext_noop("The output that is run."),
    gettext_noop("The program of the hidden part that runs it, as in evaluation/runner.py."),
    gettext_noop("How many worlds at most."),
    gettext_noop("Of each world, by the clock."),
    gettext_noop("Of each world."),
    gettext_noop("Addresses that must not be opened: the paper, its code, its answers."),
    gettext_noop("The answers are known to be in public; every row says so."),
    gettext_noop("With a public seed anyone can make the hidden part again."),
    gettext_noop("Which draw it was."),
    gettext_noop("The program that built it."),
    gettext_noop(
        "How metrics become a score from 0 to 100. `baseline` and `reference` are the scores calibration expects."
    ),
    gettext_noop(
        "Limits of the scoring sandbox: memory in MB per process, wall seconds, processes that compute at once."
    ),
    gettext_noop(
        "What a recipe notes about a build: whether its seed is public, the counter of the draw, measured spreads."
    ),
)
REPORTED_NOTES = (
    gettext_noop("no task rows published: show the published mean as stated by the source, never as computed"),
)
UNITS = (gettext_noop("h"), gettext_noop("min"), gettext_noop("s"), gettext_noop("bytes"))


def told(text: object) -> str:
    """A text of the code's own, in the reader's language."""
    return gettext(str(text)) if text else ""


def notes_told(text: object) -> str:
    """`assisted run; altered limits`: several texts in one, each in the reader's language."""
    return "; ".join(told(part) for part in str(text or "").split("; "))


def code_told(code: object) -> str:
    """`node_lost` -> `node lost`, in the reader's language: a code that has no sentence of its own."""
    return told(str(code).replace("_", " "))


def slug_told(slug: object) -> str:
    """`data-filtering` -> `Data Filtering`, in the reader's language: a domain whose name is not at hand."""
    return told(str(slug).replace("-", " ").title())


def unit_told(text: str) -> str:
    """`45 min`: a figure and its unit, the unit in the reader's language."""
    figure, gap, unit = text.partition(" ")
    return f"{figure}{gap}{told(unit)}" if unit else text
