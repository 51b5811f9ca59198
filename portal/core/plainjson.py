"""Room: portal.core. JSON from outside: read to its end and fit to be written and kept again, or refused."""

import json
import math
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class NotPlain(ValueError):
    """No JSON at all (then the place is its argument), or JSON that nobody could do anything with. `told` says what it
    is, to whoever sent it.
    """

    told: Promise | str = _("The body is not JSON.")


class TooDeep(NotPlain):
    """Nested without bounds."""

    told = _("The body is nested too deeply.")


class HalfCharacter(NotPlain):
    """A lone surrogate: neither UTF-8 nor the database can hold it."""

    told = _("The body holds half a character (\\ud800 to \\udfff).")


class NotFinite(NotPlain):
    """NaN, an infinity, or a number that becomes one: JSON and the database have none."""

    told = _("The body holds a number that is not finite (NaN, Infinity, 1e999).")


def json_plain(text: str) -> Any:
    """What `text` holds. Raises NotPlain, of the kind that is wrong with it."""
    try:
        found = json.loads(text, parse_constant=_refused, parse_float=_finite)
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise TooDeep from None
    except UnicodeEncodeError:
        raise HalfCharacter from None
    except NotPlain:
        raise
    except ValueError as problem:
        raise NotPlain(problem) from None
    return found


def _refused(_word: str) -> float:
    raise NotFinite


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise NotFinite
    return number
