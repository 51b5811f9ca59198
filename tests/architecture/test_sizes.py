"""Size budgets of the house: files, functions, parameters, templates, styles and scripts. Offenders are printed."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE, FUNCTION, PARAMETERS, VIEW, JOB, TEST, TEMPLATE, FRONT = 400, 40, 6, 15, 5, 25, 150, 250
# An exception is a line with a reason.
EXCEPTIONS: dict[str, str] = {}


def tracked(*endings: str) -> Iterator[Path]:
    """Files of the project (tracked or about to be) with one of `endings`."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listing.stdout.splitlines():
        if name.endswith(endings) and (ROOT / name).is_file() and "/migrations/" not in name:
            yield ROOT / name


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring and decorators."""
    body = node.body
    if ast.get_docstring(node) is not None:
        body = body[1:] or body
    return (node.end_lineno or node.lineno) - body[0].lineno + 1


def limit_of(path: Path) -> int:
    relative = path.relative_to(ROOT).as_posix()
    if relative.startswith("tests/e2e"):
        return 400
    if relative.startswith("tests/"):
        return TEST
    if path.name == "views.py" or "/views/" in relative:
        return VIEW
    return JOB if path.name == "jobs.py" else FUNCTION


def report(offenders: list[str]) -> None:
    left = [line for line in offenders if line.split(" ", 1)[0] not in EXCEPTIONS]
    assert not left, "\n".join(["over budget:", *sorted(left)])


def test_no_file_is_longer_than_its_budget() -> None:
    budgets = {".py": FILE, ".html": TEMPLATE, ".css": FRONT, ".js": FRONT}
    offenders = []
    for path in tracked(*budgets):
        lines = len(path.read_text().splitlines())
        if lines > budgets[path.suffix]:
            offenders.append(f"{path.relative_to(ROOT)} {lines} lines, at most {budgets[path.suffix]}")
    report(offenders)


def test_no_function_is_longer_than_its_budget() -> None:
    offenders = []
    for path in tracked(".py"):
        for node in functions(path):
            if length(node) > limit_of(path):
                offenders.append(f"{path.relative_to(ROOT)}:{node.name} {length(node)} lines, at most {limit_of(path)}")
    report(offenders)


def test_no_function_takes_more_than_six_parameters() -> None:
    offenders = []
    for path in tracked(".py"):
        if path.relative_to(ROOT).parts[0] == "tests":
            continue
        for node in functions(path):
            names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            count = len([name for name in names if name not in {"self", "cls"}])
            if count > PARAMETERS:
                offenders.append(f"{path.relative_to(ROOT)}:{node.name} {count} parameters, at most {PARAMETERS}")
    report(offenders)


def test_packages_re_export_nothing() -> None:
    offenders = [str(path.relative_to(ROOT)) for path in tracked("__init__.py") if path.read_text().strip()]
    assert not offenders, f"these should be empty: {offenders}"
