"""Room: evaluator. The command line, `python -m evaluator VERB`. Each verb is a door: arguments in, one call, print."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluator import keys, verbs
from evaluator.calibrating import CalibrationBroken
from evaluator.sandbox import SandboxMissing
from evaluator.seal import SealBroken
from evaluator.taskenv import TaskEnvMissing
from evaluator.yamlcore import Faults

EXIT_FAULTS, EXIT_USAGE, EXIT_NO_SANDBOX, EXIT_ENVIRONMENT = 1, 2, 69, 78


def _sandboxed() -> argparse.ArgumentParser:
    """The options of all verbs that open a sandbox."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--task-env", type=Path, default=Path(sys.prefix), help="venv whose python runs tasks")
    parser.add_argument("--level", type=int, choices=(1, 2), help="take just this sandbox level")
    parser.add_argument("--bwrap", default="", help="bubblewrap's path (default: the system's, else the wheel's)")
    parser.add_argument("--kernel", default="", help="OPENBLAS_CORETYPE of this installation")
    parser.add_argument("--work", type=Path, help="folder for fresh sandboxes (others may pass through it)")
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluator", description="Scores outputs in a sandbox.")
    commands = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    sandboxed = _sandboxed()
    verb = commands.add_parser("check", help="every fault of a package folder")
    verb.add_argument("folder", type=Path)
    verb = commands.add_parser("pack", help="check, then write public.tar, sealed.age, manifest.json, digest")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--recipient", action="append", required=True, help="age1... or its file; repeatable")
    verb.add_argument("--out", type=Path, required=True)
    verb = commands.add_parser("calibrate", parents=[sandboxed], help="run the solutions and score them")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--runs", type=int, default=3)
    verb.add_argument("--only", action="append", default=[], help="just this solution; repeatable")
    verb = commands.add_parser("score", parents=[sandboxed], help="score a folder of outputs, without a queue")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--outputs", type=Path, required=True, help="a workspace, or a flat folder")
    verb.add_argument("--seed", type=int, default=0)
    commands.add_parser("probe", parents=[sandboxed], help="which sandbox level works here")
    verb = commands.add_parser("keygen", help="keys of an evaluator")
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--with-site", action="store_true", help="the site's signing pair too")
    verb.add_argument("--rotate", action="store_true", help="a new sealing key beside the old ones")
    verb = commands.add_parser("reseal", help="seal a hidden part to other keys")
    verb.add_argument("sealed", type=Path)
    verb.add_argument("--keys", type=Path, required=True)
    verb.add_argument("--recipient", action="append", required=True)
    verb.add_argument("--out", type=Path, required=True)
    _serve(commands.add_parser("serve", parents=[sandboxed], help="answer score requests from the queue"))
    return parser


def _serve(verb: argparse.ArgumentParser) -> None:
    broker = os.environ.get("EVALUATOR_BROKER")
    verb.add_argument("--broker", default=broker, required=not broker, help="redis://... (or $EVALUATOR_BROKER)")
    verb.add_argument("--keys", type=Path, required=True)
    verb.add_argument("--site-key", type=Path, help="the site's public key (default: KEYS/site.pub.pem)")
    verb.add_argument("--blobs", type=Path, help="addresses that are paths must lie below this folder")
    verb.add_argument("--idle-s", type=float, default=60, help="silence after which an evaluator counts as dead")
    verb.add_argument("--name", help="consumer name in the group (default: host and process)")


def _serve_verb(args: argparse.Namespace) -> int:
    # By name: all other verbs work where no queue's client is installed, and load none.
    served: int = importlib.import_module("evaluator.worker").serve_verb(args)
    return served


VERBS = {
    "check": verbs.check_verb,
    "pack": verbs.pack_verb,
    "calibrate": verbs.calibrate_verb,
    "score": verbs.score_verb,
    "probe": verbs.probe_verb,
    "keygen": keys.keygen_verb,
    "reseal": keys.reseal_verb,
    "serve": _serve_verb,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done, 1 faults or scores off, 2 wrong call, 69 no sandbox here, 78 environment refused."""
    args = _parser().parse_args(arguments)
    try:
        return VERBS[args.verb](args)
    except Faults as error:
        for fault in error.faults:
            print(fault)
        print(f"{len(error.faults)} fault{'s' * (len(error.faults) != 1)}")
        return EXIT_FAULTS
    except (SandboxMissing, TaskEnvMissing) as error:
        print(error, file=sys.stderr)
        return EXIT_NO_SANDBOX
    except (CalibrationBroken, SealBroken, OSError) as error:
        print(f"{args.verb}: {error}", file=sys.stderr)
        return EXIT_FAULTS


if __name__ == "__main__":
    sys.exit(main())
