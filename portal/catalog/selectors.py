"""Room: portal.catalog. What pages, API and engine read of domains, tasks and versions."""

from dataclasses import dataclass

from django.db.models import Prefetch, QuerySet
from django.http import Http404

from evaluator.manifest import Manifest, ScoreRule
from portal.catalog.models import Domain, ScoringRevision, SeedKind, Size, Suite, Task, TaskState, TaskVersion
from portal.catalog.services import workspace_key
from portal.catalog.sheets import TaskSheet, sheet_of_published, sheet_of_version
from portal.core.blobs import blobs
from portal.core.secrets import vault_open

SHOWN = (TaskState.PUBLISHED, TaskState.RETIRED)


@dataclass(frozen=True)
class DomainTasks:
    """One domain with its tasks in order."""

    domain: Domain
    tasks: tuple[Task, ...]


def domains_all() -> QuerySet[Domain]:
    """In the order of the paper, new ones after."""
    return Domain.objects.all()


def tasks_shown() -> QuerySet[Task]:
    """Every task that a visitor may see, domains loaded, in catalog order."""
    return Task.objects.filter(state__in=SHOWN).select_related("domain")


def tasks_by_domain(*, suite: str | None = None) -> tuple[DomainTasks, ...]:
    """Domains that have tasks to show, with them; two queries."""
    tasks = Task.objects.filter(state__in=SHOWN, **({"suite": suite} if suite else {}))
    domains = Domain.objects.prefetch_related(Prefetch("tasks", queryset=tasks, to_attr="shown"))
    # `shown` is made by the prefetch; the row class doesn't know it.
    found = ((domain, tuple(vars(domain)["shown"])) for domain in domains)
    return tuple(DomainTasks(domain, shown) for domain, shown in found if shown)


def task_get(slug: str) -> Task:
    """A task that a visitor may see, domain loaded. Raises Http404."""
    task = tasks_shown().filter(slug=slug).first()
    if task is None:
        raise Http404
    return task


def task_any(slug: str) -> Task:
    """A task in whatever state, for curation. Raises Http404."""
    task = Task.objects.select_related("domain", "owner").filter(slug=slug).first()
    if task is None:
        raise Http404
    return task


def versions_of(task: Task) -> QuerySet[TaskVersion]:
    """Published versions, newest first, retired ones too."""
    return task.versions.exclude(published_at=None).select_related("task__domain").order_by("-number")


def version_current(task: Task, *, seed: SeedKind | None = None, full_only: bool = False) -> TaskVersion | None:
    """The version that a new run of `task` gets: the newest of full size that is published and not retired. A small
    one (plumbing tests) only where there is no full one and `full_only` is false; None where nobody brought any.
    """
    found = versions_of(task).filter(retired_at=None)
    if seed is not None:
        found = found.filter(seed_kind=seed)
    full = found.filter(size=Size.FULL).first()
    return full if full is not None or full_only else found.first()


def versions_runnable(*, suite: str | None = None, seed: SeedKind | None = None) -> tuple[TaskVersion, ...]:
    """The current version of every task that has one, in catalog order: what may be submitted."""
    tasks = tasks_shown().filter(state=TaskState.PUBLISHED, versions__published_at__isnull=False).distinct()
    tasks = tasks.filter(suite=suite) if suite else tasks
    found = (version_current(task, seed=seed) for task in tasks)
    return tuple(version for version in found if version is not None)


def version_get(version_id: int) -> TaskVersion:
    """By primary key, task and domain loaded. Raises Http404."""
    version = TaskVersion.objects.select_related("task__domain").filter(pk=version_id).first()
    if version is None:
        raise Http404
    return version


def version_by_digest(digest: str) -> TaskVersion | None:
    """The version that a package of this digest became, the newest where several tasks hold it."""
    return TaskVersion.objects.select_related("task__domain").filter(digest=digest).order_by("-id").first()


def version_manifest(version: TaskVersion) -> Manifest:
    """The frozen manifest, typed."""
    return Manifest.model_validate(version.manifest)


def scoring_current(version: TaskVersion) -> ScoringRevision:
    """The scoring that holds now: the newest revision. There always is one."""
    return version.scoring_revisions.order_by("-number")[0]


def score_rule(revision: ScoringRevision) -> ScoreRule:
    """Formula and curves of a revision, typed."""
    return ScoreRule.model_validate(revision.score)


def task_sheet(task: Task, version: TaskVersion | None = None) -> TaskSheet | None:
    """The facts of a task's page: of `version`, else of the current one, else what was published; None for a task
    without any of them (a draft).
    """
    chosen = version or version_current(task)
    if chosen is not None:
        return sheet_of_version(chosen, score_rule(scoring_current(chosen)))
    return sheet_of_published(task) if task.suite == Suite.INNOVATORBENCH and task.facts else None


def workspace_tar(version: TaskVersion) -> bytes:
    """What becomes /workspace: an uncompressed tar, paths relative to it. Raises BlobMissing."""
    return blobs().get(workspace_key(version.digest))


def hint_open(version: TaskVersion) -> str | None:
    """The hint in the clear, None where there is none. Raises VaultClosed in a process without the vault's identity."""
    if version.hint_sealed is None:
        return None
    return vault_open(bytes(version.hint_sealed)).reveal()
