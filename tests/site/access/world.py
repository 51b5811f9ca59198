"""A site with one of everything that somebody must not see, and five people who try."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.test import Client
from django.utils import timezone

from portal.accounts.models import Team, User
from portal.accounts.tokens import invite_create, token_create
from portal.accounts.vault import secret_put
from portal.core.secrets import Secret
from portal.leaderboard.entries import on_run_changed
from portal.leaderboard.models import LeaderboardEntry
from portal.nodes.models import Node
from portal.submissions.models import Submission
from portal.submissions.services import Wish, submission_create
from runs.eventlog import Change, event_append
from runs.models.log import TerminalChunk
from runs.models.run import Run
from tests.site.catalog.packages import HINT, REFERENCE
from tests.site.leaderboard.world import CONFIG, board_made, ended, evaluation_made, leased, version_made

PEOPLE = ("nobody", "stranger", "owner", "mate", "staff")
SECRET_VALUE, SECRET_NAME = "sk-the-key-itself", "HUSH_KEY"
PRIVATE = "only-the-team-knows"
LOG = "the evaluator's own log"
# Nobody's body holds these, whoever asks.
NEVER = (REFERENCE.decode(), SECRET_VALUE, LOG, "correct horse", "age-encryption.org")
# Bodies of nobody and stranger hold none of these either.
INSIDE = (HINT, PRIVATE, SECRET_NAME, "192.0.2.9", "192.0.2.77")


@dataclass(frozen=True)
class World:
    """`ids` are what addresses are made of; `clients` one per person, signed in by session."""

    ids: dict[str, Any]
    clients: dict[str, Client]


def world_made(people: dict[str, User | None], team: Team, folder: Path) -> World:
    owner = people["owner"]
    assert owner is not None
    version = version_made(folder / "package")
    board_made()
    private = _private(team, owner, version)
    public = _public(team, owner, version)
    site, own = leased(public), leased(public, owner=team)
    Node.objects.filter(pk=own.pk).update(host="192.0.2.77")
    secret = secret_put(team=team, name=SECRET_NAME, value=Secret(SECRET_VALUE), host="api.example.org", by=owner)
    token = token_create(user=owner, name="mine", scopes=["read"])
    invite = invite_create(team=team, by=owner)
    mate = people["mate"]
    ids = _run_ids(private, public) | {
        "node_site": site.name,
        "node_team": own.name,
        "secret": secret.pk,
        "token": token.token.pk,
        "invite": invite.invite.pk,
        "mate": mate.pk if mate else 0,
        "team": team.slug,
    }
    return World(ids, {name: _client(user) for name, user in people.items()})


def _run_ids(private: Run, public: Run) -> dict[str, Any]:
    return {
        "private": private.pk,
        "public": public.pk,
        "submission_private": Submission.objects.get(visibility="private").pk,
        "submission_public": Submission.objects.get(visibility="public").pk,
        "agent_private": private.config_id,
        "agent_public": public.config_id,
        "entry": LeaderboardEntry.objects.get().pk,
    }


def _client(user: User | None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def _private(team: Team, owner: User, version: Any) -> Run:
    text = CONFIG.replace("reasoner", PRIVATE)
    made = submission_create(team=team, wish=Wish(config=text, tasks=[version]), by=owner)
    run = made.attempts.get().run
    _lived(run, PRIVATE)
    return run


def _public(team: Team, owner: User, version: Any) -> Run:
    wish = Wish(config=CONFIG, tasks=[version], board="nano-public")
    run = submission_create(team=team, wish=wish, by=owner).attempts.get().run
    _lived(run, "shown")
    ended(run, "50")
    run.evaluations.update(log_tail=LOG, facts={"seed": 1})
    on_run_changed({"run": run.pk})
    return run


def _lived(run: Run, mark: str) -> None:
    """A step, a hint in every place where the engine may put one, an evaluation and some terminal bytes."""
    event_append(run.pk, "task_given", {"system": mark, "task": f"Task: {mark}\n\n## Hint\n{HINT}"}, epoch=None)
    call = {"id": "c1", "name": "view_hint", "arguments": "{}", "index": 0}
    event_append(run.pk, "replied", {"text": mark, "calls": [call], "model": mark}, epoch=None, change=Change(steps=1))
    sent = {"call_id": "c1", "action_id": f"{run.pk}.1.0", "name": "view_hint", "arguments": {}}
    event_append(run.pk, "action_sent", sent, epoch=None)
    event_append(run.pk, "hint_revealed", {"text": HINT, "penalty": 10}, epoch=None)
    seen = {"outcome": "ok", "message": HINT, "text": HINT, "observation": {"hint": HINT, "output": HINT}}
    event_append(run.pk, "observed", {**sent, **seen}, epoch=None)
    evaluation = evaluation_made(run, 10, by="agent")
    type(evaluation).objects.filter(pk=evaluation.pk).update(message=mark, log_tail=LOG)
    TerminalChunk.objects.create(run=run, session="main", offset=0, at=timezone.now(), data=mark.encode())
