"""The live stream: everything after a given event, in order, once, whatever breaks. Real hub, real Valkey."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import redis.asyncio
from asgiref.sync import sync_to_async
from django.utils import timezone

from portal.accounts.models import User
from runs import bell
from runs.eventlog import event_append
from runs.live.hub import Feed, hub, run_key
from runs.live.viewing import Viewer
from runs.models.run import Run
from runs.services.controls import run_share
from runs.services.terminals import terminal_store
from runs.states import Visibility
from runs.streaming import Piece
from tests.site.runs.sockets import PATIENCE_S, first_events, seqs, socket


async def _reached(got: list[int], upto: int) -> None:
    while not got or got[-1] < upto:
        await asyncio.sleep(0.05)


@sync_to_async
def append(run: Run, count: int, kind: str = "noted") -> None:
    for number in range(count):
        event_append(run.pk, kind, {"n": number}, epoch=None)


def subscribe(run: Run, after: int = 0) -> dict[str, Any]:
    return {"type": "subscribe", "run": run.pk, "after": after}


@pytest.fixture
def shown(queue: Callable[..., Run]) -> Run:
    return queue(visibility="public")


async def test_a_reader_gets_what_is_stored_and_then_what_comes(shown: Run) -> None:
    await append(shown, 5)
    async with socket(None, subscribe(shown, 2)) as talk:
        assert await seqs(talk, 5) == [3, 4, 5]
        await append(shown, 3)
        assert await seqs(talk, 8) == [6, 7, 8]


async def test_each_reader_is_told_in_their_own_language(shown: Run) -> None:
    async with (
        socket(None, subscribe(shown)) as english,
        socket(None, {**subscribe(shown), "language": "zh-Hans"}) as chinese,
    ):
        await append(shown, 1, "paused")
        told = [await first_events(talk) for talk in (english, chinese)]
    assert [message["events"][0]["word"] for message in told] == ["paused", "暂停"]
    assert ["工作时间" in message["head"]["html"]["run-budgets"] for message in told] == [False, True]


async def test_two_tabs_and_the_log_are_equal(shown: Run) -> None:
    """V5"""
    async with socket(None, subscribe(shown)) as one, socket(None, subscribe(shown)) as two:
        await append(shown, 40)
        assert await seqs(one, 40) == await seqs(two, 40) == list(range(1, 41))


async def test_a_dropped_socket_comes_back_without_hole_or_repeat(shown: Run) -> None:
    """V2: events while the socket is gone are sent after it came back, once and in order."""
    async with socket(None, subscribe(shown)) as talk:
        await append(shown, 10)
        before = await seqs(talk, 10)
    await append(shown, 200)
    async with socket(None, subscribe(shown, before[-1])) as talk:
        assert before + await seqs(talk, 210) == list(range(1, 211))


async def test_events_come_though_the_bell_is_silent(shown: Run, monkeypatch) -> None:
    """V3: a broker that is down delays a viewer and loses nothing."""
    monkeypatch.setattr("runs.live.hub.LOOK_EVERY_S", 0.3)
    async with socket(None, subscribe(shown)) as talk:
        monkeypatch.setattr(bell, "CHANNEL", "nobody-listens-here")
        await append(shown, 3)
        assert await seqs(talk, 3) == [1, 2, 3]


async def test_a_stalled_viewer_stops_nobody_and_catches_up(shown: Run, monkeypatch) -> None:
    """V4: whoever falls off the ring reads from the database."""
    monkeypatch.setattr("runs.streaming.EVENTS_IN_PIECE", 2)
    monkeypatch.setattr("runs.live.hub.RING", 8)
    total, got, free = 100, list[int](), asyncio.Event()

    async def stuck(piece: Piece) -> None:
        got.extend(event["seq"] for event in json.loads(piece.text)["events"])
        await free.wait()

    slow = Viewer(give=stuck, position=0)
    following = asyncio.create_task(slow.follow(hub(), *run_key(shown.pk, "en")))
    async with socket(None, subscribe(shown)) as quick:
        await append(shown, total)
        assert await seqs(quick, total) == list(range(1, total + 1))
        assert len(got) < 10
        free.set()
        await append(shown, 1)
        await seqs(quick, total + 1)
        await asyncio.wait_for(_reached(got, total + 1), PATIENCE_S)
    following.cancel()
    assert got == list(range(1, total + 2))


async def test_no_event_body_goes_over_the_bus(shown: Run) -> None:
    """V4: the bell says run and number."""
    ear = bell.broker().pubsub()
    await sync_to_async(ear.subscribe)(bell.CHANNEL)
    await append(shown, 1)
    heard = [await sync_to_async(ear.get_message)(timeout=PATIENCE_S) for _ in range(2)]
    assert heard[-1]["data"] == f"{shown.pk} 1".encode()


async def test_strangers_are_told_that_there_is_no_such_run(queue, charlie: User, alice: User) -> None:
    run = await sync_to_async(queue)()
    await append(run, 1)
    for user in (None, charlie):
        async with socket(user, subscribe(run)) as talk:
            assert json.loads(await talk.receive_from(timeout=PATIENCE_S))["code"] == "not_found"
    async with socket(alice, subscribe(run)) as talk:
        assert await seqs(talk, 1) == [1]


async def test_a_run_made_private_ends_the_strangers_stream(shown: Run, alice: User) -> None:
    async with socket(None, subscribe(shown)) as talk:
        await append(shown, 1)
        assert await seqs(talk, 1) == [1]
        await sync_to_async(run_share)(run=shown, by=alice, visibility=Visibility.PRIVATE)
        assert json.loads(await talk.receive_from(timeout=PATIENCE_S))["code"] == "not_found"
        await append(shown, 1)
        assert await talk.receive_nothing(timeout=0.5)


async def test_terminal_bytes_come_from_the_offset_on(shown: Run) -> None:
    store = sync_to_async(terminal_store)
    facts = {"run_id": shown.pk, "session": "main", "at": timezone.now()}
    await store(offset=0, data=b"hello ", **facts)
    wanted = {"type": "subscribe_terminal", "run": shown.pk, "session": "main", "offset": 2}
    async with socket(None, wanted) as talk:
        first = json.loads(await talk.receive_from(timeout=PATIENCE_S))
        await store(offset=6, data=b"world", **facts)
        second = json.loads(await talk.receive_from(timeout=PATIENCE_S))
    assert [(m["offset"], m["data"]) for m in (first, second)] == [(2, "bGxvIA=="), (6, "d29ybGQ=")]


async def test_strangers_get_no_byte_of_a_private_terminal(queue, charlie: User, alice: User) -> None:
    """A1: neither what is stored nor what comes."""
    run = await sync_to_async(queue)()
    store = sync_to_async(terminal_store)
    facts = {"run_id": run.pk, "session": "main", "at": timezone.now()}
    await store(offset=0, data=b"hello ", **facts)
    wanted = {"type": "subscribe_terminal", "run": run.pk, "session": "main", "offset": 0}
    for user in (None, charlie):
        async with socket(user, wanted) as talk:
            told = json.loads(await talk.receive_from(timeout=PATIENCE_S))
            assert (told["type"], told["code"], "data" in told) == ("error", "not_found", False)
            await store(offset=6, data=b"world", **facts)
            assert await talk.receive_nothing(timeout=0.5)
    async with socket(alice, wanted) as talk:
        assert json.loads(await talk.receive_from(timeout=PATIENCE_S))["offset"] == 0


@pytest.mark.parametrize("turns", range(5))
async def test_a_feed_that_is_poked_while_it_is_told_to_end_ends(shown: Run, turns: int) -> None:
    """Python 3.11's `wait_for` drops the cancellation when both come together."""
    _key, source = run_key(shown.pk, "en")
    feed = Feed(source)
    task = asyncio.create_task(feed.run())
    await asyncio.sleep(0.3)
    feed.poke()
    for _turn in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    assert await asyncio.wait([task], timeout=PATIENCE_S) == ({task}, set())


async def test_the_ear_ends_though_its_connection_fails_while_it_is_closed(shown: Run, monkeypatch) -> None:
    async with socket(None, subscribe(shown)) as talk:
        await append(shown, 1)
        await seqs(talk, 1)
        ear = hub()._ear
        assert ear

        async def broken(*_args: object, **_kwargs: object) -> None:
            raise ConnectionError("gone while it was closed")

        monkeypatch.setattr(redis.asyncio.Redis, "aclose", broken)
    assert await asyncio.wait([ear], timeout=PATIENCE_S) == ({ear}, set())


async def test_nothing_is_left_when_the_last_viewer_goes(shown: Run) -> None:
    async with socket(None, subscribe(shown)) as talk:
        await append(shown, 1)
        await seqs(talk, 1)
    async with asyncio.timeout(PATIENCE_S):
        while hub()._feeds or [task for task in asyncio.all_tasks() if task.get_name().startswith(("feed", "bell"))]:
            await asyncio.sleep(0.02)
