"""The straight line in a browser: from signing up to the row on the board, and what a stranger sees of it."""

import re
import secrets

from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.e2e.stack import Stack, wait_for
from tests.e2e.test_journey import sign_up, steps_of

FULL, SMALL = "worked-example-filtering-nano", "grpo-entropy-nano"
ENDS_WITHIN_MS = 300_000
BROKEN = """\
name: my-agent
agent: react
model:
  provider: scripted
  name: reference
  temperature: hot
tools: [run_command, fly]
hint: none
limits: {steps: 0}
"""
KEY = f"sk-{secrets.token_hex(20)}"


def config(name: str) -> str:
    model = "model: {provider: scripted, name: reference}"
    return f"name: {name}\nagent: react\n{model}\ntools: innovatorbench\nhint: none\n"


def store_a_key(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/account/")
    vault = page.locator("section", has=page.locator("#h-vault"))
    vault.get_by_label("Name").fill("MODEL_KEY")
    vault.get_by_label("Host").fill("api.openai.com")
    vault.locator("input[name=value]").fill(KEY)
    vault.get_by_role("button").last.click()
    expect(page.get_by_text("MODEL_KEY").first).to_be_visible()
    assert KEY not in page.content()


def paste(page: Page, text: str) -> None:
    page.locator("#id_config").fill(text)


def upload(page: Page, text: str) -> None:
    page.locator("#id_config").fill("")
    file = FilePayload(name="agent.yaml", mimeType="text/yaml", buffer=text.encode())
    page.locator("#id_file").set_input_files(file)


def submit(page: Page, stack: Stack, tasks: list[str], where: str, text: str) -> None:
    page.goto(f"{stack.url}/submit/")
    paste(page, text)
    for task in tasks:
        page.locator(f"input[name=tasks][value='{task}']").check()
    page.locator(f"input[name=where][value='{where}']").check()
    page.get_by_role("button", name="Queue the runs").click()


def faults_are_told_by_line(page: Page, stack: Stack) -> None:
    """Three faults, each at its own line; nothing queued."""
    page.goto(f"{stack.url}/submit/")
    upload(page, BROKEN)
    page.locator(f"input[name=tasks][value='{FULL}']").check()
    page.get_by_role("button", name="Queue the runs").click()
    for line in (6, 7, 9):
        expect(page.locator(f"#line-{line}[data-bad] .why").first).to_be_visible()
    assert page.locator(".editor li[data-bad]").count() == 3


def run_address(page: Page, task: str) -> str:
    """The address of a run on `task` from the page of the submission."""
    link = page.locator("tr", has_text=re.compile(task_title(task))).locator("a[href*='/runs/']").first
    return str(link.get_attribute("href"))


def task_title(task: str) -> str:
    return {FULL: "Eight hundred worked examples", SMALL: "GRPO without entropy collapse"}[task]


def watch_to_the_end(page: Page, stack: Stack, address: str) -> str:
    """Open the run's page once and see steps come in without a reload; returns its score as shown."""
    page.goto(f"{stack.url}{address}")
    page.evaluate("window.untouched = true")
    there = len(steps_of(page))
    wait_for(lambda: len(steps_of(page)) > there, ENDS_WITHIN_MS / 1000, "a further step without a reload")
    expect(page.locator("#run-state")).to_contain_text("finished", timeout=ENDS_WITHIN_MS)
    assert page.evaluate("window.untouched"), "the page was loaded again"
    shown = re.search(r"\b(\d{1,3}\.\d)\b", page.locator("#run-budgets").inner_text())
    assert shown, "no score on the run's page"
    return shown.group(1)


def a_stranger_sees_the_same(page: Page, stack: Stack, name: str, public: str, private: str) -> None:
    page.goto(f"{stack.url}/leaderboard/nano-public/")
    expect(page.locator("tr", has_text=name).first).to_be_visible()
    answer = page.goto(f"{stack.url}{public}")
    assert answer
    assert answer.status == 200
    expect(page.locator("#step-list li[data-n='2']")).to_be_attached()
    hidden = page.goto(f"{stack.url}{private}")
    assert hidden
    assert hidden.status == 404


def test_a_config_goes_in_at_the_browser_and_a_score_comes_out_on_the_board(page: Page, stack: Stack) -> None:
    sign_up(page, stack)
    store_a_key(page, stack)
    faults_are_told_by_line(page, stack)
    name = f"agent-{secrets.token_hex(3)}"
    submit(page, stack, [FULL, SMALL], "board:nano-public", config(name))
    public = run_address(page, FULL)
    score = watch_to_the_end(page, stack, public)
    assert 70 < float(score) < 90
    page.goto(f"{stack.url}{run_address_of_task(page, stack, SMALL, name)}")
    expect(page.locator("#run-state")).to_contain_text("finished", timeout=ENDS_WITHIN_MS)
    row = row_of(page, stack, name)
    expect(row).to_contain_text(score)
    page.goto(f"{stack.url}/tasks/{FULL}/")
    expect(page.locator("main h1")).to_contain_text("Eight hundred worked examples")
    submit(page, stack, [FULL], "private", config(f"{name}-private"))
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    private = re.sub(r"^https?://[^/]+", "", page.url)
    sign_out(page, stack)
    a_stranger_sees_the_same(page, stack, name, public, private)


def row_of(page: Page, stack: Stack, name: str) -> Locator:
    """The agent's row once the board knows both runs: it is brought up to date a moment after a run has ended."""
    row = page.locator("tr", has_text=name).first

    def whole() -> bool:
        page.goto(f"{stack.url}/leaderboard/nano-public/")
        return row.count() == 1 and "unranked" in row.inner_text()

    wait_for(whole, 60, "the small build takes the row out of the ranking")
    return row


def run_address_of_task(page: Page, stack: Stack, task: str, name: str) -> str:
    page.goto(f"{stack.url}/runs/?task={task}")
    return str(page.locator("tr", has_text=name).locator("a[href*='/runs/']").first.get_attribute("href"))


def sign_out(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/accounts/logout/")
    page.locator("main form button").first.click()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
