"""Who gets what: one line per route and thing. A route that is missing here fails the suite.

Columns: name of the route, its arguments (names of `World.ids` in braces), then the status that nobody, a stranger, the
owner, a team mate and staff get. 302 is the way to the sign-in page. `POST` lines are asked by those alone who are
refused: what it does for others is the business of the room's own tests.
"""

from dataclasses import dataclass, field

PUBLIC = "200 200 200 200 200"
MINE = "302 200 200 200 200"  # a page of one's own
TEAM = "302 404 200 200 200"  # the team's, and staff's
HIDDEN = "404 404 200 200 200"  # the same, but no sign-in would help a visitor to know
ONLY_POST = "405 405 405 405 405"
API_MINE = "401 200 200 200 200"
REFUSED = "- -"


@dataclass(frozen=True)
class Line:
    """`statuses`: five for GET; for POST those of nobody and stranger."""

    name: str
    statuses: str
    args: dict[str, str] = field(default_factory=dict)
    query: str = ""
    method: str = "get"


def _runs(name: str, query: str = "", **more: str) -> list[Line]:
    """A page or endpoint of a run: public ones for all, private ones hidden."""
    return [
        Line(name, HIDDEN, {"run_id": "{private}", **more}, query),
        Line(name, PUBLIC, {"run_id": "{public}", **more}, query),
    ]


def _run_posts(name: str) -> list[Line]:
    """A control of a run: strangers don't know a private one and may not touch a public one."""
    return [
        Line(name, "302 404", {"run_id": "{private}"}, method="post"),
        Line(name, "302 403", {"run_id": "{public}"}, method="post"),
    ]


def _posts(name: str, statuses: str, /, **args: str) -> list[Line]:
    """A door that only takes POST."""
    return [Line(name, ONLY_POST, args), Line(name, statuses, args, method="post")]


TABLE: tuple[Line, ...] = (
    *(Line(name, PUBLIC) for name in ("home", "home_live", "tasks", "agents", "runs", "docs")),
    Line("leaderboard", "302 302 302 302 302"),
    Line("docs_section", PUBLIC, {"section": "actions"}),
    Line("task", PUBLIC, {"slug": "example-task"}),
    Line("task_workspace", PUBLIC, {"slug": "example-task", "number": "1"}),
    Line("agent", HIDDEN, {"config_id": "{agent_private}"}),
    Line("agent", PUBLIC, {"config_id": "{agent_public}"}),
    Line("board", PUBLIC, {"slug": "nano-public"}),
    Line("board_csv", PUBLIC, {"slug": "nano-public"}),
    Line("entry", PUBLIC, {"slug": "nano-public", "entry_id": "{entry}"}),
    Line("set_language", "302 302 302 302 302"),
    # runs
    *_runs("run"),
    *_runs("run_steps"),
    *_runs("run_step", number="0"),
    *_runs("run_step", number="1"),
    *_runs("run_terminal", "?session=main"),
    *_runs("run_terminal", "?session=main&raw=1"),
    Line("run_cancel", TEAM, {"run_id": "{private}"}),
    Line("run_cancel", "302 403 200 200 200", {"run_id": "{public}"}),
    *_run_posts("run_cancel"),
    *(
        line
        for name in ("run_pause", "run_resume", "run_message", "run_share")
        for line in (Line(name, ONLY_POST, {"run_id": "{private}"}), *_run_posts(name))
    ),
    # submissions
    Line("submit", MINE),
    Line("submit", "302 -", method="post"),
    Line("submissions", MINE),
    Line("submission", HIDDEN, {"submission_id": "{submission_private}"}),
    Line("submission", PUBLIC, {"submission_id": "{submission_public}"}),
    Line("submission_retry", ONLY_POST, {"run_id": "{private}"}),
    *_run_posts("submission_retry"),
    # accounts
    Line("account", MINE),
    *_posts("account_delete", "302 -"),
    *_posts("notices_read", "302 -"),
    *_posts("token_create", "302 -"),
    *_posts("token_revoke", "302 302", token_id="{token}"),
    *_posts("secret_put", "302 -"),
    *_posts("secret_delete", "302 404", slug="{team}", secret_id="{secret}"),
    *_posts("team_create", "302 -"),
    Line("team", TEAM, {"slug": "{team}"}),
    *_posts("team_rename", "302 404", slug="{team}"),
    *_posts("invite_create", "302 404", slug="{team}"),
    *_posts("invite_revoke", "302 404", slug="{team}", invite_id="{invite}"),
    *_posts("member_role", "302 404", slug="{team}", user_id="{mate}"),
    *_posts("member_remove", "302 404", slug="{team}", user_id="{mate}"),
    Line("invite", "302 404 404 404 404", {"value": "nonsense"}),
    # nodes
    Line("nodes", MINE),
    Line("node", MINE, {"name": "{node_site}"}),
    Line("node", TEAM, {"name": "{node_team}"}),
    Line("node_add", MINE),
    *(
        line
        for name in ("node_trust", "node_state", "node_doctor")
        for line in (
            *_posts(name, "302 404", name="{node_team}"),
            Line(name, "302 403", {"name": "{node_site}"}, method="post"),
        )
    ),
    # API
    *(Line(name, PUBLIC) for name in ("schema", "api-boards", "api-tasks", "api-configs", "api-runs")),
    Line("api-board", PUBLIC, {"slug": "nano-public"}),
    Line("api-entry", PUBLIC, {"slug": "nano-public", "entry_id": "{entry}"}),
    Line("api-task", PUBLIC, {"slug": "example-task"}),
    Line("api-config-check", "405 405 405 405 405"),
    Line("api-config-check", "401 -", method="post"),
    Line("api-configs", "401 -", method="post"),
    *_runs("api-run"),
    *_runs("api-run-events"),
    *_runs("api-run-evaluations"),
    Line("api-run-cancel", ONLY_POST, {"run_id": "{private}"}),
    Line("api-run-cancel", "401 404", {"run_id": "{private}"}, method="post"),
    Line("api-run-cancel", "401 403", {"run_id": "{public}"}, method="post"),
    Line("api-submissions", API_MINE),
    Line("api-submissions", "401 -", method="post"),
    Line("api-submission", HIDDEN, {"submission_id": "{submission_private}"}),
    Line("api-submission", PUBLIC, {"submission_id": "{submission_public}"}),
    *(Line(name, API_MINE) for name in ("api-account", "api-tokens", "api-secrets", "api-nodes")),
    Line("api-tokens", "401 -", method="post"),
    Line("api-token", "401 405 405 405 405", {"token_id": "{token}"}),
    Line("api-token", "401 404", {"token_id": "{token}"}, method="delete"),
    Line("api-secret", "401 404 404 404 404", {"name": "HUSH_KEY"}),
    Line("api-secret", "401 404", {"name": "HUSH_KEY"}, method="delete"),
)
