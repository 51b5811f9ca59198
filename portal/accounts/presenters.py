"""Room: portal.accounts. What the account and team pages show."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.accounts.models import ApiToken, Invite, Membership, Notice, Team, User
from portal.accounts.notices import notice_sentence, notices_for
from portal.accounts.permits import may
from portal.accounts.roles import Thing, Verb
from portal.accounts.selectors import SecretRow, invites_of, members_of, secrets_for, teams_of, tokens_of

NEWEST_NOTICES = 30


@dataclass(frozen=True)
class TeamVault:
    """The keys of one team."""

    team: Team
    secrets: tuple[SecretRow, ...]


@dataclass(frozen=True)
class NoticeLine:
    """A notice in the reader's language."""

    sentence: str
    address: str
    at: datetime
    unread: bool


@dataclass(frozen=True)
class AccountPage:
    """Everything of one person."""

    teams: Sequence[Team]
    tokens: Sequence[ApiToken]
    vaults: tuple[TeamVault, ...]
    notices: tuple[NoticeLine, ...]


@dataclass(frozen=True)
class TeamPage:
    """One team; `manages` says whether the reader may change it."""

    team: Team
    members: Sequence[Membership]
    invites: Sequence[Invite]
    manages: bool


def account_page(user: User) -> AccountPage:
    """The account page of `user`."""
    teams = list(teams_of(user))
    return AccountPage(
        teams=teams,
        tokens=list(tokens_of(user)),
        vaults=tuple(TeamVault(team, secrets_for(user, team)) for team in teams),
        notices=tuple(_line(notice) for notice in notices_for(user)[:NEWEST_NOTICES]),
    )


def team_page(user: User, team: Team) -> TeamPage:
    """The page of `team` as `user` sees it."""
    manages = may(user, team, Thing.TEAM, Verb.MANAGE)
    invites = list(invites_of(team)) if manages else []
    return TeamPage(team=team, members=list(members_of(team)), invites=invites, manages=manages)


def _line(notice: Notice) -> NoticeLine:
    return NoticeLine(notice_sentence(notice), notice.address, notice.created_at, notice.read_at is None)
