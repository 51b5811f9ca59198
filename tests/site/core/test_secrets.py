"""Secrets print dots; the vault's lock opens only with the identity."""

import pickle
import traceback
from pathlib import Path

import pyrage
import pytest

from portal.core.secrets import Secret, VaultClosed, vault_open, vault_seal

VALUE = "sk-very-secret-0123456789"


def test_no_way_of_printing_shows_a_secret():
    """A2"""
    secret = Secret(VALUE)
    shown = [
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret:>40}",
        repr([secret]),
        repr({"k": secret}),
    ]
    assert not any(VALUE in text for text in shown)
    assert secret.reveal() == VALUE


def test_a_traceback_that_holds_a_secret_does_not_show_it():
    """A2"""
    secret = Secret(VALUE)
    try:
        raise ValueError(secret)
    except ValueError as problem:
        lines = traceback.TracebackException.from_exception(problem, capture_locals=True).format()
        assert VALUE not in "".join(line for line in lines if "VALUE" not in line)


def test_a_secret_is_never_pickled():
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(Secret(VALUE))


def test_what_was_sealed_opens_with_the_identity(settings):
    sealed = vault_seal(Secret(VALUE))
    assert VALUE.encode() not in sealed
    assert vault_open(sealed) == Secret(VALUE)


def test_a_process_without_identity_can_seal_but_not_open(settings):
    settings.VAULT_IDENTITY_PATH = None
    sealed = vault_seal(Secret(VALUE))
    with pytest.raises(VaultClosed, match="without VAULT_IDENTITY_PATH"):
        vault_open(sealed)


def test_another_identity_opens_nothing(tmp_path: Path):
    other = tmp_path / "other"
    other.write_text(f"# another vault\n{pyrage.x25519.Identity.generate()}\n")
    with pytest.raises(VaultClosed, match="another identity"):
        vault_open(vault_seal(Secret(VALUE)), other)


def test_damaged_or_foreign_bytes_are_refused_with_a_sentence(settings):
    with pytest.raises(VaultClosed, match="damaged"):
        vault_open(b"age-encryption.org/v1\n-> nonsense")


def test_a_missing_recipient_is_named(settings):
    settings.VAULT_RECIPIENT = "unset"
    with pytest.raises(VaultClosed, match="VAULT_RECIPIENT"):
        vault_seal(Secret(VALUE))
