"""Bodies of any JSON to every door of the API that takes one: understood or refused, never a fault of ours."""

import json

import pytest
from django.urls import reverse_lazy
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.site.leaderboard.world import CONFIG

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=12)
EDGES = ["", "\0", "a\0b", "\ud800", "NaN", "nan", CONFIG, CONFIG.replace("reasoner", "a\0b"), f"{CONFIG}prompt: \0"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.sampled_from([*EDGES, 10**400]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ANY_TEXT, inner, max_size=2),
    max_leaves=4,
)
FIELDS = ["config", "tasks", "repeats", "visibility", "board", "team", "name", "scopes", "value", "host"]
FIELDS += ["expires_at"]
BODIES = st.dictionaries(st.sampled_from(FIELDS) | ANY_TEXT, VALUES, max_size=6) | VALUES
WHOLE = {
    "config": CONFIG,
    "tasks": ["example-task"],
    "name": "N",
    "scopes": ["read"],
    "value": "v",
    "host": "h.example",
    "expires_at": None,
}
DOORS = {name: ("post", reverse_lazy(name)) for name in ("api-submissions", "api-configs", "api-config-check")}
DOORS |= {"api-tokens": ("post", reverse_lazy("api-tokens"))}
DOORS |= {name: ("put", reverse_lazy("api-secret", args=[name])) for name in ("MY_KEY", "\0")}
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.parametrize("door", DOORS)
@settings(max_examples=3, deadline=None, suppress_health_check=QUIET, phases=[Phase.explicit, Phase.generate])
@example(body={"\0": [{"\ud800": float("nan")}], **WHOLE})
@given(body=BODIES)
def test_no_body_is_a_fault_of_ours(client, alice, version, door, body):
    """T1: NUL and lone surrogates in values and keys, NaN, infinities, numbers without end."""
    method, address = DOORS[door]
    client.force_login(alice)
    client.raise_request_exception = False
    for name in ("", *WHOLE):
        whole = {**WHOLE, name: body} if name else body
        answer = getattr(client, method)(address, json.dumps(whole), content_type="application/json")
        assert answer.status_code < 500, (whole, answer.content)
        json.loads(answer.content or b"0", parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
