"""Task text as HTML: whatever an author writes, only text, structure and plain links come out."""

import pytest

from portal.core.markdown import markdown_html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "![x](https://tracker.example/pixel.png)",
        "<svg onload=alert(1)>",
        "<a href='javascript:alert(1)'>x</a>",
        "[x](https://ok.example 'onmouseover=alert(1)')<iframe src=//evil>",
        "```\n</code></pre><script>alert(1)</script>\n```",
    ],
)
def test_hostile_text_is_inert(hostile):
    """T7"""
    html = markdown_html(hostile).lower()
    for tag in ("<script", "<img", "<svg", "<iframe", 'href="javascript', 'href="data'):
        assert tag not in html


def test_headings_start_below_those_of_the_page():
    assert "<h3>Motivation</h3>" in markdown_html("# Motivation\n\n## Task")
    assert "<h4>Task</h4>" in markdown_html("# Motivation\n\n## Task")
    assert "<h3>Task</h3>" in markdown_html("## Task")


def test_links_carry_no_credit_and_no_referrer():
    assert 'rel="nofollow noopener noreferrer"' in markdown_html("[a](https://a.example)")


def test_code_can_be_scrolled_by_keyboard():
    assert '<pre tabindex="0">' in markdown_html("```\ncode\n```")


def test_tables_stay_tables():
    assert "<th>a</th>" in markdown_html("|a|b|\n|-|-|\n|1|2|")
