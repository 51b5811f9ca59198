"""Room: runs. Who holds a socket, and what they may read, as the database says it now.

A page stays open while its reader is taken out of the team, signed out, or shut out: nothing of a person is kept for
longer than a second.
"""

import asyncio
import time

from portal.accounts.people import person_of_session
from runs.selectors import Viewer, run_may_read
from runs.streaming import in_thread

FRESH_S = 1.0


class NotAllowed(Exception):
    """This reader may not, or no longer, read the run."""


class Reader:
    """`session`: the key that came with the handshake, empty for a visitor. However much is sent, the database is asked
    once in FRESH_S for the person and once for each run.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._person: Viewer | None = None
        self._readable: set[int] = set()
        self._looked_at = 0.0
        self._turn = asyncio.Lock()

    async def demand(self, run_id: int, *, anew: bool = False) -> None:
        """Return if the run may be read. `anew`: it has just changed who may. Raises NotAllowed."""
        async with self._turn:
            if anew or time.monotonic() - self._looked_at >= FRESH_S:
                self._person, self._looked_at = None, time.monotonic()
                self._readable.clear()
            if run_id not in self._readable and not await in_thread(lambda: self._look(run_id)):
                raise NotAllowed
            self._readable.add(run_id)

    def _look(self, run_id: int) -> bool:
        if self._person is None:
            self._person = person_of_session(self._session)
        return run_may_read(self._person, run_id)
