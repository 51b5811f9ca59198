"""A copy of the database, of all blobs and of all logs gives nobody a reference: they are sealed to the evaluator."""

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from portal.settings.instance import instance_of
from tests.e2e.stack import ROOT, Stack, wait_for

BUILDS = (("grpo-entropy-nano", "small"), ("worked-example-filtering-nano", "full"))
CONFIG = "name: reader\nagent: react\nmodel: {provider: scripted, name: baseline}\ntools: innovatorbench\nhint: none\n"
LEAST, WIDTH, EVERY = 24, 64, 4096
# The evaluator's own: its keys, and what it has opened. The database's files are read through the database.
EVALUATORS = ("evaluator-keys", "sandboxes/*/opened")
LEFT_OUT = {"evaluator-keys", "sandboxes", "postgres"}
GZIP = b"\x1f\x8b"


@pytest.fixture(scope="module", params=BUILDS, ids=[task for task, _size in BUILDS])
def package(request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The task in plain, as the site built it; a run has been scored by then, so that all that is stored is there."""
    task, size = request.param
    out = tmp_path_factory.mktemp("plain") / task
    python = str(instance_of(ROOT).task_env / "bin" / "python")
    command = [python, str(ROOT / "tasks" / task / "recipe.py"), "--seed", "public", "--size", size]
    subprocess.run([*command, "--out", str(out)], cwd=ROOT, check=True, capture_output=True)
    with stack.person() as person:
        (run,) = person.submit(CONFIG, [task])
        wait_for(lambda: person.run(run.id)["status"] == "finished", 240, f"the run ends\n{stack.log_tails()}")
    return out


@pytest.fixture(scope="module")
def held(stack: Stack, package: Path) -> dict[str, bytes]:
    """Everything that somebody who copies the site holds, by where it lies."""
    return dict([*tables(stack), *files(stack)])


def tables(stack: Stack) -> Iterator[tuple[str, bytes]]:
    """Every table as PostgreSQL copies it: text and bytes as they are, JSON as text."""
    with psycopg.connect(database_of(stack)) as connection:
        names = connection.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
        for (name,) in names.fetchall():
            with connection.cursor().copy(f"COPY {name} TO STDOUT (FORMAT binary)") as copy:
                yield f"table {name}", b"".join(bytes(part) for part in copy)


def database_of(stack: Stack) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IB_HOME", str(stack.home))
        return instance_of(ROOT).database_url


def files(stack: Stack) -> Iterator[tuple[str, bytes]]:
    """Blobs, packages, logs, the node and the evaluator's folders; compressed ones opened. The site works on: what goes
    while it is looked for is not stored.
    """
    for top, folders, names in os.walk(stack.home):
        if Path(top) == stack.home:
            folders[:] = [name for name in folders if name not in LEFT_OUT]
        for path in (Path(top, name) for name in names):
            with suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink():
                    data = path.read_bytes()
                    yield str(path), gzip.decompress(data) if data.startswith(GZIP) else data


def pieces(folder: Path) -> set[bytes]:
    """What would give a file away: its longer lines, or some stretches of one without lines."""
    found = set()
    for path in (each for each in folder.rglob("*") if each.is_file() and "__pycache__" not in each.parts):
        data = path.read_bytes()
        lines = {line.strip() for line in data.split(b"\n")} if b"\0" not in data else set()
        stretches = {data[at : at + WIDTH] for at in range(256, len(data) - WIDTH, EVERY)}
        found |= {piece for piece in lines | stretches if len(piece) >= LEAST and len(set(piece)) > 8}
    return found


def as_json(piece: bytes) -> bytes:
    return json.dumps(piece.decode("utf-8", "replace")).strip('"').encode()


def leaks(secrets: set[bytes], held: dict[str, bytes]) -> list[tuple[str, bytes]]:
    spelt = [(piece, as_json(piece)) for piece in secrets]
    return [
        (where, piece[:120])
        for where, data in held.items()
        for piece, escaped in spelt
        if piece in data or (escaped != piece and escaped in data)
    ]


def test_nothing_hidden_is_in_what_the_site_stores(package: Path, held: dict[str, bytes]) -> None:
    public = b"\n".join(path.read_bytes() for path in (package / "workspace").rglob("*") if path.is_file())
    public += b"".join((package / name).read_bytes() for name in ("task.yaml", "task_description.md", "hint.md"))
    # What a playbook has its agent write is no secret either.
    public += b"".join(path.read_bytes() for path in (ROOT / "tasks").glob("*/playbooks/*.yaml"))
    # Code that one task hides may lie in the workspace of another: the answers are what nobody may find.
    for pattern in ("common/**/*.py", "*/shared/**/*.py", "*/workspace/**/*.py"):
        public += b"\n".join(path.read_bytes() for path in (ROOT / "tasks").glob(pattern))
    hidden = pieces(package / "evaluation") | pieces(package / "solutions" / "reference")
    secrets = {piece for piece in hidden if piece not in public}
    assert len(secrets) > 50, "the package was expected to hide more than that"
    assert leaks(secrets, held) == []


def test_the_search_would_have_found_it(package: Path, held: dict[str, bytes]) -> None:
    """Public parts lie in the tables and in the blobs, and there the same search finds them."""
    lines = set(sorted(pieces(package / "workspace"))[::97])
    lines |= set((package / "task_description.md").read_bytes().split(b"\n")[:1])
    found = {where for where, _ in leaks(lines, held)}
    assert any(where.startswith("table") for where in found)
    assert any("/blobs/" in where for where in found)


def test_what_the_evaluator_has_opened_is_closed_to_others(stack: Stack, package: Path) -> None:
    folders = [path for pattern in EVALUATORS for path in stack.home.glob(pattern)]
    assert len(folders) >= 2
    assert {path.stat().st_mode & 0o077 for path in folders} == {0}
