"""Room: runs. What must never be stored of a run's output: the key that its config names, opened from the vault.

For workers and the collector, which alone may open the vault. Secrets are masked here and not on the nodes, because
none of them is ever sent there.
"""

from collections import OrderedDict
from functools import lru_cache

from portal.accounts.vault import stamp_of, values_to_mask
from runs.agent.spec import AgentSpec
from runs.agent.spec_parts import Provider
from runs.masks import Masks
from runs.models.config import AgentConfig
from runs.models.run import Run

MASKED_FROM = 8  # characters; masking shorter keys would dot out ordinary words
MOST_KEYS = 2000
NOTHING = Masks()

Reference = tuple[int, str]  # team, name
Stamp = tuple[object, ...]
# In this process; the vault keeps what a key was before it was replaced or deleted.
_opened: OrderedDict[Reference, tuple[Stamp, Masks]] = OrderedDict()


def masks_for(run_id: int) -> Masks | None:
    """What to mask in a run's output; None where there is no such run.

    Raises VaultClosed; ValidationError for a config that this release can't read.
    """
    found = Run.objects.filter(pk=run_id).values_list("team_id", "config_id").first()
    if found is None:
        return None
    team_id, config_id = found
    named = _named(config_id)
    return NOTHING if named is None else _masks(team_id, named)


@lru_cache(maxsize=MOST_KEYS)
def _named(config_id: int) -> str | None:
    """Name of the key that a config names; configs never change."""
    model = AgentSpec.model_validate(AgentConfig.objects.get(pk=config_id).spec).model
    if model.provider is Provider.SCRIPTED or model.api_key is None:
        return None
    return model.api_key.removeprefix("secret:")


def _masks(team_id: int, name: str) -> Masks:
    stamp = stamp_of(team_id=team_id, name=name)
    seen, masks = _opened.get((team_id, name), ((), NOTHING))
    if stamp != seen:
        values = values_to_mask(team_id=team_id, name=name)
        masks = Masks(tuple(dict.fromkeys(each for each in values if len(each) >= MASKED_FROM)))
        _opened[team_id, name] = (stamp, masks)
        while len(_opened) > MOST_KEYS:
            _opened.popitem(last=False)
    return masks
