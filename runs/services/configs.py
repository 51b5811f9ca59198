"""Room: runs. Agent configs: parsed, hashed, numbered, never changed."""

from django.db import transaction
from django.db.models import Max

from portal.accounts.models import Team, User
from runs.agent.spec import parse_spec, spec_digest
from runs.models.config import AgentConfig


def config_create(*, team: Team, text: str, by: User | None) -> AgentConfig:
    """The team's config of this text: a new version of its name, or the version that says the same already.

    Raises SpecErrors with every fault of the text at its line.
    """
    spec = parse_spec(text)
    digest = spec_digest(spec)
    with transaction.atomic():
        # Two people of one team at once: numbers are given one after the other.
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        same = AgentConfig.objects.filter(team=team, name=spec.name)
        found = same.filter(digest=digest).first()
        if found is not None:
            return found
        last = same.aggregate(last=Max("version"))["last"] or 0
        return AgentConfig.objects.create(
            team=team,
            name=spec.name,
            version=last + 1,
            digest=digest,
            spec=spec.model_dump(mode="json"),
            source=text,
            created_by=by,
        )
