"""Task versions are frozen, sealed and scored by revisions that can be mended."""

import io
import tarfile
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from evaluator.manifest import ScoreRule
from portal.catalog.models import ScoringRevision, SeedKind, Suite, TaskState, TaskVersion
from portal.catalog.packed import packed_read
from portal.catalog.selectors import (
    hint_open,
    score_rule,
    scoring_current,
    version_current,
    version_manifest,
    versions_runnable,
    workspace_tar,
)
from portal.catalog.services import TaskNotYours, scoring_revision_add, task_version_import, version_retire
from portal.core.blobs import blobs
from portal.core.errors import Conflict, Missing
from portal.core.secrets import VaultClosed
from tests.site.catalog.packages import HINT, REFERENCE, packed_folder


def again(tmp_path: Path, **changes) -> TaskVersion:
    name = str(abs(hash(repr(changes))))
    return task_version_import(packed=packed_read(packed_folder(tmp_path / name, manifest=changes)), by=None)


def test_a_shipped_package_becomes_a_published_task_with_its_first_version(version: TaskVersion):
    task = version.task
    assert (task.slug, task.title, task.domain.code, task.state) == ("example-task", "An example", "LD", "published")
    assert (version.number, version.size, version.seed_kind) == (1, "full", SeedKind.PUBLIC)
    assert version_manifest(version).outputs[0].path == "data/outputs/predictions.csv"
    assert score_rule(scoring_current(version)).formula == "acc * 100"
    assert versions_runnable() == (version,)


def test_the_same_package_again_is_the_same_version(version: TaskVersion, tmp_path: Path):
    assert again(tmp_path) == version
    assert TaskVersion.objects.count() == ScoringRevision.objects.count() == 1


def test_another_package_of_the_task_is_the_next_version_and_new_runs_get_it(version: TaskVersion, tmp_path: Path):
    second = again(tmp_path, title="An example, mended")
    assert (second.task_id, second.number, second.task.title) == (version.task_id, 2, "An example, mended")
    assert version_current(version.task) == second
    version_retire(version=second, by=None)
    assert version_current(version.task) == version


def test_a_small_build_is_run_only_where_there_is_no_full_one(version: TaskVersion, tmp_path: Path):
    again(tmp_path, size="small")
    assert version_current(version.task) == version
    version_retire(version=version, by=None)
    assert version_current(version.task).size == "small"
    assert version_current(version.task, full_only=True) is None


def test_versions_of_secret_and_public_seed_stand_side_by_side(version: TaskVersion, tmp_path: Path):
    secret = again(tmp_path, build={"seed": "secret"})
    assert version_current(version.task, seed=SeedKind.PUBLIC) == version
    assert version_current(version.task, seed=SeedKind.SECRET) == secret


def test_the_database_refuses_to_change_a_version_or_a_revision(version: TaskVersion):
    for rows in (TaskVersion.objects, ScoringRevision.objects):
        field = "description" if rows.model is TaskVersion else "reason"
        with pytest.raises(IntegrityError, match="is frozen"), transaction.atomic():
            rows.update(**{field: "another text"})


def test_a_mended_curve_is_a_new_revision_and_the_old_one_stays(version: TaskVersion, alice):
    mended = score_rule(scoring_current(version)).model_copy(update={"formula": "acc * 90"})
    revision = scoring_revision_add(version=version, score=mended, reason="the cap was too generous", by=alice)
    assert (revision.number, scoring_current(version)) == (2, revision)
    assert [score_rule(row).formula for row in version.scoring_revisions.all()] == ["acc * 90", "acc * 100"]


def test_a_revision_over_other_metrics_is_refused(version: TaskVersion, alice):
    other = ScoreRule.model_validate({"metrics": {"loss": {"direction": "down"}}, "formula": "loss * 100"})
    with pytest.raises(Conflict, match="list of metrics"):
        scoring_revision_add(version=version, score=other, reason="", by=alice)


def test_the_workspace_is_the_public_workspace_alone(version: TaskVersion):
    with tarfile.open(fileobj=io.BytesIO(workspace_tar(version))) as tar:
        assert tar.getnames() == ["task/run.py", "data/train.csv"]
        assert tar.extractfile("task/run.py").read() == b"print(0.5)\n"
        assert {(item.mode, item.mtime, item.uid) for item in tar} == {(0o644, 0, 0)}


def test_the_hint_opens_for_workers_only(version: TaskVersion, settings):
    assert version.has_hint
    assert hint_open(version) == HINT
    settings.VAULT_IDENTITY_PATH = None
    with pytest.raises(VaultClosed):
        hint_open(version)


def test_a_copy_of_database_and_blobs_holds_neither_reference_nor_hint(version: TaskVersion, tmp_path: Path):
    """A1"""
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM catalog_taskversion t UNION ALL SELECT t::text FROM catalog_task t")
        rows = "\n".join(row[0] for row in cursor.fetchall()).encode()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "blobs").rglob("*") if path.is_file())
    for secret in (REFERENCE, HINT.encode()):
        assert secret not in rows + stored
        assert secret.hex().encode() not in rows
    assert b"age-encryption.org/v1" in stored
    assert blobs().exists(version.sealed_blob)


def test_an_unknown_domain_is_named_and_nothing_is_stored(tmp_path: Path):
    folder = packed_folder(tmp_path / "p", manifest={"domain": "alchemy"})
    with pytest.raises(Missing, match="domain alchemy"):
        task_version_import(packed=packed_read(folder), by=None)
    assert not (tmp_path / "blobs").exists()


def test_a_brought_task_is_a_draft_of_its_team_and_nobody_elses(version: TaskVersion, tmp_path: Path, team, alice):
    folder = packed_folder(tmp_path / "b", manifest={"id": "alice/own-task"})
    mine = task_version_import(packed=packed_read(folder), by=alice, suite=Suite.COMMUNITY, owner_id=team.pk)
    assert (mine.task.slug, mine.task.state, mine.published_at) == ("alice--own-task", TaskState.DRAFT, None)
    assert mine.seed_kind == SeedKind.BROUGHT
    stolen = packed_folder(tmp_path / "s", manifest={"title": "Mine now"})
    with pytest.raises(TaskNotYours):
        task_version_import(packed=packed_read(stolen), by=alice, suite=Suite.COMMUNITY, owner_id=team.pk)


def test_the_command_says_what_became_of_the_package(tmp_path: Path):
    out = io.StringIO()
    call_command("task_import", str(packed_folder(tmp_path / "p")), stdout=out)
    assert out.getvalue().startswith("example-task v1 ")
    (tmp_path / "p" / "digest").unlink()
    with pytest.raises(CommandError, match="digest: missing"):
        call_command("task_import", str(tmp_path / "p"))
