"""The event log: gap-free, fenced, storable whatever comes, with the clock in the same statement."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from gymnode.rendering import storable
from portal.core.blobs import blobs
from runs.eventlog import Change, agent_events, blob_key, clock_switch, event_append, whole_body
from runs.ledger import Clock
from runs.masks import Masks
from runs.models.log import Event
from runs.models.run import Run
from runs.selectors import run_spans, working_s


@pytest.fixture
def run(queue) -> Run:
    return queue()


def newest(run: Run) -> Event:
    return Event.objects.filter(run=run).order_by("-seq")[0]


def test_text_that_postgres_refuses_is_stored_as_something_visible(run: Run) -> None:
    """T1: NUL in lists and keys, lone surrogates, NaN and infinities."""
    body = {"a\0b": ["c\0d", {"x\0": "\ud800"}], "n": float("nan"), "i": float("inf"), "m": float("-inf")}
    event_append(run.pk, "noted", body, epoch=None)
    stored = newest(run).body
    assert stored["a\u2400b"] == ["c\u2400d", {"x\u2400": "\ufffd"}]
    assert (stored["n"], stored["i"], stored["m"]) == ("NaN", "Infinity", "-Infinity")


ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=8)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, phases=[Phase.explicit, Phase.generate])
@example(body={"\0": {"\ud800\0": [float("nan"), {"\udfff": -0.0}]}, "n": 10**4000, "f": 1e308, "": "\0" * 9})
@given(body=st.dictionaries(ANY_TEXT, ANY_JSON, max_size=4))
def test_any_body_is_stored_and_comes_back_as_its_storable_form(run: Run, body) -> None:
    """T1: PostgreSQL's jsonb refuses none of it."""
    event_append(run.pk, "noted", body, epoch=None)
    stored, meant = (json.loads(json.dumps(each), parse_int=float) for each in (newest(run).body, storable(body)))
    assert stored == meant


def test_a_big_body_lies_in_the_blob_store_and_comes_back_whole(run: Run) -> None:
    body = {"text": "x" * 200_000, "many": ["y" * 500] * 400, "small": 1}
    event_append(run.pk, "noted", body, epoch=None)
    event = newest(run)
    assert len(json.dumps(event.body)) <= 64 * 1024
    assert event.body["small"] == 1
    assert blobs().exists(blob_key(event.blob))
    assert whole_body(event) == body
    assert agent_events([event])[0].body == body


def test_many_writers_leave_no_gap_and_no_double(run: Run) -> None:
    def write(_number: int) -> None:
        try:
            event_append(run.pk, "noted", {}, epoch=None, change=Change(clock=Clock.ENGINE, steps=1))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(100)))
    rows = list(Event.objects.filter(run=run).order_by("seq").values_list("seq", "step"))
    assert rows == [(n, n) for n in range(1, 101)]
    run.refresh_from_db()
    spans = run_spans(run)
    assert all(a.ended_at == b.started_at for a, b in pairwise(spans))


def test_a_wrong_epoch_writes_neither_event_nor_clock(run: Run) -> None:
    assert event_append(run.pk, "noted", {}, epoch=99, change=Change(clock=Clock.MODEL)) is None
    assert clock_switch(run.pk, Clock.MODEL, epoch=99) is None
    run.refresh_from_db()
    assert (run.seq, run.clock_kind, run.intervals.count()) == (0, Clock.QUEUE, 0)


def test_charged_time_moves_the_deadline_and_other_time_lifts_it(run: Run) -> None:
    begin = timezone.now()
    Run.objects.filter(pk=run.pk).update(limit_s=100, clock_since=begin)
    clock_switch(run.pk, Clock.MODEL, epoch=None, at=begin + timedelta(seconds=5))
    clock_switch(run.pk, Clock.INFRASTRUCTURE, epoch=None, at=begin + timedelta(seconds=35))
    run.refresh_from_db()
    assert (run.charged_s, run.deadline_at) == (30, None)
    clock_switch(run.pk, Clock.ACTION, epoch=None, at=begin + timedelta(seconds=50))
    run.refresh_from_db()
    assert run.deadline_at == begin + timedelta(seconds=120)
    assert working_s(run, begin + timedelta(seconds=60)) == 40


def test_time_of_a_refused_model_call_is_nobodys(run: Run) -> None:
    """R10"""
    begin = timezone.now()
    Run.objects.filter(pk=run.pk).update(clock_since=begin)
    clock_switch(run.pk, Clock.MODEL, epoch=None, at=begin + timedelta(seconds=1))
    ends = begin + timedelta(seconds=61)
    clock_switch(run.pk, Clock.ENGINE, epoch=None, close_as=Clock.INFRASTRUCTURE, at=ends)
    run.refresh_from_db()
    assert run.charged_s == 0
    assert [interval.kind for interval in run.intervals.order_by("started_at")] == ["queue", "infrastructure"]


def test_a_clock_that_goes_back_charges_nothing_negative(run: Run) -> None:
    """R15"""
    clock_switch(run.pk, Clock.MODEL, epoch=None)
    clock_switch(run.pk, Clock.ENGINE, epoch=None, at=timezone.now() - timedelta(hours=1))
    run.refresh_from_db()
    assert run.charged_s == 0
    assert not run.intervals.filter(kind=Clock.MODEL).exists()


def test_masks_cover_values_in_texts_lists_and_keys() -> None:
    """A2"""
    masks = Masks(("sk-secret-value",))
    covered = masks.over({"a": ["key sk-secret-value!"], "sk-secret-value": 1})
    assert "sk-secret" not in json.dumps(covered, ensure_ascii=False)
    assert "secret" not in repr(masks)
