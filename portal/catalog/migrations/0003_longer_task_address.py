"""Room for the owner's name in front of a community task's address."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0002_domains_and_frozen_rows")]
    operations = [
        migrations.AlterField(model_name="task", name="slug", field=models.SlugField(max_length=130, unique=True))
    ]
