"""Room: portal.accounts. The vault: a team's keys, each bound to one host and port. Written by anybody in the team,
read by nobody: the web process has no key to open it. Workers open a secret for the place it was stored for and no
other.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import FormerSecret, Team, User, VaultSecret
from portal.core.audit import audit_write
from portal.core.errors import FieldFault, Missing, SiteError
from portal.core.keyrules import place_binds, place_of, place_read, unsendable_at
from portal.core.secrets import Secret, vault_open_bytes, vault_seal

NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
MAX_BYTES = 16 * 1024
MOST_HOST = 255
FORMER_KEPT = timedelta(days=30)  # longer than any run lasts


class SecretMissing(Missing):
    """The team's vault has nothing under that name."""

    code = "secret_missing"
    template = _("The vault of team {team} has no secret {name}; add it under Account, Vault.")


class SecretBoundElsewhere(SiteError):
    """The secret was stored for another host: it is never sent anywhere else."""

    code = "secret_bound_elsewhere"
    template = _(
        "The secret {name} was stored for {bound}, and {host} asked for it; store one for {host} under another name."
    )
    status = 403


def secret_put(*, team: Team, name: str, value: Secret, host: str, by: User) -> VaultSecret:
    """Seal `value` under `name` for `host` (`api.example.org`, `10.0.0.5:8000`; empty: handed to tasks, never sent to
    a model's host), replacing what stood there. Without a port it is the own one of http or https. Blanks around a
    model's key are left out. The caller checked that `by` may write the team's secrets.

    Raises FieldFault (name, host, value), VaultClosed when the installation has no vault key.
    """
    bound = _bound_checked(name, host)
    clear = json.dumps({"team": team.pk, "name": name, "host": bound, "value": _value_checked(bound, value.reveal())})
    sealed = vault_seal(clear.encode())
    with transaction.atomic():
        row, created = VaultSecret.objects.get_or_create(
            team=team, name=name, defaults={"host": bound, "sealed": sealed, "created_by": by}
        )
        if not created:
            _former_keep(row)
            row.host, row.sealed, row.replaced_at, row.last_used_at = bound, sealed, timezone.now(), None
            row.save(update_fields=["host", "sealed", "replaced_at", "last_used_at"])
        verb = "stored" if created else "replaced"
        audit_write(verb=verb, thing=row, by=by, team_id=team.pk, facts={"name": name, "host": bound})
    return row


def secret_delete(*, team: Team, secret_id: int, by: User) -> None:
    """Remove a secret. Raises Missing when it is of another team or gone. The caller checked the right."""
    row = team.secrets.filter(pk=secret_id).first()
    if row is None:
        raise Missing(thing=str(_("key")), name=secret_id)
    with transaction.atomic():
        audit_write(verb="deleted", thing=row, by=by, team_id=team.pk, facts={"name": row.name})
        _former_keep(row)
        row.delete()


def secrets_delete(*, team: Team) -> None:
    """Remove all secrets of a team that ends; what its runs still print of them is masked as after any deletion."""
    for row in team.secrets.all():
        _former_keep(row)
        row.delete()


def _former_keep(row: VaultSecret) -> None:
    until = timezone.now() + FORMER_KEPT
    FormerSecret.objects.create(team_id=row.team_id, name=row.name, sealed=bytes(row.sealed), until=until)


def formers_forget() -> None:
    """Remove what was kept long enough."""
    FormerSecret.objects.filter(until__lt=timezone.now()).delete()


def secret_demand(*, team: Team, name: str) -> None:
    """Raises SecretMissing when the team's vault has nothing under `name`, before anything waits for it."""
    if not VaultSecret.objects.filter(team=team, name=name).exists():
        raise SecretMissing(team=team.name, name=name)


def secret_open(*, team: Team, name: str, url: str) -> Secret:
    """The value, for a worker about to talk to `url`. Raises SecretMissing, SecretBoundElsewhere, VaultClosed.

    What counts is the host inside the sealed text: a row edited in the database opens for nobody new.
    """
    row = VaultSecret.objects.filter(team=team, name=name).first()
    if row is None:
        raise SecretMissing(team=team.name, name=name)
    clear: Mapping[str, object] = json.loads(vault_open_bytes(bytes(row.sealed)))
    if (clear["team"], clear["name"]) != (team.pk, name):
        raise SecretMissing(team=team.name, name=name)
    bound = str(clear["host"])
    if not place_binds(bound, url):
        raise SecretBoundElsewhere(name=name, bound=bound or str(_("tasks only")), host=str(place_of(url)))
    VaultSecret.objects.filter(pk=row.pk).update(last_used_at=timezone.now())
    return Secret(str(clear["value"]))


def values_to_mask(*, team_id: int, name: str) -> tuple[str, ...]:
    """What a secret is and was within the last `FORMER_KEPT`, the newest first: to be masked, never to be sent. Raises
    VaultClosed.
    """
    now = VaultSecret.objects.filter(team=team_id, name=name)
    before = FormerSecret.objects.filter(team=team_id, name=name, until__gte=timezone.now()).order_by("-pk")
    sealed = [*now.values_list("sealed", flat=True), *before.values_list("sealed", flat=True)]
    return tuple(str(json.loads(vault_open_bytes(bytes(each)))["value"]) for each in sealed)


def stamp_of(*, team_id: int, name: str) -> tuple[object, ...]:
    """Something that changes whenever `values_to_mask` may."""
    now = VaultSecret.objects.filter(team=team_id, name=name).values_list("pk", "replaced_at").first()
    before = FormerSecret.objects.filter(team=team_id, name=name).order_by("-pk").values_list("pk", flat=True).first()
    return (now, before)


def _bound_checked(name: str, host: str) -> str:
    if not NAME.fullmatch(name):
        message = _("use capital letters, digits and underscores, a letter first, at most 64: ANTHROPIC_KEY")
        raise FieldFault(field="name", message=str(message))
    if not host.strip():
        return ""
    try:
        bound = str(place_read(host))
        if len(bound) <= MOST_HOST:
            return bound
        raise ValueError("longer than any name")
    except ValueError:
        message = _(
            "write the host alone, with its port where that isn't 443 for https or 80 for http: "
            "api.example.org or 10.0.0.5:8000"
        )
        raise FieldFault(field="host", message=str(message)) from None


def _value_checked(bound: str, value: str) -> str:
    """The value as it is kept: a model's key must fit into a request's header, whatever was copied with it."""
    kept = value.strip() if bound else value
    place = unsendable_at(kept) if bound and kept else None
    if place is not None:
        message = _(
            "character {place} is {character}; a key goes into a request's header, which carries printable ASCII "
            "alone: no accents, no line breaks, no other scripts. Copy the key again"
        )
        raise FieldFault(field="value", message=str(message).format(place=place + 1, character=_named(kept[place])))
    size = len(kept.encode(errors="surrogatepass"))
    if not 1 <= size <= MAX_BYTES or "\0" in kept or any("\ud800" <= each <= "\udfff" for each in kept):
        message = _("a secret has 1 to {limit} bytes of text and no NUL; this one has {size}")
        raise FieldFault(field="value", message=str(message).format(limit=MAX_BYTES, size=size))
    return kept


def _named(character: str) -> str:
    """A character by its number and name: what can't be sent often can't be seen either."""
    return f"U+{ord(character):04X} ({unicodedata.name(character, 'CONTROL CHARACTER')})"
