"""Room: runs.agent. How long to wait before a provider is asked again. Pure: the caller sleeps, or stores a `wake_at`
and holds no worker.
"""

import random
from dataclasses import dataclass

BASE_S = 1.0
CAP_S = 60.0
RETRY_AFTER_CAP_S = 3600.0


@dataclass(frozen=True)
class Backoff:
    """Exponential with full jitter in its upper half: attempt 1 waits 0.5 to 1 s, attempt 7 and later 30 to 60 s."""

    base_s: float = BASE_S
    cap_s: float = CAP_S

    def delay_s(self, attempt: int, retry_after_s: float | None = None, *, rng: random.Random | None = None) -> float:
        """Seconds before try number `attempt + 1` (attempts count from 1).

        What the provider asked for is obeyed, never undercut; a little is added so that many runs don't come back in
        the same instant. An absurd wish (over an hour) is cut to an hour.
        """
        draw = (rng or random.SystemRandom()).random()
        ceiling = min(self.cap_s, self.base_s * 2.0 ** min(max(attempt, 1) - 1, 30))
        own = ceiling * (0.5 + draw / 2)
        if retry_after_s is None:
            return own
        return max(own, min(retry_after_s, RETRY_AFTER_CAP_S) * (1 + draw / 10))
