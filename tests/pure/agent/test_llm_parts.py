"""Back-off, prices, the table of provider errors and the address policy: all without a network."""

import ipaddress
import random
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from runs.agent.events import Usage
from runs.agent.llm.backoff import Backoff
from runs.agent.llm.errors import error_from_status, retry_after_s
from runs.agent.llm.network import BoundSecret, is_public, judged_addresses
from runs.agent.pricing import PriceList, Pricing
from runs.agent.protocols import AddressRefused, ProviderDown, RateLimited, UnknownModel, WrongKey

USAGE = Usage(input=1000, cached=500, output=100)


def test_waits_double_up_to_a_cap_with_jitter():
    """R10"""
    backoff, rng = Backoff(), random.Random(7)
    waits = [[backoff.delay_s(attempt, rng=rng) for _ in range(50)] for attempt in range(1, 12)]
    for attempt, drawn in enumerate(waits, start=1):
        ceiling = min(60.0, 2.0 ** (attempt - 1))
        assert ceiling / 2 <= min(drawn) < max(drawn) <= ceiling
    assert backoff.delay_s(10**9) <= 60


def test_what_the_provider_asks_for_is_never_undercut():
    """R10"""
    for attempt in (0, 1, 20):
        assert 100 <= Backoff().delay_s(attempt, 100.0) <= 110
    assert Backoff().delay_s(5, 0.0) >= 8
    assert Backoff().delay_s(1, 10.0**9) <= 3960


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Fri, 02 Jan 2026 03:05:05 GMT"}, 60),
        ({"retry-after": "Fri, 02 Jan 2026 03:05:05"}, 60),
        ({"retry-after": "Fri, 02 Jan 2020 03:05:05 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_a_number_or_a_date(headers: dict[str, str], seconds: float | None):
    assert retry_after_s(headers, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == seconds


def test_prices_of_the_config_come_first_and_cached_input_is_counted_once():
    own = PriceList(Decimal(2), Decimal(10), Decimal("0.2"))
    assert Pricing("openai", "house", None, own).cost(USAGE) == Decimal("0.0021")
    assert PriceList(Decimal(2), Decimal(10)).cost(USAGE) == Decimal("0.003")


def test_prices_of_the_library_are_those_of_the_provider_that_is_asked():
    """R14"""
    assert Pricing("anthropic", "claude-sonnet-4").cost(USAGE) == Decimal("0.00315")
    assert Pricing("openai", "anthropic/claude-sonnet-4", "https://openrouter.ai/api/v1").known()
    assert Pricing("openai", "gpt-4o", "http://10.0.0.1:8000/v1").cost(USAGE) is None
    assert not Pricing("openai", "house-model").known()
    assert Pricing("scripted", "reference").cost(USAGE) == 0


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (429, "slow down", RateLimited),
        (402, "payment required", WrongKey),
        (400, "Your credit balance is too low", WrongKey),
        (408, "", ProviderDown),
        (409, "", ProviderDown),
        (529, "overloaded", ProviderDown),
        (400, "The model `x` does not exist", UnknownModel),
        (302, "", AddressRefused),
    ],
)
def test_statuses_have_their_meaning(status: int, said: str, kind: type[Exception]):
    assert type(error_from_status(status, "", said)) is kind


def test_long_messages_of_a_provider_are_cut():
    assert len(str(error_from_status(400, "", "x" * 10_000))) < 800


PRIVATE = """
127.0.0.1 10.0.0.1 172.16.5.4 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 255.255.255.255 224.0.0.1 240.0.0.1
192.0.2.1 198.18.0.1 ::1 :: fe80::1 fc00::1 fd00:ec2::254 ff02::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1
64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2001::1 fec0::1 ::127.0.0.1 2001:db8::1
"""
PUBLIC = "1.1.1.1 104.18.6.192 2606:4700::6812:6c0 ::ffff:1.1.1.1 64:ff9b::101:101"


@pytest.mark.parametrize("address", PRIVATE.split())
def test_addresses_that_no_config_may_reach(address: str):
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses_are_fine(address: str):
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "0177.0.0.1", "2130706433", "127.1", "0x7f.1", "[::1]".strip("[]")])
def test_every_spelling_of_loopback_is_refused_and_the_operator_may_allow_one(host: str):
    with pytest.raises((AddressRefused, OSError)):
        judged_addresses(host, 8000, ())
    with pytest.raises((AddressRefused, OSError)):
        judged_addresses(host, 8000, {f"{host}:8001"})


def test_the_allow_list_is_by_host_and_port():
    assert judged_addresses("127.0.0.1", 8000, {"127.0.0.1:8000"}) == ["127.0.0.1"]


def test_a_secret_is_for_one_host_and_port():
    secret = BoundSecret("sk-x", "Models.Example:8443")
    assert secret.for_url("https://models.example:8443/v1") == "sk-x"
    for place in ("models.example", "evil.example:8443", "xmodels.example:8443"):
        with pytest.raises(WrongKey, match=f"send it to {place}"):
            secret.for_url(f"https://{place}/v1")
    with pytest.raises(WrongKey):
        BoundSecret("sk-x", "models.example").for_url("https://models.example:8443/v1")
