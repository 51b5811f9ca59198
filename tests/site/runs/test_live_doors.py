"""The socket's door: from whose pages it opens, and what it makes of messages that are none."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from runs.eventlog import event_append
from tests.site.runs.sockets import PATIENCE_S, handshake, seqs, socket

SITE = "localhost:8800"
FOREIGN = [
    *("https://evil.example", "http://localhost:9999", "http://localhost", "https://localhost:8800"),
    *("ws://localhost:8800", "chrome-extension://localhost", "http://evil.example@localhost:8800", "null", ""),
    *("http://localhost:8800, http://evil.example", "http://localhost:8800 http://evil.example", "http://[::1"),
    *("http://localhost:abc", "http://localhost:8800/", "http://localhost:8800@evil.example", "http://127.0.0.1:8800"),
    *("//localhost:8800", "localhost:8800", "http://", "http://localhost:8800\xff", "https://evil.example:8800\\"),
]
STRANGE_NAMES = ['"\\ud800"', '"a\\udfffb"', '"a\\u0000"', '""', f'"{"x" * 121}"', "1", "null", "[]", "true", '{"a":1}']
STRANGE_NUMBERS = ["NaN", "Infinity", "1e999", "-1", "1.5", "true", "null", '"1"', "[1]", "9" * 30, "9" * 4000, "{}"]
BROKEN = [
    *("nonsense", "[]", "{", "1", '"x"', "null", " ", "[" * 4_000, '{"a":' * 800, "NaN", '{"x":' + "[" * 3_000),
    *('{"type":"subscribe"}', '{"type":"x","run":1}', '{"run":true}', '{"type":["subscribe"],"run":1}'),
    *('{"type":null,"run":1}', '{"type":"subscri\\u0000be","run":1}', '{"type":"subscribe","run":1,"\\ud800":1}'),
    *('{"type":"subscribe","run":1,"language":"\\ud800"}', '{"type":"subscribe","run":1,"language":["en"]}'),
    *(
        '{"type":"subscribe","run":1,"of nobody":NaN}',
        '{"type":"unsubscribe","run":1,"session":"\\ud800"}',
        "x" * 5_000,
    ),
]


async def let_in(headers: dict[str, str], path: str = "/ws/", scheme: str = "ws") -> bool:
    talk = handshake(headers, path, scheme)
    connected, _code = await talk.connect(timeout=PATIENCE_S)
    await talk.disconnect(timeout=PATIENCE_S)
    return bool(connected)


@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_page_of_another_origin_opens_no_socket(origin):
    """T8: a foreign page that a signed-in person visits reads nothing, and nothing it sends is a fault of ours."""
    assert await let_in({"host": SITE, "origin": f"http://{SITE}"})
    assert not await let_in({"host": SITE, "origin": origin})


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8800", "", "localhost:abc", "[::1", "localhost@evil", "a b"]
)
async def test_a_host_that_is_not_ours_opens_no_socket(host):
    """T8: also when Origin names that same host."""
    for origin in (f"http://{SITE}", f"http://{host}"):
        assert not await let_in({"host": host, "origin": origin})


async def test_who_names_no_origin_or_no_host_or_another_address_is_refused():
    """T8"""
    assert not await let_in({"host": SITE})
    assert not await let_in({"origin": f"http://{SITE}"})
    for path in ("/", "/ws", "/ws/more", "/elsewhere/"):
        assert not await let_in({"host": SITE, "origin": f"http://{SITE}"}, path)


@pytest.mark.parametrize(
    ("origin", "fits"),
    [
        *(("https://testserver", True), ("https://trusted.example", True), ("https://a.wide.example", True)),
        *(("https://wide.example", False), ("http://a.wide.example", False), ("https://x@a.wide.example", False)),
        *(("http://testserver", False), ("https://awide.example", False), ("https://a.wide.example:444", False)),
    ],
)
async def test_origins_that_are_trusted_for_forms_are_trusted_for_sockets(settings, origin, fits):
    """T8: behind TLS, with the same list."""
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example", "https://*.wide.example"]
    assert await let_in({"host": "testserver", "origin": origin}, scheme="wss") is fits


@pytest.mark.parametrize("path", ["/static/css/base.css", "/static/missing.css", "/api/v1/boards/", "/", "/nowhere/"])
def test_nothing_answers_under_a_foreign_host(path):
    """T8"""
    assert Client(raise_request_exception=False).get(path, headers={"host": "evil.example"}).status_code == 400


async def test_messages_that_are_none_are_answered_and_harm_nothing(queue):
    """T1"""
    await _refused(queue, *BROKEN, b"\xff\x00")


async def test_sessions_that_are_no_names_are_answered_and_harm_nothing(queue):
    """T1"""
    wanted = '"run":1,"session"'
    await _refused(queue, *(f'{{"type":"subscribe_terminal",{wanted}:{name}}}' for name in STRANGE_NAMES))
    await _refused(queue, *(f'{{"type":"unsubscribe",{wanted}:{name}}}' for name in STRANGE_NAMES))


@pytest.mark.parametrize(
    "message",
    [
        '{"type":"subscribe","run":%s}',
        '{"type":"subscribe","run":1,"after":%s}',
        '{"type":"subscribe_terminal","run":1,"session":"main","offset":%s}',
        '{"type":"unsubscribe","run":%s}',
    ],
)
async def test_numbers_that_are_none_are_answered_and_harm_nothing(queue, message):
    """T1, T3"""
    await _refused(queue, *(message % number for number in STRANGE_NUMBERS))


async def _refused(queue, *texts: str | bytes) -> None:
    """Each is called a bad message, and the socket works on."""
    run = await sync_to_async(queue)(visibility="public")
    async with socket(None) as talk:
        for text in texts:
            await (talk.send_to(bytes_data=text) if isinstance(text, bytes) else talk.send_to(text_data=text))
            answer = json.loads(await talk.receive_from(timeout=PATIENCE_S))
            assert (answer["type"], answer["code"]) == ("error", "bad_message"), text
        await talk.send_json_to({"type": "subscribe", "run": run.pk})
        await sync_to_async(event_append)(run.pk, "noted", {}, epoch=None)
        assert await seqs(talk, 1) == [1]
