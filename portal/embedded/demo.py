"""One run of a shipped task, made as a person's browser and script would make it: sign-up form, API token, HTTP API.

Nothing here touches the database: what the demo shows went through every door of the site.
"""

import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from portal.client.client import ApiError, Client, TraceEvent

TASK = "worked-example-filtering-nano"
BOARD = "nano-public"
CONFIG = """\
name: scripted-reference
agent: react
model:
  provider: scripted
  name: reference
tools: innovatorbench
hint: none
"""
Say = Callable[[str], None]
_TOKEN_FIELD = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass(frozen=True)
class Outcome:
    """How the demo's run ended. `score` is text as the board shows it, empty when there is none."""

    run: int
    status: str
    score: str
    run_url: str
    board_url: str


def demo_token(url: str, kept: Path) -> str:
    """An API token of the demo's own user; signs it up by the form the first time. `kept` remembers it, mode 0600."""
    if kept.exists():
        token = str(json.loads(kept.read_text())["token"])
        with Client(url, token) as client:
            try:
                client.account()
            except ApiError:
                kept.unlink()
            else:
                return token
    token = _sign_up(url, f"demo-{secrets.token_hex(3)}")
    with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"token": token}, file)
    return token


def _sign_up(url: str, name: str) -> str:
    with httpx.Client(base_url=url, follow_redirects=True, timeout=30, trust_env=False) as http:
        form = _TOKEN_FIELD.search(http.get("/accounts/signup/").text)
        if form is None:
            raise RuntimeError(f"{url}/accounts/signup/ shows no form; see the log of the web process")
        password = secrets.token_urlsafe(24)
        fields = {"csrfmiddlewaretoken": form.group(1), "username": name, "email": f"{name}@example.org"}
        answer = http.post("/accounts/signup/", data={**fields, "password1": password, "password2": password})
        if "sessionid" not in http.cookies:
            raise RuntimeError(f"the sign-up form refused the demo's user (HTTP {answer.status_code})")
        made = http.post(
            "/api/v1/account/tokens/",
            json={"name": "demo", "scopes": ["read", "run"]},
            headers={"X-CSRFToken": http.cookies["csrftoken"], "Referer": url, "Origin": url},
        )
        made.raise_for_status()
        return str(made.json()["value"])


def demo_run(url: str, token: str, say: Say) -> Outcome:
    """Submit the scripted agent on the demo's task and tell what happens until the run has ended."""
    with Client(url, token) as client:
        (ref,) = client.submit(CONFIG, [TASK], visibility="public", board=BOARD)
        say(f"run {ref.id} on {TASK}: {url}/runs/{ref.id}/")
        step = 0
        for event in client.follow(ref.id):
            step += event.kind == "replied"
            line = progress_line(event, step)
            if line:
                say(line)
        run = client.run(ref.id)
        return Outcome(
            run=ref.id,
            status=str(run["status"]),
            score="" if run["score"] is None else str(run["score"]),
            run_url=f"{url}/runs/{ref.id}/",
            board_url=f"{url}/leaderboard/{BOARD}/",
        )


def progress_line(event: TraceEvent, step: int) -> str:
    """One line of progress for a terminal, or nothing for events that say little. Agent text is kept to one line."""
    body = event.body
    if event.kind == "replied":
        return f"  {step:>3}  {_one_line(str(body.get('text') or ''), 96)}"
    if event.kind == "observed":
        return f"       -> {body.get('name')}: {body.get('outcome')}"
    if event.kind == "action_sent" and body.get("name") == "eval":
        return "       being scored: the evaluator trains a model on what was handed in ..."
    if event.kind == "evaluation_scored":
        return _scored(body)
    if event.kind == "run_ended":
        return f"  run ended: {body.get('reason', '')}"
    return ""


def _scored(body: Mapping[str, Any]) -> str:
    if not body.get("valid"):
        return f"       evaluation {body.get('ordinal')}: not valid: {_one_line(str(body.get('message')), 80)}"
    return f"       evaluation {body.get('ordinal')} ({body.get('by')}): score {body.get('score')}"


def _one_line(text: str, width: int) -> str:
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    flat = " ".join(plain.split())
    return flat if len(flat) <= width else f"{flat[: width - 3]}..."
