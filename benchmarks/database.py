"""Django over servers of this process's own. Importing this sets Django up: import it before any model."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings.testing"
django.setup()

from django.conf import settings  # noqa: E402  settings are chosen above
from django.db import connection, connections  # noqa: E402
from django.test.utils import setup_test_environment, teardown_test_environment  # noqa: E402

from portal.embedded.postgres import Postgres  # noqa: E402
from portal.embedded.reach import folder  # noqa: E402
from portal.embedded.valkey import Valkey  # noqa: E402


@contextmanager
def database() -> Iterator[None]:
    """An empty, migrated database; the servers end with the block and nothing is left."""
    home = folder(settings.INSTANCE)
    postgres = Postgres(home=home, data=home / "postgres", runtime=home / "run")
    valkey = Valkey(data=home / "valkey", runtime=home / "run")
    valkey.prepare(secrets.token_hex(16))
    stored, broker = postgres.start(home / "postgres.log"), valkey.start(home / "valkey.log")
    setup_test_environment(debug=False)
    name = connection.settings_dict["NAME"]
    try:
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        yield
        connection.creation.destroy_test_db(name, verbosity=0)
    finally:
        teardown_test_environment()
        connections.close_all()
        Valkey.stop(broker)
        Postgres.stop(stored)
