"""Room: portal.api. Bodies as JSON, refused here where no door could do anything with them."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from portal.core.plainjson import NotPlain, json_plain


class PlainJSONParser(JSONParser):
    """JSON that can be read to its end and written again: not nested without bounds, no half characters in it, and no
    number that is none (NaN, 1e999).
    """

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """Raises ParseError."""
        encoding = (parser_context or {}).get("encoding") or settings.DEFAULT_CHARSET
        try:
            return json_plain(stream.read().decode(encoding))
        except NotPlain as fault:
            raise ParseError(f"{fault.told} {fault}".strip()) from None
        except UnicodeDecodeError:
            raise ParseError(str(NotPlain.told)) from None
        except (LookupError, UnicodeError):  # a codec of Python's that is none of texts: base64, rot13, undefined
            message = _("{charset} is no charset of a text; send JSON as UTF-8.")
            raise ParseError(str(message).format(charset=encoding)) from None
