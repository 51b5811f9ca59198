"""Room core: the small marks every template uses. They only write escaped markup; they fetch nothing."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import template
from django.forms import BoundField, CheckboxInput, CheckboxSelectMultiple, RadioSelect
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from portal.core import charts, formats, words
from portal.core.ansi import ansi_html

register = template.Library()

register.filter("clock", formats.clock_text)
register.filter("usd", formats.usd_text)
register.filter("count", formats.count_text)
register.filter("domain_code", formats.domain_code)
register.filter("told", words.told)
register.filter("notes_told", words.notes_told)
register.filter("slug_told", words.slug_told)
register.filter("words", words.code_told)

MOST_WHOLE = 10**15
_SPRITE = "img/icons.svg"
_TIERS = {
    "reported": ("t0", _("reported")),
    "scored_here": ("t1", _("scored here")),
    "run_here": ("t2", _("run here")),
}
_STATES = {  # status of a run -> icon; "running" has the pulse instead
    "queued": "queue",
    "preparing": "node",
    "waiting": "pause",
    "paused": "pause",
    "finishing": "eval",
    "finished": "check",
    "failed": "x",
    "cancelled": "null",
    "expired": "clock",
}
_PAGES = (
    ("leaderboard", "/leaderboard/", _("Leaderboard")),
    ("tasks", "/tasks/", _("Tasks")),
    ("agents", "/agents/", _("Agents")),
    ("runs", "/runs/", _("Runs")),
    ("nodes", "/nodes/", _("Nodes")),
    ("docs", "/docs/", _("Docs")),
)


@register.filter
def decimals(value: Decimal | float | str | None, places: int = 2) -> str:
    """`{{ score|decimals:2 }}`."""
    return formats.decimal_text(value, places)


@register.filter
def key(mapping: Mapping[str, Any], name: str) -> str:
    """`{{ metrics|key:name }}`: the value as text, a dash where there is none."""
    value = mapping.get(name) if isinstance(mapping, Mapping) else None
    if value is None:
        return formats.DASH
    # jsonb gives a float of 1e300 back as a whole number of 301 digits
    short = isinstance(value, float) or (isinstance(value, int) and abs(value) >= MOST_WHOLE)
    return f"{float(value):.6g}" if short else str(value)


@register.filter
def hours(value: float | Decimal | None) -> str:
    """`{{ limit|hours }}`."""
    return words.unit_told(formats.hours_text(value))


@register.filter("bytes")
def size(value: float | None) -> str:
    """`{{ end|bytes }}`."""
    return words.unit_told(formats.bytes_text(value))


@register.filter
def terminal(text: str) -> SafeString:
    """What a command printed, for the inside of a `<pre>`: escaped, colours as classes."""
    return mark_safe(ansi_html(text))  # noqa: S308  escapes all it prints


@register.filter
def ticked(text: object) -> SafeString:
    """A sentence with code between backticks, as the docstrings of the code have it."""
    pieces = enumerate(re.split(r"`([^`]+)`", str(text)))
    return format_html_join("", "{}", ((format_html("<code>{}</code>", p) if n % 2 else p,) for n, p in pieces))


@register.filter
def breakable(name: object) -> SafeString:
    """A name of the code that may break after an underscore where the column is narrow."""
    return format_html_join(SafeString("_<wbr>"), "{}", ((part,) for part in str(name).split("_")))


@register.filter
def as_input(field: BoundField) -> SafeString:
    """A form field with the class of our inputs; check boxes stay what they are."""
    widget = field.field.widget
    plain = isinstance(widget, CheckboxInput | RadioSelect | CheckboxSelectMultiple)
    return field.as_widget(attrs={} if plain else {"class": "in"})


@register.filter
def is_tick(field: BoundField) -> bool:
    """Whether the label stands behind the control instead of above it."""
    return isinstance(field.field.widget, CheckboxInput)


@register.simple_tag
def icon(name: str, size: str = "", label: str = "") -> SafeString:
    """An icon of the sprite: silent beside a word, named with `label` where it stands alone."""
    href = f"{static(_SPRITE)}#i-{name}"
    if label:
        mark = '<svg class="i {}" viewBox="0 0 16 16" role="img" aria-label="{}"><use href="{}"/></svg>'
        return format_html(mark, size, label, href)
    return format_html('<svg class="i {}" viewBox="0 0 16 16" aria-hidden="true"><use href="{}"/></svg>', size, href)


@register.simple_tag
def domain_mark(domain: str, label: str = "") -> SafeString:
    """Plotting symbol of a domain's slug or hue; with a name where no word stands beside it."""
    code = formats.domain_code(domain)
    if not code:
        return SafeString("")
    href = f"{static(_SPRITE)}#d-{code}"
    if label:
        mark = '<svg class="dm dom-{}" viewBox="0 0 12 12" role="img" aria-label="{}"><use href="{}"/></svg>'
        return format_html(mark, code, label, href)
    mark = '<svg class="dm dom-{}" viewBox="0 0 12 12" aria-hidden="true"><use href="{}"/></svg>'
    return format_html(mark, code, href)


@register.simple_tag
def tier_mark(tier: str) -> SafeString:
    """How much of a result was seen here: the circle fills up."""
    symbol, word = _TIERS.get(str(tier).replace("-", "_"), ("t0", tier))
    mark = '<span class="tier"><svg class="tm" viewBox="0 0 12 12" aria-hidden="true"><use href="{}"/></svg>{}</span>'
    return format_html(mark, f"{static(_SPRITE)}#t-{symbol}", word)


@register.simple_tag
def state_mark(status: str, word: str = "") -> SafeString:
    """State of a run: an icon and a word; only `running` has colour."""
    status = str(status)
    if status == "running":
        return format_html('<span class="state live"><span class="pulse"></span>{}</span>', word or status)
    tone = "bad" if status == "failed" else ""
    return format_html(
        '<span class="state {}">{}{}</span>', tone, icon(_STATES.get(status, "info"), "s"), word or status
    )


@register.inclusion_tag("parts/gauge.html")
def gauge(used: float | None, total: float | None, parts: int = 4) -> dict[str, Any]:
    """Bar of something spent; lines at equal parts."""
    return {"gauge": charts.gauge(used, total, parts)}


@register.inclusion_tag("parts/dot_cell.html")
def dot_cell(value: Any, low: Any = None, high: Any = None, tier: str = "", reference: float = 80) -> dict[str, Any]:
    """One score on a scale of 0 to 100, with its interval where there is one; open where others report it."""
    return {"cell": charts.dot_cell(value, low, high, reference=reference), "open": tier == "reported"}


@register.inclusion_tag("parts/nav_links.html", takes_context=True)
def nav_links(context: template.Context) -> dict[str, Any]:
    """The pages of the top bar that exist, the current one marked."""
    path = context["request"].path if "request" in context else ""
    links = []
    for name, prefix, word in _PAGES:
        try:
            links.append({"href": reverse(name), "word": word, "current": path.startswith(prefix)})
        except NoReverseMatch:
            continue
    return {"links": links}


@register.simple_tag(takes_context=True)
def query_with(context: template.Context, **changes: Any) -> str:
    """This page's query string with some keys changed; an empty value drops the key. The state lives in the URL."""
    query = context["request"].GET.copy()
    query.pop("p", None)
    for key, value in changes.items():
        if value in (None, ""):
            query.pop(key, None)
        else:
            query[key] = value
    return "?" + query.urlencode() if query else "."
