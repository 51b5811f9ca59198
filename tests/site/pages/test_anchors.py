"""Links to a part of a page lead to something: the other page has an element with that name."""

import re

import pytest
from django.urls import reverse

pytestmark = pytest.mark.django_db
LINK = re.compile(r'href="([^"#?]*)#([\w-]+)"')


def text(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


@pytest.mark.parametrize("page", ["home", "tasks", "docs", "agents", "runs"])
def test_every_link_to_a_part_of_a_page_names_an_element_there(client, page):
    address = reverse(page)
    parts = {(path or address, name) for path, name in LINK.findall(text(client, address)) if "/static/" not in path}
    missing = [f"{path}#{name}" for path, name in sorted(parts) if f'id="{name}"' not in text(client, path)]
    assert missing == []
