"""MAIL_URL: what it becomes, and what is said of one that can't be."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.settings import env


@pytest.mark.parametrize(
    ("url", "port", "tls", "ssl"),
    [
        ("smtp://mail.example.org", 25, False, False),
        ("smtp+tls://mail.example.org", 587, True, False),
        ("smtps://mail.example.org:4465", 4465, False, True),
    ],
)
def test_a_mail_server_is_read_from_its_address(url: str, port: int, tls: bool, ssl: bool) -> None:
    found = env.mail(url)
    assert found["EMAIL_HOST"] == "mail.example.org"
    assert (found["EMAIL_PORT"], found["EMAIL_USE_TLS"], found["EMAIL_USE_SSL"]) == (port, tls, ssl)


def test_user_and_password_may_hold_any_character() -> None:
    found = env.mail("smtps://a%40b:p%2Fw%3A@mail.example.org")
    assert (found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"]) == ("a@b", "p/w:")


@pytest.mark.parametrize("url", ["http://user:geheim@mail.example.org", "mail.example.org", "smtp://", ""])
def test_what_is_no_mail_server_is_named_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="MAIL_URL must be") as told:
        env.mail(url)
    assert "geheim" not in str(told.value)
