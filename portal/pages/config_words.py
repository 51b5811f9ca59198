"""Room: portal.pages. What is wrong with a config, in the reader's language.

The sentences are made in runs.agent, which knows no language; here each stands once more, with names in the place of
what was put into it. A sentence that does not stand here stays as it is.
"""

import re
from collections.abc import Iterable

from django.utils.translation import get_language, gettext, gettext_noop

MOST_CHARS = 1_000
SENTENCES = (
    gettext_noop("the text has {count} characters; at most {most} are read"),
    gettext_noop(
        "not valid YAML: a number here is too large; escapes end at \\U0010FFFF, and the version is %YAML 1.2"
    ),
    gettext_noop("not valid YAML: {problem}"),
    gettext_noop("the character U+{code} may not stand in YAML; remove it or escape it"),
    gettext_noop("a second document begins here; one document is read, so remove this line and what follows"),
    gettext_noop("aliases are refused; write the value of *{anchor} out"),
    gettext_noop("the key `{key}` stands twice (first on line {line}); keep one of them"),
    gettext_noop("the number has {count} digits; at most {most} are read"),
    gettext_noop("nested more than {most} levels deep; flatten it"),
    gettext_noop("a mapping's key must be a text, not a list or a mapping"),
    gettext_noop("the tag {tag} is refused; write a plain value"),
    gettext_noop("the config is empty; it must be a mapping such as `name: my-agent`"),
    gettext_noop("the config is {value}; it must be a mapping such as `name: my-agent`"),
    gettext_noop("`{name}` is no preset; did you mean `{near}`? known: {known}; or give a list of actions"),
    gettext_noop("`{name}` is no preset; known: {known}; or give a list of actions"),
    gettext_noop("`{name}` is no {what}; did you mean `{near}`? known: {known}"),
    gettext_noop("`{name}` is no {what}; did you mean `{near}`?"),
    gettext_noop("`{name}` is no {what}; known: {known}"),
    gettext_noop("`{path}` is missing; add it"),
    gettext_noop("`{path}` is {value}; it is one of {expected}"),
    gettext_noop("`{path}` is {value}; it must be more than {limit}"),
    gettext_noop("`{path}` is {value}; it must be at least this many characters: {limit}"),
    gettext_noop("`{path}` is {value}; it must be at least {limit}"),
    gettext_noop("`{path}` is {value}; it must be less than {limit}"),
    gettext_noop("`{path}` is {value}; it must be at most this many characters: {limit}"),
    gettext_noop("`{path}` is {value}; it must be at most {limit}"),
    gettext_noop("`{path}` is {value}; use at most 80 letters, digits, `.`, `_`, `-`"),
    gettext_noop("`{path}` is {value}; it must be {needed}; write it without quotes"),
    gettext_noop("`{path}` is {value}; it must be {needed}; put it into quotes"),
    gettext_noop("`{path}` is {value}; it must be {needed}"),
    gettext_noop("`{path}`: it must be the name of a preset or a list of action names"),
    gettext_noop("`{url}` holds a character that no address has; write it like https://host.example/v1"),
    gettext_noop("`{url}` is no address; write it like https://host.example/v1"),
    gettext_noop("`{url}` is no http or https address; write it like https://host.example/v1"),
    gettext_noop("an address must hold no user name or password; keep the key as a secret and name it in `api_key`"),
    gettext_noop("an address must end with its path, without `?` and `#`; put further values into `extra_body`"),
    gettext_noop(
        "a key must not stand in a config, which is stored and shown; keep it as a secret of your team (Account, "
        "Vault) and name it here: `api_key: secret:NAME`"
    ),
    gettext_noop("agents that live elsewhere (`external`) come with a later release; use `react`"),
    gettext_noop("guardrails come with a later release; use `none`"),
    gettext_noop("efficiency feedback comes with a later release; use `false`"),
    gettext_noop("`model.name` is `{name}`; a model id has no spaces"),
    gettext_noop("the scripted model has one address, the site's own; leave `base_url` out"),
    gettext_noop("`model.api_key` is missing; {provider} needs one: `api_key: secret:NAME`"),
    gettext_noop("`extra_body` must not set `{key}`, which the engine sets; use the config's own key"),
    gettext_noop("thinking budgets come with a later release; use `reasoning.effort`"),
    gettext_noop("`model.temperature` is {value}; anthropic takes at most 1"),
    gettext_noop(
        "compaction at {threshold} tokens comes too late: a window of {window} less {output} of output leaves {room}; "
        "lower `compact_at_tokens` or `max_output_tokens`"
    ),
    gettext_noop(
        "a limit of ${usd} can't be kept: no price of `{name}` is known (unpriced); give `model.prices` (per million "
        "tokens), or set `limits.tokens` beside it"
    ),
    gettext_noop("the list is empty: an agent without actions can do nothing; name a preset such as `innovatorbench`"),
    gettext_noop("`{name}` stands twice; remove it here"),
    gettext_noop("`null` is the engine's own answer to a reply without a call and is never offered; remove it"),
    gettext_noop("`{name}` is not available in this release; remove it"),
    gettext_noop("`view_hint` is offered only with `hint: on_demand`, here it is `{hint}`; remove one"),
)
PARTS = (
    gettext_noop("true or false (in YAML 1.2 `yes`, `no`, `on` and `off` are texts)"),
    gettext_noop("a whole number"),
    gettext_noop("a finite number"),
    gettext_noop("a number"),
    gettext_noop("a text of {count} characters"),
    gettext_noop("a text"),
    gettext_noop("a list"),
    gettext_noop("a mapping"),
    gettext_noop('the text "{text}"'),
    gettext_noop("key of an agent config"),
    gettext_noop("key of {path}"),
    gettext_noop("action"),
    gettext_noop("{several} or {last}"),
)
ANYTHING = {"problem", "value", "known", "needed", "expected", "text", "several", "last"}
IN_WORDS = {"value", "what", "needed", "expected"}


def _pattern(template: str) -> re.Pattern[str]:
    """What reads a sentence made of `template`. Names and paths hold no backtick, so each is found in one way."""
    pieces = re.split(r"\{(\w+)\}", template)
    kinds = (re.escape(piece) if n % 2 == 0 else _group(piece) for n, piece in enumerate(pieces))
    return re.compile("".join(kinds), re.DOTALL)


def _group(name: str) -> str:
    return f"(?P<{name}>.*)" if name in ANYTHING else f"(?P<{name}>[^`]+)"


_SENTENCES = tuple((template, _pattern(template)) for template in SENTENCES)
_PARTS = tuple((template, _pattern(template)) for template in PARTS)


def fault_told(message: str) -> str:
    """One sentence of a config's faults, in the reader's language."""
    if (get_language() or "en").startswith("en") or len(message) > MOST_CHARS:
        return message
    return _told(message, _SENTENCES)


def _told(text: str, known: Iterable[tuple[str, re.Pattern[str]]]) -> str:
    for template, pattern in known:
        found = pattern.fullmatch(text)
        if found is not None:
            given = {
                name: _told(part, _PARTS) if name in IN_WORDS else part for name, part in found.groupdict().items()
            }
            return gettext(template).format(**given)
    return text
