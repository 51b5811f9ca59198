"""Room: portal.core. Errors as facts: a code for machines, a sentence for people, the arguments both were made of.

A service raises one of these; a page shows `sentence`, the API sends `code`, `sentence` and `facts` with `status`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Plain = str | int | float | bool | None


class SiteError(Exception):
    """A request that can't be met. Subclasses give `code`, `template` (filled with the facts) and the HTTP `status`."""

    code: ClassVar[str] = "error"
    template: ClassVar["StrOrPromise"] = _("The request can't be met.")
    status: ClassVar[int] = 400

    def __init__(self, **facts: Plain) -> None:
        super().__init__(self.code)
        self.facts: Mapping[str, Plain] = facts

    @property
    def sentence(self) -> str:
        """The template in the reader's language, with the facts in it."""
        return str(self.template).format_map(dict(self.facts))

    def __str__(self) -> str:
        return self.sentence


class Missing(SiteError):
    """Nothing of that name, or nothing this person may know of."""

    code = "missing"
    template = _("There is no {thing} {name}.")
    status = 404


class Forbidden(SiteError):
    """Known to this person, but not theirs to change."""

    code = "forbidden"
    template = _("You may look at this, but not change it; ask an owner of the team.")
    status = 403


class Conflict(SiteError):
    """The state of things is another than the request supposes."""

    code = "conflict"
    template = _("{thing} {name} has changed in the meantime; look again.")
    status = 409


class LimitReached(SiteError):
    """A quota or rate is used up."""

    code = "limit_reached"
    template = _("The limit of {limit} is reached.")
    status = 429


class Unavailable(SiteError):
    """Something the site depends on does not answer; the same request can succeed later."""

    code = "unavailable"
    template = _("{thing} does not answer at the moment; try again in a minute.")
    status = 503


class FieldFault(SiteError):
    """A value that can't be accepted, with the field it stands in."""

    code = "field_fault"
    template = _("{field}: {message}")

    def __init__(self, *, field: str, message: str) -> None:
        super().__init__(field=field, message=message)
        self.field = field
        self.message = message
