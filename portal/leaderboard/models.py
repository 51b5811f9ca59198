"""Room: portal.leaderboard. Boards and what stands on them. Entries are derived: `entry_rebuild` makes them anew."""

from typing import ClassVar

from django.db import models
from django.urls import reverse
from django.utils.translation import gettext_lazy as _


class HintRule(models.TextChoices):
    """What a board says of hints: not offered, offered at a price, or given in the task text from the start."""

    NONE = "none", _("no hint")
    PENALISED = "penalised", _("hint at a price")
    UPFRONT = "upfront", _("hint given upfront")


class Tier(models.TextChoices):
    """How far a row can be trusted."""

    REPORTED = "reported", _("reported")
    SCORED_HERE = "scored_here", _("scored here")
    RUN_HERE = "run_here", _("run here")


class Board(models.Model):
    """A frozen competition: tasks, hint rule, repeats. A change makes a new season; the old one stays.

    `version` grows with every change of its rows, columns or their teams' names: the database sees to that (triggers).
    """

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=120)
    about = models.CharField(max_length=400, blank=True)
    season = models.PositiveSmallIntegerField(default=1)
    hint_rule = models.CharField(max_length=12, choices=HintRule.choices, default=HintRule.NONE)
    repeats = models.PositiveSmallIntegerField(default=1)
    answers_public = models.BooleanField(default=False)
    open_for_runs = models.BooleanField(default=True)
    position = models.PositiveSmallIntegerField(default=0)
    version = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["position", "slug"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(hint_rule__in=HintRule.values), name="board_hint_rule_known"),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("board", args=[self.slug])


class BoardTask(models.Model):
    """One column of a board: a task, frozen in one version where runs here count (none: reported results only)."""

    board = models.ForeignKey(Board, on_delete=models.CASCADE, related_name="columns")
    task = models.ForeignKey("catalog.Task", on_delete=models.PROTECT, related_name="board_columns")
    version = models.ForeignKey("catalog.TaskVersion", null=True, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering: ClassVar = ["board", "position"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["board", "task"], name="board_task_once")]

    def __str__(self) -> str:
        return f"{self.board_id}: {self.task_id}"


class LeaderboardEntry(models.Model):
    """Team x agent config version x engine version on a board; or a row that others reported.

    `mean_final` and `mean_best` are over all tasks of the board (one not done counts 0); `stated_*` are means that a
    source stated without task rows: shown as stated, never ranked. Money in USD, time in hours.
    """

    board = models.ForeignKey(Board, on_delete=models.CASCADE, related_name="entries")
    key = models.CharField(max_length=160)
    team = models.ForeignKey("accounts.Team", null=True, on_delete=models.PROTECT, related_name="entries")
    config = models.ForeignKey("runs.AgentConfig", null=True, on_delete=models.PROTECT, related_name="entries")
    engine_version = models.CharField(max_length=20, blank=True)
    agent = models.CharField(max_length=120)
    model = models.CharField(max_length=160)
    source = models.CharField(max_length=200, blank=True)
    tier = models.CharField(max_length=12, choices=Tier.choices)
    ranked = models.BooleanField(default=True)
    note = models.CharField(max_length=300, blank=True)
    badges = models.JSONField(default=list)
    mean_final = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    mean_best = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    done_final = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    half_width = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    stated_final = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    stated_best = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    tasks_done = models.PositiveSmallIntegerField(default=0)
    n_runs = models.PositiveIntegerField(default=0)
    usd = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    hours = models.FloatField(null=True)
    tokens = models.PositiveBigIntegerField(null=True)
    scored_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["board", "-mean_final", "scored_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["board", "key"], name="entry_once_per_board"),
            models.CheckConstraint(condition=models.Q(tier__in=Tier.values), name="entry_tier_known"),
            models.CheckConstraint(
                condition=models.Q(ranked=False) | models.Q(mean_final__isnull=False), name="ranked_entry_has_a_mean"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} + {self.model} on {self.board_id}"

    def get_absolute_url(self) -> str:
        return reverse("entry", args=[self.board.slug, self.pk])


class EntryCell(models.Model):
    """One task of an entry: means over its repeats, and the runs behind them."""

    entry = models.ForeignKey(LeaderboardEntry, on_delete=models.CASCADE, related_name="cells")
    task = models.ForeignKey("catalog.Task", on_delete=models.PROTECT, related_name="cells")
    final = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    best = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    n = models.PositiveSmallIntegerField(default=1)
    spread = models.DecimalField(max_digits=9, decimal_places=6, null=True)
    usd = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    hours = models.FloatField(null=True)
    runs = models.JSONField(default=list)

    class Meta:
        ordering: ClassVar = ["entry", "task__number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["entry", "task"], name="entry_task_once")]

    def __str__(self) -> str:
        return f"{self.entry_id}: {self.task_id}"
