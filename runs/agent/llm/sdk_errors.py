"""Room: runs.agent. What the SDKs raise, by its meaning. The two SDKs are twins: one function reads both."""

from collections.abc import Mapping
from typing import Any

import anthropic
import httpx2
import openai

from gymnode.rendering import storable
from runs.agent.llm.errors import error_from_status, retry_after_s
from runs.agent.llm.network import refusal_in
from runs.agent.protocols import ModelError, ModelRefused, ProviderDown

MOST_TOKENS = 10**9  # of one call; whoever says more is not believed
SDK_ERRORS = (openai.APIError, anthropic.APIError)
# Raised by our own side of the wire before anything went out: asking again gives the same.
UNSENDABLE = (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol, httpx2.InvalidURL, UnicodeError)


def meaning_of(error: openai.APIError | anthropic.APIError) -> ModelError:
    """The error of `protocols.py` for one of an SDK's."""
    refusal = refusal_in(error)
    if refusal is not None:
        return refusal
    said = _said(error.body)
    code = text_of(said.get("code")) or text_of(said.get("type"))
    message = str(storable(text_of(said.get("message")) or error.message))
    if isinstance(error, openai.APIStatusError | anthropic.APIStatusError):
        # Within a stream that began well (200) an error is told by its type only.
        status = error.status_code if error.status_code >= 300 else _status_of(said)
        return error_from_status(status, code, message, retry_after_s(error.response.headers))
    if isinstance(error, openai.APITimeoutError | anthropic.APITimeoutError):
        return ProviderDown("the provider didn't answer in time")
    if isinstance(error.__cause__, UNSENDABLE):
        return unsendable(error.__cause__)
    if isinstance(error, openai.APIConnectionError | anthropic.APIConnectionError):
        return ProviderDown(f"no connection to the provider: {type(error.__cause__ or error).__name__}")
    return error_from_status(_status_of(said), code, message)


def unsendable(error: BaseException) -> ModelRefused:
    """The refusal of a request that can't be written with what the config says."""
    kind = type(error).__name__
    return ModelRefused(f"the request can't be written: {kind}; correct the config's `model`", "request_unsendable")


_BY_TYPE = {
    "rate_limit_error": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "request_too_large": 413,
}


def _status_of(said: Mapping[str, Any]) -> int:
    code = said.get("code")
    if isinstance(code, int) and 300 <= code < 600:
        return code
    return _BY_TYPE.get(text_of(said.get("type")), 500)


def _said(body: object) -> Mapping[str, Any]:
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def text_of(value: object) -> str:
    """A text of a stranger's, or "" for anything else."""
    return value if isinstance(value, str) else ""


def count_of(holder: object, name: str) -> int | None:
    """A count of a stranger's: a whole number from 0 to what one call may take, or None."""
    value = getattr(holder, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None
