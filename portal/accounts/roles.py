"""Room: portal.accounts. Who may do what: one matrix of relation x thing x verb. Pure; every door asks here."""

from collections.abc import Mapping
from enum import StrEnum


class Relation(StrEnum):
    """How a reader stands to the team that owns a thing; the strongest one counts."""

    NOBODY = "nobody"
    STRANGER = "stranger"
    MEMBER = "member"
    OWNER = "owner"
    STAFF = "staff"


class Thing(StrEnum):
    """What is protected. Public and private things are different things."""

    PUBLIC_RUN = "public_run"
    PRIVATE_RUN = "private_run"
    CONFIG = "config"
    TEAM = "team"
    SECRET = "secret"  # noqa: S105  a name of a thing
    SITE_NODE = "site_node"
    TEAM_NODE = "team_node"
    PUBLISHED_TASK = "published_task"
    DRAFT_TASK = "draft_task"


class Verb(StrEnum):
    """`read` shows it, `write` uses or changes it, `manage` gives it away, removes it or changes who may."""

    READ = "read"
    WRITE = "write"
    MANAGE = "manage"


_R = frozenset({Verb.READ})
_RW = frozenset({Verb.READ, Verb.WRITE})
_ALL = frozenset(Verb)
_NONE: frozenset[Verb] = frozenset()

# Columns: nobody, stranger, member, owner, staff.
_ROWS: Mapping[Thing, tuple[frozenset[Verb], ...]] = {
    Thing.PUBLIC_RUN: (_R, _R, _RW, _ALL, _ALL),
    Thing.PRIVATE_RUN: (_NONE, _NONE, _RW, _ALL, _ALL),
    Thing.CONFIG: (_NONE, _NONE, _RW, _ALL, _R),
    Thing.TEAM: (_NONE, _NONE, _R, _ALL, _ALL),
    # Staff run the site; they have no business with the keys of its users, not even with their names.
    Thing.SECRET: (_NONE, _NONE, _RW, _ALL, _NONE),
    Thing.SITE_NODE: (_NONE, _R, _R, _R, _ALL),
    Thing.TEAM_NODE: (_NONE, _NONE, _R, _ALL, _ALL),
    Thing.PUBLISHED_TASK: (_R, _R, _RW, _ALL, _ALL),
    Thing.DRAFT_TASK: (_NONE, _NONE, _RW, _ALL, _ALL),
}
MATRIX: Mapping[tuple[Relation, Thing], frozenset[Verb]] = {
    (relation, thing): verbs for thing, row in _ROWS.items() for relation, verbs in zip(Relation, row, strict=True)
}


def allowed(relation: Relation, thing: Thing, verb: Verb) -> bool:
    """Whether the matrix has it."""
    return verb in MATRIX[relation, thing]
