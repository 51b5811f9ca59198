"""Room: runs. The one function that appends an event: fenced, gap-free, and with the clock in the same statement.

Also the door at which text is made storable and big bodies go to the blob store. Nothing else writes events.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection

from gymnode.rendering import storable
from portal.core.blobs import blobs
from runs import bell
from runs.agent.events import Event as AgentEvent
from runs.ledger import CHARGED, Clock
from runs.models.log import Event

MOST_USD = "99999999.999999"  # what the column holds; prices and counts are strangers' words
INLINE_BYTES = 64 * 1024
CUT_CHARS = 4_000


@dataclass(frozen=True)
class Change:
    """What an append changes in the run's row besides `seq`. `clock`: the kind that begins now; `close_as`: what the
    piece of time that ends here was after all (a model call that was refused is nobody's time).
    """

    clock: Clock | None = None
    close_as: Clock | None = None
    steps: int = 0
    usd: Decimal = Decimal(0)
    unpriced: bool = False
    tokens: int = 0
    cached_tokens: int = 0
    evaluations: int = 0
    model_returned: str = ""


@dataclass(frozen=True)
class Appended:
    """The seq an event got, its time, what somebody wants of the run (`pause`, or empty), the replies so far."""

    seq: int
    at: datetime
    wanted: str
    steps: int


# The open piece of time lives in the run's row; a switch closes it into `runs_interval` and opens the next. The row's
# old values come from a locked read in the same statement, so that a second writer waits and then
# sees what the first one wrote.
_CLOCK = """
    clock_kind = COALESCE(%(clock)s, r.clock_kind),
    clock_since = CASE WHEN %(clock)s IS NULL THEN r.clock_since ELSE old.now END,
    charged_s = r.charged_s + CASE WHEN %(clock)s IS NULL THEN 0 ELSE old.charged END,
    deadline_at = CASE
        WHEN %(clock)s IS NULL THEN r.deadline_at
        WHEN %(clock)s = ANY(%(kinds)s) THEN old.now + make_interval(secs => r.limit_s - r.charged_s - old.charged)
        ELSE NULL END
"""
_OLD = """
old AS MATERIALIZED (
    SELECT id, was, clock_since, now, CASE WHEN was = ANY(%(kinds)s)
        THEN GREATEST(0, EXTRACT(EPOCH FROM now - clock_since)) ELSE 0 END AS charged
    FROM (
        SELECT id, COALESCE(%(close_as)s, clock_kind) AS was, clock_since,
            GREATEST(COALESCE(%(at)s, clock_timestamp()), clock_since) AS now
        FROM runs_run WHERE id = %(run)s FOR NO KEY UPDATE
    ) locked
)"""
_INTERVAL = """
spent AS (
    INSERT INTO runs_interval (run_id, kind, started_at, ended_at)
    SELECT id, was, clock_since, now FROM r
    WHERE %(clock)s IS NOT NULL AND was <> '' AND clock_since < now
)"""
APPEND = f"""
WITH {_OLD}, r AS (
    UPDATE runs_run AS r SET seq = r.seq + 1, steps = r.steps + %(steps)s, usd = LEAST(r.usd + %(usd)s, {MOST_USD}),
        unpriced = r.unpriced OR %(unpriced)s, tokens = r.tokens + %(tokens)s,
        cached_tokens = r.cached_tokens + %(cached)s, evaluations_used = r.evaluations_used + %(evaluations)s,
        model_returned = COALESCE(NULLIF(%(model)s, ''), r.model_returned), {_CLOCK}
    FROM old WHERE r.id = old.id AND (%(epoch)s IS NULL OR r.epoch = %(epoch)s)
    RETURNING r.id, r.seq, r.steps, r.wanted, old.was, old.clock_since, old.now
), {_INTERVAL}, written AS (
    INSERT INTO runs_event (run_id, seq, step, kind, at, body, blob)
    SELECT id, seq, steps, %(kind)s, now, %(body)s, %(blob)s FROM r
)
SELECT seq, now, wanted, steps FROM r
"""  # noqa: S608  composed of the constants above; every value is a parameter
SWITCH = f"""
WITH {_OLD}, r AS (
    UPDATE runs_run AS r SET {_CLOCK}
    FROM old WHERE r.id = old.id AND (%(epoch)s IS NULL OR r.epoch = %(epoch)s)
    RETURNING r.id, r.seq, r.steps, r.wanted, old.was, old.clock_since, old.now
), {_INTERVAL}
SELECT seq, now, wanted, steps FROM r
"""  # noqa: S608  composed of the constants above; every value is a parameter
# psycopg must know the type of a parameter that may be None.
_TYPES = {"clock": "text", "close_as": "text", "at": "timestamptz", "epoch": "bigint", "kinds": "text[]"}


def _typed(statement: str) -> str:
    for name, kind in _TYPES.items():
        statement = statement.replace(f"%({name})s", f"%({name})s::{kind}")
    return statement


_APPEND, _SWITCH = _typed(APPEND), _typed(SWITCH)


def event_append(
    run_id: int,
    kind: str,
    body: Mapping[str, Any],
    *,
    epoch: int | None,
    change: Change = Change(),
    at: datetime | None = None,
) -> Appended | None:
    """Append one event in one statement. None: `epoch` is no longer the run's (nothing was written).

    `epoch` None is for those who hold no claim (controls, the tick), inside their own transaction. Rings the bell.
    """
    clean, blob = stored_body(body)
    values = _parameters(run_id, epoch, change, at) | {
        "kind": kind,
        "body": clean,
        "blob": blob,
        "steps": change.steps,
        "usd": change.usd,
        "unpriced": change.unpriced,
        "tokens": change.tokens,
        "cached": change.cached_tokens,
        "evaluations": change.evaluations,
        "model": change.model_returned,
    }
    appended = _execute(_APPEND, values)
    if appended is not None:
        bell.ring(run_id, appended.seq)
    return appended


def clock_switch(
    run_id: int, clock: Clock, *, epoch: int | None, close_as: Clock | None = None, at: datetime | None = None
) -> Appended | None:
    """Begin another kind of time without an event. None: `epoch` is no longer the run's."""
    return _execute(_SWITCH, _parameters(run_id, epoch, Change(clock=clock, close_as=close_as), at))


def _parameters(run_id: int, epoch: int | None, change: Change, at: datetime | None) -> dict[str, Any]:
    return {
        "run": run_id,
        "epoch": epoch,
        "at": at,
        "clock": change.clock.value if change.clock else None,
        "close_as": change.close_as.value if change.close_as else None,
        "kinds": sorted(CHARGED),
    }


def _execute(statement: str, values: Mapping[str, Any]) -> Appended | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
    return None if row is None else Appended(*row)


def stored_body(body: Mapping[str, Any]) -> tuple[str, str]:
    """The JSON text that goes into the row, and the SHA-256 under which the whole lies in the blob store (or empty)."""
    clean = storable(dict(body))
    text = json.dumps(clean, ensure_ascii=False, allow_nan=False)
    raw = text.encode()
    if len(raw) <= INLINE_BYTES:
        return text, ""
    digest = hashlib.sha256(raw).hexdigest()
    key = blob_key(digest)
    if not blobs().exists(key):
        blobs().put(key, raw)
    return json.dumps(_fitting(clean), ensure_ascii=False), digest


def _fitting(clean: Any) -> Any:
    """The value with its texts cut ever shorter until it fits in a row; the whole is in the blob store."""
    limit = CUT_CHARS
    short = _cut(clean, limit)
    while limit > 16 and len(json.dumps(short, ensure_ascii=False).encode()) > INLINE_BYTES:
        limit //= 4
        short = _cut(clean, limit)
    if len(json.dumps(short, ensure_ascii=False).encode()) > INLINE_BYTES:
        return {key: value for key, value in short.items() if not isinstance(value, (dict, list))}
    return short


def blob_key(digest: str) -> str:
    """Where an event's whole body lies."""
    return f"events/{digest[:2]}/{digest}"


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, str) and len(value) > limit:
        return f"{value[: limit // 2]}\n[... {len(value) - limit} characters more ...]\n{value[-limit // 2 :]}"
    if isinstance(value, dict):
        return {key: _cut(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, limit) for item in value]
    return value


def whole_body(event: Event) -> Mapping[str, Any]:
    """The body as it was given, from the blob store where the row holds a cut one. Raises BlobMissing."""
    if not event.blob:
        return dict(event.body)
    whole: Mapping[str, Any] = json.loads(blobs().get(blob_key(event.blob)))
    return whole


def agent_events(rows: Iterable[Event]) -> list[AgentEvent]:
    """Rows as the agent's fold takes them, whole."""
    return [AgentEvent(seq=row.seq, at=row.at, kind=row.kind, body=whole_body(row)) for row in rows]
