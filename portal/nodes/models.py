"""Room: portal.nodes. Machines, who holds them, and what they measured. Rows only."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _


class NodeState(models.TextChoices):
    """`draining` finishes what runs and takes nothing new; `lost` was online and stopped answering."""

    ONLINE = "online", _("online")
    DRAINING = "draining", _("draining")
    OFFLINE = "offline", _("offline")
    LOST = "lost", _("lost")


class Level(models.TextChoices):
    """How a run is kept in on the node, best first."""

    NAMESPACE = "namespace", _("namespaces")
    LANDLOCK = "landlock", _("Landlock")
    PLAIN = "plain", _("none")


class Node(models.Model):
    """A machine reached over SSH. Private keys are sealed with age; only workers and the collector open them."""

    name = models.SlugField(max_length=60, unique=True)
    owner = models.ForeignKey("accounts.Team", null=True, on_delete=models.PROTECT, related_name="nodes")
    host = models.CharField(max_length=255)
    port = models.PositiveIntegerField(default=22)
    user = models.CharField(max_length=64)
    key_sealed = models.BinaryField()
    key_public = models.TextField()
    host_key = models.TextField(blank=True)
    offered_host_key = models.TextField(blank=True)
    jumps = models.JSONField(default=list)
    workspace_root = models.CharField(max_length=255, blank=True)
    python = models.CharField(max_length=255, default="python3")
    task_env = models.CharField(max_length=255, blank=True)
    gpus = models.PositiveSmallIntegerField(default=0)
    gpu_memory_gb = models.PositiveIntegerField(default=0)
    cpus = models.PositiveSmallIntegerField(default=1)
    memory_gb = models.PositiveIntegerField(default=1)
    labels = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    internet = models.BooleanField(default=False)
    capacity = models.PositiveSmallIntegerField(default=1)
    plain_allowed = models.BooleanField(default=False)
    state = models.CharField(max_length=10, choices=NodeState.choices, default=NodeState.OFFLINE)
    state_code = models.CharField(max_length=64, blank=True)
    state_facts = models.JSONField(default=dict)
    state_changed_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True)
    level = models.CharField(max_length=10, choices=Level.choices, blank=True)
    hello = models.JSONField(default=dict)
    doctor = models.JSONField(default=dict)
    doctor_at = models.DateTimeField(null=True)
    watch_cursor = models.BigIntegerField(default=0)
    boot_id = models.CharField(max_length=80, blank=True)
    lease_version = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(state__in=NodeState.values), name="node_state_known"),
            models.CheckConstraint(condition=models.Q(capacity__gte=1), name="node_holds_a_run"),
        ]

    def __str__(self) -> str:
        return self.name


class Lease(models.Model):
    """One run's hold on one node, for as long as `released_at` is empty."""

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="leases")
    team = models.ForeignKey("accounts.Team", on_delete=models.PROTECT, related_name="leases")
    run_key = models.CharField(max_length=64)
    role = models.CharField(max_length=40, default="main")
    position = models.PositiveSmallIntegerField(default=0)
    slot = models.PositiveSmallIntegerField()
    gpus = ArrayField(models.PositiveSmallIntegerField(), default=list)
    cpus = models.PositiveSmallIntegerField(default=0)
    memory_gb = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["run_key", "position"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["node", "slot"], condition=models.Q(released_at=None), name="one_lease_per_slot"
            ),
            models.UniqueConstraint(
                fields=["run_key", "position"], condition=models.Q(released_at=None), name="one_lease_per_place_in_run"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["run_key"])]

    def __str__(self) -> str:
        return f"{self.run_key} on node {self.node_id}"


class LeaseGpu(models.Model):
    """One GPU index of a live lease. The row goes with the lease, so the constraint is: one holder per device."""

    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, related_name="devices")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="+")
    index = models.PositiveSmallIntegerField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["node", "index"], name="one_holder_per_gpu")]

    def __str__(self) -> str:
        return f"GPU {self.index} of node {self.node_id}"


class Reservation(models.Model):
    """Nodes kept free for a run that needs several at once: small runs can't starve it. Lapses unless renewed."""

    run_key = models.CharField(max_length=64, unique=True)
    nodes = ArrayField(models.BigIntegerField())
    created_at = models.DateTimeField(auto_now_add=True)
    renewed_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["created_at", "id"]

    def __str__(self) -> str:
        return f"reservation of {self.run_key}"


class MachineSample(models.Model):
    """What a node measured at one moment; a series by node and time, every ten seconds."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField()
    cpu_percent = models.FloatField(null=True)
    load1 = models.FloatField(null=True)
    memory_used_mb = models.PositiveIntegerField(null=True)
    memory_total_mb = models.PositiveIntegerField(null=True)
    disk_used_gb = models.FloatField(null=True)
    disk_total_gb = models.FloatField(null=True)
    gpus = models.JSONField(default=list)

    class Meta:
        ordering: ClassVar = ["node", "at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["node", "at"], name="one_sample_per_moment")]

    def __str__(self) -> str:
        return f"node {self.node_id} at {self.at:%Y-%m-%d %H:%M:%S}"
