"""What the doctor found on a node last, and when."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("nodes", "0001_initial")]
    operations = [
        migrations.AddField(model_name="node", name="doctor", field=models.JSONField(default=dict)),
        migrations.AddField(model_name="node", name="doctor_at", field=models.DateTimeField(null=True)),
    ]
