"""Room: runs.agent. What a model call costs. Pure; prices come from the config or from the price library, never from
a guess.

A model without a known price is "unpriced" (None), never 0: a zero would be believed. Only the scripted model really
costs nothing.
"""

from dataclasses import dataclass
from decimal import Decimal

from genai_prices import Usage as LibraryUsage
from genai_prices import calc_price

from runs.agent.events import Usage

MILLION = Decimal(1_000_000)
_LIBRARY_IDS = {"openai": "openai", "anthropic": "anthropic"}


@dataclass(frozen=True)
class PriceList:
    """USD per million tokens. `cached`: input read from the provider's cache."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None

    def cost(self, usage: Usage) -> Decimal:
        """USD of one call."""
        cached_price = self.input if self.cached is None else self.cached
        fresh = Decimal(usage.input - usage.cached) * self.input
        return (fresh + Decimal(usage.cached) * cached_price + Decimal(usage.output) * self.output) / MILLION


@dataclass(frozen=True)
class Pricing:
    """Where the price of a model comes from: `own` prices of the config first, else the library."""

    provider: str
    model: str
    base_url: str | None = None
    own: PriceList | None = None

    def cost(self, usage: Usage) -> Decimal | None:
        """USD of one call, or None where no price is known."""
        if self.provider == "scripted":
            return Decimal(0)
        if self.own is not None:
            return self.own.cost(usage)
        return library_cost(self.provider, self.model, self.base_url, usage)

    def known(self) -> bool:
        """Whether calls can be priced."""
        return self.cost(Usage(input=1_000_000, output=1_000_000)) is not None


def library_cost(provider: str, model: str, base_url: str | None, usage: Usage) -> Decimal | None:
    """USD by the price library. A `base_url` that the library doesn't know has no price: the same name may be served
    by anybody.
    """
    counted = LibraryUsage(
        input_tokens=usage.input,
        cache_read_tokens=min(usage.cached, usage.input),
        cache_write_tokens=usage.written or None,
        output_tokens=usage.output,
    )
    try:
        if base_url is None:
            return calc_price(counted, model, provider_id=_LIBRARY_IDS.get(provider, provider)).total_price
        return calc_price(counted, model, provider_api_url=base_url).total_price
    except (LookupError, ValueError):
        return None
