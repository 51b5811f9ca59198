"""Room: gymnode.remote. The command line of gymd. Each verb loads its own part only: gymd has to stay small.

gymd serve|connect|doctor [--home DIR] [--root DIR]     gymd keeper FD FD     gymd version
"""

from __future__ import annotations

import importlib
import sys

_VERBS = {
    "serve": "gymnode.remote.serving",
    "connect": "gymnode.remote.bridge",
    "keeper": "gymnode.remote.keeper",
    "doctor": "gymnode.remote.doctor",
    "version": "gymnode.remote.version",
}


def main() -> None:
    """Entry point of the zipapp: hands the remaining words to the verb's `verb_main`."""
    words = sys.argv[1:]
    if not words or words[0] not in _VERBS:
        sys.exit(f"gymd: one of {', '.join(_VERBS)}, then --home DIR and --root DIR")
    importlib.import_module(_VERBS[words[0]]).verb_main(words[1:])
