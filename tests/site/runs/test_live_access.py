"""A page stays open while its reader loses the right to it: nothing more is sent, whatever it is and however lost."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.sessions.models import Session
from django.utils import timezone

from portal.accounts.models import Membership, Role, Team, User
from portal.accounts.services import member_remove, team_create, user_delete
from runs import bell
from runs.eventlog import event_append
from runs.live import reader
from runs.models.run import Run
from runs.services.terminals import terminal_store
from tests.site.runs.sockets import socket, told

Send = Callable[[Run, str], None]
Lose = Callable[[User, Run], None]
BEFORE, AFTER = "before", "afterwards"


def a_thought(run: Run, text: str) -> None:
    bell.delta(run.pk, text)


def an_event(run: Run, text: str) -> None:
    event_append(run.pk, "noted", {"text": text}, epoch=None)


def terminal_bytes(run: Run, text: str) -> None:
    facts = {"run_id": run.pk, "session": "main", "at": timezone.now()}
    terminal_store(offset=len(BEFORE) if text == AFTER else 0, data=text.encode(), **facts)


def removed_from_the_team(who: User, run: Run) -> None:
    member_remove(team=run.team, user_id=who.pk, by=run.created_by)


def no_longer_staff(who: User, run: Run) -> None:
    User.objects.filter(pk=who.pk).update(is_staff=False)


def shut_out(who: User, run: Run) -> None:
    User.objects.filter(pk=who.pk).update(is_active=False)


def deleted(who: User, run: Run) -> None:
    user_delete(user=who, by=who)


def signed_out(who: User, run: Run) -> None:
    Session.objects.all().delete()


def session_over(who: User, run: Run) -> None:
    Session.objects.update(expire_date=timezone.now())


def another_password(who: User, run: Run) -> None:
    who.set_password("correct horse battery")
    who.save(update_fields=["password"])


SENT: dict[Send, str] = {a_thought: "delta", an_event: "events", terminal_bytes: "terminal"}
LOST = [removed_from_the_team, shut_out, deleted, signed_out, session_over, another_password]


@pytest.fixture
def lab(transactional_db: None, alice: User, bob: User) -> Team:
    made = team_create(name="Lab", by=alice)
    Membership.objects.create(team=made, user=bob, role=Role.MEMBER)
    return made


@pytest.fixture
def run(queue: Callable[..., Run], lab: Team) -> Run:
    return queue(by_team=lab)


@pytest.fixture(autouse=True)
def always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second for which an answer holds is not waited for."""
    monkeypatch.setattr(reader, "FRESH_S", 0.0)


async def heard(talk: WebsocketCommunicator, run: Run, send: Send) -> None:
    """Something has come: the socket is served, and the hub hears the bell."""
    while True:
        await sync_to_async(send)(run, BEFORE)
        if not await talk.receive_nothing(timeout=0.2) and (await told(talk))["type"] == SENT[send]:
            return


async def rest(talk: WebsocketCommunicator) -> list[dict[str, Any]]:
    """All up to the error that ends it."""
    found = [await told(talk)]
    while found[-1]["type"] != "error":
        found.append(await told(talk))
    return found


async def ends(who: User, run: Run, lose: Lose, send: Send) -> None:
    """`who` follows the run, loses the right, and gets nothing of what is sent then but that there is no such run."""
    wanted = {"type": "subscribe", "run": run.pk}
    if send is terminal_bytes:
        wanted |= {"type": "subscribe_terminal", "session": "main"}
    async with socket(who, wanted) as talk:
        await heard(talk, run, send)
        await sync_to_async(lose)(who, run)
        await sync_to_async(send)(run, AFTER)
        messages = await rest(talk)
        assert messages[-1]["code"] == "not_found"
        assert not any(text in str(messages) for text in (AFTER, b64encode(AFTER.encode()).decode()))
        await sync_to_async(send)(run, AFTER)
        assert await talk.receive_nothing(timeout=0.3)


@pytest.mark.parametrize("send", list(SENT))
async def test_who_was_removed_from_the_team_gets_nothing_more(bob: User, run: Run, send: Send) -> None:
    """A1: neither the words of a model, nor events and steps, nor bytes of a terminal."""
    await ends(bob, run, removed_from_the_team, send)


@pytest.mark.parametrize("lose", LOST)
async def test_however_the_right_was_lost_the_stream_ends(bob: User, run: Run, lose: Lose) -> None:
    """A1: the person and the session are looked up anew, not kept from the handshake."""
    await ends(bob, run, lose, a_thought)


@pytest.mark.parametrize("lose", [no_longer_staff, shut_out])
async def test_staff_that_are_staff_no_longer_read_nothing_more(dora: User, run: Run, lose: Lose) -> None:
    """A1"""
    await ends(dora, run, lose, a_thought)


async def test_who_still_may_look_goes_on(alice: User, bob: User, run: Run) -> None:
    """A1: one reader's end is nobody else's."""
    async with socket(alice, {"type": "subscribe", "run": run.pk}) as talk:
        await heard(talk, run, a_thought)
        await ends(bob, run, removed_from_the_team, a_thought)
        await heard(talk, run, a_thought)
