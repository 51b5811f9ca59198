"""One contract over every way to the evaluator: requests go out once signed, results come until they are settled."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import redis
from django.conf import settings

from evaluator.contract import ScoreRequest, sign, verify
from runs.scoring.client import REQUESTS, RESULTS, Evaluator, EvaluatorDown, QueueEvaluator
from runs.scoring.fake import FakeEvaluator, Verdict


def request(evaluation: int = 7) -> ScoreRequest:
    return ScoreRequest(
        evaluation=evaluation,
        try_no=1,
        nonce="n" * 20,
        task_digest="a" * 64,
        sealed_address="/sealed",
        sealed_sha256="b" * 64,
        bundle_address="/bundle",
        bundle_sha256="c" * 64,
        size=10,
        seed=1,
        issued_at=datetime.now(UTC),
    )


def fake() -> FakeEvaluator:
    own = settings.EVALUATOR_KEY_PATH.read_bytes()
    return FakeEvaluator(lambda _: Verdict(accuracy=0.5), own_key=own, site_public=_site_public())


def _site_public() -> bytes:
    return settings.SITE_KEY_PATH.with_suffix(".pub").read_bytes()


class Answered:
    """The queue with a program at its far end that answers when results are asked for."""

    def __init__(self, broker: redis.Redis) -> None:
        self.queue, self.broker, self.program = QueueEvaluator(broker), broker, fake()

    def submit(self, envelope: bytes) -> str:
        return self.queue.submit(envelope)

    def holds(self, ticket: str) -> bool:
        return self.queue.holds(ticket)

    def results(self) -> object:
        for entry, fields in self.broker.xrange(REQUESTS):
            asked = verify(fields[b"envelope"], _site_public())
            self.broker.xadd(RESULTS, {"envelope": self.program.envelope(asked)})
            self.broker.xdel(REQUESTS, entry)
        return self.queue.results()

    def settle(self, delivered: object) -> None:
        self.queue.settle(delivered)


@pytest.fixture(params=["fake", "queue"])
def way(request, servers) -> Iterator[Evaluator]:
    if request.param == "fake":
        yield fake()
        return
    broker = redis.Redis.from_url(settings.REDIS_URL)
    broker.delete(REQUESTS, RESULTS)
    yield Answered(broker)
    broker.delete(REQUESTS, RESULTS)


def envelope(number: int = 7) -> bytes:
    return sign(request(number), settings.SITE_KEY_PATH.read_bytes())


def test_a_request_is_held_until_it_is_answered(way: Evaluator) -> None:
    ticket = way.submit(envelope())
    assert way.holds(ticket)
    assert way.results()
    assert not way.holds(ticket)


def test_a_result_is_signed_and_answers_its_request(way: Evaluator) -> None:
    way.submit(envelope(9))
    (delivered,) = way.results()
    result = verify(delivered.envelope, settings.EVALUATOR_PUBLIC_KEY_PATH.read_bytes())
    assert (result.evaluation, result.nonce, result.metrics) == (9, "n" * 20, {"accuracy": 0.5})


def test_a_settled_result_does_not_come_again(way: Evaluator) -> None:
    way.submit(envelope())
    (delivered,) = way.results()
    way.settle(delivered)
    way.settle(delivered)
    assert list(way.results()) == []


def test_several_results_all_come(way: Evaluator) -> None:
    for number in range(5):
        way.submit(envelope(number))
    assert len(way.results()) == 5


def test_a_ticket_of_somebody_else_is_not_held(way: Evaluator) -> None:
    assert not way.holds("1-1")


def test_a_queue_that_is_away_says_so() -> None:
    away = QueueEvaluator(redis.Redis.from_url("unix:///nonexistent/valkey.sock"))
    for attempt in (lambda: away.submit(b""), lambda: away.holds("1-1"), away.results):
        with pytest.raises(EvaluatorDown):
            attempt()


def test_what_a_dead_process_took_is_delivered_to_another(servers, monkeypatch) -> None:
    broker = redis.Redis.from_url(settings.REDIS_URL)
    broker.delete(REQUESTS, RESULTS)
    first = Answered(broker)
    first.submit(envelope())
    assert len(first.results()) == 1
    monkeypatch.setattr("runs.scoring.client.STALE_MS", 0)
    assert len(QueueEvaluator(broker).results()) == 1
