"""Room: runs. An answer that is made while it is sent, however long it is, and read no faster than it is taken."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse


def streamed(request: HttpRequest, parts: Iterator[bytes], content_type: str) -> StreamingHttpResponse:
    """Under ASGI the parts are read one by one in the request's thread: of a plain iterator Django would gather all."""
    content = _one_by_one(parts) if isinstance(request, ASGIRequest) else parts
    return StreamingHttpResponse(content, content_type=content_type)


async def _one_by_one(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    @sync_to_async
    def following() -> bytes | None:
        return next(parts, None)

    while (part := await following()) is not None:
        yield part
