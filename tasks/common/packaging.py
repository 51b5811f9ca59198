"""Room: tasks. Writing a task package below one folder: files, canaries, the manifest from its template."""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from tasks.common.seeds import SeedTree

HIDDEN = ("evaluation", "solutions")
COMMENTED = (".py", ".sh")
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*_cache")


@dataclass(frozen=True)
class PackageFolder:
    """The folder a package is written to. Hidden text files end with the task's canary, a line of its own."""

    root: Path
    canary: str

    def text(self, path: str, content: str) -> None:
        """Write one text file; folders are made."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")

    def lines(self, path: str, lines: Iterable[str]) -> None:
        self.text(path, "".join(f"{line}\n" for line in lines))

    def json(self, path: str, value: Mapping[str, Any]) -> None:
        """Write one JSON file; a hidden one gets a field `canary`."""
        hidden = {"canary": self.canary} if path.startswith(HIDDEN) else {}
        self.text(path, json.dumps({**value, **hidden}) + "\n")

    def tree(self, source: Path, path: str = ".") -> None:
        """Copy a file, or a folder with all that lies in it, to `path` of the package."""
        target = self.root / path
        if source.is_dir():
            shutil.copytree(source, target, ignore=IGNORED, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def finish(self) -> None:
        """Put the canary into every hidden script, and make the solutions executable."""
        for folder in HIDDEN:
            for file in sorted((self.root / folder).rglob("*")):
                if file.suffix in COMMENTED:
                    with file.open("a", encoding="utf-8") as script:
                        script.write(f"# {self.canary}\n")
                if file.suffix == ".sh":
                    file.chmod(0o755)


def package_begin(folder: Path, task: str, seeds: SeedTree) -> PackageFolder:
    """An empty folder for a package. An older package there is replaced; anything else is left alone."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "task.yaml").exists():
        message = f"{folder} holds something that is no task package; name an empty folder"
        raise SystemExit(message)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return PackageFolder(folder, f"canary {task} {seeds.key('canary').hex()[:32]}")


def filled(template: Path, values: Mapping[str, object]) -> str:
    """A text whose `$names` are replaced; a name left over raises KeyError."""
    return Template(template.read_text(encoding="utf-8")).substitute(
        {name: str(value) for name, value in values.items()}
    )
