"""The selection to beat: 800 random rows of the commonest style, written to data/outputs/selection.txt.

Usage, from the workspace: python task/select_style.py [--seed N]
"""

import argparse
import json
import random
import re
from pathlib import Path

from selection import MOST_IDS

WORKSPACE = Path(__file__).resolve().parents[1]
ALIGNED = re.compile(r"\.*[0-7](\.[0-7])+#[0-7]")


def main() -> None:
    parser = argparse.ArgumentParser(description="Select 800 random rows of the commonest style")
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    with (WORKSPACE / "data" / "pool.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    aligned = [row["id"] for row in rows if ALIGNED.fullmatch(row["worked"])]
    chosen = random.Random(seed).sample(aligned, min(MOST_IDS, len(aligned)))  # noqa: S311
    target = WORKSPACE / "data" / "outputs" / "selection.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{row}\n" for row in chosen), encoding="utf-8")
    print(f"{len(chosen)} of {len(aligned)} aligned rows selected")


if __name__ == "__main__":
    main()
