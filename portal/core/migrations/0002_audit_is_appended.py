"""The audit log is appended to: the database refuses changes and deletions of its rows."""

from django.db import migrations

APPEND_ONLY = """
CREATE FUNCTION core_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are appended, never changed', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER core_auditentry_append_only BEFORE UPDATE OR DELETE ON core_auditentry
    FOR EACH ROW EXECUTE FUNCTION core_append_only();
"""
UNDO = """
DROP TRIGGER core_auditentry_append_only ON core_auditentry;
DROP FUNCTION core_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]
    operations = [migrations.RunSQL(APPEND_ONLY, UNDO)]
