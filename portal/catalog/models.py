"""Room: portal.catalog. Domains, tasks, frozen task versions and their scoring revisions. Rows only."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class Domain(models.Model):
    """A field of research work. The six of the paper are there from the start; a new one brings a hue of its own."""

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    code = models.CharField(max_length=4, unique=True)
    hue = models.SlugField(max_length=12, unique=True)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["position", "slug"]

    def __str__(self) -> str:
        return self.name


class TaskState(models.TextChoices):
    """Where a task stands in curation; moves only through states.py."""

    DRAFT = "draft", _("draft")
    CHECKING = "checking", _("checking")
    CALIBRATING = "calibrating", _("calibrating")
    IN_REVIEW = "in_review", _("in review")
    PUBLISHED = "published", _("published")
    RETIRED = "retired", _("retired")


class Suite(models.TextChoices):
    """Where a task comes from."""

    INNOVATORBENCH = "innovatorbench", _("InnovatorBench, published")
    NANO = "nano", _("Nano, shipped with the portal")
    COMMUNITY = "community", _("community")


class Task(models.Model):
    """A research problem under one address. What is run and scored is one of its versions; a published task whose data
    nobody brought yet has none, and `facts` holds what its authors published of it.
    """

    slug = models.SlugField(max_length=130, unique=True)
    title = models.CharField(max_length=200)
    domain = models.ForeignKey(Domain, on_delete=models.PROTECT, related_name="tasks")
    owner = models.ForeignKey("accounts.Team", null=True, on_delete=models.PROTECT, related_name="tasks")
    suite = models.CharField(max_length=20, choices=Suite.choices)
    number = models.PositiveSmallIntegerField(null=True)
    state = models.CharField(max_length=20, choices=TaskState.choices, default=TaskState.DRAFT)
    facts = models.JSONField(default=dict)
    contaminated = models.BooleanField(default=False)
    contamination_note = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["domain__position", "number", "slug"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["suite", "number"], name="task_number_once_per_suite"),
            models.CheckConstraint(condition=models.Q(state__in=TaskState.values), name="task_state_known"),
            models.CheckConstraint(condition=models.Q(suite__in=Suite.values), name="task_suite_known"),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("task", kwargs={"slug": self.slug})


class Size(models.TextChoices):
    """Small builds are for tests of plumbing: their scores never rank."""

    FULL = "full", _("full")
    SMALL = "small", _("small")


class SeedKind(models.TextChoices):
    """Whether whoever has the source of the portal can build the answers too."""

    PUBLIC = "public", _("public: answers can be rebuilt by anyone")
    SECRET = "secret", _("secret: drawn by this installation")
    BROUGHT = "brought", _("brought by its authors")


class TaskVersion(models.Model):
    """What agents and evaluator see, frozen: a trigger refuses any change but publication and retirement."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    manifest = models.JSONField()
    description = models.TextField()
    hint_sealed = models.BinaryField(null=True)
    public_blob = models.CharField(max_length=200)
    public_sha256 = models.CharField(max_length=64)
    public_bytes = models.PositiveBigIntegerField()
    sealed_blob = models.CharField(max_length=200)
    sealed_sha256 = models.CharField(max_length=64)
    sealed_bytes = models.PositiveBigIntegerField()
    size = models.CharField(max_length=10, choices=Size.choices, default=Size.FULL)
    seed_kind = models.CharField(max_length=10, choices=SeedKind.choices, default=SeedKind.BROUGHT)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    published_at = models.DateTimeField(null=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["task", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["task", "number"], name="task_version_number_once"),
            models.UniqueConstraint(fields=["task", "digest"], name="task_version_digest_once"),
            models.CheckConstraint(condition=models.Q(size__in=Size.values), name="task_version_size_known"),
        ]

    def __str__(self) -> str:
        return f"{self.task.slug} v{self.number}"

    @property
    def has_hint(self) -> bool:
        return self.hint_sealed is not None


class ScoringRevision(models.Model):
    """Formula and curves that turn raw metrics into points; a mended curve is a new revision, the old one stays."""

    task_version = models.ForeignKey(TaskVersion, on_delete=models.PROTECT, related_name="scoring_revisions")
    number = models.PositiveIntegerField()
    score = models.JSONField()
    reason = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["task_version", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["task_version", "number"], name="scoring_revision_number_once")
        ]

    def __str__(self) -> str:
        return f"scoring {self.number} of task version {self.task_version_id}"
