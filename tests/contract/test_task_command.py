"""`manage.py task`: the doors to recipes and to the evaluator, with real processes and no database."""

import json
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

FILTERING = "worked-example-filtering-nano"


@pytest.fixture
def home(settings, tmp_path: Path) -> Path:
    """An instance of its own, whose task environment is this interpreter."""
    settings.TASK_ENV, settings.INSTANCE = Path(sys.prefix), tmp_path / "instance"
    settings.PACKAGES = tmp_path / "instance" / "packages"
    return tmp_path


def test_a_task_is_built_checked_and_packed(home: Path, capfd: pytest.CaptureFixture[str]):
    call_command("task", "build", FILTERING, "--size", "small")
    call_command("task", "check", FILTERING)
    call_command("task", "pack", home / "instance" / "packages" / FILTERING / "plain", "--out", home / "packed")
    said = capfd.readouterr().out
    assert "drawing the world: small, public seed, draw 0" in said
    assert f"{FILTERING}: no faults" in said
    assert {path.name for path in (home / "packed").iterdir()} == {
        "public.tar",
        "sealed.age",
        "manifest.json",
        "digest",
    }


def test_the_secret_seed_is_drawn_once_and_kept_to_ourselves(home: Path):
    for name in ("first", "second"):
        call_command("task", "build", FILTERING, "--seed", "secret", "--size", "small", "--out", home / name)
    kept = home / "instance" / "evaluator-keys" / "nano_seed"
    references = [home / name / "evaluation" / "references" / "test.json" for name in ("first", "second")]
    assert kept.stat().st_mode & 0o777 == 0o600
    assert len(kept.read_text()) == 64
    assert references[0].read_bytes() == references[1].read_bytes()


def test_a_guessable_seed_is_refused_by_the_recipe(home: Path, capfd: pytest.CaptureFixture[str]):
    with pytest.raises(CommandError, match="exit code 2"):
        call_command("task", "build", FILTERING, "--seed", "7", "--size", "small", "--out", home / "package")
    assert "128 bits at least" in capfd.readouterr().err


def test_a_shipped_task_that_was_not_built_says_what_builds_it(home: Path):
    with pytest.raises(CommandError, match=f"make it with `manage.py task build {FILTERING}`"):
        call_command("task", "check", FILTERING)


def test_a_missing_task_environment_says_what_makes_it(home: Path, settings):
    settings.TASK_ENV = home / "nowhere"
    with pytest.raises(CommandError, match="make install"):
        call_command("task", "build", FILTERING, "--out", home / "package")


def test_faults_of_a_package_end_the_command_with_an_error(home: Path, capfd: pytest.CaptureFixture[str]):
    with pytest.raises(CommandError, match="task check ended with exit code 1"):
        call_command("task", "check", home / "nothing")
    assert "1 fault" in capfd.readouterr().out


@pytest.mark.parametrize("metric", ["accuracy", "predictive_entropy"])
def test_a_new_package_works_before_anything_is_replaced(home: Path, metric: str, capfd: pytest.CaptureFixture[str]):
    call_command("task", "new", "alice/reversal", "--metric", metric, "--out", home / "own")
    call_command("task", "check", home / "own")
    call_command("task", "calibrate", home / "own", "--runs", "1")
    result = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert result["ok"]
    assert [row["mean"] for row in result["rows"][:2]] == pytest.approx([0, 80], abs=0.1)
