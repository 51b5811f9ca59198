"""Mails: a forgotten password can be set anew; a mail server that is away is told as such, and nothing else breaks."""

import re
import socket
from pathlib import Path

import pytest
from django.core import mail
from django.test import Client

from portal.accounts.models import User
from portal.settings import env

RESET = "/accounts/password/reset/"


@pytest.fixture
def nobody_listens(settings) -> None:
    """The mail server's port is closed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name, value in env.mail(f"smtp://127.0.0.1:{port}").items():
        setattr(settings, name, value)


def test_a_forgotten_password_is_set_anew_through_the_mail(client: Client, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    assert client.post(RESET, {"email": "bob@example.org"}).status_code == 302
    link = re.search(r"http://testserver(/accounts/password/reset/key/\S+)", str(mail.outbox[0].body))
    assert link
    form = client.get(link.group(1), follow=True)
    new = "a new and long password"
    answer = client.post(form.redirect_chain[-1][0], {"password1": new, "password2": new})
    assert answer.status_code == 302
    assert Client().login(username="bob", password=new)


@pytest.mark.parametrize("address", ["bob@example.org", "nobody@example.org"])
def test_a_mail_server_that_is_away_is_told_in_a_sentence(client: Client, bob: User, nobody_listens, address) -> None:
    client.raise_request_exception = False
    answer = client.post(RESET, {"email": address})
    assert answer.status_code == 503
    assert "The mail could not be sent" in answer.content.decode()


def test_without_a_mail_server_each_mail_is_a_file(client: Client, bob: User, settings, tmp_path: Path) -> None:
    for name, value in env.mail(f"file://{tmp_path}/mail").items():
        setattr(settings, name, value)
    client.post(RESET, {"email": "nobody@example.org"})
    (found,) = (tmp_path / "mail").iterdir()
    assert "nobody@example.org" in found.read_text()
