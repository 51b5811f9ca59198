"""Room: portal.pages. The docs: actions, config and task package as the code has them, so they can't drift from it."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import Http404
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from evaluator.manifest import Manifest
from gymnode.actions.registry import ACTIONS, PRESETS, UNAVAILABLE
from portal.catalog.published import published_results, published_tasks
from portal.pages.api_docs import Address, ScopeDoc, addresses, scopes
from portal.pages.example import EXAMPLE_CONFIG
from portal.pages.schema import FieldRow, schema_rows
from runs.agent.spec import AgentSpec
from runs.lanes import LANES

SECTIONS: Mapping[str, str | Promise] = {
    "actions": _("Actions"),
    "config": _("Agent config"),
    "package": _("Task package"),
    "api": _("API"),
    "differences": _("How this benchmark differs"),
}


@dataclass(frozen=True)
class ActionDoc:
    """One action as a model is offered it."""

    name: str
    family: str
    lane: str
    about: str
    fields: tuple[FieldRow, ...]
    offered: bool


@dataclass(frozen=True)
class PresetDoc:
    """A preset of tools: its name and how many it offers."""

    name: str
    tools: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """What another benchmark does and what this one does, with the source of the figure."""

    thing: str | Promise
    here: str
    elsewhere: str
    source: str


@dataclass(frozen=True)
class DocsPage:
    """One section of the docs; what the section does not need is empty."""

    section: str
    title: str
    template: str
    actions: tuple[ActionDoc, ...] = ()
    presets: tuple[PresetDoc, ...] = ()
    unavailable: tuple[str, ...] = ()
    fields: tuple[FieldRow, ...] = ()
    example: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    addresses: tuple[Address, ...] = ()
    scopes: tuple[ScopeDoc, ...] = ()


def docs_page(section: str) -> DocsPage:
    """A section of the docs. Raises Http404."""
    if section == "":
        return DocsPage("", str(_("Docs")), "docs/index.html")
    if section not in SECTIONS:
        raise Http404
    title, template = str(SECTIONS[section]), f"docs/{section}.html"
    if section == "actions":
        presets = tuple(PresetDoc(name, tools) for name, tools in PRESETS.items())
        return DocsPage(section, title, template, action_docs(), presets, tuple(UNAVAILABLE))
    if section == "config":
        rows = schema_rows(AgentSpec.json_schema())
        return DocsPage(section, title, template, fields=rows, example=tuple(EXAMPLE_CONFIG.splitlines()))
    if section == "package":
        return DocsPage(section, title, template, fields=schema_rows(Manifest.model_json_schema(by_alias=True)))
    if section == "api":
        return DocsPage(section, title, template, addresses=addresses(), scopes=scopes())
    return DocsPage(section, title, template, differences=differences())


def action_docs() -> tuple[ActionDoc, ...]:
    """Every action of this release."""
    return tuple(
        ActionDoc(
            name=name,
            family=action.family.value,
            lane=LANES[name],
            about=action.description(),
            fields=schema_rows(action.parameters()),
            offered=action.offered,
        )
        for name, action in ACTIONS.items()
    )


def differences() -> tuple[Difference, ...]:
    """Figures of the published benchmark beside those its authors compare it with."""
    saturation = published_results().saturation
    tasks = published_tasks().tasks
    hours = sorted({task.hours_paper for task in tasks})
    gpus = sorted({task.gpus_80gb for task in tasks})
    source = published_results().venue
    each = published_tasks().evaluations
    return (
        Difference(
            _("Hours until the best score"),
            saturation.hours_to_best_paper,
            f"{saturation.paperbench_hours:g} (PaperBench)",
            source,
        ),
        Difference(_("Time limit of a task, hours"), f"{hours[0]:g}–{hours[-1]:g}", "–", source),
        Difference(_("Evaluations"), f"{each.by_agent} + {each.final}", "–", source),
        Difference(_("GPUs of a task, 80 GB each"), f"{gpus[0]}–{gpus[-1]}", "–", source),
    )
