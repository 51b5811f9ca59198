"""The audit log is appended to; a request sent twice acts once."""

import threading

import pytest
from django.db import IntegrityError, connection, transaction

from portal.accounts.models import User
from portal.core.audit import audit_of_thing, audit_write
from portal.core.idempotency import (
    IdempotencyKeyReused,
    StoredAnswer,
    idempotency_claim,
    idempotency_prune,
    idempotency_store,
)
from portal.core.models import AuditEntry, IdempotencyKey


def test_the_database_refuses_to_change_or_delete_an_audit_entry(alice: User):
    entry = audit_write(verb="renamed", thing=alice, by=alice, facts={"before": "a"})
    for deed in (lambda: AuditEntry.objects.update(verb="nothing"), entry.delete):
        with pytest.raises(IntegrityError, match="appended"), transaction.atomic():
            deed()
    assert [(row.verb, row.by) for row in audit_of_thing(thing=alice)] == [("renamed", alice)]


def test_the_same_request_gets_the_first_answer(alice: User):
    """S12"""
    with transaction.atomic():
        assert idempotency_claim(user=alice, key="k1", request=b"POST /runs {}") is None
        idempotency_store(user=alice, key="k1", answer=StoredAnswer(201, {"run": 412}))
    with transaction.atomic():
        again = idempotency_claim(user=alice, key="k1", request=b"POST /runs {}")
    assert again == StoredAnswer(201, {"run": 412})


def test_the_same_key_with_another_body_is_a_conflict(alice: User):
    """S12"""
    idempotency_claim(user=alice, key="k1", request=b"a")
    with pytest.raises(IdempotencyKeyReused) as caught:
        idempotency_claim(user=alice, key="k1", request=b"b")
    assert caught.value.status == 409
    assert "k1" in caught.value.sentence


def test_keys_of_two_people_have_nothing_to_do_with_each_other(alice: User, bob: User):
    """S12"""
    assert idempotency_claim(user=alice, key="k1", request=b"a") is None
    assert idempotency_claim(user=bob, key="k1", request=b"b") is None


@pytest.mark.django_db(transaction=True)
def test_a_second_request_waits_for_the_first_and_gets_its_answer():
    """S12"""
    user = User.objects.create_user("alice")
    answers: list[StoredAnswer | None] = []

    def second() -> None:
        with transaction.atomic():
            answers.append(idempotency_claim(user=user, key="k", request=b"a"))
        connection.close()

    with transaction.atomic():
        idempotency_claim(user=user, key="k", request=b"a")
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        idempotency_store(user=user, key="k", answer=StoredAnswer(201, 7))
    thread.join(60)
    assert answers == [StoredAnswer(201, 7)]


def test_a_request_that_failed_leaves_its_key_free(alice: User):
    with transaction.atomic():
        idempotency_claim(user=alice, key="k", request=b"a")
        transaction.set_rollback(True)
    assert idempotency_claim(user=alice, key="k", request=b"other") is None


def test_old_keys_are_forgotten(alice: User):
    idempotency_claim(user=alice, key="k", request=b"a")
    assert idempotency_prune() == 0
    IdempotencyKey.objects.update(created_at="2020-01-01T00:00:00Z")
    assert idempotency_prune() == 1
