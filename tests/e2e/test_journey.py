"""A newcomer's way through the site in a browser: sign up, submit, watch, read the result. And how pages behave."""

import re
import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.stack import Stack, wait_for

TASK = "grpo-entropy-nano"
ENDS_WITHIN_MS = 240_000
PUBLIC = ("/", "/tasks/", f"/tasks/{TASK}/", "/leaderboard/", "/agents/", "/runs/", "/docs/", "/docs/actions/")
MOST_BYTES = 150 * 1024


@pytest.fixture
def watched(page: Page) -> Iterator[list[str]]:
    """The page's errors and the browser's complaints; a test ends with none."""
    heard: list[str] = []
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("console", lambda line: heard.append(line.text) if line.type == "error" else None)
    yield heard
    assert not [line for line in heard if "WebSocket" not in line]


def sign_up(page: Page, stack: Stack) -> str:
    name = f"ada-{secrets.token_hex(3)}"
    page.goto(f"{stack.url}/accounts/signup/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Email").fill(f"{name}@example.org")
    password = secrets.token_urlsafe(16)
    for field in page.locator("input[type=password]").all():
        field.fill(password)
    page.get_by_role("button", name="Sign Up").click()
    return name


def submit(page: Page, stack: Stack) -> str:
    """Queue the example agent on the small task; returns the address of the run."""
    page.goto(f"{stack.url}/submit/")
    page.locator(f"input[value='{TASK}']").check()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Read and right")).to_be_visible()
    page.get_by_role("button", name="Queue the runs").click()
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    return page.url


def steps_of(page: Page) -> list[int]:
    numbers: list[int] = page.eval_on_selector_all(
        "#step-list li[data-n]", "items => items.map(i => Number(i.dataset.n))"
    )
    return numbers


def test_a_newcomer_submits_an_agent_and_watches_it_to_its_score(page: Page, stack: Stack, watched: list[str]) -> None:
    """V5"""
    name = sign_up(page, stack)
    address = submit(page, stack)
    other = page.context.new_page()
    other.goto(address)
    expect(page.locator("#run-state")).to_contain_text("finished", timeout=ENDS_WITHIN_MS)
    expect(page.locator("#run-evaluations")).to_contain_text("final")
    wait_for(lambda: steps_of(other) == steps_of(page), 60, "both tabs show the same steps")
    shown = steps_of(page)
    assert shown == sorted(set(shown)), "a step came twice or out of order"
    page.reload()
    assert steps_of(page)[-1] == shown[-1], "the stored log is another than what was seen live"
    expect(page.locator(".top")).to_contain_text(name)
    page.goto(f"{stack.url}/runs/")
    expect(page.get_by_role("row", name=re.compile("finished")).first).to_be_visible()


def test_one_form_is_one_submission_and_no_file_is_guessed_at(page: Page, stack: Stack) -> None:
    sign_up(page, stack)
    page.goto(f"{stack.url}/submit/")
    page.locator(f"input[value='{TASK}']").check()
    text = page.locator("#id_config").input_value()
    for encoding, left in (("gb18030", "agent.yaml"), ("utf-8", "")):
        raw = f"{text}# 先读任务\n".encode(encoding)
        page.locator("#id_file").set_input_files({"name": "agent.yaml", "mimeType": "text/yaml", "buffer": raw})
        page.wait_for_timeout(300)
        expect(page.locator("#id_file")).to_have_value(re.compile(rf"^(.*\\)?{left}$"))
    expect(page.locator("#id_config")).to_have_value(f"{text}# 先读任务\n")
    page.get_by_role("button", name="Queue the runs").dblclick()
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    page.goto(f"{stack.url}/submissions/")
    expect(page.locator("ul.lines li")).to_have_count(1)


def test_the_run_page_needs_no_script_for_what_is_stored(browser: Browser, stack: Stack) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in PUBLIC:
        answer = page.goto(f"{stack.url}{path}")
        assert answer is not None
        assert answer.status == 200, path
        expect(page.locator("main h1")).to_be_visible()
    context.close()


def test_no_page_is_wider_than_a_phone(browser: Browser, stack: Stack) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    for path in PUBLIC:
        page.goto(f"{stack.url}{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    context.close()


def test_public_pages_are_light(page: Page, stack: Stack) -> None:
    sizes: dict[str, int] = {}
    for path in PUBLIC:
        page.goto(f"{stack.url}{path}", wait_until="load")
        entries = page.evaluate(
            "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
            ".filter(e => !e.name.includes('woff2')).map(e => e.encodedBodySize)"
        )
        sizes[path] = sum(entries)
    assert {path: size for path, size in sizes.items() if size > MOST_BYTES} == {}


def test_the_theme_is_chosen_and_kept(page: Page, stack: Stack, watched: list[str]) -> None:
    page.goto(stack.url)
    page.get_by_role("button", name="Switch between light and dark").click()
    chosen = page.evaluate("document.documentElement.dataset.theme")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == chosen


def test_the_board_sorts_by_its_address(page: Page, stack: Stack, watched: list[str]) -> None:
    page.goto(f"{stack.url}/leaderboard/innovatorbench-20/")
    page.get_by_role("link", name="Best").click()
    assert "sort=best" in page.url
    expect(page.get_by_role("columnheader", name="Best")).to_have_attribute("aria-sort", "descending")
