"""What secrets were before they were replaced or deleted, kept sealed for a while: late output is still masked."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="FormerSecret",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=64)),
                ("sealed", models.BinaryField()),
                ("until", models.DateTimeField(db_index=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.team"
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["team", "name"], name="accounts_fo_team_id_f89eab_idx")]},
        ),
    ]
