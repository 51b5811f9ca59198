"""Limits by address: what a client writes into X-Forwarded-For is nobody's address."""

from allauth.core.internal.httpkit import get_client_ip
from django.test import RequestFactory
from rest_framework.throttling import AnonRateThrottle


def test_limits_by_address_do_not_believe_what_a_client_writes() -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": "192.0.2.9, 192.0.2.10"})
    assert AnonRateThrottle().get_ident(request) == "127.0.0.1"
    assert get_client_ip(request) == "127.0.0.1"
