"""Private servers for the suite: one PostgreSQL and one Valkey per test process, started when first needed."""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.db import connections
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from portal.embedded.postgres import Postgres
from portal.embedded.reach import folder
from portal.embedded.valkey import Valkey

# Threads of a BLAS library only get in each other's way here: two test processes share two cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Quick by default: many properties, few examples each, the same ones every time, so that a red run is red again.
# HYPOTHESIS_PROFILE=thorough looks harder, and elsewhere each time.
_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
_QUICK = {"max_examples": 20, "derandomize": True}
hypothesis_settings.register_profile("quick", **_QUICK, deadline=None, suppress_health_check=_SLOW)
hypothesis_settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=_SLOW)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_sessionfinish() -> None:
    """Leave nothing in the temporary folder; a worker of xdist ends without Python's own clean-up."""
    if "IB_TEST_HOME" not in os.environ:
        shutil.rmtree(settings.INSTANCE, ignore_errors=True)


@pytest.fixture(autouse=True)
def _asynchronous_thread_left_clean() -> Iterator[None]:
    """The one thread in which asynchronous tests do their synchronous parts holds no connection beyond its test: one
    that another test ends (a restart of the database) would fail here.
    """
    yield
    SyncToAsync.single_thread_executor.submit(connections.close_all).result(30)


@pytest.fixture(scope="session")
def servers() -> Iterator[Path]:
    """Start PostgreSQL and Valkey below the folder that portal.settings.testing names; end both afterwards."""
    home = folder(settings.INSTANCE)
    postgres = Postgres(home=home, data=home / "postgres", runtime=home / "run")
    valkey = Valkey(data=home / "valkey", runtime=home / "run")
    valkey.prepare(secrets.token_hex(16))
    database = postgres.start(home / "postgres.log")
    broker = valkey.start(home / "valkey.log")
    yield home
    connections.close_all()
    connections["default"].close_pool()  # its threads would go on asking for the server that ends now
    Valkey.stop(broker)
    Postgres.stop(database)


@pytest.fixture(scope="session")
def django_db_setup(servers: Path, django_db_setup: None) -> None:
    """pytest-django's database setup, after the server it needs has started."""
