"""Room: runs.agent. What every streamed wire shares: opening the connection, bounding the reply, and giving each end
of a stream its meaning.

The reply is put together from a stranger's stream: fields may be missing, of a wrong type or endless. Nothing of a
broken stream is kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import httpx2

from gymnode.rendering import storable
from runs.agent.context import estimate
from runs.agent.events import Replied, Usage
from runs.agent.llm.endpoint import Endpoint
from runs.agent.llm.network import guarded_client, reply_within
from runs.agent.llm.sdk_errors import SDK_ERRORS, meaning_of, unsendable
from runs.agent.parsing import RawCall, native_calls, own_text, text_calls
from runs.agent.pricing import Pricing
from runs.agent.protocols import ContentRefused, ModelRequest, ProviderDown
from runs.agent.spec_parts import Model, pricing_of

MAX_REPLY_CHARS = 4_000_000


@dataclass
class PartialReply(ABC):
    """A reply under construction from the pieces of a stream; `size` in characters."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    id: str = ""
    model: str = ""
    finish: str = ""
    size: int = 0

    @abstractmethod
    def take(self, piece: Any, on_delta: Callable[[str], None]) -> None:
        """One piece of the stream more; kinds that aren't known are passed over."""

    @abstractmethod
    def counted(self) -> Usage | None:
        """The provider's count, None where it gave none that can be read."""

    @abstractmethod
    def raw_calls(self) -> Iterable[RawCall]:
        """The calls, whole, in the order in which they began."""

    def say(self, into: list[str], text: str, on_delta: Callable[[str], None]) -> None:
        """Add text that people may watch."""
        if text:
            into.append(text)
            self.size += len(text)
            on_delta(str(storable(text)))

    @property
    def too_long(self) -> bool:
        return self.size > MAX_REPLY_CHARS


class StreamedChat(ABC):
    """`LanguageModel` through a provider's official SDK. Thread-safe. Raises `WrongKey` at once for a secret of
    another host, or one that can't be sent.
    """

    REFUSED: ClassVar[tuple[str, str]]  # the finish reason of a refusal, and the sentence that tells it

    def __init__(self, model: Model, endpoint: Endpoint, *, pricing: Pricing | None = None) -> None:
        self.model = model
        self.endpoint = endpoint
        self.pricing = pricing or pricing_of(model)
        self.key = endpoint.key()
        with_key = self.key is not None
        self.http = guarded_client(endpoint.allowed, with_key=with_key, read_timeout_s=endpoint.read_timeout_s)

    @abstractmethod
    def opened(self, request: ModelRequest) -> AbstractContextManager[Iterable[Any]]:
        """The provider's stream for a request."""

    @abstractmethod
    def begun(self) -> PartialReply:
        """An empty reply of this wire."""

    def sdk_options(self) -> dict[str, Any]:
        """What the SDKs' clients are given. Retries are ours: they are counted, told and bounded by the run."""
        return {
            "api_key": self.key or "no-key",
            "base_url": self.endpoint.base_url,
            "http_client": self.http,
            "max_retries": 0,
            "default_headers": self.endpoint.headers,
        }

    def close(self) -> None:
        """Give the connections back."""
        self.http.close()

    def complete(self, request: ModelRequest, on_delta: Callable[[str], None]) -> Replied:
        """One streamed reply. Raises `ModelError`."""
        partial = self.begun()
        try:
            with reply_within(self.endpoint.reply_timeout_s), self._sent(request) as stream:
                for piece in stream:
                    partial.take(piece, on_delta)
                    if partial.too_long:
                        break
        except SDK_ERRORS as error:
            raise meaning_of(error) from error
        except (httpx2.HTTPError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ProviderDown(f"the provider's stream broke: {type(error).__name__}") from error
        return self._whole(partial, request)

    def _sent(self, request: ModelRequest) -> AbstractContextManager[Iterable[Any]]:
        """The stream; what can't even be written as a request is the config's fault and no outage."""
        try:
            return self.opened(request)
        except (httpx2.InvalidURL, ValueError) as error:
            raise unsendable(error) from error

    def _whole(self, partial: PartialReply, request: ModelRequest) -> Replied:
        reason, sentence = self.REFUSED
        if partial.finish == reason:
            raise ContentRefused(sentence)
        if not partial.finish and not partial.too_long:
            raise ProviderDown("the connection ended before the reply was complete")
        # Surrogate pairs may be split over two pieces, so text is cleaned only when it is whole.
        text, reply_id = str(storable("".join(partial.text))), partial.id or str(partial.size)
        text = own_text(text) if request.text_tools else text
        calls = text_calls(text, reply_id) if request.text_tools else native_calls(partial.raw_calls(), reply_id)
        usage = partial.counted() or estimated_usage(request, partial.size)
        return Replied(
            text=text,
            reasoning=str(storable("".join(partial.reasoning))),
            calls=calls,
            model=str(storable(partial.model)) or self.model.name,
            usage=usage,
            usd=self.pricing.cost(usage),
            finish_reason=str(storable(partial.finish))[:100],
            host=self.endpoint.place,
        )


def estimated_usage(request: ModelRequest, size: int) -> Usage:
    """A guess for providers that send no figures; `size` in characters of the reply."""
    read = sum(estimate(message.whole) for message in request.messages)
    return Usage(input=read, output=1 + size // 4, estimated=True)
