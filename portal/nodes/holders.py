"""Room: portal.nodes. Who holds a machine, as far as a reader may know of the runs that do.

Which run is whose to read is known above this room; the composition root registers whom to ask.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from portal.accounts.permits import Person
from portal.nodes.models import Lease

Readable = Callable[[Person, Collection[str]], frozenset[str]]
_asked: list[Readable] = []


@dataclass(frozen=True)
class Hold:
    """A run's hold on a machine. Of a run that the reader may not know of only `live` is told: no key, no times."""

    live: bool
    run_key: str = ""
    role: str = ""
    gpus: tuple[int, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


def register(readable: Readable) -> None:
    """Called once at start by portal/apps.py. `readable(user, keys)` tells which of the runs `user` may read."""
    _asked.append(readable)


def holds_for(user: Person, leases: Iterable[Lease]) -> dict[int, Hold]:
    """What `user` may see of each lease, by its primary key; one question, however many leases."""
    rows = list(leases)
    keys = {lease.run_key for lease in rows}
    known = frozenset[str]().union(*(readable(user, keys) for readable in _asked)) if keys else frozenset[str]()
    return {lease.pk: _hold(lease) if lease.run_key in known else Hold(lease.released_at is None) for lease in rows}


def _hold(lease: Lease) -> Hold:
    live = lease.released_at is None
    return Hold(live, lease.run_key, lease.role, tuple(lease.gpus), lease.created_at, lease.released_at)
