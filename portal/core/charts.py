"""Room core: geometry of the charts drawn on the server. Pure: numbers in, positions out; the templates write the SVG.

Positions are percentages as text (`"21.54"`), x from the left, y from the top, so that a chart follows its column's
width and no locale changes a decimal point. Values that are not finite are left out, never drawn at zero.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Pair = tuple[float, float]


@dataclass(frozen=True)
class Tick:
    """A tick of an axis: place, text, and whether a phone may drop it."""

    at: str
    text: str
    far: bool = False


@dataclass(frozen=True)
class Point:
    """A mark: place and the text that stands at it."""

    x: str
    y: str
    text: str = ""
    kind: str = ""
    end: bool = False  # the text stands left of the mark, because there is no room on the right


@dataclass(frozen=True)
class Gauge:
    """A bar of something spent; `width` in percent of the whole."""

    width: str
    ticks: tuple[str, ...]


@dataclass(frozen=True)
class DotCell:
    """One score on a scale of 0 to 100."""

    at: str
    low: str
    high: str
    reference: str


@dataclass(frozen=True)
class Spark:
    """Score over time, small: a staircase, because an evaluation changes a score and time does not."""

    path: str
    points: tuple[Point, ...]
    reference: str
    now: str


@dataclass(frozen=True)
class Plot:
    """A chart with axes: one path, marks, ticks of both axes, and lines across."""

    path: str
    points: tuple[Point, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    reference: str = ""
    baseline: str = ""


@dataclass(frozen=True)
class Lane:
    """One lane of the strip: its name, the y of its rule and name, and one path of marks."""

    name: str
    rule_y: str
    text_y: str
    path: str


@dataclass(frozen=True)
class Strip:
    """The record of a run: one mark per step, one lane per family."""

    width: int
    height: int
    lanes: tuple[Lane, ...]
    evaluations: tuple[Point, ...]
    folds: tuple[str, ...]
    ticks: tuple[Tick, ...]
    faults: str = ""
    unit: int = 1  # steps per mark: a very long run shares marks
    steps: int = 0


@dataclass(frozen=True)
class Segment:
    """A piece of a stacked bar."""

    kind: str
    x: str
    width: str


def finite(value: object) -> float | None:
    """`value` as a finite float, or None: the door for everything that is drawn."""
    try:
        number = float(value)  # type: ignore[arg-type]  # a Decimal, int or text; the error is the answer
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def num(value: float) -> str:
    """At most two decimals, a point, no trailing zeros: what SVG reads in every locale."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


def place(value: float, low: float, high: float, *, log: bool = False) -> float:
    """`value` between `low` and `high` as 0..100; outside it stays at the edge."""
    if log:
        value, low, high = (math.log10(max(v, 1e-9)) for v in (value, low, high))
    if high == low:
        return 0.0
    return min(100.0, max(0.0, 100 * (value - low) / (high - low)))


def nice_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Round values from at or below `low` to at or above `high`, about `count` of them, in steps of 1, 2 or 5."""
    span = max(high - low, 1e-9)
    raw = span / max(count, 1)
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return tuple(round(n * step, 10) for n in range(first, last + 1))


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """1, 2, 5, 10 ... that enclose `low` and `high`, both above zero."""
    low, high = max(low, 1e-6), max(high, low, 1e-6)
    out: list[float] = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        out.extend(round(m * 10.0**power, 10) for m in (1, 2, 5))
    below = [t for t in out if t <= low][-1:]
    above = [t for t in out if t >= high][:1]
    return tuple(below + [t for t in out if low < t < high] + [t for t in above if t not in below])


def gauge(used: float | None, total: float | None, parts: int = 4) -> Gauge:
    """Bar of `used` of `total`; no total, no bar."""
    share = place(used, 0, total) if used is not None and total else 0.0
    return Gauge(num(share), tuple(num(100 * n / parts) for n in range(1, max(1, min(parts, 20)))))


def dot_cell(value: object, low: object, high: object, *, reference: float = 80) -> DotCell:
    """Score with its interval; texts are empty where a value is unknown."""
    marks = [finite(v) for v in (value, low, high)]
    at, left, right = ("" if v is None else num(place(v, 0, 100)) for v in marks)
    return DotCell(at, left if right else "", right if left else "", num(place(reference, 0, 100)))


def staircase(points: Iterable[Pair], *, end_x: float) -> str:
    """SVG path from (0, 100): right to each point's x, then up or down to its y, at last right to `end_x`."""
    path = "M0 100"
    for x, y in points:
        path += f"H{num(x)}V{num(y)}"
    return f"{path}H{num(end_x)}"


def polyline(points: Iterable[Pair]) -> str:
    """SVG path through the points."""
    return "".join(f"{'M' if i == 0 else 'L'}{num(x)} {num(y)}" for i, (x, y) in enumerate(points))


def _clean(points: Iterable[tuple[object, object]]) -> list[Pair]:
    pairs = ((finite(x), finite(y)) for x, y in points)
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def spark(points: Sequence[tuple[object, object]], *, now: float, limit: float, reference: float = 80) -> Spark:
    """Scores (0..100) over seconds of working time; `now` is how far the run is, `limit` its end."""
    scale = max(limit, now, 1.0)
    placed = [(place(t, 0, scale), 100 - place(s, 0, 100)) for t, s in sorted(_clean(points))]
    end = place(now, 0, scale)
    path = staircase(placed, end_x=max([end, *(x for x, _ in placed)]))
    return Spark(path, tuple(Point(num(x), num(y)) for x, y in placed), num(100 - reference), num(end))


def _ticks(
    values: Sequence[float], low: float, high: float, *, flip: bool = False, log: bool = False
) -> tuple[Tick, ...]:
    out = []
    for i, value in enumerate(values):
        at = place(value, low, high, log=log)
        out.append(Tick(num(100 - at if flip else at), f"{value:g}", far=len(values) > 4 and i % 2 == 1))
    return tuple(out)


def score_plot(
    points: Sequence[tuple[object, object]], *, now: float, limit: float, unit_s: float, reference: float = 80
) -> Plot:
    """Score over working time with axes; `unit_s` is the length of a unit of the time axis (60: minutes)."""
    scale = max(limit, now, 1.0)
    small = spark(points, now=now, limit=scale, reference=reference)
    texts = [f"{s:.1f}" for _, s in sorted(_clean(points))]
    marks = tuple(Point(p.x, p.y, t, end=float(p.x) > 75) for p, t in zip(small.points, texts, strict=True))
    times = [t for t in nice_ticks(0, scale / unit_s) if t * unit_s <= scale * 1.0001]
    scores = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
    return Plot(
        small.path,
        marks,
        _ticks(times, 0, scale / unit_s),
        _ticks(scores, 0, 100, flip=True),
        small.reference,
        small.now,
    )


def curve_plot(points: Sequence[tuple[object, object]], *, baseline: float | None, reference: float | None) -> Plot:
    """A metric's curve: piecewise linear (metric, 0..1), flat beyond both ends; marks at baseline and reference."""
    clean = _clean(points)
    if not clean:
        return Plot("", (), (), ())
    xs = [x for x, _ in clean] + [v for v in (baseline, reference) if v is not None]
    margin = (max(xs) - min(xs) or abs(xs[0]) or 1.0) * 0.12
    ticks = nice_ticks(min(xs) - margin / 4, max(xs) + margin / 4, 4)
    low, high = min(ticks[0], min(xs) - margin), max(ticks[-1], max(xs) + margin)
    low = max(low, 0.0) if min(xs) >= 0 else low  # a share or a loss has nothing below zero
    ordered = sorted(clean)
    line = [(low, ordered[0][1]), *ordered, (high, ordered[-1][1])]
    path = polyline((place(x, low, high), 100 - place(y, 0, 1)) for x, y in line)
    marks = []
    for kind, at in (("baseline", baseline), ("reference", reference)):
        if at is not None:
            x = place(at, low, high)
            marks.append(Point(num(x), num(100 - place(_interpolate(ordered, at), 0, 1)), kind, kind, end=x > 65))
    inside = [t for t in ticks if low <= t <= high]
    return Plot(path, tuple(marks), _ticks(inside, low, high), _ticks((0.0, 0.5, 1.0), 0, 1, flip=True))


def _interpolate(points: Sequence[Pair], at: float) -> float:
    if at <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if at <= x1:
            return y0 if x1 == x0 else y0 + (y1 - y0) * (at - x0) / (x1 - x0)
    return points[-1][1]


def scatter(points: Sequence[tuple[object, object, str, str]], *, log: bool = False) -> Plot:
    """Score against a cost: (cost, score, text, kind) each, with the Pareto front (more points for less)."""
    known = [(finite(x), finite(y), text, kind) for x, y, text, kind in points]
    clean = [(x, y, text, kind) for x, y, text, kind in known if x is not None and y is not None and (x > 0 or not log)]
    if not clean:
        return Plot("", (), (), ())
    top = nice_ticks(0, max(10.0, *(y for _, y, _, _ in clean)), 4)
    xs = [x for x, _, _, _ in clean]
    axis = log_ticks(min(xs), max(xs)) if log else nice_ticks(0, max(xs), 4)
    low, high = axis[0], axis[-1]

    def at(x: float, y: float) -> Pair:
        return place(x, low, high, log=log), 100 - place(y, 0, top[-1])

    placed = [(*at(x, y), text, kind) for x, y, text, kind in clean]
    marks = tuple(Point(num(x), num(y), text, kind, end=x > 70) for x, y, text, kind in placed)
    path, best = "", -1.0
    for x, y in sorted((x, -y) for x, y, _, _ in clean):
        if -y > best:
            px, py = at(x, -y)
            path += f"M{num(px)} {num(py)}" if not path else f"H{num(px)}V{num(py)}"
            best = -y
    return Plot(path + "H100", marks, _ticks(axis, low, high, log=log), _ticks(top, 0, top[-1], flip=True))


LANE_HEIGHT = 13
MOST_MARKS = 1500


def strip(
    lanes: Sequence[tuple[str, Sequence[int]]],
    *,
    steps: int,
    evaluations: Sequence[tuple[int, str]] = (),
    folds: Sequence[int] = (),
    faults: Sequence[int] = (),
) -> Strip:
    """One mark per step. `lanes`: (name, step numbers from 1); evaluations: (step, text); folds: compactions.

    `faults` are steps without a usable call; they stand in the lane next to the last.
    """
    count = max(1, steps)
    unit = math.ceil(count / MOST_MARKS)
    drawn = []
    for i, (name, marks) in enumerate(lanes):
        top = i * LANE_HEIGHT
        drawn.append(Lane(name, str(top + 12), str(top + 11), _marks(marks, count, unit, top)))
    dots = tuple(
        Point(num(100 * (n - 0.5) / count), "6.5", text, kind=str(n)) for n, text in evaluations if 1 <= n <= count
    )
    lines = tuple(num(100 * n / count) for n in folds if 0 <= n <= count)
    fault_top = max(0, len(drawn) - 2) * LANE_HEIGHT
    bad = _marks(faults, count, unit, fault_top)
    width = math.ceil(count / unit)
    return Strip(width, LANE_HEIGHT * len(drawn), tuple(drawn), dots, lines, _strip_ticks(count), bad, unit, steps)


def _marks(steps: Sequence[int], count: int, unit: int, top: int) -> str:
    places = sorted({(n - 1) // unit for n in steps if 1 <= n <= count})
    return "".join(f"M{at + 0.5:g} {top + 1.5:g}v9" for at in places)


def _strip_ticks(count: int) -> tuple[Tick, ...]:
    inner = [t for t in nice_ticks(0, count, 6) if 1 < t < count * 0.94]
    ticks = [Tick("0", "1"), *(Tick(num(100 * (t - 0.5) / count), f"{t:.0f}") for t in inner)]
    return (*ticks, Tick("100", str(count))) if count > 1 else tuple(ticks)


def ledger(seconds: Mapping[str, float], *, total: float) -> tuple[Segment, ...]:
    """Stacked bar of a run's charged seconds by kind, in the given order; the rest of `total` stays empty."""
    scale = max(total, sum(max(0.0, s) for s in seconds.values()), 1.0)
    out, x = [], 0.0
    for kind, spent in seconds.items():
        width = 100 * max(0.0, spent) / scale
        if width > 0:
            out.append(Segment(kind, num(x), num(width)))
        x += width
    return tuple(out)
