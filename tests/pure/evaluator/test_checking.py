"""Every fault of a package folder in one list, each with its place."""

import os
import zipfile
from pathlib import Path

import pytest

from evaluator.archives import archive_unpack
from evaluator.checking import check
from evaluator.yamlcore import Faults
from tests.pure.evaluator.packages import CANARY, DESCRIPTION, MANIFEST, REFERENCE, package_write


def faults(folder: Path) -> str:
    with pytest.raises(Faults) as caught:
        check(folder)
    return str(caught.value)


def test_a_package_without_a_fault_passes_flat_and_in_one_wrapping_folder(tmp_path: Path) -> None:
    """F1"""
    assert check(package_write(tmp_path / "flat")).manifest.id == "example-task"
    package_write(tmp_path / "wrapped" / "inside")
    (tmp_path / "wrapped" / "__MACOSX").mkdir()
    assert check(tmp_path / "wrapped").folder.name == "inside"


@pytest.mark.parametrize(("prefixes", "good"), [(("",), True), (("top/",), True), (("one/", "two/"), False)])
def test_a_zip_may_have_one_top_folder_but_not_two(tmp_path: Path, prefixes: tuple[str, ...], good: bool) -> None:
    """F1"""
    source = package_write(tmp_path / "source")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for prefix in prefixes:
            for path in source.rglob("*"):
                archive.write(path, prefix + path.relative_to(source).as_posix())
    (tmp_path / "into").mkdir()
    archive_unpack(tmp_path / "a.zip", tmp_path / "into")
    if good:
        assert check(tmp_path / "into").manifest.id == "example-task"
    else:
        assert "found: one, two" in faults(tmp_path / "into")


def test_all_faults_come_in_one_list(tmp_path: Path) -> None:
    folder = package_write(
        tmp_path,
        task_DOT_yaml=MANIFEST.replace("gpus: 0", "gpu: 0"),
        task_description_DOT_md="## Task\n1. do\n2. this\n3. then\n",
        evaluation__evaluate_DOT_py="",
        hint_DOT_md=None,
        notes_DOT_txt="x",
        workspace___DOT_git__config="x",
    )
    found = faults(folder)
    wanted = ["task.yaml:7: nodes[0].gpu: unknown key", "has no section `## Motivation`", "numbered recipe"]
    wanted += ["must end by asking to beat", "notes.txt: doesn't belong", "workspace/.git: the history may tell"]
    assert all(part in found for part in wanted), found


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("workspace/inner.zip", "an archive within"),
        ("workspace/__MACOSX/x", "left by an archiver"),
        ("workspace/.DS_Store", "left by a file manager"),
        ("workspace/task/TRAIN.py", "differs from 'TRAIN.py' only in case"),
        ("workspace/a\\b", "backslash"),
        ("workspace/" + "/".join("d" * 20) + "/x", "folders deep"),
        ("workspace/data/outputs/predictions.csv", "lies in the workspace already"),
        ("README.txt", "doesn't belong"),
    ],
)
def test_a_file_that_must_not_be_there_is_told(tmp_path: Path, name: str, told: str) -> None:
    path = package_write(tmp_path) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    assert told in faults(tmp_path)


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../evaluation/references/truth.csv", "../../outside", "data", "nowhere"]
)
def test_links_out_to_folders_and_to_nothing_are_told(tmp_path: Path, target: str) -> None:
    (package_write(tmp_path) / "workspace" / "link").symlink_to(target)
    assert "workspace/link: a link" in faults(tmp_path)


def test_a_pipe_and_a_name_that_is_not_utf8_are_told(tmp_path: Path) -> None:
    package_write(tmp_path)
    os.mkfifo(tmp_path / "workspace" / "pipe")
    (tmp_path / "workspace" / os.fsdecode(b"a\xff")).write_text("x")
    found = faults(tmp_path)
    assert "workspace/pipe: neither a file nor a folder" in found
    assert "not UTF-8" in found


@pytest.mark.parametrize(
    "text",
    [
        REFERENCE,
        REFERENCE.replace(",", ";"),
        REFERENCE.replace("\n", "\r\n"),
        "\n".join(reversed(REFERENCE.splitlines()[3:])),
    ],
    ids=["exactly", "with other separators", "with other line ends", "nearly, in another order"],
)
def test_references_that_lie_in_the_workspace_are_told(tmp_path: Path, text: str) -> None:
    """F6"""
    package_write(tmp_path, workspace__data__old_DOT_csv=text)
    assert "evaluation/references/truth.csv:" in faults(tmp_path)
    assert "workspace/data/old.csv" in faults(tmp_path)


def test_a_reference_solution_in_the_workspace_is_told(tmp_path: Path) -> None:
    text = f"# {CANARY}\necho better, and long enough to count\n"
    package_write(tmp_path, solutions__reference__run_DOT_sh=text, workspace__task__old_DOT_sh=text)
    found = faults(tmp_path)
    assert "solutions/reference/run.sh: also lies in the workspace" in found
    assert "workspace/task/old.sh: holds the canary" in found


def test_a_path_that_exists_on_one_level_only_is_told(tmp_path: Path) -> None:
    text = f"# {CANARY}\nopen('/outputs/data/outputs/predictions.csv')\nopen('../outputs/x')\n"
    package_write(tmp_path, evaluation__evaluate_DOT_py=text)
    assert "evaluation/evaluate.py:2: /outputs exists on sandbox level 1 only" in faults(tmp_path)


def test_a_canary_that_is_missing_is_told(tmp_path: Path) -> None:
    package_write(tmp_path, task_DOT_yaml=MANIFEST.replace(f"canary: {CANARY}\n", ""))
    assert "canary: missing" in faults(tmp_path)
    package_write(tmp_path, evaluation__evaluate_DOT_py="pass")
    assert "evaluation/evaluate.py: lacks the canary" in faults(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("0.50, the reference 0.80", "bad, the reference good", "no number to beat"),
        ("by whatever method you like", "", "must end by asking"),
        ("Predict y.", "First, load it.\nThen, fit a tree.\n", "prescribes steps"),
        ("## Data", "## Stuff", "no section `## Data`"),
    ],
)
def test_a_description_against_the_rules_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    package_write(tmp_path, task_description_DOT_md=DESCRIPTION.replace(old, new))
    assert told in faults(tmp_path)
