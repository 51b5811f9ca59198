"""Typed HTTP client of the portal's API (httpx only). Stands alone: imports nothing of the site."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from uuid import uuid4

import httpx

ENDED = frozenset({"finished", "failed", "cancelled"})


class ApiError(Exception):
    """The portal refused a request: `status` (HTTP), `code` for programs, `errors` with lines for configs."""

    def __init__(self, status: int, code: str, message: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = tuple(errors)


@dataclass(frozen=True)
class RunRef:
    """One run of a submission."""

    id: int
    task: str
    url: str


@dataclass(frozen=True)
class TraceEvent:
    """One event of a run's trace; `seq` is gap-free from 1, `body` depends on `kind`."""

    seq: int
    at: str
    kind: str
    body: Mapping[str, Any]


class Client:
    """One session with a portal. `token` is an API token made on the account page."""

    def __init__(self, base_url: str, token: str = "", timeout_s: float = 30.0) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=f"{base_url}/api/v1", headers=headers, timeout=timeout_s, trust_env=False)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None) -> None:
        self._http.close()

    def submit(
        self, config: str, tasks: Sequence[str], *, visibility: str = "private", board: str | None = None
    ) -> tuple[RunRef, ...]:
        """Submit one agent config on some tasks; returns the queued runs. Raises ApiError (errors carry lines)."""
        body = {"config": config, "tasks": list(tasks), "repeats": 1, "visibility": visibility, "board": board}
        answer = self._send("POST", "/submissions/", json=body, headers={"Idempotency-Key": str(uuid4())})
        return tuple(RunRef(run["id"], run["task"], run["url"]) for run in answer["runs"])

    def run(self, run_id: int) -> Mapping[str, Any]:
        """State, budgets and score of one run. Raises ApiError 404 for a run one may not see."""
        return self._send("GET", f"/runs/{run_id}/")

    def events(self, run_id: int, after: int = 0) -> tuple[TraceEvent, ...]:
        """Events of a run with `seq` above `after`, in order; at most one page."""
        page = self._send("GET", f"/runs/{run_id}/events/", params={"after": after})
        return tuple(TraceEvent(row["seq"], row["at"], row["kind"], row["body"]) for row in page["events"])

    def follow(self, run_id: int, poll_s: float = 0.3) -> Iterator[TraceEvent]:
        """Events as they come, until the run has ended and everything was read."""
        after = 0
        while True:
            ended = self.run(run_id)["status"] in ENDED
            page = self.events(run_id, after)
            for event in page:
                after = event.seq
                yield event
            if ended and not page:
                return
            if not page:
                time.sleep(poll_s)

    def account(self) -> Mapping[str, Any]:
        """Who this token belongs to. Raises ApiError 401 for a dead one."""
        return self._send("GET", "/account/")

    def leaderboard(self, slug: str) -> Mapping[str, Any]:
        """A board with its rows."""
        return self._send("GET", f"/leaderboards/{slug}/")

    def cancel(self, run_id: int) -> Mapping[str, Any]:
        """Cancel a run of one's own team."""
        return self._send("POST", f"/runs/{run_id}/cancel/")

    def _send(self, method: str, path: str, **options: Any) -> Mapping[str, Any]:
        answer = self._http.request(method, path, **options)
        if answer.is_success:
            body: Mapping[str, Any] = answer.json() if answer.content else {}
            return body
        try:
            error = answer.json()["error"]
        except (ValueError, KeyError, TypeError):
            raise ApiError(answer.status_code, "http_error", f"{method} {path}: HTTP {answer.status_code}") from None
        raise ApiError(answer.status_code, error["code"], error["message"], error.get("errors", ()))
