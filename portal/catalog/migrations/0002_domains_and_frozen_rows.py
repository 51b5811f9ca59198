"""The six domains of the paper, and triggers that keep task versions and scoring revisions as they were written."""

from django.db import migrations

DOMAINS = [
    ("data-construction", "Data Construction", "DC", "dc"),
    ("data-filtering", "Data Filtering", "DF", "df"),
    ("data-augmentation", "Data Augmentation", "DA", "da"),
    ("loss-design", "Loss Design", "LD", "ld"),
    ("reward-design", "Reward Design", "RD", "rd"),
    ("scaffold-construction", "Scaffold Construction", "SC", "sc"),
]

FREEZE = """
CREATE FUNCTION catalog_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(OLD) - 'published_at' - 'retired_at' IS DISTINCT FROM to_jsonb(NEW) - 'published_at' - 'retired_at' THEN
        RAISE EXCEPTION '% row % is frozen; write a new version instead', TG_TABLE_NAME, OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER catalog_taskversion_frozen BEFORE UPDATE ON catalog_taskversion
    FOR EACH ROW EXECUTE FUNCTION catalog_frozen();
CREATE TRIGGER catalog_scoringrevision_frozen BEFORE UPDATE ON catalog_scoringrevision
    FOR EACH ROW EXECUTE FUNCTION catalog_frozen();
"""
THAW = """
DROP TRIGGER catalog_taskversion_frozen ON catalog_taskversion;
DROP TRIGGER catalog_scoringrevision_frozen ON catalog_scoringrevision;
DROP FUNCTION catalog_frozen();
"""


def domains_make(apps, schema_editor):
    domain = apps.get_model("catalog", "Domain")
    for position, (slug, name, code, hue) in enumerate(DOMAINS, start=1):
        domain.objects.get_or_create(slug=slug, defaults={"name": name, "code": code, "hue": hue, "position": position})


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]
    operations = [
        migrations.RunPython(domains_make, migrations.RunPython.noop),
        migrations.RunSQL(FREEZE, THAW),
    ]
