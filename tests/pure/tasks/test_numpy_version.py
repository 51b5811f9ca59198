"""Training is chaotic: what tests run with must be what tasks run with."""

import numpy as np

from tests.pure.tasks.conftest import TASKS


def test_the_tests_have_the_numpy_of_the_task_environment():
    assert f"numpy=={np.__version__} " in (TASKS / "requirements.lock").read_text()
