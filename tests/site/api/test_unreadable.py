"""Bodies that nobody can read: said so with a 400 or 413, never a fault of ours."""

import asyncio

import pytest
from django.urls import reverse, reverse_lazy

from portal.accounts.models import ApiToken, VaultSecret
from portal.core.bodies import BodyLimit

DEEP = b"[" * 100_000
HALF = b'{"config": "x", "tasks": ["t"], "visibility": "\\ud800"}'
NO_CHARSETS = ["base64", "rot13", "hex", "zlib", "undefined"]
PART = b'--x\r\nContent-Disposition: form-data; name="login"\r\n\r\n\xff a.-\r\n--x--\r\n'
DOORS = [("post", reverse_lazy(name)) for name in ("api-tokens", "api-configs", "api-config-check", "api-submissions")]
DOORS += [("put", reverse_lazy("api-secret", args=["MY_KEY"]))]
FORMS = {
    "charset": ("application/x-www-form-urlencoded; charset=utf-7", b"a=1"),
    "no boundary": ("multipart/form-data", b"--x"),
    "many fields": ("application/x-www-form-urlencoded", b"a=1&" * 5_000),
}


@pytest.mark.parametrize("body", [DEEP, b'{"a":' * 50_000, HALF, b"\xff", b"{"])
@pytest.mark.parametrize("name", ["api-submissions", "api-configs", "api-config-check", "api-tokens"])
def test_json_that_cannot_be_kept_is_malformed(token, alice, name, body):
    answer = token(alice).post(reverse(name), body, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_request")


@pytest.mark.parametrize("number", ["1e999", "-1e400", "NaN", "Infinity", '{"deep": [-1e999]}'])
@pytest.mark.parametrize("field", ["name", "config", "value", "of nobody"])
def test_a_number_that_is_none_becomes_no_text(token, alice, field, number):
    """T3: `inf` is nobody's name and nobody's secret."""
    for method, address in DOORS:
        body = f'{{"name": "n", "value": "v", "host": "h.example", "scopes": ["read"], "{field}": {number}}}'
        answer = getattr(token(alice), method)(address, body, content_type="application/json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_request")
    assert (ApiToken.objects.filter(name="inf").exists(), VaultSecret.objects.exists()) == (False, False)


@pytest.mark.django_db
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("address", ["/nowhere/", "/api/v1/nowhere/", "/accounts/login/", "/submit/"])
def test_a_form_that_cannot_be_read_gets_its_page(client, address, form):
    content_type, body = FORMS[form]
    client.raise_request_exception = False
    assert client.post(address, body, content_type=content_type).status_code == 400


@pytest.mark.parametrize("charset", [*NO_CHARSETS, "punycode"])
def test_a_charset_that_is_none_of_texts_is_malformed(token, alice, charset):
    content_type = f"application/json; charset={charset}"
    answer = token(alice).generic("POST", reverse("api-config-check"), b'{"config": ".-"}', content_type)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_request")
    assert answer.json()["error"]["message"] == f"{charset} is no charset of a text; send JSON as UTF-8."


@pytest.mark.parametrize("charset", [*NO_CHARSETS, "idna"])
@pytest.mark.parametrize("address", ["/nowhere/", "/accounts/login/", "/submit/", "/api/v1/configs/check/"])
def test_a_form_in_a_charset_that_is_none_of_texts_gets_its_page(client, alice, address, charset):
    client.force_login(alice)
    client.raise_request_exception = False
    answer = client.generic("POST", address, PART, f"multipart/form-data; boundary=x; charset={charset}")
    assert answer.status_code in (400, 415)


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["task=%00", "board=%00", "team=%00", "state=%00", "p=%00", "task=" + "9" * 5000])
def test_filters_that_name_nothing_count_as_not_given(client, query):
    assert client.get(f"{reverse('runs')}?{query}").status_code == 200


def test_an_agent_to_copy_has_a_number_of_moderate_size(client, alice):
    client.force_login(alice)
    assert client.get(f"{reverse('submit')}?config={'9' * 5000}").status_code == 200


def sent(parts: list[bytes], declared: int | None = None) -> list[int]:
    """Statuses that an application which reads the whole body gives behind a limit of 100 bytes."""
    statuses: list[int] = []
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

    async def receive():
        return waiting.pop(0) if waiting else {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        statuses.extend([message["status"]] if "status" in message else [])

    async def app(scope, receive, send):
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.request":
            await send({"type": "http.response.start", "status": 200, "headers": []})

    headers = [] if declared is None else [(b"content-length", str(declared).encode())]
    asyncio.run(BodyLimit(app, most=100)({"headers": headers}, receive, send))
    return statuses


def test_a_body_is_refused_when_it_says_or_shows_that_it_is_too_large():
    """F5"""
    assert sent([b"x" * 60, b"x" * 40], declared=100) == [200]
    assert sent([b"x" * 60, b"x" * 60]) == [413]
    assert sent([b"x" * 60, b"x" * 60], declared=10) == [413]
    assert sent([], declared=10**12) == [413]
