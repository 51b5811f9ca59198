"""A version per board that the database raises itself: whoever writes, no kept page outlives what it shows."""

from django.db import migrations, models

_ENTRY, _CELL, _COLUMN = "leaderboard_leaderboardentry", "leaderboard_entrycell", "leaderboard_boardtask"
_BOARDS_OF = {
    _ENTRY: "SELECT board_id FROM changed",
    _COLUMN: "SELECT board_id FROM changed",
    _CELL: f"SELECT e.board_id FROM changed c JOIN {_ENTRY} e ON e.id = c.entry_id",  # noqa: S608  our own names
}
_ROWS_OF = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}


def _function(name, boards):
    return f"""
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE leaderboard_board SET version = version + 1 WHERE id IN ({boards});
    RETURN NULL;
END $$;"""  # noqa: S608  our own names


def _raise():
    for table, boards in _BOARDS_OF.items():
        yield _function(f"{table}_changed", boards)
        for event, rows in _ROWS_OF.items():
            yield f"""
CREATE TRIGGER {table}_{event.lower()} AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {table}_changed();"""
    yield _function("leaderboard_team_changed", f"SELECT board_id FROM {_ENTRY} WHERE team_id = NEW.id")  # noqa: S608
    yield """
CREATE TRIGGER leaderboard_team_update AFTER UPDATE OF name, deleted_at ON accounts_team
    FOR EACH ROW EXECUTE FUNCTION leaderboard_team_changed();"""


def _rest():
    yield "DROP TRIGGER leaderboard_team_update ON accounts_team; DROP FUNCTION leaderboard_team_changed();"
    for table in _BOARDS_OF:
        for event in _ROWS_OF:
            yield f"DROP TRIGGER {table}_{event.lower()} ON {table};"
        yield f"DROP FUNCTION {table}_changed();"


class Migration(migrations.Migration):
    dependencies = [("leaderboard", "0001_initial"), ("accounts", "0001_initial")]
    operations = [
        migrations.AddField(
            "board", "version", models.PositiveBigIntegerField(db_default=0, default=0, editable=False)
        ),
        migrations.RunSQL("".join(_raise()), "\n".join(_rest())),
    ]
