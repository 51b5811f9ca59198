"""Room: runs.agent. From a config to a language model: the one place that knows which class speaks which wire."""

from collections.abc import Collection
from dataclasses import dataclass

from portal.core.keyrules import place_of
from runs.agent.addresses import address_fault
from runs.agent.llm.anthropic_chat import AnthropicChat
from runs.agent.llm.endpoint import ANTHROPIC_URL, OPENAI_URL, Endpoint
from runs.agent.llm.network import BoundSecret
from runs.agent.llm.openai_chat import OpenAIChat
from runs.agent.protocols import AddressRefused, ModelClient, ModelRefused
from runs.agent.spec_parts import Model, Provider


@dataclass(frozen=True)
class ModelSite:
    """What the site adds to a config: the operator's allow-list (`host:port`), the address of its scripted model."""

    allowed: Collection[str] = ()
    scripted_url: str = ""


def model_for(model: Model, site: ModelSite, *, secret: BoundSecret | None = None, client_id: str = "") -> ModelClient:
    """The client for a config; close it after use. Raises `WrongKey` for a secret of another host or one that can't be
    sent, `AddressRefused` for a text that is no address, `ModelRefused` for a scripted model where the site runs none.
    """
    if model.provider is Provider.SCRIPTED:
        if not site.scripted_url:
            raise ModelRefused("this site runs no scripted model; name another provider", "no_scripted_model")
        return OpenAIChat(model, Endpoint(site.scripted_url, None, site.allowed, client_id))
    endpoint = Endpoint(model_url(model), secret, site.allowed, client_id)
    return AnthropicChat(model, endpoint) if model.provider is Provider.ANTHROPIC else OpenAIChat(model, endpoint)


def secret_host(model: Model) -> str:
    """The host, with a port where it isn't the scheme's own, for which a secret must have been stored to be used with
    this config; empty where the config names none.
    """
    try:
        return str(place_of(_url(model)))
    except ValueError:
        return ""


def model_url(model: Model) -> str:
    """Where the model is. Raises AddressRefused for a text that is no address."""
    fault = address_fault(_url(model))
    if fault is not None:
        raise AddressRefused(fault, "address_broken")
    return _url(model)


def _url(model: Model) -> str:
    return model.base_url or (ANTHROPIC_URL if model.provider is Provider.ANTHROPIC else OPENAI_URL)
