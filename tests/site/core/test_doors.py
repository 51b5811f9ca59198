"""Where a refused request leads back to: a page of this site, whatever its Referer says."""

import pytest
from django.test import RequestFactory

from portal.core.doors import came_from

HERE = "http://testserver"


@pytest.mark.parametrize(
    ("referer", "leads_to"),
    [
        (f"{HERE}/runs/1/?from=3", "/runs/1/?from=3"),
        (f"{HERE}//evil.example/x", "/evil.example/x"),
        (f"{HERE}////evil.example/x?y", "/evil.example/x?y"),
        (HERE, "/"),
        ("http://evil.example/x", "home"),
        ("//evil.example/x", "home"),
        ("javascript:alert(1)", "home"),
        ("http://[::1", "home"),
        ("", "home"),
    ],
)
def test_a_refusal_never_leads_to_another_site(referer, leads_to):
    request = RequestFactory().post("/", headers={"Referer": referer})
    assert came_from(request) == leads_to
