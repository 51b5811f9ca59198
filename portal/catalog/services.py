"""Room: portal.catalog. Bringing tasks in: the published list, packed task versions, mended scoring."""

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evaluator.manifest import Manifest, ScoreRule
from portal.catalog.domains import PAPER_DOMAINS
from portal.catalog.models import Domain, ScoringRevision, SeedKind, Suite, Task, TaskState, TaskVersion
from portal.catalog.packed import PackedTask, tar_filtered, without_hint, workspace_only
from portal.catalog.published import PublishedTask, published_tasks
from portal.core.audit import audit_write
from portal.core.blobs import blobs
from portal.core.errors import Conflict, Missing
from portal.core.secrets import vault_seal


class TaskNotYours(Conflict):
    """The id in the manifest belongs to somebody else's task."""

    code = "task_not_yours"
    template = _("The task {task} belongs to somebody else; choose another id.")


@dataclass(frozen=True)
class _Stored:
    """Where the parts of a package lie now."""

    public: str
    public_sha256: str
    public_bytes: int
    sealed: str
    sealed_sha256: str
    sealed_bytes: int


def domain_rows_ensure() -> None:
    """The six domains of the paper exist. Others, and changes to these, are left alone."""
    for position, facts in enumerate(PAPER_DOMAINS, start=1):
        values = {"name": facts.name, "code": facts.code, "hue": facts.hue, "position": position}
        Domain.objects.get_or_create(slug=facts.slug, defaults=values)


def catalog_import_published() -> int:
    """Pages for the 20 published tasks from this project's data files; returns how many rows were new.

    Running it again brings their facts up to date; versions that somebody brought are left alone.
    """
    domain_rows_ensure()
    published = published_tasks()
    domains = {domain.slug: domain for domain in Domain.objects.all()}
    new = 0
    for facts in published.tasks:
        note = published.notes.get(str(facts.id), "")
        values = _published_values(facts, domains[facts.domain], note)
        _row, created = Task.objects.update_or_create(
            slug=facts.slug, defaults=values, create_defaults=values | {"state": TaskState.PUBLISHED}
        )
        new += created
    return new


def task_version_import(
    *, packed: PackedTask, by: AbstractBaseUser | None, suite: Suite = Suite.NANO, owner_id: int | None = None
) -> TaskVersion:
    """A new version of the task that the manifest names, published at once where the site itself brings it (no
    `owner_id`), else a draft of that team. The same package again returns the version it made.

    Blobs are written first, so a row never points at nothing. Raises Missing (domain), TaskNotYours, VaultClosed.
    """
    domain = Domain.objects.filter(slug=packed.manifest.domain).first()
    if domain is None:
        raise Missing(thing=str(_("domain")), name=packed.manifest.domain)
    stored = _parts_stored(packed)
    hint = vault_seal(packed.hint.encode()) if packed.hint else None
    with transaction.atomic():
        task = _task_locked(packed.manifest, domain, suite, owner_id)
        known = task.versions.filter(digest=packed.digest).first()
        if known is not None:
            return known
        version = _version_written(task, packed, stored, hint, by)
        audit_write(verb="imported", thing=version, by=by, team_id=owner_id, facts={"digest": packed.digest})
    return version


def scoring_revision_add(
    *, version: TaskVersion, score: ScoreRule, reason: str, by: AbstractBaseUser | None
) -> ScoringRevision:
    """A mended formula or curve; it holds from now on, and the old one stays. Raises Conflict when metrics differ:
    results that are stored couldn't be scored with them.
    """
    first = ScoreRule.model_validate(version.manifest["score"])
    if set(first.metrics) != set(score.metrics):
        raise Conflict(thing=str(_("The list of metrics of")), name=str(version))
    with transaction.atomic():
        TaskVersion.objects.select_for_update().get(pk=version.pk)
        number = version.scoring_revisions.count() + 1
        revision = ScoringRevision.objects.create(
            task_version=version,
            number=number,
            score=score.model_dump(mode="json"),
            reason=reason,
            created_by_id=by.pk if by else None,
        )
        audit_write(verb="added", thing=revision, by=by, facts={"reason": reason})
    return revision


def version_publish(*, version: TaskVersion, by: AbstractBaseUser | None) -> None:
    """Runs may be queued on it from now on. A second time is no fault."""
    with transaction.atomic():
        if TaskVersion.objects.filter(pk=version.pk, published_at=None).update(published_at=timezone.now()):
            audit_write(verb="published", thing=version, by=by)


def version_retire(*, version: TaskVersion, by: AbstractBaseUser | None) -> None:
    """No new runs on it; what was run stays and can be cited. A second time is no fault."""
    with transaction.atomic():
        if TaskVersion.objects.filter(pk=version.pk, retired_at=None).update(retired_at=timezone.now()):
            audit_write(verb="retired", thing=version, by=by)


def workspace_key(digest: str) -> str:
    """The blob that becomes /workspace: the public part's workspace alone, paths relative to it."""
    return f"tasks/{digest}/workspace.tar"


def _published_values(facts: PublishedTask, domain: Domain, note: str) -> dict[str, object]:
    return {
        "title": facts.title,
        "domain": domain,
        "suite": Suite.INNOVATORBENCH,
        "number": facts.id,
        "facts": facts.model_dump(mode="json"),
        "contaminated": "contaminated" in note,
        "contamination_note": note if "contaminated" in note else "",
    }


def _parts_stored(packed: PackedTask) -> _Stored:
    """Put public part, workspace and sealed part into the blob store under keys made of the digest."""
    store = blobs()
    folder = f"tasks/{packed.digest}"
    public_sha256, public_bytes = _tar_stored(packed.public, f"{folder}/public.tar", without_hint)
    _tar_stored(packed.public, workspace_key(packed.digest), workspace_only)
    with packed.sealed.open("rb") as file:
        sealed_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        store.put(f"{folder}/sealed.age", file)
    return _Stored(
        public=f"{folder}/public.tar",
        public_sha256=public_sha256,
        public_bytes=public_bytes,
        sealed=f"{folder}/sealed.age",
        sealed_sha256=sealed_sha256,
        sealed_bytes=packed.sealed.stat().st_size,
    )


def _tar_stored(source: Path, key: str, rename: Callable[[str], str | None]) -> tuple[str, int]:
    with tempfile.TemporaryFile() as file:
        digest = tar_filtered(source, file, rename)
        size = file.seek(0, 2)
        file.seek(0)
        blobs().put(key, file)
    return digest, size


def _task_locked(manifest: Manifest, domain: Domain, suite: Suite, owner_id: int | None) -> Task:
    """The task's row, made if missing, locked: two imports at once must not take the same number."""
    slug = manifest.id.replace("/", "--")
    state = TaskState.DRAFT if owner_id else TaskState.PUBLISHED
    values = {"title": manifest.title, "domain": domain, "suite": suite, "owner_id": owner_id, "state": state}
    Task.objects.get_or_create(slug=slug, defaults=values)
    task = Task.objects.select_for_update().get(slug=slug)
    if task.owner_id != owner_id:
        raise TaskNotYours(task=manifest.id)
    task.title, task.domain = manifest.title, domain
    task.contaminated = task.contaminated or manifest.flags.contaminated
    task.save(update_fields=["title", "domain", "contaminated"])
    return task


def _version_written(
    task: Task, packed: PackedTask, stored: _Stored, hint: bytes | None, by: AbstractBaseUser | None
) -> TaskVersion:
    manifest = packed.manifest
    seed = SeedKind(manifest.build.seed) if task.suite == Suite.NANO else SeedKind.BROUGHT
    version = TaskVersion.objects.create(
        task=task,
        number=task.versions.count() + 1,
        digest=packed.digest,
        manifest=manifest.model_dump(mode="json", by_alias=True),
        description=packed.description,
        hint_sealed=hint,
        public_blob=stored.public,
        public_sha256=stored.public_sha256,
        public_bytes=stored.public_bytes,
        sealed_blob=stored.sealed,
        sealed_sha256=stored.sealed_sha256,
        sealed_bytes=stored.sealed_bytes,
        size=manifest.size.value,
        seed_kind=seed,
        created_by_id=by.pk if by else None,
        published_at=timezone.now() if task.owner_id is None else None,
    )
    ScoringRevision.objects.create(
        task_version=version,
        number=1,
        score=manifest.score.model_dump(mode="json"),
        created_by_id=by.pk if by else None,
    )
    return version
