"""Room: gymnode.remote. The release of gymd."""

from __future__ import annotations

import json
import sys
from typing import List

from gymnode.remote.frames import PROTOCOL

VERSION = "0.1.0"


def verb_main(_words: List[str]) -> None:
    """Print release and protocol as JSON."""
    sys.stdout.write(json.dumps({"version": VERSION, "protocol": PROTOCOL}) + "\n")
