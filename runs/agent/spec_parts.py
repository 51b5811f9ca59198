"""Room: runs.agent. The parts of an agent config: values with their types and ranges. Pure.

Shape only. What looks at several values at once is in `spec_rules.py`.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from runs.agent.pricing import PriceList, Pricing

COMPACT_SHARE = 0.78


class Part(BaseModel):
    """Base of the parts: frozen, unknown keys are faults."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AgentKind(StrEnum):
    """Who runs the loop: this site, or an agent that lives elsewhere."""

    REACT = "react"
    EXTERNAL = "external"


class Provider(StrEnum):
    """The wire that the model speaks. `openai` is any compatible endpoint."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    SCRIPTED = "scripted"


class ToolMode(StrEnum):
    """Native tool calls, or Thought / Action / Action Input for models without them."""

    NATIVE = "native"
    TEXT = "text"


class HintMode(StrEnum):
    """Never, when the agent asks (it costs points), or in the task text."""

    NONE = "none"
    ON_DEMAND = "on_demand"
    UPFRONT = "upfront"


class OnNodeLoss(StrEnum):
    """What a lost node means for the run."""

    RESTORE = "restore"
    FAIL = "fail"


class Guardrails(StrEnum):
    """Whether the engine warns about acts that lose work."""

    NONE = "none"
    WARN = "warn"


class Effort(StrEnum):
    """How much a reasoning model thinks, in the provider's words."""

    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


def _plain(value: Decimal) -> Decimal:
    """50, 50.0 and 5E+1 are one value, so that they have one digest."""
    return Decimal(format(value.normalize(), "f"))


Price = Annotated[Decimal, Field(ge=0, le=100_000, allow_inf_nan=False), AfterValidator(_plain)]
Budget = Annotated[Decimal, Field(gt=0, le=1_000_000, allow_inf_nan=False), AfterValidator(_plain)]


class Reasoning(Part):
    """Thinking of the model: an effort (openai) or a token budget (anthropic)."""

    effort: Effort | None = None
    budget_tokens: int | None = Field(default=None, ge=1024, le=1_000_000)


class Prices(Part):
    """USD per million tokens. `cached`: input read from the provider's cache; null: like other input."""

    input: Price
    output: Price
    cached: Price | None = None


class Model(Part):
    """The model and how it is reached."""

    provider: Provider
    name: str = Field(min_length=1, max_length=200)
    base_url: str | None = Field(default=None, max_length=500, description="Null: the provider's own address.")
    extra_body: Mapping[str, JsonValue] = Field(default_factory=dict, description="Passed through with every request.")
    api_key: str | None = Field(default=None, description="A reference to the owner's vault: secret:NAME.")
    temperature: float | None = Field(default=1.0, ge=0, le=2, allow_inf_nan=False)
    max_output_tokens: int = Field(default=8192, ge=256, le=1_000_000)
    reasoning: Reasoning = Reasoning()
    prices: Prices | None = Field(default=None, description="USD per million tokens; null: the price library's.")
    tool_mode: ToolMode = ToolMode.NATIVE


class Context(Part):
    """The context window and when its older half becomes a summary."""

    window_tokens: int = Field(default=128_000, ge=4096, le=100_000_000)
    compact_at_tokens: int | None = Field(
        default=None, ge=2048, le=100_000_000, description="Null: 0.78 of the window."
    )
    keep_recent: float = Field(default=0.5, ge=0.1, le=0.9)

    @property
    def threshold(self) -> int:
        """Tokens from which on the conversation is compacted."""
        return self.compact_at_tokens or int(COMPACT_SHARE * self.window_tokens)


class Snapshot(Part):
    """When snapshots are taken and how many are kept."""

    every_steps: int | None = Field(default=None, ge=1, le=1_000_000)
    every_minutes: int | None = Field(default=60, ge=1, le=1_000_000)
    keep: int = Field(default=20, ge=1, le=1000)


class Limits(Part):
    """The agent's own limits; the lower of these and the task's holds. Null: the task's."""

    steps: int | None = Field(default=None, ge=1, le=1_000_000)
    usd: Budget | None = None
    tokens: int | None = Field(default=None, ge=1, le=1_000_000_000_000)
    hours: float | None = Field(default=None, gt=0, le=10_000, allow_inf_nan=False)


class Feedback(Part):
    """What more the newest message says."""

    efficiency: bool = False


class Prompt(Part):
    """A custom system prompt, or text added to the default one. Both are badged."""

    system: str | None = Field(default=None, max_length=100_000)
    extra: str = Field(default="", max_length=100_000)

    @property
    def custom(self) -> bool:
        """Whether the run's prompt differs from the default one."""
        return self.system is not None or bool(self.extra)


def preset_or_list(value: Any) -> Any:
    """Before-check of `tools`: one sentence in place of one per branch of the union."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise ValueError("it must be the name of a preset or a list of action names")


def pricing_of(model: Model) -> Pricing:
    """Where the price of this model comes from."""
    given = model.prices
    own = None if given is None else PriceList(given.input, given.output, given.cached)
    return Pricing(model.provider, model.name, model.base_url, own)
