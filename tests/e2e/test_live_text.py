"""The live viewer's own reading of terminal text, in a browser and without a site."""

from playwright.sync_api import Page

from tests.e2e.stack import ROOT
from tests.pure.pages.terminal_cases import CASES

READ = """
async ([source, cases]) => {
  const { Terminal } = await import("data:text/javascript," + encodeURIComponent(source))
  return cases.map((pieces) => {
    const pre = document.body.appendChild(document.createElement("pre"))
    const terminal = new Terminal(pre)
    for (const piece of pieces) terminal.write(piece)
    return [pre.textContent, pre.querySelectorAll("*").length]
  })
}
"""


def read(page: Page, cases: list[list[str]]) -> list[list[object]]:
    """Text and number of elements that the viewer makes of each list of pieces."""
    source = (ROOT / "static" / "js" / "run" / "ansi.js").read_text()
    shown: list[list[object]] = page.evaluate(READ, [source, cases])
    return shown


def test_the_viewer_reads_frames_as_a_terminal_shows_them(page: Page) -> None:
    """T4: as page and model do, whether the text comes at once, in pieces, or one character at a time."""
    for width in (10**6, 7, 1):
        cases = [[text[at : at + width] for at in range(0, len(text), width)] for text, _expected in CASES.values()]
        for name, (_text, expected), (shown, _count) in zip(CASES, CASES.values(), read(page, cases), strict=True):
            assert shown == expected, (name, width)


def test_the_viewer_makes_no_markup_of_what_is_printed(page: Page) -> None:
    """T7, T5: hostile text, whole and cut in two anywhere, is text; titles, links and the clipboard leave nothing."""
    hostile = '<img src=x onerror="window.hit=1"></script><svg onload="window.hit=1">\x1b]52;c;AAAA\x07&amp;'
    plain = hostile.replace("\x1b]52;c;AAAA\x07", "")
    cases = [[hostile[:at], hostile[at:]] for at in range(len(hostile))]
    assert {(shown, count) for shown, count in map(tuple, read(page, cases))} == {(plain, 2)}
    assert page.evaluate("window.hit") is None


GAPS = """
async ([source, pieces]) => {
  const { Terminals } = await import("data:text/javascript," + encodeURIComponent(source))
  document.body.innerHTML = `<div id="terminal-box"><div class="seg"><label>
    <input type="radio" name="session" value="main" data-start="0" checked>main</label></div>
    <div class="term" data-gap="[{count} left out]"><pre></pre></div></div>`
  const terminals = new Terminals(1, { want() {}, drop() {} })
  for (const [offset, text] of pieces) terminals.message({ session: "main", offset, data: btoa(text) })
  return document.querySelector("pre").textContent
}
"""


def test_the_viewer_tells_what_it_never_got(page: Page) -> None:
    """T6: bytes that are missing are a line of their own, bytes that come twice are shown once."""
    folder = ROOT / "static" / "js" / "run"
    viewer = (folder / "terminal.js").read_text().replace('import { Terminal } from "./ansi.js"', "")
    source = (folder / "ansi.js").read_text() + viewer
    pieces = [(0, "one \x1b]0;open"), (900, "two"), (901, "wo three"), (909, " four")]
    assert page.evaluate(GAPS, [source, pieces]) == "one \n[888 left out]\ntwo three four"
