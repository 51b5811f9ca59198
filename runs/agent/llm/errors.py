"""Room: runs.agent. One table from what a provider answers to what it means. Pure; used by every client and by the
scripted model.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from runs.agent.protocols import (
    AddressRefused,
    ContentRefused,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ProviderDown,
    RateLimited,
    UnknownModel,
    WrongKey,
)

_OVERFLOW = re.compile(
    r"context[ _]length|context window|maximum context|too many (input )?tokens|prompt is too long|input is too long"
    r"|exceeds? the (model'?s? )?(max|context)|max_model_len|reduce the length",
    re.IGNORECASE,
)
_CONTENT = re.compile(
    r"content[ _](policy|filter|management)|safety (system|policy)|moderation|data_inspection", re.IGNORECASE
)
_CREDIT = re.compile(r"insufficient[ _](quota|balance|credit)|credit balance|billing|payment required", re.IGNORECASE)
# A 429 that is a rate limit often names the billing page too, where a higher one is sold.
_NO_CREDIT_429 = re.compile(
    r"insufficient[ _](quota|balance|credit)|credit balance|exceeded your current quota"
    r"|billing_(hard_limit|not_active)",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"model[ _]?(`[^`]*` )?(was )?(not[ _]found|does not exist)|unknown model|no such model", re.IGNORECASE
)
MESSAGE_CHARS = 600


def error_from_status(status: int, code: str, message: str, retry_after_s: float | None = None) -> ModelError:
    """The error for an HTTP status of 300 and more. `code` and `message` come from the body, where it has them."""
    said = f"{code} {message}"
    short = message[:MESSAGE_CHARS]
    no_credit = _NO_CREDIT_429 if status == 429 else _CREDIT
    if status in (400, 402, 403, 429) and "rate_limit" not in code and no_credit.search(said):
        return WrongKey(f"the provider account has no credit left ({status}): {short}", "no_credit")
    if status == 429:
        return RateLimited(f"rate limited (429): {short}", retry_after_s)
    if status in (408, 409, 425) or status >= 500:
        return ProviderDown(f"the provider failed ({status}): {short}", retry_after_s)
    if status in (401, 402, 403):
        return WrongKey(
            f"the provider refused the key ({status}): {short}; check the secret that `model.api_key` names"
        )
    if status == 413 or (status in (400, 422) and _OVERFLOW.search(said)):
        return ContextOverflow(f"the request doesn't fit the model's context ({status}): {short}")
    if status == 404 or (status in (400, 422) and _MODEL.search(said)):
        return UnknownModel(
            f"the provider knows no such model or path ({status}): {short}; check `model.name` and `model.base_url`"
        )
    if _CONTENT.search(said):
        return ContentRefused(f"the provider's content filter refused the request ({status}): {short}")
    if 300 <= status < 400:
        return AddressRefused(
            f"the endpoint redirects ({status}), which is refused; put the final one into `model.base_url`",
            "address_moved",
        )
    return ModelRefused(f"the provider refused the request ({status}): {short}")


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds from `Retry-After` (a number or a date) or `retry-after-ms`; None where neither can be read."""
    millis = _positive(headers.get("retry-after-ms", ""))
    if millis is not None:
        return millis / 1000
    said = headers.get("retry-after", "").strip()
    seconds = _positive(said)
    if seconds is not None or not said:
        return seconds
    try:
        moment = parsedate_to_datetime(said)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
