"""Room core: how numbers, times and sizes are written on every page. Pure: no Django, no state.

One place, so that a table, a header and a CSV can't disagree. `None` is unknown and becomes a dash, never a zero.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal

DASH = "–"
_KIB = 1024
_MOST_DIGITS = 15  # before the point; longer numbers would fill the page, and Decimal can't round them
_UNITS = ("bytes", "KB", "MB", "GB", "TB")

#: Domain slug -> code of its plotting symbol. A domain the page does not know has no symbol of its own.
DOMAIN_CODES = {
    "data-construction": "dc",
    "data-filtering": "df",
    "data-augmentation": "da",
    "loss-design": "ld",
    "reward-design": "rd",
    "scaffold-construction": "sc",
}


def clock_text(seconds: float | None) -> str:
    """`2292` -> `38:12`, `3600` -> `1:00:00`; negative counts as nothing."""
    number = _finite(seconds)
    if number is None:
        return DASH
    if number.adjusted() >= _MOST_DIGITS:
        return f"{_large(number)} s"
    hours, rest = divmod(max(0, int(number)), 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def _finite(value: Decimal | float | str | None) -> Decimal | None:
    if value is None or value == "":
        return None
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    return number if number.is_finite() else None


def _large(number: Decimal) -> str:
    return f"{number:.2e}".replace("-", "−")


def hours_text(hours: float | Decimal | None) -> str:
    """`1` -> `1 h`, `0.75` -> `45 min`, `1.5` -> `1.5 h`: limits, as a person says them."""
    if hours is None:
        return DASH
    value = float(hours)
    if 0 < value < 1:
        minutes = value * 60
        return f"{minutes:.0f} min" if minutes >= 1 else f"{minutes * 60:.0f} s"
    return f"{value:g} h"


def decimal_text(value: Decimal | float | str | None, decimals: int = 2) -> str:
    """Fixed decimals: `0.5` at 4 -> `0.5000`; beyond fifteen digits `1.00e+200`. Not a finite number -> dash."""
    number = _finite(value)
    if number is None:
        return DASH
    if number.adjusted() >= _MOST_DIGITS:
        return _large(number)
    return f"{number.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN):f}".replace("-", "−")


def usd_text(value: Decimal | float | str | None) -> str:
    """`32.918` -> `$32.92`; below a cent four decimals, because a nano run costs less than one."""
    number = _finite(value)
    if number is None:
        return DASH
    small = number and abs(number) < Decimal("0.01")
    return "$" + decimal_text(number, 4 if small else 2)


def count_text(value: float | None) -> str:
    """`61204` -> `61,204`."""
    number = _finite(value)
    if number is None:
        return DASH
    return _large(number) if number.adjusted() >= _MOST_DIGITS else f"{int(number):,}"


def bytes_text(value: float | None) -> str:
    """`2202010` -> `2.1 MB`."""
    size = _finite(value)
    if size is None:
        return DASH
    for unit in _UNITS:
        if size < _KIB or unit == _UNITS[-1]:
            break
        size /= _KIB
    if size.adjusted() >= _MOST_DIGITS:
        return f"{_large(size)} {unit}"
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def rank_text(low: int | None, high: int | None) -> str:
    """A rank is a range of places: `1–3`, or `2` where the two ends agree."""
    if low is None:
        return DASH
    return str(low) if high is None or high == low else f"{low}–{high}"


def list_text(values: Sequence[str]) -> str:
    """`a, b, c`; nothing -> dash."""
    return ", ".join(values) if values else DASH


def domain_code(name: str | None) -> str:
    """The hue and symbol of a domain's slug or hue: `loss-design` -> `ld`, `ld` -> `ld`; unknown -> empty."""
    known = DOMAIN_CODES.get(name or "", name or "")
    return known if known in DOMAIN_CODES.values() else ""
