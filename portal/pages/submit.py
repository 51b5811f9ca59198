"""Room: portal.pages. The submit page: its form, its table of tasks, and what is said of a config, line by line."""

import codecs
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django import forms
from django.db import transaction
from django.http import Http404
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Team, User
from portal.accounts.selectors import team_for_work, team_of, teams_of
from portal.catalog.models import TaskVersion
from portal.catalog.selectors import version_manifest, versions_runnable
from portal.core.doors import field_fault_into
from portal.core.errors import FieldFault, LimitReached
from portal.core.idempotency import StoredAnswer, idempotency_claim, idempotency_store
from portal.core.words import told
from portal.leaderboard.joining import board_wish
from portal.leaderboard.selectors import board_for_submission, boards_list
from portal.nodes.selectors import Availability, availability_for
from portal.pages.config_words import fault_told
from portal.pages.example import EXAMPLE_CONFIG
from portal.submissions.models import Submission
from portal.submissions.quota import Quota, quota_of
from portal.submissions.selectors import submission_get_for
from portal.submissions.services import MOST_REPEATS, Wish, key_demand, submission_create
from runs.agent.events import NodeBrief
from runs.agent.prompt import first_prompt
from runs.agent.spec import AgentSpec, SpecErrors, parse_spec
from runs.agent.taskbrief import TaskBrief
from runs.selectors import config_get_for
from runs.states import Visibility
from runs.version import ENGINE_VERSION

MOST_BYTES = 64 * 1024
ASKED = ("config", "tasks", "repeats", "team", "where")


class SubmitForm(forms.Form):
    """What a submission needs. The config comes as text or as a file; a file wins."""

    config = forms.CharField(required=False, max_length=MOST_BYTES, strip=False, widget=forms.Textarea)
    file = forms.FileField(required=False, label=_("YAML or JSON, at most 64 KB"))
    tasks = forms.MultipleChoiceField(
        required=False, error_messages={"invalid_choice": _("%(value)s can't be run here.")}
    )
    repeats = forms.IntegerField(label=_("Repeats of each task"), min_value=1, max_value=MOST_REPEATS, initial=1)
    team = forms.ChoiceField(label=_("Team"))
    where = forms.ChoiceField(label=_("Who sees it"), initial="private")
    once = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, user: User, versions: Sequence[TaskVersion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        boards = [(f"board:{board.slug}", told(board.title)) for board in boards_list() if board.open_for_runs]
        choices: dict[str, list[tuple[Any, Any]]] = {
            "tasks": [(version.task.slug, version.task.title) for version in versions],
            "team": [(team.slug, team.shown_name) for team in teams_of(user)],
            "where": [("private", _("my team only")), ("public", _("everybody")), *boards],
        }
        for name, values in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = values

    def clean(self) -> dict[str, Any]:
        """Take the text of the file where one was given."""
        given = super().clean() or {}
        file = given.get("file")
        if file is not None:
            if file.size > MOST_BYTES:
                self.add_error("file", _("The file is larger than 64 KB; an agent config is not."))
                return given
            try:
                given["config"] = file_text(file.read())
            except FieldFault as fault:
                self.add_error("file", fault.message)
                return given
        if not (given.get("config") or "").strip():
            self.add_error("config", _("Paste a config or choose a file."))
        return given


def file_text(raw: bytes) -> str:
    """The text of a config file. Raises FieldFault for one that is not UTF-8: what is guessed would run."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        message = _("Line {line} of the file is not UTF-8. Save the file as UTF-8 and choose it again.")
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            message = _("The file is UTF-16. Save it as UTF-8 and choose it again.")
        line = raw.count(b"\n", 0, fault.start) + 1
        raise FieldFault(field="file", message=str(message).format(line=line)) from None


@dataclass(frozen=True)
class Line:
    """A line of the config as typed, with what is wrong in it."""

    number: int
    text: str
    faults: tuple[str, ...]


@dataclass(frozen=True)
class TaskChoice:
    """A row of the table of tasks."""

    version: TaskVersion
    hours: float
    steps: int
    gpus: int
    chosen: bool


@dataclass(frozen=True)
class Checked:
    """What a config means for the tasks chosen: the first prompt of the first one."""

    spec: AgentSpec
    system: str
    task: str
    tools: int


@dataclass(frozen=True)
class SubmitPage:
    """The page. `lines` are there where something is wrong with the config; `checked` where nothing is. `once` is the
    key of this rendering: a form acts once however often it is sent.
    """

    form: SubmitForm
    choices: tuple[TaskChoice, ...]
    lines: tuple[Line, ...]
    fault_lines: tuple[int, ...]
    checked: Checked | None
    team: Team
    quota: Quota
    refused: str
    chosen: int
    runs: int
    most_hours: float
    most_usd: Decimal | None
    free: Availability
    once: str = field(default_factory=lambda: secrets.token_urlsafe(16))


@dataclass(frozen=True)
class Sent:
    """What a form queued. `again`: it was queued by the same form before, and nothing was queued now."""

    submission: Submission
    again: bool


def submit_page(user: User, given: Mapping[str, str]) -> SubmitPage:
    """The page as it is opened; `?task=` and `?config=` fill it in."""
    versions = versions_runnable()
    start: dict[str, Any] = {"config": EXAMPLE_CONFIG, "tasks": [given.get("task", "")], "team": team_of(user).slug}
    asked = given.get("config", "")
    if asked.isdecimal() and len(asked) < 19:
        start["config"] = config_get_for(user, int(asked)).source
    return _page(user, SubmitForm(initial=start, user=user, versions=versions), versions)


def submit_try(user: User, data: Any, files: Any) -> Sent | SubmitPage:
    """Queue what the form asks for, or the page with every fault. With `check` in it nothing is queued."""
    versions = versions_runnable()
    form = SubmitForm(data, files, user=user, versions=versions)
    if not form.is_valid():
        return _page(user, form, versions)
    try:
        spec = parse_spec(form.cleaned_data["config"])
    except SpecErrors as errors:
        return _page(user, form, versions, errors=errors)
    try:
        if "check" in data:
            key_demand(team_for_work(user, form.cleaned_data["team"]), spec)
            return _page(user, form, versions, spec=spec)
        return _queued(user, form, versions)
    except FieldFault as fault:
        field_fault_into(form, fault)
        return _page(user, form, versions, spec=spec)
    except LimitReached as reached:
        return _page(user, form, versions, spec=spec, refused=reached.sentence)


@transaction.atomic
def _queued(user: User, form: SubmitForm, versions: Sequence[TaskVersion]) -> Sent:
    """Act, unless this form did already. What is refused leaves the key of the form unused."""
    team = team_for_work(user, form.cleaned_data["team"])
    asked = json.dumps([form.cleaned_data[name] for name in ("once", *ASKED)]).encode()
    key = f"submit-form {hashlib.sha256(asked).hexdigest()}"  # with other words in it, a form is another form
    stored = idempotency_claim(user=user, key=key, request=asked) if form.cleaned_data["once"] else None
    if stored is not None:
        return Sent(submission_get_for(user, stored.body["submission"]), again=True)
    made = submission_create(team=team, wish=_wish(form.cleaned_data, versions), by=user)
    idempotency_store(user=user, key=key, answer=StoredAnswer(status=302, body={"submission": made.pk}))
    return Sent(made, again=False)


def _wish(given: Mapping[str, Any], versions: Sequence[TaskVersion]) -> Wish:
    """What the form asks for. Raises FieldFault, Http404 (a board that takes no runs)."""
    where, board = given["where"], ""
    if where.startswith("board:"):
        board = where.removeprefix("board:")
        if board_for_submission(board) is None:
            raise Http404
    wish = Wish(
        config=given["config"],
        tasks=[version for version in versions if version.task.slug in given["tasks"]],
        repeats=given["repeats"],
        visibility=Visibility.PRIVATE if where == "private" else Visibility.PUBLIC,
        board=board,
    )
    return board_wish(wish)


def _page(
    user: User,
    form: SubmitForm,
    versions: Sequence[TaskVersion],
    *,
    errors: SpecErrors | None = None,
    spec: AgentSpec | None = None,
    refused: str = "",
) -> SubmitPage:
    chosen = set(form["tasks"].value() or ())
    choices = tuple(_choice(version, version.task.slug in chosen) for version in versions)
    picked = [choice for choice in choices if choice.chosen]
    repeats = _repeats(form["repeats"].value())
    text = form.cleaned_data.get("config", "") if form.is_bound and hasattr(form, "cleaned_data") else ""
    usd = spec.limits.usd if spec else None
    team = _team(user, form)
    return SubmitPage(
        form=form,
        choices=choices,
        lines=config_lines(text, errors) if errors else (),
        fault_lines=tuple(dict.fromkeys(fault.line for fault in errors.errors)) if errors else (),
        checked=_checked(spec, picked[0].version if picked else None) if spec else None,
        team=team,
        quota=quota_of(team),
        refused=refused,
        chosen=len(picked),
        runs=len(picked) * repeats,
        most_hours=sum(choice.hours for choice in picked) * repeats,
        free=availability_for(team.pk),
        most_usd=Decimal(str(usd)) * len(picked) * repeats if usd is not None else None,
    )


def _team(user: User, form: SubmitForm) -> Team:
    """The team that the form names; one's own where it names none of one's teams."""
    named = form["team"].value()
    return next((team for team in teams_of(user) if team.slug == named), None) or team_of(user)


def _repeats(value: object) -> int:
    text = str(value)
    return max(1, min(int(text), MOST_REPEATS)) if text.isdecimal() and len(text) < 4 else 1


def _choice(version: TaskVersion, chosen: bool) -> TaskChoice:
    manifest = version_manifest(version)
    gpus = sum(node.gpus * node.count for node in manifest.nodes)
    return TaskChoice(version, manifest.limits.hours, manifest.limits.steps, gpus, chosen)


def config_lines(text: str, errors: SpecErrors) -> tuple[Line, ...]:
    """The config as typed; faults without a line of their own stand at the first."""
    faults: dict[int, list[str]] = {}
    lines = text.splitlines() or [""]
    for fault in errors.errors:
        at = min(max(1, fault.line), len(lines))
        message = fault_told(fault.message)
        faults.setdefault(at, []).append(f"{fault.path}: {message}" if fault.path else message)
    return tuple(Line(n, line, tuple(faults.get(n, ()))) for n, line in enumerate(lines, 1))


def _checked(spec: AgentSpec, version: TaskVersion | None) -> Checked:
    if version is None:
        return Checked(spec, "", "", 0)
    manifest = version_manifest(version)
    nodes = tuple(
        NodeBrief(name=need.role, role=need.role, cpus=need.cpus, memory_gb=need.memory_gb, gpus=need.gpus)
        for need in manifest.nodes
    )
    brief = TaskBrief(
        task_id=version.task.slug,
        task_version=version.number,
        description=version.description,
        engine_version=ENGINE_VERSION,
        nodes=nodes,
        outputs=tuple(output.path for output in manifest.outputs),
        hours=manifest.limits.hours,
        steps=manifest.limits.steps,
        disk_gb=manifest.limits.disk_gb,
        evaluations_by_agent=manifest.evaluations.by_agent,
        final_evaluation=manifest.evaluations.final > 0,
    )
    given = first_prompt(brief, spec)
    return Checked(spec, given.system, given.task, len(given.tools))
