"""Room: tasks. The command line that every recipe has, and how it says what it is at."""

import argparse
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tasks.common.seeds import PUBLIC, SeedRefusedError, seed_parse


class Size(StrEnum):
    """`small` is for tests of plumbing: nothing about its scores is promised, and they never rank."""

    FULL = "full"
    SMALL = "small"


@dataclass(frozen=True)
class Order:
    """What to build. `public` says that the seed is the one whose curve is committed."""

    secret: bytes
    public: bool
    size: Size
    out: Path
    measure: bool

    @property
    def measures(self) -> bool:
        """Whether baseline and reference are run: always where no committed curve fits, never for a small package."""
        return self.size is Size.FULL and (self.measure or not self.public)

    @property
    def seed_word(self) -> str:
        return "public" if self.public else "secret"


def order_parse(description: str) -> Order:
    """Read the command line. A seed of `-` is read from standard input, which no list of processes shows."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--seed", default=PUBLIC, help="public, or 32 to 128 hexadecimal digits, or - for standard input"
    )
    parser.add_argument("--size", type=Size, choices=list(Size), default=Size.FULL)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write the package to")
    parser.add_argument("--measure", action="store_true", help="measure the public seed's curve again")
    arguments = parser.parse_args()
    text = sys.stdin.readline().strip() if arguments.seed == "-" else arguments.seed
    try:
        secret = seed_parse(text)
    except SeedRefusedError as error:
        parser.error(str(error))
    return Order(secret, text == PUBLIC, arguments.size, arguments.out, arguments.measure)


def progress(text: str) -> None:
    """One line of progress, at once."""
    print(text, flush=True)
