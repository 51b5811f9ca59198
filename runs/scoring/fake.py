"""Room: runs. An evaluator without a sandbox, for tests and rehearsals: it answers what it is told to answer.

It ships because it must keep the contract: requests are verified, results are signed, and the same contract test runs
over it and over the queue.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from evaluator.contract import Outcome, ScoreRequest, ScoreResult, sign, verify
from runs.scoring.client import Delivered, EvaluatorDown

Answer = Callable[[ScoreRequest], "Verdict"]


class Verdict:
    """What the fake says of one request."""

    def __init__(
        self, outcome: Outcome = Outcome.VALID, *, message: str = "", seconds: float = 0.5, **metrics: float
    ) -> None:
        self.outcome = outcome
        self.message = message
        self.seconds = seconds
        self.metrics = metrics


class FakeEvaluator:
    """In memory, of one process. `silent`: takes requests and never answers; `down`: can't be reached."""

    def __init__(self, answer: Answer, *, own_key: bytes, site_public: bytes) -> None:
        self.answer = answer
        self.silent = False
        self.down = False
        self.requests: list[ScoreRequest] = []
        self._own_key, self._site_public = own_key, site_public
        self._open: dict[str, ScoreRequest] = {}
        self._answered: dict[str, bytes] = {}

    def submit(self, envelope: bytes) -> str:
        self._reached()
        request = verify(envelope, self._site_public)
        assert isinstance(request, ScoreRequest)
        self.requests.append(request)
        ticket = f"{len(self.requests)}-0"
        self._open[ticket] = request
        return ticket

    def holds(self, ticket: str) -> bool:
        self._reached()
        return ticket in self._open

    def results(self) -> Sequence[Delivered]:
        self._reached()
        if not self.silent:
            for ticket in list(self._open):
                self._answered[ticket] = self.envelope(self._open.pop(ticket))
        return [Delivered(ticket, envelope) for ticket, envelope in self._answered.items()]

    def settle(self, delivered: Delivered) -> None:
        self._reached()
        self._answered.pop(delivered.receipt, None)

    def envelope(self, request: ScoreRequest) -> bytes:
        """The signed result of a request."""
        verdict = self.answer(request)
        return sign(
            ScoreResult(
                evaluation=request.evaluation,
                try_no=request.try_no,
                nonce=request.nonce,
                task_digest=request.task_digest,
                bundle_sha256=request.bundle_sha256,
                outcome=verdict.outcome,
                metrics=verdict.metrics,
                message=verdict.message,
                seconds=verdict.seconds,
                sandbox_level=0,
                facts={"evaluator": "fake"},
                finished_at=datetime.now(UTC),
            ),
            self._own_key,
        )

    def _reached(self) -> None:
        if self.down:
            raise EvaluatorDown("the fake is down")
