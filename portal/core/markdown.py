"""Room core: text that others wrote, as HTML. Pure: the one place besides Django's escaping that makes markup safe.

Markdown is rendered without raw HTML, then cut down to a list of tags, attributes and address schemes. Images are left
out: one from elsewhere would tell its host who reads the page.
"""

from collections.abc import Sequence

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
_renderer = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def _shifted(tokens: Sequence[Token], top: int) -> None:
    """Move headings so that the highest is `h<top>`: the page has its own above."""
    levels = [int(t.tag[1]) for t in tokens if t.type == "heading_open"]
    down = top - min(levels, default=top)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + down)}"


def markdown_html(text: str, *, top: int = 3) -> SafeString:
    """Sanitised HTML of Markdown; headings start at `h<top>`. Safe to print as it is."""
    tokens = _renderer.parse(text)
    _shifted(tokens, top)
    html = nh3.clean(
        _renderer.renderer.render(tokens, _renderer.options, {}),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="nofollow noopener noreferrer",
        set_tag_attribute_values={"pre": {"tabindex": "0"}},
    )
    return mark_safe(html)  # noqa: S308  the sanitiser's own output
